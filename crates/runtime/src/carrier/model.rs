//! The carrier of the model checker.

use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, Ordering};

use crate::abi::Component;
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

/// A model has none.
pub struct Worker(());

pub(crate) fn place(_: Option<usize>) -> *const Worker {
    std::ptr::null()
}

pub(crate) unsafe fn launch(_: *mut Component) {
    unreachable!("a model's threads call the protocol themselves");
}

pub(crate) unsafe fn set_core(_: *mut Component, _: usize) {}

pub(crate) fn current_of(_: *const Worker) -> *mut Component {
    std::ptr::null_mut()
}
