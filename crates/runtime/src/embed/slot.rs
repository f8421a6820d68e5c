//! The place of a value of any type between two futures.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr;

use super::life;
use crate::abi::Component;

/// Initial room for small values, in bytes.
const SMALLEST: usize = 64;

/// A block of memory for one value; none at first.
struct Room {
    place: *mut u8,
    layout: Layout,
}

impl Room {
    const NONE: Room = Room {
        place: ptr::null_mut(),
        layout: Layout::new::<()>(),
    };

    fn fits(&self, needed: Layout) -> bool {
        self.layout.size() >= needed.size().max(1) && self.layout.align() >= needed.align()
    }

    #[cold]
    fn of(needed: Layout) -> Room {
        let size = needed.size().next_power_of_two().max(SMALLEST);
        let layout = Layout::from_size_align(size, needed.align().max(16))
            .expect("a type's size and alignment are far below the limits");
        // SAFETY: the size is not zero.
        let place = unsafe { alloc(layout) };
        if place.is_null() {
            handle_alloc_error(layout);
        }
        Room { place, layout }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout; its slot drops a value before it drops the room.
            unsafe { dealloc(self.place, self.layout) };
        }
    }
}

/// Room for one value. Two slots swap their rooms to pass a value on, however large it is.
///
/// A component's slot is reached by a pointer, and the destructor of a value may reach it too. So
/// no value is dropped in there: it is taken out with its room ([`ValueSlot::take_whole`]) and
/// dropped where nothing else can reach it.
pub(super) struct ValueSlot {
    room: Room,
    /// Drops the value, if there is one.
    drop: Option<unsafe fn(*mut u8)>,
}

// SAFETY: only values that are `Send` are put in, and the room is the slot's own.
unsafe impl Send for ValueSlot {}

unsafe fn drop_value<T>(place: *mut u8) {
    // SAFETY: as the caller promises, a value of this type is there, once.
    unsafe { place.cast::<T>().drop_in_place() };
}

impl ValueSlot {
    pub(super) const fn new() -> ValueSlot {
        ValueSlot {
            room: Room::NONE,
            drop: None,
        }
    }

    /// Puts a value in.
    ///
    /// # Panics
    /// If the slot is full.
    pub(super) fn put<T: Send>(&mut self, value: T) {
        assert!(self.drop.is_none(), "a component sends one by one");
        let needed = Layout::new::<T>();
        if !self.room.fits(needed) {
            self.room = Room::of(needed);
        }
        // SAFETY: there is room for it.
        unsafe { self.room.place.cast::<T>().write(value) };
        self.drop = Some(drop_value::<T>);
    }

    /// Takes the value out, if there is one.
    ///
    /// # Safety
    /// The value, if there is one, was put in as a `T`.
    pub(super) unsafe fn take<T>(&mut self) -> Option<T> {
        self.drop.take()?;
        // SAFETY: a value is there, as the caller promises of this type, and is read once.
        Some(unsafe { self.room.place.cast::<T>().read() })
    }

    /// Takes the value out with its room, if there is one. Dropping the result drops the value.
    pub(super) fn take_whole(&mut self) -> Option<ValueSlot> {
        self.drop
            .is_some()
            .then(|| std::mem::replace(self, ValueSlot::new()))
    }
}

impl Drop for ValueSlot {
    fn drop(&mut self) {
        if let Some(drop) = self.drop.take() {
            // SAFETY: a value is there, once. The room goes afterwards, panic or not.
            unsafe { drop(self.room.place) };
        }
    }
}

/// Passes a value on for the runtime, by swapping the rooms of two slots. `value` is the slot of
/// the sender.
///
/// # Safety
/// `to` is an embedded component and `value` a slot of another, full. Both components run the
/// calling code or are parked for it, as [`crate::abi::Foreign`] says, so nothing else uses their
/// slots.
pub(super) unsafe extern "C" fn pass(to: *mut Component, value: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises, both slots are the caller's for now.
    unsafe {
        let into = life::arrivals(to);
        debug_assert!((*into).drop.is_none(), "a component receives one by one");
        ptr::swap(value.cast::<ValueSlot>(), into);
    }
    ptr::null_mut()
}
