//! A component whose state machine is a future.
//!
//! Its struct ends in a pointer to its [`Life`], which only the code that runs the component touches,
//! but for `arrivals`, into which whoever completes a rendezvous puts the value.
//!
//! A waker *rings*: it sets the bell and calls off what the component waits for, a rendezvous too.
//! The component then polls its future, and operations that are still wanted begin anew. A ring that
//! comes while the component runs is seen before it waits: the bell is set before the wait is looked
//! at, and looked at after the wait has begun. Between the two is the fence of `OfferState::open`, or,
//! for light waits, the barrier of [`crate::carrier::Hold`].
//!
//! A component has one operation at a time. One that is begun meanwhile waits for its turn.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::CString;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::slot::Slot;
use super::{site, visit};
use crate::abi::{Component, ComponentType, ROUSED, STOPPED, Step, Type, Value};
use crate::external::Ticket;
use crate::seat::seat_of;
use crate::sync::lock_std as lock;
use crate::{c, carrier, channel, external, object};

/// How a component ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its future came to its end.
    Finished,
    Stopped,
    /// With the panic's message.
    Panicked(String),
}

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;
type AtEnd = Box<dyn FnOnce(End) + Send>;
/// What becomes of an operation whose future is gone.
pub(super) type Disposer = Box<dyn FnOnce(&Life, How) + Send>;

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
    is_stopping: Cell<bool>,
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
    /// The one whose results nobody has taken yet; 0 if there is none.
    ended: Cell<u64>,
    how: Cell<How>,
    /// Nobody wants the blocked one any more, but somebody is completing it.
    unwanted: Cell<Option<Disposer>>,
    /// Of a future between the operation's and the component's, which wants to be told.
    waker: Cell<Option<Waker>>,
    /// Others wait for their turn.
    has_queue: Cell<bool>,
    queue: RefCell<Vec<Waker>>,
}

/// What wakers ring.
struct Bell {
    component: *mut Component,
    is_set: AtomicBool,
    is_over: AtomicBool,
    has_abandoned: AtomicBool,
    /// Operations whose futures other threads have dropped.
    abandoned: Mutex<Vec<(u64, Disposer)>>,
}

// SAFETY: the component is counted, and its seat is shared by design.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

/// References to a bell that are no waker's business: the life's and its own waker's.
const OWN_REFERENCES: usize = 2;

impl Bell {
    fn ring(&self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        // Release: what the waker did before is seen by the future when it is polled.
        if self.is_set.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_own = with_current(|life| life.is_some_and(|life| ptr::eq(&*life.bell, self)));
        if is_own {
            // It looks at the bell before it waits.
            return;
        }
        std::sync::atomic::fence(Ordering::SeqCst);
        let _visit = visit();
        // SAFETY: counted.
        unsafe { rouse(self.component) };
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
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
unsafe fn rouse(component: *mut Component) {
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
unsafe fn call_off_own(component: *mut Component) -> bool {
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

thread_local! {
    /// The life that runs on this thread.
    static CURRENT: Cell<*const Life> = const { Cell::new(ptr::null()) };
}

/// Does a component of this program run the calling code?
pub fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

/// Calls `action` with the life of the component that runs the calling code, if one does.
pub(super) fn with_current<R>(action: impl FnOnce(Option<&Life>) -> R) -> R {
    let life = CURRENT.get();
    // SAFETY: set while the life's future is polled or dropped, which it outlives.
    action(unsafe { life.as_ref() })
}

/// Makes a life the current one for as long as this lives.
struct Entry(*const Life);

impl Entry {
    fn of(life: &Life) -> Entry {
        Entry(CURRENT.replace(life))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
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

/// What a component is called and where it goes.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// For reports; "Component" if empty.
    pub name: String,
    pub core: Option<u32>,
    /// It does not keep the program alive, and is not reported.
    pub is_service: bool,
}

/// Makes a component of a future and lets it run.
pub fn spawn(
    plan: &Plan,
    location: &'static Location<'static>,
    body: Pin<Box<dyn Future<Output = ()> + Send>>,
    at_end: Box<dyn FnOnce(End) + Send>,
) -> Handle {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let _visit = visit();
    let creator = with_current(|life| life.map_or(ptr::null_mut(), |life| life.component));
    let core = plan.core.and_then(|core| i32::try_from(core).ok());
    // SAFETY: the descriptor is valid and stays; the component is not running yet, and zeroed.
    unsafe {
        let of = type_of(plan, location);
        let component = c::hearth_component_new(creator, of, core.unwrap_or(-1));
        c::hearth_component_retain(component);
        let bell = Arc::new(Bell {
            component,
            is_set: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            has_abandoned: AtomicBool::new(false),
            abandoned: Mutex::new(Vec::new()),
        });
        // A number needs no order.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        with_bells(|bells| bells.insert(id, Arc::downgrade(&bell)));
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
            operation: Operation {
                last: Cell::new(0),
                blocked: Cell::new(0),
                ended: Cell::new(0),
                how: Cell::new(How::Done),
                unwanted: Cell::new(None),
                waker: Cell::new(None),
                has_queue: Cell::new(false),
                queue: RefCell::new(Vec::new()),
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
        let _visit = visit();
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

/// Keeps the component that runs the calling code on a core, from its next wait on. False outside of
/// components.
pub fn set_core(core: u32) -> bool {
    with_current(|life| {
        let Some(life) = life else { return false };
        // SAFETY: the component runs the calling code.
        unsafe { c::hearth_set_core(life.component, core) };
        true
    })
}

/// The descriptor of components of this name and origin. There are as many as there are names in the
/// program, so they stay.
fn type_of(plan: &Plan, location: &'static Location<'static>) -> *const ComponentType {
    struct Known(&'static ComponentType);
    // SAFETY: descriptors are never written.
    unsafe impl Send for Known {}
    type Types = HashMap<(String, usize, bool), Known>;
    static TYPES: Mutex<Option<Types>> = Mutex::new(None);
    let name = match plan.name.as_str() {
        "" => "Component",
        name => name,
    };
    let key = (
        name.to_owned(),
        ptr::from_ref(location).addr(),
        plan.is_service,
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
            service: plan.is_service,
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
    unsafe {
        let life = Box::from_raw((*component.cast::<Embedded>()).life);
        with_bells(|bells| bells.remove(&life.id));
        life.bell.is_over.store(true, Ordering::Relaxed);
        // After this nobody adds to the list, or it goes with the bell.
        let abandoned = std::mem::take(&mut *lock(&life.bell.abandoned));
        drop(abandoned);
    }
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
            if self.is_stopping.get() {
                return self.finish(End::Stopped);
            }
            // Acquire pairs with the ring's Release.
            self.bell.is_set.swap(false, Ordering::Acquire);
            self.dispose_abandoned();
            self.operation.has_queue.set(false);
            match self.poll() {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(())) => return self.finish(End::Finished),
                Err(message) => return self.finish(End::Panicked(message)),
            }
            if self.is_stopping.get() {
                continue;
            }
            self.dispose_abandoned();
            if self.operation.blocked.get() != 0 {
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

    /// After a wait has begun: if somebody rang before that, it is over. The component does not go on
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
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: only the code that runs the component touches the body.
            match unsafe { &mut *self.body.get() } {
                Some(body) => body.as_mut().poll(&mut context),
                None => Poll::Ready(()),
            }
        }));
        result.map_err(message_of)
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
            self.is_stopping.set(true);
        } else {
            self.ticket.set(Some(ticket));
            self.heed_bell();
        }
        step
    }

    /// Ends the component's life, or waits for the operation that is being completed.
    fn finish(&self, end: End) -> Step {
        {
            let _entry = Entry::of(self);
            // SAFETY: only the code that runs the component touches the body.
            let body = unsafe { (*self.body.get()).take() };
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(body)));
            // Dropping what a panic carries may panic.
            std::mem::forget(dropped);
        }
        if self.operation.blocked.get() != 0 && !self.call_off() {
            self.over.set(Some(end));
            return Step::Blocked;
        }
        // What its last operations left.
        // SAFETY: the component runs this, and no operation is open.
        unsafe {
            (*self.departures.get()).clear();
            (*self.arrivals.get()).clear();
        }
        let was_stopped = end == End::Stopped;
        if let Some(at_end) = self.at_end.take() {
            let told = catch_unwind(AssertUnwindSafe(|| at_end(end)));
            std::mem::forget(told);
        }
        if !was_stopped {
            return Step::Done;
        }
        // SAFETY: the component's own field.
        unsafe { (*self.component).raised = STOPPED };
        Step::Raised
    }

    /// Runs `action` as part of this component, which runs the calling code.
    pub(super) fn within(&self, action: impl FnOnce()) {
        let _entry = Entry::of(self);
        action();
    }

    // ---- operations ---------------------------------------------------------------------------

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
        let operation = &self.operation;
        if self.is_free() {
            return true;
        }
        operation.has_queue.set(true);
        if !self.is_own(context.waker()) {
            operation.queue.borrow_mut().push(context.waker().clone());
        }
        false
    }

    /// May an operation begin, now or never?
    pub(super) fn is_free(&self) -> bool {
        self.operation.blocked.get() == 0 && self.operation.ended.get() == 0
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
            self.operation.waker.set(Some(context.waker().clone()));
        }
    }

    /// An operation did not block: what was lent is the component's again.
    pub(super) fn reclaim(&self) {
        if let Some((of, value)) = self.lent.take() {
            // SAFETY: made in this component's heap by the operation.
            unsafe { object::release_value(self.component, of, value) };
        }
    }

    /// An operation found that the component is stopping. Its future is not polled any more.
    pub(super) fn stop(&self) {
        self.is_stopping.set(true);
    }

    /// How an operation ended, if it did; said once.
    pub(super) fn take_end(&self, number: u64) -> Option<How> {
        if self.operation.ended.get() != number {
            return None;
        }
        self.operation.ended.set(0);
        self.call_queue();
        Some(self.operation.how.get())
    }

    fn call_queue(&self) {
        let queue = std::mem::take(&mut *self.operation.queue.borrow_mut());
        for waker in queue {
            waker.wake();
        }
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

    /// The blocked operation has ended.
    fn conclude(&self, how: How) {
        let operation = &self.operation;
        let number = operation.blocked.replace(0);
        if number == 0 {
            return;
        }
        self.reclaim();
        if let Some(disposer) = operation.unwanted.take() {
            disposer(self, how);
        } else {
            operation.how.set(how);
            operation.ended.set(number);
        }
        if let Some(waker) = operation.waker.take() {
            waker.wake();
        }
        if operation.ended.get() == 0 {
            self.call_queue();
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

    /// The future of an operation is gone.
    fn abandon(&self, number: u64, disposer: Disposer) {
        let operation = &self.operation;
        if let Some(how) = self.take_end(number) {
            disposer(self, how);
        } else if operation.blocked.get() == number {
            operation.unwanted.set(Some(disposer));
            self.call_off();
        }
    }

    fn dispose_abandoned(&self) {
        if !self.bell.has_abandoned.load(Ordering::Acquire) {
            return;
        }
        let abandoned = {
            let mut list = lock(&self.bell.abandoned);
            self.bell.has_abandoned.store(false, Ordering::Relaxed);
            std::mem::take(&mut *list)
        };
        for (number, disposer) in abandoned {
            self.abandon(number, disposer);
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Some(at_end) = self.at_end.take() {
            at_end(End::Stopped);
        }
    }
}

/// The future of an operation of the life with this number is dropped.
pub(super) fn abandon(id: u64, number: u64, disposer: Disposer) {
    let life = CURRENT.get();
    // SAFETY: as in `with_current`.
    if let Some(life) = unsafe { life.as_ref() }
        && life.id == id
    {
        life.abandon(number, disposer);
        return;
    }
    if let Some(bell) = bell_of(id) {
        lock(&bell.abandoned).push((number, disposer));
        bell.has_abandoned.store(true, Ordering::Release);
        bell.ring();
    }
}

fn message_of(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    // Dropping what a panic carries may panic.
    std::mem::forget(panic);
    text.unwrap_or_else(|| "a panic that carries no text".to_owned())
}
