//! The handshake between a heap's owner, which comes often, and the helper thread, which tends
//! heaps whose owners have been quiet.
//!
//! The caches, which the fast paths touch, belong to the owner alone. The rest is touched by one of
//! the two at a time. The owner announces a turn with a store and looks whether the helper is
//! there; the helper announces a visit, makes all threads pass a barrier, and looks whether the
//! owner has begun. So one of two that meet sees the other, and the owner pays for no fence.
//! Neither waits: the helper leaves, and the owner uses another heap this once, as a signal handler
//! does.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `owner` | the owner; odd during a turn | the helper; signal handlers |
//! | `visitor` | the helper | the owner |

use hearth_atomics::{AtomicU32, Ordering, SingleWriter, compiler_fence};

/// Zero at first: no turn, no visit.
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

    /// Begins a turn of the owner. False during a turn, as a signal handler finds, and during a
    /// visit.
    #[inline]
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        let times = self.owner.load_own();
        if times & 1 != 0 {
            return false;
        }
        self.owner.store(times.wrapping_add(1), Ordering::Relaxed);
        // Enough towards the helper, which makes all threads pass a barrier, and towards signal
        // handlers on this thread.
        compiler_fence(Ordering::SeqCst);
        // Acquires what the helper has done.
        if self.visitor.load(Ordering::Acquire) != 0 {
            self.owner.store(times, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Ends a turn of the owner.
    #[inline]
    pub(crate) fn end(&self) {
        let times = self.owner.load_own();
        // Releases what the owner has done.
        self.owner.store(times.wrapping_add(1), Ordering::Release);
    }

    /// Whether the owner is in a turn; for the owner's thread, in a signal handler.
    #[cfg(not(loom))]
    pub(crate) fn has_begun(&self) -> bool {
        self.times() & 1 != 0
    }

    /// Begins a turn for data that the helper never touches, so a visit does not matter: only
    /// signal handlers, which might touch it too, need to see the turn. False during a turn.
    #[cfg(not(loom))]
    pub(crate) fn hold(&self) -> bool {
        let times = self.times();
        if times & 1 != 0 {
            return false;
        }
        self.owner.store(times.wrapping_add(1), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// A count that changes with each turn of the owner.
    pub(crate) fn times(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Runs `visit` in the owner's place, unless the owner has had a turn since `times` was read,
    /// or `barrier` fails to make all threads pass one. Only one visitor at a time.
    pub(crate) fn visit<T>(
        &self,
        times: u32,
        barrier: impl FnOnce() -> bool,
        visit: impl FnOnce() -> T,
    ) -> Option<T> {
        self.visitor.store(1, Ordering::Relaxed);
        // Without the barrier the owner's store may still be on its way.
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
    //! The owner has turns while the helper visits: loom reports data that both touch at once.
    //! Without the barrier, or the owner's fence, it does.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use hearth_atomics::fence;

    struct Shared {
        handshake: Handshake,
        words: UnsafeCell<u32>,
    }

    // SAFETY: the model checks this.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    fn add(words: &UnsafeCell<u32>) {
        // SAFETY: loom reports another thread at work.
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
                // SAFETY: no other thread is left.
                assert_eq!(unsafe { *words }, turns + visits);
            });
        });
    }
}
