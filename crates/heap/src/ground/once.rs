//! One-time initialization that may fail, be interrupted by a signal, or be cut off by a fork.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::ground::os::{self, Patience};

/// The state of an initialization.
///
/// ```text
/// UNMADE ──▶ being made, by a thread ──▶ MADE
///    ▲                   │
///    └───────────────────┘ failed
/// ```
pub(crate) struct Once(AtomicU32);

const UNMADE: u32 = 0;
const MADE: u32 = 1;

/// While a thread initializes, its id stands above these bits.
const BEING_MADE: u32 = 2;
const BEING_MADE_BITS: u32 = 2;

/// The outcome of [`Once::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// The caller initializes, and must call [`Once::end`].
    Own,
    /// It is done already.
    Made,
    /// This thread is initializing: a signal handler has interrupted it.
    Refused,
}

impl Once {
    pub(crate) const fn new() -> Once {
        Once(AtomicU32::new(UNMADE))
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // Acquires the initialized state; partner of `end`.
        self.0.load(Ordering::Acquire) == MADE
    }

    /// Claims the initialization, or waits for the thread that has claimed it: a few system calls.
    /// In the child of a fork that thread may not exist; then the caller takes over.
    pub(crate) fn begin(&self) -> Begun {
        let own = (os::this_thread() as u32) << BEING_MADE_BITS | BEING_MADE;
        let (mut patience, mut from) = (Patience::new(), UNMADE);
        loop {
            let begun = self
                .0
                .compare_exchange(from, own, Ordering::Acquire, Ordering::Acquire);
            let state = match begun {
                Ok(_) => return Begun::Own,
                Err(MADE) => return Begun::Made,
                Err(state) => state,
            };
            // Miri's threads have no ids.
            if state == own && !cfg!(miri) {
                return Begun::Refused;
            }
            patience.wait();
            let is_cut_off = state != UNMADE
                && patience.is_over()
                && !os::has_thread((state >> BEING_MADE_BITS) as i32);
            from = if is_cut_off { state } else { UNMADE };
        }
    }

    pub(crate) fn end(&self, is_done: bool) {
        let state = if is_done { MADE } else { UNMADE };
        // Releases the initialized state; partner of `is_done` and `begin`.
        self.0.store(state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_makes_and_others_find_it_made() {
        let once = Once::new();
        assert_eq!(once.begin(), Begun::Own);
        once.end(false);
        assert!(!once.is_done());
        assert_eq!(once.begin(), Begun::Own);
        once.end(true);
        assert!(once.is_done());
        assert_eq!(once.begin(), Begun::Made);
    }

    /// The child of a fork finds this if another thread of the parent was initializing.
    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn what_a_thread_has_begun_that_is_gone_is_begun_anew() {
        let once = Once::new();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(once.begin(), Begun::Own));
        });
        assert_eq!(once.begin(), Begun::Own);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn the_handler_of_a_signal_does_not_wait_for_what_it_has_interrupted() {
        let once = Once::new();
        assert_eq!(once.begin(), Begun::Own);
        assert_eq!(once.begin(), Begun::Refused);
        once.end(true);
        assert_eq!(once.begin(), Begun::Made);
    }
}
