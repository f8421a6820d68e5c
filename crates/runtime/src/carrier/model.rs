//! The carrier of the model checker.

use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{Component, Step};
use crate::channel::Channel;
use crate::channel::link::Line;
use crate::seat::Seat;

pub(crate) struct Parker {
    is_woken: AtomicBool,
    wake: Notify,
}

impl Parker {
    pub(crate) fn new() -> Parker {
        Parker {
            is_woken: AtomicBool::new(false),
            wake: Notify::new(),
        }
    }
}

/// Sleeps until the one `wake`.
pub(crate) fn wait(seat: &Seat) {
    // Acquire and Release as in the thread carrier.
    while !seat.parker.is_woken.load(Ordering::Acquire) {
        // May return for no reason, as a futex may.
        seat.parker.wake.wait();
    }
    seat.parker.is_woken.store(false, Ordering::Relaxed);
}

/// # Safety
/// `seat` is alive: models keep all seats until every thread has ended.
pub(crate) unsafe fn wake(seat: *const Seat) {
    // SAFETY: as the caller promises.
    let parker = unsafe { &(*seat).parker };
    assert!(!parker.is_woken.load(Ordering::Relaxed), "woken twice");
    parker.is_woken.store(true, Ordering::Release);
    parker.wake.notify();
}

/// A model has none, and all its half-channels are shared.
pub struct Worker(());

/// Leave of a worker, of which a model has none.
pub(crate) struct Hold(());

/// The same.
pub(crate) struct Entered(());

const NONE: &str = "a model has no workers";

impl Worker {
    pub(crate) fn mark(&self) -> usize {
        unreachable!("{NONE}")
    }

    pub(crate) fn is_foreign_to_component(&self) -> bool {
        unreachable!("{NONE}")
    }

    pub(crate) fn hold(&'static self) -> Hold {
        unreachable!("{NONE}")
    }

    pub(crate) unsafe fn forget(&self, _: &'static Line, _: bool) {
        unreachable!("{NONE}")
    }
}

impl Entered {
    pub(crate) unsafe fn new(_: *mut Component, _: &Channel) -> Option<Entered> {
        None
    }

    pub(crate) unsafe fn even_if_attending(_: *mut Component, _: &Channel) -> Option<Entered> {
        None
    }

    pub(crate) fn covers(&self, _: &Channel) -> bool {
        unreachable!("{NONE}")
    }
}

/// The same, of a link.
pub(crate) struct Linked(());

impl Linked {
    pub(crate) unsafe fn new(_: *mut Component, _: &Channel) -> Option<(Linked, &'static Line)> {
        None
    }

    pub(crate) fn watch(&self, _: &'static Line, _: bool) -> bool {
        unreachable!("{NONE}")
    }

    pub(crate) fn forget(&self, _: &'static Line, _: bool) {
        unreachable!("{NONE}")
    }
}

pub(crate) fn hold_both(_: &'static Worker, _: &'static Worker) -> (Hold, Hold) {
    unreachable!("{NONE}")
}

/// An operation, which needs nothing of a model's threads.
pub(crate) struct Operation(());

impl Operation {
    pub(crate) unsafe fn begin(_: *mut Component) -> Operation {
        Operation(())
    }

    pub(crate) fn end(self, step: Step) -> Step {
        step
    }
}

pub(crate) fn own_worker() -> Option<&'static Worker> {
    None
}

pub(crate) unsafe fn rejoin(_: *mut Component) {}

pub(crate) unsafe fn parks(_: *mut Component) {}

pub(crate) fn worker_of(home: *const Worker) -> *const Worker {
    home
}

pub(crate) unsafe fn post(_: *mut Component) {
    unreachable!("{NONE}")
}

pub(crate) fn home_of(_: *mut Component) -> *const Worker {
    std::ptr::null()
}

pub(crate) fn of_mark(_: usize) -> Option<&'static Worker> {
    None
}

pub(crate) fn mark_of(_: *const Worker) -> Option<usize> {
    None
}

pub(crate) fn inflate(_: *mut Component) {}

pub(crate) unsafe fn ready_here(_: *mut Component) {
    unreachable!("{NONE}")
}

pub(crate) fn place(_: Option<usize>) -> *const Worker {
    std::ptr::null()
}

pub(crate) unsafe fn launch(_: *mut Component) {
    unreachable!("a model's threads call the protocol themselves");
}

pub(crate) unsafe fn set_core(_: *mut Component, _: usize) {}

pub(crate) fn running() -> *mut Component {
    std::ptr::null_mut()
}

pub(crate) fn component_on(_: usize) -> *mut Component {
    std::ptr::null_mut()
}
