//! Servers that come to their callers.
//!
//! A server that comes is at home with the worker of whoever called it last: the party that
//! completes a rendezvous with it, while it is parked, takes it along, and it runs there next. Its
//! data follows through the caches. While it runs, others that call it wait in the channel, as they
//! always do: the channel is the lock.
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
//! compiled code still returns. So `PARKED` is said by that thread, last of all. Who wins the offer
//! before that posts the component to its worker, as with any other.
//!
//! The home changes without its former worker's leave. Whoever has that leave meanwhile, to make an
//! offer of a light wait, finds none: a component that comes never waits lightly, nor at a link,
//! since something asks for its attention all the time.

use super::{Worker, all, home_of, own_worker, set_home};
use crate::abi::Component;
use crate::exchange::component::COMES_TO_CALLERS;
use crate::ground::sync::Ordering;
use crate::seats::seat::{Seat, runs, seat_of};

/// Does it come to its callers?
pub(crate) fn comes(seat: &Seat) -> bool {
    // Acquire pairs with the Release of `stay`: whoever finds that it comes no more finds its home,
    // too.
    matches!(
        seat.runs.load(Ordering::Acquire),
        runs::COMES | runs::PARKED
    )
}

/// What a component's `destination` is to be, to go to a worker: 1 + its number.
pub(crate) fn destination_to(home: *const Worker) -> u16 {
    // SAFETY: workers live as long as their runtime.
    unsafe { home.as_ref() }.map_or(0, |home| 1 + home.shared.index as u16)
}

/// A component comes to its callers from now on. It runs the calling code.
pub(crate) fn come_from_now(seat: &Seat) {
    // SAFETY: it runs, so it is alive.
    let attention = unsafe { &(*seat.component()).attention };
    attention.fetch_or(COMES_TO_CALLERS, Ordering::Relaxed);
    seat.runs.store(runs::COMES, Ordering::Relaxed);
}

/// It does so no more, and is free to go where others want it. It runs the calling code, outside of
/// operations.
pub(crate) fn stay(seat: &Seat) {
    if !comes(seat) {
        return;
    }
    // Whoever has a former home's leave, and has seen there that it was its home, may still be
    // about to look at what it waits for: it waits lightly only once they are done.
    for worker in all() {
        drop(worker.hold());
    }
    // SAFETY: as above.
    let attention = unsafe { &(*seat.component()).attention };
    attention.fetch_and(!COMES_TO_CALLERS, Ordering::Relaxed);
    // Release pairs with the Acquire of `comes`.
    seat.runs.store(runs::PLANNED, Ordering::Release);
}

/// A component has met one that is parked: if that is a server that comes to its callers, it goes
/// on here.
///
/// The caller has won its offer, and completes it next.
#[inline]
pub(crate) fn come_to_caller(seat: &Seat) {
    // Acquire pairs with the Release in `let_come`: its last worker's thread has left it.
    if seat.runs.load(Ordering::Acquire) == runs::PARKED {
        take_along(seat);
    }
    #[cfg(loom)]
    if crate::ground::planted_faults::faults::comes_too_soon() && comes(seat) {
        take_along(seat);
    }
}

#[inline(never)]
fn take_along(seat: &Seat) {
    let component = seat.component();
    // None for threads that are no worker's, and for one that has lost its worker.
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
    /// The component has blocked, and this thread touches it no more: from here on it may be taken
    /// along.
    ///
    /// # Safety
    /// It was resumed by the calling thread, which has resumed none since.
    #[inline]
    pub(super) unsafe fn let_come(&self, component: *mut Component) {
        if self.mine.serves {
            // SAFETY: as the caller promises. Until it is parked only this worker resumes it, so it
            // is alive.
            let seat = unsafe { seat_of(component) };
            if seat.runs.load(Ordering::Relaxed) == runs::COMES {
                // Release: whoever takes it along sees what it did here.
                seat.runs.store(runs::PARKED, Ordering::Release);
            }
        }
    }
}

/// A component that is woken is parked no more. Its carrier calls, before it resumes it.
pub(crate) fn settle_coming(seat: &Seat) {
    if seat.runs.load(Ordering::Relaxed) == runs::PARKED {
        seat.runs.store(runs::COMES, Ordering::Relaxed);
    }
}
