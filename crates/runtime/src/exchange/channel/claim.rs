//! Finds a partner among the peers and wins its offer. All with leave.

use super::{Channel, Direction, Waiter, hub, transfer};
use crate::abi::{Kind, Value};
use crate::exchange::carrier::waits;
use crate::seats::offer::Claim;
use crate::seats::seat::Seat;

/// Peers up to this number are searched one by one: that takes no longer than to queue and be
/// woken.
const FEW: usize = 16;

/// The result of a receiver's search.
#[must_use]
pub(crate) enum Found {
    /// A component that waits at a peer, won, and the claimant's own offer too if that was open.
    Partner {
        waiter: Waiter,
        claim: Claim,
    },
    /// A tick.
    Tick {
        value: Value,
    },
    Nobody,
    /// Another thread won the claimant's own offer meanwhile.
    Taken,
}

/// The component that looks for a partner.
#[derive(Clone, Copy)]
pub(crate) enum Claimant<'a> {
    /// One whose own offer no other thread can know yet.
    Unopened,
    /// One that may be won elsewhere while it looks here.
    Open(&'a Seat),
}

/// Searches the peers of `channel` for one that waits, beginning with the next in turn or as the
/// seed of `seat` says.
///
/// # Safety
/// The channel's hub is locked, and `seat` is that of the component that runs the calling code.
pub(crate) unsafe fn find(channel: &Channel, claimant: Claimant<'_>, seat: &Seat) -> Found {
    // SAFETY: as the caller promises.
    unsafe {
        match channel.direction {
            Direction::Out => find_receiver(channel, claimant, seat),
            Direction::In => find_sender(channel, claimant, seat),
        }
    }
}

/// Finds a receiver; several take turns.
///
/// # Safety
/// As for `find`.
unsafe fn find_receiver(channel: &Channel, claimant: Claimant<'_>, seat: &Seat) -> Found {
    // SAFETY: locked, so peers are alive, and serving them does not reach into this channel.
    unsafe {
        let places = channel.peer_count();
        if places == 0 {
            return Found::Nobody;
        }
        let start = seat.start(channel.inner.with(|inner| inner.next), places);
        for step in 0..places {
            let place = (start + step) % places;
            let found = win_from(channel.peer(place).as_ref(), claimant);
            if !matches!(found, Found::Nobody) {
                if places > 1 {
                    channel.inner.with_mut(|inner| inner.next = place + 1);
                }
                return found;
            }
        }
        Found::Nobody
    }
}

/// Finds a sender. Few peers take turns, and a pending tick counts as one more; of many, those with
/// waiting senders, the longest first, and a tick every second time.
///
/// # Safety
/// As for `find`.
unsafe fn find_sender(channel: &Channel, claimant: Claimant<'_>, seat: &Seat) -> Found {
    // SAFETY: as in `find_receiver`.
    unsafe {
        let (ticks, next) = channel
            .inner
            .with(|inner| (usize::from(inner.stash.is_some()), inner.next));
        // Few take turns, whether near or far: served in order of arrival, those of one worker tend
        // to come one after another. Nor may a seed depend on how threads run.
        let peers = channel.peer_count();
        let goes_by_peers = peers <= FEW || seat.chooses_by_seed();
        let count = if goes_by_peers {
            peers
        } else {
            channel.ready_count()
        };
        let places = count + ticks;
        if places == 0 {
            return Found::Nobody;
        }
        // The first that is ready is next in turn, otherwise the tick.
        let turn = if goes_by_peers || next == 0 {
            next
        } else {
            count
        };
        let start = seat.start(turn, places);
        for step in 0..places {
            let place = (start + step) % places;
            let found = if place == count {
                take_tick(channel, claimant)
            } else if goes_by_peers {
                win_from(channel.peer(place).as_ref(), claimant)
            } else {
                win_from_ready(channel, place, claimant)
            };
            if !matches!(found, Found::Nobody) {
                if places > 1 {
                    let next = match place == count {
                        true => 0,
                        false if goes_by_peers => place + 1,
                        false => 1,
                    };
                    channel.inner.with_mut(|inner| inner.next = next);
                }
                return found;
            }
        }
        Found::Nobody
    }
}

/// Wins from one of several peers with waiting senders. If more wait there, the peer goes to the
/// end.
///
/// # Safety
/// As for `find`.
unsafe fn win_from_ready(channel: &Channel, place: usize, claimant: Claimant<'_>) -> Found {
    // SAFETY: as in `find_receiver`.
    unsafe {
        let out = channel.inner.with(|inner| inner.ready[place]).as_ref();
        let found = win_from(out, claimant);
        if let Found::Partner { .. } = found {
            channel.inner.with_mut(|inner| inner.take_ready_at(place));
            channel.list_if_ready(out);
        }
        found
    }
}

/// Wins the first offer in a half-channel's queue that can be won.
///
/// # Safety
/// The channel's hub is locked.
unsafe fn win_from(peer: &Channel, claimant: Claimant<'_>) -> Found {
    // SAFETY: locked; serving seats does not reach into this queue.
    unsafe {
        if !peer.inner.is_made() {
            return Found::Nobody;
        }
        peer.change_queue(|inner| {
            for index in 0..inner.queue.len() {
                let waiter = inner.queue[index];
                // The entry is in the queue, so the waiter has not settled and its seat is alive.
                match win(&*waiter.seat, claimant) {
                    Won::Both(claim) => {
                        inner.queue.remove(index);
                        return Found::Partner { waiter, claim };
                    }
                    Won::Nothing => {}
                    Won::SelfTaken => return Found::Taken,
                }
            }
            Found::Nobody
        })
    }
}

#[must_use]
enum Won {
    Both(Claim),
    /// The waiter is served elsewhere or stopping.
    Nothing,
    SelfTaken,
}

/// Wins the waiter's offer, then the claimant's own. In this order only a stopper can notice that
/// the waiter was briefly won; with the own offer won first and reopened, a partner at another
/// half-channel could pass by in between and wait for ever.
fn win(waiter: &Seat, claimant: Claimant<'_>) -> Won {
    let Some(claim) = waiter.state.claim() else {
        return Won::Nothing;
    };
    let Claimant::Open(me) = claimant else {
        return Won::Both(claim);
    };
    match me.state.claim() {
        // The own claim ends when the claimant leaves its queues.
        Some(_own) => Won::Both(claim),
        None => {
            waiter.state.reopen(claim);
            // A stopper may have looked in between and found it matched.
            waits::heed_stop(waiter);
            Won::SelfTaken
        }
    }
}

/// # Safety
/// The channel's hub is locked.
unsafe fn take_tick(channel: &Channel, claimant: Claimant<'_>) -> Found {
    if let Claimant::Open(me) = claimant {
        // The own claim ends when the claimant leaves its queues.
        let Some(_own) = me.state.claim() else {
            return Found::Taken;
        };
    }
    // SAFETY: locked.
    match unsafe { channel.change_queue(|inner| inner.stash.take()) } {
        Some(value) => Found::Tick { value },
        None => unreachable!("the caller saw a tick under the same lock"),
    }
}

/// Wins a sender and a receiver for a caller that just connected their half-channels.
///
/// # Safety
/// The hub of both is locked.
pub(crate) unsafe fn find_pair(out: &Channel, into: &Channel) -> Option<transfer::Match> {
    // SAFETY: locked.
    let senders = unsafe { out.inner.with(|inner| inner.queue.len()) };
    for index in 0..senders {
        // SAFETY: locked; the entry is in the queue, so its seat is alive.
        let sender = unsafe { &*out.inner.with(|inner| inner.queue[index].seat) };
        let Some(claim) = sender.state.claim() else {
            continue;
        };
        // SAFETY: locked.
        match unsafe { win_from(into, Claimant::Unopened) } {
            Found::Partner {
                waiter,
                claim: of_receiver,
                ..
            } => {
                // SAFETY: locked.
                unsafe { out.change_queue(|inner| inner.queue.remove(index)) };
                return Some(transfer::Match {
                    sender,
                    sender_claim: claim,
                    receiver: waiter,
                    receiver_claim: of_receiver,
                });
            }
            _ => {
                sender.state.reopen(claim);
                waits::heed_stop(sender);
                return None;
            }
        }
    }
    None
}

/// Gives a value from outside to a receiver that waits at an `in` half-channel. Without one, `keep`
/// stores it, at most one, until the next receive. True when a receiver got it.
///
/// # Safety
/// The caller has a counted reference to the channel; the payload is a scalar.
pub(crate) unsafe fn push(channel: &Channel, value: Value, keep: bool) -> bool {
    debug_assert!(
        // SAFETY: types are static.
        unsafe { (*channel.payload()).kind } < Kind::String,
        "only scalars come from outside"
    );
    let guard = hub::lock_of(channel);
    // SAFETY: locked.
    let found = unsafe { win_from(channel, Claimant::Unopened) };
    match found {
        Found::Partner { waiter, claim } => {
            drop(guard);
            // SAFETY: claimed.
            unsafe { transfer::give(waiter, claim, value) };
            true
        }
        _ => {
            if keep {
                // SAFETY: locked.
                unsafe { channel.change_queue(|inner| inner.stash = Some(value)) };
            }
            false
        }
    }
}

/// Whether a component waits at this half-channel, unserved.
///
/// # Safety
/// The caller has a counted reference to the channel.
pub(crate) unsafe fn receivers_wait(channel: &Channel) -> bool {
    let _guard = hub::lock_of(channel);
    // SAFETY: locked; entries in the queue have seats that are alive.
    unsafe {
        channel.inner.with(|inner| {
            inner
                .queue
                .iter()
                .any(|waiter| (*waiter.seat).state.stage() == crate::seats::offer::Stage::Open)
        })
    }
}
