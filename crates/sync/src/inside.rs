//! The sections that the calling thread is inside of, so that it never waits for itself.

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

#[cfg(not(loom))]
thread_local! {
    /// The section that the thread is the proprietor of.
    static OWNS: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// A section that the thread is inside of, on its stack, linked to the next outer one.
pub(crate) struct Inside {
    section: *const (),
    outer: Cell<*const Inside>,
}

impl Inside {
    pub(crate) fn new(section: *const ()) -> Inside {
        Inside {
            section,
            outer: Cell::new(ptr::null()),
        }
    }

    /// Enters. The record stays where it is until `leave`.
    #[inline]
    pub(crate) fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self)));
    }

    /// Leaves. The innermost section is left first.
    #[inline]
    pub(crate) fn leave(&self) {
        INNERMOST.with(|innermost| innermost.set(self.outer.get()));
    }
}

/// True if the calling thread is inside of this section.
#[inline]
pub(crate) fn is_inside(section: *const ()) -> bool {
    let mut at = INNERMOST.with(Cell::get);
    while !at.is_null() {
        // SAFETY: the thread has not left, so its record is still there.
        let inside = unsafe { &*at };
        if ptr::eq(inside.section, section) {
            return true;
        }
        at = inside.outer.get();
    }
    false
}

/// Makes the calling thread the section's proprietor.
pub(crate) fn owns(section: *const ()) {
    #[cfg(not(loom))]
    OWNS.set(section);
    // In models no closure panics.
    #[cfg(loom)]
    let _ = section;
}

/// True if the calling thread, inside of a section and in no closure on it, serves as that
/// section's proprietor. Otherwise the frames on its stack belong to other work.
#[cold]
pub(crate) fn serves_as_proprietor() -> bool {
    #[cfg(loom)]
    return false;
    #[cfg(not(loom))]
    {
        let innermost = INNERMOST.with(Cell::get);
        // SAFETY: the thread has not left, so its record is still there.
        let section = unsafe { innermost.as_ref() }.map(|inside| inside.section);
        section.is_some_and(|section| ptr::eq(section, OWNS.get()))
    }
}
