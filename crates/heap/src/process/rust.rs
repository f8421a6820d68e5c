//! Rust's global allocator on the heaps of threads.

use crate::process::blocks;
use core::alloc::{GlobalAlloc, Layout};

use crate::ground::geometry::GRANULE_MIN;

/// The heaps of this process's threads, as Rust's global allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hearth;

// SAFETY: blocks are as large and aligned as their layouts say, alive until they are given back,
// and nothing here unwinds.
unsafe impl GlobalAlloc for Hearth {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= GRANULE_MIN {
            blocks::allocate(layout.size())
        } else {
            blocks::allocate_aligned(layout.size(), layout.align())
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller gives back what `alloc` gave.
        unsafe { blocks::free(block) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= GRANULE_MIN {
            return blocks::allocate_zeroed(layout.size());
        }
        let block = blocks::allocate_aligned(layout.size(), layout.align());
        if !block.is_null() {
            // SAFETY: the block is this long.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= GRANULE_MIN {
            // SAFETY: the caller gives back what `alloc` gave.
            return unsafe { blocks::reallocate(block, size) };
        }
        let other = blocks::allocate_aligned(size, layout.align());
        if !other.is_null() {
            // SAFETY: both are as long as the shorter, and the caller gives the old one back.
            unsafe {
                other.copy_from_nonoverlapping(block, layout.size().min(size));
                blocks::free(block);
            }
        }
        other
    }
}
