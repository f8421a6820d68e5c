//! The carrier of the model checker: threads that wait for themselves, and workers.
//!
//! Leave, watching, detaching and coming back are the real ones (`workers/leave.rs`, `runner.rs`), over
//! workers that are made of the model checker's parts. A worker's queue, its inbox and how it rests
//! are told again here, as `workers/mod.rs` has them but for patience, turns and threads that have to
//! be started. The models' threads are the runners.

#[path = "workers/leave.rs"]
mod leave;
#[path = "workers/migrating_servers.rs"]
mod migrating_servers;
#[path = "workers/runner.rs"]
mod runner;

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;

use loom::sync::Notify;

use crate::abi::{Component, Step};
use crate::exchange::channel::Channel;
use crate::exchange::channel::link::Watch;
use crate::ground::planted_faults::faults;
use crate::ground::sync::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Guarded, Mutex, Ordering, fence,
};
use crate::hooks::{self, Hooks};
use crate::outside::idle;
use crate::seats::seat::Seat;
use crate::seats::waiting;
use leave::settle;
pub(crate) use leave::{Entered, Hold, Linked, Operation, hold_both, inflate, parks, rejoin};
pub(crate) use migrating_servers::{
    come_from_now, come_to_caller, comes, destination_to, settle_coming, stay,
};
pub(crate) use runner::component_on;
use runner::{Runner, current_worker, detach};

/// Sleeps until the one `wake`.
pub(crate) fn wait(seat: &Seat) {
    seat.parker.wait(|| {});
}

/// # Safety
/// `seat` is alive: models keep all seats until every thread has ended.
pub(crate) unsafe fn wake(seat: *const Seat) {
    // SAFETY: as the caller promises.
    unsafe {
        let component = (*seat).component();
        if !(*component).home.is_null() {
            return ready(component);
        }
        crate::seats::parker::Parker::wake(&raw const (*seat).parker, || {});
    }
}

// ---- what the real parts ask of the system -------------------------------------------------------

mod membarrier {
    use crate::ground::sync::{Ordering, fence};

    pub(super) fn is_available() -> bool {
        true
    }

    /// The fence that the others do not have is in `sync::compiler_fence`.
    pub(super) fn everywhere() {
        fence(Ordering::SeqCst);
    }
}

mod futex {
    use crate::ground::sync::{AtomicU32, yield_now};

    pub(super) fn wait(_: &AtomicU32, _: u32) {
        yield_now();
    }

    pub(super) fn wake_one(_: usize) {}
}

// ---- workers ------------------------------------------------------------------------------------

/// In a half-channel's place, a worker's mark is one more than its address.
const MARK: usize = 1;
/// Small, so that some ends have to be told of.
const WATCHES: usize = 1;
const WORKERS: usize = 3;
/// One for each worker, and one to take the place of a detached one.
const RUNNERS: usize = WORKERS + 1;
pub(crate) const SPARE_RUNNER: usize = WORKERS;

/// As the real one, in what the real parts use.
pub struct Worker {
    gate: AtomicUsize,
    busy: AtomicU32,
    ticks: Cell<u32>,
    running: AtomicPtr<Component>,
    queue: Guarded<VecDeque<*mut Component>>,
    mine: Mine,
    shared: Shared,
}

struct Mine {
    serves: bool,
    watches: Guarded<Vec<Watch>>,
    watching: AtomicU32,
}

struct Shared {
    inbox: AtomicPtr<Component>,
    asleep: AtomicU32,
    bell: Notify,
    leave: Mutex<()>,
    runner: AtomicPtr<Runner>,
    detached: AtomicU32,
    is_stand_in: bool,
    index: usize,
}

// SAFETY: as for the real one.
unsafe impl Sync for Worker {}
// SAFETY: as above.
unsafe impl Send for Worker {}

/// What there is in one run of a model.
struct World {
    workers: Vec<Worker>,
    stand_ins: Vec<Worker>,
    runners: Vec<Runner>,
    /// Components that have not ended.
    unfinished: std::sync::atomic::AtomicUsize,
    /// What moves with the component that moves.
    movers: std::sync::Mutex<Vec<Mover>>,
    is_over: AtomicBool,
}

struct Mover(*const Channel);
// SAFETY: half-channels are shared between threads by design.
unsafe impl Send for Mover {}

loom::lazy_static! {
    static ref WORLD: World = World::new();
}

impl World {
    fn new() -> World {
        static HOOKS: Hooks = Hooks {
            at_rest: |_| {
                judge();
                None
            },
            ..hooks::NOTHING
        };
        hooks::install(&HOOKS);
        let make = |is_stand_in| {
            (0..WORKERS)
                .map(|index| Worker::new(index, is_stand_in))
                .collect::<Vec<_>>()
        };
        let world = World {
            workers: make(false),
            stand_ins: make(true),
            runners: (0..RUNNERS).map(|_| Runner::new()).collect(),
            unfinished: 0.into(),
            movers: std::sync::Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        for worker in &world.workers {
            worker.gate.store(worker.mark(), Ordering::Relaxed);
        }
        world
    }
}

fn all() -> &'static [Worker] {
    &WORLD.workers
}

fn stand_in(worker: &Worker) -> &'static Worker {
    &WORLD.stand_ins[worker.shared.index]
}

pub(crate) fn worker(index: usize) -> &'static Worker {
    &all()[index]
}

pub(crate) fn own_worker() -> Option<&'static Worker> {
    // SAFETY: workers live as long as the run.
    unsafe { current_worker().as_ref() }
}

pub(crate) fn worker_of(home: *const Worker) -> *const Worker {
    // SAFETY: as above.
    match unsafe { home.as_ref() } {
        Some(stand_in) if stand_in.shared.is_stand_in => worker(stand_in.shared.index),
        _ => home,
    }
}

pub(crate) fn of_mark(place: usize) -> Option<&'static Worker> {
    // SAFETY: as above, and only their marks are odd.
    (place & MARK != 0).then(|| unsafe { &*ptr::with_exposed_provenance(place - MARK) })
}

pub(crate) fn mark_of(worker: *const Worker) -> Option<usize> {
    // SAFETY: as above.
    unsafe { worker.as_ref() }.map(Worker::mark)
}

pub(crate) fn home_of(component: *mut Component) -> *const Worker {
    // SAFETY: the component is alive, and the model checker has one thread.
    unsafe { (*component).home.cast() }
}

fn set_home(component: *mut Component, home: &'static Worker) {
    // SAFETY: as above.
    unsafe { (*component).home = std::ptr::from_ref(home).cast() };
}

/// # Safety
/// As for the real one.
unsafe fn ready(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe {
        let home = (*component).home.cast::<Worker>();
        if !ptr::eq(home, current_worker()) || !(*home).push_if_own(component) {
            (*home).post(component);
        }
    }
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn ready_here(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (*home_of(component)).push_soon(component) };
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn ready_here_last(component: *mut Component) {
    // The model's queue is in turn in any case.
    // SAFETY: as the caller promises.
    unsafe { ready_here(component) };
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn post(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (*home_of(component)).post(component) };
}

/// Why a runner stops running.
enum Lost {
    /// It was detached, and its component has ended since.
    Detached,
    HandedOver,
    /// Nothing runs any more.
    Over,
}

impl Worker {
    fn new(index: usize, is_stand_in: bool) -> Worker {
        Worker {
            gate: AtomicUsize::new(0),
            busy: AtomicU32::new(0),
            ticks: Cell::new(0),
            running: AtomicPtr::new(ptr::null_mut()),
            queue: Guarded::new(VecDeque::new()),
            mine: Mine {
                serves: true,
                watches: Guarded::new(Vec::new()),
                watching: AtomicU32::new(0),
            },
            shared: Shared {
                inbox: AtomicPtr::new(ptr::null_mut()),
                asleep: AtomicU32::new(0),
                bell: Notify::new(),
                leave: Mutex::new(()),
                runner: AtomicPtr::new(ptr::null_mut()),
                detached: AtomicU32::new(0),
                is_stand_in,
                index,
            },
        }
    }

    fn pin_current(&self) {}

    fn core(&self) -> Option<usize> {
        None
    }

    fn push_soon(&self, component: *mut Component) {
        // SAFETY: its own thread's, busy or between two components. The model checker looks.
        unsafe {
            self.queue.with_mut(|queue| {
                assert!(!queue.contains(&component), "queued twice");
                queue.push_back(component);
            });
        }
    }

    fn pick(&self) -> Option<*mut Component> {
        // SAFETY: as above.
        unsafe { self.queue.with_mut(VecDeque::pop_front) }
    }

    fn empty_inbox(&self) -> bool {
        if self.shared.inbox.load(Ordering::Relaxed).is_null() {
            return false;
        }
        let mut posted = self.shared.inbox.swap(ptr::null_mut(), Ordering::Acquire);
        while !posted.is_null() {
            // SAFETY: posted, so parked and alive.
            let before = unsafe { (*posted).next };
            self.push_soon(posted);
            posted = before;
        }
        true
    }

    /// Runs components until the runner has lost the worker.
    fn run(&'static self, runner: &'static Runner) -> Lost {
        loop {
            let Some(component) = self.pick() else {
                runner.current.store(ptr::null_mut(), Ordering::Relaxed);
                self.rest();
                if WORLD.is_over.load(Ordering::Acquire) {
                    return Lost::Over;
                }
                continue;
            };
            // SAFETY: it was ready, and is in no queue any more.
            unsafe {
                if (*component).waiting == waiting::RETURNS {
                    runner::hand_over(self, runner, component);
                    return Lost::HandedOver;
                }
                if (*component).destination != 0 {
                    self.send_off(component);
                    continue;
                }
                if self.resume(runner, component) == Step::Blocked {
                    self.let_come(component);
                    continue;
                }
                let is_kept = self.is_kept(runner);
                WORLD.unfinished.fetch_sub(1, Ordering::Relaxed);
                runner.current.store(ptr::null_mut(), Ordering::Relaxed);
                if !is_kept {
                    return Lost::Detached;
                }
            }
        }
    }

    /// # Safety
    /// The component is ready, and in no queue.
    unsafe fn resume(&'static self, runner: &'static Runner, component: *mut Component) -> Step {
        // SAFETY: as the caller promises.
        unsafe {
            settle(component);
            runner.rounds.fetch_add(1, Ordering::Relaxed);
            runner.current.store(component, Ordering::Relaxed);
            self.running.store(component, Ordering::Release);
            ((*(*component).r#type).resume)(component)
        }
    }

    /// # Safety
    /// As for `resume`; it has a destination.
    unsafe fn send_off(&self, component: *mut Component) {
        // SAFETY: as the caller promises.
        unsafe {
            let home = worker((*component).destination as usize - 1);
            (*component).destination = 0;
            settle(component);
            {
                let _hold = (*home_of(component)).hold();
                set_home(component, home);
            }
            let movers = std::mem::take(&mut *crate::ground::sync::lock_std(&WORLD.movers));
            for channel in movers {
                (*channel.0).move_home(home);
                crate::exchange::channel::hub::make_shared(&*channel.0);
            }
            home.post(component);
        }
    }

    fn rest(&'static self) {
        if self.empty_inbox() || self.look_through(false) {
            return;
        }
        if !faults::sleeps_blindly() && self.look_through(true) {
            return;
        }
        let asleep = &self.shared.asleep;
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.shared.inbox.load(Ordering::Relaxed).is_null() {
            if asleep
                .compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
            {
                idle::leave();
            }
            return;
        }
        idle::leave();
        while asleep.load(Ordering::Acquire) == 1 {
            self.shared.bell.wait();
        }
    }

    /// # Safety
    /// As for the real one.
    unsafe fn post(&'static self, component: *mut Component) {
        let inbox = &self.shared.inbox;
        let mut last = inbox.load(Ordering::Relaxed);
        loop {
            // SAFETY: in no queue, so the link is the caller's.
            unsafe { (*component).next = last };
            match inbox.compare_exchange(last, component, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed) == 1 {
            self.wake();
        }
    }

    fn wake(&self) {
        idle::enter_woken();
        if self
            .shared
            .asleep
            .compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed)
            .is_ok()
        {
            self.shared.bell.notify();
        } else {
            idle::leave();
        }
    }
}

// ---- for models -----------------------------------------------------------------------------------

/// A component is ready to run. Before the workers start.
///
/// # Safety
/// It is at home with a worker.
pub(crate) unsafe fn enlist(component: *mut Component) {
    WORLD.unfinished.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as the caller promises.
    unsafe { (*home_of(component)).push_soon(component) };
}

/// This half-channel moves with the one component of the model that does.
pub(crate) fn moves(channel: &Channel) {
    crate::ground::sync::lock_std(&WORLD.movers).push(Mover(channel));
}

/// Gives a worker its first runner, of the same number.
pub(crate) fn start(index: usize) {
    idle::enter_woken();
    WORLD.runners[index].take_turn(worker(index));
}

/// The life of a runner, until nothing runs any more.
pub(crate) fn live(index: usize) {
    let runner: &'static Runner = &WORLD.runners[index];
    runner.become_current();
    loop {
        while runner.turn.load(Ordering::Acquire) == 0 {
            if WORLD.is_over.load(Ordering::Acquire) {
                return;
            }
            crate::ground::sync::yield_now();
        }
        // SAFETY: workers live as long as the run.
        let worker: &'static Worker = unsafe { &*runner.worker.load(Ordering::Relaxed) };
        let lost = worker.run(runner);
        runner.turn.store(0, Ordering::Relaxed);
        match lost {
            Lost::Over => return,
            Lost::Detached => idle::leave(),
            Lost::HandedOver => {}
        }
    }
}

/// What the monitor does: the spare runner gets the worker, if a component runs there. The caller is
/// not counted.
pub(crate) fn interfere(index: usize) -> bool {
    let worker = worker(index);
    // SAFETY: runners live as long as the run.
    let Some(runner) = (unsafe { worker.shared.runner.load(Ordering::Relaxed).as_ref() }) else {
        return false;
    };
    let rounds = runner.rounds.load(Ordering::Relaxed);
    !worker.running.load(Ordering::Relaxed).is_null()
        && detach(worker, runner, rounds, &WORLD.runners[SPARE_RUNNER])
}

/// Nothing runs: that may only be when all have ended.
fn judge() {
    let left = WORLD.unfinished.load(Ordering::Relaxed);
    assert_eq!(left, 0, "nothing runs, but components have not ended");
    WORLD.is_over.store(true, Ordering::Release);
    for worker in all() {
        worker.shared.asleep.store(0, Ordering::Release);
        worker.shared.bell.notify();
    }
}

pub(crate) fn place(_: Option<usize>) -> *const Worker {
    ptr::null()
}

pub(crate) unsafe fn launch(_: *mut Component) {
    unreachable!("models start their components themselves");
}

pub(crate) unsafe fn set_core(_: *mut Component, _: usize) {}

fn note_coming(_: &Seat, _: *const Worker, _: &Worker) {}

pub(crate) fn keep_placed(_: &Seat) {}

pub(crate) fn keep_named(_: &Seat) {}

fn is_kept_placed(_: &Seat) -> bool {
    false
}

pub(crate) fn keep_planned(_: &Seat) {}

pub(crate) fn running() -> *mut Component {
    ptr::null_mut()
}
