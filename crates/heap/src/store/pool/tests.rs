//! Random takes and gives beside an oracle, with hints that are true whenever nobody is at work.

use std::collections::BTreeSet;
use std::vec::Vec;

use core::sync::atomic::{AtomicU64, Ordering};

use hearth_testing::random::Random;

use super::{Arenas, CHUNKS_SHIFT, Forgotten, From, Opened, Pools, Prepared, ROOMS, has_room};
use crate::ground::geometry::{CHUNK_SHIFT, RegionId};
use crate::ground::os::PAGE;
use crate::store::region::PAGE_LEVEL;
use crate::store::space::Space;

struct Oracle {
    space: Space,
    pools: Pools,
    /// First chunks and lengths of what was taken.
    taken: Vec<(usize, usize)>,
    chunks: BTreeSet<usize>,
}

impl Oracle {
    fn new(nodes: usize) -> Oracle {
        let space = Space::new();
        assert!(space.make(nodes), "there are addresses");
        Oracle {
            space,
            pools: Pools::new(),
            taken: Vec::new(),
            chunks: BTreeSet::new(),
        }
    }

    fn word(&self, chunk: usize) -> *mut u64 {
        core::ptr::with_exposed_provenance_mut(self.space.data() + (chunk << CHUNK_SHIFT))
    }

    fn add(&mut self, chunk: usize, count: usize, is_zero: bool, node: usize) {
        assert_eq!(self.space.node_of(chunk >> CHUNKS_SHIFT), node);
        for chunk in chunk..chunk + count {
            assert!(self.chunks.insert(chunk), "{chunk} was taken before");
            let word = self.word(chunk);
            // SAFETY: the chunk has been taken, and is this test's.
            unsafe {
                assert!(!is_zero || word.read() == 0, "{chunk} is not zero");
                word.write(7);
            }
        }
        self.taken.push((chunk, count));
    }

    fn remove(&mut self, random: &mut Random) -> Option<(usize, usize)> {
        if self.taken.is_empty() {
            return None;
        }
        let at = random.below(self.taken.len());
        let (chunk, count) = self.taken.swap_remove(at);
        for chunk in chunk..chunk + count {
            self.chunks.remove(&chunk);
        }
        Some((chunk, count))
    }

    /// Free words match what was not taken, and hints match free words.
    fn check(&self) {
        for arena in self.pools.arenas_in_use(&self.space) {
            let word = self.space.word(arena);
            let free = word[0].load(Ordering::Relaxed);
            for place in 0..64 {
                let chunk = arena << CHUNKS_SHIFT | place;
                let is_free = free >> place & 1 == 1;
                assert_ne!(is_free, self.chunks.contains(&chunk), "chunk {chunk}");
            }
            let node = self.space.node_of(arena);
            let at = arena - self.space.arenas_of_node() * node;
            for room in 0..ROOMS {
                let hints = self.pools.hints(&self.space, node, room);
                let [low, above @ ..] = hints.bits(at);
                assert_eq!(low, has_room(word, room), "arena {arena}, room {room}");
                assert!(!low || above == [true; 2], "arena {arena}, room {room}");
            }
        }
    }

    fn step(&mut self, random: &mut Random, nodes: usize, most: usize) {
        let node = random.below(nodes);
        // Only this node: the machine decides which one comes next.
        let from = From {
            node,
            is_last_resort: true,
        };
        let is_many = self.chunks.len() > most;
        match random.below(12) {
            0..5 if !is_many => {
                let count = [1, 1, 1, 2, 4, 7, 16, 20, 33, 64][random.below(10)];
                let taken = self.pools.take_of(&self.space, from, count as u32);
                let taken = taken.expect("there are addresses");
                assert!(taken.chunk & 63 <= 64 - count, "within an arena");
                let align = match count {
                    1 => 1,
                    2..=4 => 4,
                    5..=16 => 16,
                    _ => 1,
                };
                assert_eq!(taken.chunk % align, 0, "{count} chunks are aligned");
                self.add(taken.chunk, count, taken.is_zero(), node);
            }
            5 if !is_many => {
                let count = random.below(5) + 1;
                let taken = self.pools.take_arenas_of(&self.space, from, count);
                let taken = taken.expect("there are addresses");
                assert_eq!(taken.chunk & 63, 0);
                self.add(taken.chunk, count * 64, taken.is_zero(), node);
            }
            6 => {
                if let Some((chunk, has)) = self.remove(random) {
                    // A block grows in place if what follows is free.
                    let wanted = has + random.below(8) + 1;
                    let is_free = wanted + (chunk & 63) <= 64
                        && (chunk..chunk + wanted).all(|chunk| !self.chunks.contains(&chunk));
                    let is_larger = self.pools.extend(&self.space, chunk, has, wanted);
                    assert_eq!(is_larger, is_free, "{chunk} from {has} to {wanted}");
                    let now = if is_larger { wanted } else { has };
                    let node = self.space.node_of(chunk >> CHUNKS_SHIFT);
                    self.add(chunk, now, false, node);
                }
            }
            7 => {
                let given = self
                    .pools
                    .trim(&self.space, random.below(100) << CHUNK_SHIFT);
                assert_eq!(given % (1 << CHUNK_SHIFT), 0);
            }
            8 => {
                let count = random.below(40) as u32 + 1;
                self.pools
                    .forget_idle(&self.space, node, count, Forgotten::WithMetadata);
            }
            _ => {
                if let Some((chunk, count)) = self.remove(random) {
                    self.pools.give_many(&self.space, chunk, count);
                }
            }
        }
    }
}

fn run(nodes: usize, seed: u64, most: usize) {
    let mut oracle = Oracle::new(nodes);
    let mut random = Random::new(seed);
    for i in 0..3000 {
        oracle.step(&mut random, nodes, most);
        if i % 100 == 0 {
            oracle.check();
        }
    }
    while let Some((chunk, count)) = oracle.remove(&mut random) {
        oracle.pools.give_many(&oracle.space, chunk, count);
    }
    oracle.check();
    oracle.pools.trim(&oracle.space, 0);
    assert_eq!(oracle.pools.idle(&oracle.space), 0, "all is given back");
    assert_eq!(oracle.pools.held(&oracle.space), 0, "nobody has anything");
    oracle.check();
}

#[test]
fn chunks_are_taken_once_and_hints_are_true() {
    run(1, 1, 300);
    run(1, 2, 2000);
    run(4, 3, 1000);
}

#[test]
fn a_node_without_arenas_has_no_hints() {
    let oracle = Oracle::new(1);
    for room in 0..ROOMS {
        assert_eq!(
            oracle
                .pools
                .hinted(&oracle.space, 1, room, |hints| hints.lowest()),
            None
        );
    }
}

#[test]
fn whole_arenas_of_a_small_space_are_used_again() {
    let (space, pools) = (Space::new(), Pools::new());
    assert!(space.make_of(16, 1), "there are addresses");
    let from = From {
        node: 0,
        is_last_resort: true,
    };
    for _ in 0..20 {
        let taken = pools.take_arenas_of(&space, from, 3);
        let taken = taken.expect("those given back are found");
        pools.give_many(&space, taken.chunk, 3 * 64);
    }
}

/// Chunks that are taken next keep their memory, and takers learn how much they will fault in.
#[test]
fn the_lowest_chunks_are_taken_and_the_highest_given_back() {
    let (space, pools) = (Space::new(), Pools::new());
    assert!(space.make_of(16, 1), "there are addresses");
    let take = |arenas| {
        let taken = pools.take_arenas(&space, 0, arenas);
        taken.expect("there are addresses")
    };
    let first = take(3);
    assert!(first.is_zero());
    pools.give_many(&space, first.chunk, 3 * 64);
    let give_back = |chunks| {
        let given = pools.forget_idle(&space, 0, chunks, Forgotten::Data);
        assert_eq!(given, chunks);
    };
    give_back(64);
    give_back(10);
    let used = |arena: usize| space.word(arena)[1].load(Ordering::Relaxed);
    assert_eq!([used(0), used(1), used(2)], [u64::MAX, u64::MAX >> 10, 0]);
    let again = take(1);
    assert_eq!((again.chunk, again.with_memory), (0, 64));
    let rest = take(2);
    assert_eq!((rest.chunk, rest.with_memory), (64, 54));
}

/// Whether the metadata of a chunk's regions has memory.
fn has_account(space: &Space, chunk: usize) -> bool {
    let region = RegionId::at(PAGE_LEVEL, chunk << CHUNK_SHIFT);
    let page = (&raw const *space.words_of(region)).addr() & !(PAGE - 1);
    let mut there = 0;
    // SAFETY: a page of the space, and one byte for it.
    let told = unsafe {
        libc::mincore(
            core::ptr::with_exposed_provenance_mut(page),
            PAGE,
            &raw mut there,
        )
    };
    assert_eq!(told, 0, "the space is mapped");
    there & 1 != 0
}

#[test]
#[cfg_attr(miri, ignore = "it has no memory behind pages")]
fn account_of_chunks_is_looked_ahead_for() {
    let (space, pools) = (Space::new(), Pools::new());
    assert!(space.make_of(16, 1), "there are addresses");
    let from = From {
        node: 0,
        is_last_resort: true,
    };
    let take = |chunks| pools.take_of(&space, from, chunks).expect("there is room");
    let in_arena = |arena: usize| has_account(&space, arena << CHUNKS_SHIFT | 60);
    assert_eq!(pools.look_ahead(&space, 0, 0), 0, "nothing is begun");
    take(1);
    assert!(!in_arena(0));
    assert_eq!(pools.look_ahead(&space, 0, 0), 2, "and the next one");
    assert!(in_arena(0) && in_arena(1));
    // A large block needs none, nor does the arena after it.
    let large = pools.take_arenas_of(&space, from, 2);
    assert_eq!(large.expect("there is room").chunk >> CHUNKS_SHIFT, 1);
    assert_eq!(pools.look_ahead(&space, 0, 2), 3);
    assert!(!in_arena(2) && !in_arena(3));
    // Until heaps have some of that arena, too.
    take(63);
    assert_eq!(pools.look_ahead(&space, 0, 3), 4);
    assert!(!in_arena(2) && in_arena(3));
}

#[test]
fn hints_are_true_after_threads_have_been_at_work() {
    let oracle = Oracle::new(1);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (space, pools) = (&oracle.space, &oracle.pools);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut own: Vec<(usize, usize)> = Vec::new();
                for _ in 0..15_000 {
                    if own.len() < 30 && random.below(2) == 0 {
                        let count = [1, 1, 4, 16, 32, 64][random.below(6)];
                        let taken = pools.take(space, 0, count as u32);
                        own.push((taken.expect("there are addresses").chunk, count));
                    } else if !own.is_empty() {
                        let (chunk, count) = own.swap_remove(random.below(own.len()));
                        pools.give_many(space, chunk, count);
                    }
                }
                for (chunk, count) in own {
                    pools.give_many(space, chunk, count);
                }
            });
        }
    });
    oracle.check();
}

/// A space whose arenas are opened one by one, where the program has mapped the second.
struct Occupied(Space);

impl Arenas for Occupied {
    fn word(&self, arena: usize) -> &[AtomicU64; 2] {
        self.0.word(arena)
    }

    fn hints(&self, room: usize) -> [&[AtomicU64]; 2] {
        self.0.hints(room)
    }

    fn arenas_of_node(&self) -> usize {
        self.0.arenas_of_node()
    }

    fn near(&self, node: usize) -> impl Iterator<Item = usize> {
        core::iter::once(node)
    }

    fn has_memory(&self, _: usize, _: usize) -> bool {
        true
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn open_sparse(&self, arena: usize) -> Opened {
        if !self.0.open(arena, 1) {
            return Opened::Refused;
        }
        if arena == 1 {
            return Opened::Already;
        }
        Opened::Done
    }

    fn open(&self, first: usize, count: usize) -> bool {
        self.0.open(first, count)
    }

    fn populate(&self, _: usize, _: usize) -> Prepared {
        Prepared::Nothing
    }

    unsafe fn forget(&self, chunk: usize, count: usize) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.0.forget(chunk, count) }
    }

    unsafe fn forget_metadata(&self, chunk: usize, count: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.0.forget_metadata(chunk, count) }
    }
}

/// Whether or not a thread is opening arenas meanwhile; a fork may have left only its count.
#[test]
fn what_the_program_has_mapped_is_no_arena() {
    for others in [0, 1] {
        let space = Space::new();
        assert!(space.make_of(8, 1), "there are addresses");
        let (space, pools) = (Occupied(space), Pools::new());
        pools.nodes[0].opening.store(others, Ordering::Relaxed);
        for _ in 0..3 * 64 {
            let taken = pools.take(&space, 0, 1).expect("there are addresses");
            assert_ne!(taken.chunk >> CHUNKS_SHIFT, 1);
        }
    }
}
