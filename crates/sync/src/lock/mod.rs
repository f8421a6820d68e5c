//! Locks, all behind one trait.
//!
//! | kind | taken with | waiter | order |
//! |---|---|---|---|
//! | [`Mutex`] | an exchange | spins, then sleeps on the word | none: a newcomer may overtake |
//! | [`Ticket`] | an addition | spins by its distance, then sleeps | first come, first served |
//! | [`Mcs`] | an exchange | spins on its own word, then sleeps there | first come, first served |
//! | [`Cohort`] | two | as with MCS | its own node first, a limited number of times |
//!
//! None may be entered twice by one thread, and none is poisoned; `Owned` takes care of both.

mod cohort;
mod mcs;
mod mutex;
mod ticket;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;

pub use cohort::{Cohort, Groups};
pub use mcs::Mcs;
pub use mutex::Mutex;
pub use ticket::Ticket;

use std::fmt;
use std::str::FromStr;

use crate::waiting::Wait;
use hearth_atomics::{AtomicPtr, AtomicU32};
use hearth_sys::futex::Word;

/// A holder's or waiter's record of a lock, on its stack for as long as it holds or waits.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `next` | the successor, once | its owner, on hand-over |
/// | `state` | its owner, queueing and falling asleep; the predecessor, on hand-over, once | both |
/// | `group` | its owner, before it queues | its owner; in a cohort, on hand-over |
pub struct LockPlace {
    pub(crate) next: AtomicPtr<LockPlace>,
    pub(crate) state: Word,
    pub(crate) group: AtomicU32,
}

impl LockPlace {
    /// A place that no lock uses.
    pub fn new() -> LockPlace {
        LockPlace {
            next: AtomicPtr::new(std::ptr::null_mut()),
            state: Word::new(0),
            group: AtomicU32::new(0),
        }
    }
}

impl Default for LockPlace {
    fn default() -> LockPlace {
        LockPlace::new()
    }
}

/// The operations of a lock.
///
/// # Safety
/// Between a successful `acquire` or `try_acquire` and the following `release`, no other thread's
/// `acquire` returns and no `try_acquire` succeeds, and what was written before a `release` is
/// visible after the next `acquire`.
pub unsafe trait Lock: Send + Sync {
    /// Takes the lock, waiting if necessary. True if it had to wait.
    ///
    /// # Safety
    /// The place is used for nothing else, and neither moves nor goes away, until `release` with
    /// the same place has returned. The calling thread does not hold the lock.
    unsafe fn acquire(&self, place: &LockPlace, wait: Wait) -> bool;

    /// Takes the lock if it is free.
    ///
    /// # Safety
    /// As for `acquire`, if it succeeds.
    unsafe fn try_acquire(&self, place: &LockPlace) -> bool;

    /// Releases the lock, to a waiter if there is one.
    ///
    /// # Safety
    /// The calling thread took it with this place and has not released it since.
    unsafe fn release(&self, place: &LockPlace);

    /// True if a thread waits for it. For the holder; a hint, as a newcomer may not be visible yet,
    /// and spinning waiters may be unknown.
    fn is_awaited(&self, place: &LockPlace) -> bool;

    /// True if a thread holds it. A hint.
    fn is_held(&self) -> bool;
}

/// Kind of lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// [`Mutex`]: the best with more threads than cores.
    #[default]
    Mutex,
    /// [`Ticket`].
    Ticket,
    /// [`Mcs`].
    Mcs,
    /// [`Cohort`].
    Cohort,
}

impl LockKind {
    /// All of them.
    pub const ALL: [LockKind; 4] = [
        LockKind::Mutex,
        LockKind::Ticket,
        LockKind::Mcs,
        LockKind::Cohort,
    ];
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LockKind::Mutex => "mutex",
            LockKind::Ticket => "ticket",
            LockKind::Mcs => "mcs",
            LockKind::Cohort => "cohort",
        })
    }
}

impl FromStr for LockKind {
    type Err = crate::UnknownName;

    fn from_str(text: &str) -> Result<LockKind, crate::UnknownName> {
        crate::errors::by_name("lock", text, &LockKind::ALL)
    }
}

/// One of the locks, chosen when it is made: a branch that is always taken the same way.
pub(crate) enum AnyLock {
    Mutex(Mutex),
    Ticket(Ticket),
    Mcs(Mcs),
    Cohort(Box<Cohort>),
}

impl AnyLock {
    pub(crate) fn new(kind: LockKind) -> AnyLock {
        match kind {
            LockKind::Mutex => AnyLock::Mutex(Mutex::new()),
            LockKind::Ticket => AnyLock::Ticket(Ticket::new()),
            LockKind::Mcs => AnyLock::Mcs(Mcs::new()),
            LockKind::Cohort => AnyLock::Cohort(Box::default()),
        }
    }
}

// SAFETY: each of them keeps the promise.
unsafe impl Lock for AnyLock {
    #[inline]
    unsafe fn acquire(&self, place: &LockPlace, wait: Wait) -> bool {
        // SAFETY: as the caller promises, here and in the other arms.
        unsafe {
            match self {
                AnyLock::Mutex(lock) => lock.acquire(place, wait),
                AnyLock::Ticket(lock) => lock.acquire(place, wait),
                AnyLock::Mcs(lock) => lock.acquire(place, wait),
                AnyLock::Cohort(lock) => lock.acquire(place, wait),
            }
        }
    }

    #[inline]
    unsafe fn try_acquire(&self, place: &LockPlace) -> bool {
        // SAFETY: as the caller promises, here and in the other arms.
        unsafe {
            match self {
                AnyLock::Mutex(lock) => lock.try_acquire(place),
                AnyLock::Ticket(lock) => lock.try_acquire(place),
                AnyLock::Mcs(lock) => lock.try_acquire(place),
                AnyLock::Cohort(lock) => lock.try_acquire(place),
            }
        }
    }

    #[inline]
    unsafe fn release(&self, place: &LockPlace) {
        // SAFETY: as the caller promises, here and in the other arms.
        unsafe {
            match self {
                AnyLock::Mutex(lock) => lock.release(place),
                AnyLock::Ticket(lock) => lock.release(place),
                AnyLock::Mcs(lock) => lock.release(place),
                AnyLock::Cohort(lock) => lock.release(place),
            }
        }
    }

    fn is_awaited(&self, place: &LockPlace) -> bool {
        match self {
            AnyLock::Mutex(lock) => lock.is_awaited(place),
            AnyLock::Ticket(lock) => lock.is_awaited(place),
            AnyLock::Mcs(lock) => lock.is_awaited(place),
            AnyLock::Cohort(lock) => lock.is_awaited(place),
        }
    }

    fn is_held(&self) -> bool {
        match self {
            AnyLock::Mutex(lock) => lock.is_held(),
            AnyLock::Ticket(lock) => lock.is_held(),
            AnyLock::Mcs(lock) => lock.is_held(),
            AnyLock::Cohort(lock) => lock.is_held(),
        }
    }
}
