//! Light waiting: rendezvous between components of one worker, without locks and atomics.
//!
//! While all half-channels tied together by connections belong to one worker, only its thread
//! touches them, except foreign threads that ask for leave ([`crate::exchange::carrier::Hold`]). A
//! component that waits there needs no offer: each half-channel has a *slot* that names the one
//! component waiting at it, and the component's own struct says for what. The shortest of these
//! paths are in `hearth.h`, for the C compiler to inline; this module has the rest, for references,
//! several peers and select.
//!
//! Every unusual case (a second component at the same half-channel, an acknowledge, a stop, a tick,
//! a foreign thread) first *inflates* the light waits it meets into offers and queue entries, and
//! continues by the general protocol. The slot then says HEAVY while the queue has entries.

use std::ptr;

use super::transfer;
use super::{Channel, Inner, Waiter};
use crate::abi::{Arm, Component, DEFAULT, FOUND_SENDER, Site, Step, Type, Value};
use crate::exchange::carrier::{self, Entered};
use crate::exchange::values::object;
use crate::seats::seat::{Registration, Seat, Waiting, next_round, seat_of};
use crate::seats::waiting::{
    self, NOTHING, OFFERS, RECEIVES, SELECTED, SELECTS, SENDS, SENDS_COPY, SENDS_MOVING,
};

/// The `waiting` number for sending a value of this type.
pub(super) fn manner(payload: &Type, moves: bool) -> u8 {
    match (object::is_reference(payload), moves) {
        (false, _) => SENDS,
        (true, false) => SENDS_COPY,
        (true, true) => SENDS_MOVING,
    }
}

/// Tag of a slot with a selecting component.
pub(crate) const SELECT: usize = 1;
/// Value of a slot where a component waits by the general protocol, or a tick does.
pub(crate) const HEAVY: usize = 2;
const TAGS: usize = 3;

/// The component in a slot.
fn occupant(slot: usize) -> *mut Component {
    ptr::with_exposed_provenance_mut(slot & !TAGS)
}

fn has_occupant(slot: usize) -> bool {
    slot & HEAVY == 0 && slot != 0
}

/// The content of a slot.
enum SlotContent {
    Free,
    /// A component that sends or receives.
    One(*mut Component),
    /// One that selects and is still open.
    Selecting(*mut Component),
    Heavy,
}

/// # Safety
/// The caller may touch the half-channel.
#[inline]
unsafe fn look(channel: &Channel) -> SlotContent {
    let slot = channel.slot.get();
    if slot == 0 {
        return SlotContent::Free;
    }
    if slot & HEAVY != 0 {
        return SlotContent::Heavy;
    }
    let component = occupant(slot);
    if slot & SELECT == 0 {
        return SlotContent::One(component);
    }
    // SAFETY: slots name a component only while it is parked, or ready and not yet settled.
    if unsafe { (*component).waiting } == SELECTS {
        SlotContent::Selecting(component)
    } else {
        // Served elsewhere, and about to remove itself.
        channel.slot.set(0);
        SlotContent::Free
    }
}

/// Puts the running component into a slot.
fn occupy(channel: &Channel, component: *mut Component, tag: usize) {
    channel.slot.set(component.expose_provenance() | tag);
}

/// Parks the running component.
///
/// # Safety
/// It has entered, and runs the calling code, which returns Blocked to its carrier.
unsafe fn park(component: *mut Component, channel: &Channel, waiting: u8, site: *const Site) {
    // SAFETY: the component's own fields.
    unsafe {
        (*component).waits_at = channel.opaque().cast_mut();
        (*component).waits_in = site;
        (*component).waiting = waiting;
        (*component).outcome = Step::Done as u8;
        carrier::parks(component);
    }
}

/// Sends to a component of the same worker. None if that takes the general protocol.
///
/// # Safety
/// As for `rendezvous::send`.
pub(super) unsafe fn send(
    component: *mut Component,
    channel: &Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: entered, so the half-channels are the caller's; the rest as the caller promises.
    unsafe {
        let entered = Entered::new(component, channel)?;
        let into = channel.sole.get().as_ref()?;
        let receiver = match look(into) {
            SlotContent::Heavy => return None,
            SlotContent::Free => {
                if channel.slot.get() != 0 {
                    return None;
                }
                occupy(channel, component, 0);
                if into.sole.get().is_null() {
                    into.list(channel);
                }
                (*component).received = value;
                let waiting = manner(&*channel.payload(), moves);
                park(component, channel, waiting, site);
                return Some(Step::Blocked);
            }
            SlotContent::One(receiver) => {
                (*receiver).waiting = NOTHING;
                receiver
            }
            SlotContent::Selecting(receiver) => {
                (*receiver).waiting = SELECTED;
                (*receiver).arm = into.arm.get();
                into.served.set(entered.tick());
                receiver
            }
        };
        into.slot.set(0);
        let payload = &*channel.payload();
        let needs_no_copy = !object::is_reference(payload)
            || moves && payload.flat && object::is_unique(payload, value);
        if needs_no_copy {
            (*receiver).received = transfer::pass(component, receiver, payload, value, moves);
            if runs_behind(receiver) {
                carrier::ready_here_last(receiver);
            } else {
                carrier::ready_here(receiver);
            }
            return Some(Step::Done);
        }
        // A copy may take long and delays nobody. Meanwhile this thread may be detached: then
        // the queue is no longer its own, unless it checks again.
        drop(entered);
        (*receiver).received = transfer::pass(component, receiver, payload, value, moves);
        carrier::wake(seat_of(receiver));
        Some(Step::Done)
    }
}

/// Whether a component that has been served in a select runs behind the others. One that finds
/// several messages between two waits does: more of the others will have sent by then, and each
/// wait in a select costs a visit to all of its arms.
///
/// # Safety
/// The caller may touch the component, which is served.
unsafe fn runs_behind(component: *mut Component) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let history = &mut (*component).history;
        let behind = (*component).waiting == SELECTED && *history & FOUND_SENDER != 0;
        if behind {
            *history &= !FOUND_SENDER;
        }
        behind
    }
}

/// Receives from a component of the same worker. None if that takes the general protocol.
///
/// # Safety
/// As for `rendezvous::receive`.
pub(super) unsafe fn receive(
    component: *mut Component,
    channel: &Channel,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: as in `send`.
    unsafe {
        let entered = Entered::new(component, channel)?;
        if channel.slot.get() != 0 {
            return None;
        }
        match ready_sender(channel) {
            Sender::Heavy => None,
            Sender::Nobody => {
                occupy(channel, component, 0);
                park(component, channel, RECEIVES, site);
                Some(Step::Blocked)
            }
            Sender::Waits { out } => {
                take(entered, component, channel, out);
                Some(Step::Done)
            }
        }
    }
}

enum Sender<'a> {
    Nobody,
    /// Only the general protocol can serve the component there.
    Heavy,
    Waits {
        out: &'a Channel,
    },
}

/// The next peer in turn with a waiting sender.
///
/// # Safety
/// The caller may touch the half-channels.
#[inline]
unsafe fn ready_sender(channel: &Channel) -> Sender<'_> {
    // SAFETY: as the caller promises; peers are alive.
    unsafe {
        if let Some(out) = channel.sole.get().as_ref() {
            return match look(out) {
                SlotContent::Free => Sender::Nobody,
                SlotContent::One(_) => Sender::Waits { out },
                SlotContent::Heavy | SlotContent::Selecting(_) => Sender::Heavy,
            };
        }
        if !channel.inner.is_made() {
            return Sender::Nobody;
        }
        ready_of_several(channel)
    }
}

/// [`ready_sender`] for a half-channel with several peers.
///
/// # Safety
/// As for `ready_sender`.
unsafe fn ready_of_several(channel: &Channel) -> Sender<'_> {
    // SAFETY: as the caller promises.
    unsafe {
        while let Some(out) = channel.inner.with(|inner| inner.ready.front().copied()) {
            let out: &Channel = &*out.as_ptr();
            match look(out) {
                // Several receivers at one sender take turns by the general protocol.
                SlotContent::One(_) if !out.sole.get().is_null() => return Sender::Waits { out },
                // A general wait is served by the general protocol, in the same turn.
                SlotContent::One(_) | SlotContent::Selecting(_) | SlotContent::Heavy => {
                    return Sender::Heavy;
                }
                SlotContent::Free => {
                    channel.inner.with_mut(Inner::take_ready);
                }
            }
        }
        Sender::Nobody
    }
}

/// Bytes of the value that a component offers and has just begun to wait with, if it waits lightly
/// at a half-channel of its worker and no receiver has taken the value yet.
///
/// # Safety
/// The calling code blocked the component, on its worker's thread, which has not run another since.
pub(crate) unsafe fn size_to_give(component: *mut Component) -> Option<usize> {
    // SAFETY: only its own worker resumes it, so it is alive; under leave nobody takes the value,
    // and an earlier receiver shows once leave is acquired.
    unsafe {
        let channel = (&raw const (*component).waits_at)
            .read_volatile()
            .cast::<Channel>();
        let is_light = || {
            let waiting = (&raw const (*component).waiting).read_volatile();
            (SENDS..=SENDS_MOVING).contains(&waiting)
        };
        if channel.is_null() || !is_light() {
            return None;
        }
        let channel = &*channel.cast_const();
        let _entered = Entered::even_if_attending(component, channel)?;
        is_light().then(|| object::outer_size(&*channel.payload(), (*component).received))
    }
}

/// Takes the value of a waiting sender.
///
/// # Safety
/// `out` is a peer of `channel` with a sender in its slot.
unsafe fn take(entered: Entered, component: *mut Component, channel: &Channel, out: &Channel) {
    // SAFETY: as the caller promises; out of its slot, the sender is the caller's.
    unsafe {
        let sender = occupant(out.slot.replace(0));
        let moves = (*sender).waiting == SENDS_MOVING;
        (*sender).waiting = NOTHING;
        if channel.sole.get().is_null() {
            channel.inner.with_mut(Inner::take_ready);
        }
        let value = (*sender).received;
        (*component).received =
            transfer::pass(sender, component, &*channel.payload(), value, moves);
        (*component).arm = 0;
        carrier::ready_here(sender);
        drop(entered);
    }
}

/// Selects among half-channels of the component's worker. None if that takes the general protocol.
///
/// # Safety
/// As for `select::select`.
pub(super) unsafe fn select(
    component: *mut Component,
    arms: &[Arm],
    has_default: bool,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: as in `send`, for each of the half-channels.
    unsafe {
        let seat = seat_of(component);
        let first = arms.iter().find(|arm| !arm.channel.is_null())?;
        let entered = Entered::new(component, &*first.channel.cast::<Channel>())?;
        if seat.chooses_by_seed() {
            return None;
        }
        let now = entered.now();
        let mut best: Option<(u32, usize, &Channel)> = None;
        for (index, arm) in arms.iter().enumerate() {
            let Some(channel) = arm.channel.cast::<Channel>().as_ref() else {
                continue;
            };
            if arm.acknowledge || !entered.covers(channel) || channel.slot.get() != 0 {
                return None;
            }
            match ready_sender(channel) {
                Sender::Heavy => return None,
                Sender::Nobody => {}
                Sender::Waits { out } => {
                    let age = now.wrapping_sub(channel.served.get());
                    if best.is_none_or(|(oldest, ..)| age > oldest) {
                        best = Some((age, index, out));
                    }
                }
            }
        }
        if let Some((_, index, out)) = best {
            let channel = &*arms[index].channel.cast::<Channel>();
            channel.served.set(entered.tick());
            take(entered, component, channel, out);
            (*component).arm = index as u32;
            (*component).history |= FOUND_SENDER;
            return Some(Step::Done);
        }
        if has_default {
            (*component).arm = DEFAULT;
            return Some(Step::Done);
        }
        Some(wait(component, arms, site))
    }
}

/// Waits at all arms, none of which has a sender.
///
/// # Safety
/// The component runs the calling code and has entered; the arms' slots are free, and one is open.
pub(super) unsafe fn wait(component: *mut Component, arms: &[Arm], site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let at = seat_of(component).more.with_mut(|more| {
            wait_at_all(component, arms, &mut more.arms);
            more.arms[0].channel.cast::<Channel>()
        });
        park(component, &*at, SELECTS, site);
    }
    Step::Blocked
}

/// Puts a selecting component into the slots of its arms. `kept` lists those of its previous
/// select, most often the same.
///
/// # Safety
/// The caller may touch the half-channels, whose slots are free.
unsafe fn wait_at_all(component: *mut Component, arms: &[Arm], kept: &mut Vec<Registration>) {
    let mut count = 0;
    for (index, arm) in arms.iter().enumerate() {
        // SAFETY: as the caller promises.
        let Some(channel) = (unsafe { arm.channel.cast::<Channel>().as_ref() }) else {
            continue;
        };
        // Of several arms at one half-channel the first counts.
        if channel.slot.get() != 0 {
            continue;
        }
        occupy(channel, component, SELECT);
        channel.arm.set(index as u32);
        let registration = Registration {
            channel: channel.opaque(),
            site: arm.site,
            arm: index as u32,
        };
        match kept.get_mut(count) {
            Some(place) => *place = registration,
            None => kept.push(registration),
        }
        count += 1;
    }
    kept.truncate(count);
}

/// Removes a served select from the slots of its other arms. Its worker calls this before it
/// resumes the component.
///
/// # Safety
/// The component is ready, and the caller runs its worker.
pub(crate) unsafe fn settle(component: *mut Component) {
    // SAFETY: as the caller promises; channels outlive the wait (see `Registration`), and workers
    // the program.
    unsafe {
        let seat = seat_of(component);
        let home: &'static carrier::Worker = &*(*component).home.cast::<carrier::Worker>();
        let _hold = home.hold();
        // Not before it is held: the thread that empties a slot as it changes hands goes by this
        // word.
        (*component).waiting = NOTHING;
        seat.more.with(|more| {
            for registration in &more.arms {
                let channel = &*registration.channel.cast::<Channel>();
                // A half-channel that changed hands was emptied then.
                if channel.is_at(home.mark())
                    && channel.slot.get() == component.expose_provenance() | SELECT
                {
                    channel.slot.set(0);
                }
            }
        });
    }
}

/// Inflates the light wait at a half-channel, if there is one, into an offer.
///
/// # Safety
/// The caller may touch all half-channels of its worker.
pub(super) unsafe fn inflate_at(channel: &Channel) {
    let slot = channel.slot.get();
    if has_occupant(slot) {
        let component = occupant(slot);
        // SAFETY: as the caller promises.
        unsafe {
            if (*component).waiting == SELECTED {
                channel.slot.set(0);
            } else {
                inflate(component);
            }
        }
    }
}

/// Inflates a component's light wait, if it has one, into an offer.
///
/// # Safety
/// The caller may touch what belongs to the component's worker.
pub(crate) unsafe fn inflate(component: *mut Component) {
    // SAFETY: as the caller promises: no other thread touches the component or its half-channels.
    unsafe {
        let seat = seat_of(component);
        let kind = waiting::waiting_at_leave(component);
        let waiting = match kind {
            SENDS | SENDS_COPY | SENDS_MOVING => Waiting::Send,
            RECEIVES => Waiting::Receive,
            SELECTS => Waiting::Select,
            _ => return,
        };
        let at = &*(*component).waits_at.cast::<Channel>();
        (*component).waiting = OFFERS;
        let round = next_round(seat);
        seat.offer.with_mut(|offer| {
            offer.waiting = waiting;
            offer.site = (*component).waits_in;
            if waiting == Waiting::Send {
                offer.value = (*component).received;
                offer.moves = kind == SENDS_MOVING;
                offer.payload = at.payload();
            }
        });
        if kind == SELECTS {
            seat.more.with(|more| {
                for registration in &more.arms {
                    enter_queue(
                        seat,
                        &*registration.channel.cast::<Channel>(),
                        registration.site,
                        registration.arm,
                    );
                }
            });
        } else {
            enter_queue(seat, at, (*component).waits_in, 0);
        }
        seat.state.open(round);
    }
}

unsafe fn enter_queue(seat: &Seat, channel: &Channel, site: *const Site, arm: u32) {
    let waiter = Waiter {
        seat,
        arm,
        acknowledge: false,
    };
    // SAFETY: as for `inflate`.
    unsafe { super::queue::register(seat, channel, site, waiter) };
}
