//! The heap of a component: the interface that private heaps will fill.
//!
//! A heap is touched by the code that runs its component, or by the party that completes a
//! rendezvous with it while it is parked. Today every heap is the system's allocator.

use std::ffi::c_void;

use hearth_sys::memory;

use crate::abi::Component;
use crate::{exits, registry, seat};

/// A block that is not zeroed. Ends the program when there is none.
#[inline]
pub(crate) fn alloc(component: *mut Component, size: usize) -> *mut c_void {
    let block = memory::allocate(size);
    if block.is_null() {
        refused(component, size);
    }
    block
}

/// A zeroed block.
#[inline]
pub(crate) fn alloc_zeroed(component: *mut Component, size: usize) -> *mut c_void {
    let block = memory::allocate_zeroed(size);
    if block.is_null() {
        refused(component, size);
    }
    block
}

/// Gives a block back.
///
/// # Safety
/// `block` came from the heap of this component and is not used any more.
#[inline]
pub(crate) unsafe fn free(_component: *mut Component, block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { memory::release(block) };
}

/// A box for the runtime's own part of a component or channel: these come in large numbers, so a
/// refusal is told like any other.
pub(crate) fn boxed<T>(value: T) -> Box<T> {
    let layout = std::alloc::Layout::new::<T>();
    debug_assert!(layout.size() > 0);
    // SAFETY: the layout is not empty; a block of it that holds a value makes a box.
    unsafe {
        let block = std::alloc::alloc(layout).cast::<T>();
        if block.is_null() {
            refused(std::ptr::null_mut(), layout.size());
        }
        block.write(value);
        Box::from_raw(block)
    }
}

/// Says that memory has run out.
#[cold]
pub(crate) fn refused(component: *mut Component, size: usize) -> ! {
    let name = if component.is_null() {
        "the program".to_owned()
    } else {
        // SAFETY: components that allocate are alive.
        let seat = unsafe { seat::seat_of(component) };
        registry::described(seat)
    };
    let size = if size == usize::MAX {
        "more memory than there can be".to_owned()
    } else {
        format!("{size} bytes")
    };
    exits::unfit(&format!(
        "out of memory: {name} asked for {size}; use smaller arrays or fewer components, or raise \
         the limit (ulimit -v)"
    ))
}

/// A block of a component's heap, not zeroed.
///
/// # Safety
/// `self` is alive, and runs this or is parked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_alloc(this: *mut Component, size: usize) -> *mut c_void {
    alloc(this, size)
}

/// A zeroed block.
///
/// # Safety
/// As for `hearth_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_alloc_zeroed(this: *mut Component, size: usize) -> *mut c_void {
    alloc_zeroed(this, size)
}

/// Gives a block back.
///
/// # Safety
/// As for `hearth_alloc`; the block came from this heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_free(this: *mut Component, block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { free(this, block) };
}
