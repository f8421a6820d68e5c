//! The threads of runners, and who looks after them.

use std::io;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use hearth_sys::{affinity, futex, stack};

use super::super::STACK_BYTES;
use super::runner::{Lost, Runner, detach};
use super::{Worker, all};
use crate::exchange::values::heap;
use crate::ground::options;
use crate::ground::sync::lock_std as lock;
use crate::hooks;
use crate::outside::{idle, poller};

static SPARES: Mutex<Vec<&'static Runner>> = Mutex::new(Vec::new());

/// All that there are, spare ones too.
static RUNNERS: Mutex<Vec<&'static Runner>> = Mutex::new(Vec::new());

/// Does something with each thread that runs, or will run, components of workers: its number, and the
/// core that it is kept on, if there is one now.
pub(super) fn for_each_thread(mut action: impl FnMut(u32, Option<usize>)) {
    for runner in &*lock(&RUNNERS) {
        let thread = runner.thread.load(Ordering::Relaxed);
        if thread != 0 {
            action(thread, runner.core());
        }
    }
}

impl Runner {
    /// The thread's life.
    fn live(&'static self) {
        self.thread.store(affinity::thread_id(), Ordering::Relaxed);
        loop {
            self.wait_for_turn();
            // SAFETY: workers are never freed.
            let worker: &'static Worker = unsafe { &*self.worker.load(Ordering::Relaxed) };
            worker.pin_current();
            let lost = worker.run(self);
            self.rest();
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
    start_thread(Runner::live)
}

/// A new runner and its thread, which lives so.
pub(super) fn start_thread(
    life: impl FnOnce(&'static Runner) + Send + 'static,
) -> io::Result<&'static Runner> {
    let runner: &'static Runner = Box::leak(Box::new(Runner::new()));
    std::thread::Builder::new()
        .name("worker".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            runner.become_current();
            let owner = ptr::from_ref(runner).expose_provenance() | 1;
            stack::watch(STACK_BYTES, owner, || life(runner))
        })?;
    heap::has_threads();
    lock(&RUNNERS).push(runner);
    Ok(runner)
}

/// Starts a worker: it gets its first runner.
pub(super) fn start(worker: &'static Worker) -> io::Result<()> {
    idle::enter_woken();
    spare()?.take_turn(worker);
    monitor::start()
}

// ---- looking after them -----------------------------------------------------------------------

mod monitor {
    use super::*;

    static STARTED: AtomicBool = AtomicBool::new(false);
    static ASLEEP: AtomicU32 = AtomicU32::new(0);

    pub(super) fn start() -> io::Result<()> {
        // It looks at queues that their threads are changing: a guess, and to Miri a race.
        if cfg!(miri) {
            return Ok(());
        }
        if STARTED.swap(true, Ordering::Relaxed) {
            notice();
            return Ok(());
        }
        (hooks::get().starts)();
        std::thread::Builder::new()
            .name("monitor".to_owned())
            // It looks at descriptors, too: as for the poller's thread.
            .stack_size(STACK_BYTES)
            .spawn(watch)?;
        Ok(())
    }

    /// A worker wakes.
    pub(in super::super) fn notice() {
        fence(Ordering::SeqCst);
        if ASLEEP.load(Ordering::Relaxed) == 1 && ASLEEP.swap(0, Ordering::Relaxed) == 1 {
            futex::wake_one(ptr::from_ref(&ASLEEP).expose_provenance());
        }
    }

    fn watch() {
        let mut seen: Vec<(*const Runner, u32)> = vec![(ptr::null(), 0); all().len()];
        loop {
            // A component may hold up others for so long, twice at most.
            std::thread::sleep(options::get().slice);
            // First: what it makes ready may wait behind a component that runs.
            if poller::is_time() {
                poller::look();
            }
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
                    replace(worker, runner, now.1);
                }
                *seen = now;
            }
            if !is_any_awake {
                sleep();
            }
        }
    }

    /// Has another thread run the components of a worker whose own is held up.
    fn replace(worker: &'static Worker, runner: &'static Runner, rounds: u32) {
        let Ok(next) = spare() else {
            // No more threads: the others wait, as they would on a machine with one core.
            return;
        };
        if !detach(worker, runner, rounds, next) {
            lock(&SPARES).push(next);
            return;
        }
        super::super::moves::let_go(runner);
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
