//! The carrier of the model checker: parking on its lock and condition variable.

use loom::sync::{Condvar, Mutex};

use crate::abi::Component;
use crate::seat::Seat;

pub(crate) struct Parker {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Parker {
    pub(crate) fn new() -> Parker {
        Parker {
            woken: Mutex::new(false),
            wake: Condvar::new(),
        }
    }
}

/// Sleeps until the one `wake`.
pub(crate) fn wait(seat: &Seat) {
    let mut woken = seat.parker.woken.lock().unwrap();
    while !*woken {
        woken = seat.parker.wake.wait(woken).unwrap();
    }
    *woken = false;
}

/// # Safety
/// `seat` is alive: models keep all seats until every thread has ended.
pub(crate) unsafe fn wake(seat: *const Seat) {
    // SAFETY: as the caller promises.
    let parker = unsafe { &(*seat).parker };
    let mut woken = parker.woken.lock().unwrap();
    assert!(!*woken, "woken twice");
    *woken = true;
    parker.wake.notify_one();
}

pub(crate) fn launch(_: *mut Component) {
    unreachable!("a model's threads call the protocol themselves");
}

pub(crate) fn pin_current(_: usize) {}
