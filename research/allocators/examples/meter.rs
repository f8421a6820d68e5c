//! The meter as a shared object, to be preloaded before an allocator.

use hearth_allocators::meter::preloaded;

extern "C" fn at_begin() {
    preloaded::at_begin();
}

extern "C" fn at_end() {
    preloaded::at_end();
}

// SAFETY: the loader calls what is listed there once, with nothing that must be looked at.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = at_begin;

// SAFETY: as above, when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = at_end;

// SAFETY: this crate is made to stand in for the process's allocator; each name below is defined
// here only, with the types that C gives it.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: usize) -> *mut u8 {
    preloaded::malloc(bytes)
}

/// # Safety
/// As C has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { preloaded::free(block) };
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
    preloaded::calloc(count, bytes)
}

/// # Safety
/// As C has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { preloaded::realloc(block, bytes) }
}

/// # Safety
/// As C has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut u8, count: usize, bytes: usize) -> *mut u8 {
    let all = count.saturating_mul(bytes);
    // SAFETY: the caller's promise.
    unsafe { preloaded::realloc(block, all) }
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, bytes: usize) -> *mut u8 {
    preloaded::memalign(align, bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut u8 {
    preloaded::memalign(align, bytes)
}

/// # Safety
/// As C has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut u8, align: usize, bytes: usize) -> i32 {
    /// Linux's numbers, the same on all its machines.
    const EINVAL: i32 = 22;
    const ENOMEM: i32 = 12;
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return EINVAL;
    }
    let block = preloaded::memalign(align, bytes);
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(block) };
    0
}
