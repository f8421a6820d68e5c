//! A word: free, held, or held while somebody sleeps.

use super::{Lock, Place};
#[cfg(not(loom))]
use crate::atomics::spin_loop;
use crate::atomics::{Ordering, Word};
use crate::waiting::Wait;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and whoever gives it up has to wake one: some thread sleeps, or is about to.
const AWAITED: u32 = 2;

/// Pauses between two looks at most: about as long as a line takes to move and come back.
const PAUSES_MAX: u32 = 64;

/// Who comes first has it; who waits spins, then sleeps until it is given up.
///
/// | field | who writes | who reads |
/// |---|---|---|
/// | `state` | FREE → HELD, AWAITED: who takes it. HELD → AWAITED: who waits. → FREE: the holder | all |
///
/// Whoever slept takes it as AWAITED, as others may sleep still; that costs a call for nothing after the last.
pub struct Mutex {
    state: Word,
}

impl Mutex {
    /// A lock that nobody holds.
    pub fn new() -> Mutex {
        Mutex {
            state: Word::new(FREE),
        }
    }

    #[cold]
    fn acquire_slow(&self, wait: Wait) {
        let mut pauses = 1;
        let came_free = wait.look(|| {
            // Looking less and less often leaves the line, and the lock, to one thread for several sections:
            // each of them costs less than moving the line would.
            #[cfg(not(loom))]
            for _ in 1..pauses {
                spin_loop();
            }
            pauses = (pauses * 2).min(PAUSES_MAX);
            // Reading first leaves the line with the holder until there is something to be had.
            self.state.load(Ordering::Relaxed) == FREE && self.take(HELD)
        });
        if came_free {
            return;
        }
        // Acquire pairs with the Release of the holder before.
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            self.state.wait(AWAITED);
        }
    }

    #[inline]
    fn take(&self, how: u32) -> bool {
        // Acquire: what the last holder wrote is seen; its partner is in `release`.
        self.state
            .compare_exchange(FREE, how, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex::new()
    }
}

// SAFETY: only one exchange takes the word away from FREE, and only the holder puts it back.
unsafe impl Lock for Mutex {
    #[inline]
    unsafe fn acquire(&self, _: &Place, wait: Wait) -> bool {
        let has_to_wait = !self.take(HELD);
        if has_to_wait {
            self.acquire_slow(wait);
        }
        has_to_wait
    }

    #[inline]
    unsafe fn try_acquire(&self, _: &Place) -> bool {
        self.take(HELD)
    }

    #[inline]
    unsafe fn release(&self, _: &Place) {
        // Release: with the lock goes what was written under it.
        if self.state.swap(FREE, Ordering::Release) == AWAITED {
            // SAFETY: a lock outlives the calls on it; in the kernel's case only the address is used.
            unsafe { Word::wake_one(&raw const self.state) };
        }
    }

    fn is_awaited(&self, _: &Place) -> bool {
        self.state.load(Ordering::Relaxed) == AWAITED
    }

    fn is_held(&self) -> bool {
        self.state.load(Ordering::Relaxed) != FREE
    }
}
