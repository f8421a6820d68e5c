//! Workers: a kernel thread a core, which resumes the components of its own queue.
//!
//! A component that is ready stands in the queue of its `home`. The worker's own thread puts it
//! there at once; others post it in the worker's inbox, which the worker empties between two
//! components. A worker with nothing to do looks at its inbox for a while, since waking a thread
//! costs far more than a look, and then sleeps.
//!
//! The half-channels of a worker's components are its own as long as they are connected among
//! themselves. Its thread touches them between `busy := 1` and `busy := 0`, having seen that the gate
//! is open: two plain stores and a load. Another thread that must touch them takes the lock `leave`,
//! closes the gate, has all threads pass a barrier, and waits until the worker is not busy. One of
//! the two always sees the other. Where the system has no such barriers, the gate stays closed, and
//! everybody goes by the lock.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `next`, `first`, `last`, `streak`, `patience` | its thread | its thread |
//! | `busy` | its thread | its thread, those who wait for leave |
//! | `gate` | holders of `leave` | its thread, holders of `leave` |
//! | `current` | its thread | its thread, signal handlers on it |
//! | `inbox` | posters; its thread, by exchange | both |
//! | `asleep` | its thread: 0 → 1 → 0; a poster: 1 → 0 | both |

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence, fence,
};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use hearth_sys::{Linux, affinity, futex, membarrier, procfs, stack};

use super::STACK_BYTES;
use crate::abi::{Component, Step};
use crate::channel::link::{self, Line, Watch};
use crate::channel::{self, Channel, light};
use crate::seat::{Seat, seat_of};
use crate::sync::lock_std as lock;
use crate::{component, exits, idle, options};

/// A component that was made ready by the running one goes before the others so many times in a
/// row, then they have their turn.
const STREAK: u32 = 16;
/// After so many components the inbox is emptied, however many are ready.
const INBOX_EVERY: u32 = 32;
/// After so many components the watch list is looked through.
const LOOK_EVERY: u32 = 8;
/// How many ends of links a worker watches; further ones have themselves told.
const WATCHES: usize = 16;
/// How long a worker without work looks at its inbox before it sleeps: about what waking it costs.
const PATIENCE: Duration = Duration::from_micros(50);
/// The least that patience shrinks to where looking was in vain again and again.
const LEAST_PATIENCE: Duration = Duration::from_micros(1);

/// What resumes components, one a core. It begins as `hearth.h` has it.
#[repr(C, align(128))]
pub struct Worker {
    /// Its mark; 0 while another thread has its half-channels.
    gate: AtomicUsize,
    /// Not 0: its thread touches its half-channels.
    busy: AtomicU32,
    r#yield: AtomicU32,
    /// The one to run next: a partner of the one that runs.
    next: Cell<*mut Component>,
    /// The others that are ready, in turn.
    first: Cell<*mut Component>,
    last: Cell<*mut Component>,
    mine: Mine,
    shared: Shared,
}

/// What else only the worker's own thread touches.
struct Mine {
    streak: Cell<u32>,
    since_inbox: Cell<u32>,
    patience: Cell<Duration>,
    current: AtomicPtr<Component>,
    /// Ends of links whose components are blocked; touched with leave only.
    watches: UnsafeCell<Vec<Watch>>,
    /// How many those are.
    watching: AtomicU32,
    since_look: Cell<u32>,
}

/// What others touch too.
#[repr(align(128))]
struct Shared {
    /// Components made ready by others, the last one first, linked by `next`.
    inbox: AtomicPtr<Component>,
    asleep: AtomicU32,
    started: AtomicBool,
    /// Held by the thread that has this worker's half-channels.
    leave: Mutex<()>,
    index: usize,
    core: Option<usize>,
}

// SAFETY: the table above says which thread touches what.
unsafe impl Sync for Worker {}
// SAFETY: as above.
unsafe impl Send for Worker {}

thread_local! {
    /// The worker whose thread this is.
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

static WORKERS: OnceLock<Vec<Worker>> = OnceLock::new();

/// All workers; most have not started yet in a small program.
fn all() -> &'static [Worker] {
    WORKERS.get_or_init(|| {
        let cores = affinity::allowed();
        let count = options::get()
            .workers
            .unwrap_or_else(|| sensible_count(cores.len()));
        // More workers than cores share them as the system sees fit.
        let is_pinned = count <= cores.len();
        let core_of = |index: usize| is_pinned.then(|| cores[index]);
        let workers: Vec<Worker> = (0..count)
            .map(|index| Worker::new(index, core_of(index)))
            .collect();
        if membarrier::is_available() {
            for worker in &workers {
                worker.gate.store(worker.mark(), Ordering::Relaxed);
            }
        }
        workers
    })
}

/// In a half-channel's place, a worker's mark is one more than its address.
const MARK: usize = 1;

/// The worker whose mark this is.
pub(crate) fn of_mark(place: usize) -> Option<&'static Worker> {
    // SAFETY: workers live as long as the program, and only their marks are odd.
    (place & MARK != 0).then(|| unsafe { &*ptr::with_exposed_provenance(place - MARK) })
}

/// A worker's mark; none for null.
pub(crate) fn mark_of(worker: *const Worker) -> Option<usize> {
    // SAFETY: workers live as long as the program.
    unsafe { worker.as_ref() }.map(Worker::mark)
}

/// Where a component is at home; null for a thread. It may move unless it runs or the caller has its
/// worker's leave.
fn home_of(component: *mut Component) -> *const Worker {
    // SAFETY: the component is alive, and its home changes by atomic stores.
    unsafe { AtomicPtr::from_ptr((&raw mut (*component).home).cast::<*mut Worker>()) }
        .load(Ordering::Relaxed)
}

/// Makes an offer of what a component waits for, if it waits lightly.
pub(crate) fn inflate(component: *mut Component) {
    // SAFETY: workers live as long as the program.
    while let Some(home) = unsafe { home_of(component).as_ref() } {
        let hold = home.hold();
        if !ptr::eq(home_of(component), home) {
            continue;
        }
        // SAFETY: held, and what is waited at is alive.
        unsafe {
            if (*component).waiting != light::LINKED {
                light::inflate(component);
                return;
            }
            let channel = &*(*component).waits_at;
            channel.retain();
            drop(hold);
            if let Some(line) = link::of_mark(channel.where_it_is()) {
                link::unlink(channel, line);
            }
            channel::release(channel);
        }
    }
}

/// Leave to touch the half-channels of both workers, neither of which the calling thread is touching.
pub(crate) fn hold_both(a: &'static Worker, b: &'static Worker) -> (Hold, Hold) {
    // In one order everywhere, and never while being busy: two threads do not wait for each other.
    if a.shared.index < b.shared.index {
        (a.hold_as_foreigner(), b.hold_as_foreigner())
    } else {
        let b = b.hold_as_foreigner();
        (a.hold_as_foreigner(), b)
    }
}

/// A component can go on, wherever it is at home.
///
/// # Safety
/// As for [`ready`]; it is not taken as a partner that runs next.
pub(crate) unsafe fn post(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (*home_of(component)).post(component) };
}

/// A component of the calling worker can go on.
///
/// # Safety
/// It waits for nothing, stands in no queue, and is at home with the calling thread's worker.
pub(crate) unsafe fn ready_here(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (*(*component).home).push_soon(component) };
}

/// Leave to touch a worker's half-channels.
pub(crate) enum Hold {
    /// Of its own thread.
    Own(&'static Worker),
    /// Of another, or where there are no barriers.
    Foreign {
        worker: &'static Worker,
        reopens: bool,
        _leave: MutexGuard<'static, ()>,
    },
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self {
            // Release: who waits for leave sees what was done.
            Hold::Own(worker) => worker.busy.store(0, Ordering::Release),
            Hold::Foreign {
                worker,
                reopens: true,
                ..
            } => worker.gate.store(worker.mark(), Ordering::Release),
            Hold::Foreign { .. } => {}
        }
    }
}

/// Leave of a running component to touch a half-channel of its own worker, and all that are
/// connected with it.
pub(crate) struct Entered(&'static Worker);

impl Entered {
    /// None if the half-channel is not the worker's own, or somebody asks for attention.
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn new(component: *mut Component, channel: &Channel) -> Option<Entered> {
        // SAFETY: as the caller promises.
        unsafe {
            let entered = Entered::even_if_attending(component, channel)?;
            let is_free = (*component).attention.load(Ordering::Relaxed) == 0;
            is_free.then_some(entered)
        }
    }

    /// The same, whatever asks for attention.
    ///
    /// # Safety
    /// As for `new`.
    pub(crate) unsafe fn even_if_attending(
        component: *mut Component,
        channel: &Channel,
    ) -> Option<Entered> {
        // SAFETY: as the caller promises; workers live as long as the program.
        let worker: &'static Worker = unsafe { (*component).home.as_ref() }?;
        worker.busy.store(1, Ordering::Relaxed);
        // The barrier of whoever wants leave orders the store before the loads.
        compiler_fence(Ordering::SeqCst);
        let entered = Entered(worker);
        let gate = worker.gate.load(Ordering::Acquire);
        (gate != 0 && channel.is_at(gate)).then_some(entered)
    }

    /// Is this half-channel the worker's own, too?
    pub(crate) fn covers(&self, channel: &Channel) -> bool {
        channel.is_at(self.0.mark())
    }
}

/// Leave of a running component to touch its own end of a link.
pub(crate) struct Linked(Entered);

impl Linked {
    /// None if the half-channel is not linked, is another worker's, or somebody asks for attention.
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn new(
        component: *mut Component,
        channel: &Channel,
    ) -> Option<(Linked, &'static Line)> {
        // SAFETY: as the caller promises; workers live as long as the program.
        unsafe {
            if !channel.is_at_home_with(component) {
                return None;
            }
            let worker: &'static Worker = &*(*component).home;
            worker.busy.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            let entered = Entered(worker);
            let is_free = worker.gate.load(Ordering::Acquire) != 0
                && (*component).attention.load(Ordering::Relaxed) == 0;
            let line = link::of_mark(channel.where_it_is()).filter(|_| is_free)?;
            Some((Linked(entered), line))
        }
    }

    /// Has the worker watch an end. False if its list is full.
    pub(crate) fn watch(&self, line: &'static Line, is_sender: bool) -> bool {
        // SAFETY: entered.
        unsafe { self.0.0.watch(Watch::new(line, is_sender)) }
    }

    /// Has it watch no more.
    pub(crate) fn forget(&self, line: &'static Line, is_sender: bool) {
        // SAFETY: entered.
        unsafe { self.0.0.forget(line, is_sender) };
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.busy.store(0, Ordering::Release);
    }
}

/// One a core, but no more than a control group lets run at the same time.
fn sensible_count(cores: usize) -> usize {
    match procfs::quota(&Linux) {
        Some(quota) => cores.min(quota.ceil() as usize).max(1),
        None => cores,
    }
}

/// The worker that stands for a core; the calling worker, or the first, if none is asked for.
pub(super) fn for_core(core: Option<usize>) -> *const Worker {
    let workers = all();
    let Some(core) = core else {
        let current = CURRENT.get();
        return if current.is_null() {
            &workers[0]
        } else {
            current
        };
    };
    workers
        .iter()
        .find(|worker| worker.shared.core == Some(core))
        .unwrap_or(&workers[core % workers.len()])
}

/// Does something on a thread of the runtime that is about to sleep, as if the thread were another:
/// what it makes ready is posted, and wakes it.
pub(crate) fn as_stranger(action: impl FnOnce()) {
    let worker = CURRENT.replace(ptr::null());
    action();
    CURRENT.set(worker);
}

/// A component can go on: its home has it run.
///
/// # Safety
/// It waits for nothing, stands in no queue, and has a home; the caller is counted as running, or
/// starts the program.
pub(super) unsafe fn ready(component: *mut Component) {
    // SAFETY: as the caller promises; workers live as long as the program.
    unsafe {
        let home = (*component).home;
        if ptr::eq(home, CURRENT.get()) {
            (*home).push_soon(component);
        } else {
            (*home).post(component);
        }
    }
}

/// From its next wait on the component runs where that core's worker is.
///
/// # Safety
/// The component runs the calling code.
pub(super) unsafe fn move_to(seat: &Seat, core: usize) {
    // SAFETY: workers live as long as the program.
    let index = unsafe { (*for_core(Some(core))).shared.index };
    // SAFETY: the component's own field.
    unsafe { (*seat.component).destination = 1 + index as u32 };
}

/// The component that runs on a worker's thread, for that thread's signal handler.
pub(crate) fn current_of(worker: *const Worker) -> *mut Component {
    // SAFETY: workers live as long as the program.
    unsafe { (*worker).mine.current.load(Ordering::Relaxed) }
}

impl Worker {
    fn new(index: usize, core: Option<usize>) -> Worker {
        Worker {
            gate: AtomicUsize::new(0),
            busy: AtomicU32::new(0),
            r#yield: AtomicU32::new(0),
            next: Cell::new(ptr::null_mut()),
            first: Cell::new(ptr::null_mut()),
            last: Cell::new(ptr::null_mut()),
            mine: Mine {
                streak: Cell::new(0),
                since_inbox: Cell::new(0),
                patience: Cell::new(PATIENCE),
                current: AtomicPtr::new(ptr::null_mut()),
                watches: UnsafeCell::new(Vec::with_capacity(WATCHES)),
                watching: AtomicU32::new(0),
                since_look: Cell::new(0),
            },
            shared: Shared {
                inbox: AtomicPtr::new(ptr::null_mut()),
                asleep: AtomicU32::new(0),
                started: AtomicBool::new(false),
                leave: Mutex::new(()),
                index,
                core,
            },
        }
    }

    pub(crate) fn mark(&self) -> usize {
        ptr::from_ref(self).expose_provenance() + MARK
    }

    /// Does a component run the calling code, with another worker?
    pub(crate) fn is_foreign_to_component(&self) -> bool {
        let current = CURRENT.get();
        !current.is_null() && !ptr::eq(current, self) && !current_of(current).is_null()
    }

    fn hold_as_foreigner(&'static self) -> Hold {
        let has_barriers = membarrier::is_available();
        let leave = lock(&self.shared.leave);
        if has_barriers {
            self.gate.store(0, Ordering::Relaxed);
            membarrier::everywhere();
            // Acquire: what its thread did before is visible.
            while self.busy.load(Ordering::Acquire) != 0 {
                std::thread::yield_now();
            }
        }
        Hold::Foreign {
            worker: self,
            reopens: has_barriers,
            _leave: leave,
        }
    }

    /// Gets leave to touch this worker's half-channels.
    pub(crate) fn hold(&'static self) -> Hold {
        if !membarrier::is_available() || !ptr::eq(CURRENT.get(), self) {
            return self.hold_as_foreigner();
        }
        loop {
            self.busy.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if self.gate.load(Ordering::Acquire) != 0 {
                return Hold::Own(self);
            }
            self.busy.store(0, Ordering::Release);
            drop(lock(&self.shared.leave));
        }
    }

    // ---- its own thread -----------------------------------------------------------------------

    /// The component goes next if no other does already, else last.
    fn push_soon(&self, component: *mut Component) {
        if self.next.get().is_null() {
            self.next.set(component);
        } else {
            self.push(component);
        }
    }

    fn push(&self, component: *mut Component) {
        // SAFETY: a component in no queue; its link belongs to the queue it enters.
        unsafe { (*component).next = ptr::null_mut() };
        let last = self.last.replace(component);
        if last.is_null() {
            self.first.set(component);
        } else {
            // SAFETY: in this queue, so parked and alive.
            unsafe { (*last).next = component };
        }
    }

    fn pop(&self) -> Option<*mut Component> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: in this queue, so parked and alive.
        let second = unsafe { (*first).next };
        self.first.set(second);
        if second.is_null() {
            self.last.set(ptr::null_mut());
        }
        Some(first)
    }

    /// # Safety
    /// The caller has leave.
    unsafe fn watch(&self, watch: Watch) -> bool {
        // SAFETY: as the caller promises.
        let watches = unsafe { &mut *self.mine.watches.get() };
        if watches.len() == WATCHES {
            return false;
        }
        watches.push(watch);
        self.mine
            .watching
            .store(watches.len() as u32, Ordering::Relaxed);
        true
    }

    /// # Safety
    /// The caller has leave.
    pub(crate) unsafe fn forget(&self, line: &'static Line, is_sender: bool) {
        // SAFETY: as the caller promises.
        let watches = unsafe { &mut *self.mine.watches.get() };
        watches.retain(|watch| !watch.is_of(line, is_sender));
        self.mine
            .watching
            .store(watches.len() as u32, Ordering::Relaxed);
    }

    /// Looks through the watch list, and has the others told from now on if `sleeps`. True if some
    /// component can go on.
    fn look_through(&'static self, sleeps: bool) -> bool {
        self.mine.since_look.set(0);
        if self.mine.watching.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let _hold = self.hold();
        // SAFETY: held.
        let watches = unsafe { &mut *self.mine.watches.get() };
        let mut found = false;
        watches.retain(|watch| {
            // SAFETY: held.
            let ready = unsafe {
                if sleeps {
                    watch.have_told()
                } else {
                    watch.look()
                }
            };
            if let Some(component) = ready {
                found = true;
                self.push_soon(component);
            }
            ready.is_none() && !sleeps
        });
        self.mine
            .watching
            .store(watches.len() as u32, Ordering::Relaxed);
        found
    }

    /// The component to run now.
    fn pick(&'static self) -> Option<*mut Component> {
        let mine = &self.mine;
        let since = mine.since_inbox.get() + 1;
        mine.since_inbox.set(since);
        if since >= INBOX_EVERY {
            self.empty_inbox();
        }
        let since = mine.since_look.get() + 1;
        mine.since_look.set(since);
        if since >= LOOK_EVERY {
            self.look_through(false);
        }
        let next = self.next.get();
        if !next.is_null() && (mine.streak.get() < STREAK || self.first.get().is_null()) {
            self.next.set(ptr::null_mut());
            mine.streak.set(mine.streak.get() + 1);
            return Some(next);
        }
        mine.streak.set(0);
        self.pop()
    }

    /// Queues what others have posted, in the order of posting. False if there was nothing.
    fn empty_inbox(&self) -> bool {
        self.mine.since_inbox.set(0);
        if self.shared.inbox.load(Ordering::Relaxed).is_null() {
            return false;
        }
        // Acquire pairs with the Release in `post`: the posters' results are visible.
        let mut posted = self.shared.inbox.swap(ptr::null_mut(), Ordering::Acquire);
        let mut in_order = ptr::null_mut();
        while !posted.is_null() {
            // SAFETY: posted, so parked and alive; the link is the inbox's until here.
            unsafe {
                let before = (*posted).next;
                (*posted).next = in_order;
                in_order = posted;
                posted = before;
            }
        }
        while !in_order.is_null() {
            // SAFETY: as above.
            let behind = unsafe { (*in_order).next };
            self.push(in_order);
            in_order = behind;
        }
        true
    }

    /// The worker's life.
    fn run(&'static self) -> ! {
        CURRENT.set(self);
        if let Some(core) = self.shared.core {
            // Refused only for a core that has gone offline or was forbidden since.
            let _ = affinity::pin_current(core);
        }
        loop {
            match self.pick() {
                // SAFETY: it was ready, and is in no queue any more.
                Some(component) => unsafe { self.resume(component) },
                None => self.rest(),
            }
        }
    }

    /// # Safety
    /// The component is ready, and in no queue.
    unsafe fn resume(&'static self, component: *mut Component) {
        // SAFETY: as the caller promises, it is this thread's now, until it is blocked or ends.
        unsafe {
            if (*component).destination != 0 && self.send_off(component) {
                return;
            }
            self.mine.current.store(component, Ordering::Relaxed);
            match (*component).waiting {
                light::NOTHING => {}
                light::SELECTED => light::settle(component),
                light::LINKED => link::settle(component),
                _ => channel::settle(seat_of(component)),
            }
            let step = ((*(*component).r#type).resume)(component);
            if step != Step::Blocked {
                component::end(component, step);
            }
            self.mine.current.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Gives a component to the worker that it is to move to. False if that is this one.
    ///
    /// # Safety
    /// As for `resume`; it has a destination.
    unsafe fn send_off(&self, component: *mut Component) -> bool {
        // SAFETY: as the caller promises. Nobody looks at the home of a component that is ready.
        unsafe {
            let index = (*component).destination as usize - 1;
            (*component).destination = 0;
            if index == self.shared.index {
                return false;
            }
            let home = &all()[index];
            {
                let _hold = (*(*component).home).hold();
                AtomicPtr::from_ptr((&raw mut (*component).home).cast::<*mut Worker>())
                    .store(ptr::from_ref(home).cast_mut(), Ordering::Relaxed);
            }
            home.post(component);
            true
        }
    }

    /// Nothing is ready: waits until something is in the inbox.
    fn rest(&'static self) {
        if self.empty_inbox() || self.look_out() || self.look_through(true) {
            return;
        }
        let asleep = &self.shared.asleep;
        asleep.store(1, Ordering::Relaxed);
        // With the fence in `post`: either this thread sees what was posted, or the poster sees
        // that it sleeps.
        fence(Ordering::SeqCst);
        if !self.shared.inbox.load(Ordering::Relaxed).is_null() {
            if asleep
                .compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
            {
                // The poster counted this thread in, which had not left yet.
                idle::leave();
            }
            return;
        }
        idle::leave();
        while asleep.load(Ordering::Acquire) == 1 {
            futex::wait(asleep, 1);
        }
    }

    /// Looks at the inbox for as long as waking up would take. True if something came.
    fn look_out(&'static self) -> bool {
        if all().len() == 1 {
            return false;
        }
        let patience = self.mine.patience.get();
        let start = Instant::now();
        loop {
            for _ in 0..16 {
                if self.empty_inbox() || self.look_through(false) {
                    self.mine.patience.set(PATIENCE);
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= patience {
                self.mine.patience.set((patience / 2).max(LEAST_PATIENCE));
                return false;
            }
        }
    }

    // ---- everybody ----------------------------------------------------------------------------

    /// Puts a component into the inbox and wakes the worker if it sleeps.
    ///
    /// # Safety
    /// As for [`ready`].
    unsafe fn post(&self, component: *mut Component) {
        let inbox = &self.shared.inbox;
        let mut last = inbox.load(Ordering::Relaxed);
        loop {
            // SAFETY: in no queue, so the link is the caller's.
            unsafe { (*component).next = last };
            // Release: with the component go its results.
            match inbox.compare_exchange_weak(last, component, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        if !self.shared.started.load(Ordering::Relaxed)
            && !self.shared.started.swap(true, Ordering::Relaxed)
        {
            self.start();
            return;
        }
        fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed) == 1 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Count it in before it can run: the count must not reach nought in between.
        idle::enter_woken();
        let asleep = &self.shared.asleep;
        if asleep
            .compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed)
            .is_ok()
        {
            futex::wake_one(ptr::from_ref(asleep).addr());
        } else {
            // Somebody else woke it. The caller is counted, so this is not the last one.
            idle::leave();
        }
    }

    fn start(&self) {
        struct Place(*const Worker);
        // SAFETY: workers live as long as the program.
        unsafe impl Send for Place {}
        impl Place {
            fn run(self) {
                let owner = self.0.expose_provenance() | 1;
                stack::watch(STACK_BYTES, owner, || {
                    // SAFETY: as above; the one thread that is started for this worker.
                    unsafe { (*self.0).run() }
                });
            }
        }

        idle::enter_woken();
        let place = Place(self);
        let thread = std::thread::Builder::new()
            .name(format!("worker {}", self.shared.index))
            .stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(move || place.run()) {
            exits::unfit(&format!(
                "could not start the thread of worker {} ({error}); use fewer workers (--workers), \
                 or raise the limit (ulimit -u)",
                self.shared.index,
            ));
        }
    }
}
