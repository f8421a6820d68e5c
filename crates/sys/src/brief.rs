//! A lock for critical sections of some tens of instructions.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::spin::{Spin, wake_cost};

/// A mutual exclusion lock that one atomic operation takes and a plain store releases: half the
/// price of a mutex, which asks at each release whether anyone sleeps.
///
/// A waiter spins for as long as a wake-up costs, then sleeps that long between looks, so that a
/// holder of lower priority on the same core goes on. Hold it briefly.
#[derive(Debug, Default)]
pub struct Brief<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the holder, one at a time.
unsafe impl<T: Send> Sync for Brief<T> {}

impl<T> Brief<T> {
    /// A free lock around a value.
    pub const fn new(value: T) -> Brief<T> {
        Brief {
            is_held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock. A panic while it is held does not poison it.
    #[inline]
    pub fn lock(&self) -> BriefGuard<'_, T> {
        if self.is_held.swap(true, Ordering::Acquire) {
            self.wait();
        }
        BriefGuard {
            lock: self,
            _value: PhantomData,
        }
    }

    #[cold]
    fn wait(&self) {
        loop {
            let is_free = || !self.is_held.load(Ordering::Relaxed);
            if !Spin::before_sleep().until(is_free) {
                std::thread::sleep(wake_cost());
            }
            if !self.is_held.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

/// A taken [`Brief`] lock; released when dropped.
///
/// Threads share a guard only if they may share its value:
///
/// ```compile_fail,E0277
/// use hearth_sys::brief::Brief;
/// use std::cell::Cell;
///
/// let lock = Brief::new(Cell::new(1));
/// let guard = lock.lock();
/// std::thread::scope(|scope| {
///     scope.spawn(|| guard.set(2));
/// });
/// ```
#[derive(Debug)]
pub struct BriefGuard<'a, T> {
    lock: &'a Brief<T>,
    /// Threads may share or be given a guard as if it were the value's unique borrow.
    _value: PhantomData<&'a mut T>,
}

impl<T> Deref for BriefGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for BriefGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for BriefGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: the next holder sees this one's writes.
        self.lock.is_held.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let lock = Brief::new(0_u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let mut count = lock.lock();
                        let before = *count;
                        std::hint::black_box(&mut count);
                        *count = before + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 200_000);
    }

    #[test]
    fn a_waiter_outlasts_a_holder_that_sleeps() {
        let lock = Brief::new(false);
        std::thread::scope(|scope| {
            let mut held = lock.lock();
            let waiter = scope.spawn(|| *lock.lock());
            std::thread::sleep(std::time::Duration::from_millis(5));
            *held = true;
            drop(held);
            assert!(waiter.join().expect("the waiter got the lock"));
        });
    }
}
