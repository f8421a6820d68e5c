//! Which sections the calling thread is inside of, so that nobody waits for itself.

use std::cell::Cell;
use std::ptr;

#[cfg(not(loom))]
thread_local! {
    static INNERMOST: Cell<*const Inside> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static INNERMOST: Cell<*const Inside> = Cell::new(ptr::null());
}

/// One section that the thread is inside of, on its stack; further out the next.
pub(super) struct Inside {
    section: *const (),
    outer: Cell<*const Inside>,
}

impl Inside {
    pub(super) fn new(section: *const ()) -> Inside {
        Inside {
            section,
            outer: Cell::new(ptr::null()),
        }
    }

    /// The thread is inside from now on. The record stays where it is until `leave`.
    #[inline]
    pub(super) fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self)));
    }

    /// What was entered last is left first.
    #[inline]
    pub(super) fn leave(&self) {
        INNERMOST.with(|innermost| innermost.set(self.outer.get()));
    }
}

/// Is the calling thread inside of this section?
#[inline]
pub(super) fn is_inside(section: *const ()) -> bool {
    let mut at = INNERMOST.with(Cell::get);
    while !at.is_null() {
        // SAFETY: who is inside has not left, so its record is still there.
        let inside = unsafe { &*at };
        if ptr::eq(inside.section, section) {
            return true;
        }
        at = inside.outer.get();
    }
    false
}
