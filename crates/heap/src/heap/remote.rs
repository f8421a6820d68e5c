//! Remote frees: marks for blocks of other heaps, and the queue of regions with marks.
//!
//! A thread that frees a block of another's heap sets its bit in the region's marks, with one
//! exchange; the thread that sets the first bit pushes the region into the owner's queue, with
//! another exchange and a store. Nothing is retried, so it takes the same few steps whatever others
//! do. When the owner needs memory, it pops one region and takes all its marks, up to 64 blocks,
//! with one exchange and some arithmetic: so no operation's time depends on the number of blocks
//! freed.
//!
//! A region with marks still contains the marked blocks; so it is neither released nor given to
//! another heap before the owner adopts its marks, and is in the queue at most once.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `marks` | any thread sets bits; the owner takes all | the same |
//! | `last` | threads that push, by exchange; the owner, when it empties the queue | the same |
//! | `first`, a region's `next` | the pusher of the next region; the owner | the owner |

use crate::ground::geometry::RegionId;
use hearth_atomics::{AtomicU32, AtomicU64, Ordering};

/// A queue of regions with marks: many push, the owner pops.
#[repr(C)]
pub(crate) struct Queue {
    /// The region pushed last; 0 if there is none.
    last: AtomicU32,
    /// The region to pop; 0 if there is none, or its pusher has not stored it yet.
    first: AtomicU32,
}

/// The storage of the links between regions.
pub(crate) trait Links {
    /// The region behind this one in the queue.
    fn next(&self, region: RegionId) -> &AtomicU32;
}

impl Queue {
    #[cfg(loom)]
    pub(crate) fn new() -> Queue {
        Queue {
            last: AtomicU32::new(0),
            first: AtomicU32::new(0),
        }
    }

    /// Pushes a region that is in no queue.
    pub(crate) fn push(&self, links: &impl Links, region: RegionId) {
        // Releases the marks and what was written to the blocks; acquires, so that the
        // predecessor's link is written after its owner cleared it.
        let before = RegionId(self.last.swap(region.0, Ordering::AcqRel));
        let link = if before.is_none() {
            &self.first
        } else {
            links.next(before)
        };
        link.store(region.0, Ordering::Release);
    }

    /// Whether there is a region to pop. For any thread; the answer may be stale.
    pub(crate) fn has_some(&self, links: &impl Links) -> bool {
        let region = RegionId(self.first.load(Ordering::Acquire));
        !region.is_none()
            && (links.next(region).load(Ordering::Acquire) != 0
                || self.last.load(Ordering::Acquire) == region.0)
    }

    /// Pops the first region; for the owner. None if there is none, or if its pusher or the next
    /// one's is in the middle of pushing.
    pub(crate) fn pop(&self, links: &impl Links) -> Option<RegionId> {
        let region = RegionId(self.first.load(Ordering::Acquire));
        if region.is_none() {
            return None;
        }
        let link = links.next(region);
        let mut next = link.load(Ordering::Acquire);
        if next == 0 {
            // It may be the only one. A thread that pushes after this exchange finds the queue
            // empty, and writes `first`.
            self.first.store(0, Ordering::Relaxed);
            let only = self
                .last
                .compare_exchange(region.0, 0, Ordering::AcqRel, Ordering::Acquire);
            if only.is_ok() {
                return Some(region);
            }
            // Another thread has pushed, and is about to write the link.
            next = link.load(Ordering::Acquire);
            if next == 0 {
                self.first.store(region.0, Ordering::Relaxed);
                return None;
            }
        }
        link.store(0, Ordering::Relaxed);
        self.first.store(next, Ordering::Relaxed);
        Some(region)
    }
}

/// The outcome of marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// Marked; the region is in the queue already.
    Queued,
    /// Marked; the caller must push the region.
    First,
    /// One of the blocks was marked before.
    Twice,
}

/// Marks blocks of another heap's region.
#[must_use = "the first one must push the region"]
pub(crate) fn mark(marks: &AtomicU64, blocks: u64) -> Marked {
    let is_lost = cfg!(feature = "canary-lost-mark") && blocks & 1 << 40 != 0;
    let blocks = if is_lost { blocks & !(1 << 40) } else { blocks };
    // Releases what was written to the blocks; acquires only the order of marks.
    let before = marks.fetch_or(blocks, Ordering::AcqRel);
    if before & blocks != 0 {
        Marked::Twice
    } else if before == 0 {
        Marked::First
    } else {
        Marked::Queued
    }
}

/// Takes all marks of a popped region. From here on other threads may push it again.
pub(crate) fn collect(marks: &AtomicU64) -> u64 {
    marks.swap(0, Ordering::AcqRel)
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Two threads mark blocks of two regions while the owner takes them back. Loom cannot see that
    //! a region with marks keeps its place, nor the arithmetic on marks.

    use std::vec::Vec;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Regions {
        queue: Queue,
        next: [AtomicU32; 2],
        marks: [AtomicU64; 2],
    }

    impl Links for Regions {
        fn next(&self, region: RegionId) -> &AtomicU32 {
            &self.next[region.0 as usize - 1]
        }
    }

    impl Regions {
        fn new() -> Regions {
            Regions {
                queue: Queue::new(),
                next: [AtomicU32::new(0), AtomicU32::new(0)],
                marks: [AtomicU64::new(0), AtomicU64::new(0)],
            }
        }

        fn free(&self, region: u32, block: u64) {
            match mark(&self.marks[region as usize - 1], block) {
                Marked::First => self.queue.push(self, RegionId(region)),
                Marked::Queued => {}
                Marked::Twice => panic!("each block is freed once"),
            }
        }

        /// Adds what one pop finds, by region.
        fn adopt(&self, found: &mut [u64; 2]) -> bool {
            let Some(region) = self.queue.pop(self) else {
                return false;
            };
            let at = region.0 as usize - 1;
            let marks = collect(&self.marks[at]);
            assert_ne!(marks, 0, "a region is in the queue for its marks");
            assert_eq!(found[at] & marks, 0, "no block comes back twice");
            found[at] |= marks;
            true
        }
    }

    fn model(frees: [&'static [(u32, u64)]; 2], expected: [u64; 2]) {
        loom::model(move || {
            let regions = Arc::new(Regions::new());
            let threads: Vec<_> = frees
                .iter()
                .map(|frees| {
                    let regions = regions.clone();
                    let frees = *frees;
                    thread::spawn(move || {
                        for (region, block) in frees {
                            regions.free(*region, *block);
                        }
                    })
                })
                .collect();
            let mut found = [0; 2];
            regions.adopt(&mut found);
            regions.adopt(&mut found);
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            while regions.adopt(&mut found) {}
            assert_eq!(found, expected, "nothing is lost");
        });
    }

    #[test]
    fn two_threads_and_one_region() {
        model([&[(1, 1), (1, 2)], &[(1, 4)]], [7, 0]);
    }

    #[test]
    fn two_threads_and_two_regions() {
        model([&[(1, 1), (2, 2)], &[(2, 4), (1, 8)]], [9, 6]);
    }
}
