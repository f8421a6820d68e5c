//! The state of giving back idle memory: by the helper, or by threads after their own slow steps;
//! by one at a time.
//!
//! ```text
//!            call                begin_upkeep
//!   NONE ───────────▶ WANTED ◀──────────────────▶ UPKEEP
//!    ▲ ▲               │         end_upkeep          │
//!    │ └───────────────┼─────────────────────────────┘
//!    │    begin_thread ▼
//!    │◀── gone ── ENDING ◀── end ── AWAKE ◀──────▶ ASLEEP
//! ```
//!
//! | change | by |
//! |---|---|
//! | `call` | any thread with work for it, perhaps in the middle of a heap's words |
//! | `begin_upkeep`, `end_upkeep` | a thread at the end of a slow step, while there is no helper |
//! | `begin_thread`, `refused` | the thread that starts the helper |
//! | `rest`, `rise`, `gone` | the helper |
//! | `end` | a thread that wants the helper gone, or the helper |

use hearth_atomics::{AtomicU32, Ordering};

const NONE: u32 = 0;
/// No helper, and work to do.
const WANTED: u32 = 1;
/// No helper, and a thread does some of the work.
const UPKEEP: u32 = 2;
const AWAKE: u32 = 3;
pub(crate) const ASLEEP: u32 = 4;
/// The helper finishes what it has begun.
pub(crate) const ENDING: u32 = 5;
/// Nobody gives anything back.
const NEVER: u32 = 6;

pub(crate) struct Stage(AtomicU32);

impl Stage {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Stage {
        Stage(AtomicU32::new(NONE))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Stage {
        Stage(AtomicU32::new(NONE))
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.change_any(&[(from, to)])
    }

    /// Makes the one change that fits the current state.
    fn change_any(&self, changes: &[(u32, u32)]) -> bool {
        let to = |now| changes.iter().find(|(from, _)| *from == now);
        // Acquires what was done in the previous state, and releases what this thread did.
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                to(now).map(|(_, to)| *to)
            })
            .is_ok()
    }

    /// Announces work. True if the caller must wake the helper.
    #[must_use]
    pub(crate) fn call(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            NONE => {
                self.change(NONE, WANTED);
                false
            }
            ASLEEP => self.change(ASLEEP, AWAKE),
            _ => false,
        }
    }

    /// Whether there is work for a thread without a helper.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WANTED
    }

    /// Claims the work. False if another thread has claimed it, or the helper has come.
    #[must_use]
    pub(crate) fn begin_upkeep(&self) -> bool {
        self.change(WANTED, UPKEEP)
    }

    /// Ends the work; `more` says that some is left.
    pub(crate) fn end_upkeep(&self, more: bool) {
        self.change(UPKEEP, if more { WANTED } else { NONE });
    }

    /// Claims the start of a helper. The caller must start it, or call [`Stage::refused`].
    #[must_use]
    pub(crate) fn begin_thread(&self) -> bool {
        self.change_any(&[(NONE, ASLEEP), (WANTED, AWAKE)])
    }

    /// Whether a thread does upkeep, so that a helper can be started soon.
    pub(crate) fn is_at_upkeep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UPKEEP
    }

    /// Records that the system refused the helper.
    pub(crate) fn refused(&self) {
        self.0.store(NONE, Ordering::Release);
    }

    /// Puts the helper to sleep, unless there was a call.
    pub(crate) fn rest(&self) {
        self.change(AWAKE, ASLEEP);
    }

    /// Wakes the helper, unless it is to end.
    pub(crate) fn rise(&self) {
        self.change(ASLEEP, AWAKE);
    }

    /// The value of the word while the helper is awake.
    #[cfg(not(loom))]
    pub(crate) fn awake(&self) -> u32 {
        AWAKE
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASLEEP
    }

    /// Asks the helper to end. False if there is none.
    pub(crate) fn end(&self) -> bool {
        self.change_any(&[(AWAKE, ENDING), (ASLEEP, ENDING), (ENDING, ENDING)])
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDING
    }

    /// Records that the helper has ended, as far as others are concerned.
    pub(crate) fn gone(&self) {
        self.change(ENDING, NONE);
    }

    /// Whether idle memory may be given back at all.
    pub(crate) fn is_allowed(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NEVER
    }

    /// Forbids giving back, for good.
    #[cfg(not(loom))]
    pub(crate) fn forbid(&self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }

    /// Resets the state in a child of a fork, which has neither a helper nor another thread.
    #[cfg(not(loom))]
    pub(crate) fn forked(&self) {
        if self.is_allowed() {
            self.0.store(NONE, Ordering::Relaxed);
        }
    }

    /// The word to wait on for a change.
    #[cfg(not(loom))]
    pub(crate) fn word(&self) -> *mut u32 {
        self.0.as_ptr()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! A thread does its own upkeep while a helper starts, works and ends: loom reports two that
    //! work at once. It cannot see the kernel wake a sleeping helper.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Shared {
        stage: Stage,
        work: UnsafeCell<u32>,
    }

    // SAFETY: the model checks this.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        fn work(&self) {
            // SAFETY: loom reports another thread at work.
            self.work.with_mut(|work| unsafe { *work += 1 });
        }

        fn keep_up(&self) {
            let _ = self.stage.call();
            if self.stage.is_wanted() && self.stage.begin_upkeep() {
                self.work();
                self.stage.end_upkeep(false);
            }
        }
    }

    #[test]
    fn loom_one_at_a_time_gives_back() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                stage: Stage::new(),
                work: UnsafeCell::new(0),
            });
            let other = {
                let shared = shared.clone();
                thread::spawn(move || (0..2).for_each(|_| shared.keep_up()))
            };
            if shared.stage.begin_thread() {
                shared.stage.rise();
                shared.work();
                shared.stage.rest();
                assert!(shared.stage.end());
                shared.stage.gone();
            }
            other.join().expect("it does not panic");
            shared.keep_up();
        });
    }
}
