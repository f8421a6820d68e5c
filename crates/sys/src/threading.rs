//! Mutexes and yielding: the standard library's, or loom's under `--cfg loom`. With
//! [`Word`](crate::futex::Word) and [`membarrier`](crate::membarrier) the half of the façade
//! `hearth-atomics` that needs the standard library or the kernel.

#[cfg(loom)]
pub use loom::{
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
pub use std::{
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};

/// Locks a mutex, poisoned or not. For data that a panic leaves consistent.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex of the standard library likewise, in code that no model covers.
#[inline]
pub fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
