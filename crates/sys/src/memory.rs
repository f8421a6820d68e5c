//! The system's allocator.

use std::ffi::c_void;

/// At least `size` bytes aligned to 16, or null.
#[inline]
pub fn allocate(size: usize) -> *mut c_void {
    // SAFETY: malloc takes any size.
    unsafe { libc::malloc(size.max(1)) }
}

/// The same, zeroed.
#[inline]
pub fn allocate_zeroed(size: usize) -> *mut c_void {
    // SAFETY: calloc takes any size.
    unsafe { libc::calloc(1, size.max(1)) }
}

/// Gives a block back.
///
/// # Safety
/// `block` is null or came from this module and has not been released.
#[inline]
pub unsafe fn release(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { libc::free(block) }
}
