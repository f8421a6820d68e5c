//! Half-channels: what components send on and receive from.
//!
//! A half-channel has a direction, a payload type and a set of peers. All half-channels that
//! connections tie together are one group, with one leave for all: the lock of their [`hub`], or
//! their worker's (*local* grade; see [`light`]). The protocol is written down in `docs/internals/channels.md`; in short: whoever comes second finds
//! the first in a queue under the hub's lock, claims its offer, leaves the lock, hands the value
//! over and wakes it.
//!
//! | field | written by | read by | under |
//! |---|---|---|---|
//! | `place` | connect, disconnect, sharing, with leave | all | re-read with leave |
//! | `inner`, `sole`, `slot`, `arm`, `served` | those with leave | those with leave | leave |
//! | `refs` | holders of references | | |
//! | the rest | nobody after creation | all | |

mod claim;
pub(crate) mod hub;
pub(crate) mod light;
pub(crate) mod link;
mod rendezvous;
mod select;
mod transfer;
mod wiring;

#[cfg(all(test, loom))]
mod loom_tests;

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_char;
use std::ptr::{self, NonNull};

use crate::abi::{Component, ComponentType, Type, Value};
use crate::carrier::Worker;
use crate::heap;
use crate::seat::Seat;
use crate::sync::{AtomicUsize, Guarded, Ordering, fence};

pub(crate) use claim::{push, receivers_wait};
pub(crate) use rendezvous::settle;
pub use rendezvous::{hearth_acknowledge, hearth_receive, hearth_release_sender, hearth_send};
pub use select::hearth_select;
#[cfg(all(test, loom))]
use wiring::connect;
pub(crate) use wiring::disconnect;
pub use wiring::{hearth_connect, hearth_disconnect};

/// How often a connection is linked.
const LINKS: u8 = 3;

/// Which way values go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// The port a half-channel was made for, for reports; free ones have none.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pub(crate) owner: u64,
    pub(crate) owner_type: *const ComponentType,
    pub(crate) owner_number: u32,
    pub(crate) port: *const c_char,
}

impl Label {
    pub(crate) const FREE: Label = Label {
        owner: 0,
        owner_type: ptr::null(),
        owner_number: 0,
        port: ptr::null(),
    };
}

/// A half-channel. It begins as `hearth.h` has it.
#[repr(C)]
pub struct Channel {
    /// The mark of the worker it belongs to, or the address of its hub.
    place: AtomicUsize,
    /// The only peer; null if there is none or are several.
    pub(crate) sole: Cell<*const Channel>,
    /// Who waits here, lightly: see [`light`].
    pub(crate) slot: Cell<usize>,
    /// Which arm of its select the component in the slot waits in.
    pub(crate) arm: Cell<u32>,
    /// When a select took from here last, by its component's count.
    pub(crate) served: Cell<u32>,
    /// The worker of the component it was made for, or by; null for a thread.
    home: *const Worker,
    pub(crate) direction: Direction,
    pub(crate) payload: *const Type,
    pub(crate) label: Label,
    refs: AtomicUsize,
    pub(crate) inner: Guarded<Inner>,
    /// Called when the last peer leaves, under the hub's lock.
    watch: Option<Watch>,
}

/// For half-channels that stand for something outside: they learn that nobody is connected to them
/// any more. Must neither wait nor touch channels.
pub(crate) type Watch = Box<dyn Fn() + Send + Sync>;

/// What the hub's lock guards.
pub(crate) struct Inner {
    /// Who waits here: senders if the half-channel is an out, receivers if an in. Entries of a
    /// select that was served elsewhere stay until that component has settled.
    pub(crate) queue: VecDeque<Waiter>,
    /// Not counted: a half-channel that goes leaves its peers first.
    pub(crate) peers: Vec<NonNull<Channel>>,
    /// Index of the peer to try first: the one after the last partner.
    next: usize,
    /// Index in the hub's members.
    place: usize,
    /// A tick that nobody has taken yet (in only).
    stash: Option<Value>,
    /// How often it may still be linked; a connection that keeps asking for more than a link can do
    /// stays shared.
    links_left: u8,
}

/// Somebody who waits at a half-channel. Its component is blocked, or about to be, in an operation
/// that this entry is part of, and takes the entry away before its next.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) seat: *const Seat,
    /// Which arm of its select; 0 otherwise.
    pub(crate) arm: u32,
    /// It will hold its sender.
    pub(crate) acknowledge: bool,
}

// SAFETY: see the table above; peers are only followed under the hub's lock.
unsafe impl Sync for Channel {}
// SAFETY: as above.
unsafe impl Send for Channel {}

impl Channel {
    /// A half-channel without peers, counted once, for the caller.
    pub(crate) fn new(
        payload: *const Type,
        direction: Direction,
        label: Label,
        home: *const Worker,
    ) -> *mut Channel {
        Channel::make(payload, direction, label, home, None)
    }

    /// The same, with a watch on its peers.
    #[cfg(not(loom))]
    pub(crate) fn new_watched(
        payload: *const Type,
        direction: Direction,
        label: Label,
        watch: Watch,
    ) -> *mut Channel {
        Channel::make(payload, direction, label, ptr::null(), Some(watch))
    }

    fn make(
        payload: *const Type,
        direction: Direction,
        label: Label,
        home: *const Worker,
        watch: Option<Watch>,
    ) -> *mut Channel {
        let (place, hub) = hub::first_place(home);
        let channel = Box::into_raw(heap::boxed(Channel {
            place: AtomicUsize::new(place),
            sole: Cell::new(ptr::null()),
            slot: Cell::new(0),
            arm: Cell::new(0),
            served: Cell::new(0),
            home,
            direction,
            payload,
            label,
            refs: AtomicUsize::new(1),
            inner: Guarded::new(Inner {
                queue: VecDeque::new(),
                peers: Vec::new(),
                next: 0,
                place: 0,
                stash: None,
                links_left: LINKS,
            }),
            watch,
        }));
        if let Some(hub) = hub {
            hub.lock()
                .members
                .push(NonNull::new(channel).expect("a box is not null"));
        }
        channel
    }

    /// Changes the peers, and keeps `sole` true.
    ///
    /// # Safety
    /// The caller has leave.
    pub(crate) unsafe fn change_peers<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.inner.with_mut(|inner| {
                let result = change(inner);
                self.sole.set(match inner.peers[..] {
                    [only] => only.as_ptr(),
                    _ => ptr::null(),
                });
                result
            })
        }
    }

    /// Changes the queue or the pending tick, and has the slot say whether there is anything.
    ///
    /// # Safety
    /// The caller has leave, and nobody waits here lightly.
    pub(crate) unsafe fn change_queue<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.inner.with_mut(|inner| {
                let result = change(inner);
                let is_empty = inner.queue.is_empty() && inner.stash.is_none();
                self.slot.set(if is_empty { 0 } else { light::HEAVY });
                result
            })
        }
    }

    /// Its place, outdated at once unless the caller has leave.
    pub(crate) fn where_it_is(&self) -> usize {
        self.place.load(Ordering::Acquire)
    }

    /// Is it the component's own worker that it was made for?
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn is_at_home_with(&self, component: *mut Component) -> bool {
        // SAFETY: as the caller promises.
        !self.home.is_null() && ptr::eq(self.home, unsafe { (*component).home })
    }

    /// Is it at this worker's mark, line's mark, or hub's address?
    pub(crate) fn is_at(&self, place: usize) -> bool {
        // Acquire pairs with the Release that put it there.
        self.place.load(Ordering::Acquire) == place
    }

    pub(crate) fn retain(&self) {
        // Relaxed: whoever adds a reference has one.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// How many references there are, by one of their holders.
    pub(crate) fn references(&self) -> usize {
        self.refs.load(Ordering::Relaxed)
    }
}

/// Gives one reference back; the last one takes the half-channel away from its peers and frees it.
///
/// # Safety
/// The caller has a counted reference, and no hub locked.
pub(crate) unsafe fn release(channel: *const Channel) {
    // SAFETY: alive until the count is nought.
    unsafe {
        // Release: this holder's use happens before the freeing; Acquire by the fence.
        if (*channel).refs.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        hub::leave_for_good(&*channel);
        drop(Box::from_raw(channel.cast_mut()));
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
    // SAFETY: as the caller promises.
    let home = unsafe { this.as_ref() }.map_or(ptr::null(), |this| this.home);
    Channel::new(payload, direction_of(direction), Label::FREE, home)
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

/// Gives a reference back.
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
