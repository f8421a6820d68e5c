//! A gene put together from segments that overlap.
//!
//! Threads throw duplicates away in a shared set, then link each segment to one that begins as it
//! ends: overlaps of all but one letter first, then shorter ones. Almost everything is in
//! transactions of middle length, and conflicts are few.

use std::sync::{Barrier, Mutex, OnceLock, PoisonError};

use hearth_stm::{Algorithm, Halt, Map, Stm, Tx, Var};

use super::{Kernel, Random, Size, shares};

/// Segments that one transaction looks at while duplicates are thrown away.
const CHUNK: usize = 12;

pub(super) struct Parameters {
    /// Letters of the gene.
    pub(super) gene: usize,
    /// Letters of a segment; at most 28, whose bits and the overlap's length make a key.
    pub(super) segment: usize,
    /// Number of segments.
    pub(super) number: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        let (gene, number) = match size {
            Size::Small => (64, 1024),
            Size::Published => (256, 16_384),
        };
        Parameters {
            gene,
            segment: 16,
            number,
        }
    }
}

/// A letter takes two bits.
const LETTER: usize = 2;

pub(super) struct Genome<A: Algorithm> {
    stm: Stm<A>,
    threads: usize,
    gene: Vec<u8>,
    segment: usize,
    segments: Vec<u64>,
    seen: Map<u64, ()>,
    unique: Mutex<Vec<u64>>,
    links: OnceLock<Links>,
    barrier: Barrier,
}

/// Unique segments with their links. A chain of linked segments is known by both its ends.
struct Links {
    segments: Vec<u64>,
    /// The segment behind, and by how many letters it overlaps.
    next: Vec<Var<(u32, u32)>>,
    /// Whether there is one before.
    is_linked: Vec<Var<bool>>,
    /// The first segment of the chain that ends here.
    first: Vec<Var<u32>>,
    /// The last segment of the chain that begins here.
    last: Vec<Var<u32>>,
    /// The first segment, plus 1, of those that begin with some letters.
    starts: Map<u64, u32>,
    /// The next one, plus 1, that begins with the same letters.
    same: Vec<Var<u32>>,
}

impl<A: Algorithm> Genome<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, threads: usize, seed: u64) -> Genome<A> {
        let Parameters {
            gene,
            segment,
            number,
        } = Parameters::of(size);
        let mut random = Random::new(seed);
        let letters: Vec<u8> = (0..gene).map(|_| random.below(4) as u8).collect();
        let places = gene - segment + 1;
        let packed = |at: usize| {
            let letters = letters[at..at + segment].iter();
            letters.fold(0, |word, &letter| word << LETTER | u64::from(letter))
        };
        // Each place at least once, or the gene has gaps.
        let mut segments: Vec<u64> = (0..places).map(packed).collect();
        segments.extend((places..number).map(|_| packed(random.below(places))));
        random.shuffle(&mut segments);
        Genome {
            stm,
            threads,
            gene: letters,
            segment,
            seen: Map::with_capacity(places),
            segments,
            unique: Mutex::new(Vec::new()),
            links: OnceLock::new(),
            barrier: Barrier::new(threads),
        }
    }

    fn throw_duplicates_away(&self, thread: usize) {
        let mut own = Vec::new();
        for chunk in self.segments[shares(self.segments.len(), self.threads, thread)].chunks(CHUNK)
        {
            let new = self.stm.atomically(|tx| {
                let mut new = Vec::new();
                for &segment in chunk {
                    if self.seen.insert(tx, segment, ())?.is_none() {
                        new.push(segment);
                    }
                }
                Ok(new)
            });
            own.extend(new);
        }
        let mut unique = self.unique.lock().unwrap_or_else(PoisonError::into_inner);
        unique.extend(own);
    }

    fn links(&self) -> &Links {
        self.links.get_or_init(|| {
            let unique = self.unique.lock().unwrap_or_else(PoisonError::into_inner);
            let number = unique.len();
            Links {
                segments: unique.clone(),
                next: (0..number).map(|_| Var::new((0, 0))).collect(),
                is_linked: (0..number).map(|_| Var::new(false)).collect(),
                first: (0..number as u32).map(Var::new).collect(),
                last: (0..number as u32).map(Var::new).collect(),
                starts: Map::with_capacity(number),
                same: (0..number).map(|_| Var::new(0)).collect(),
            }
        })
    }

    /// Links segments that overlap by this many letters.
    fn link(&self, links: &Links, thread: usize, overlap: usize) {
        let own = || shares(links.segments.len(), self.threads, thread);
        let key = |letters: u64| (overlap as u64) << 58 | letters;
        for at in own() {
            let prefix = links.segments[at] >> (LETTER * (self.segment - overlap));
            self.stm.atomically(|tx| {
                if tx.read(&links.is_linked[at])? {
                    return Ok(());
                }
                let other = links.starts.insert(tx, key(prefix), at as u32 + 1)?;
                tx.write(&links.same[at], other.unwrap_or(0))
            });
        }
        self.barrier.wait();
        for at in own() {
            let suffix = links.segments[at] & ((1 << (LETTER * overlap)) - 1);
            self.stm
                .atomically(|tx| links.link_one(tx, at as u32, key(suffix), overlap as u32));
        }
        self.barrier.wait();
    }
}

impl Links {
    fn link_one<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        from: u32,
        key: u64,
        overlap: u32,
    ) -> Result<(), Halt> {
        if tx.read(&self.next[from as usize])?.1 != 0 {
            return Ok(());
        }
        let first = tx.read(&self.first[from as usize])?;
        let mut candidate = self.starts.get(tx, key)?.unwrap_or(0);
        while candidate != 0 {
            let to = candidate as usize - 1;
            // A chain must not become a ring.
            if to as u32 != first && !tx.read(&self.is_linked[to])? {
                let last = tx.read(&self.last[to])?;
                tx.write(&self.next[from as usize], (to as u32, overlap))?;
                tx.write(&self.is_linked[to], true)?;
                tx.write(&self.last[first as usize], last)?;
                return tx.write(&self.first[last as usize], first);
            }
            candidate = tx.read(&self.same[to])?;
        }
        Ok(())
    }
}

impl<A: Algorithm> Kernel for Genome<A> {
    fn work(&self, thread: usize) {
        self.throw_duplicates_away(thread);
        self.barrier.wait();
        let links = self.links();
        for overlap in (1..self.segment).rev() {
            self.link(links, thread, overlap);
        }
    }

    fn check(&self) -> Result<(), String> {
        let links = self.links();
        let read = |var: &Var<bool>| self.stm.atomically(|tx| tx.read(var));
        let begins: Vec<usize> = (0..links.segments.len())
            .filter(|&at| !read(&links.is_linked[at]))
            .collect();
        let [begin] = begins[..] else {
            return Err(format!("{} chains instead of one", begins.len()));
        };
        let mut letters = Vec::new();
        let (mut at, mut known) = (begin, 0);
        loop {
            for nth in known..self.segment {
                let shift = LETTER * (self.segment - 1 - nth);
                letters.push((links.segments[at] >> shift) as u8 & 3);
            }
            let (next, overlap) = self.stm.atomically(|tx| tx.read(&links.next[at]));
            if overlap == 0 {
                break;
            }
            (at, known) = (next as usize, overlap as usize);
        }
        match letters == self.gene {
            true => Ok(()),
            false => Err("the sequence is not the gene".to_owned()),
        }
    }
}
