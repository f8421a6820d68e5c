//! Workers without threads of their own, for the simulator: one thread takes them in turn, a step
//! at a time.
//!
//! The queues, inboxes, watch lists and gates are the real ones. Sleeping, waking and detaching are
//! left out, since nothing happens while a component computes. While compiled code runs, its
//! worker's gate is closed, as if a detached runner had not noticed yet; so the inlined paths are
//! not taken, and every operation reaches the runtime, which opens the gate.

use std::io;
use std::ptr;
use std::sync::atomic::Ordering;

use super::resume::settle;
use super::runner::Runner;
use super::threads;
use super::{STREAK, Worker, all, home_of};
use crate::abi::{Component, Step};
use crate::exchange::line::Watch;
use crate::ground::options;
use crate::hooks::simulation;

/// Default number of workers: enough for linked half-channels.
const COUNT: usize = 2;

/// All workers of a simulation, with open gates. Nothing starts or wakes them.
pub(super) fn make_all() -> Vec<Worker> {
    let count = options::get()
        .workers
        .or_else(simulation::workers)
        .unwrap_or(COUNT);
    let workers: Vec<Worker> = (0..count)
        .map(|index| Worker::new(index, None, false))
        .collect();
    for worker in &workers {
        worker.shared.started.store(true, Ordering::Relaxed);
        worker.gate.store(worker.mark(), Ordering::Relaxed);
    }
    workers
}

/// The one thread that runs the components of all workers; its functions are called only there.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    runner: &'static Runner,
}

impl Stage {
    /// Starts the thread, which runs `life`.
    pub(crate) fn start(life: impl FnOnce(Stage) + Send + 'static) -> io::Result<()> {
        threads::start_thread(move |runner| life(Stage { runner })).map(|_| ())
    }

    pub(crate) fn count() -> usize {
        all().len()
    }

    /// The index of a component's home.
    pub(crate) fn index_of(component: *mut Component) -> usize {
        // SAFETY: the home of a simulated component is a worker, and workers live as long as their
        // runtime.
        unsafe { (*home_of(component)).shared.index }
    }

    /// Runs `action` as a worker's own thread.
    fn within<R>(self, worker: &'static Worker, action: impl FnOnce() -> R) -> R {
        let runner = self.runner;
        let outer_worker = runner.worker.load(Ordering::Relaxed);
        let outer_component = runner.current.load(Ordering::Relaxed);
        let place = ptr::from_ref(worker).cast_mut();
        runner.worker.store(place, Ordering::Relaxed);
        runner.current.store(ptr::null_mut(), Ordering::Relaxed);
        let result = action();
        runner.worker.store(outer_worker, Ordering::Relaxed);
        runner.current.store(outer_component, Ordering::Relaxed);
        result
    }

    // ---- looks --------------------------------------------------------------------------------

    /// Number of components in a worker's queue.
    pub(crate) fn ready(self, index: usize) -> usize {
        let worker = &all()[index];
        let mut count = usize::from(!worker.next.get().is_null());
        let mut next = worker.first.get();
        while !next.is_null() {
            count += 1;
            // SAFETY: in the queue, so parked and alive.
            next = unsafe { (*next).next };
        }
        count
    }

    pub(crate) fn has_ready(self, index: usize) -> bool {
        let worker = &all()[index];
        !worker.next.get().is_null() || !worker.first.get().is_null()
    }

    /// Whether the inbox or the watch list has something new.
    pub(crate) fn has_arrivals(self, index: usize) -> bool {
        let worker = &all()[index];
        let has_posts = !worker.shared.inbox.load(Ordering::Relaxed).is_null();
        if has_posts || worker.mine.watching.load(Ordering::Relaxed) == 0 {
            return has_posts;
        }
        // SAFETY: there is one thread, so no other touches it.
        unsafe {
            let is_any_over = |watches: &Vec<Watch>| watches.iter().any(Watch::is_over);
            worker.mine.watches.with(is_any_over)
        }
    }

    /// Whether the worker watches ends of links, which would have to tell it if it slept.
    pub(crate) fn watches(self, index: usize) -> bool {
        all()[index].mine.watching.load(Ordering::Relaxed) > 0
    }

    // ---- steps --------------------------------------------------------------------------------

    /// Queues posted components and those whose links have a result.
    pub(crate) fn gather(self, index: usize) {
        let worker = &all()[index];
        self.within(worker, || {
            worker.empty_inbox();
            worker.look_through(false);
        });
    }

    /// Marks the worker as asleep for the others: its watched ends tell it.
    pub(crate) fn fall_asleep(self, index: usize) {
        let worker = &all()[index];
        self.within(worker, || worker.look_through(true));
    }

    /// Takes a component from the queue: the next in turn, or the `choice`th behind it.
    pub(crate) fn take(self, index: usize, choice: usize) -> Option<*mut Component> {
        let worker = &all()[index];
        let next = worker.next.get();
        let streak_is_over = worker.mine.streak.get() >= STREAK && !worker.first.get().is_null();
        // The position of the last one's partner among the others.
        let place_of_next = match (next.is_null(), streak_is_over) {
            (true, _) => usize::MAX,
            (false, false) => 0,
            (false, true) => self.ready(index) - 1,
        };
        if choice == place_of_next {
            worker.next.set(ptr::null_mut());
            worker.mine.streak.set(worker.mine.streak.get() + 1);
            return Some(next);
        }
        worker.mine.streak.set(0);
        worker.remove(if choice > place_of_next {
            choice - 1
        } else {
            choice
        })
    }

    /// Queues a component that continues later.
    ///
    /// # Safety
    /// It waits for nothing, is in no queue, and its home is this worker.
    pub(crate) unsafe fn put_back(self, component: *mut Component) {
        // SAFETY: as the caller promises; workers live as long as their runtime.
        let worker: &'static Worker = unsafe { &*home_of(component) };
        worker.running.store(ptr::null_mut(), Ordering::Relaxed);
        worker.push(component);
    }

    /// Gives a component that migrates to its new worker. False if it stays.
    ///
    /// # Safety
    /// It was taken from its worker's queue.
    pub(crate) unsafe fn send_off(self, component: *mut Component) -> bool {
        // SAFETY: as the caller promises; workers live as long as their runtime.
        unsafe {
            let worker: &'static Worker = &*home_of(component);
            (*component).destination != 0
                && self.within(worker, || {
                    settle(component);
                    worker.send_off(component)
                })
        }
    }

    /// Runs a component until it waits or ends, then `after` as its worker.
    ///
    /// # Safety
    /// It was taken from its worker's queue.
    pub(crate) unsafe fn resume(self, component: *mut Component, after: impl FnOnce(Step)) {
        // SAFETY: as the caller promises; workers live as long as their runtime.
        unsafe {
            let worker: &'static Worker = &*home_of(component);
            self.within(worker, || {
                settle(component);
                self.runner.current.store(component, Ordering::Relaxed);
                worker.running.store(component, Ordering::Relaxed);
                worker.close();
                let step = ((*(*component).r#type).resume)(component);
                worker.open();
                worker.running.store(ptr::null_mut(), Ordering::Relaxed);
                after(step);
                if step == Step::Blocked {
                    worker.let_come(component);
                }
            });
        }
    }
}

/// Runs `work` of the runtime for the running component, with its worker's gate open.
///
/// # Safety
/// The component runs the calling code.
pub(crate) unsafe fn with_open_gate<R>(component: *mut Component, work: impl FnOnce() -> R) -> R {
    // SAFETY: as the caller promises; workers live as long as their runtime.
    let worker: &'static Worker = unsafe { &*home_of(component) };
    worker.open();
    let result = work();
    worker.close();
    result
}

impl Worker {
    /// Closes the gate: compiled code runs from here on.
    fn close(&self) {
        self.shared.detached.store(1, Ordering::Relaxed);
        self.gate.store(0, Ordering::Relaxed);
    }

    /// Opens the gate: the runtime works from here on.
    fn open(&self) {
        self.shared.detached.store(0, Ordering::Relaxed);
        self.gate.store(self.mark(), Ordering::Relaxed);
    }

    /// Takes the component at a position in the queue, from 0.
    fn remove(&self, place: usize) -> Option<*mut Component> {
        if place == 0 {
            return self.pop();
        }
        let mut before = self.first.get();
        for _ in 1..place {
            if before.is_null() {
                return None;
            }
            // SAFETY: in the queue, so parked and alive.
            before = unsafe { (*before).next };
        }
        if before.is_null() {
            return None;
        }
        // SAFETY: as above.
        unsafe {
            let taken = (*before).next;
            if taken.is_null() {
                return None;
            }
            (*before).next = (*taken).next;
            if (*taken).next.is_null() {
                self.last.set(before);
            }
            Some(taken)
        }
    }
}
