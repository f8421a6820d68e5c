//! A component whose state machine is a future.
//!
//! Its struct ends in a pointer to its [`Life`], which only the code that runs the component
//! touches, but for `arrivals`, into which whoever completes a rendezvous puts the value.
//!
//! A waker *rings* the component's [`Bell`], which calls off what it waits for.
//!
//! A component has one operation at a time. One that is begun meanwhile waits for its turn.
//!
//! # Code of the program's
//!
//! Wakers and destructors are code of the program's, which may do anything here: begin an
//! operation, drop a future or a half-channel, panic. So they are called where nothing is half
//! changed: not while an operation's results are being taken, but before the future is polled and
//! after, as *chores* ([`Life::do_chores`]). What has to be taken out of the component at once,
//! since the next operation needs the place, is taken as a [`Leftover`] and dropped as a chore. A
//! chore that panics ends the component, and the other chores are done all the same.

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
use super::slot::Slot;
use super::{Runtime, site, visit};
use crate::abi::{Component, ComponentType, ROUSED, STOPPED, Step, Type, Value};
use crate::c;
use crate::exchange::carrier::runtime_of;
use crate::exchange::external::Ticket;
use crate::exchange::{external, values::object};
use crate::ground::calls::{call, call_for_nobody};
use crate::ground::sync::lock_std as lock;
use crate::outside::idle::Visit;

/// How a component ended: its future came to its end, or not.
pub type End = Result<(), JoinError>;

fn panicked(message: String) -> End {
    Err(JoinError::Panicked { message })
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;
type AtEnd = Box<dyn FnOnce(End) + Send>;

/// References to a bell that are no waker's business: the life's and its own waker's.
const OWN_REFERENCES: usize = 2;

/// What an operation leaves whose future is gone. Dropped, it drops what it has.
pub(super) trait Leftover: Send {
    /// Takes what is there out of the life, when the operation has ended. Calls no code of the
    /// program's.
    fn take(&mut self, life: &Life, how: How);
    /// Gives it back to whom it belongs. May call code of the program's.
    fn give_back(self: Box<Self>, life: &Life);
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Done,
    /// It came to nothing, and may begin anew.
    CalledOff,
    /// The receiver let go of the sender without acknowledging.
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
    /// Set once the future is over and only an operation that it left is not.
    over: Cell<Option<End>>,
    /// While it waits for something that is no operation.
    ticket: Cell<Option<Ticket>>,
    is_waiting: Cell<bool>,
    /// It ends as soon as its code returns.
    is_stopping: Cell<bool>,
    /// What the first chore said that panicked.
    panic: Cell<Option<String>>,
    operation: Operation,
    departures: UnsafeCell<Slot>,
    arrivals: UnsafeCell<Slot>,
    /// What is lent to a send, to be released after it.
    lent: Cell<Option<(&'static Type, Value)>>,
}

/// The one operation of a component.
struct Operation {
    last: Cell<u64>,
    /// The one that the runtime knows of; 0 if there is none.
    blocked: Cell<u64>,
    /// The one whose results nobody has taken yet; 0 if there is none; [`CLOSED`].
    ended: Cell<u64>,
    how: Cell<How>,
    /// Nobody wants the blocked one any more, but somebody is completing it.
    unwanted: Cell<Option<Box<dyn Leftover>>>,
    /// Others wait for their turn.
    has_queue: Cell<bool>,
    /// There is anything among what follows.
    has_chores: Cell<bool>,
    /// Of a future between the operation's and the component's, which wants to be told of its end.
    waker: Cell<Option<Waker>>,
    /// Of those that wait for their turn.
    queue: RefCell<Queue>,
    /// What came of operations that nobody wants.
    leftovers: RefCell<Vec<Box<dyn Leftover>>>,
    /// Where it may be waiting though nobody owns that any more.
    kept: RefCell<Vec<Kept>>,
}

/// In the place of an operation that has ended: none may begin.
const CLOSED: u64 = u64::MAX;

thread_local! {
    /// The life that runs on this thread, [`NOBODY`], or null.
    static CURRENT: Cell<*const Life> = const { Cell::new(ptr::null()) };
}

/// In the place of a life: the runtime calls code of the program's, which is no component's.
const NOBODY: *const Life = ptr::without_provenance(1);

/// Does a component of this program, or the runtime, run the calling code? It may not block its
/// thread.
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

/// Makes a life the current one for as long as this lives.
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

/// Calls code of the program's that is no component's, on whatever thread this is. A panic ends
/// here.
pub(super) fn call_outside(code: impl FnOnce()) {
    let _entry = Entry::of_nobody();
    call_for_nobody(code);
}

/// The name of a component, and where it goes.
#[derive(Clone, Debug, Default)]
pub struct ComponentSettings {
    /// For reports; "Component" if empty.
    pub name: String,
    pub core: Option<u32>,
    /// It does not keep the program alive, and is not reported.
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
    // One that is blocked already may be touched by whoever completes its operation: then the new
    // one is nobody's child, by which its choices go where there is a seed.
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
            departures: UnsafeCell::new(Slot::new()),
            arrivals: UnsafeCell::new(Slot::new()),
            lent: Cell::new(None),
        };
        (*component.cast::<Embedded>()).life = Box::into_raw(Box::new(life));
        c::hearth_component_start(component);
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

    /// Asks it to stop. A component of this program ends where it waits, or as soon as it does.
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

/// The descriptor of components of this name and origin. There are as many as there are names in
/// the program, so they stay.
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

/// Where a component's values arrive.
///
/// # Safety
/// `component` is an embedded one that has not ended, and runs or is parked for the caller.
pub(super) unsafe fn arrivals(component: *mut Component) -> *mut Slot {
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

    /// After a wait has begun: if somebody rang before that, it is over. The component does not go
    /// on at once, so that one which wakes itself lets others run.
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
        // From here on no operation begins, whatever is called.
        self.see_to_errands();
        self.operation.ended.set(CLOSED);
        let _entry = Entry::of_nobody();
        for leftover in self.operation.leftovers.take() {
            call_for_nobody(|| leftover.give_back(self));
        }
        // What its last operations left.
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

    /// The component has ended. What it has of the program's is dropped piece by piece, since each
    /// may panic.
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
        // Only one that never ran has these still.
        if let Some(at_end) = self.at_end.take() {
            call_for_nobody(|| at_end(Err(JoinError::Stopped)));
        }
        // SAFETY: nobody runs the component any more.
        let body = unsafe { (*self.body.get()).take() };
        call_for_nobody(|| drop(body));
    }

    // ---- chores -------------------------------------------------------------------------------

    /// Calls what of the program's is to be called between two polls.
    fn do_chores(&self) {
        if self.bell.errands.are_there() {
            self.see_to_errands();
        }
        if self.operation.has_chores.get() {
            let _entry = Entry::of(self);
            self.do_all_chores();
        }
    }

    /// Takes what others have left for it. Calls no code of the program's.
    #[cold]
    fn see_to_errands(&self) {
        for errand in self.bell.errands.take() {
            match errand {
                Errand::Abandoned(number, leftover) => self.take_abandoned(number, leftover),
                Errand::Kept(kept) => self.keep(kept),
            }
        }
    }

    /// With the life entered. A chore may bring more.
    #[cold]
    fn do_all_chores(&self) {
        let operation = &self.operation;
        operation.has_chores.set(false);
        self.give_leftovers_back();
        // It goes on waiting for what it is blocked at, if it is.
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

    /// Is there somebody to tell of the operation's end?
    fn peek_waker(&self) -> bool {
        let waker = self.operation.waker.take();
        let is_there = waker.is_some();
        self.operation.waker.set(waker);
        is_there
    }

    /// Calls code of the program's as part of this component, which it ends if it panics.
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

    /// It may be waiting at this half-channel, which nobody owns any more.
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

    /// Where a value stands while it is sent.
    pub(super) fn departures(&self) -> *mut Slot {
        self.departures.get()
    }

    pub(super) fn arrivals(&self) -> *mut Slot {
        self.arrivals.get()
    }

    /// Lends an object of the component's heap to the operation that begins.
    pub(super) fn lend(&self, of: &'static Type, value: Value) {
        self.lent.set(Some((of, value)));
    }

    /// May an operation begin? If not, whoever wants to is polled again when it may.
    pub(super) fn may_begin(&self, context: &Context<'_>) -> bool {
        if self.is_free() {
            return true;
        }
        let operation = &self.operation;
        operation.has_queue.set(true);
        if !self.is_own(context.waker()) {
            // A waker's clone may be code of the program's, so the queue is borrowed afterwards.
            let waker = context.waker().clone();
            let twins = operation.queue.borrow_mut().push(waker);
            operation.has_chores.set(true);
            drop(twins);
        }
        false
    }

    /// May an operation begin, now or never?
    pub(super) fn is_free(&self) -> bool {
        self.operation.blocked.get() == 0 && self.operation.ended.get() == 0
    }

    /// Is an operation blocked? The component is parked then, though its code may be running still.
    pub(super) fn is_blocked(&self) -> bool {
        self.operation.blocked.get() != 0
    }

    /// The number of an operation that begins.
    pub(super) fn begin(&self) -> u64 {
        let number = self.operation.last.get() + 1;
        self.operation.last.set(number);
        number
    }

    /// An operation is blocked.
    pub(super) fn block(&self, number: u64, context: &Context<'_>) {
        self.operation.blocked.set(number);
        self.remember(context);
    }

    /// Whom to tell of the operation's end.
    pub(super) fn remember(&self, context: &Context<'_>) {
        if !self.is_own(context.waker()) {
            let former = self.operation.waker.replace(Some(context.waker().clone()));
            self.operation.has_chores.set(true);
            drop(former);
        }
    }

    /// Nothing begins as long as this is kept: the component's heap, or its results, are in use
    /// while code of the program's runs.
    pub(super) fn close(&self) -> Closed<'_> {
        debug_assert!(self.is_free(), "an operation is under way");
        self.operation.ended.set(CLOSED);
        Closed(self)
    }

    /// An operation did not block: what was lent is the component's again.
    pub(super) fn reclaim(&self) {
        if let Some((of, value)) = self.lent.take() {
            // SAFETY: made in this component's heap by the operation.
            unsafe { object::release_value(self.component, of, value) };
        }
    }

    /// The component is to end. Its future is not polled any more, and begins nothing until then.
    pub(super) fn stop(&self) {
        self.is_stopping.set(true);
        if self.operation.ended.get() == 0 {
            self.operation.ended.set(CLOSED);
        }
    }

    /// How an operation ended, if it did; said once.
    pub(super) fn take_end(&self, number: u64) -> Option<How> {
        let operation = &self.operation;
        if operation.ended.get() != number {
            return None;
        }
        operation.ended.set(0);
        Some(operation.how.get())
    }

    /// The component is resumed: notes how its operation ended, and whether it is to stop.
    fn take_results(&self) {
        // SAFETY: the component's own fields.
        let (is_done, raised) = unsafe {
            (
                (*self.component).outcome == Step::Done as u8,
                (*self.component).raised,
            )
        };
        if !is_done && raised == STOPPED {
            self.is_stopping.set(true);
        }
        self.conclude(match (is_done, raised) {
            (true, _) => How::Done,
            (false, STOPPED | ROUSED) => How::CalledOff,
            (false, _) => How::Refused,
        });
    }

    /// The blocked operation has ended. Calls no code of the program's: that is for the chores.
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

    /// Calls the blocked operation off. False if it is being completed.
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

    /// The future of an operation is gone. Calls no code of the program's.
    fn take_abandoned(&self, number: u64, leftover: Box<dyn Leftover>) {
        let operation = &self.operation;
        if let Some(how) = self.take_end(number) {
            self.take_leftover(leftover, how);
        } else if operation.blocked.get() == number {
            operation.unwanted.set(Some(leftover));
            self.call_off();
        } else {
            // It ended before it blocked, or the component is to end. Nothing is there to be taken.
            operation.leftovers.borrow_mut().push(leftover);
            operation.has_chores.set(true);
        }
    }

    /// The future of an operation is dropped within the component.
    pub(super) fn abandon(&self, number: u64, leftover: Box<dyn Leftover>) {
        self.take_abandoned(number, leftover);
        self.give_leftovers_back();
    }

    /// With the life entered. What was taken of an operation, others may have begun none since: so
    /// an object that is to be read is in a heap that is the component's, and stays so, as none
    /// begins here.
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
