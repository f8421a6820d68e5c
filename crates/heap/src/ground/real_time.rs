//! The flag of real-time mode, and its message when the prepared memory is used up.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::ground::os;

/// The environment turns the mode on for the whole process.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The message appears once in a process.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Whether the mode is on.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Turns the mode on.
pub(crate) fn turn_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Reports a refused allocation, once, if the mode is on.
#[cold]
pub(crate) fn report_refused() {
    if !is_on() || IS_TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    os::say(&[
        b"hearth: real-time: the prepared memory is used up, so malloc returns null; give \
          HEARTH_REAL_TIME a larger size\n",
    ]);
}
