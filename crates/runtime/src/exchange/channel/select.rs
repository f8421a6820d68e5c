//! Select: takes from one of several half-channels with a sender, or waits at all of them.

use std::ptr;

use super::claim::{self, Claimant, Found};
use super::queue::register;
use super::{Channel, Waiter, hub, light, transfer};
use crate::abi::{Arm, Component, DEFAULT, Label, Site, Step};
use crate::exchange::carrier::Operation;
use crate::exchange::carrier::waits::heed_stop;
use crate::exchange::channel::servers;
use crate::ground::choices::Scratch;
use crate::hooks::simulation::{self, At};
use crate::recording;
use crate::seats::offer::Claim;
use crate::seats::seat::{Seat, Waiting, next_round, raise_stop, seat_of};
use crate::seats::waiting;

/// Selects among open arms.
///
/// The first round only looks. If nothing is ready and there is no default, the component opens its
/// offer and registers at one half-channel after another, looking again at each: from the first on,
/// a sender may win the offer there at any time, so here it is won together with the sender's.
///
/// # Safety
/// `seat` is that of the component that runs the calling code; the channels are alive.
pub(crate) unsafe fn select(
    seat: &Seat,
    arms: &[Arm],
    has_default: bool,
    site: *const Site,
) -> Step {
    // SAFETY: the offer is the component's own until it is opened.
    unsafe {
        if seat.is_stopping() {
            return raise_stop(seat);
        }
        servers::begin(seat, servers::of_arms(arms));
        let mut scratch = seat.more.with_mut(|more| more.choices.take_scratch());
        order_arms(seat, arms, &mut scratch);
        let step = select_in_order(seat, arms, &scratch.order, has_default, site);
        seat.more.with_mut(|more| more.choices.put_scratch(scratch));
        step
    }
}

/// # Safety
/// As for [`select`].
unsafe fn select_in_order(
    seat: &Seat,
    arms: &[Arm],
    order: &[u32],
    has_default: bool,
    site: *const Site,
) -> Step {
    // SAFETY: the offer is the component's own until it is opened; from then on only its
    // registrations are.
    unsafe {
        for &arm in order {
            if look(seat, arms, arm) {
                return Step::Done;
            }
        }
        if has_default {
            (*seat.component()).arm = DEFAULT;
            return Step::Done;
        }
        if order.is_empty() {
            crate::seats::exceptions::raise(
                seat.component(),
                Label::OperationFailed,
                site,
                ptr::null(),
            );
            return Step::Raised;
        }
        let round = next_round(seat);
        seat.offer.with_mut(|offer| {
            offer.waiting = Waiting::Select;
            offer.site = site;
        });
        recording::will_wait(seat, Waiting::Select, || None);
        waiting::offers(seat);
        seat.state.open(round);
        heed_stop(seat);
        for &arm in order {
            match look_or_register(seat, arms, arm) {
                Registered::Waits => {}
                Registered::Served => {
                    leave_all(seat);
                    return Step::Done;
                }
                Registered::Taken => break,
            }
        }
        Step::Blocked
    }
}

/// Orders the arms to try: the open ones with a channel. Of several open arms at one half-channel
/// only the first counts.
unsafe fn order_arms(seat: &Seat, arms: &[Arm], scratch: &mut Scratch) {
    scratch.keys.clear();
    scratch.keys.extend(arms.iter().map(key_of));
    // SAFETY: the choices are the running component's own.
    unsafe { seat.more.with_mut(|more| more.choices.order(scratch)) };
    let is_first = |arm: &u32| {
        let index = *arm as usize;
        !arms[index].channel.is_null()
            && !arms[..index]
                .iter()
                .any(|earlier| ptr::eq(earlier.channel, arms[index].channel))
    };
    scratch.order.retain(is_first);
}

/// The key of an arm, the same from one select to the next.
fn key_of(arm: &Arm) -> usize {
    key(arm.site, arm.channel.addr())
}

/// Its place in the source; hand-written programs may have none.
pub(super) fn key(site: *const Site, channel: usize) -> usize {
    if site.is_null() { channel } else { site.addr() }
}

/// Takes a ready sender at an arm. The own offer is not open.
unsafe fn look(seat: &Seat, arms: &[Arm], index: u32) -> bool {
    let arm = &arms[index as usize];
    // SAFETY: channels are alive.
    unsafe {
        let channel = &*arm.channel.cast::<Channel>();
        let guard = hub::lock_of(channel);
        servers::notice(seat, channel, &guard);
        let found = claim::find(channel, Claimant::Unopened, seat);
        drop(guard);
        match found {
            Found::Partner { waiter, claim } => {
                take_partner(seat, arm, index, waiter, claim);
                true
            }
            Found::Tick { value } => {
                transfer::take_tick(seat, value, index);
                served(seat, arm);
                true
            }
            Found::Nobody => false,
            Found::Taken => unreachable!("nobody knows of an offer that is not open"),
        }
    }
}

unsafe fn take_partner(seat: &Seat, arm: &Arm, index: u32, waiter: Waiter, claim: Claim) {
    // SAFETY: the partner is won and no lock is held.
    unsafe { transfer::take(seat, waiter.seat, claim, index, arm.acknowledge) };
    served(seat, arm);
}

/// Records the turn of an arm.
fn served(seat: &Seat, arm: &Arm) {
    // SAFETY: the choices are the running component's own.
    unsafe { seat.more.with_mut(|more| more.choices.served(key_of(arm))) };
}

#[must_use]
enum Registered {
    /// The component waits at this half-channel too.
    Waits,
    /// A sender was here, and the results are in place.
    Served,
    /// The offer was won, or interrupted, elsewhere: a wake-up follows.
    Taken,
}

unsafe fn look_or_register(seat: &Seat, arms: &[Arm], index: u32) -> Registered {
    let arm = &arms[index as usize];
    // SAFETY: channels are alive; the offer's registrations stay the component's own.
    unsafe {
        let channel = &*arm.channel.cast::<Channel>();
        let guard = hub::lock_of(channel);
        let found = look_again(seat, channel);
        match found {
            Found::Nobody => {
                let waiter = Waiter {
                    seat,
                    arm: index,
                    acknowledge: arm.acknowledge,
                };
                register(seat, channel, arm.site, waiter);
                Registered::Waits
            }
            Found::Taken => Registered::Taken,
            Found::Partner { waiter, claim } => {
                drop(guard);
                take_partner(seat, arm, index, waiter, claim);
                Registered::Served
            }
            Found::Tick { value } => {
                drop(guard);
                transfer::take_tick(seat, value, index);
                served(seat, arm);
                Registered::Served
            }
        }
    }
}

/// # Safety
/// The channel's hub is locked, and `seat` is the caller's.
unsafe fn look_again(seat: &Seat, channel: &Channel) -> Found {
    #[cfg(loom)]
    if crate::ground::planted_faults::faults::registers_blindly() {
        return Found::Nobody;
    }
    // SAFETY: as the caller promises.
    unsafe { claim::find(channel, Claimant::Open(seat), seat) }
}

/// Leaves the queues entered so far: served without having been blocked.
unsafe fn leave_all(seat: &Seat) {
    // SAFETY: no other thread can win the offer, so it is the component's own.
    unsafe {
        let mut registered = seat
            .offer
            .with_mut(|offer| std::mem::take(&mut offer.registered));
        for registration in registered.drain(..) {
            hub::leave_queue(&*registration.channel.cast::<Channel>(), seat);
            super::release(registration.channel.cast());
        }
        seat.offer.with_mut(|offer| offer.registered = registered);
        waiting::note_waiting(seat.component(), waiting::NOTHING);
        seat.state.rest();
    }
}

/// Records the turn of the arm that a partner chose for a blocked select.
///
/// # Safety
/// `seat` is settled, its carrier calls.
pub(super) unsafe fn note_turn(seat: &Seat, key: usize) {
    // SAFETY: as the caller promises.
    unsafe { seat.more.with_mut(|more| more.choices.served(key)) };
}

/// Selects.
///
/// # Safety
/// As the header says: `self` runs this, `arms` has `count` arms with channels that are alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_select(
    this: *mut Component,
    arms: *const Arm,
    count: u32,
    has_default: bool,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let arms: &[Arm] = if count == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(arms, count as usize)
        };
        if let Some(step) = light::select(this, arms, has_default, site) {
            return step;
        }
        simulation::operate(this, At::Select(arms), site, || {
            let operation = Operation::begin(this);
            let step = light::select(this, arms, has_default, site)
                .unwrap_or_else(|| select(seat_of(this), arms, has_default, site));
            operation.end(step)
        })
    }
}

/// Waits at all open arms of a select.
///
/// # Safety
/// As the header says: `self` runs this and has entered, the half-channels of the arms are its
/// worker's without waiting components, and at least one arm is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_select_waits(
    this: *mut Component,
    arms: *const Arm,
    count: u32,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe { light::wait(this, std::slice::from_raw_parts(arms, count as usize), site) }
}
