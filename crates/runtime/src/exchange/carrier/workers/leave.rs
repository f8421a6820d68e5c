//! Leave to touch a worker's half-channels: its own thread has it between `busy := 1` and
//! `busy := 0`, other threads while they keep the gate closed. `docs/internals/workers.md` explains
//! why one of the two always sees the other.

use std::ptr;

use super::home::MARK;
use super::runner::{self, Runner, current, current_worker};
use super::{Worker, home_of, membarrier};
use crate::abi::{Component, Step};
use crate::exchange::channel::Channel;
use crate::exchange::line::{self, Line, Watch};
use crate::ground::sync::{MutexGuard, Ordering, compiler_fence, lock, yield_now};
use crate::ground::without::Mechanism;
use crate::hooks::simulation;

/// Acquires leave for both workers. The calling thread must not be busy with either.
pub(crate) fn hold_both(a: &'static Worker, b: &'static Worker) -> (Hold, Hold) {
    // In one order everywhere, and never while busy, so that two threads cannot deadlock.
    if a.shared.index < b.shared.index {
        (a.hold_as_foreigner(), b.hold_as_foreigner())
    } else {
        let b = b.hold_as_foreigner();
        (a.hold_as_foreigner(), b)
    }
}

/// Leave to touch a worker's half-channels.
pub(crate) enum Hold {
    /// Held by its own thread.
    Own(&'static Worker),
    /// Held by another thread, or in the absence of barriers.
    Foreign {
        worker: &'static Worker,
        has_closed: bool,
        _leave: MutexGuard<'static, ()>,
    },
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self {
            // Release: the next holder of leave sees this one's writes.
            Hold::Own(worker) => worker.busy.store(0, Ordering::Release),
            // Only its own thread may open a gate that was found closed: of that thread alone it is
            // certain that it is not about to be busy because of stale reads.
            Hold::Foreign {
                worker, has_closed, ..
            } => {
                if *has_closed || ptr::eq(current_worker(), *worker) {
                    worker.reopen();
                }
            }
        }
    }
}

/// A running component's leave to touch a half-channel of its own worker, and all half-channels
/// connected with it.
pub(crate) struct Entered(&'static Worker);

impl Entered {
    /// None if the half-channel is not the worker's own, or attention is requested.
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

    /// Enters as `new` does, regardless of attention requests.
    ///
    /// # Safety
    /// As for `new`.
    pub(crate) unsafe fn even_if_attending(
        component: *mut Component,
        channel: &Channel,
    ) -> Option<Entered> {
        // The monitor may be about to change its home: the value read is stale then, and the gate
        // is closed. SAFETY: workers live as long as their runtime.
        let worker: &'static Worker = unsafe { home_of(component).as_ref() }?;
        worker.busy.store(1, Ordering::Relaxed);
        // The barrier of the thread that wants leave orders the store before the loads.
        compiler_fence(Ordering::SeqCst);
        let entered = Entered(worker);
        let gate = worker.gate.load(Ordering::Acquire);
        (gate != 0 && channel.is_at(gate)).then_some(entered)
    }

    /// Number of select arms served on this worker.
    pub(crate) fn now(&self) -> u32 {
        self.0.ticks.get()
    }

    /// Counts one more; returns the new number.
    pub(crate) fn tick(&self) -> u32 {
        self.0.ticks.set(self.now().wrapping_add(1));
        self.now()
    }

    /// Whether this half-channel is the worker's own, too.
    pub(crate) fn covers(&self, channel: &Channel) -> bool {
        channel.is_at(self.0.mark())
    }
}

/// A running component's leave to touch its own end of a link.
pub(crate) struct Linked(Entered);

impl Linked {
    /// None if the half-channel is not linked, is another worker's, or attention is requested.
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn new(
        component: *mut Component,
        channel: &Channel,
    ) -> Option<(Linked, &'static Line)> {
        // SAFETY: as the caller promises; workers live as long as their runtime.
        unsafe {
            if !channel.is_at_home_with(component) {
                return None;
            }
            let worker: &'static Worker = home_of(component).as_ref()?;
            worker.busy.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            let entered = Entered(worker);
            let is_free = worker.gate.load(Ordering::Acquire) != 0
                && (*component).attention.load(Ordering::Relaxed) == 0;
            let line = line::of_mark(channel.where_it_is()).filter(|_| is_free)?;
            Some((Linked(entered), line))
        }
    }

    /// Whether the worker's watch list has room.
    pub(crate) fn can_watch(&self) -> bool {
        self.0.0.can_watch()
    }

    /// Adds an end to the worker's watch list, which has room.
    pub(crate) fn watch(&self, line: &'static Line, is_sender: bool) {
        // SAFETY: entered.
        unsafe { self.0.0.watch(Watch::new(line, is_sender)) };
    }

    /// Begins a look at the line instead of parking. False if the worker has other things to do.
    pub(crate) fn begin_look(&self) -> bool {
        self.0.0.begin_look()
    }
}

/// Called before a component makes or connects others. If it was detached, its thread takes the
/// worker back first: otherwise it would have to ask leave for each of its worker's half-channels.
///
/// # Safety
/// It runs the calling code, or is null.
pub(crate) unsafe fn rejoin(component: *mut Component) {
    if component.is_null() {
        return;
    }
    // SAFETY: as the caller promises; workers live as long as their runtime.
    while let Some(home) = unsafe { home_of(component).as_ref() }
        && home.shared.is_stand_in
    {
        runner::come_back(component, home.shared.index);
    }
}

/// An operation of the running component that may wait. Its thread has its worker, and keeps it.
pub(crate) struct Operation(*mut Component);

impl Operation {
    /// Begins an operation. If the component was detached, its thread takes the worker back first.
    ///
    /// # Safety
    /// The component runs the calling code.
    pub(crate) unsafe fn begin(component: *mut Component) -> Operation {
        // SAFETY: as the caller promises; workers live as long as their runtime.
        while let Some(home) = unsafe { home_of(component).as_ref() } {
            if home.shared.is_stand_in {
                runner::come_back(component, home.shared.index);
                continue;
            }
            let _hold = home.hold();
            // It may have been detached in between.
            if ptr::eq(home_of(component), home) {
                home.running.store(ptr::null_mut(), Ordering::Relaxed);
                break;
            }
        }
        Operation(component)
    }

    /// Ends the operation with this step. Unless blocked, the component continues.
    pub(crate) fn end(self, step: Step) -> Step {
        if step != Step::Blocked {
            // SAFETY: it runs on, and workers live as long as their runtime.
            if let Some(home) = unsafe { (*self.0).home.cast::<Worker>().as_ref() } {
                // Release: as when a worker resumes a component.
                home.running.store(self.0, Ordering::Release);
            }
        }
        step
    }
}

/// Called when the running component waits lightly: it cannot be detached from here on.
///
/// # Safety
/// It has entered.
pub(crate) unsafe fn parks(component: *mut Component) {
    // SAFETY: as the caller promises; workers live as long as their runtime.
    unsafe {
        (*(*component).home.cast::<Worker>())
            .running
            .store(ptr::null_mut(), Ordering::Relaxed)
    };
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.busy.store(0, Ordering::Release);
    }
}

impl Worker {
    pub(crate) fn mark(&self) -> usize {
        ptr::from_ref(self).expose_provenance() + MARK
    }

    /// Whether a component of another worker runs the calling code.
    pub(crate) fn is_foreign_to_component(&self) -> bool {
        current().is_some_and(|runner| {
            let worker = runner.worker.load(Ordering::Relaxed);
            let is_running = !runner.current.load(Ordering::Relaxed).is_null();
            !worker.is_null() && !ptr::eq(worker, self) && is_running
        })
    }

    /// Opens the gate, if permitted. The caller has leave, or no thread can have it yet.
    pub(super) fn reopen(&self) {
        let may_open = !self.shared.is_stand_in
            && self.shared.detached.load(Ordering::Relaxed) == 0
            && (membarrier::is_available() && !Mechanism::Barrier.is_off() || simulation::is_on());
        if may_open {
            self.gate.store(self.mark(), Ordering::Release);
        }
    }

    /// Records that a detached runner has noticed.
    pub(super) fn be_noticed(&self, runner: &Runner) {
        // The gate is closed until every detached runner has noticed: no thread is busy. The lock
        // comes first: the runner may have seen the beginning of a detaching that is still under
        // way, when neither its count nor that of running threads is right yet.
        let _leave = lock(&self.shared.leave);
        if runner.has_noticed.swap(true, Ordering::Relaxed) {
            return;
        }
        // The gate stays closed until a detached runner has noticed, and then until the worker's
        // thread opens it. If it were opened here, that thread might set busy, then this one clear
        // it, and then that one find the gate open.
        self.shared.detached.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn hold_as_foreigner(&'static self) -> Hold {
        let leave = lock(&self.shared.leave);
        // A closed gate stays closed, because there are no barriers or a detached runner has not
        // noticed.
        let has_closed = self.gate.load(Ordering::Relaxed) != 0;
        if has_closed {
            self.gate.store(0, Ordering::Relaxed);
            if !simulation::is_on() {
                membarrier::everywhere();
            }
            // Acquire: makes its thread's writes visible.
            while self.busy.load(Ordering::Acquire) != 0 {
                yield_now();
            }
        }
        Hold::Foreign {
            worker: self,
            has_closed,
            _leave: leave,
        }
    }

    /// Acquires leave to touch this worker's half-channels.
    pub(crate) fn hold(&'static self) -> Hold {
        if !ptr::eq(current_worker(), self) {
            return self.hold_as_foreigner();
        }
        self.busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // With an open gate no runner is detached, so this is still the worker's own thread.
        if self.gate.load(Ordering::Acquire) != 0 {
            return Hold::Own(self);
        }
        self.busy.store(0, Ordering::Release);
        self.hold_as_foreigner()
    }

    /// Queues a component if the calling thread is the worker's own and no other thread has its
    /// leave.
    pub(super) fn push_if_own(&self, component: *mut Component) -> bool {
        // The thread may be busy already, returning a stopped sender, and stays so. Or it has just
        // been detached, and another thread is busy for a moment: then the gate is closed, and
        // nothing may be written back later.
        let was_busy = self.busy.load(Ordering::Relaxed) != 0;
        if !was_busy {
            self.busy.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
        }
        let is_own = self.gate.load(Ordering::Acquire) != 0;
        if is_own {
            self.push_soon(component);
        }
        if !was_busy {
            self.busy.store(0, Ordering::Release);
        }
        is_own
    }

    /// Whether the thread still has the worker after its component has ended. If so, it can no
    /// longer be detached.
    pub(super) fn is_kept(&'static self, runner: &'static Runner) -> bool {
        // Detached, possibly noticed already: then another thread may be busy with the worker.
        if runner.is_of(self) {
            self.busy.store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            // Had it been detached since, the gate would be closed.
            let is_open = self.gate.load(Ordering::Acquire) != 0;
            if is_open {
                self.running.store(ptr::null_mut(), Ordering::Relaxed);
            }
            self.busy.store(0, Ordering::Release);
            if is_open {
                return true;
            }
            let _leave = lock(&self.shared.leave);
            if runner.is_of(self) {
                self.running.store(ptr::null_mut(), Ordering::Relaxed);
                return true;
            }
        }
        self.be_noticed(runner);
        false
    }
}
