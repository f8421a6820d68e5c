//! MCS lock: a queue of places, each watched by its owner only (after Mellor-Crummey and Scott,
//! 1991).

use std::ptr;

use super::{Lock, LockPlace};
use crate::waiting::Wait;
use hearth_atomics::{AtomicPtr, Ordering, spin_loop};
use hearth_sys::futex::Word;
use hearth_sys::threading::yield_now;

pub(super) const WAITING: u32 = 0;
const ASLEEP: u32 = 1;
/// The owner of the place has the lock. A cohort has further words for that, all from here up.
pub(super) const GRANTED: u32 = 2;

/// First come, first served; a waiter touches only its own place, so a hand-over moves one line.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `tail` | threads that queue; the last holder, back to null | the same |
pub struct Mcs {
    tail: AtomicPtr<LockPlace>,
}

impl Mcs {
    /// A free lock.
    pub fn new() -> Mcs {
        Mcs {
            tail: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Queues. None if the queue was empty: the lock is the caller's. Otherwise the word of the
    /// grant.
    ///
    /// # Safety
    /// As for [`Lock::acquire`].
    #[inline]
    pub(super) unsafe fn enter(&self, place: &LockPlace, wait: Wait) -> Option<u32> {
        place.next.store(ptr::null_mut(), Ordering::Relaxed);
        place.state.store(WAITING, Ordering::Relaxed);
        // Release: the next thread finds the place as it was left just now. Acquire: this thread
        // finds the predecessor's place likewise, and what the last holder wrote, whose exchange
        // back to null is a Release.
        let before = self
            .tail
            .swap(ptr::from_ref(place).cast_mut(), Ordering::AcqRel);
        if before.is_null() {
            return None;
        }
        // SAFETY: the one before cannot leave until it has seen who comes next.
        unsafe {
            (*before)
                .next
                .store(ptr::from_ref(place).cast_mut(), Ordering::Release)
        };
        Some(await_grant(place, wait))
    }

    /// Takes the lock if no thread holds it.
    #[inline]
    pub(super) fn try_enter(&self, place: &LockPlace) -> bool {
        place.next.store(ptr::null_mut(), Ordering::Relaxed);
        // As in `enter`. Loading first leaves the line where it is.
        self.tail.load(Ordering::Relaxed).is_null()
            && self
                .tail
                .compare_exchange(
                    ptr::null_mut(),
                    ptr::from_ref(place).cast_mut(),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// The next in the queue, if there is one or is about to be. Otherwise the lock is free.
    ///
    /// # Safety
    /// As for [`Lock::release`].
    #[inline]
    pub(super) unsafe fn successor(&self, place: &LockPlace) -> Option<*mut LockPlace> {
        let mut next = place.next.load(Ordering::Acquire);
        if next.is_null() {
            if self.leave_empty(place) {
                return None;
            }
            // A thread has queued and is about to link itself: an instruction later, unless it lost
            // its core.
            let mut looks = 0u32;
            loop {
                next = place.next.load(Ordering::Acquire);
                if !next.is_null() {
                    break;
                }
                looks += 1;
                if looks.is_multiple_of(64) {
                    yield_now()
                } else {
                    spin_loop()
                }
            }
        }
        Some(next)
    }

    /// True if a thread has queued behind.
    #[inline]
    pub(super) fn has_successor(&self, place: &LockPlace) -> bool {
        !ptr::eq(self.tail.load(Ordering::Relaxed), place)
    }

    /// Empties the queue, if no thread came after `place`.
    #[inline]
    pub(super) fn leave_empty(&self, place: &LockPlace) -> bool {
        // Release: what was written under the lock is visible to the next that finds the queue
        // empty.
        self.tail
            .compare_exchange(
                ptr::from_ref(place).cast_mut(),
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

/// Waits at a place until it is granted, and returns the word of the grant.
fn await_grant(place: &LockPlace, wait: Wait) -> u32 {
    // Acquire, here and below, pairs with the Release in `grant`.
    if !wait.until(|| place.state.load(Ordering::Acquire) >= GRANTED)
        && place
            .state
            .compare_exchange(WAITING, ASLEEP, Ordering::Acquire, Ordering::Acquire)
            .is_ok()
    {
        while place.state.load(Ordering::Acquire) == ASLEEP {
            place.state.wait(ASLEEP);
        }
    }
    place.state.load(Ordering::Acquire)
}

/// Grants the lock to the waiter at a place.
///
/// # Safety
/// It waits there, and no other thread grants it the lock.
pub(super) unsafe fn grant(next: *mut LockPlace, word: u32) {
    // SAFETY: the place is there until it is granted, which is done here.
    let state = unsafe { &raw const (*next).state };
    // Release: what was written under the lock goes with it.
    // SAFETY: as above.
    if unsafe { (*state).swap(word, Ordering::Release) } == ASLEEP {
        // SAFETY: the place may be gone by now: only its address is used.
        unsafe { Word::wake_one(state) };
    }
}

impl Default for Mcs {
    fn default() -> Mcs {
        Mcs::new()
    }
}

// SAFETY: one place at a time is the first of the queue, or granted by the one before.
unsafe impl Lock for Mcs {
    #[inline]
    unsafe fn acquire(&self, place: &LockPlace, wait: Wait) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.enter(place, wait) }.is_some()
    }

    #[inline]
    unsafe fn try_acquire(&self, place: &LockPlace) -> bool {
        self.try_enter(place)
    }

    #[inline]
    unsafe fn release(&self, place: &LockPlace) {
        // SAFETY: as the caller promises; who comes next waits, and only the holder grants.
        unsafe {
            if let Some(next) = self.successor(place) {
                grant(next, GRANTED);
            }
        }
    }

    fn is_awaited(&self, place: &LockPlace) -> bool {
        self.has_successor(place)
    }

    fn is_held(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}
