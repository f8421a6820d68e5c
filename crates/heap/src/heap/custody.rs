//! Custody of orphaned heaps: each thread that brings a block home holds it for a moment.
//!
//! The owner of a component's heap may leave while others still have blocks of it. Then the heap is
//! an *orphan*. A thread that pushes a region into its queue afterwards tends it: takes the queued
//! regions back, as the owner would have, and ends the heap when its last block is home. Nobody
//! waits: a thread that finds another at it leaves, and that one looks at the queue again when it
//! is done.
//!
//! Between its store and its look at the other's, each side has a fence; so one of two that meet
//! sees the other:
//!
//! | side | stores | then looks at |
//! |---|---|---|
//! | a freeing thread | the link of the queue | the state |
//! | the leaving owner, and a thread that has tended the heap | the state | the queue |

use hearth_atomics::{AtomicU32, Ordering, fence};

/// The state of custody. Zero, the initial state, is a thread's heap, which is never an orphan.
pub(crate) struct Custody(AtomicU32);

/// Belongs to a component.
const PRIVATE: u32 = 1;
/// Belongs to nobody.
const ORPHAN: u32 = 2;
/// Belongs to nobody, and a thread tends it.
const ATTENDED: u32 = 3;

/// Custody as an outside observer sees it.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Thread,
    Private,
    Orphan,
}

/// Decodes a word of custody.
#[cfg(not(loom))]
pub(crate) fn seen(custody: u32) -> Seen {
    match custody {
        PRIVATE => Seen::Private,
        ORPHAN | ATTENDED => Seen::Orphan,
        _ => Seen::Thread,
    }
}

/// The outcome of tending an orphan once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tended {
    /// Others still have blocks.
    Lives,
    /// The heap has ended, and its number may be in use again.
    Ended,
}

impl Custody {
    #[cfg(loom)]
    pub(crate) fn new() -> Custody {
        Custody(AtomicU32::new(0))
    }

    /// Sets the custody of a new heap.
    pub(crate) fn begin(&self, is_private: bool) {
        let state = if is_private { PRIVATE } else { 0 };
        self.0.store(state, Ordering::Release);
    }

    /// Makes the heap an orphan; for its leaving owner, while others have blocks. `look` tells
    /// whether the queue has regions; `tend` takes them, and ends the heap if that was all.
    pub(crate) fn leave(&self, look: impl Fn() -> bool, tend: impl FnMut() -> Tended) {
        // Releases what the owner did.
        self.0.store(ORPHAN, Ordering::Release);
        fence(Ordering::SeqCst);
        if look() {
            self.tend(look, tend);
        }
    }

    /// Tends the heap after a push, if it is an orphan that nobody tends.
    #[inline]
    pub(crate) fn pushed(&self, look: impl Fn() -> bool, tend: impl FnMut() -> Tended) {
        if self.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        fence(Ordering::SeqCst);
        if self.0.load(Ordering::Relaxed) == ORPHAN {
            self.tend(look, tend);
        }
    }

    #[cold]
    fn tend(&self, look: impl Fn() -> bool, mut tend: impl FnMut() -> Tended) {
        loop {
            let claimed =
                self.0
                    .compare_exchange(ORPHAN, ATTENDED, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() || tend() == Tended::Ended {
                return;
            }
            self.0.store(ORPHAN, Ordering::Release);
            fence(Ordering::SeqCst);
            if !look() {
                return;
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! The owner of a heap leaves while two threads bring its blocks home. However they meet, the
    //! heap ends once. Without any one of the three fences it does not.

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;
    use crate::ground::geometry::RegionId;
    use crate::heap::remote::{Links, Marked, Queue, collect, mark};
    use hearth_atomics::AtomicU64;

    /// A heap of two regions, reduced to what matters here.
    struct Heap {
        custody: Custody,
        queue: Queue,
        next: [AtomicU32; 2],
        marks: [AtomicU64; 2],
        /// Blocks not yet home. Only the holder of the heap changes this, so not by exchanges.
        away: AtomicUsize,
        ended: AtomicUsize,
    }

    impl Links for Heap {
        fn next(&self, region: RegionId) -> &AtomicU32 {
            &self.next[region.0 as usize - 1]
        }
    }

    impl Heap {
        fn new(away: usize) -> Heap {
            let custody = Custody::new();
            custody.begin(true);
            Heap {
                custody,
                queue: Queue::new(),
                next: [AtomicU32::new(0), AtomicU32::new(0)],
                marks: [AtomicU64::new(0), AtomicU64::new(0)],
                away: AtomicUsize::new(away),
                ended: AtomicUsize::new(0),
            }
        }

        fn take_back(&self) -> Tended {
            while let Some(region) = self.queue.pop(self) {
                let marks = collect(&self.marks[region.0 as usize - 1]);
                let away = self.away.load(Ordering::Relaxed);
                self.away
                    .store(away - marks.count_ones() as usize, Ordering::Relaxed);
            }
            if self.away.load(Ordering::Relaxed) > 0 {
                return Tended::Lives;
            }
            self.ended.fetch_add(1, Ordering::Relaxed);
            Tended::Ended
        }

        fn free(&self, region: u32, block: u64) {
            if mark(&self.marks[region as usize - 1], block) == Marked::First {
                self.queue.push(self, RegionId(region));
                self.custody
                    .pushed(|| self.queue.has_some(self), || self.take_back());
            }
        }

        fn leave(&self) {
            if self.take_back() == Tended::Lives {
                self.custody
                    .leave(|| self.queue.has_some(self), || self.take_back());
            }
        }
    }

    fn model(frees: [&'static [(u32, u64)]; 2]) {
        let away = frees.iter().map(|frees| frees.len()).sum();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let heap = Arc::new(Heap::new(away));
            let threads: std::vec::Vec<_> = frees
                .iter()
                .map(|frees| {
                    let heap = heap.clone();
                    let frees = *frees;
                    thread::spawn(move || {
                        for (region, block) in frees {
                            heap.free(*region, *block);
                        }
                    })
                })
                .collect();
            heap.leave();
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            assert_eq!(heap.ended.load(Ordering::Relaxed), 1, "it ends, once");
        });
    }

    #[test]
    fn the_last_block_ends_an_orphan() {
        model([&[(1, 1)], &[(2, 1)]]);
    }

    #[test]
    fn two_blocks_of_one_region_end_an_orphan() {
        model([&[(1, 1)], &[(1, 2)]]);
    }
}
