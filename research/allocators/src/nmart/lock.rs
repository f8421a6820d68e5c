//! A lock that is held for a few instructions. All zero bytes are an open one.
//!
//! The source says that there are locks, but not of which kind.

use std::sync::atomic::{AtomicBool, Ordering};

/// Number of looks before the processor is given away: a few hundred cycles, as long as it takes
/// to push a block from another core.
const LOOKS: u32 = 64;

/// The lock.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Lock(AtomicBool);

impl Lock {
    /// An open lock.
    #[must_use]
    pub const fn new() -> Lock {
        Lock(AtomicBool::new(false))
    }

    /// Takes it.
    #[inline]
    pub fn lock(&self) {
        let mut looks = 0;
        // Acquire: pairs with the release in `unlock`.
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                looks += 1;
                if looks % LOOKS == 0 {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Gives it back. Only the holder may.
    #[inline]
    pub fn unlock(&self) {
        // Release: pairs with the acquire in `lock`.
        self.0.store(false, Ordering::Release);
    }

    /// Calls a closure with the lock held.
    #[inline]
    pub fn with<T>(&self, what: impl FnOnce() -> T) -> T {
        self.lock();
        let done = what();
        self.unlock();
        done
    }
}
