//! The threads that run workers' components, and what becomes of a component that computes for long.
//!
//! A worker is a queue and half-channels; a *runner* is a thread that resumes its components, one at
//! a time. A *monitor* looks at all workers every few milliseconds, while any is awake. Where it
//! finds the same component running as the last time, and others waiting behind it, it *detaches*
//! the runner: the component goes on computing there, on any core and as if it had a thread of its
//! own, and the worker gets another runner. So compiled loops need no look at any flag, and a
//! component that calls into the system and stays there for long holds up nobody either.
//!
//! A detached component may go on with all that does not wait. Before it waits (and before that it
//! cannot have been woken), it *rejoins*: it queues at its worker like any other, and the runner
//! that comes upon it there hands the worker back and is spare from then on.
//!
//! What makes this safe. The monitor detaches with the worker's leave: the gate closed, nobody busy.
//! The gate then stays closed until the detached runner has noticed, since it might be about to say
//! that it is busy: what it read of the worker before is old. Until then everybody goes by the lock,
//! the new runner too. A runner notices where its component would wait, makes or connects others (it
//! rejoins there, too), or ends; the component's `home` is a *stand-in* meanwhile, whose gate is never open.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, fence};

use hearth_sys::{affinity, futex, stack};

use super::super::STACK_BYTES;
use super::{Worker, all, set_home, stand_in};
use crate::abi::Component;
use crate::channel::light;
use crate::sync::lock_std as lock;
use crate::{idle, options};

/// A thread that runs components.
pub(super) struct Runner {
    /// Whose; null if it is detached or spare.
    pub(super) worker: AtomicPtr<Worker>,
    /// The component that runs here, detached or not, or ran here last; null while there is nothing
    /// to do.
    pub(super) current: AtomicPtr<Component>,
    /// How many it has resumed.
    pub(super) rounds: AtomicU32,
    /// Detached, it has noticed: what it read of the worker before is forgotten. Its own thread's,
    /// but for the monitor, with the worker's leave.
    pub(super) has_noticed: AtomicBool,
    /// A spare or rejoining runner sleeps while this is 0.
    turn: AtomicU32,
    thread: AtomicU32,
}

thread_local! {
    /// The runner that the calling thread is.
    static CURRENT: Cell<*const Runner> = const { Cell::new(ptr::null()) };
}

static SPARES: Mutex<Vec<&'static Runner>> = Mutex::new(Vec::new());

/// The runner that the calling thread is, if it is one.
pub(super) fn current() -> Option<&'static Runner> {
    // SAFETY: runners are never freed.
    unsafe { CURRENT.get().as_ref() }
}

/// The worker whose components the calling thread runs; null for other threads.
pub(super) fn current_worker() -> *const Worker {
    current().map_or(ptr::null(), |runner| {
        runner.worker.load(Ordering::Relaxed).cast_const()
    })
}

/// The component that the calling thread runs, or ran last; null for other threads.
pub(crate) fn running() -> *mut Component {
    current().map_or(ptr::null_mut(), |runner| {
        runner.current.load(Ordering::Relaxed)
    })
}

/// Does something on a thread of the runtime that is about to sleep, as if the thread were another:
/// what it makes ready is posted, and wakes it.
pub(crate) fn as_stranger(action: impl FnOnce()) {
    let runner = CURRENT.replace(ptr::null());
    action();
    CURRENT.set(runner);
}

/// The component that a thread runs, whose runner this is.
pub(crate) fn component_on(runner: usize) -> *mut Component {
    // SAFETY: runners are never freed.
    let runner: &Runner = unsafe { &*ptr::with_exposed_provenance(runner) };
    runner.current.load(Ordering::Relaxed)
}

/// Why a runner has lost its worker.
pub(super) enum Lost {
    /// It was detached, and its component has ended since.
    Detached,
    /// It gave the worker to one that rejoined.
    HandedOver,
}

impl Runner {
    pub(super) fn is_of(&self, worker: &Worker) -> bool {
        ptr::eq(self.worker.load(Ordering::Relaxed), worker)
    }

    /// Gives it a worker. The caller counts it in.
    fn take_turn(&self, worker: &'static Worker) {
        worker
            .shared
            .runner
            .store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
        self.worker
            .store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        // Release: what the giver did with the worker is visible.
        self.turn.store(1, Ordering::Release);
        futex::wake_one(ptr::from_ref(&self.turn).addr());
    }

    fn wait_for_turn(&self) {
        while self.turn.load(Ordering::Acquire) == 0 {
            futex::wait(&self.turn, 0);
        }
    }

    /// The thread's life.
    fn live(&'static self) -> ! {
        self.thread.store(affinity::thread_id(), Ordering::Relaxed);
        loop {
            self.wait_for_turn();
            // SAFETY: workers are never freed.
            let worker: &'static Worker = unsafe { &*self.worker.load(Ordering::Relaxed) };
            worker.pin_current();
            let lost = worker.run(self);
            self.turn.store(0, Ordering::Relaxed);
            lock(&SPARES).push(self);
            if let Lost::Detached = lost {
                idle::leave();
            }
        }
    }
}

/// A runner without a worker: a spare one, or a new thread.
fn spare() -> io::Result<&'static Runner> {
    if let Some(runner) = lock(&SPARES).pop() {
        return Ok(runner);
    }
    start_thread(|runner| runner.live())
}

/// A new runner and its thread, which lives so.
pub(super) fn start_thread(
    life: impl FnOnce(&'static Runner) + Send + 'static,
) -> io::Result<&'static Runner> {
    let runner: &'static Runner = Box::leak(Box::new(Runner {
        worker: AtomicPtr::new(ptr::null_mut()),
        current: AtomicPtr::new(ptr::null_mut()),
        has_noticed: AtomicBool::new(true),
        rounds: AtomicU32::new(0),
        turn: AtomicU32::new(0),
        thread: AtomicU32::new(0),
    }));
    std::thread::Builder::new()
        .name("worker".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            CURRENT.set(runner);
            let owner = ptr::from_ref(runner).expose_provenance() | 1;
            stack::watch(STACK_BYTES, owner, || life(runner))
        })?;
    Ok(runner)
}

/// Starts a worker: it gets its first runner.
pub(super) fn start(worker: &'static Worker) -> io::Result<()> {
    idle::enter_woken();
    spare()?.take_turn(worker);
    monitor::start()
}

// ---- leaving and coming back ------------------------------------------------------------------

/// Takes a worker from a runner whose component goes on computing.
fn detach(worker: &'static Worker, runner: &'static Runner, rounds: u32) {
    let Ok(next) = spare() else {
        // No more threads: the others wait, as they would on a machine with one core.
        return;
    };
    let hold = worker.hold_as_foreigner();
    let component = worker.running.load(Ordering::Relaxed);
    let is_still = runner.is_of(worker) && runner.rounds.load(Ordering::Relaxed) == rounds;
    if !is_still || component.is_null() {
        drop(hold);
        lock(&SPARES).push(next);
        return;
    }
    set_home(component, stand_in(worker));
    worker.running.store(ptr::null_mut(), Ordering::Relaxed);
    runner.worker.store(ptr::null_mut(), Ordering::Relaxed);
    runner.has_noticed.store(false, Ordering::Relaxed);
    worker.shared.detached.fetch_add(1, Ordering::Relaxed);
    // The detached one runs on, and is counted still.
    idle::enter_woken();
    next.take_turn(worker);
    drop(hold);
    let thread = runner.thread.load(Ordering::Relaxed);
    // Where it may not, it shares the worker's core.
    let _ = affinity::allow_thread(thread, super::cores());
}

/// A detached component is about to wait: its thread gets the worker back.
#[cold]
pub(super) fn come_back(component: *mut Component, index: usize) {
    let Some(runner) = current() else {
        unreachable!("only runners are detached");
    };
    let worker = &all()[index];
    worker.be_noticed(runner);
    runner.turn.store(0, Ordering::Relaxed);
    // SAFETY: the component's own fields; it runs the calling code, and waits from here on.
    unsafe {
        (*component).waits_at = ptr::from_ref(runner).cast_mut().cast();
        (*component).waiting = light::RETURNS;
        worker.post(component);
    }
    idle::leave();
    runner.wait_for_turn();
    worker.pin_current();
}

/// A component that wants to rejoin has its turn: its thread gets the worker. The caller's has none
/// from here on.
///
/// # Safety
/// The component was posted by `come_back`, and `runner` is the worker's.
pub(super) unsafe fn hand_over(
    worker: &'static Worker,
    runner: &'static Runner,
    component: *mut Component,
) {
    // SAFETY: as the caller promises; runners are never freed.
    unsafe {
        let other: &'static Runner = &*(*component).waits_at.cast::<Runner>().cast_const();
        (*component).waiting = light::NOTHING;
        runner.worker.store(ptr::null_mut(), Ordering::Relaxed);
        {
            let _hold = worker.hold_as_foreigner();
            set_home(component, worker);
        }
        other.take_turn(worker);
    }
}

// ---- looking after them -----------------------------------------------------------------------

mod monitor {
    use super::*;

    static STARTED: AtomicBool = AtomicBool::new(false);
    static ASLEEP: AtomicU32 = AtomicU32::new(0);

    pub(super) fn start() -> io::Result<()> {
        if STARTED.swap(true, Ordering::Relaxed) {
            notice();
            return Ok(());
        }
        std::thread::Builder::new()
            .name("monitor".to_owned())
            .stack_size(256 << 10)
            .spawn(watch)?;
        Ok(())
    }

    /// A worker wakes.
    pub(in super::super) fn notice() {
        fence(Ordering::SeqCst);
        if ASLEEP.load(Ordering::Relaxed) == 1 && ASLEEP.swap(0, Ordering::Relaxed) == 1 {
            futex::wake_one(ptr::from_ref(&ASLEEP).addr());
        }
    }

    fn watch() {
        let mut seen: Vec<(*const Runner, u32)> = vec![(ptr::null(), 0); all().len()];
        loop {
            // A component may hold up others for so long, twice at most.
            std::thread::sleep(options::get().slice);
            let mut is_any_awake = false;
            for (worker, seen) in all().iter().zip(&mut seen) {
                if worker.is_asleep() {
                    seen.0 = ptr::null();
                    continue;
                }
                is_any_awake = true;
                // SAFETY: a started worker has a runner, and runners are never freed.
                let Some(runner) =
                    (unsafe { worker.shared.runner.load(Ordering::Relaxed).as_ref() })
                else {
                    continue;
                };
                let now = (ptr::from_ref(runner), runner.rounds.load(Ordering::Relaxed));
                let is_running = !worker.running.load(Ordering::Relaxed).is_null();
                if is_running && now == *seen && worker.somebody_waits() {
                    detach(worker, runner, now.1);
                }
                *seen = now;
            }
            if !is_any_awake {
                sleep();
            }
        }
    }

    fn sleep() {
        ASLEEP.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if all().iter().any(|worker| !worker.is_asleep()) {
            ASLEEP.store(0, Ordering::Relaxed);
            return;
        }
        while ASLEEP.load(Ordering::Relaxed) == 1 {
            futex::wait(&ASLEEP, 1);
        }
    }
}
pub(super) use monitor::notice;
