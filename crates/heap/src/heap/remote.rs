//! Blocks freed from elsewhere: marks, and the queue of regions that have some.
//!
//! Who frees a block of another's heap sets its bit in the marks of its region, with one exchange; and who
//! sets the first one puts the region into the owner's queue, with another exchange and a store.
//! Nothing is tried twice, so it takes the same few steps whatever others do. The owner takes one
//! region from the queue when it needs memory, and all of its marks, up to 64 blocks, with one exchange and
//! some arithmetic: so the number of blocks that were freed is in no operation's time.
//!
//! A region with marks still has the blocks that are marked; so it is neither released nor given
//! to another heap before its marks are adopted, and is in the queue at most once.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `marks` | everyone sets bits; the owner takes all | the same |
//! | `last` | everyone who pushes, by exchange; the owner, from the only region to none | the same |
//! | `first`, a region's `next` | who pushed what precedes; the owner | the owner |

use crate::ground::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::ground::geometry::RegionId;

/// Regions with marks, in turn. Many push, the owner pops.
#[repr(C)]
pub(crate) struct Queue {
    /// The region that was pushed last; 0 if there is none.
    last: AtomicU32,
    /// The one to be popped; 0 if there is none, or its pusher has not said yet.
    first: AtomicU32,
}

/// Where a region's link is.
pub(crate) trait Links {
    /// The region behind it in the queue.
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

    /// Puts a region in that is in no queue.
    pub(crate) fn push(&self, links: &impl Links, region: RegionId) {
        // Releases the marks and what was written to the blocks; and acquires, so that the link of the
        // one before is written after its owner cleared it.
        let before = RegionId(self.last.swap(region.0, Ordering::AcqRel));
        let link = if before.is_none() {
            &self.first
        } else {
            links.next(before)
        };
        link.store(region.0, Ordering::Release);
    }

    /// Is there a region that could be popped? Anyone may ask, and it may be late.
    pub(crate) fn has_some(&self, links: &impl Links) -> bool {
        let region = RegionId(self.first.load(Ordering::Acquire));
        !region.is_none()
            && (links.next(region).load(Ordering::Acquire) != 0
                || self.last.load(Ordering::Acquire) == region.0)
    }

    /// Takes the first region out. None if there is none, or if its pusher, or the one of the next, is
    /// in the middle of it. For the owner alone.
    pub(crate) fn pop(&self, links: &impl Links) -> Option<RegionId> {
        let region = RegionId(self.first.load(Ordering::Acquire));
        if region.is_none() {
            return None;
        }
        let link = links.next(region);
        let mut next = link.load(Ordering::Acquire);
        if next == 0 {
            // Perhaps it is the only one. Who pushes after that finds none, and writes `first`.
            self.first.store(0, Ordering::Relaxed);
            let only = self
                .last
                .compare_exchange(region.0, 0, Ordering::AcqRel, Ordering::Acquire);
            if only.is_ok() {
                return Some(region);
            }
            // Somebody has pushed another, and is about to write the link.
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

/// What came of marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// Done; the region is in the queue already.
    Queued,
    /// Done; the region must be pushed.
    First,
    /// One of the blocks was marked before.
    Twice,
}

/// Marks blocks of another's region.
#[must_use = "the first one must push the region"]
pub(crate) fn mark(marks: &AtomicU64, blocks: u64) -> Marked {
    let is_lost = cfg!(feature = "canary-lost-mark") && blocks & 1 << 40 != 0;
    let blocks = if is_lost { blocks & !(1 << 40) } else { blocks };
    // Releases what was written to the blocks; acquires nothing but the order of marks.
    let before = marks.fetch_or(blocks, Ordering::AcqRel);
    if before & blocks != 0 {
        Marked::Twice
    } else if before == 0 {
        Marked::First
    } else {
        Marked::Queued
    }
}

/// All marks of a region that was popped. From here on somebody else may push it again.
pub(crate) fn collect(marks: &AtomicU64) -> u64 {
    marks.swap(0, Ordering::AcqRel)
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Two threads mark blocks of two regions while the owner takes them back. What loom cannot see: that
    //! a region with marks keeps its place, and the arithmetic on marks.

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

        /// What one look finds, by region.
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
