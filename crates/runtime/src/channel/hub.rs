//! Hubs: one small lock for all half-channels that connections tie together.
//!
//! Hubs are never freed, only used again. So a thread may lock a hub that its half-channel has left
//! meanwhile: it looks again, under the lock, whether the half-channel still belongs to this hub.
//!
//! Order of locks: two hubs are locked only by `connect`, lower number first. A hub that is made
//! ready for a half-channel is locked and unlocked before the half-channel's own hub is locked.

use std::ptr::{self, NonNull};

use super::Channel;
use crate::heap;
use crate::sync::{Mutex, MutexGuard, Ordering, lock};

/// A hub.
pub(crate) struct Hub {
    /// Its place in the order of locks. A number and not the address, so that the model checker
    /// sees the same order in every run.
    number: u64,
    state: Mutex<HubState>,
}

/// What the lock guards, besides the members' `inner`.
pub(crate) struct HubState {
    pub(crate) members: Vec<NonNull<Channel>>,
}

// SAFETY: members are followed only under the lock.
unsafe impl Send for HubState {}

/// A locked hub.
pub(crate) type HubGuard = MutexGuard<'static, HubState>;

#[cfg(not(loom))]
static SPARE: std::sync::Mutex<Vec<&'static Hub>> = std::sync::Mutex::new(Vec::new());

static MADE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Hub {
    /// A hub without members.
    pub(crate) fn take() -> &'static Hub {
        #[cfg(not(loom))]
        if let Some(hub) = lock(&SPARE).pop() {
            return hub;
        }
        Box::leak(heap::boxed(Hub {
            number: MADE.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(HubState {
                members: Vec::new(),
            }),
        }))
    }

    /// Keeps a hub without members for later.
    fn put_by(&'static self) {
        // The model checker's locks do not outlive a run.
        #[cfg(not(loom))]
        lock(&SPARE).push(self);
    }

    pub(crate) fn lock(&'static self) -> HubGuard {
        lock(&self.state)
    }
}

fn current(channel: &Channel) -> &'static Hub {
    // Acquire pairs with the Release of `move_to`: what was done to the half-channel under its old
    // hub's lock is visible to whoever locks its new one.
    // SAFETY: hubs are never freed.
    unsafe { &*channel.hub.load(Ordering::Acquire) }
}

fn is_in(channel: &Channel, hub: &'static Hub) -> bool {
    ptr::eq(current(channel), hub)
}

/// Locks the hub that the half-channel belongs to.
pub(crate) fn lock_of(channel: &Channel) -> HubGuard {
    loop {
        let hub = current(channel);
        let guard = hub.lock();
        if is_in(channel, hub) {
            return guard;
        }
    }
}

/// The locked hub, or hubs, of two half-channels.
pub(crate) enum PairGuard {
    One(HubGuard),
    Two {
        a: (&'static Hub, HubGuard),
        b: (&'static Hub, HubGuard),
    },
}

/// Locks the hubs of two half-channels.
pub(crate) fn lock_pair(a: &Channel, b: &Channel) -> PairGuard {
    loop {
        let (of_a, of_b) = (current(a), current(b));
        let pair = if ptr::eq(of_a, of_b) {
            PairGuard::One(of_a.lock())
        } else if of_a.number < of_b.number {
            let guard = of_a.lock();
            PairGuard::Two {
                a: (of_a, guard),
                b: (of_b, of_b.lock()),
            }
        } else {
            let guard = of_b.lock();
            PairGuard::Two {
                a: (of_a, of_a.lock()),
                b: (of_b, guard),
            }
        };
        if is_in(a, of_a) && is_in(b, of_b) {
            return pair;
        }
    }
}

/// Makes one hub of two. The smaller one's members move; it is put by.
pub(crate) fn merge(pair: PairGuard) -> HubGuard {
    let (a, b) = match pair {
        PairGuard::One(guard) => return guard,
        PairGuard::Two { a, b } => (a, b),
    };
    let (mut large, mut small) = if a.1.members.len() >= b.1.members.len() {
        (a, b)
    } else {
        (b, a)
    };
    for member in small.1.members.drain(..) {
        adopt(large.0, &mut large.1, member);
    }
    drop(small.1);
    small.0.put_by();
    large.1
}

fn adopt(hub: &'static Hub, state: &mut HubState, member: NonNull<Channel>) {
    // SAFETY: members are alive, and both hubs are locked.
    let channel = unsafe { member.as_ref() };
    // SAFETY: as above.
    unsafe {
        channel
            .inner
            .with_mut(|inner| inner.place = state.members.len())
    };
    state.members.push(member);
    move_to(channel, hub);
}

/// The last thing done to a half-channel under its old hub's lock.
fn move_to(channel: &Channel, hub: &'static Hub) {
    channel
        .hub
        .store(ptr::from_ref(hub).cast_mut(), Ordering::Release);
}

/// Takes away all peers of a half-channel and gives it a hub of its own.
pub(crate) fn set_apart(channel: &Channel) {
    // Before the lock below: no hub is locked while another is held, `connect` aside.
    let fresh = Hub::take();
    fresh.lock().members.push(NonNull::from(channel));
    let mut state = lock_of(channel);
    drop_peers(channel);
    if state.members.len() > 1 {
        leave(&mut state, channel);
        // SAFETY: locked.
        unsafe { channel.inner.with_mut(|inner| inner.place = 0) };
        move_to(channel, fresh);
        return;
    }
    drop(state);
    fresh.lock().members.clear();
    fresh.put_by();
}

/// Takes a half-channel that nobody refers to away from its peers and its hub.
pub(crate) fn leave_for_good(channel: &Channel) {
    let mut state = lock_of(channel);
    drop_peers(channel);
    leave(&mut state, channel);
    let is_empty = state.members.is_empty();
    drop(state);
    if is_empty {
        current(channel).put_by();
    }
}

/// Takes the half-channel and its peers out of each other's lists. The hub is locked.
fn drop_peers(channel: &Channel) {
    // SAFETY: the hub of the half-channel and its peers is locked; peers are alive, since one that
    // goes leaves first, which needs the lock.
    unsafe {
        let peers = channel.inner.with_mut(|inner| {
            inner.next = 0;
            std::mem::take(&mut inner.peers)
        });
        for peer in peers {
            let is_alone = peer.as_ref().inner.with_mut(|inner| {
                let Some(index) = inner
                    .peers
                    .iter()
                    .position(|known| ptr::eq(known.as_ptr(), channel))
                else {
                    unreachable!("peers know each other");
                };
                inner.peers.remove(index);
                // The turn stays with the peer that had it.
                if inner.next > index {
                    inner.next -= 1;
                }
                inner.peers.is_empty()
            });
            if let (true, Some(watch)) = (is_alone, &peer.as_ref().watch) {
                watch();
            }
        }
    }
}

/// Takes a half-channel out of its locked hub's members.
fn leave(state: &mut HubState, channel: &Channel) {
    // SAFETY: locked.
    let place = unsafe { channel.inner.with(|inner| inner.place) };
    state.members.swap_remove(place);
    if let Some(moved) = state.members.get(place) {
        // SAFETY: a member, alive; locked.
        unsafe { moved.as_ref().inner.with_mut(|inner| inner.place = place) };
    }
}
