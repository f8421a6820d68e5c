//! The threads that run workers' components, and the detaching of components that compute for long.
//!
//! A worker is a queue and half-channels; a *runner* is a thread that resumes its components, one
//! at a time. A *monitor* checks all workers every few milliseconds, while any is awake. When it
//! finds the same component still running, and others waiting behind it, it *detaches* the runner:
//! the component keeps computing there as on a thread of its own, and the worker gets another
//! runner. The detached thread may use any core, unless the component was placed by name or by a
//! policy: then it shares the worker's. So compiled loops check no flag, and a component in a long
//! system call delays no other.
//!
//! A detached component may do anything that does not wait. Before it waits (and it cannot have
//! been woken before that), it *rejoins*: it queues at its worker like any other, and the runner
//! that reaches it there hands the worker back and is spare from then on.
//!
//! The safety argument: the monitor detaches with the worker's leave, the gate closed and no thread
//! busy. The gate then stays closed until the detached runner has noticed, since that runner might
//! be about to set busy on stale reads of the worker. Until then every thread takes the lock, the
//! new runner too. A runner notices where its component would wait, makes or connects others (it
//! rejoins there, too), or ends; meanwhile the component's `home` is a *stand-in*, whose gate is
//! never open.

use std::cell::Cell;
use std::ptr;

use super::{Worker, all, is_kept_placed, set_home, stand_in};
use crate::abi::Component;
use crate::ground::runtime;
use crate::ground::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Word, fence};
use crate::outside::idle;
use crate::recording;
use crate::seats::seat::seat_of;
use crate::seats::waiting;

/// A thread that runs components.
pub(super) struct Runner {
    /// The worker it serves; null if detached or spare.
    pub(super) worker: AtomicPtr<Worker>,
    /// The component that runs here, detached or not, or ran here last; null while idle.
    pub(super) current: AtomicPtr<Component>,
    /// Number of components it has resumed.
    pub(super) rounds: AtomicU32,
    /// Detached, it has noticed: it has dropped its stale reads of the worker. Its own thread's,
    /// and the monitor's with the worker's leave.
    pub(super) has_noticed: AtomicBool,
    /// A spare or rejoining runner sleeps while this is 0.
    pub(super) turn: Word,
    /// The kernel's number of its thread.
    pub(super) thread: AtomicU32,
    /// The core of a detached component that is pinned: 1 + its number.
    stays: AtomicUsize,
}

#[cfg(not(loom))]
thread_local! {
    /// The calling thread's runner.
    static CURRENT: Cell<*const Runner> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const Runner> = Cell::new(ptr::null());
}

/// The calling thread's runner, if it has one.
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

/// The component that the calling thread runs, or last ran; null for other threads.
pub(crate) fn running() -> *mut Component {
    current().map_or(ptr::null_mut(), |runner| {
        runner.current.load(Ordering::Relaxed)
    })
}

/// Runs `action` on a runtime thread that is about to sleep, as if on a foreign thread: components
/// it makes ready are posted, and wake the thread.
pub(crate) fn as_stranger(action: impl FnOnce()) {
    let runner = CURRENT.with(|current| current.replace(ptr::null()));
    action();
    CURRENT.with(|current| current.set(runner));
}

/// The component that the thread of this runner runs.
pub(crate) fn component_on(runner: usize) -> *mut Component {
    // SAFETY: runners live as long as their runtime.
    let runner: &Runner = unsafe { &*ptr::with_exposed_provenance(runner) };
    runner.current.load(Ordering::Relaxed)
}

/// The reason for which a runner lost its worker.
pub(super) enum Lost {
    /// It was detached, and its component has ended since.
    Detached,
    /// It gave the worker to a rejoining runner.
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
            turn: Word::new(0),
            thread: AtomicU32::new(0),
            stays: AtomicUsize::new(0),
        }
    }

    /// Makes it the calling thread's runner.
    pub(super) fn become_current(&self) {
        CURRENT.with(|current| current.set(self));
    }

    pub(super) fn is_of(&self, worker: &Worker) -> bool {
        ptr::eq(self.worker.load(Ordering::Relaxed), worker)
    }

    /// The core that its thread is pinned to: its worker's, or the one where it was detached with a
    /// pinned component.
    pub(super) fn core(&self) -> Option<usize> {
        // SAFETY: workers live as long as their runtime.
        match unsafe { self.worker.load(Ordering::Relaxed).as_ref() } {
            Some(worker) => worker.core(),
            None => self.stays.load(Ordering::Relaxed).checked_sub(1),
        }
    }

    /// Marks it as idle.
    pub(super) fn rest(&self) {
        // Release: as in `Worker::resume`.
        self.current.store(ptr::null_mut(), Ordering::Release);
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
        // Its Release makes the giver's changes to the worker visible.
        // SAFETY: runners live as long as their runtime.
        unsafe { Word::wake(&raw const self.turn, 1) };
    }

    pub(super) fn wait_for_turn(&self) {
        // Pairs with the fence of the thread that ends the runtime.
        fence(Ordering::SeqCst);
        self.turn.sleep_unless(0, || runtime::current().is_over());
    }
}

// ---- leaving and coming back ------------------------------------------------------------------

/// Takes a worker from a runner whose component keeps computing, and gives it to the next. False if
/// it has moved on to another component, by its number of rounds.
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
    // The detached runner runs on, and is still counted. The other is counted before the detached
    // one can learn of its state: it might sleep at once, and be the last one counted.
    idle::enter_woken();
    worker.shared.detached.fetch_add(1, Ordering::Relaxed);
    runner.has_noticed.store(false, Ordering::Relaxed);
    worker.running.store(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: it is alive, as it runs.
    let stays = is_kept_placed(unsafe { seat_of(component) });
    // SAFETY: alive, and held; nothing measures the run that goes on.
    unsafe { worker.mine.sharing.detached(component) };
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

/// Takes the worker back for the thread of a detached component that is about to wait.
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

/// Hands the worker to the thread of a rejoining component whose turn it is. The caller's thread
/// has none from here on.
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
