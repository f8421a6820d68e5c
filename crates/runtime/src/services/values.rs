//! Arguments and results of natives: arrays and structs.

use std::ptr;

use crate::abi::{Array, Component, HEADER_BYTES, Object};
use crate::exchange::values::heap;

/// The elements of an array.
///
/// # Safety
/// `array` is an array of `T` that stays alive and unchanged meanwhile.
pub(crate) unsafe fn elements<'a, T>(array: *const Array) -> &'a [T] {
    // SAFETY: the elements follow the header, as many as it says.
    unsafe {
        let start = array.cast::<u8>().add(HEADER_BYTES).cast::<T>();
        std::slice::from_raw_parts(start, (*array).length)
    }
}

/// The elements, mutable.
///
/// # Safety
/// As for `elements`, and nothing else reads them meanwhile: the native reads no other argument
/// that may be the same array.
pub(crate) unsafe fn elements_mut<'a, T>(array: *mut Array) -> &'a mut [T] {
    // SAFETY: as in `elements`.
    unsafe {
        let start = array.cast::<u8>().add(HEADER_BYTES).cast::<T>();
        std::slice::from_raw_parts_mut(start, (*array).length)
    }
}

/// Makes an array in the heap of a component that runs the calling code or is parked for it,
/// counted once. The elements are copied as they are: references go with them.
pub(crate) fn array<T: Copy>(component: *mut Component, values: &[T]) -> *mut Array {
    let size = HEADER_BYTES + size_of_val(values);
    let array = heap::alloc(component, size).cast::<Array>();
    // SAFETY: a fresh block of that size, aligned for any object.
    unsafe {
        array.write(Array {
            object: Object { refs: 1, spare: 0 },
            length: values.len(),
        });
        let place = array.cast::<u8>().add(HEADER_BYTES).cast::<T>();
        ptr::copy_nonoverlapping(values.as_ptr(), place, values.len());
    }
    array
}

/// Makes a struct in the heap of such a component. `T` begins with an [`Object`] that is counted
/// once, and is laid out as C would.
pub(crate) fn structure<T>(component: *mut Component, value: T) -> *mut T {
    let place = heap::alloc(component, size_of::<T>()).cast::<T>();
    // SAFETY: a fresh block of that size, aligned for any object.
    unsafe { place.write(value) };
    place
}

/// The header of an object with one reference.
pub(crate) const COUNTED_ONCE: Object = Object { refs: 1, spare: 0 };
