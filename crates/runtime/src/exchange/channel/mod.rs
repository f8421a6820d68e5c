//! Half-channels: the objects that components send on and receive from.
//!
//! A half-channel has a direction, a payload type and a set of peers. All half-channels tied
//! together by connections are one group, with one leave for all: the lock of their [`hub`], or
//! their worker's (*local* grade; see [`light`]). `docs/internals/channels.md` describes the
//! protocol; in short: the second to arrive finds the first in a queue under the hub's lock, claims
//! its offer, releases the lock, hands the value over and wakes it.
//!
//! | field | written by | read by | under |
//! |---|---|---|---|
//! | `place` | connect, disconnect, sharing, with leave | all | re-read with leave |
//! | `inner`, `sole`, `slot`, `arm`, `served` | those with leave | those with leave | leave |
//! | `refs` | holders of references | | |
//! | the rest | only its maker | all | |

mod claim;
pub(crate) mod hub;
pub(crate) mod inflate;
pub(crate) mod light;
pub(crate) mod link;
pub(crate) mod peek;
mod queue;
mod rendezvous;
mod select;
pub(crate) mod servers;
mod transfer;
pub(crate) mod visits;
mod wiring;

#[cfg(all(test, loom))]
mod loom_servers;
#[cfg(all(test, loom))]
pub(crate) mod loom_tests;
#[cfg(all(test, loom))]
mod loom_workers;

use std::collections::VecDeque;
use std::ptr::{self, NonNull};

use crate::abi::{self, Component, Port, Type, Value};
use crate::exchange::block;
use crate::exchange::carrier::{self, Worker};
use crate::ground::exits::{self, REFERENCES_MAX};
use crate::ground::sync::{
    AtomicU32, AtomicUsize, Lazily, Ordering, PlainCell as Cell, boxed, fence,
};
use crate::hooks::{Canary, sings};
use crate::seats::registry::Label;
use crate::seats::seat::{Seat, seat_of};

pub(crate) use claim::{push, receivers_wait};
pub(crate) use hub::Guard;
pub(crate) use rendezvous::settle;
pub use rendezvous::{hearth_acknowledge, hearth_receive, hearth_release_sender, hearth_send};
pub use select::{hearth_select, hearth_select_waits};
#[cfg(all(test, loom))]
use wiring::connect;
pub(crate) use wiring::disconnect;
pub use wiring::{hearth_connect, hearth_disconnect};

/// Operations without a partner after which a shared connection is tried for a better grade: more
/// than the two or three of a connection made for one request and its answer. It is tried once:
/// some programs keep asking for things that the better grade cannot do.
const RECONSIDERED: u8 = 4;

/// The direction of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Direction {
    In,
    Out,
}

/// The purpose a half-channel was made for.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    /// A port of a component, in whose memory it lies, this many half-channels before the seat.
    Port { before_seat: u16 },
    /// Nothing: it is part of a [`Free`] one.
    Free,
}

/// A half-channel. Its first fields are laid out as in `hearth.h`.
#[repr(C)]
pub struct Channel {
    /// The mark of the worker it belongs to, or the address of its hub.
    place: AtomicUsize,
    /// The only peer; null for none or several.
    pub(crate) sole: Cell<*const Channel>,
    /// The component that waits here lightly: see [`light`].
    pub(crate) slot: Cell<usize>,
    pub(crate) inner: Lazily<Inner>,
    /// The arm of its select in which the component in the slot waits; otherwise the last known
    /// place among the peers of its peer.
    pub(crate) arm: Cell<u32>,
    /// For an in: the latest turn in which a select took from here, by its worker's count. A
    /// half-channel from another worker, or from before the count wrapped, may be one turn early or
    /// late. For an out: the number of lists of ready outs that contain it.
    pub(crate) served: Cell<u32>,
    refs: AtomicU32,
    /// Its distance from its component's seat, in half-channels; 0 for a free one.
    before_seat: u16,
    pub(crate) direction: Direction,
    /// Operations without a partner while its connection was shared: see [`RECONSIDERED`].
    misses: Cell<u8>,
}

/// A half-channel outside any port, with the fields that a port finds in its component's type.
#[repr(C)]
struct Free {
    channel: Channel,
    payload: *const Type,
    /// The worker of the component that made it; null for a thread. Changes only in models.
    home: std::sync::atomic::AtomicPtr<Worker>,
    /// The number of that component, 0 for none; the maker nearly always uses it.
    maker: u64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Channel>() == 48);
const _: () = assert!(size_of::<Channel>().is_multiple_of(align_of::<Seat>()));

/// A callback for half-channels that stand for something outside: called when their last connection
/// ends. Must neither wait nor touch channels.
pub(crate) type Watch = Box<dyn Fn() + Send + Sync>;

// As `hearth.h` has it; a test of the header holds it to the same numbers.
#[cfg(not(loom))]
const _: () = assert!(
    std::mem::offset_of!(Channel, place) == 0
        && std::mem::offset_of!(Channel, sole) == 8
        && std::mem::offset_of!(Channel, slot) == 16
        && cfg!(not(loom)) == (std::mem::offset_of!(Channel, arm) == 32)
        && std::mem::offset_of!(Channel, served) == std::mem::offset_of!(Channel, arm) + 4
);

/// Fields that few half-channels need, under leave.
#[derive(Default)]
pub(crate) struct Inner {
    /// The waiting components: senders if the half-channel is an out, receivers if an in. Entries
    /// of a select that was served elsewhere stay until that component has settled.
    pub(crate) queue: VecDeque<Waiter>,
    /// The peers, if several. Not counted: a half-channel leaves its peers before it is freed.
    several: Vec<NonNull<Channel>>,
    /// The peers of an in with several: all with a waiting component, in turn, and some that had
    /// one.
    ready: VecDeque<NonNull<Channel>>,
    /// Number of peers, from the first, without light waits.
    heavy: usize,
    /// Index of the peer to try first: the one after the last partner. Of an in with many peers:
    /// not 0 if the tick is next in turn.
    next: usize,
    /// Index in the hub's members.
    place: usize,
    /// A tick not yet taken (in only).
    stash: Option<Value>,
    /// Called when the last peer leaves, with leave.
    watch: Option<Watch>,
    /// The port of a component in another process that it stands for.
    label: Option<Label>,
}

impl Inner {
    /// Whether this peer is listed as ready.
    fn lists(&self, out: &Channel) -> bool {
        // With one peer it is listed there or nowhere.
        out.served.get() > 0
            && (!out.sole.get().is_null() || self.ready.contains(&NonNull::from(out)))
    }

    /// Takes the first ready peer.
    fn take_ready(&mut self) -> Option<NonNull<Channel>> {
        self.take_ready_at(0)
    }

    fn take_ready_at(&mut self, place: usize) -> Option<NonNull<Channel>> {
        let out = self.ready.remove(place)?;
        self.heavy -= usize::from(place < self.heavy);
        // SAFETY: peers are alive, and the caller has leave.
        let listed = unsafe { &out.as_ref().served };
        listed.set(listed.get() - 1);
        Some(out)
    }

    /// Removes a peer from the ready list.
    fn unlist(&mut self, out: &Channel) {
        if self.lists(out) {
            let is_it = |other: &NonNull<Channel>| ptr::eq(other.as_ptr(), out);
            let place = self.ready.iter().position(is_it);
            place.and_then(|place| self.take_ready_at(place));
        }
    }

    /// Removes one of several peers. The last one gets its place.
    fn remove(&mut self, peer: &Channel) {
        let is_it = |other: &NonNull<Channel>| ptr::eq(other.as_ptr(), peer);
        let noted = peer.arm.get() as usize;
        let place = match self.several.get(noted).is_some_and(is_it) {
            true => Some(noted),
            false => self.several.iter().position(is_it),
        };
        let Some(place) = place else {
            unreachable!("peers know each other");
        };
        self.several.swap_remove(place);
        if let Some(moved) = self.several.get(place) {
            // SAFETY: as above.
            unsafe { moved.as_ref().note_place(place) };
            // The turn stays with the peer that had it.
            if self.next == self.several.len() {
                self.next = place;
            }
        }
        if peer.direction == Direction::Out {
            self.unlist(peer);
        }
    }

    /// Removes all of several peers.
    fn clear(&mut self) -> Vec<NonNull<Channel>> {
        while self.take_ready().is_some() {}
        self.next = 0;
        std::mem::take(&mut self.several)
    }
}

/// The former peers of a half-channel.
enum Peers {
    One(NonNull<Channel>),
    Several(Vec<NonNull<Channel>>),
}

impl Peers {
    fn as_slice(&self) -> &[NonNull<Channel>] {
        match self {
            Peers::One(peer) => std::slice::from_ref(peer),
            Peers::Several(peers) => peers,
        }
    }
}

/// A component that waits at a half-channel. It is blocked, or about to be, in the operation that
/// this entry belongs to, and removes the entry before its next.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) seat: *const Seat,
    /// The arm of its select; 0 otherwise.
    pub(crate) arm: u32,
    /// It will hold its sender.
    pub(crate) acknowledge: bool,
}

// SAFETY: its pointers are to peers, which leave it before they are freed, to components that wait
// here, and to static types; they are only followed with leave.
unsafe impl Sync for Inner {}
// SAFETY: as above.
unsafe impl Send for Inner {}

// SAFETY: see the table above; peers are only followed under the hub's lock.
unsafe impl Sync for Channel {}
// SAFETY: as above.
unsafe impl Send for Channel {}

impl Channel {
    /// A half-channel without peers, counted once, for the caller.
    pub(crate) fn new(
        payload: *const Type,
        direction: Direction,
        home: *const Worker,
    ) -> *mut Channel {
        let free = Box::into_raw(boxed(std::mem::MaybeUninit::<Free>::uninit()));
        let free = free.cast::<Free>();
        // Its payload is found by its address.
        let _ = free.expose_provenance();
        // SAFETY: a fresh block of the right size.
        unsafe {
            (&raw mut (*free).payload).write(payload);
            (&raw mut (*free).home).write(home.cast_mut().into());
            (&raw mut (*free).maker).write(0);
            Channel::make_at(&raw mut (*free).channel, direction, Origin::Free, home);
            &raw mut (*free).channel
        }
    }

    /// Makes one with a name and a watch on its peers.
    #[cfg(not(loom))]
    pub(crate) fn new_watched(
        payload: *const Type,
        direction: Direction,
        label: Label,
        watch: Watch,
    ) -> *mut Channel {
        let channel = Channel::new(payload, direction, ptr::null());
        // SAFETY: no other thread knows of it.
        unsafe {
            (*channel).inner.with_mut(|inner| {
                inner.watch = Some(watch);
                inner.label = Some(label);
            });
        }
        channel
    }

    /// Makes a half-channel in a block of memory.
    ///
    /// # Safety
    /// The block is the half-channel's until that is freed, and its surroundings are those that its
    /// origin implies.
    pub(crate) unsafe fn make_at(
        channel: *mut Channel,
        direction: Direction,
        origin: Origin,
        home: *const Worker,
    ) {
        let (place, hub) = hub::first_place(home);
        // SAFETY: as the caller promises.
        unsafe {
            channel.write(Channel {
                place: AtomicUsize::new(place),
                sole: Cell::new(ptr::null()),
                slot: Cell::new(0),
                inner: Lazily::new(),
                arm: Cell::new(0),
                served: Cell::new(0),
                refs: AtomicU32::new(1),
                before_seat: match origin {
                    Origin::Port { before_seat } => before_seat,
                    Origin::Free => 0,
                },
                direction,
                misses: Cell::new(0),
            });
        }
        if let Some(hub) = hub {
            hub.lock()
                .members
                .push(NonNull::new(channel).expect("a block is not null"));
        }
    }

    /// The component whose port it was made for.
    pub(crate) fn owner(&self) -> Option<&Seat> {
        let bytes = self.before_seat as usize * size_of::<Channel>();
        let seat = ptr::with_exposed_provenance::<Seat>(ptr::from_ref(self).addr() + bytes);
        // SAFETY: the owner's memory lives as long as the half-channel, which lies in it.
        (bytes > 0).then(|| unsafe { &*seat })
    }

    /// Its port in this owner.
    fn port_of(&self, owner: &Seat) -> &'static Port {
        // SAFETY: as in `owner`; types are static.
        let ports = unsafe { abi::ports((*owner.component()).r#type) };
        &ports[ports.len() - self.before_seat as usize]
    }

    /// The number of the component that made it, if free; 0 for none.
    fn maker(&self) -> u64 {
        match self.before_seat {
            0 => self.free().maker,
            _ => 0,
        }
    }

    /// The fields beside a free half-channel.
    fn free(&self) -> &Free {
        debug_assert!(self.before_seat == 0, "it is a port");
        // SAFETY: a half-channel outside any port is the beginning of a `Free`.
        unsafe { &*ptr::with_exposed_provenance(ptr::from_ref(self).addr()) }
    }

    /// The type of the values that it carries.
    pub(crate) fn payload(&self) -> *const Type {
        match self.owner() {
            Some(owner) => self.port_of(owner).payload,
            None => self.free().payload,
        }
    }

    /// Its name in reports.
    ///
    /// # Safety
    /// The caller has leave.
    pub(crate) unsafe fn label(&self) -> Label {
        if let Some(owner) = self.owner() {
            let identity = owner.identity();
            return Label {
                owner: identity.id,
                // SAFETY: the owner's memory lives as long as the half-channel.
                owner_type: unsafe { (*owner.component()).r#type },
                owner_number: identity.number,
                port: self.port_of(owner).name,
            };
        }
        let nothing = Label {
            owner: 0,
            owner_type: ptr::null(),
            owner_number: 0,
            port: ptr::null(),
        };
        // SAFETY: as the caller promises.
        unsafe { self.inner.with(|inner| inner.label) }.unwrap_or(nothing)
    }

    /// The pointer that compiled programs use.
    pub(crate) fn opaque(&self) -> *const abi::Channel {
        ptr::from_ref(self).cast()
    }

    /// Its component's number and its index, if it is a port.
    pub(crate) fn port(&self) -> Option<(u64, u16)> {
        let owner = self.owner()?;
        // SAFETY: the owner's memory lives as long as the half-channel; types are static.
        let ports = unsafe { abi::ports((*owner.component()).r#type) }.len();
        let behind =
            (ptr::from_ref(owner).addr() - ptr::from_ref(self).addr()) / size_of::<Channel>();
        Some((owner.id, ports.checked_sub(behind)? as u16))
    }

    /// Whether it lies in this component's memory.
    pub(crate) fn is_of(&self, owner: &Seat) -> bool {
        self.owner().is_some_and(|mine| ptr::eq(mine, owner))
    }

    // ---- peers; the caller has leave ----------------------------------------------------------

    /// Number of its peers.
    ///
    /// # Safety
    /// The caller has leave.
    pub(crate) unsafe fn peer_count(&self) -> usize {
        if !self.sole.get().is_null() {
            return 1;
        }
        // SAFETY: as the caller promises.
        unsafe { self.inner.with(|inner| inner.several.len()) }
    }

    /// One of them.
    ///
    /// # Safety
    /// As for `peer_count`, of which `index` is below.
    pub(crate) unsafe fn peer(&self, index: usize) -> NonNull<Channel> {
        if let Some(sole) = NonNull::new(self.sole.get().cast_mut()) {
            return sole;
        }
        // SAFETY: as the caller promises.
        unsafe { self.inner.with(|inner| inner.several[index]) }
    }

    /// All of them.
    ///
    /// # Safety
    /// As for `peer_count`.
    pub(crate) unsafe fn peers(&self) -> Vec<NonNull<Channel>> {
        // SAFETY: as the caller promises.
        unsafe {
            (0..self.peer_count())
                .map(|index| self.peer(index))
                .collect()
        }
    }

    /// # Safety
    /// As for `peer_count`; `peer` is not a peer yet.
    unsafe fn add_peer(&self, peer: &Channel) {
        // SAFETY: as the caller promises.
        unsafe {
            if self.peer_count() == 0 {
                self.sole.set(peer);
                return;
            }
            let former = NonNull::new(self.sole.replace(ptr::null()).cast_mut());
            for peer in former.into_iter().chain([NonNull::from(peer)]) {
                self.inner.with_mut(|inner| {
                    peer.as_ref().note_place(inner.several.len());
                    inner.several.push(peer);
                });
                self.list_if_ready(peer.as_ref());
            }
        }
    }

    /// Records its place among a peer's peers.
    fn note_place(&self, place: usize) {
        if self.slot.get() & light::SELECT == 0 {
            self.arm.set(place as u32);
        }
    }

    /// Lists a peer that may have a waiting component, if this is an in with several.
    ///
    /// # Safety
    /// As for `peer_count`, of several.
    unsafe fn list_if_ready(&self, peer: &Channel) {
        if self.direction == Direction::In && peer.slot.get() != 0 {
            // SAFETY: as the caller promises.
            unsafe { self.list(peer) };
        }
    }

    /// Lists a peer where a component begins to wait.
    ///
    /// # Safety
    /// As for `peer_count`, of several; it is an in.
    pub(crate) unsafe fn list(&self, out: &Channel) {
        // SAFETY: as the caller promises.
        unsafe {
            self.inner.with_mut(|inner| {
                // An entry of an earlier wait.
                inner.unlist(out);
                if sings(Canary::Starvation) {
                    inner.ready.push_front(NonNull::from(out));
                    inner.heavy = 0;
                } else {
                    inner.ready.push_back(NonNull::from(out));
                }
                out.served.set(out.served.get() + 1);
            });
        }
    }

    /// Number of peers, of several, that may have a sender. The first of them has one.
    ///
    /// # Safety
    /// The caller has leave.
    unsafe fn ready_count(&self) -> usize {
        // SAFETY: as the caller promises; peers are alive.
        unsafe {
            if !self.inner.is_made() {
                return 0;
            }
            self.inner.with_mut(|inner| {
                let is_stale = |out: NonNull<Channel>| out.as_ref().slot.get() == 0;
                while inner.ready.front().copied().is_some_and(is_stale) {
                    inner.take_ready();
                }
                inner.ready.len()
            })
        }
    }

    /// Removes a peer; true if it was the last.
    ///
    /// # Safety
    /// As for `peer_count`; `peer` is a peer.
    unsafe fn remove_peer(&self, peer: &Channel) -> bool {
        if ptr::eq(self.sole.get(), peer) {
            self.sole.set(ptr::null());
            return true;
        }
        // SAFETY: as the caller promises.
        unsafe {
            self.inner.with_mut(|inner| {
                inner.remove(peer);
                if let [sole] = inner.several[..] {
                    inner.clear();
                    self.sole.set(sole.as_ptr());
                }
            });
        }
        false
    }

    /// Removes all peers.
    ///
    /// # Safety
    /// As for `peer_count`.
    unsafe fn take_peers(&self) -> Peers {
        if let Some(sole) = NonNull::new(self.sole.replace(ptr::null()).cast_mut()) {
            return Peers::One(sole);
        }
        // SAFETY: as the caller promises.
        Peers::Several(unsafe {
            match self.inner.is_made() {
                true => self.inner.with_mut(Inner::clear),
                false => Vec::new(),
            }
        })
    }

    /// Changes the queue or the pending tick, and updates the slot.
    ///
    /// # Safety
    /// The caller has leave, and no component waits here lightly.
    pub(crate) unsafe fn change_queue<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        // SAFETY: as the caller promises.
        let (result, is_empty) = unsafe {
            self.inner.with_mut(|inner| {
                let result = change(inner);
                (result, inner.queue.is_empty() && inner.stash.is_none())
            })
        };
        let slot = if is_empty { 0 } else { light::HEAVY };
        // A component that waited here lightly was listed then.
        if self.slot.replace(slot) == 0 && !is_empty && self.direction == Direction::Out {
            // SAFETY: as the caller promises.
            unsafe { self.be_listed() };
        }
        result
    }

    /// Lists this out, where a component now waits, at those of its peers that have several.
    ///
    /// # Safety
    /// The caller has leave.
    unsafe fn be_listed(&self) {
        // SAFETY: as the caller promises; peers are alive.
        unsafe {
            for index in 0..self.peer_count() {
                let into = self.peer(index).as_ref();
                if into.sole.get().is_null() {
                    into.list(self);
                }
            }
        }
    }

    /// Counts an operation without a partner on a shared connection; true if the connection is due
    /// for a better grade.
    pub(crate) fn is_reconsidered(&self) -> bool {
        let misses = self.misses.get().saturating_add(1);
        self.misses.set(misses);
        misses == RECONSIDERED
    }

    /// Its place; stale at once unless the caller has leave.
    pub(crate) fn where_it_is(&self) -> usize {
        self.place.load(Ordering::Acquire)
    }

    /// Whether it was made for the component's own worker.
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn is_at_home_with(&self, component: *mut Component) -> bool {
        let home = self.home();
        !home.is_null() && ptr::eq(home, carrier::home_of(component))
    }

    /// The worker of the component it was made for, or by; null for a thread. A port's worker
    /// changes when its component migrates, which then makes it shared
    /// ([`hub::make_all_shared`]).
    pub(crate) fn home(&self) -> *const Worker {
        match self.owner() {
            Some(owner) => carrier::worker_of(carrier::home_of(owner.component())),
            None => self.free().home.load(Ordering::Relaxed),
        }
    }

    /// Whether it is a port of a server that migrates to its callers. Such ports are never made
    /// local or linked.
    pub(crate) fn is_of_one_that_comes(&self) -> bool {
        self.owner().is_some_and(Seat::comes_to_callers)
    }

    /// Records, in a model, that the component that made it has migrated.
    #[cfg(loom)]
    pub(crate) fn move_home(&self, home: &'static Worker) {
        let home = ptr::from_ref(home).cast_mut();
        self.free().home.store(home, Ordering::Relaxed);
    }

    /// Whether its place is this worker's mark, line's mark, or hub's address.
    pub(crate) fn is_at(&self, place: usize) -> bool {
        // Acquire pairs with the Release that put it there.
        self.place.load(Ordering::Acquire) == place
    }

    /// Adds a reference.
    pub(crate) fn retain(&self) {
        // Relaxed: the caller already holds one.
        if self.refs.fetch_add(1, Ordering::Relaxed) > REFERENCES_MAX {
            exits::too_many_references("a half-channel");
        }
    }

    /// Adds a reference for a component's wait here. Not compared with the maximum: there are fewer
    /// components than that.
    pub(crate) fn retain_for_wait(&self) {
        // As above.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of references, asked by a holder of one. What holders did before they gave
    /// theirs back has happened.
    pub(crate) fn references(&self) -> u32 {
        self.refs.load(Ordering::Acquire)
    }
}

/// Releases a reference; the last one removes the half-channel from its peers and frees it.
///
/// # Safety
/// The caller has a counted reference, and no hub locked.
pub(crate) unsafe fn release(channel: *const Channel) {
    // SAFETY: alive until the count is zero.
    unsafe {
        // Release: this holder's use happens before the freeing; Acquire by the fence.
        if (*channel).refs.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        hub::leave_for_good(&*channel);
        let owner = (*channel).owner().map(ptr::from_ref);
        match owner {
            None => drop(Box::from_raw(channel.cast_mut().cast::<Free>())),
            Some(owner) => {
                ptr::drop_in_place(channel.cast_mut());
                block::let_go(owner);
            }
        }
    }
}

/// Makes a half-channel.
///
/// # Safety
/// `self` runs this, or is null; `payload` is a valid type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_channel_new(
    this: *mut Component,
    payload: *const Type,
    direction: u32,
) -> *mut Channel {
    let home = match this.is_null() {
        true => ptr::null(),
        false => carrier::home_of(this),
    };
    let home = carrier::worker_of(home);
    let channel = Channel::new(payload, direction_of(direction), home);
    if !this.is_null() {
        // SAFETY: a free half-channel that no other thread knows of.
        unsafe { (*channel.cast::<Free>()).maker = seat_of(this).id };
    }
    channel
}

pub(crate) fn direction_of(number: u32) -> Direction {
    if number == 0 {
        Direction::In
    } else {
        Direction::Out
    }
}

/// Adds a reference.
///
/// # Safety
/// `channel` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_channel_retain(channel: *mut Channel) -> *mut Channel {
    // SAFETY: as the caller promises.
    if let Some(channel) = unsafe { channel.as_ref() } {
        channel.retain();
    }
    channel
}

/// Releases a reference.
///
/// # Safety
/// `channel` is null or a counted reference of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_channel_release(channel: *mut Channel) {
    if !channel.is_null() {
        // SAFETY: as the caller promises; compiled code holds no locks.
        unsafe { release(channel) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ground::exits::tests::assert_unfit;

    #[test]
    fn references_do_not_run_over() {
        let why = "hearth: a half-channel cannot have more than 2147483647 references";
        assert_unfit(
            "exchange::channel::tests::references_do_not_run_over",
            why,
            || {
                let channel = Channel::new(ptr::null(), Direction::In, ptr::null());
                // SAFETY: just made, and this test's alone.
                let channel = unsafe { &*channel };
                channel.refs.store(REFERENCES_MAX, Ordering::Relaxed);
                channel.retain();
                channel.retain();
            },
        );
    }
}
