//! Mutex: a word that is free, held, or held while a thread sleeps.

use super::{Lock, LockPlace};
use crate::waiting::Wait;
use hearth_atomics::Ordering;
#[cfg(not(loom))]
use hearth_atomics::spin_loop;
use hearth_sys::futex::Word;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the holder must wake one thread that sleeps or is about to.
const AWAITED: u32 = 2;

/// Most pauses between two looks: about as long as a line takes to move and come back.
const PAUSES_MAX: u32 = 64;

/// First come, but a newcomer may overtake; a waiter spins, then sleeps until the lock is released.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `state` | FREE → HELD, AWAITED: taker. HELD → AWAITED: waiter. → FREE: holder | all |
///
/// A thread that slept takes it as AWAITED, as others may still sleep; that costs one wasted system
/// call after the last.
pub struct Mutex {
    state: Word,
}

impl Mutex {
    /// A free lock.
    pub fn new() -> Mutex {
        Mutex {
            state: Word::new(FREE),
        }
    }

    #[cold]
    fn acquire_slow(&self, wait: Wait) {
        let mut pauses = 1;
        let came_free = wait.until(|| {
            // Looking less and less often leaves the line, and the lock, to one thread for several
            // sections: each costs less than moving the line would.
            #[cfg(not(loom))]
            for _ in 1..pauses {
                spin_loop();
            }
            pauses = (pauses * 2).min(PAUSES_MAX);
            // Loading first leaves the line with the holder until the lock is free.
            self.state.load(Ordering::Relaxed) == FREE && self.take(HELD)
        });
        if came_free {
            return;
        }
        // Acquire pairs with the Release of the previous holder.
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            self.state.wait(AWAITED);
        }
    }

    #[inline]
    fn take(&self, how: u32) -> bool {
        // Acquire: what the last holder wrote is visible; its partner is in `release`.
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
    unsafe fn acquire(&self, _: &LockPlace, wait: Wait) -> bool {
        let has_to_wait = !self.take(HELD);
        if has_to_wait {
            self.acquire_slow(wait);
        }
        has_to_wait
    }

    #[inline]
    unsafe fn try_acquire(&self, _: &LockPlace) -> bool {
        self.take(HELD)
    }

    #[inline]
    unsafe fn release(&self, _: &LockPlace) {
        // Release: what was written under the lock goes with it.
        if self.state.swap(FREE, Ordering::Release) == AWAITED {
            // SAFETY: a lock outlives the calls on it; in the kernel's case only the address is
            // used.
            unsafe { Word::wake_one(&raw const self.state) };
        }
    }

    fn is_awaited(&self, _: &LockPlace) -> bool {
        self.state.load(Ordering::Relaxed) == AWAITED
    }

    fn is_held(&self) -> bool {
        self.state.load(Ordering::Relaxed) != FREE
    }
}
