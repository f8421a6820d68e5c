//! Hands a value over, outside every lock, by the thread that won both sides.

use super::Waiter;
use crate::abi::{Component, Held, Type, Value, held_of};
use crate::exchange::carrier::waits;
use crate::exchange::values::object;
use crate::ground::without::Mechanism;
use crate::hooks::simulation;
use crate::seats::offer::Claim;
use crate::seats::seat::Seat;
use crate::seats::waiting;

/// A sender and a receiver, both won.
#[must_use]
pub(crate) struct Match {
    pub(crate) sender: *const Seat,
    pub(crate) sender_claim: Claim,
    pub(crate) receiver: Waiter,
    pub(crate) receiver_claim: Claim,
}

/// Whether the party whose code runs here continues or stays blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    GoesOn,
    /// It is held by an acknowledge.
    Held,
}

/// Completes a match between two parked components.
///
/// # Safety
/// No lock is held.
pub(crate) unsafe fn complete_both(found: Match) {
    // SAFETY: both are won.
    unsafe {
        let to = (*found.receiver.seat).component();
        (*to).received = take_value(found.sender, to);
        (*to).arm = found.receiver.arm;
        if found.receiver.acknowledge {
            hold(found.sender, found.sender_claim, found.receiver.seat);
        } else {
            waits::complete(found.sender, found.sender_claim);
        }
        waits::complete(found.receiver.seat, found.receiver_claim);
    }
}

/// Takes the value of a waiting sender that a running receiver has won. The results are in place
/// afterwards.
///
/// # Safety
/// `sender` is won; `receiver` runs the calling code; no lock is held.
pub(crate) unsafe fn take(
    receiver: &Seat,
    sender: *const Seat,
    claim: Claim,
    arm: u32,
    acknowledge: bool,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let to = receiver.component();
        (*to).received = take_value(sender, to);
        (*to).arm = arm;
        if acknowledge {
            hold(sender, claim, receiver);
        } else {
            waits::complete_for_caller(sender, claim);
        }
    }
}

/// Hands a running sender's value to a waiting receiver that it has won.
///
/// # Safety
/// `receiver` is won; `sender` runs the calling code and has its offer filled in, with number
/// `round`; no lock is held.
pub(crate) unsafe fn hand_over(
    sender: &Seat,
    round: u64,
    receiver: Waiter,
    claim: Claim,
) -> Onward {
    // SAFETY: as the caller promises.
    unsafe {
        let to = (*receiver.seat).component();
        (*to).received = take_value(sender, to);
        (*to).arm = receiver.arm;
        let onward = if receiver.acknowledge {
            waiting::offers(sender);
            hold(sender, sender.state.claim_unopened(round), receiver.seat);
            Onward::Held
        } else {
            Onward::GoesOn
        };
        waits::complete_for_caller(receiver.seat, claim);
        onward
    }
}

/// Gives a parked receiver a value that no component sent.
///
/// # Safety
/// `receiver` is won; no lock is held; the value belongs to the receiver already.
pub(crate) unsafe fn give(receiver: Waiter, claim: Claim, value: Value) {
    // SAFETY: as the caller promises.
    unsafe {
        let to = (*receiver.seat).component();
        simulation::ticked(to);
        (*to).received = value;
        (*to).arm = receiver.arm;
        *held_of(to) = Held::NOBODY;
        waits::complete(receiver.seat, claim);
    }
}

/// Passes the sender's value into the receiver's heap.
///
/// # Safety
/// Both parties are won or the caller.
unsafe fn take_value(sender: *const Seat, to: *mut Component) -> Value {
    // SAFETY: the offer was filled in before the sender could be won, and types are static.
    unsafe {
        let (value, moves, payload) = (*sender)
            .offer
            .with(|offer| (offer.value, offer.moves, offer.payload));
        pass((*sender).component(), to, &*payload, value, moves)
    }
}

/// Passes a value of one component into the heap of another.
///
/// # Safety
/// The caller may touch both components; with `moves`, the sender's reference goes with the value.
pub(super) unsafe fn pass(
    from: *mut Component,
    to: *mut Component,
    payload: &Type,
    value: Value,
    moves: bool,
) -> Value {
    simulation::passed(from, to);
    // SAFETY: as the caller promises.
    unsafe {
        if !object::is_reference(payload) {
            return value;
        }
        if !moves {
            return object::copy(to, payload, value);
        }
        if object::is_unique(payload, value) && !Mechanism::Move.is_off() {
            return value;
        }
        let copy = object::copy(to, payload, value);
        object::release_value(from, payload, value);
        copy
    }
}

/// Leaves the sender blocked, with its ticket in the receiver's `held`.
///
/// # Safety
/// Both parties are won or the caller.
unsafe fn hold(sender: *const Seat, claim: Claim, receiver: *const Seat) {
    // SAFETY: as the caller promises. The reference in `held` keeps the sender alive until
    // `heed_stop` looks.
    unsafe {
        (*sender).retain();
        *held_of((*receiver).component()) = Held {
            sender: (*sender).component(),
            ticket: claim.round(),
        };
        (*sender)
            .offer
            .with_mut(|offer| offer.holder = (*receiver).id);
        (*sender).state.hold(claim);
        waits::heed_stop(&*sender);
    }
}

/// Takes a tick for an acknowledge, which then holds nobody.
///
/// # Safety
/// The receiver runs the calling code.
pub(crate) unsafe fn take_tick(receiver: &Seat, value: Value, arm: u32) {
    // SAFETY: as the caller promises.
    unsafe {
        let to = receiver.component();
        simulation::ticked(to);
        (*to).received = value;
        (*to).arm = arm;
        *held_of(to) = Held::NOBODY;
    }
}
