//! Whole arrays: means, comparison, the Fourier transform.

use crate::abi::{Array, Component, Label};
use crate::seats::exceptions;
use crate::services::values::{elements, elements_mut};
use crate::services::{fourier, numbers};

/// `avgIntArray`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_avg_int_array(_this: *mut Component, array: *mut Array) -> f32 {
    // SAFETY: a borrowed array of integers.
    numbers::average_of_integers(unsafe { elements(array) })
}

/// `avgRealArray`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_avg_real_array(_this: *mut Component, array: *mut Array) -> f32 {
    // SAFETY: a borrowed array of reals.
    numbers::average_of_reals(unsafe { elements(array) })
}

/// `byteArrayEqual`: equal lengths and equal elements.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_byte_array_equal(
    _this: *mut Component,
    a: *mut Array,
    b: *mut Array,
) -> bool {
    // SAFETY: borrowed arrays of bytes, maybe one and the same.
    unsafe { elements::<u8>(a) == elements::<u8>(b) }
}

/// `ifft`: replaces the first `count` elements by their transform. A count beyond the array raises
/// OperationFailedException; one below 1 does nothing.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_ifft(this: *mut Component, array: *mut Array, count: i32) {
    // SAFETY: a borrowed array of integers, which belongs to the component that runs this.
    let signal: &mut [i32] = unsafe { elements_mut(array) };
    let count = usize::try_from(count).unwrap_or(0);
    match signal.get_mut(..count) {
        Some(part) => fourier::transform(part),
        None => {
            let detail = c"ifft was asked for more elements than the array has".as_ptr();
            // SAFETY: the component runs this; the detail is a literal.
            unsafe { exceptions::raise(this, Label::OperationFailed, std::ptr::null(), detail) };
        }
    }
}
