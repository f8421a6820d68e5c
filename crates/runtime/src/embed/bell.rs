//! What wakers ring, and what others leave for a component.
//!
//! A waker *rings*: it sets the bell and calls off what the component waits for, a rendezvous too.
//! The component then polls its future, and operations that are still wanted begin anew. A ring
//! that comes while the component runs is seen before it waits: the bell is set before the wait is
//! looked at, and looked at after the wait has begun. Between the two is the fence of
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
        // SAFETY: counted; nobody who drops one holds a lock of the channels'.
        unsafe { c::hearth_channel_release(self.0.cast_mut()) };
    }
}

/// What is left for a component.
pub(super) enum Errand {
    /// The future of this operation is gone.
    Abandoned(u64, Box<dyn Leftover>),
    /// Nobody owns this half-channel any more, where the component may be waiting still.
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

    /// Its component ends: nobody rings it any more, and what was left last comes back.
    pub(super) fn end(&self, id: u64) -> Vec<Errand> {
        with_bells(|bells| bells.remove(&id));
        self.is_over.store(true, Ordering::Relaxed);
        self.errands.close()
    }

    fn ring(&self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Release: what the waker did before is seen by the future when it is polled.
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

    /// The component is about to look at everything that it may have been rung for.
    pub(super) fn unset(&self) {
        // A ring that this load misses is seen after the next wait has begun, like one that comes
        // later.
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

/// Calls off what a component waits for, unless it has come to something.
///
/// # Safety
/// The component is alive, and the caller counted as running.
pub(super) unsafe fn rouse(component: *mut Component) {
    carrier::inflate(component);
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

/// Calls off the wait that the running component has just begun. False if it came to something
/// already: then the component is woken for it.
///
/// # Safety
/// The component runs the calling code.
pub(super) unsafe fn call_off_own(component: *mut Component) -> bool {
    carrier::inflate(component);
    // SAFETY: called off by itself, the component does not have to be woken.
    unsafe {
        let seat = seat_of(component);
        if !seat.state.call_off() {
            return false;
        }
        channel::settle(seat);
        // It goes on, and may be detached again.
        let _ = carrier::Operation::begin(component).end(Step::Done);
    }
    true
}

static BELLS: Mutex<Option<HashMap<u64, Weak<Bell>>>> = Mutex::new(None);

fn with_bells<R>(action: impl FnOnce(&mut HashMap<u64, Weak<Bell>>) -> R) -> R {
    action(lock(&BELLS).get_or_insert_default())
}

/// The bell of a life that has not ended.
fn bell_of(id: u64) -> Option<Arc<Bell>> {
    with_bells(|bells| bells.get(&id).and_then(Weak::upgrade))
}

/// Has the life not ended?
pub(super) fn is_there(id: u64) -> bool {
    with_bells(|bells| bells.contains_key(&id))
}

/// Has a component look around, if it is there still.
pub(super) fn ring(id: u64) {
    if let Some(bell) = bell_of(id) {
        bell.ring();
    }
}

/// The future of an operation of the life with this number is dropped.
pub(super) fn abandon(id: u64, number: u64, leftover: Box<dyn Leftover>) {
    let own = life::with_current(|life| match life {
        Some(life) if life.id == id => {
            life.abandon(number, leftover);
            None
        }
        _ => Some(leftover),
    });
    let Some(leftover) = own else { return };
    // If the life has ended, the operation has left nothing, and this is dropped here.
    if let Some(bell) = bell_of(id)
        && bell
            .errands
            .leave(Errand::Abandoned(number, leftover))
            .is_ok()
    {
        bell.ring();
    }
}

/// The owner of a half-channel is about to give its reference back: each of those who may be
/// waiting there gets one, until it is known to wait no more.
///
/// Light waits keep no reference, since counting would cost more than the rest of a rendezvous
/// does. In compiled programs whoever waits has one in its struct. Here it borrows the
/// half-channel, and the borrow ends with the future: though that was forgotten, or dropped by
/// another thread, and the component waits on.
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
            // One that has ended waits for nothing.
            drop(bell.errands.leave(errand));
        }
    }
}
