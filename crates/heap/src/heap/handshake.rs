//! Whose turn it is with a heap of a thread: its owner's, who comes often, or that of the
//! [helper](crate::process::helper), which looks after heaps whose owners have been quiet.
//!
//! What the fast paths touch, the caches, is the owner's alone. The rest is touched by one of the two at a time.
//! The owner says that it begins with a store, and looks whether the helper is there; the helper says that it is
//! there, has all threads pass a barrier, and looks whether the owner has begun. So one of two that meet sees
//! the other, and the owner pays for no fence. Neither waits: the helper goes away, and the owner uses
//! another heap this once, as the handler of a signal does.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `owner` | the owner; odd while it is at it | the helper; handlers of signals |
//! | `visitor` | the helper | the owner |

use crate::ground::atomics::{AtomicU32, Ordering, Owned, owner_fence};

/// Zero at first: it is nobody's turn.
pub(crate) struct Handshake {
    owner: AtomicU32,
    visitor: AtomicU32,
}

impl Handshake {
    #[cfg(loom)]
    pub(crate) fn new() -> Handshake {
        Handshake {
            owner: AtomicU32::new(0),
            visitor: AtomicU32::new(0),
        }
    }

    /// The owner begins. False if it is in the middle of something already, which is what the handler of a
    /// signal finds, or if the helper is there.
    #[inline]
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        let times = self.owner.own();
        if times & 1 != 0 {
            return false;
        }
        self.owner.store(times.wrapping_add(1), Ordering::Relaxed);
        owner_fence();
        // Acquires what the helper has done.
        if self.visitor.load(Ordering::Acquire) != 0 {
            self.owner.store(times, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// The owner is done.
    #[inline]
    pub(crate) fn end(&self) {
        let times = self.owner.own();
        // Releases what the owner has done.
        self.owner.store(times.wrapping_add(1), Ordering::Release);
    }

    /// Is the owner in the middle of something? For the thread, which finds so in the handler of a signal.
    #[cfg(not(loom))]
    pub(crate) fn has_begun(&self) -> bool {
        self.times() & 1 != 0
    }

    /// The owner begins with what the helper never touches, so it may be there: only a handler of a signal, which
    /// might touch it too, finds that a turn has begun. False in the middle of one.
    #[cfg(not(loom))]
    pub(crate) fn hold(&self) -> bool {
        let times = self.times();
        if times & 1 != 0 {
            return false;
        }
        self.owner.store(times.wrapping_add(1), Ordering::Relaxed);
        owner_fence();
        true
    }

    /// What is another number after each turn of the owner's.
    pub(crate) fn times(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Something is done in the owner's place, unless it has had a turn since `times` was seen, or there is no
    /// `barrier`: it says whether all threads have passed one. Only one visitor at a time.
    pub(crate) fn visit<T>(
        &self,
        times: u32,
        barrier: impl FnOnce() -> bool,
        visit: impl FnOnce() -> T,
    ) -> Option<T> {
        self.visitor.store(1, Ordering::Relaxed);
        // Without one the owner may have begun, and its store be on its way yet.
        let is_passed = barrier();
        // Acquires what the owner has done.
        let is_quiet = is_passed && self.owner.load(Ordering::Acquire) == times && times & 1 == 0;
        let result = is_quiet.then(visit);
        self.visitor.store(0, Ordering::Release);
        result
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! The owner has turns while the helper visits: what both touch is touched by one at a time, which loom
    //! tells. Without the barrier, or the owner's fence, it is not.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::ground::atomics::fence;

    struct Shared {
        handshake: Handshake,
        words: UnsafeCell<u32>,
    }

    // SAFETY: what the model is to show.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    fn add(words: &UnsafeCell<u32>) {
        // SAFETY: loom tells if somebody else is at it.
        words.with_mut(|words| unsafe { *words += 1 });
    }

    #[test]
    fn loom_owner_and_visitor_are_never_at_it_at_once() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                handshake: Handshake::new(),
                words: UnsafeCell::new(0),
            });
            let owner = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let mut turns = 0;
                    for _ in 0..2 {
                        if shared.handshake.begin() {
                            add(&shared.words);
                            shared.handshake.end();
                            turns += 1;
                        }
                    }
                    turns
                })
            };
            let mut visits = 0;
            for _ in 0..2 {
                let times = shared.handshake.times();
                let visit = || add(&shared.words);
                let barrier = || {
                    fence(Ordering::SeqCst);
                    true
                };
                if shared.handshake.visit(times, barrier, visit).is_some() {
                    visits += 1;
                }
            }
            let turns = owner.join().expect("it does not panic");
            shared.words.with(|words| {
                // SAFETY: nobody else is left.
                assert_eq!(unsafe { *words }, turns + visits);
            });
        });
    }
}
