//! A worker thread's record of its components' runs, for a watched program.
//!
//! Compiled code makes components ready without a call. They are found when the run that did it is
//! over: behind the former end of the queue, and in the place of the next to run. So a component
//! counts as ready from the end of that run on.

use std::cell::Cell;
use std::ptr;

use hearth_watch::{Recorder, Wait};

use super::Worker;
use super::runner::Runner;
use crate::abi::{Component, Step};
use crate::exchange::channel::{light, peek};
use crate::exchange::values::heap;
use crate::recording;
use crate::seats::seat::seat_of;

/// Values per sample, once enough are known of the port.
const VALUES: u32 = 64;

/// The recording state of a worker; its own thread's.
pub(super) struct Watched {
    /// The last component in the queue when the run began; null if there was none.
    last_before: Cell<*mut Component>,
    /// Number of waits with a value.
    values: Cell<u32>,
}

impl Watched {
    pub(super) fn new() -> Watched {
        Watched {
            last_before: Cell::new(ptr::null_mut()),
            values: Cell::new(0),
        }
    }
}

impl Worker {
    /// Records the core when a runner has got this worker.
    pub(super) fn tell_core(&self) {
        if let Some(recorder) = recording::recorder() {
            recorder.worker(self.shared.index, self.shared.core);
        }
    }

    /// Notes the queue's end: a component is about to run here, or to continue its run.
    pub(super) fn mark_queue(&self) {
        self.mine.watched.last_before.set(self.last.get());
    }

    /// Resumes a component as `resume` does, and records it.
    ///
    /// # Safety
    /// As for `resume`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn resume_watched(
        &'static self,
        runner: &'static Runner,
        component: *mut Component,
    ) -> Step {
        // SAFETY: as the caller promises.
        unsafe {
            let Some(recorder) = recording::recorder() else {
                return self.resume(runner, component);
            };
            let id = seat_of(component).id;
            let index = self.shared.index;
            self.mark_queue();
            recording::set_running(id);
            recording::look_at_core(recorder, index);
            recording::look_at_heap(id, || heap::used(component));
            recorder.runs(id, index as u16, recorder.now());
            let step = self.resume(runner, component);
            let now = recorder.now();
            let took = if step == Step::Blocked {
                self.tell_ready(recorder, id, now);
                let wait = peek::wait_of(component);
                if let Wait::Send(Some(port)) = wait {
                    self.look_at_value(recorder, component, id, port);
                }
                recorder.waits(id, (*component).heap, wait, now)
            } else {
                recorder.ended(id, now)
            };
            recording::set_running(0);
            // A detached component has ended on a thread that has lost this worker.
            if runner.is_of(self) {
                recorder.worked(index, took);
            }
            step
        }
    }

    /// Samples the size of the value with which a component waits.
    ///
    /// # Safety
    /// As for `light::size_to_give`.
    unsafe fn look_at_value(
        &self,
        recorder: &Recorder,
        component: *mut Component,
        id: u64,
        port: u16,
    ) {
        let nth = self.mine.watched.values.get();
        self.mine.watched.values.set(nth.wrapping_add(1));
        if !recorder.wants_size(id, port, nth.is_multiple_of(VALUES)) {
            return;
        }
        // SAFETY: as the caller promises.
        if let Some(bytes) = unsafe { light::size_to_give(component) } {
            // Not a select, and its wait is counted.
            recorder.sampled(id, port, 0, Some(bytes as u64));
        }
    }

    /// Records the components that a run has made ready; it ends now.
    ///
    /// # Safety
    /// The worker's thread calls, and has not run another since.
    pub(super) unsafe fn tell_ready(&self, recorder: &Recorder, by: u64, now: u64) {
        // SAFETY: components queued when a run begins are still there when it ends, parked and
        // alive.
        unsafe {
            let mut next = self.behind(self.mine.watched.last_before.get());
            while !next.is_null() {
                recorder.ready(seat_of(next).id, now, by);
                next = (*next).next;
            }
            let next = self.next.get();
            if !next.is_null() {
                recorder.ready(seat_of(next).id, now, by);
            }
        }
    }

    /// Records the end of a component while the worker's thread is still its own.
    ///
    /// # Safety
    /// As for `tell_ready`; the component is alive.
    #[cold]
    pub(super) unsafe fn tell_last_ready(&self, ended: *mut Component) {
        if let Some(recorder) = recording::recorder() {
            // SAFETY: as the caller promises.
            unsafe { self.tell_ready(recorder, seat_of(ended).id, recorder.now()) };
        }
    }
}
