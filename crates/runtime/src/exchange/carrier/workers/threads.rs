//! The threads of runners, and the monitor.

use std::io;
use std::ptr;
use std::sync::Mutex;

use hearth_sys::{affinity, stack};

use super::super::STACK_BYTES;
#[cfg(not(loom))]
use super::WORKERS;
use super::runner::{Lost, Runner, detach};
use super::{Worker, all};
use crate::abi::Component;
use crate::exchange::values::heap;
use crate::ground::options;
use crate::ground::runtime::{self, Part};
use crate::ground::sync::{Ordering, Word, lock_std as lock};
use crate::hooks;
use crate::outside::{idle, poller};

static SPARES: Part<Mutex<Vec<&'static Runner>>> = Part::new(|| Mutex::new(Vec::new()));

/// All runners, including spare ones.
static RUNNERS: Part<Mutex<Runners>> = Part::new(Mutex::default);

#[derive(Default)]
struct Runners(Vec<&'static Runner>);

impl Drop for Runners {
    fn drop(&mut self) {
        for runner in self.0.drain(..) {
            // SAFETY: made by `start_thread`; its thread has ended, as have all of the runtime.
            drop(unsafe { Box::from_raw(ptr::from_ref(runner).cast_mut()) });
        }
    }
}

/// Calls `action` for each thread that runs, or will run, components of workers: its number, and
/// the core it is currently pinned to, if any.
pub(super) fn for_each_thread(mut action: impl FnMut(u32, Option<usize>)) {
    for runner in &lock(&RUNNERS).0 {
        let thread = runner.thread.load(Ordering::Relaxed);
        if thread != 0 {
            action(thread, runner.core());
        }
    }
}

/// The components whose code threads of workers may be running, detached ones included. If one that
/// began to wait earlier is not among them, its thread has left its code.
pub(crate) fn at_work() -> Vec<*mut Component> {
    let runners = lock(&RUNNERS);
    let current = |runner: &&Runner| runner.current.load(Ordering::Acquire);
    let mut found: Vec<_> = runners.0.iter().map(current).collect();
    found.retain(|component| !component.is_null());
    found
}

impl Runner {
    /// Runs the thread.
    pub(super) fn live(&'static self) {
        self.thread.store(affinity::thread_id(), Ordering::Relaxed);
        loop {
            self.wait_for_turn();
            // SAFETY: workers live as long as their runtime, which its threads keep.
            let worker = unsafe { self.worker.load(Ordering::Relaxed).as_ref() };
            // None at the end of the runtime.
            let Some(worker) = worker else { return };
            worker.pin_current();
            let lost = worker.run(self);
            self.rest();
            match lost {
                Lost::HandedOver => {}
                Lost::Detached => idle::leave(),
                // A model's count is not read any more.
                Lost::Over if cfg!(loom) => return,
                Lost::Over => return idle::leave(),
            }
            // A model's runners have fixed places.
            if cfg!(not(loom)) {
                lock(&SPARES).push(self);
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

/// Starts a new runner and its thread, which runs `life`.
pub(super) fn start_thread(
    life: impl FnOnce(&'static Runner) + Send + 'static,
) -> io::Result<&'static Runner> {
    let runner: &'static Runner = Box::leak(Box::new(Runner::new()));
    runtime::spawn("worker", STACK_BYTES, move || {
        runner.become_current();
        let owner = ptr::from_ref(runner).expose_provenance() | 1;
        stack::watch(STACK_BYTES, owner, || life(runner))
    })?;
    heap::has_threads();
    lock(&RUNNERS).0.push(runner);
    Ok(runner)
}

/// Starts a worker with its first runner.
pub(super) fn start(worker: &'static Worker) -> io::Result<()> {
    idle::enter_woken();
    spare()?.take_turn(worker);
    monitor::start()
}

// ---- the monitor ------------------------------------------------------------------------------

#[cfg(loom)]
mod monitor {
    pub(super) fn start() -> std::io::Result<()> {
        Ok(())
    }

    pub(in super::super) fn notice() {}
}

#[cfg(not(loom))]
mod monitor {
    use std::sync::atomic::{AtomicBool, fence};

    use super::*;

    static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
    static ASLEEP: Part<Word> = Part::new(|| Word::new(0));

    pub(super) fn start() -> io::Result<()> {
        // It reads queues that their threads are changing: a guess, and to Miri a race.
        if cfg!(miri) {
            return Ok(());
        }
        if STARTED.swap(true, Ordering::Relaxed) {
            notice();
            return Ok(());
        }
        (hooks::get().starts)();
        // It polls descriptors, too: the same stack as the poller's thread.
        runtime::spawn("monitor", STACK_BYTES, watch)
    }

    /// Called when a worker wakes.
    pub(in super::super) fn notice() {
        fence(Ordering::SeqCst);
        let asleep = &*ASLEEP;
        if asleep.load(Ordering::Relaxed) == 1 && asleep.swap(0, Ordering::Relaxed) == 1 {
            asleep.ring();
        }
    }

    fn watch() {
        let mut seen: Vec<(*const Runner, u32)> = vec![(ptr::null(), 0); all().len()];
        // A component may delay others for this long, twice at most.
        while runtime::current().pause(options::get().slice) {
            // First: components it makes ready may wait behind a running one.
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
                // SAFETY: a started worker has a runner, and runners live as long as their runtime.
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
            (hooks::get().looks_around)();
            if !is_any_awake {
                sleep();
            }
        }
    }

    /// Gives a held-up worker another thread.
    fn replace(worker: &'static Worker, runner: &'static Runner, rounds: u32) {
        let Ok(next) = spare() else {
            // No more threads: the others wait, as on a machine with one core.
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
        if runtime::current().is_over() || all().iter().any(|worker| !worker.is_asleep()) {
            ASLEEP.store(0, Ordering::Relaxed);
            return;
        }
        ASLEEP.sleep(1);
    }
}
pub(super) use monitor::notice;

// ---- the end ------------------------------------------------------------------------------------

/// Wakes all threads that run components of workers, including spare ones, and the monitor: the
/// runtime is over.
pub(crate) fn wake_all() {
    #[cfg(not(loom))]
    for worker in WORKERS.get().into_iter().flatten() {
        if worker.shared.asleep.load(Ordering::Relaxed) != 0 {
            worker.wake();
        }
    }
    for runner in &lock(&RUNNERS).0 {
        // A runner sets it to 0 before it checks whether the runtime is over, with a fence
        // between.
        // SAFETY: runners live as long as their runtime.
        unsafe { Word::wake(&raw const runner.turn, 1) };
    }
    notice();
}
