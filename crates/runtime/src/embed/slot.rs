//! Where a value of any type stands between two futures.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::life;
use crate::abi::Component;

/// Room for small values, in bytes, from the start.
const SMALLEST: usize = 64;

/// Room for one value. Two slots exchange their rooms to pass a value on, however large it is.
pub(super) struct Slot {
    room: *mut u8,
    layout: Layout,
    /// How to drop the value, if there is one.
    drop: Option<unsafe fn(*mut u8)>,
}

unsafe fn drop_value<T>(place: *mut u8) {
    // SAFETY: as the caller promises, a value of this type is there, once.
    unsafe { place.cast::<T>().drop_in_place() };
}

impl Slot {
    pub(super) const fn new() -> Slot {
        Slot {
            room: ptr::null_mut(),
            layout: Layout::new::<()>(),
            drop: None,
        }
    }

    /// Puts a value in; one that is there already is dropped.
    pub(super) fn put<T: Send>(&mut self, value: T) {
        self.clear();
        let needed = Layout::new::<T>();
        if self.layout.size() < needed.size().max(1) || self.layout.align() < needed.align() {
            self.grow(needed);
        }
        // SAFETY: there is room for it.
        unsafe { self.room.cast::<T>().write(value) };
        self.drop = Some(drop_value::<T>);
    }

    #[cold]
    fn grow(&mut self, needed: Layout) {
        self.free();
        let size = needed.size().next_power_of_two().max(SMALLEST);
        let layout = Layout::from_size_align(size, needed.align().max(16))
            .expect("a type's size and alignment are far below the limits");
        // SAFETY: the size is not nought.
        let room = unsafe { alloc(layout) };
        if room.is_null() {
            handle_alloc_error(layout);
        }
        self.room = room;
        self.layout = layout;
    }

    /// Takes the value out, if one is there.
    ///
    /// # Safety
    /// What was put in is a `T`.
    pub(super) unsafe fn take<T>(&mut self) -> Option<T> {
        self.drop.take()?;
        // SAFETY: a value is there, as the caller promises of this type, and is read once.
        Some(unsafe { self.room.cast::<T>().read() })
    }

    /// Drops the value, if one is there. A panic of its destructor ends here.
    pub(super) fn clear(&mut self) {
        if let Some(drop) = self.drop.take() {
            let room = self.room;
            // SAFETY: a value is there, once.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { drop(room) }));
            // Dropping what a panic carries may panic.
            std::mem::forget(result);
        }
    }

    fn free(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout, and empty.
            unsafe { dealloc(self.room, self.layout) };
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.clear();
        self.free();
    }
}

/// What the runtime calls to pass a value on: `value` is the slot of the sender, which runs or is
/// parked, as `to` does or is.
///
/// # Safety
/// As [`crate::abi::Foreign`] says; only embedded components use foreign types.
pub(super) unsafe extern "C" fn pass(to: *mut Component, value: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises, both slots are the caller's for now.
    unsafe {
        let into = life::arrivals(to);
        debug_assert!((*into).drop.is_none(), "a component receives one by one");
        ptr::swap(value.cast::<Slot>(), into);
    }
    ptr::null_mut()
}
