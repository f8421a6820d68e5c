//! The bound of every operation, counted in turns of loops and looks at regions' words. It depends
//! neither on the number of blocks nor on the number of remote frees.
//!
//! Run by `./x test`; the feature `meter` makes the heap count.

#![allow(clippy::print_stdout, reason = "the figures are what one wants to see")]

use std::thread;

use hearth_heap::{self as heap, PrivateHeap};

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    /// Sizes of all levels, small ones more often.
    fn size(&mut self) -> usize {
        let bits = self.below(14);
        16 + self.below(16 << bits)
    }
}

/// The most steps and touches of one operation, so far.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    steps: u64,
    touches: u64,
}

impl Worst {
    fn of<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        heap::reading();
        let result = operation();
        let (steps, touches) = heap::reading();
        self.steps = self.steps.max(steps);
        self.touches = self.touches.max(touches);
        result
    }
}

/// The bounds that `docs/internals/heap.md` derives: for a block of up to 4 KiB, and for a larger
/// one, which does more about idle pages. They include upkeep, as there is no helper here.
const ALLOCATE: Worst = Worst {
    steps: 68,
    touches: 260,
};
const ALLOCATE_LARGE: Worst = Worst {
    steps: 230,
    touches: 1000,
};
const FREE: Worst = Worst {
    steps: 56,
    touches: 340,
};

fn check(what: &str, blocks: usize, worst: Worst, bound: Worst) {
    let told = format!("{what} with {blocks} blocks: {worst:?}");
    println!("{told}");
    assert!(worst.steps <= bound.steps, "{told}");
    assert!(worst.touches <= bound.touches, "{told}");
}

/// SAFETY of all frees here: each block is freed once.
fn free(block: usize) {
    // SAFETY: as above.
    unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
}

/// Fills a heap with `blocks` of sizes that `size` draws, exchanges them at random, frees them in
/// an order that leaves holes, and fills it again.
fn exercise(blocks: usize, bound: Worst, mut size: impl FnMut(&mut Random) -> usize) {
    let mut random = Random(blocks as u64 + 1);
    let (mut allocate, mut freed) = (Worst::default(), Worst::default());
    let mut live = Vec::with_capacity(blocks);
    for _ in 0..blocks {
        let size = size(&mut random);
        live.push(allocate.of(|| heap::allocate(size)).expose_provenance());
    }
    for _ in 0..blocks.min(200_000) {
        let at = random.below(live.len());
        freed.of(|| free(live[at]));
        let size = size(&mut random);
        live[at] = allocate.of(|| heap::allocate(size)).expose_provenance();
    }
    // Every second one, then the rest: each of these joins two holes.
    for half in 0..2 {
        for at in (half..live.len()).step_by(2) {
            freed.of(|| free(live[at]));
        }
    }
    check("allocate", blocks, allocate, bound);
    check("free", blocks, freed, FREE);
}

#[test]
fn operations_are_bounded() {
    for blocks in [100, 10_000, 1_000_000] {
        exercise(blocks, ALLOCATE, |random| 16 + random.below(1000));
        exercise(blocks, ALLOCATE, |_| 16);
        exercise(blocks, ALLOCATE, |_| 64);
    }
    for blocks in [100, 10_000] {
        exercise(blocks, ALLOCATE_LARGE, Random::size);
        exercise(blocks, ALLOCATE, |_| 1000);
        exercise(blocks, ALLOCATE_LARGE, |_| 5000);
    }
    remote_frees();
    for heaps in [10, 1000] {
        private_heaps(heaps);
    }
    for blocks in [0, 10, 1000, 100_000, 1_000_000] {
        destroyed_heaps(blocks, |_| 16);
        destroyed_heaps(blocks, |random| 16 + random.below(1000));
    }
    for blocks in [10, 1000, 10_000] {
        destroyed_heaps(blocks, Random::size);
        dropped_heaps(blocks, Random::size);
    }
    for blocks in [10, 1000, 100_000, 1_000_000] {
        dropped_heaps(blocks, |_| 16);
        dropped_heaps(blocks, |random| 16 + random.below(1000));
    }
}

/// The bound of destroying a heap, per chunk: as many steps as a chunk has places for regions,
/// twice, and one for each region's marks; and a constant for the pieces of nurseries, the heap
/// itself and the threads.
const DESTROY_CHUNK: Worst = Worst {
    steps: 2 * 90 + 85,
    touches: 5 * 90,
};
const DESTROY_REST: Worst = Worst {
    steps: 1200,
    touches: 2400,
};

/// Destroying a heap takes time for its chunks, however many blocks it has, and however many of
/// them others have freed.
fn destroyed_heaps(blocks: usize, mut size: impl FnMut(&mut Random) -> usize) {
    let mut random = Random(blocks as u64 + 3);
    for freed in [0, blocks / 2] {
        let heap = PrivateHeap::new().expect("there is memory");
        let mut live: Vec<usize> = (0..blocks)
            .map(|_| heap.allocate(size(&mut random)).expose_provenance())
            .collect();
        for nth in 0..freed {
            let other = nth + random.below(blocks - nth);
            live.swap(nth, other);
        }
        live.truncate(freed);
        thread::spawn(move || live.into_iter().for_each(free))
            .join()
            .expect("it does not panic");
        let chunks = heap.figures().owned as u64 >> 16;
        let mut worst = Worst::default();
        // SAFETY: no block is used any more.
        worst.of(|| unsafe { heap.destroy() });
        let bound = Worst {
            steps: DESTROY_REST.steps + chunks * DESTROY_CHUNK.steps,
            touches: DESTROY_REST.touches + chunks * DESTROY_CHUNK.touches,
        };
        check(
            &format!("destroy {chunks} chunks, others having freed {freed},"),
            blocks,
            worst,
            bound,
        );
    }
}

/// The bound of dropping a heap, per chunk: it takes remote frees back once per region, and
/// releases each region that is free then; and a constant for its cached blocks of all classes.
const DROP_CHUNK: Worst = Worst {
    steps: 3 * 85,
    touches: 8 * 85,
};
const DROP_REST: Worst = Worst {
    steps: 1200,
    touches: 8000,
};

/// Dropping a heap takes time for its chunks, however many blocks others have freed.
fn dropped_heaps(blocks: usize, mut size: impl FnMut(&mut Random) -> usize) {
    let mut random = Random(blocks as u64 + 5);
    let heap = PrivateHeap::new().expect("there is memory");
    let live: Vec<usize> = (0..blocks)
        .map(|_| heap.allocate(size(&mut random)).expose_provenance())
        .collect();
    thread::spawn(move || live.into_iter().for_each(free))
        .join()
        .expect("it does not panic");
    let chunks = heap.figures().owned as u64 >> 16;
    let mut worst = Worst::default();
    worst.of(|| drop(heap));
    let bound = Worst {
        steps: DROP_REST.steps + chunks * DROP_CHUNK.steps,
        touches: DROP_REST.touches + chunks * DROP_CHUNK.touches,
    };
    check(
        &format!("drop {chunks} chunks, others having freed all,"),
        blocks,
        worst,
        bound,
    );
}

/// A private heap's operation may include one of a nursery.
const ALLOCATE_PRIVATE: Worst = Worst {
    steps: 2 * ALLOCATE.steps,
    touches: 2 * ALLOCATE.touches,
};
const FREE_PRIVATE: Worst = Worst {
    steps: 2 * FREE.steps,
    touches: 2 * FREE.touches,
};
/// Making a heap takes a page; ending one without blocks gives back what caches and spares hold.
const MAKE: Worst = ALLOCATE;

/// Private heaps that come and go with a few blocks each, freed by any of them.
fn private_heaps(count: usize) {
    let mut random = Random(count as u64);
    let (mut made, mut allocated, mut freed) =
        (Worst::default(), Worst::default(), Worst::default());
    let mut heaps: Vec<PrivateHeap> = Vec::new();
    let mut live: Vec<usize> = Vec::new();
    for _ in 0..200_000 {
        let place = random.below(count);
        if place >= heaps.len() {
            heaps.push(made.of(|| PrivateHeap::new().expect("there is memory")));
            continue;
        }
        match random.below(100) {
            0 => drop(heaps.swap_remove(place)),
            1..50 if live.len() < 20 * count => {
                let bits = random.below(9);
                let size = 1 + random.below(16 << bits);
                live.push(
                    allocated
                        .of(|| heaps[place].allocate(size))
                        .expose_provenance(),
                );
            }
            _ if !live.is_empty() => {
                let block = live.swap_remove(random.below(live.len()));
                let block = std::ptr::with_exposed_provenance_mut(block);
                // SAFETY: each block is freed once.
                freed.of(|| unsafe { heaps[place].free(block) });
            }
            _ => {}
        }
    }
    check("make a private heap", count, made, MAKE);
    check(
        "allocate in a private heap",
        count,
        allocated,
        ALLOCATE_PRIVATE,
    );
    check("free in a private heap", count, freed, FREE_PRIVATE);
    live.into_iter().for_each(free);
}

/// The next operations cost no more, however many blocks others have freed.
fn remote_frees() {
    for blocks in [1000, 100_000, 1_000_000] {
        for size in [64, 600] {
            let live: Vec<usize> = (0..blocks)
                .map(|_| heap::allocate(size).expose_provenance())
                .collect();
            thread::spawn(move || live.into_iter().for_each(free))
                .join()
                .expect("it does not panic");
            let mut worst = Worst::default();
            let again: Vec<usize> = (0..blocks)
                .map(|_| worst.of(|| heap::allocate(size)).expose_provenance())
                .collect();
            check("allocate after remote frees", blocks, worst, ALLOCATE);
            again.into_iter().for_each(free);
        }
    }
}
