//! `libhearth_malloc.so`: the C library's allocation functions on Hearth's heaps.
//!
//! ```text
//! LD_PRELOAD=libhearth_malloc.so PROGRAM
//! ```
//!
//! This crate has only the exported names; `hearth-heap` does the work. The C++ operators are in
//! `operators`, the GNU library's additions to C and POSIX in `gnu`.
//!
//! The shipped build, where panics abort, does without the standard library: that would bring
//! thread-local storage of its own, accessed by a call that may allocate.
#![cfg_attr(panic = "abort", no_std)]

mod gnu;
mod operators;
mod threads;

use core::ffi::{c_int, c_void};
use core::ptr;

use hearth_heap as heap;

/// Runs before `main`, called by the loader, so that the first allocation there is like any other.
/// An allocation may come even before that, and makes the same preparations.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    heap::begin();
    heap::watch_forks();
    threads::begin();
}

/// Sets `errno` and returns null.
#[cold]
fn fail(error: c_int) -> *mut c_void {
    // SAFETY: the place of this thread's error number.
    unsafe { *libc::__errno_location() = error };
    ptr::null_mut()
}

/// C's `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    heap::allocate(size).cast()
}

/// C's `free`.
///
/// # Safety
/// As C says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// C's `calloc`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => heap::allocate_zeroed(bytes).cast(),
        None => fail(libc::ENOMEM),
    }
}

/// C's `realloc`. A size of 0 frees, as in the GNU library.
///
/// # Safety
/// As C says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 && !block.is_null() {
        // SAFETY: as the caller promises.
        unsafe { heap::free(block.cast()) };
        return ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    unsafe { heap::reallocate(block.cast(), size) }.cast()
}

/// BSD's `reallocarray`.
///
/// # Safety
/// As for `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => fail(libc::ENOMEM),
    }
}

/// C11's `aligned_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // The GNU library refuses other alignments from 2.38 on; earlier ones round them up.
    memalign(align, size)
}

/// The older form of `aligned_alloc`. The GNU library takes any alignment and rounds it up.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => heap::allocate_aligned(size, align).cast(),
        None => fail(libc::EINVAL),
    }
}

/// POSIX's `posix_memalign`.
///
/// # Safety
/// `place` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = heap::allocate_aligned(size, align);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: as the caller promises.
    unsafe { *place = block.cast() };
    0
}

const PAGE: usize = 4096;

/// BSD's `valloc`: a block aligned to pages.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

/// The GNU library's `pvalloc`: a block of whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(PAGE) {
        Some(size) => memalign(PAGE, size),
        None => fail(libc::ENOMEM),
    }
}

/// The GNU library's `malloc_usable_size`: the bytes that a block really has.
///
/// # Safety
/// The block is alive, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast()) }
}

/// An old name of `free`.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// C23's `free_sized`.
///
/// # Safety
/// As for `free`; the size is that of the allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// C23's `free_aligned_sized`.
///
/// # Safety
/// As for `free_sized`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// Reports a bug of ours. Formatting may allocate, so the message is fixed.
#[cfg(panic = "abort")]
#[panic_handler]
fn panicked(_info: &core::panic::PanicInfo<'_>) -> ! {
    const TEXT: &[u8] = b"hearth: malloc failed: a bug of Hearth, please report it\n";
    // SAFETY: the text has this length; abort takes nothing.
    unsafe {
        libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
        libc::abort()
    }
}
