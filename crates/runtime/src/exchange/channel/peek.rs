//! The connections, read for samples of the traffic. Changes nothing.

use std::ptr;

use super::hub;
use super::{Channel, Direction};
use crate::abi::{self, Component, MOVED, Step};
use crate::exchange::carrier::traffic::{End, Wait};
use crate::exchange::carrier::{Entered, Linked};
use crate::exchange::values::object;
use crate::recording;
use crate::seats::seat::{Registration, Seat, Waiting, seat_of};
use crate::seats::waiting;

/// The half-channel at which a component has waited, if any.
///
/// # Safety
/// The component is ready, has not been settled, and the caller carries it.
pub(crate) unsafe fn place_of(component: *mut Component) -> Option<*const Channel> {
    // SAFETY: as the caller promises.
    unsafe {
        let history = &mut (*component).history;
        if *history & MOVED != 0 {
            *history &= !MOVED;
            return None;
        }
        match waiting::waiting_of(component) {
            waiting::NOTHING | waiting::LINKED => {
                let channel = (*component).waits_at.cast_const().cast::<Channel>();
                (!channel.is_null()).then_some(channel)
            }
            waiting::SELECTED => {
                let more = &seat_of(component).more;
                more.with(|more| chosen(&more.arms, (*component).arm))
            }
            waiting::OFFERS => seat_of(component).offer.with(|offer| match offer.waiting {
                Waiting::Outside(_) => None,
                Waiting::Select => chosen(&offer.registered, (*component).arm),
                Waiting::Send | Waiting::Receive | Waiting::Acknowledge => {
                    offer.registered.first().map(|only| only.channel.cast())
                }
            }),
            _ => None,
        }
    }
}

/// The purpose of the wait there. None if the wait failed.
///
/// # Safety
/// `channel` is the component's [`place_of`]; it has been settled since, and was not resumed.
pub(crate) unsafe fn wait_at(
    component: *mut Component,
    channel: *const Channel,
    chance: u32,
) -> Option<Wait> {
    // SAFETY: the component is the caller's, and refers to what it waited at until it is resumed.
    unsafe {
        if (*component).outcome != Step::Done as u8 {
            return None;
        }
        let channel = &*channel;
        let is_send = channel.direction == Direction::Out;
        let payload = &*channel.payload();
        let bytes = match is_send {
            false => Some(object::outer_size(payload, (*component).received)),
            true => (!object::is_reference(payload)).then_some(payload.size as usize),
        };
        let partner = peer_of(component, channel, chance);
        Some(Wait {
            end: end_of(channel),
            partner: partner.map(|(end, _)| end),
            is_shared: partner.is_some_and(|(_, is_shared)| is_shared),
            is_send,
            bytes,
            port: recording::is_on().then(|| channel.port()).flatten(),
        })
    }
}

fn chosen(arms: &[Registration], arm: u32) -> Option<*const Channel> {
    let chosen = arms.iter().find(|registration| registration.arm == arm)?;
    Some(chosen.channel.cast())
}

/// # Safety
/// The caller carries the component, which is about to be resumed.
unsafe fn peer_of(
    component: *mut Component,
    channel: &Channel,
    chance: u32,
) -> Option<(End, bool)> {
    // SAFETY: entered, linked or locked, so that peers are alive and stay.
    unsafe {
        if let Some(_entered) = Entered::even_if_attending(component, channel) {
            return with_leave(channel, chance);
        }
        if let Some(_linked) = Linked::new(component, channel) {
            return with_leave(channel, chance);
        }
        let _guard = hub::lock_if_shared(channel)?;
        with_leave(channel, chance)
    }
}

/// One of the peers, and whether there are more than two.
///
/// # Safety
/// The caller has leave.
unsafe fn with_leave(channel: &Channel, chance: u32) -> Option<(End, bool)> {
    // SAFETY: as the caller promises.
    unsafe {
        let count = channel.peer_count();
        let index = (chance as usize).checked_rem(count)?;
        let peer = channel.peer(index).as_ref();
        Some((end_of(peer), count > 1 || peer.peer_count() > 1))
    }
}

fn end_of(channel: &Channel) -> End {
    let owner = channel.owner();
    End {
        channel: ptr::from_ref(channel).addr(),
        owner: owner.map_or(channel.maker(), |owner| owner.id),
        port: owner.map_or(ptr::null(), |owner| channel.port_of(owner).name),
    }
}

/// The wait of a component that has just been blocked, for a recording.
/// # Safety
/// Its carrier calls, and no thread runs it meanwhile. Others may complete its wait.
pub(crate) unsafe fn wait_of(component: *mut Component) -> hearth_watch::Wait {
    use hearth_watch::Wait;
    let offered = recording::take_wait();
    // SAFETY: alive; other threads may change these fields, and the values read only go into the
    // report.
    let (waiting, place) = unsafe {
        (
            (&raw const (*component).waiting).read_volatile(),
            (&raw const (*component).waits_at).read_volatile().addr(),
        )
    };
    // SAFETY: alive.
    let port = || unsafe { port_at(component, place) };
    match waiting {
        waiting::SENDS | waiting::SENDS_COPY | waiting::SENDS_MOVING => Wait::Send(port()),
        waiting::RECEIVES => Wait::Receive(port()),
        waiting::SELECTS | waiting::SELECTED => Wait::Select,
        waiting::LINKED => Wait::Linked(port()),
        _ => offered,
    }
}

/// The component's port at an address, by arithmetic alone.
///
/// # Safety
/// The component is alive.
unsafe fn port_at(component: *mut Component, place: usize) -> Option<u16> {
    // SAFETY: as the caller promises; types are static.
    let ports = unsafe { abi::ports((*component).r#type) }.len();
    let seat = component.addr() - size_of::<Seat>();
    let first = seat - ports * size_of::<Channel>();
    let nth = place.checked_sub(first)? / size_of::<Channel>();
    (nth < ports).then_some(nth as u16)
}
