//! The runtime's part of a component: its offer, its stop request, its place with a carrier.
//!
//! | field | written by | read by | when |
//! |---|---|---|---|
//! | `state` | see `offer.rs` | all | any time |
//! | `stop` | stoppers, set once | the component, reopeners, holders | any time |
//! | `offer` | the component | the offer's claimer; the report | component: awake; others: claimed
//! or all asleep |
//! | the component's results | the offer's claimer | the component | Matched; Interrupted |
//! | `more` | the component; its carrier | the same; the holder of its worker's leave | awake, or
//! just blocked; a light select |
//! | `runs` | its worker's thread; the component, at placement; the thread that takes it along,
//! having won its offer | the same; the thread that detaches it, or plans | any time |
//! | `neighbours` | holders of the registry's lock | the same | |
//! | `refs` | holders of references | | any time |

use std::cell::Cell;
use std::ptr;

use super::exceptions::Detail;
use super::offer::OfferState;
use super::parker::Parker;
use super::serving::Serving;
use crate::abi::{Channel, Component, STOPPED, Site, Step, Type, Value};
use crate::ground::choices::Choices;
use crate::ground::exits::{self, REFERENCES_MAX};
use crate::ground::sync::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Lazily, Ordering, fence};

/// The values of a seat's `runs`: one of these, or 1 + the component's credit for long runs.
pub(crate) mod runs {
    /// It has not run yet, or its runs have not been measured.
    pub(crate) const UNKNOWN: u8 = 0;
    /// From this value on the component's place is decided, and it is not stolen.
    pub(crate) const FIXED: u8 = COMES;
    /// A server that migrates to its callers, not parked as far as other threads can see: see
    /// [`crate::exchange::carrier::come_to_caller`].
    pub(crate) const COMES: u8 = u8::MAX - 4;
    /// A parked server of that kind: the winner of its offer may take it along.
    pub(crate) const PARKED: u8 = u8::MAX - 3;
    /// It was placed by name.
    pub(crate) const NAMED: u8 = u8::MAX - 2;
    /// It was placed by a plan, which knows better, or migrated home because of its traffic: it is
    /// not stolen, but may be placed anew.
    pub(crate) const PLANNED: u8 = u8::MAX - 1;
    /// It was placed by a policy, or by a binding plan.
    pub(crate) const STAYS: u8 = u8::MAX;
}

/// Bits of a component's `attention`.
pub(crate) mod attention {
    pub(crate) const STOP_REQUESTED: u8 = 1;
    pub(crate) const PORT_REPLACED: u8 = 2;
    /// Set while a server migrates to its callers: keeps it off the paths on which it would wait
    /// lightly.
    pub(crate) const COMES_TO_CALLERS: u8 = 4;
}

/// The kind of a component's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Send,
    Receive,
    Acknowledge,
    Select,
    /// For something outside, by name: "input".
    Outside(&'static str),
}

/// A waiting component's offer. Its own while awake; the claimer's once claimed.
pub(crate) struct Offer {
    pub(crate) waiting: Waiting,
    /// Sends: the value, whether its reference goes with it, and its type.
    pub(crate) value: Value,
    pub(crate) moves: bool,
    pub(crate) payload: *const Type,
    pub(crate) site: *const Site,
    /// The half-channels it is registered at, or was: each counted while listed here.
    pub(crate) registered: Vec<Registration>,
    /// The number of the operation.
    pub(crate) round: u64,
    /// The component that holds it in an acknowledge, for the report.
    pub(crate) holder: u64,
}

impl Default for Offer {
    fn default() -> Offer {
        Offer {
            waiting: Waiting::Receive,
            value: Value::NOTHING,
            moves: false,
            payload: ptr::null(),
            site: ptr::null(),
            registered: Vec::new(),
            round: 0,
            holder: 0,
        }
    }
}

/// A half-channel at which a component waits.
pub(crate) struct Registration {
    pub(crate) channel: *const Channel,
    /// The arm's place in the source.
    pub(crate) site: *const Site,
    pub(crate) arm: u32,
}

/// The identity of a component: its kind, its number within the kind, its number over all.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// From 1, over all components in creation order.
    pub(crate) id: u64,
    /// From 1, over those of the same type.
    pub(crate) number: u32,
    pub(crate) service: bool,
}

/// The runtime's part of a component, which lies right before it in memory.
#[repr(C)]
pub struct Seat {
    pub(crate) state: OfferState,
    pub(crate) offer: Lazily<Offer>,
    pub(crate) more: Lazily<More>,
    /// The previous and next running component; the registry's.
    pub(crate) neighbours: [Cell<*const Seat>; 2],
    pub(crate) id: u64,
    number: u32,
    pub(crate) parker: Parker,
    refs: AtomicU32,
    /// Owners of the memory: the references together count one, and so does each port's
    /// half-channel.
    holders: AtomicU16,
    pub(crate) stop: AtomicBool,
    /// Its worker's estimate of how long it runs.
    pub(crate) runs: AtomicU8,
}

// With a header of 72 and half-channels of 48 bytes, a component with two takes 232 beyond its
// fields.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Seat>() == 64 && size_of::<Component>() == 72);
const _: () = assert!(size_of::<Seat>().is_multiple_of(align_of::<Component>()));

/// Fields that few components need.
#[derive(Default)]
pub(crate) struct More {
    pub(crate) choices: Choices,
    pub(crate) detail: Detail,
    /// The site of its latest exception.
    pub(crate) raised_at: Option<&'static Site>,
    /// The rest of a number of passes too large for its struct.
    pub(crate) passes_behind: u64,
    /// The half-channels at which a light select waits.
    pub(crate) arms: Vec<Registration>,
    /// 0, or 1 + the worker that gave the component away.
    pub(crate) origin: u16,
    /// For a server that migrates.
    pub(crate) serving: Serving,
}

// SAFETY: its pointers refer to literals and types, which are static, and to half-channels that it
// counts; sharing the pointers themselves is harmless.
unsafe impl Sync for Offer {}
// SAFETY: as above.
unsafe impl Send for Offer {}
// SAFETY: as for `Offer`.
unsafe impl Sync for More {}
// SAFETY: as above.
unsafe impl Send for More {}

// SAFETY: the table above says which thread may touch what; the pointers inside refer to things
// that outlive the seat or are counted by it.
unsafe impl Sync for Seat {}
// SAFETY: as above.
unsafe impl Send for Seat {}

impl Seat {
    /// A seat with one reference, the caller's.
    pub(crate) fn new(identity: Identity, choices: Choices, ports: u16) -> Seat {
        let more = Lazily::new();
        if choices.are_seeded() {
            // SAFETY: no other thread knows of it.
            unsafe { more.with_mut(|more: &mut More| more.choices = choices) };
        }
        Seat {
            state: OfferState::new(),
            offer: Lazily::new(),
            more,
            neighbours: [const { Cell::new(ptr::null()) }; 2],
            id: identity.id,
            number: identity.number,
            parker: Parker::new(),
            refs: AtomicU32::new(1),
            holders: AtomicU16::new(1 + ports),
            stop: AtomicBool::new(false),
            runs: AtomicU8::new(0),
        }
    }

    /// Its component.
    pub(crate) fn component(&self) -> *mut Component {
        // In the same block, whose address is exposed.
        ptr::with_exposed_provenance_mut(ptr::from_ref(self).addr() + size_of::<Seat>())
    }

    /// The name of its component.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            id: self.id,
            number: self.number,
            // SAFETY: the component is alive, and types are static.
            service: unsafe { (*(*self.component()).r#type).service },
        }
    }

    /// Adds a reference.
    pub(crate) fn retain(&self) {
        // Relaxed: the caller already holds one.
        if self.refs.fetch_add(1, Ordering::Relaxed) > REFERENCES_MAX {
            exits::too_many_references("a component");
        }
    }

    /// Adds a reference to the only one, which is the caller's.
    pub(crate) fn retain_alone(&self) {
        debug_assert_eq!(self.refs.load(Ordering::Relaxed), 1, "others have some");
        self.refs.store(2, Ordering::Relaxed);
    }

    /// Drops a reference. True when it was the last: the caller frees the component.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // Acquire: others' writes happen before the freeing. A single reference cannot be joined by
        // another.
        if self.refs.load(Ordering::Acquire) == 1 {
            return true;
        }
        // Release: this holder's writes happen before the freeing; Acquire by the fence below.
        if self.refs.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        fence(Ordering::Acquire);
        true
    }

    /// The number of references, asked by a holder of one. What holders did before they gave
    /// theirs back has happened.
    pub(crate) fn references(&self) -> u32 {
        self.refs.load(Ordering::Acquire)
    }

    /// Drops one owner of the memory; true if it was the last.
    #[must_use]
    pub(crate) fn let_go(&self) -> bool {
        // As in `release`.
        if self.holders.load(Ordering::Acquire) == 1 {
            return true;
        }
        if self.holders.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        fence(Ordering::Acquire);
        true
    }

    /// The index to start at among `count` partners: in turn, or as the seed says.
    ///
    /// # Safety
    /// The caller may touch the component.
    pub(crate) unsafe fn start(&self, next: usize, count: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            if self.more.is_made() {
                self.more.with_mut(|more| more.choices.start(next, count))
            } else {
                next
            }
        }
    }

    /// Whether its choices follow from a seed.
    ///
    /// # Safety
    /// The caller may touch the component.
    pub(crate) unsafe fn chooses_by_seed(&self) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.more.with(|more| more.choices.are_seeded()) }
    }

    /// Whether it is a server that migrates to its callers.
    pub(crate) fn comes_to_callers(&self) -> bool {
        // Acquire pairs with the Release of `migrating_servers::stay`: a thread that sees the end
        // of migrating sees the home, too.
        matches!(
            self.runs.load(Ordering::Acquire),
            runs::COMES | runs::PARKED
        )
    }

    /// Whether a stop has been requested.
    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: callers that need an order have passed a fence (see `OfferState::open`).
        self.stop.load(Ordering::Relaxed)
    }
}

/// The seat of the component that runs the calling code.
///
/// # Safety
/// `component` is alive, with a seat.
pub(crate) unsafe fn seat_of<'a>(component: *mut Component) -> &'a Seat {
    // SAFETY: the seat lies right before the component, and lives as long.
    unsafe { &*component.byte_sub(size_of::<Seat>()).cast::<Seat>() }
}

/// Raises a stop in the component that runs the calling code.
///
/// # Safety
/// `seat` is its own.
pub(crate) unsafe fn raise_stop(seat: &Seat) -> Step {
    // SAFETY: the component runs this very code.
    unsafe { (*seat.component()).raised = STOPPED };
    Step::Raised
}

/// The number of the next operation, for an offer about to be made.
///
/// # Safety
/// `seat` is that of the component that runs the calling code.
pub(crate) unsafe fn next_round(seat: &Seat) -> u64 {
    // SAFETY: the offer is its own while it is awake.
    unsafe {
        seat.offer.with_mut(|offer| {
            offer.round += 1;
            offer.round
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ground::exits::tests::assert_unfit;

    #[test]
    fn references_do_not_run_over() {
        let why = "hearth: a component cannot have more than 2147483647 references";
        assert_unfit(
            "seats::seat::tests::references_do_not_run_over",
            why,
            || {
                let identity = Identity {
                    id: 1,
                    number: 1,
                    service: false,
                };
                let seat = Seat::new(identity, Choices::default(), 0);
                seat.refs.store(REFERENCES_MAX, Ordering::Relaxed);
                seat.retain();
                seat.retain();
            },
        );
    }
}
