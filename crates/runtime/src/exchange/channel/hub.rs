//! Access to half-channels: their hub's lock, or leave of their worker.
//!
//! Half-channels tied together by connections are one *group*, in one of three *grades*:
//!
//! - *Shared*: the group has a hub, one small lock.
//! - *Linked*: two half-channels of two workers, and no others ([`super::link`]).
//! - *Local*: all of it belongs to one worker, whose thread needs no lock; other threads ask for
//!   leave ([`crate::exchange::carrier::Hold`]), which is costly. New half-channels are their
//!   worker's. The first operation of a component elsewhere, or a connection with a half-channel
//!   elsewhere, makes the whole group shared. After some operations without a partner it becomes
//!   local or linked again if possible ([`Channel::is_reconsidered`]); a disconnected part stays
//!   shared until then.
//!
//! Hubs are never freed before the end of their runtime, only reused. So a thread may lock a hub
//! that its half-channel has left meanwhile: under the lock it checks again whether the
//! half-channel still belongs to this hub.
//!
//! Order of locks: only `connect` locks two hubs, lower number first, and the second only while the
//! first is its half-channel's. A holder of a hub's lock may wait for a worker's leave; a holder of
//! leave may wait only for a hub in reserve, which others lock just to look. A hub that is prepared
//! for a half-channel is locked and unlocked before the half-channel's own hub is locked.

use std::ptr::{self, NonNull};

use super::{Channel, Direction, light, link};
use crate::abi::{self, Component};
use crate::exchange::block;
use crate::exchange::carrier::{self, Hold, Worker};
use crate::exchange::line::{self, Line};
#[cfg(not(loom))]
use crate::ground::runtime::Part;
#[cfg(not(loom))]
use crate::ground::sync::lock_std;
use crate::ground::sync::{Mutex, MutexGuard, Ordering, boxed, lock};
use crate::ground::without::Mechanism;
use crate::seats::seat::{Seat, seat_of};

/// A hub.
pub(crate) struct Hub {
    /// Its place in the order of locks. A number and not the address, so that the model checker
    /// sees the same order in every run.
    number: u64,
    state: Mutex<HubState>,
}

/// The state under the lock, besides the members' `inner`.
pub(crate) struct HubState {
    pub(crate) members: Vec<NonNull<Channel>>,
}

// SAFETY: members are followed only under the lock.
unsafe impl Send for HubState {}

/// A locked hub.
pub(crate) type HubGuard = MutexGuard<'static, HubState>;

/// A runtime's hubs: the number made, and those without members.
#[derive(Default)]
struct Hubs {
    made: usize,
    spare: Vec<&'static Hub>,
}

impl Drop for Hubs {
    fn drop(&mut self) {
        for hub in self.spare.drain(..) {
            // SAFETY: from `take`. The runtime ends, and with it every thread that could still look
            // at the hub.
            drop(unsafe { Box::from_raw(ptr::from_ref(hub).cast_mut()) });
        }
    }
}

#[cfg(not(loom))]
static HUBS: Part<std::sync::Mutex<Hubs>> = Part::new(std::sync::Mutex::default);
/// The next hub's number, unique in the process: the order in which several are locked.
static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Hub {
    /// A hub without members.
    pub(crate) fn take() -> &'static Hub {
        #[cfg(not(loom))]
        {
            let mut hubs = lock_std(&HUBS);
            if let Some(hub) = hubs.spare.pop() {
                return hub;
            }
            hubs.made += 1;
        }
        Box::leak(boxed(Hub {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(HubState {
                members: Vec::new(),
            }),
        }))
    }

    /// Puts a hub without members in reserve.
    fn put_by(&'static self) {
        // The model checker's locks do not outlive a run.
        #[cfg(not(loom))]
        lock_std(&HUBS).spare.push(self);
    }

    /// Number of hubs with members.
    #[cfg(not(loom))]
    pub(crate) fn in_use() -> usize {
        let hubs = lock_std(&HUBS);
        hubs.made - hubs.spare.len()
    }

    pub(crate) fn lock(&'static self) -> HubGuard {
        lock(&self.state)
    }
}

/// The group's place: a worker, a line or a hub.
#[derive(Clone, Copy)]
enum GroupPlace {
    Hub(&'static Hub),
    Worker(&'static Worker),
    Line(&'static Line),
}

fn current(channel: &Channel) -> GroupPlace {
    // Acquire pairs with the Release of `move_to`: accesses at the half-channel's former place are
    // visible to the holders of leave at the new one.
    place_of(channel.place.load(Ordering::Acquire))
}

fn place_of(place: usize) -> GroupPlace {
    if let Some(worker) = carrier::of_mark(place) {
        return GroupPlace::Worker(worker);
    }
    if let Some(line) = line::of_mark(place) {
        return GroupPlace::Line(line);
    }
    // SAFETY: hubs live as long as their runtime, and a value that is not a mark is the address of
    // one.
    GroupPlace::Hub(unsafe { &*ptr::with_exposed_provenance(place) })
}

impl Hub {
    fn address(&'static self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }
}

/// Initial place of a half-channel, created for a component of this worker: the worker's mark, or,
/// without a worker, a hub of its own.
pub(crate) fn first_place(home: *const Worker) -> (usize, Option<&'static Hub>) {
    if let Some(mark) = carrier::mark_of(home).filter(|_| !Mechanism::Local.is_off()) {
        return (mark, None);
    }
    let hub = Hub::take();
    (hub.address(), Some(hub))
}

fn is_in(channel: &Channel, place: usize) -> bool {
    channel.is_at(place)
}

/// Leave to touch a group.
pub(crate) enum Guard {
    Hub(HubGuard),
    Worker(#[cfg_attr(not(loom), expect(dead_code, reason = "held"))] Hold),
}

/// Acquires leave to touch a half-channel's group. Its light waits are offers afterwards.
pub(crate) fn lock_of(channel: &Channel) -> Guard {
    loop {
        if let Some(guard) = lock_unless_linked_now(channel) {
            return guard;
        }
    }
}

/// Locks a half-channel's hub, if it is shared.
pub(crate) fn lock_if_shared(channel: &Channel) -> Option<HubGuard> {
    let GroupPlace::Hub(hub) = current(channel) else {
        return None;
    };
    let guard = hub.lock();
    is_in(channel, hub.address()).then_some(guard)
}

/// Like [`lock_of`]; None if the half-channel was linked during the wait for its hub: the
/// link is for its component, whose operation should try it before ending it.
pub(crate) fn lock_unless_linked_now(channel: &Channel) -> Option<Guard> {
    loop {
        match current(channel) {
            GroupPlace::Hub(hub) => {
                let guard = hub.lock();
                if is_in(channel, hub.address()) {
                    return Some(Guard::Hub(guard));
                }
                drop(guard);
                if let GroupPlace::Line(_) = current(channel) {
                    return None;
                }
            }
            GroupPlace::Worker(worker) => {
                let hold = worker.hold();
                if !is_in(channel, worker.mark()) {
                    continue;
                }
                if worker.is_foreign_to_component() {
                    share(channel, worker, hold);
                    continue;
                }
                inflate_around(channel);
                return Some(Guard::Worker(hold));
            }
            GroupPlace::Line(line) => link::unlink(channel, line),
        }
    }
}

/// Links a half-channel with its only peer, and leaves their hub. Returns the leave if that is not
/// possible.
///
/// # Safety
/// `guard` is of the half-channel's group.
pub(crate) unsafe fn link(channel: &Channel, guard: Guard) -> Result<(), Guard> {
    let (Guard::Hub(mut state), GroupPlace::Hub(hub)) = (guard, current(channel)) else {
        unreachable!("only what is shared is asked to be linked");
    };
    // SAFETY: locked.
    if unsafe { !link::try_link(channel, &mut state) } {
        return Err(Guard::Hub(state));
    }
    let is_empty = state.members.is_empty();
    drop(state);
    if is_empty {
        hub.put_by();
    }
    Ok(())
}

/// Puts half-channels that have no place any more into a hub.
///
/// # Safety
/// The caller has leave to touch them.
pub(super) unsafe fn found(members: &[NonNull<Channel>]) {
    let hub = Hub::take();
    let mut state = hub.lock();
    for &member in members {
        adopt(hub, &mut state, member);
    }
}

/// Inflates the light waits at a half-channel and its peers into offers. The caller has leave.
fn inflate_around(channel: &Channel) {
    // SAFETY: as the caller promises; peers are alive.
    unsafe {
        light::inflate_at(channel);
        if channel.direction == Direction::In && channel.sole.get().is_null() {
            // Of many senders few wait, and they are listed.
            let ready = |index| channel.inner.with(|inner| inner.ready.get(index).copied());
            if channel.inner.is_made() {
                let heavy = channel.inner.with(|inner| inner.heavy);
                for out in (heavy..).map_while(ready) {
                    light::inflate_at(out.as_ref());
                }
                channel
                    .inner
                    .with_mut(|inner| inner.heavy = inner.ready.len());
            }
            return;
        }
        for index in 0..channel.peer_count() {
            light::inflate_at(channel.peer(index).as_ref());
        }
    }
}

/// Returns a shared group whose half-channels all belong to one worker to that worker, and links
/// two that are connected only to each other. Returns the leave if neither is possible. Only that
/// worker's thread may call this.
///
/// # Safety
/// `guard` is of the half-channel's group, and the caller runs a component of its home.
pub(crate) unsafe fn settle_grade(channel: &Channel, guard: Guard) -> Result<(), Guard> {
    // SAFETY: as the caller promises.
    unsafe { localize(channel, guard).or_else(|guard| link(channel, guard)) }
}

/// Largest group that is searched for members of other workers.
const SMALL_GROUP: usize = 16;

/// Makes a shared group local to its only worker, if that is the calling thread's.
///
/// # Safety
/// `guard` is of the half-channel's group.
unsafe fn localize(channel: &Channel, guard: Guard) -> Result<(), Guard> {
    let (Guard::Hub(mut state), GroupPlace::Hub(hub)) = (guard, current(channel)) else {
        unreachable!("only what is shared is made local");
    };
    // SAFETY: members are alive, and the hub is locked.
    let all_at = |worker: &Worker, state: &HubState| unsafe {
        let is_at = |member: &NonNull<Channel>| {
            let inner_allows = member.as_ref().inner.with(|inner| inner.watch.is_none());
            ptr::eq(member.as_ref().home(), worker)
                && inner_allows
                && !member.as_ref().is_of_one_that_comes()
        };
        // A single half-channel is about to be connected, by a caller that would have to ask for
        // leave.
        (2..=SMALL_GROUP).contains(&state.members.len()) && state.members.iter().all(is_at)
    };
    let stays = Mechanism::Local.is_off() || Mechanism::Return.is_off();
    let worker = carrier::own_worker().filter(|worker| !stays && all_at(worker, &state));
    let Some(worker) = worker else {
        return Err(Guard::Hub(state));
    };
    let hold = worker.hold();
    for member in state.members.drain(..) {
        // SAFETY: as above.
        move_to(unsafe { member.as_ref() }, worker.mark());
    }
    drop(hold);
    drop(state);
    hub.put_by();
    Ok(())
}

/// Makes a half-channel shared, whatever its grade, until it is reconsidered.
pub(crate) fn make_shared(channel: &Channel) {
    loop {
        match current(channel) {
            // A thread that is linking it or making it local from its former state has finished
            // once the lock is ours; then its place has changed.
            GroupPlace::Hub(hub) => {
                let _state = hub.lock();
                if is_in(channel, hub.address()) {
                    channel.misses.set(0);
                    return;
                }
            }
            GroupPlace::Line(line) => link::unlink(channel, line),
            GroupPlace::Worker(worker) => {
                let hold = worker.hold();
                if is_in(channel, worker.mark()) {
                    share(channel, worker, hold);
                }
            }
        }
    }
}

/// Makes the half-channels that a component was made with shared, until they are tried for a better
/// grade: it has migrated, or stays where it migrated to.
///
/// # Safety
/// It is ready, its home is the new one, and its old home's thread calls; or it runs the calling
/// code.
pub(crate) unsafe fn make_all_shared(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe {
        for port in abi::ports((*component).r#type) {
            let channel = &*block::port_place(component, port.offset).read();
            if channel.is_of(seat_of(component)) {
                make_shared(channel);
            }
        }
    }
}

/// Makes a worker's group shared.
fn share(channel: &Channel, worker: &'static Worker, hold: Hold) {
    let hub = Hub::take();
    let mut state = hub.lock();
    let mut next = 0;
    // SAFETY: held; peers are alive.
    unsafe { light::inflate_at(channel) };
    adopt(hub, &mut state, NonNull::from(channel));
    while let Some(&member) = state.members.get(next) {
        next += 1;
        // SAFETY: as above.
        let peers = unsafe { member.as_ref().peers() };
        for peer in peers {
            // SAFETY: as above.
            let other = unsafe { peer.as_ref() };
            if is_in(other, worker.mark()) {
                // SAFETY: as above.
                unsafe { light::inflate_at(other) };
                adopt(hub, &mut state, peer);
            }
        }
    }
    drop(state);
    drop(hold);
}

/// The locked hub, or hubs, of two half-channels, or their worker's leave.
pub(crate) enum PairGuard {
    One(HubGuard),
    Two {
        a: (&'static Hub, HubGuard),
        b: (&'static Hub, HubGuard),
    },
    Worker(Hold),
}

/// Acquires leave to touch two half-channels, and makes them shared if they belong to different
/// workers. Light waits are offers afterwards, if there are any at both.
pub(crate) fn lock_pair(a: &Channel, b: &Channel) -> PairGuard {
    loop {
        let (of_a, of_b) = match (current(a), current(b)) {
            (GroupPlace::Hub(of_a), GroupPlace::Hub(of_b)) => (of_a, of_b),
            (GroupPlace::Worker(of_a), GroupPlace::Worker(of_b)) if ptr::eq(of_a, of_b) => {
                let hold = of_a.hold();
                if is_in(a, of_a.mark()) && is_in(b, of_a.mark()) {
                    if a.slot.get() != 0 && b.slot.get() != 0 {
                        // SAFETY: held.
                        unsafe {
                            light::inflate_at(a);
                            light::inflate_at(b);
                        }
                    }
                    return PairGuard::Worker(hold);
                }
                continue;
            }
            (of_a, of_b) => {
                for (channel, place) in [(a, of_a), (b, of_b)] {
                    match place {
                        GroupPlace::Hub(_) => {}
                        GroupPlace::Line(line) => link::unlink(channel, line),
                        GroupPlace::Worker(worker) => {
                            let hold = worker.hold();
                            if is_in(channel, worker.mark()) {
                                share(channel, worker, hold);
                            }
                        }
                    }
                }
                continue;
            }
        };
        // The second is waited for only while the first is known to be right. A hub in reserve may
        // be taken by a holder of a worker's leave, who then waits for its lock.
        let pair = if ptr::eq(of_a, of_b) {
            PairGuard::One(of_a.lock())
        } else if of_a.number < of_b.number {
            let guard = of_a.lock();
            if !is_in(a, of_a.address()) {
                continue;
            }
            PairGuard::Two {
                a: (of_a, guard),
                b: (of_b, of_b.lock()),
            }
        } else {
            let guard = of_b.lock();
            if !is_in(b, of_b.address()) {
                continue;
            }
            PairGuard::Two {
                a: (of_a, of_a.lock()),
                b: (of_b, guard),
            }
        };
        if is_in(a, of_a.address()) && is_in(b, of_b.address()) {
            return pair;
        }
    }
}

/// Merges two hubs. The smaller one's members move, and it goes into reserve.
pub(crate) fn merge(pair: PairGuard) -> Guard {
    let (a, b) = match pair {
        PairGuard::One(guard) => return Guard::Hub(guard),
        PairGuard::Worker(hold) => return Guard::Worker(hold),
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
    Guard::Hub(large.1)
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
    move_to(channel, hub.address());
}

/// Moves a half-channel: the last access with its former leave.
pub(super) fn move_to(channel: &Channel, place: usize) {
    channel.place.store(place, Ordering::Release);
}

/// Removes all peers of a half-channel. A shared one gets a hub of its own.
pub(crate) fn set_apart(channel: &Channel) {
    loop {
        match current(channel) {
            GroupPlace::Worker(worker) => {
                let hold = worker.hold();
                if is_in(channel, worker.mark()) {
                    drop_peers(channel);
                    drop(hold);
                    return;
                }
            }
            GroupPlace::Line(line) => link::unlink(channel, line),
            GroupPlace::Hub(_) => return set_apart_from_hub(channel),
        }
    }
}

fn set_apart_from_hub(channel: &Channel) {
    // Before the lock below: no hub is locked while another is held, except in `connect`.
    let fresh = Hub::take();
    fresh.lock().members.push(NonNull::from(channel));
    let guard = lock_of(channel);
    drop_peers(channel);
    let moves = match guard {
        Guard::Hub(mut state) if state.members.len() > 1 => {
            leave(&mut state, channel);
            // SAFETY: locked.
            unsafe { channel.inner.with_mut(|inner| inner.place = 0) };
            move_to(channel, fresh.address());
            true
        }
        // Alone already, or local again since the check. Its leave ends here, before the other hub
        // is locked.
        other => {
            drop(other);
            false
        }
    };
    if !moves {
        fresh.lock().members.clear();
        fresh.put_by();
    }
}

/// Removes an unreferenced half-channel from its peers and its hub.
pub(crate) fn leave_for_good(channel: &Channel) {
    loop {
        match current(channel) {
            GroupPlace::Worker(worker) => {
                let hold = worker.hold();
                if is_in(channel, worker.mark()) {
                    drop_peers(channel);
                    drop(hold);
                    return;
                }
            }
            GroupPlace::Line(line) => link::unlink(channel, line),
            GroupPlace::Hub(hub) => {
                let mut state = hub.lock();
                if is_in(channel, hub.address()) {
                    drop_peers(channel);
                    leave(&mut state, channel);
                    let is_empty = state.members.is_empty();
                    drop(state);
                    if is_empty {
                        hub.put_by();
                    }
                    return;
                }
            }
        }
    }
}

/// Removes the half-channel and its peers from each other's lists. The caller has leave.
fn drop_peers(channel: &Channel) {
    // SAFETY: as the caller promises; peers are alive, since a half-channel leaves its peers before
    // it is freed, which needs the same leave.
    unsafe {
        for peer in channel.take_peers().as_slice() {
            if peer.as_ref().remove_peer(channel) {
                peer.as_ref().inner.with(|inner| {
                    if let Some(watch) = &inner.watch {
                        watch();
                    }
                });
            }
        }
    }
}

/// Removes a half-channel from its locked hub's members.
pub(super) fn leave(state: &mut HubState, channel: &Channel) {
    // SAFETY: locked.
    let place = unsafe { channel.inner.with(|inner| inner.place) };
    state.members.swap_remove(place);
    if let Some(moved) = state.members.get(place) {
        // SAFETY: a member, alive; locked.
        unsafe { moved.as_ref().inner.with_mut(|inner| inner.place = place) };
    }
}

/// Removes all entries of a component from a queue.
///
/// # Safety
/// The caller has a counted reference to the channel and no lock.
pub(crate) unsafe fn leave_queue(channel: &Channel, seat: &Seat) {
    let _guard = lock_of(channel);
    // SAFETY: locked.
    unsafe {
        channel.change_queue(|inner| inner.queue.retain(|waiter| !ptr::eq(waiter.seat, seat)));
    }
}
