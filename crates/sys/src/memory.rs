//! The system's allocator, with a cache for the sizes at which it is slow.
//!
//! glibc serves small blocks from a cache of each thread, but none above [`CACHED_BELOW`] bytes,
//! and zeroed blocks bypass that cache. This module caches larger blocks of up to a few KiB, the
//! arrays that components send each other, in the same way: each thread keeps a few of each size. A
//! block's size is what the allocator reports, so blocks from elsewhere may be released here.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ptr;

/// glibc's own cache serves blocks up to this size (`tcache_max`).
const CACHED_BELOW: usize = 1032;
/// Step between sizes, each 8 less than a multiple: glibc's sizes.
const STEP: usize = 16;
const OVERHEAD: usize = 8;
/// Step of the smallest size that is kept, and the one behind the largest.
const FIRST: usize = (CACHED_BELOW + OVERHEAD).div_ceil(STEP) + 1;
const BEHIND: usize = FIRST + 256;
/// Number of blocks kept of each size: a few, for blocks that go back and forth, and at most 3 MiB
/// for a thread that uses all sizes.
const KEPT: u8 = 4;

/// Free blocks of one size, linked through their first words.
#[derive(Clone, Copy)]
struct Kept {
    first: *mut c_void,
    count: u8,
}

struct Cache {
    sizes: UnsafeCell<[Kept; BEHIND - FIRST]>,
    /// The thread is ending, and its blocks have been freed.
    is_closed: Cell<bool>,
}

thread_local! {
    static CACHE: Cache = const {
        Cache {
            sizes: UnsafeCell::new([Kept { first: ptr::null_mut(), count: 0 }; BEHIND - FIRST]),
            is_closed: Cell::new(false),
        }
    };
}

impl Cache {
    fn take(&self, step: usize) -> *mut c_void {
        // SAFETY: the thread's own, and not lent out: no call is made meanwhile.
        let kept = unsafe { &mut (*self.sizes.get())[step - FIRST] };
        let block = kept.first;
        if !block.is_null() {
            // SAFETY: a free block of ours, which begins with the next.
            kept.first = unsafe { block.cast::<*mut c_void>().read() };
            kept.count -= 1;
        }
        block
    }

    /// Keeps a block. False if there are enough of that size.
    fn keep(&self, step: usize, block: *mut c_void) -> bool {
        // SAFETY: as in `take`.
        let kept = unsafe { &mut (*self.sizes.get())[step - FIRST] };
        if kept.count == KEPT || self.is_closed.get() {
            return false;
        }
        // SAFETY: the caller gives the block, which is larger than a pointer.
        unsafe { block.cast::<*mut c_void>().write(kept.first) };
        kept.first = block;
        kept.count += 1;
        true
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.is_closed.set(true);
        for kept in self.sizes.get_mut() {
            while !kept.first.is_null() {
                let block = kept.first;
                // SAFETY: a free block of ours, given back once.
                unsafe {
                    kept.first = block.cast::<*mut c_void>().read();
                    libc::free(block);
                }
            }
        }
    }
}

/// Allocates at least `size` bytes aligned to 16. Null if there is no memory.
#[inline]
pub fn allocate(size: usize) -> *mut c_void {
    if size > CACHED_BELOW {
        let step = size.saturating_add(OVERHEAD).div_ceil(STEP);
        if step < BEHIND {
            let block = CACHE
                .try_with(|cache| cache.take(step))
                .unwrap_or(ptr::null_mut());
            if !block.is_null() {
                return block;
            }
        }
    }
    // SAFETY: malloc takes any size.
    unsafe { libc::malloc(size.max(1)) }
}

/// Allocates zeroed memory.
#[inline]
pub fn allocate_zeroed(size: usize) -> *mut c_void {
    if size > CACHED_BELOW {
        // SAFETY: calloc takes any size. It knows which pages are zero already.
        return unsafe { libc::calloc(1, size) };
    }
    let block = allocate(size);
    if !block.is_null() {
        // SAFETY: a fresh block of that size.
        unsafe { ptr::write_bytes(block.cast::<u8>(), 0, size) };
    }
    block
}

/// Releases a block.
///
/// # Safety
/// `block` is null, or came from this module and has not been released.
#[inline]
pub unsafe fn release(block: *mut c_void) {
    // SAFETY: as the caller promises; null has no bytes.
    let bytes = unsafe { libc::malloc_usable_size(block) };
    if bytes > CACHED_BELOW {
        // Rounded down: a block serves only steps for which it has room.
        let step = (bytes + OVERHEAD) / STEP;
        if (FIRST..BEHIND).contains(&step)
            && CACHE
                .try_with(|cache| cache.keep(step, block))
                .unwrap_or(false)
        {
            return;
        }
    }
    // SAFETY: as the caller promises.
    unsafe { libc::free(block) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_room_that_was_asked_for() {
        let sizes = (1..200).map(|step| step * 37);
        for round in 0..3 {
            let blocks: Vec<_> = sizes.clone().map(|size| (allocate(size), size)).collect();
            for &(block, size) in &blocks {
                assert!(!block.is_null());
                // SAFETY: the block is ours, of this size at least.
                unsafe {
                    assert!(
                        libc::malloc_usable_size(block) >= size,
                        "{size} in round {round}"
                    );
                    ptr::write_bytes(block.cast::<u8>(), 0xA5, size);
                }
            }
            for (block, _) in blocks {
                // SAFETY: from above, once.
                unsafe { release(block) };
            }
        }
    }

    #[test]
    fn a_block_given_back_comes_again() {
        let first = allocate(1040);
        // SAFETY: from above, once.
        unsafe { release(first) };
        let second = allocate(1040);
        assert_eq!(first, second);
        // SAFETY: from above, once.
        unsafe { release(second) };
    }

    #[test]
    fn zeroed_blocks_are_zero_even_if_used_before() {
        for size in [1, 64, 1032, 1033, 4096] {
            let used = allocate(size);
            // SAFETY: ours, of this size, given back once.
            unsafe {
                ptr::write_bytes(used.cast::<u8>(), 1, size);
                release(used);
            }
            let block = allocate_zeroed(size);
            // SAFETY: ours, of this size, given back once.
            unsafe {
                let bytes = std::slice::from_raw_parts(block.cast::<u8>(), size);
                assert!(bytes.iter().all(|&byte| byte == 0));
                release(block);
            }
        }
    }
}
