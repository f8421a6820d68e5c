//! Random operations beside an oracle: blocks do not overlap, contents stay, addresses are aligned;
//! also with threads that free each other's blocks.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

use hearth_heap as heap;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Sizes of all levels, small ones more often.
    fn size(&mut self) -> usize {
        let bits = match self.below(100) {
            0..70 => self.below(10),
            70..95 => self.below(16),
            95..99 => self.below(19),
            _ => self.below(23),
        };
        (self.below(2 << bits)) as usize
    }
}

/// Live blocks: their addresses, their sizes, and the bytes at both ends.
#[derive(Default)]
struct Oracle(BTreeMap<usize, (usize, u8)>);

impl Oracle {
    fn add(&mut self, block: *mut u8, size: usize, mark: u8) {
        assert!(!block.is_null());
        let start = block.addr();
        // SAFETY: the block is alive.
        let usable = unsafe { heap::usable_size(block) };
        assert!(usable >= size, "{usable} for {size}");
        let before = self.0.range(..=start).next_back();
        assert!(
            before.is_none_or(|(at, (length, _))| at + (*length).max(1) <= start),
            "{start:#x} lies in {before:x?}"
        );
        let after = self.0.range(start..).next();
        assert!(
            after.is_none_or(|(at, _)| start + usable <= *at),
            "{start:#x} with {usable} reaches into {after:x?}"
        );
        // SAFETY: as long as this.
        unsafe { block.write_bytes(mark, size) };
        self.0.insert(start, (size, mark));
    }

    fn check(&self, start: usize) {
        let (size, mark) = self.0[&start];
        let block: *const u8 = std::ptr::with_exposed_provenance(start);
        for i in (0..size).step_by((size / 16).max(1)) {
            // SAFETY: inside of a live block.
            let byte = unsafe { block.add(i).read() };
            assert_eq!(byte, mark, "{start:#x} at {i} of {size}");
        }
    }

    fn remove(&mut self, start: usize) -> *mut u8 {
        self.check(start);
        self.0.remove(&start);
        std::ptr::with_exposed_provenance_mut(start)
    }

    fn any(&self, random: &mut Random) -> Option<usize> {
        let (first, last) = (*self.0.keys().next()?, *self.0.keys().next_back()?);
        let at = first + random.below((last - first + 1) as u64) as usize;
        self.0.range(at..).next().map(|(start, _)| *start)
    }
}

fn run(seed: u64, operations: usize, live: usize) {
    let mut random = Random(seed);
    let mut oracle = Oracle::default();
    for i in 0..operations {
        let mark = i as u8;
        match random.below(100) {
            0..3 => {
                let Some(start) = oracle.any(&mut random) else {
                    continue;
                };
                let (had, old) = oracle.0[&start];
                let size = random.size().max(1);
                let block = oracle.remove(start);
                // SAFETY: the block is alive and not used any more.
                let block = unsafe { heap::reallocate(block, size) };
                // SAFETY: the shorter of both lengths is alive.
                assert!(had.min(size) == 0 || unsafe { block.read() } == old);
                oracle.add(block, size, mark);
            }
            3..6 => {
                let (size, align) = (random.size().min(300_000), 1 << random.below(15));
                let block = heap::allocate_aligned(size, align);
                assert_eq!(block.addr() % align, 0);
                oracle.add(block, size, mark);
            }
            6..10 => {
                let size = random.size();
                let block = heap::allocate_zeroed(size);
                // SAFETY: as long as this.
                let bytes = unsafe { std::slice::from_raw_parts(block, size) };
                assert!(bytes.iter().all(|byte| *byte == 0), "{size}");
                oracle.add(block, size, mark);
            }
            _ if oracle.0.len() < live && random.below(2) == 0 => {
                let size = random.size();
                let block = heap::allocate(size);
                assert_eq!(block.addr() % 16, 0);
                oracle.add(block, size, mark);
            }
            _ => {
                if let Some(start) = oracle.any(&mut random) {
                    let block = oracle.remove(start);
                    // SAFETY: the block is alive and not used any more.
                    unsafe { heap::free(block) };
                }
            }
        }
    }
    while let Some(start) = oracle.0.keys().next().copied() {
        let block = oracle.remove(start);
        // SAFETY: as above.
        unsafe { heap::free(block) };
    }
}

#[test]
fn blocks_do_not_overlap() {
    for seed in 0..8 {
        run(seed, 40_000, 300);
        run(100 + seed, 40_000, 6000);
    }
}

/// A block on its way to another thread.
struct Sent {
    address: usize,
    size: usize,
    mark: u8,
}

impl Sent {
    fn new(random: &mut Random) -> Sent {
        let size = random.size();
        let mark = random.next() as u8;
        let block = heap::allocate(size);
        assert!(!block.is_null());
        // SAFETY: as long as this.
        unsafe { block.write_bytes(mark, size) };
        Sent {
            address: block.expose_provenance(),
            size,
            mark,
        }
    }

    fn end(self) {
        let block: *mut u8 = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: the block came here with all rights.
        unsafe {
            let bytes = std::slice::from_raw_parts(block, self.size);
            assert!(bytes.iter().all(|byte| *byte == self.mark));
            heap::free(block);
        }
    }
}

#[test]
fn blocks_go_around() {
    const THREADS: usize = 4;
    let (ins, outs): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Sent>()).unzip();
    let threads: Vec<_> = outs
        .into_iter()
        .enumerate()
        .map(|(number, out)| {
            let ins = ins.clone();
            thread::spawn(move || {
                let mut random = Random(number as u64);
                let mut own = Vec::new();
                for _ in 0..30_000 {
                    match random.below(8) {
                        0..3 => own.push(Sent::new(&mut random)),
                        3..6 => {
                            let to = random.below(THREADS as u64) as usize;
                            // A thread that has ended already leaves the block to be dropped.
                            let _ = ins[to].send(Sent::new(&mut random));
                        }
                        6 if !own.is_empty() => {
                            let at = random.below(own.len() as u64) as usize;
                            own.swap_remove(at).end();
                        }
                        _ => out.try_iter().take(4).for_each(Sent::end),
                    }
                }
                drop(ins);
                own.into_iter().for_each(Sent::end);
                out.into_iter().for_each(Sent::end);
            })
        })
        .collect();
    drop(ins);
    for thread in threads {
        thread.join().expect("no thread panics");
    }
}

#[test]
fn what_another_frees_is_used_again() {
    // A producer that never frees, and a consumer that frees all: the producer's heap stays small.
    let (sender, receiver) = mpsc::sync_channel::<Vec<usize>>(1);
    let consumer = thread::spawn(move || {
        for blocks in receiver {
            for block in blocks {
                // SAFETY: sent with all rights.
                unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
            }
        }
    });
    let mut owned = 0;
    for round in 0..200 {
        let blocks = (0..5000)
            .map(|i| heap::allocate(16 + i % 200).expose_provenance())
            .collect();
        sender.send(blocks).expect("the consumer is there");
        let now = heap::figures().owned;
        if round == 20 {
            owned = now;
        }
        assert!(owned == 0 || now <= 3 * owned, "{owned} bytes, then {now}");
    }
    drop(sender);
    consumer.join().expect("it does not panic");
}

#[test]
fn threads_hand_their_heaps_on() {
    // Each leaves some blocks behind, which the last one frees.
    let mut left = Vec::new();
    for _ in 0..500 {
        let thread = thread::spawn(|| {
            let mut random = Random(1);
            (0..10).map(|_| Sent::new(&mut random)).collect::<Vec<_>>()
        });
        left.extend(thread.join().expect("it does not panic"));
    }
    left.into_iter().for_each(Sent::end);
}
