//! The threads that run workers' components, and what becomes of a component that computes for
//! long.
//!
//! A worker is a queue and half-channels; a *runner* is a thread that resumes its components, one
//! at a time. A *monitor* looks at all workers every few milliseconds, while any is awake. Where it
//! finds the same component running as the last time, and others waiting behind it, it *detaches*
//! the runner: the component goes on computing there as if it had a thread of its own, and the
//! worker gets another runner. That may be on any core, unless somebody placed the component by
//! name or by a policy: then it shares the worker's. So compiled loops need no look at any flag,
//! and a component that calls into the system and stays there for long holds up nobody either.
//!
//! A detached component may go on with all that does not wait. Before it waits (and before that it
//! cannot have been woken), it *rejoins*: it queues at its worker like any other, and the runner
//! that comes upon it there hands the worker back and is spare from then on.
//!
//! What makes this safe. The monitor detaches with the worker's leave: the gate closed, nobody
//! busy. The gate then stays closed until the detached runner has noticed, since it might be about
//! to say that it is busy: what it read of the worker before is old. Until then everybody goes by
//! the lock, the new runner too. A runner notices where its component would wait, makes or connects
//! others (it rejoins there, too), or ends; the component's `home` is a *stand-in* meanwhile, whose
//! gate is never open.

use std::cell::Cell;
use std::ptr;

use super::{Worker, all, futex, is_kept_placed, set_home, stand_in};
use crate::abi::Component;
use crate::ground::runtime;
use crate::ground::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use crate::outside::idle;
use crate::recording;
use crate::seats::seat::seat_of;
use crate::seats::waiting;

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
    pub(super) turn: AtomicU32,
    /// What the kernel calls its thread.
    pub(super) thread: AtomicU32,
    /// Detached, its component stays on a core: 1 + that.
    stays: AtomicUsize,
}

#[cfg(not(loom))]
thread_local! {
    /// The runner that the calling thread is.
    static CURRENT: Cell<*const Runner> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const Runner> = Cell::new(ptr::null());
}

/// The runner that the calling thread is, if it is one.
pub(super) fn current() -> Option<&'static Runner> {
    // SAFETY: runners live as long as their runtime.
    unsafe { CURRENT.with(Cell::get).as_ref() }
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
    let runner = CURRENT.with(|current| current.replace(ptr::null()));
    action();
    CURRENT.with(|current| current.set(runner));
}

/// The component that a thread runs, whose runner this is.
pub(crate) fn component_on(runner: usize) -> *mut Component {
    // SAFETY: runners live as long as their runtime.
    let runner: &Runner = unsafe { &*ptr::with_exposed_provenance(runner) };
    runner.current.load(Ordering::Relaxed)
}

/// Why a runner has lost its worker.
pub(super) enum Lost {
    /// It was detached, and its component has ended since.
    Detached,
    /// It gave the worker to one that rejoined.
    HandedOver,
    /// Nothing runs any more: the runtime is over.
    Over,
}

impl Runner {
    pub(super) fn new() -> Runner {
        Runner {
            worker: AtomicPtr::new(ptr::null_mut()),
            current: AtomicPtr::new(ptr::null_mut()),
            has_noticed: AtomicBool::new(true),
            rounds: AtomicU32::new(0),
            turn: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            stays: AtomicUsize::new(0),
        }
    }

    /// The calling thread is this one from here on.
    pub(super) fn become_current(&self) {
        CURRENT.with(|current| current.set(self));
    }

    pub(super) fn is_of(&self, worker: &Worker) -> bool {
        ptr::eq(self.worker.load(Ordering::Relaxed), worker)
    }

    /// The core that its thread is kept on: its worker's, or that which it was detached on with a
    /// component that stays.
    pub(super) fn core(&self) -> Option<usize> {
        // SAFETY: workers live as long as their runtime.
        match unsafe { self.worker.load(Ordering::Relaxed).as_ref() } {
            Some(worker) => worker.core(),
            None => self.stays.load(Ordering::Relaxed).checked_sub(1),
        }
    }

    /// It has nothing to run any more.
    pub(super) fn rest(&self) {
        self.turn.store(0, Ordering::Relaxed);
        self.stays.store(0, Ordering::Relaxed);
    }

    /// Gives it a worker. The caller counts it in.
    pub(super) fn take_turn(&self, worker: &'static Worker) {
        worker
            .shared
            .runner
            .store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
        self.worker
            .store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
        // Release: what the giver did with the worker is visible.
        self.turn.store(1, Ordering::Release);
        futex::wake_one(ptr::from_ref(&self.turn).expose_provenance());
    }

    pub(super) fn wait_for_turn(&self) {
        // With the one of whoever ends the runtime.
        fence(Ordering::SeqCst);
        while self.turn.load(Ordering::Acquire) == 0 && !runtime::current().is_over() {
            futex::wait(&self.turn, 0);
        }
    }
}

// ---- leaving and coming back ------------------------------------------------------------------

/// Takes a worker from a runner whose component goes on computing, and gives it to the next. False
/// if it has gone on to another component meanwhile, after so many rounds.
pub(super) fn detach(
    worker: &'static Worker,
    runner: &'static Runner,
    rounds: u32,
    next: &'static Runner,
) -> bool {
    let hold = worker.hold_as_foreigner();
    let component = worker.running.load(Ordering::Acquire);
    let is_still = runner.is_of(worker) && runner.rounds.load(Ordering::Relaxed) == rounds;
    if !is_still || component.is_null() {
        return false;
    }
    // The detached one runs on, and is counted still. The other is counted before anything tells
    // the detached one what has become of it: it might sleep at once, and be the last that was
    // counted.
    idle::enter_woken();
    worker.shared.detached.fetch_add(1, Ordering::Relaxed);
    runner.has_noticed.store(false, Ordering::Relaxed);
    worker.running.store(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: it is alive, as it runs.
    let stays = is_kept_placed(unsafe { seat_of(component) });
    let core = worker.core().filter(|_| stays);
    runner
        .stays
        .store(core.map_or(0, |core| 1 + core), Ordering::Relaxed);
    runner.worker.store(ptr::null_mut(), Ordering::Relaxed);
    set_home(component, stand_in(worker));
    next.take_turn(worker);
    drop(hold);
    true
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
        waiting::note_waiting(component, waiting::RETURNS);
        recording::stands_by(component);
        worker.post(component);
    }
    idle::leave();
    runner.wait_for_turn();
    worker.pin_current();
    // SAFETY: it runs the calling code.
    unsafe { recording::goes_on(component, index) };
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
    // SAFETY: as the caller promises; runners live as long as their runtime.
    unsafe {
        let other: &'static Runner = &*(*component).waits_at.cast::<Runner>().cast_const();
        waiting::note_waiting(component, waiting::NOTHING);
        runner.worker.store(ptr::null_mut(), Ordering::Relaxed);
        {
            let _hold = worker.hold_as_foreigner();
            set_home(component, worker);
        }
        other.take_turn(worker);
    }
}
