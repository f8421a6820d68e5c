//! The bell that wakers ring, and errands that other threads leave for a component.
//!
//! A waker *rings*: it sets the bell and calls off the component's wait, a rendezvous too. The
//! component then polls its future, and operations that are still wanted begin again. A ring while
//! the component runs is seen before it waits: the waker sets the bell before it looks at the wait,
//! and the component looks at the bell after its wait has begun. Between the two is the fence of
//! `OfferState::open`, or, for light waits, the barrier of [`crate::exchange::carrier::Hold`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, Weak};
use std::task::Wake;

use super::errands::Errands;
use super::life::{self, Leftover};
use super::visit;
use crate::abi::{Component, ROUSED, Step};
use crate::c;
use crate::exchange::channel::Channel;
use crate::exchange::channel::inflate::inflate;
use crate::exchange::{carrier, channel};
use crate::ground::sync::lock_std as lock;
use crate::seats::seat::seat_of;

/// A counted reference to a half-channel, for a component that may be waiting there.
pub(super) struct Kept(*const Channel);

// SAFETY: half-channels are shared by design.
unsafe impl Send for Kept {}

impl Kept {
    /// # Safety
    /// The half-channel is alive.
    unsafe fn new(channel: *mut Channel) -> Kept {
        // SAFETY: as the caller promises.
        Kept(unsafe { c::hearth_channel_retain(channel) })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: counted; no lock of the channels' is held where one is dropped.
        unsafe { c::hearth_channel_release(self.0.cast_mut()) };
    }
}

/// An errand left for a component.
pub(super) enum Errand {
    /// The future of this operation was dropped.
    Abandoned(u64, Box<dyn Leftover>),
    /// The owner of this half-channel has released it, and the component may still wait there.
    Kept(Kept),
}

pub(super) struct Bell {
    component: *mut Component,
    is_set: AtomicBool,
    is_over: AtomicBool,
    pub(super) errands: Errands<Errand>,
}

// SAFETY: the component is counted, and its seat is shared by design.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// The bell of a component with this number, which takes over a counted reference to it.
    ///
    /// # Safety
    /// The reference is the caller's.
    pub(super) unsafe fn new(component: *mut Component, id: u64) -> Arc<Bell> {
        let bell = Arc::new(Bell {
            component,
            is_set: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            errands: Errands::new(),
        });
        with_bells(|bells| bells.insert(id, Arc::downgrade(&bell)));
        bell
    }

    /// Ends the bell with its component: it is not rung any more. Returns the last errands.
    pub(super) fn end(&self, id: u64) -> Vec<Errand> {
        with_bells(|bells| bells.remove(&id));
        self.is_over.store(true, Ordering::Relaxed);
        self.errands.close()
    }

    fn ring(&self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Release: the future sees the waker's earlier writes when it is polled.
        if self.is_set.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_own = life::with_current(|life| life.is_some_and(|life| life.has_bell(self)));
        if is_own {
            // It looks at the bell before it waits.
            return;
        }
        fence(Ordering::SeqCst);
        let _visit = visit(self.component);
        // SAFETY: counted.
        unsafe { rouse(self.component) };
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Clears the bell: the component is about to check everything that it may have been rung for.
    pub(super) fn unset(&self) {
        // A ring that this load misses is seen after the next wait has begun, like a later one.
        if self.is_set.load(Ordering::Relaxed) {
            // Acquire pairs with the ring's Release.
            self.is_set.swap(false, Ordering::Acquire);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: counted.
        unsafe { c::hearth_component_release(self.component) };
    }
}

/// Calls off a component's wait, unless it is already complete.
///
/// # Safety
/// The component is alive, and the caller counted as running.
pub(super) unsafe fn rouse(component: *mut Component) {
    inflate(component);
    // SAFETY: as the caller promises; called off, the component is the caller's until it is woken.
    unsafe {
        let seat = seat_of(component);
        if seat.state.call_off() {
            (*component).raised = ROUSED;
            (*component).outcome = Step::Raised as u8;
            carrier::wake(seat);
        }
    }
}

/// Calls off the wait that the running component has just begun. False if it is already complete:
/// then the component is woken for it.
///
/// # Safety
/// The component runs the calling code.
pub(super) unsafe fn call_off_own(component: *mut Component) -> bool {
    inflate(component);
    // SAFETY: called off by itself, the component does not have to be woken.
    unsafe {
        let seat = seat_of(component);
        if !seat.state.call_off() {
            return false;
        }
        channel::settle(seat);
        // It continues, and may be detached again.
        let _ = carrier::Operation::begin(component).end(Step::Done);
    }
    true
}

static BELLS: Mutex<Option<HashMap<u64, Weak<Bell>>>> = Mutex::new(None);

fn with_bells<R>(action: impl FnOnce(&mut HashMap<u64, Weak<Bell>>) -> R) -> R {
    action(lock(&BELLS).get_or_insert_default())
}

/// Returns the bell of a life that has not ended.
fn bell_of(id: u64) -> Option<Arc<Bell>> {
    with_bells(|bells| bells.get(&id).and_then(Weak::upgrade))
}

/// Tells whether the life is still running.
pub(super) fn is_there(id: u64) -> bool {
    with_bells(|bells| bells.contains_key(&id))
}

/// Rings a component, if it has not ended.
pub(super) fn ring(id: u64) {
    if let Some(bell) = bell_of(id) {
        bell.ring();
    }
}

/// Abandons an operation of the life with this number: its future is dropped.
pub(super) fn abandon(id: u64, number: u64, leftover: Box<dyn Leftover>) {
    let own = life::with_current(|life| match life {
        Some(life) if life.id == id => {
            life.abandon(number, leftover);
            None
        }
        _ => Some(leftover),
    });
    let Some(leftover) = own else { return };
    // If the life has ended, the operation has left nothing, and the leftover is dropped here.
    if let Some(bell) = bell_of(id)
        && bell
            .errands
            .leave(Errand::Abandoned(number, leftover))
            .is_ok()
    {
        bell.ring();
    }
}

/// Gives each life that may be waiting at a half-channel a reference to it, until it is known to
/// wait no more: the owner is about to release its own.
///
/// Light waits keep no reference, since counting would cost more than the rest of a rendezvous
/// does. In compiled programs a waiting component has one in its struct. Here it borrows the
/// half-channel, and the borrow ends with the future: but that may have been forgotten, or dropped
/// by another thread, while the component waits on.
///
/// # Safety
/// The half-channel is alive, and `users` are all lives that may be waiting there.
pub(super) unsafe fn keep_for(users: &[u64], channel: *mut Channel) {
    for &id in users {
        let is_done = life::with_current(|life| match life {
            Some(life) if life.id == id => {
                if life.is_blocked() {
                    // SAFETY: as the caller promises.
                    life.keep(unsafe { Kept::new(channel) });
                }
                true
            }
            _ => false,
        });
        if !is_done && let Some(bell) = bell_of(id) {
            // SAFETY: as the caller promises.
            let errand = Errand::Kept(unsafe { Kept::new(channel) });
            // A life that has ended waits for nothing.
            drop(bell.errands.leave(errand));
        }
    }
}
