//! Who gives idle memory back: the helper, or threads in their own slow steps; one at a time.
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
//! | `call` | any thread that has found something to do, and may be in the middle of a heap's words |
//! | `begin_upkeep`, `end_upkeep` | a thread at the end of a slow step, while there is no helper |
//! | `begin_thread`, `refused` | whoever starts the helper |
//! | `rest`, `rise`, `gone` | the helper |
//! | `end` | whoever wants it gone, or the helper |

use crate::ground::atomics::{AtomicU32, Ordering};

const NONE: u32 = 0;
/// There is no helper, and something to do.
const WANTED: u32 = 1;
/// There is no helper, and a thread does some of it.
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

    /// Makes that one of the changes which fits.
    fn change_any(&self, changes: &[(u32, u32)]) -> bool {
        let to = |now| changes.iter().find(|(from, _)| *from == now);
        // Acquires what was done in the stage before, and releases what this thread did.
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                to(now).map(|(_, to)| *to)
            })
            .is_ok()
    }

    /// There is something to do. True if the helper is to be woken, as it slept.
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

    /// Is there something for a thread to do itself?
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WANTED
    }

    /// Begins to do some of it. False if another thread has, or the helper came.
    #[must_use]
    pub(crate) fn begin_upkeep(&self) -> bool {
        self.change(WANTED, UPKEEP)
    }

    /// Ends that; `more` is to be done soon.
    pub(crate) fn end_upkeep(&self, more: bool) {
        self.change(UPKEEP, if more { WANTED } else { NONE });
    }

    /// A helper may be started: it belongs to the caller to do so, or to say that it was [`refused`](Stage::refused).
    #[must_use]
    pub(crate) fn begin_thread(&self) -> bool {
        self.change_any(&[(NONE, ASLEEP), (WANTED, AWAKE)])
    }

    /// Is a thread at it, so that a helper can be started as soon as that is done?
    pub(crate) fn is_at_upkeep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UPKEEP
    }

    /// The system has refused the helper.
    pub(crate) fn refused(&self) {
        self.0.store(NONE, Ordering::Release);
    }

    /// The helper goes to sleep, while nobody calls.
    pub(crate) fn rest(&self) {
        self.change(AWAKE, ASLEEP);
    }

    /// The helper is awake again, unless it is to end.
    pub(crate) fn rise(&self) {
        self.change(ASLEEP, AWAKE);
    }

    /// The word while the helper is awake.
    #[cfg(not(loom))]
    pub(crate) fn awake(&self) -> u32 {
        AWAKE
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASLEEP
    }

    /// The helper is to end. False if there is none.
    pub(crate) fn end(&self) -> bool {
        self.change_any(&[(AWAKE, ENDING), (ASLEEP, ENDING), (ENDING, ENDING)])
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ENDING
    }

    /// The helper has ended, as far as anybody else is concerned.
    pub(crate) fn gone(&self) {
        self.change(ENDING, NONE);
    }

    /// May idle memory be given back?
    pub(crate) fn is_allowed(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NEVER
    }

    /// It may not, ever.
    #[cfg(not(loom))]
    pub(crate) fn forbid(&self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }

    /// In a child of a fork there is neither a helper nor another thread.
    #[cfg(not(loom))]
    pub(crate) fn forked(&self) {
        if self.is_allowed() {
            self.0.store(NONE, Ordering::Relaxed);
        }
    }

    /// For who waits until it changes.
    #[cfg(not(loom))]
    pub(crate) fn word(&self) -> *mut u32 {
        self.0.as_ptr()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! A thread does its own upkeep while a helper is started, works and ends: whoever is at it is alone, which loom tells. What loom cannot see: that a sleeping helper is woken by the kernel.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Shared {
        stage: Stage,
        work: UnsafeCell<u32>,
    }

    // SAFETY: what the model is to show.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        fn work(&self) {
            // SAFETY: loom tells if somebody else is at it.
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
