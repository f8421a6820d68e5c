//! Waits for the outside world, and the outside world's access to components.
//!
//! Two doors. [`wait`] blocks the component that runs a native and gives a [`Ticket`], which any
//! thread may complete later:
//!
//! ```text
//! #[unsafe(no_mangle)]
//! pub unsafe extern "C" fn hearth_get_string(this: *mut Component, site: *const Site) -> Step {
//!     let (step, ticket) = unsafe { external::wait(this, site, "input", true) };
//!     reader().ask(ticket); // a thread of the service's own
//!     step
//! }
//! // In that thread, when a line has come:
//! ticket.complete(|parked| parked.text(line));
//! ```
//!
//! [`push`] gives a value to an `in` half-channel: to the component that waits there, or, kept, to
//! the next one that receives.
//!
//! Rules:
//! - The native returns the step it got and touches the component no more: once the ticket is out,
//!   the wait may be complete before `wait`'s caller returns.
//! - Results are made inside `complete`'s closure, in the heap of the parked component. The closure
//!   does not run when the component was stopped meanwhile.
//! - A wait that nothing can end any more (input at its end) must say so, by
//!   [`Ticket::set_wakeable`] or by dropping the ticket: a program in which every component is
//!   blocked and no wait can be woken is reported as a deadlock and ends.

use std::ptr;

use super::carrier::runtime_of;
use crate::abi::{Component, HEADER_BYTES, Label, Object, Site, Step, Text, Value};
use crate::exchange::block;
use crate::exchange::carrier::Operation;
use crate::exchange::carrier::waits as ends;
use crate::exchange::channel::{self, Channel};
use crate::exchange::values::heap;
use crate::ground::runtime;
use crate::outside::idle::Visit;
use crate::recording;
use crate::seats::offer::Claim;
use crate::seats::seat::{Waiting, next_round, raise_stop, seat_of};
use crate::seats::waiting;
use crate::seats::waits;

/// The right to end one wait, once. Dropped unused, it leaves the wait to a stop.
#[must_use]
pub struct Ticket {
    /// Counted.
    component: *mut Component,
    round: u64,
}

// SAFETY: the component is counted atomically and touched only after its offer is won.
unsafe impl Send for Ticket {}
// SAFETY: a shared ticket can only change an entry under a lock.
unsafe impl Sync for Ticket {}

/// A component whose wait the holder has won: it is parked, and its heap may be used.
pub struct Parked {
    component: *mut Component,
}

impl Parked {
    /// The component, for functions that work in its heap.
    pub fn component(&self) -> *mut Component {
        self.component
    }

    /// Text in the component's heap, counted once.
    pub fn text(&self, bytes: &[u8]) -> Value {
        text_in(self.component, bytes)
    }
}

/// Text in the heap of a component that runs the calling code or is parked for it.
pub(crate) fn text_in(component: *mut Component, bytes: &[u8]) -> Value {
    let text = heap::alloc(component, HEADER_BYTES + bytes.len() + 1).cast::<Text>();
    // SAFETY: a fresh block of that size, aligned for any object.
    unsafe {
        text.write(Text {
            object: Object { refs: 1, spare: 0 },
            length: bytes.len(),
        });
        let place = text.cast::<u8>().add(HEADER_BYTES);
        ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        place.add(bytes.len()).write(0);
    }
    Value::of_pointer(text)
}

/// Blocks the component that runs the calling native until its ticket is completed or it is
/// stopped. `what` names the wait in a report: "input". `wakeable` says whether anything may still
/// complete the ticket.
///
/// The step is Blocked, or Raised if a stop is pending; then the ticket does nothing.
///
/// # Safety
/// `this` runs the calling code, which returns the step to its caller at once.
pub unsafe fn wait(
    this: *mut Component,
    site: *const Site,
    what: &'static str,
    wakeable: bool,
) -> (Step, Ticket) {
    // SAFETY: the offer is the component's own until it is opened.
    unsafe {
        let operation = Operation::begin(this);
        let seat = seat_of(this);
        seat.retain();
        let round = next_round(seat);
        let ticket = Ticket {
            component: this,
            round,
        };
        if seat.is_stopping() {
            return (operation.end(raise_stop(seat)), ticket);
        }
        seat.offer.with_mut(|offer| {
            offer.waiting = Waiting::Outside(what);
            offer.site = site;
        });
        recording::will_wait(seat, Waiting::Outside(what), || None);
        waits::open((seat.id, round), wakeable);
        waiting::offers(seat);
        seat.state.open_outside(round);
        ends::heed_stop(seat);
        (Step::Blocked, ticket)
    }
}

impl Ticket {
    /// Ends the wait: the closure makes the result, which the component finds in `received`.
    pub fn complete(self, result: impl FnOnce(&mut Parked) -> Value) {
        let _visit = Visit::begin_in(runtime_of(self.component));
        if let Some(claim) = self.win() {
            let mut parked = Parked {
                component: self.component,
            };
            // SAFETY: won, so the component is parked for us.
            unsafe {
                (*self.component).received = result(&mut parked);
                ends::complete(seat_of(self.component), claim);
            }
        }
    }

    /// Ends the wait with an exception.
    pub fn raise(self, label: Label) {
        let _visit = Visit::begin_in(runtime_of(self.component));
        if let Some(claim) = self.win() {
            // SAFETY: won.
            unsafe { ends::complete_raising(seat_of(self.component), claim, label) };
        }
    }

    /// Says whether anything may still complete this wait.
    pub fn set_wakeable(&self, wakeable: bool) {
        let _visit = Visit::begin_in(runtime_of(self.component));
        waits::set_wakeable(self.key(), wakeable);
    }

    /// Whether the component still waits. A stop may have ended the wait.
    pub fn is_open(&self) -> bool {
        let _inside = runtime::enter(runtime_of(self.component));
        waits::is_open(self.key())
            // SAFETY: counted.
            && unsafe { !seat_of(self.component).is_stopping() }
    }

    fn key(&self) -> waits::Key {
        // SAFETY: counted.
        (unsafe { seat_of(self.component) }.id, self.round)
    }

    fn win(&self) -> Option<Claim> {
        // SAFETY: counted.
        let claim = unsafe { seat_of(self.component).state.claim_outside(self.round) };
        if claim.is_some() {
            waits::close(self.key());
        }
        claim
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let _inside = runtime::enter(runtime_of(self.component));
        let forgotten = waits::close(self.key());
        if forgotten {
            // This may have been the last chance to wake it.
            drop(Visit::begin());
        }
        // SAFETY: counted.
        unsafe { block::release(self.component) };
    }
}

/// Gives a scalar to an `in` half-channel: to the component that waits there; without one and with
/// `keep`, to the next, replacing a value still kept there. True when a component got it.
///
/// # Safety
/// The caller has a counted reference to the channel, and `value` is of its payload type.
pub unsafe fn push(channel: *const Channel, value: Value, keep: bool) -> bool {
    let _visit = Visit::begin();
    // SAFETY: as the caller promises.
    unsafe { channel::push(&*channel, value, keep) }
}
