//! Send, receive and acknowledge, and waking up from them.

use std::ptr;

use super::claim::{self, Claimant, Found};
use super::queue::register;
use super::transfer::{self, Onward};
use super::{Channel, Waiter, hub, light, link, release, select};
use crate::abi::{Component, Held, Label, Site, Step, Value};
use crate::exchange::block;
use crate::exchange::carrier::{self, Operation, waits};
use crate::exchange::channel::servers;
use crate::exchange::values::object;
use crate::hooks::simulation::{self, At};
use crate::recording;
use crate::seats::offer::Stage;
use crate::seats::seat::{Registration, Seat, Waiting, next_round, raise_stop, seat_of};
use crate::seats::waiting;

/// Sends.
///
/// # Safety
/// `seat` is that of the component that runs the calling code; with `moves`, the caller's reference
/// goes with the value.
pub(crate) unsafe fn send(
    seat: &Seat,
    channel: &Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Step {
    // SAFETY: the offer is the component's own until it is opened.
    unsafe {
        if seat.is_stopping() {
            drop_value(seat, channel, value, moves);
            return raise_stop(seat);
        }
        let round = next_round(seat);
        seat.offer.with_mut(|offer| {
            offer.waiting = Waiting::Send;
            offer.value = value;
            offer.moves = moves;
            offer.payload = channel.payload();
            offer.site = site;
        });
        recording::will_wait(seat, Waiting::Send, || channel.port());
        let Some(guard) = hub::lock_unless_linked_now(channel) else {
            return send_now(seat.component(), channel, value, moves, site);
        };
        let found = claim::find(channel, Claimant::Unopened, seat);
        match found {
            Found::Partner { waiter, claim } => {
                drop(guard);
                match transfer::hand_over(seat, round, waiter, claim) {
                    Onward::GoesOn => Step::Done,
                    Onward::Held => Step::Blocked,
                }
            }
            Found::Nobody => {
                let guard = match guard {
                    hub::Guard::Hub(_)
                        if channel.is_at_home_with(seat.component())
                            && channel.is_reconsidered() =>
                    {
                        match hub::settle_grade(channel, guard) {
                            Ok(()) => {
                                return send_now(seat.component(), channel, value, moves, site);
                            }
                            Err(guard) => guard,
                        }
                    }
                    guard => guard,
                };
                register(
                    seat,
                    channel,
                    site,
                    Waiter {
                        seat,
                        arm: 0,
                        acknowledge: false,
                    },
                );
                waiting::offers(seat);
                seat.state.open(round);
                drop(guard);
                waits::heed_stop(seat);
                Step::Blocked
            }
            Found::Tick { .. } | Found::Taken => unreachable!("an out half-channel has no ticks"),
        }
    }
}

/// Receives.
///
/// # Safety
/// `seat` is that of the component that runs the calling code.
pub(crate) unsafe fn receive(seat: &Seat, channel: &Channel, site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe { take_one(seat, channel, site, false) }
}

/// Receives and holds the sender.
///
/// # Safety
/// As for `receive`.
pub(crate) unsafe fn acknowledge(seat: &Seat, channel: &Channel, site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe { take_one(seat, channel, site, true) }
}

unsafe fn take_one(seat: &Seat, channel: &Channel, site: *const Site, acknowledge: bool) -> Step {
    // SAFETY: the offer is the component's own until it is opened.
    unsafe {
        if seat.is_stopping() {
            return raise_stop(seat);
        }
        servers::begin(seat, std::iter::once(channel));
        let guard = if acknowledge {
            hub::lock_of(channel)
        } else {
            match hub::lock_unless_linked_now(channel) {
                Some(guard) => guard,
                None => return receive_now(seat.component(), channel, site),
            }
        };
        servers::notice(seat, channel, &guard);
        match claim::find(channel, Claimant::Unopened, seat) {
            Found::Partner { waiter, claim } => {
                drop(guard);
                transfer::take(seat, waiter.seat, claim, 0, acknowledge);
                Step::Done
            }
            Found::Tick { value } => {
                drop(guard);
                transfer::take_tick(seat, value, 0);
                Step::Done
            }
            Found::Nobody => {
                let guard = match guard {
                    hub::Guard::Hub(_)
                        if !acknowledge
                            && channel.is_at_home_with(seat.component())
                            && channel.is_reconsidered() =>
                    {
                        match hub::settle_grade(channel, guard) {
                            Ok(()) => return receive_now(seat.component(), channel, site),
                            Err(guard) => guard,
                        }
                    }
                    guard => guard,
                };
                let round = next_round(seat);
                seat.offer.with_mut(|offer| {
                    offer.waiting = if acknowledge {
                        Waiting::Acknowledge
                    } else {
                        Waiting::Receive
                    };
                    offer.site = site;
                });
                recording::will_wait(seat, Waiting::Receive, || channel.port());
                register(
                    seat,
                    channel,
                    site,
                    Waiter {
                        seat,
                        arm: 0,
                        acknowledge,
                    },
                );
                waiting::offers(seat);
                seat.state.open(round);
                drop(guard);
                waits::heed_stop(seat);
                Step::Blocked
            }
            Found::Taken => unreachable!("nobody knows of an offer that is not open"),
        }
    }
}

/// Leaves, after a wake-up, the queues that still list the component, and makes it ready for the
/// next operation. The carrier calls it before it resumes the component.
///
/// # Safety
/// `seat` was blocked and woken, and the caller carries it.
pub(crate) unsafe fn settle(seat: &Seat) {
    carrier::settle_coming(seat);
    // SAFETY: woken, so the offer is the component's own again.
    unsafe {
        let completed = seat.state.stage() == Stage::Completed;
        let (waiting, registered) = seat
            .offer
            .with_mut(|offer| (offer.waiting, std::mem::take(&mut offer.registered)));
        // The thread that completed a wait at one half-channel took the entry with the claim.
        let is_queued = !completed || registered.len() > 1;
        let mut registered = registered;
        let turn = (completed && waiting == Waiting::Select).then(|| chosen_key(seat, &registered));
        for registration in registered.drain(..) {
            let channel = registration.channel.cast::<Channel>();
            if is_queued {
                hub::leave_queue(&*channel, seat);
            }
            release(channel);
        }
        match waiting {
            Waiting::Send if !completed => give_up_value(seat),
            Waiting::Outside(_) if !completed => crate::seats::waits::forget(seat),
            Waiting::Send | Waiting::Outside(_) => waits::note_raised(seat),
            Waiting::Receive | Waiting::Acknowledge | Waiting::Select => {}
        }
        if let Some(key) = turn {
            select::note_turn(seat, key);
        }
        // The space is reused.
        seat.offer.with_mut(|offer| offer.registered = registered);
        waiting::note_waiting(seat.component(), waiting::NOTHING);
        seat.state.rest();
    }
}

/// The key of the arm that a partner chose for a blocked select.
unsafe fn chosen_key(seat: &Seat, registered: &[Registration]) -> usize {
    // SAFETY: the component is woken and carried by the caller.
    let arm = unsafe { (*seat.component()).arm };
    let Some(chosen) = registered
        .iter()
        .find(|registration| registration.arm == arm)
    else {
        unreachable!("arm {arm} was chosen, where the component did not wait");
    };
    select::key(chosen.site, chosen.channel.addr())
}

/// Releases a moved value that a send without a receiver still owns.
unsafe fn give_up_value(seat: &Seat) {
    // SAFETY: the offer is the caller's own. A held sender's value is gone: it was handed over, and
    // `holder` says so.
    unsafe {
        let (value, moves, payload, holder) = seat.offer.with_mut(|offer| {
            (
                offer.value,
                offer.moves,
                offer.payload,
                std::mem::take(&mut offer.holder),
            )
        });
        if moves && holder == 0 {
            object::release_value(seat.component(), &*payload, value);
        }
    }
}

unsafe fn drop_value(seat: &Seat, channel: &Channel, value: Value, moves: bool) {
    if moves {
        // SAFETY: the caller's reference came with the value.
        unsafe { object::release_value(seat.component(), &*channel.payload(), value) };
    }
}

/// Releases a held sender.
///
/// # Safety
/// `held` came from an acknowledge of the calling component.
pub(crate) unsafe fn release_sender(held: &mut Held, ok: bool) {
    let Held { sender, ticket } = std::mem::replace(held, Held::NOBODY);
    if sender.is_null() {
        return;
    }
    // SAFETY: `held` has a counted reference to the sender.
    unsafe {
        let seat = seat_of(sender);
        if let Some(claim) = seat.state.claim_held(ticket) {
            seat.offer.with_mut(|offer| offer.holder = 0);
            if ok {
                waits::complete(seat, claim);
            } else {
                waits::complete_raising(seat, claim, Label::SendStatusUnknown);
            }
        }
        block::release(sender);
    }
}

/// Sends without locks, if possible.
///
/// # Safety
/// As for `send`.
unsafe fn send_quickly(
    component: *mut Component,
    channel: &Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: as the caller promises.
    unsafe {
        light::send(component, channel, value, moves, site)
            .or_else(|| link::send(component, channel, value, moves, site))
    }
}

/// Sends by the shortest path.
///
/// # Safety
/// As for `send`.
unsafe fn send_now(
    component: *mut Component,
    channel: &Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        send_quickly(component, channel, value, moves, site)
            .unwrap_or_else(|| send(seat_of(component), channel, value, moves, site))
    }
}

/// Receives without locks, if possible.
///
/// # Safety
/// As for `receive`.
unsafe fn receive_quickly(
    component: *mut Component,
    channel: &Channel,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: as the caller promises.
    unsafe {
        light::receive(component, channel, site).or_else(|| link::receive(component, channel, site))
    }
}

/// Receives by the shortest path.
///
/// # Safety
/// As for `receive`.
unsafe fn receive_now(component: *mut Component, channel: &Channel, site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        receive_quickly(component, channel, site)
            .unwrap_or_else(|| receive(seat_of(component), channel, site))
    }
}

/// Sends a value.
///
/// # Safety
/// As the header says: `self` runs this, `channel` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_send(
    this: *mut Component,
    channel: *mut Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let channel = &*channel;
        if let Some(step) = send_quickly(this, channel, value, moves, site) {
            return step;
        }
        simulation::operate(this, At::Send(channel.opaque()), site, || {
            let operation = Operation::begin(this);
            operation.end(send_now(this, channel, value, moves, site))
        })
    }
}

/// Receives a value.
///
/// # Safety
/// As the header says: `self` runs this, `channel` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_receive(
    this: *mut Component,
    channel: *mut Channel,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let channel = &*channel;
        if let Some(step) = receive_quickly(this, channel, site) {
            return step;
        }
        simulation::operate(this, At::Receive(channel.opaque()), site, || {
            let operation = Operation::begin(this);
            operation.end(receive_now(this, channel, site))
        })
    }
}

/// Receives a value and holds its sender.
///
/// # Safety
/// As the header says: `self` runs this, `channel` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_acknowledge(
    this: *mut Component,
    channel: *mut Channel,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let channel = &*channel;
        simulation::operate(this, At::Acknowledge(channel.opaque()), site, || {
            let operation = Operation::begin(this);
            operation.end(acknowledge(seat_of(this), channel, site))
        })
    }
}

/// Ends an acknowledge.
///
/// # Safety
/// As the header says: `held` came from an acknowledge of `self`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_release_sender(this: *mut Component, held: *mut Held, ok: bool) {
    // SAFETY: as the caller promises; compiled code holds no lock.
    unsafe {
        simulation::deed(this, "lets its sender go", ptr::null(), || {
            release_sender(&mut *held, ok);
        });
    }
}
