//! Servers that migrate to their callers.
//!
//! The home of such a server is the worker of its latest caller: the party that completes a
//! rendezvous with it while it is parked takes it along, and it runs there next. Its data follows
//! through the caches. While it runs, further callers wait in the channel as usual: the channel is
//! the lock.
//!
//! ```text
//!            its worker's thread, after        a caller, which has won its offer
//!            the component has blocked         home := the caller's worker
//!   COMES ──────────────────────────▶ PARKED ─────────────────────────────────▶ COMES
//!     ▲                                 │  as it settles
//!     └─────────────────────────────────┘
//! ```
//!
//! An offer is open, and may be won, before the thread that ran the component has left it: the
//! compiled code is still returning. So that thread sets `PARKED` last of all. A thread that wins
//! the offer earlier posts the component to its worker, as any other.
//!
//! The home changes without leave of the former worker. A holder of that leave, looking for light
//! waits to inflate, finds none: a server that migrates never waits lightly, nor at a link, since
//! it always has an attention bit set.

use super::{Worker, all, home_of, own_worker, set_home};
use crate::abi::Component;
use crate::ground::sync::Ordering;
use crate::seats::seat::attention::COMES_TO_CALLERS;
use crate::seats::seat::{Seat, runs, seat_of};

/// The value of a component's `destination` for a worker: 1 + its number.
pub(crate) fn destination_to(home: *const Worker) -> u16 {
    // SAFETY: workers live as long as their runtime.
    unsafe { home.as_ref() }.map_or(0, |home| 1 + home.shared.index as u16)
}

/// Makes the component that runs the calling code migrate to its callers from now on.
pub(crate) fn come_from_now(seat: &Seat) {
    // SAFETY: it runs, so it is alive.
    let attention = unsafe { &(*seat.component()).attention };
    attention.fetch_or(COMES_TO_CALLERS, Ordering::Relaxed);
    seat.runs.store(runs::COMES, Ordering::Relaxed);
}

/// Ends the migrating and lets others move the component. It runs the calling code, outside of
/// operations.
pub(crate) fn stay(seat: &Seat) {
    if !seat.comes_to_callers() {
        return;
    }
    // A holder of a former home's leave that saw the component at home there may still be about to
    // read its wait: it may wait lightly only once those holders are done.
    for worker in all() {
        drop(worker.hold());
    }
    // SAFETY: as above.
    let attention = unsafe { &(*seat.component()).attention };
    attention.fetch_and(!COMES_TO_CALLERS, Ordering::Relaxed);
    // Release pairs with the Acquire of `Seat::comes_to_callers`.
    seat.runs.store(runs::PLANNED, Ordering::Release);
}

/// Called when the running component has met a parked one: a server that migrates to its callers
/// continues here.
///
/// The caller has won its offer, and completes it next.
#[inline]
pub(crate) fn come_to_caller(seat: &Seat) {
    // Acquire pairs with the Release in `let_come`: its last worker's thread has left it.
    if seat.runs.load(Ordering::Acquire) == runs::PARKED {
        take_along(seat);
    }
    #[cfg(loom)]
    if crate::ground::planted_faults::faults::comes_too_soon() && seat.comes_to_callers() {
        take_along(seat);
    }
}

#[inline(never)]
fn take_along(seat: &Seat) {
    let component = seat.component();
    // None for threads outside the workers, and for a thread that has lost its worker.
    let Some(own) = own_worker() else {
        return;
    };
    let from = home_of(component);
    if std::ptr::eq(from, own) {
        return;
    }
    seat.runs.store(runs::COMES, Ordering::Relaxed);
    set_home(component, own);
    super::note_coming(seat, from, own);
}

impl Worker {
    /// Parks a blocked component, which this thread touches no more: from here on it may be taken
    /// along.
    ///
    /// # Safety
    /// It was resumed by the calling thread, which has resumed none since.
    #[inline]
    pub(super) unsafe fn let_come(&self, component: *mut Component) {
        if self.mine.serves {
            // SAFETY: as the caller promises. Until parked, only this worker resumes it, so it is
            // alive.
            let seat = unsafe { seat_of(component) };
            if seat.runs.load(Ordering::Relaxed) == runs::COMES {
                // Release: the thread that takes it along sees its writes here.
                seat.runs.store(runs::PARKED, Ordering::Release);
            }
        }
    }
}

/// Unparks a woken component. Its carrier calls this before it resumes the component.
pub(crate) fn settle_coming(seat: &Seat) {
    if seat.runs.load(Ordering::Relaxed) == runs::PARKED {
        seat.runs.store(runs::COMES, Ordering::Relaxed);
    }
}
