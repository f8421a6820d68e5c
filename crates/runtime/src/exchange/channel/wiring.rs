//! Connect and disconnect.

use std::ptr;

use super::{Channel, Direction, claim, hub, transfer};
use crate::abi::{Component, Site};
use crate::exchange::carrier;
use crate::hooks::simulation;
use crate::recording;

/// Joins an `in` and an `out`, in either order, and completes waits pending at both. Joining a pair
/// twice has no effect.
pub(crate) fn connect(a: &Channel, b: &Channel) {
    let (out, into) = match (a.direction, b.direction) {
        (Direction::Out, Direction::In) => (a, b),
        (Direction::In, Direction::Out) => (b, a),
        _ => unreachable!("the compiler connects opposite directions"),
    };
    let mut matches = Vec::new();
    let guard = hub::merge(hub::lock_pair(out, into));
    // SAFETY: the hub of both is locked.
    unsafe {
        // Asks the one with fewer peers.
        let (asked, other) = match out.peer_count() <= into.peer_count() {
            true => (out, into),
            false => (into, out),
        };
        let known = |index| ptr::eq(asked.peer(index).as_ptr(), other);
        if (0..asked.peer_count()).any(known) {
            return;
        }
        out.add_peer(into);
        into.add_peer(out);
        for end in [out, into] {
            end.misses.set(0);
        }
        recording::connected(|| Some((out.port()?, into.port()?)));
        while let Some(found) = claim::find_pair(out, into) {
            matches.push(found);
        }
    }
    drop(guard);
    for found in matches {
        // SAFETY: both sides are won and the lock is left.
        unsafe { transfer::complete_both(found) };
    }
}

/// Removes all peers of a half-channel. Pending waits stay.
pub(crate) fn disconnect(channel: &Channel) {
    hub::set_apart(channel);
}

/// Joins two half-channels.
///
/// # Safety
/// Both are alive, of opposite directions and equal payload.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_connect(
    this: *mut Component,
    a: *mut Channel,
    b: *mut Channel,
    site: *const Site,
) {
    // SAFETY: as the caller promises.
    unsafe {
        carrier::rejoin(this);
        simulation::deed(this, "connects", site, || connect(&*a, &*b));
    }
}

/// Removes all peers.
///
/// # Safety
/// The channel is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_disconnect(
    this: *mut Component,
    a: *mut Channel,
    site: *const Site,
) {
    // SAFETY: as the caller promises; compiled code holds no lock.
    unsafe { simulation::deed(this, "disconnects", site, || disconnect(&*a)) };
}
