//! A component whose state machine is a future.
//!
//! Its struct ends in a pointer to its [`Life`], which only the code that runs the component
//! touches, except `arrivals`, into which the thread that completes a rendezvous puts the value.
//!
//! A waker *rings* the component's [`Bell`], which calls off the component's wait.
//!
//! A component has one operation at a time. Another one begun meanwhile waits for its turn.
//!
//! # User code
//!
//! Wakers and destructors are user code, which may do anything here: begin an operation, drop a
//! future or a half-channel, panic. So they are called where no change is half done: not while an
//! operation's results are being taken, but before and after the future is polled, as *chores*
//! ([`Life::do_chores`]). Results that must leave the component at once, since the next operation
//! needs the place, are taken as a [`Leftover`] and dropped as a chore. A chore that panics ends
//! the component, and the other chores are done all the same.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::CString;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::bell::{Bell, Errand, Kept, call_off_own, rouse};
use super::error::JoinError;
use super::queue::Queue;
use super::slot::ValueSlot;
use super::{Runtime, site, visit};
use crate::abi::{Component, ComponentType, ROUSED, STOPPED, Step, Type, Value};
use crate::c;
use crate::exchange::carrier::runtime_of;
use crate::exchange::external::Ticket;
use crate::exchange::{component::start_shared, external, values::object};
use crate::ground::calls::{call, call_for_nobody};
use crate::ground::sync::lock_std as lock;
use crate::outside::idle::Visit;

/// A component's ending: its future finished, or not.
pub type End = Result<(), JoinError>;

fn panicked(message: String) -> End {
    Err(JoinError::Panicked { message })
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;
type AtEnd = Box<dyn FnOnce(End) + Send>;

/// References to a bell that no other waker holds: the life's and its own waker's.
const OWN_REFERENCES: usize = 2;

/// The remains of an operation whose future is gone. Dropped, it drops its contents.
pub(super) trait Leftover: Send {
    /// Takes the remains out of the life, when the operation has ended. Calls no user code.
    fn take(&mut self, life: &Life, how: How);
    /// Gives them back to their owner. May call user code.
    fn give_back(self: Box<Self>, life: &Life);
}

/// An operation's ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Done,
    /// It had no effect, and may begin again.
    CalledOff,
    /// The receiver released the sender without acknowledging.
    Refused,
}

/// A component's struct.
#[repr(C)]
struct Embedded {
    base: Component,
    life: *mut Life,
}

pub(super) struct Life {
    pub(super) component: *mut Component,
    pub(super) id: u64,
    bell: Arc<Bell>,
    waker: Waker,
    body: UnsafeCell<Option<Body>>,
    at_end: Cell<Option<AtEnd>>,
    /// Set while the future has ended and an operation that it left has not.
    over: Cell<Option<End>>,
    /// Set during a wait that is not an operation.
    ticket: Cell<Option<Ticket>>,
    is_waiting: Cell<bool>,
    /// Set if the component ends as soon as its code returns.
    is_stopping: Cell<bool>,
    /// Message of the first chore that panicked.
    panic: Cell<Option<String>>,
    operation: Operation,
    departures: UnsafeCell<ValueSlot>,
    arrivals: UnsafeCell<ValueSlot>,
    /// The object lent to a send, to be released after it.
    lent: Cell<Option<(&'static Type, Value)>>,
}

/// The one operation of a component.
struct Operation {
    last: Cell<u64>,
    /// The blocked operation, known to the runtime; 0 if there is none.
    blocked: Cell<u64>,
    /// The ended operation whose results are not taken yet; 0 if there is none; [`CLOSED`].
    ended: Cell<u64>,
    how: Cell<How>,
    /// Set if the blocked operation is unwanted, but another thread is completing it.
    unwanted: Cell<Option<Box<dyn Leftover>>>,
    /// True if others wait for their turn.
    has_queue: Cell<bool>,
    /// True if any of the following fields has something to do.
    has_chores: Cell<bool>,
    /// Waker of a future between the operation's and the component's, to be woken at the
    /// operation's end.
    waker: Cell<Option<Waker>>,
    /// Wakers of operations that wait for their turn.
    queue: RefCell<Queue>,
    /// Remains of unwanted operations.
    leftovers: RefCell<Vec<Box<dyn Leftover>>>,
    /// Half-channels without an owner where it may still be waiting.
    kept: RefCell<Vec<Kept>>,
}

/// Stands for an ended operation: none may begin.
const CLOSED: u64 = u64::MAX;

thread_local! {
    /// The life that runs on this thread, [`NOBODY`], or null.
    static CURRENT: Cell<*const Life> = const { Cell::new(ptr::null()) };
}

/// Stands for a life: the runtime calls user code outside any component.
const NOBODY: *const Life = ptr::without_provenance(1);

/// Tells whether a component of this program, or the runtime, runs the calling code. It may not
/// block its thread.
pub fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

/// Calls `action` with the life of the component that runs the calling code, if one does.
pub(super) fn with_current<R>(action: impl FnOnce(Option<&Life>) -> R) -> R {
    let life = CURRENT.get();
    if life.addr() <= NOBODY.addr() {
        return action(None);
    }
    // SAFETY: set while the life's component runs, which it outlives.
    action(Some(unsafe { &*life }))
}

/// Makes a life the current one while it lives.
struct Entry(*const Life);

impl Entry {
    fn of(life: &Life) -> Entry {
        Entry(CURRENT.replace(life))
    }

    fn of_nobody() -> Entry {
        Entry(CURRENT.replace(NOBODY))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Calls user code outside any component, on any thread. A panic ends here.
pub(super) fn call_outside(code: impl FnOnce()) {
    let _entry = Entry::of_nobody();
    call_for_nobody(code);
}

/// A component's name and kind.
#[derive(Clone, Debug, Default)]
pub struct ComponentSettings {
    /// For reports; "Component" if empty.
    pub name: String,
    pub core: Option<u32>,
    /// True for a service: it does not keep the program alive, and is not reported.
    pub is_service: bool,
}

/// Makes a component of a future and lets it run.
pub fn spawn(
    runtime: &Runtime,
    settings: &ComponentSettings,
    location: &'static Location<'static>,
    body: Pin<Box<dyn Future<Output = ()> + Send>>,
    at_end: AtEnd,
) -> Handle {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let _visit = Visit::begin_in(runtime.inner());
    // A blocked creator may be touched by the thread that completes its operation: then the new
    // component has no creator, which its choices depend on where there is a seed.
    let creator = with_current(|life| match life {
        Some(life)
            if !life.is_blocked() && ptr::eq(runtime_of(life.component), runtime.inner()) =>
        {
            life.component
        }
        _ => ptr::null_mut(),
    });
    let core = settings.core.and_then(|core| i32::try_from(core).ok());
    // SAFETY: the descriptor is valid and stays; the component is not running yet, and zeroed.
    unsafe {
        let of = type_of(settings, location);
        let component = c::hearth_component_new(creator, of, core.unwrap_or(-1));
        c::hearth_component_retain(component);
        // A number needs no order.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let bell = Bell::new(component, id);
        let life = Life {
            component,
            id,
            waker: Arc::clone(&bell).into(),
            bell,
            body: UnsafeCell::new(Some(body)),
            at_end: Cell::new(Some(at_end)),
            over: Cell::new(None),
            ticket: Cell::new(None),
            is_waiting: Cell::new(false),
            is_stopping: Cell::new(false),
            panic: Cell::new(None),
            operation: Operation {
                last: Cell::new(0),
                blocked: Cell::new(0),
                ended: Cell::new(0),
                how: Cell::new(How::Done),
                unwanted: Cell::new(None),
                has_queue: Cell::new(false),
                has_chores: Cell::new(false),
                waker: Cell::new(None),
                queue: RefCell::default(),
                leftovers: RefCell::new(Vec::new()),
                kept: RefCell::new(Vec::new()),
            },
            departures: UnsafeCell::new(ValueSlot::new()),
            arrivals: UnsafeCell::new(ValueSlot::new()),
            lent: Cell::new(None),
        };
        (*component.cast::<Embedded>()).life = Box::into_raw(Box::new(life));
        start_shared(component);
        Handle { component }
    }
}

/// A counted reference to a component.
#[derive(Debug)]
pub struct Handle {
    component: *mut Component,
}

// SAFETY: components are counted atomically, and may be stopped from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Takes over a counted reference.
    ///
    /// # Safety
    /// It is the caller's.
    pub(super) unsafe fn from_counted(component: *mut Component) -> Handle {
        Handle { component }
    }

    pub(super) fn component(&self) -> *mut Component {
        self.component
    }

    /// Asks it to stop. A component of this program ends at its current or next wait.
    pub fn stop(&self) {
        let _visit = visit(self.component);
        // SAFETY: counted.
        unsafe { c::hearth_stop(ptr::null_mut(), self.component) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: counted.
        unsafe { c::hearth_component_release(self.component) };
    }
}

/// Returns the descriptor for this name and origin. There are as many as the program has names, so
/// they stay.
fn type_of(
    settings: &ComponentSettings,
    location: &'static Location<'static>,
) -> *const ComponentType {
    struct Known(&'static ComponentType);
    // SAFETY: descriptors are never written.
    unsafe impl Send for Known {}
    type Types = HashMap<(String, usize, bool), Known>;
    static TYPES: Mutex<Option<Types>> = Mutex::new(None);
    let name = match settings.name.as_str() {
        "" => "Component",
        name => name,
    };
    let key = (
        name.to_owned(),
        ptr::from_ref(location).addr(),
        settings.is_service,
    );
    let mut types = lock(&TYPES);
    let known = types.get_or_insert_default().entry(key).or_insert_with(|| {
        // SAFETY: sites stay.
        let declared = unsafe { *site::of(location, "") };
        Known(Box::leak(Box::new(ComponentType {
            name: CString::new(name.replace('\0', ""))
                .unwrap_or_default()
                .into_raw(),
            size: size_of::<Embedded>(),
            resume,
            destroy: Some(destroy),
            trace: None,
            port_count: 0,
            ports: ptr::null(),
            service: settings.is_service,
            declared,
            heap_bytes: 0,
            heap_largest: 0,
        })))
    });
    known.0
}

/// Returns the slot where a component's values arrive.
///
/// # Safety
/// `component` is an embedded one that has not ended, and runs or is parked for the caller.
pub(super) unsafe fn arrivals(component: *mut Component) -> *mut ValueSlot {
    // SAFETY: as the caller promises.
    unsafe { (*(*component.cast::<Embedded>()).life).arrivals.get() }
}

unsafe extern "C" fn resume(component: *mut Component) -> Step {
    // SAFETY: the carrier runs this component, whose life is there until `destroy`.
    let life = unsafe { &*(*component.cast::<Embedded>()).life };
    let step = life.resume();
    life.is_waiting.set(step == Step::Blocked);
    step
}

unsafe extern "C" fn destroy(component: *mut Component) {
    // SAFETY: ended, so the life is not used any more.
    let life = unsafe { Box::from_raw((*component.cast::<Embedded>()).life) };
    life.end();
}

impl Life {
    fn resume(&self) -> Step {
        drop(self.ticket.take());
        if self.is_waiting.get() {
            self.take_results();
        }
        if let Some(end) = self.over.take() {
            return self.finish(end);
        }
        loop {
            self.bell.unset();
            self.do_chores();
            if self.is_stopping.get() {
                return self.finish_unless_panicked(Err(JoinError::Stopped));
            }
            self.operation.has_queue.set(false);
            match self.poll() {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(())) => return self.finish_unless_panicked(Ok(())),
                Err(message) => return self.finish(panicked(message)),
            }
            self.do_chores();
            if self.is_stopping.get() {
                continue;
            }
            if self.is_blocked() {
                self.heed_bell();
                return Step::Blocked;
            }
            let has_turn = self.operation.has_queue.get() && self.operation.ended.get() == 0;
            if has_turn {
                continue;
            }
            if self.wait() == Step::Blocked {
                return Step::Blocked;
            }
        }
    }

    /// Ends the wait that has begun if the bell was rung before it. The component does not continue
    /// at once, so that one which wakes itself lets others run.
    fn heed_bell(&self) {
        if self.bell.is_set() {
            // SAFETY: the component runs this, and its carrier is counted.
            unsafe { rouse(self.component) };
        }
    }

    fn poll(&self) -> Result<Poll<()>, String> {
        let _entry = Entry::of(self);
        let mut context = Context::from_waker(&self.waker);
        call(|| {
            // SAFETY: only the code that runs the component touches the body.
            match unsafe { &mut *self.body.get() } {
                Some(body) => body.as_mut().poll(&mut context),
                None => Poll::Ready(()),
            }
        })
    }

    /// Begins to wait for a ring, unless it is to stop.
    fn wait(&self) -> Step {
        let can_be_woken = self.bell.is_set() || Arc::strong_count(&self.bell) > OWN_REFERENCES;
        // SAFETY: the component runs this, and returns Blocked at once if this does.
        let (step, ticket) = unsafe {
            let site = &raw const (*(*self.component).r#type).declared;
            external::wait(self.component, site, "a future", can_be_woken)
        };
        if step == Step::Raised {
            self.stop();
        } else {
            self.ticket.set(Some(ticket));
            self.heed_bell();
        }
        step
    }

    fn finish_unless_panicked(&self, end: End) -> Step {
        let panic = self.panic.take();
        self.finish(panic.map_or(end, panicked))
    }

    /// Ends the component's life, or waits for the operation that is being completed.
    fn finish(&self, end: End) -> Step {
        {
            let _entry = Entry::of(self);
            // SAFETY: only the code that runs the component touches the body.
            let body = unsafe { (*self.body.get()).take() };
            call_for_nobody(|| drop(body));
        }
        if self.is_blocked() && !self.call_off() {
            self.over.set(Some(end));
            return Step::Blocked;
        }
        // From here on no operation begins, whatever user code is called.
        self.see_to_errands();
        self.operation.ended.set(CLOSED);
        let _entry = Entry::of_nobody();
        for leftover in self.operation.leftovers.take() {
            call_for_nobody(|| leftover.give_back(self));
        }
        // The values that its last operations left.
        // SAFETY: the component runs this, and no operation is open.
        let slots = unsafe {
            [
                (*self.departures.get()).take_whole(),
                (*self.arrivals.get()).take_whole(),
            ]
        };
        for slot in slots {
            call_for_nobody(|| drop(slot));
        }
        let was_stopped = end == Err(JoinError::Stopped);
        if let Some(at_end) = self.at_end.take() {
            call_for_nobody(|| at_end(end));
        }
        if !was_stopped {
            return Step::Done;
        }
        // SAFETY: the component's own field.
        unsafe { (*self.component).raised = STOPPED };
        Step::Raised
    }

    /// Drops the user's parts piece by piece, since each may panic. The component has ended.
    fn end(self: Box<Self>) {
        let _entry = Entry::of_nobody();
        for errand in self.bell.end(self.id) {
            call_for_nobody(|| drop(errand));
        }
        let operation = &self.operation;
        let unwanted = operation.unwanted.take();
        call_for_nobody(|| drop(unwanted));
        let waker = operation.waker.take();
        for waker in operation
            .queue
            .take()
            .into_wakers()
            .into_iter()
            .chain(waker)
        {
            call_for_nobody(|| drop(waker));
        }
        for leftover in operation.leftovers.take() {
            call_for_nobody(|| drop(leftover));
        }
        // Only a component that never ran still has these.
        if let Some(at_end) = self.at_end.take() {
            call_for_nobody(|| at_end(Err(JoinError::Stopped)));
        }
        // SAFETY: nothing runs the component any more.
        let body = unsafe { (*self.body.get()).take() };
        call_for_nobody(|| drop(body));
    }

    // ---- chores -------------------------------------------------------------------------------

    /// Calls the user code due between two polls.
    fn do_chores(&self) {
        if self.bell.errands.are_there() {
            self.see_to_errands();
        }
        if self.operation.has_chores.get() {
            let _entry = Entry::of(self);
            self.do_all_chores();
        }
    }

    /// Takes the errands left for it. Calls no user code.
    #[cold]
    fn see_to_errands(&self) {
        for errand in self.bell.errands.take() {
            match errand {
                Errand::Abandoned(number, leftover) => self.take_abandoned(number, leftover),
                Errand::Kept(kept) => self.keep(kept),
            }
        }
    }

    /// Does the chores, with the life entered. A chore may cause more.
    #[cold]
    fn do_all_chores(&self) {
        let operation = &self.operation;
        operation.has_chores.set(false);
        self.give_leftovers_back();
        // A blocked component keeps waiting.
        if self.is_blocked() {
            let is_left = !operation.kept.borrow().is_empty()
                || !operation.queue.borrow().is_empty()
                || self.peek_waker();
            operation
                .has_chores
                .set(is_left || operation.has_chores.get());
            return;
        }
        drop(operation.kept.take());
        if let Some(waker) = operation.waker.take() {
            self.call(|| waker.wake());
        }
        if operation.ended.get() != 0 {
            let is_left = !operation.queue.borrow().is_empty();
            operation
                .has_chores
                .set(is_left || operation.has_chores.get());
            return;
        }
        for waker in operation.queue.take().into_wakers() {
            self.call(|| waker.wake());
        }
    }

    /// Tells whether a waker waits for the operation's end.
    fn peek_waker(&self) -> bool {
        let waker = self.operation.waker.take();
        let is_there = waker.is_some();
        self.operation.waker.set(waker);
        is_there
    }

    /// Calls user code as part of this component, which ends if it panics.
    fn call(&self, code: impl FnOnce()) {
        if let Err(message) = call(code) {
            self.note_panic(message);
        }
    }

    fn note_panic(&self, message: String) {
        let first = self.panic.take();
        self.panic.set(Some(first.unwrap_or(message)));
        self.stop();
    }

    /// Keeps a half-channel without an owner, where it may be waiting.
    pub(super) fn keep(&self, kept: Kept) {
        self.operation.kept.borrow_mut().push(kept);
        self.operation.has_chores.set(true);
    }

    // ---- operations ---------------------------------------------------------------------------

    pub(super) fn has_bell(&self, bell: &Bell) -> bool {
        ptr::eq(&*self.bell, bell)
    }

    pub(super) fn is_own(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }

    /// Returns the slot of a value being sent.
    pub(super) fn departures(&self) -> *mut ValueSlot {
        self.departures.get()
    }

    pub(super) fn arrivals(&self) -> *mut ValueSlot {
        self.arrivals.get()
    }

    /// Lends an object of the component's heap to the operation that begins.
    pub(super) fn lend(&self, of: &'static Type, value: Value) {
        self.lent.set(Some((of, value)));
    }

    /// Tells whether an operation may begin. If not, its future is polled again when it may.
    pub(super) fn may_begin(&self, context: &Context<'_>) -> bool {
        if self.is_free() {
            return true;
        }
        let operation = &self.operation;
        operation.has_queue.set(true);
        if !self.is_own(context.waker()) {
            // A waker's clone may be user code, so the queue is borrowed afterwards.
            let waker = context.waker().clone();
            let twins = operation.queue.borrow_mut().push(waker);
            operation.has_chores.set(true);
            drop(twins);
        }
        false
    }

    /// Tells whether an operation may begin, now or never.
    pub(super) fn is_free(&self) -> bool {
        self.operation.blocked.get() == 0 && self.operation.ended.get() == 0
    }

    /// Tells whether an operation is blocked. The component is parked then, though its code may
    /// still be running.
    pub(super) fn is_blocked(&self) -> bool {
        self.operation.blocked.get() != 0
    }

    /// Returns the number of a new operation.
    pub(super) fn begin(&self) -> u64 {
        let number = self.operation.last.get() + 1;
        self.operation.last.set(number);
        number
    }

    /// Marks an operation as blocked.
    pub(super) fn block(&self, number: u64, context: &Context<'_>) {
        self.operation.blocked.set(number);
        self.remember(context);
    }

    /// Remembers the waker for the operation's end.
    pub(super) fn remember(&self, context: &Context<'_>) {
        if !self.is_own(context.waker()) {
            let former = self.operation.waker.replace(Some(context.waker().clone()));
            self.operation.has_chores.set(true);
            drop(former);
        }
    }

    /// Lets no operation begin while the result lives: user code runs while the component's heap,
    /// or its results, are in use.
    pub(super) fn close(&self) -> Closed<'_> {
        debug_assert!(self.is_free(), "an operation is under way");
        self.operation.ended.set(CLOSED);
        Closed(self)
    }

    /// Takes the lent object back: the operation did not block.
    pub(super) fn reclaim(&self) {
        if let Some((of, value)) = self.lent.take() {
            // SAFETY: made in this component's heap by the operation.
            unsafe { object::release_value(self.component, of, value) };
        }
    }

    /// Begins to end the component. Its future is not polled any more, and begins nothing until
    /// then.
    pub(super) fn stop(&self) {
        self.is_stopping.set(true);
        if self.operation.ended.get() == 0 {
            self.operation.ended.set(CLOSED);
        }
    }

    /// Takes an operation's ending, once, if it has ended.
    pub(super) fn take_end(&self, number: u64) -> Option<How> {
        let operation = &self.operation;
        if operation.ended.get() != number {
            return None;
        }
        operation.ended.set(0);
        Some(operation.how.get())
    }

    /// Notes, as the component is resumed, how its operation ended and whether it is to stop.
    fn take_results(&self) {
        // SAFETY: the component's own fields.
        let (outcome, raised) = unsafe { ((*self.component).outcome, (*self.component).raised) };
        let is_done = outcome == Step::Done as u8;
        if !is_done && raised == STOPPED {
            self.is_stopping.set(true);
        }
        self.conclude(match (is_done, raised) {
            (true, _) => How::Done,
            (false, STOPPED | ROUSED) => How::CalledOff,
            (false, _) => How::Refused,
        });
    }

    /// Ends the blocked operation. Calls no user code: the chores do.
    fn conclude(&self, how: How) {
        let operation = &self.operation;
        let number = operation.blocked.replace(0);
        if number == 0 {
            return;
        }
        self.reclaim();
        if let Some(leftover) = operation.unwanted.take() {
            self.take_leftover(leftover, how);
        } else {
            operation.how.set(how);
            operation.ended.set(number);
        }
    }

    /// Calls the blocked operation off. False if another thread is completing it.
    fn call_off(&self) -> bool {
        // SAFETY: the component runs this.
        let is_off = unsafe { call_off_own(self.component) };
        if is_off {
            self.conclude(How::CalledOff);
        }
        is_off
    }

    fn take_leftover(&self, mut leftover: Box<dyn Leftover>, how: How) {
        leftover.take(self, how);
        self.operation.leftovers.borrow_mut().push(leftover);
        self.operation.has_chores.set(true);
    }

    /// Handles a dropped future's operation. Calls no user code.
    fn take_abandoned(&self, number: u64, leftover: Box<dyn Leftover>) {
        let operation = &self.operation;
        if let Some(how) = self.take_end(number) {
            self.take_leftover(leftover, how);
        } else if operation.blocked.get() == number {
            operation.unwanted.set(Some(leftover));
            self.call_off();
        } else {
            // It ended before it blocked, or the component is to end. It has nothing to take.
            operation.leftovers.borrow_mut().push(leftover);
            operation.has_chores.set(true);
        }
    }

    /// Handles an operation whose future is dropped within the component.
    pub(super) fn abandon(&self, number: u64, leftover: Box<dyn Leftover>) {
        self.take_abandoned(number, leftover);
        self.give_leftovers_back();
    }

    /// Gives leftovers back, with the life entered. No operation has begun since an operation's
    /// results were taken: so an object to be read is in a heap that belongs to the component, and
    /// stays so, as none begins here.
    fn give_leftovers_back(&self) {
        let leftovers = self.operation.leftovers.take();
        let _closed = self.is_free().then(|| self.close());
        for leftover in leftovers {
            self.call(|| leftover.give_back(self));
        }
    }
}

/// See [`Life::close`].
pub(super) struct Closed<'a>(&'a Life);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        if !self.0.is_stopping.get() {
            self.0.operation.ended.set(0);
        }
    }
}
