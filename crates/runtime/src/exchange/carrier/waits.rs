//! The beginning and end of waits: by a partner, by a stop, by an exception.

use super::{come_to_caller, wake};
use crate::abi::{Label, STOPPED, Step};
use crate::seats::exceptions::Detail;
use crate::seats::offer::Claim;
use crate::seats::seat::Seat;

/// Checks for a stop requested meanwhile, after a transition to a state that a stop may interrupt.
///
/// The seat may be gone afterwards, unless the caller is the component or keeps it otherwise.
pub(crate) fn heed_stop(seat: &Seat) {
    #[cfg(loom)]
    if crate::ground::planted_faults::faults::ignores_stop() {
        return;
    }
    if seat.is_stopping() {
        interrupt_if_waiting(seat);
    }
}

/// Interrupts the wait, if there is one.
pub(crate) fn interrupt_if_waiting(seat: &Seat) {
    if !seat.state.interrupt() {
        return;
    }
    // SAFETY: interrupted, so no other thread touches the parked component until it is woken.
    unsafe {
        (*seat.component()).raised = STOPPED;
        (*seat.component()).outcome = Step::Raised as u8;
        wake(seat);
    }
}

/// Completes a wait: the results are in place.
///
/// # Safety
/// `claim` is on `seat`'s offer. The seat may be gone afterwards.
pub(crate) unsafe fn complete(seat: *const Seat, claim: Claim) {
    // SAFETY: claimed, so the component is parked, and alive until it is woken.
    unsafe {
        (*(*seat).component()).outcome = Step::Done as u8;
        (*seat).state.complete(claim);
        wake(seat);
    }
}

/// Completes a wait for the running component, which has just met this one: a server that migrates
/// to its callers continues here.
///
/// # Safety
/// As for [`complete`].
pub(crate) unsafe fn complete_for_caller(seat: *const Seat, claim: Claim) {
    // SAFETY: claimed, so the component is parked, or about to be, and alive until it is woken.
    unsafe {
        come_to_caller(&*seat);
        complete(seat, claim);
    }
}

/// Ends a wait with an exception.
///
/// # Safety
/// `claim` is on `seat`'s offer. The seat may be gone afterwards.
pub(crate) unsafe fn complete_raising(seat: *const Seat, claim: Claim, label: Label) {
    // SAFETY: claimed, so the component is parked, and alive until it is woken.
    unsafe {
        let component = (*seat).component();
        (*component).raised = 1 + label as u32;
        // The site is left to `note_raised`: the carrier may still be reading `more` as it leaves
        // the component.
        (*component).outcome = Step::Raised as u8;
        (*seat).state.complete(claim);
        wake(seat);
    }
}

/// Records the site of the exception with which a completed wait may have ended.
///
/// # Safety
/// The component has been woken, and the caller carries it.
pub(crate) unsafe fn note_raised(seat: &Seat) {
    // SAFETY: as the caller promises; sites are static.
    unsafe {
        if (*seat.component()).outcome != Step::Raised as u8 {
            return;
        }
        let site = seat.offer.with(|offer| offer.site);
        seat.more.with_mut(|more| {
            more.detail = Detail::None;
            more.raised_at = site.as_ref();
        });
    }
}
