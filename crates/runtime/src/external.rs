//! How a component waits for the world outside, and how the world reaches components.
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
//! What to know:
//! - The native returns the step it got and touches the component no more: once the ticket is out,
//!   the wait may be complete before `wait`'s caller returns.
//! - Results are made inside `complete`'s closure, in the heap of the parked component. The closure
//!   does not run when the component was stopped meanwhile.
//! - A wait that nothing can end any more (input at its end) must say so, by
//!   [`Ticket::set_wakeable`] or by dropping the ticket: a program in which every component is
//!   blocked and no wait can be woken is reported as a deadlock and ends.

use std::collections::HashMap;
use std::ptr;
use std::sync::Mutex;

use crate::abi::{Component, HEADER, Label, Object, Site, Step, Text, Value};
use crate::carrier::Operation;
use crate::channel::{self, Channel};
use crate::idle::Visit;
use crate::offer::Claim;
use crate::seat::{self, Seat, Waiting, heed_stop, next_round, raise_stop, seat_of};
use crate::sync::lock_std as lock;
use crate::{component, heap, watching};

/// Component and operation.
type Key = (u64, u64);

/// The waits that are open, each with whether it can be woken.
static WAITS: Mutex<Option<HashMap<Key, bool>>> = Mutex::new(None);

fn with_waits<R>(action: impl FnOnce(&mut HashMap<Key, bool>) -> R) -> R {
    action(lock(&WAITS).get_or_insert_default())
}

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
    /// For functions that take the component in whose heap to work.
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
    let text = heap::alloc(component, HEADER + bytes.len() + 1).cast::<Text>();
    // SAFETY: a fresh block of that size, aligned for any object.
    unsafe {
        text.write(Text {
            object: Object { refs: 1, spare: 0 },
            length: bytes.len(),
        });
        let place = text.cast::<u8>().add(HEADER);
        ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        place.add(bytes.len()).write(0);
    }
    Value::of_pointer(text)
}

/// Blocks the component that runs the calling native until its ticket is completed or it is
/// stopped. `what` names what it waits for, in a report: "input". `wakeable` says whether anything
/// may still happen that completes the ticket.
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
        watching::will_wait(seat, Waiting::Outside(what), None);
        with_waits(|waits| waits.insert((seat.id, round), wakeable));
        seat::offers(seat);
        seat.state.open_outside(round);
        heed_stop(seat);
        (Step::Blocked, ticket)
    }
}

impl Ticket {
    /// Ends the wait: the closure makes the result, which the component finds in `received`.
    pub fn complete(self, result: impl FnOnce(&mut Parked) -> Value) {
        let _visit = Visit::begin();
        if let Some(claim) = self.win() {
            let mut parked = Parked {
                component: self.component,
            };
            // SAFETY: won, so the component is parked for us.
            unsafe {
                (*self.component).received = result(&mut parked);
                seat::complete(seat_of(self.component), claim);
            }
        }
    }

    /// Ends the wait with an exception.
    pub fn raise(self, label: Label) {
        let _visit = Visit::begin();
        if let Some(claim) = self.win() {
            // SAFETY: won.
            unsafe { seat::complete_raising(seat_of(self.component), claim, label) };
        }
    }

    /// Says whether anything may still complete this wait.
    pub fn set_wakeable(&self, wakeable: bool) {
        let _visit = Visit::begin();
        with_waits(|waits| {
            if let Some(entry) = waits.get_mut(&self.key()) {
                *entry = wakeable;
            }
        });
    }

    /// Is the component still waiting? A stop may have ended it.
    pub fn is_open(&self) -> bool {
        with_waits(|waits| waits.contains_key(&self.key()))
            // SAFETY: counted.
            && unsafe { !seat_of(self.component).is_stopping() }
    }

    fn key(&self) -> Key {
        // SAFETY: counted.
        (unsafe { seat_of(self.component) }.id, self.round)
    }

    fn win(&self) -> Option<Claim> {
        // SAFETY: counted.
        let claim = unsafe { seat_of(self.component).state.claim_outside(self.round) };
        if claim.is_some() {
            with_waits(|waits| waits.remove(&self.key()));
        }
        claim
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let forgotten = with_waits(|waits| waits.remove(&self.key()).is_some());
        if forgotten {
            // The last chance to wake it may have been this one.
            drop(Visit::begin());
        }
        // SAFETY: counted.
        unsafe { component::release(self.component) };
    }
}

/// Gives a scalar to an `in` half-channel: to the component that waits there; with nobody there and
/// `keep`, to the next one, replacing a value that still lies there. True when somebody got it.
///
/// # Safety
/// The caller has a counted reference to the channel, and `value` is of its payload type.
pub unsafe fn push(channel: *const Channel, value: Value, keep: bool) -> bool {
    let _visit = Visit::begin();
    // SAFETY: as the caller promises.
    unsafe { channel::push(&*channel, value, keep) }
}

/// A stop has ended a wait.
///
/// # Safety
/// `seat` was blocked in [`wait`] and woken; its carrier calls.
pub(crate) unsafe fn forget(seat: &Seat) {
    // SAFETY: woken, so the offer is the component's own.
    let round = unsafe { seat.offer.with(|offer| offer.round) };
    with_waits(|waits| waits.remove(&(seat.id, round)));
}

/// From now on anything may come from outside, whatever waits for it: a program that other nodes
/// can connect to is never deadlocked.
pub(crate) fn expect_visitors() {
    // No component and no round has this number.
    with_waits(|waits| waits.insert((0, 0), true));
}

/// How many waits are open.
pub(crate) fn open_waits() -> usize {
    with_waits(|waits| waits.len())
}

/// Can anything outside still wake a component?
pub(crate) fn can_wake_any() -> bool {
    with_waits(|waits| waits.values().any(|&wakeable| wakeable))
}
