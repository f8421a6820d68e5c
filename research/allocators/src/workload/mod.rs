//! Programs that put load on whatever allocator their process has: `malloc` and `free` of the C
//! library, called as they are.
//!
//! [`larson`] is a server whose threads release each other's blocks, [`sharing`] two ways in which
//! an allocator can make threads share a cache line, [`random_order`] many sizes released in random
//! order, [`model`] the source's synthetic load. Each is written anew after the source's
//! description. `examples/workload.rs` runs one and prints its report, a word and a number a line.
//!
//! A workload maps what it needs for itself, so that the allocator sees the load and nothing else
//! (except for the requests of the threads' library).

pub mod larson;
pub mod model;
pub mod random_order;
pub mod sharing;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::system;

/// Results of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// From when all is prepared to the last thread's end.
    pub seconds: f64,
    /// Blocks that it asked for.
    pub allocations: u64,
    /// Blocks that it released.
    pub releases: u64,
}

/// Counts over threads. Relaxed: read when all threads are joined.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    allocations: AtomicU64,
    releases: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, allocations: u64, releases: u64) {
        self.allocations.fetch_add(allocations, Ordering::Relaxed);
        self.releases.fetch_add(releases, Ordering::Relaxed);
    }

    pub(crate) fn report(&self, begin: Instant) -> Report {
        Report {
            seconds: begin.elapsed().as_secs_f64(),
            allocations: self.allocations.load(Ordering::Relaxed),
            releases: self.releases.load(Ordering::Relaxed),
        }
    }
}

/// A block of the process's allocator, released by hand. May be passed to other threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the holder of a block is its only user.
unsafe impl Send for Block {}

impl Block {
    pub(crate) const NONE: Block = Block {
        start: std::ptr::null_mut(),
        bytes: 0,
    };

    /// From `malloc`. Without memory the process ends.
    pub(crate) fn new(bytes: usize) -> Block {
        // SAFETY: any size may be asked for.
        let start: *mut u8 = unsafe { libc::malloc(bytes) }.cast();
        if start.is_null() && bytes > 0 {
            system::say(b"workload: there is no memory\n");
            std::process::abort();
        }
        Block { start, bytes }
    }

    pub(crate) fn is_some(self) -> bool {
        !self.start.is_null()
    }

    /// Writes to all of it, so that its pages are there.
    pub(crate) fn fill(self, value: u8) {
        // SAFETY: the block is that long, and this thread's.
        unsafe { self.start.write_bytes(value, self.bytes) };
    }

    /// Writes to its first and last byte.
    pub(crate) fn touch(self, value: u8) {
        if self.bytes > 0 {
            // SAFETY: the block is that long, and this thread's.
            unsafe {
                self.start.write_volatile(value);
                self.start.add(self.bytes - 1).write_volatile(value);
            }
        }
    }

    pub(crate) fn start(self) -> *mut u8 {
        self.start
    }

    pub(crate) fn release(self) {
        // SAFETY: the block is of `malloc`, and the caller is its only holder.
        unsafe { libc::free(self.start.cast()) };
    }
}

/// Mapped room for `count` values of all zero bytes, never given back: a workload's process
/// is short.
pub(crate) fn room<T: Copy + Default>(count: usize) -> &'static mut [T] {
    let bytes = (count * size_of::<T>()).max(1);
    let start = system::map(bytes).cast::<T>();
    if start.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: the mapping is as long, aligned to a page, and nobody else's; each value is written
    // before the slice is made.
    unsafe {
        for at in 0..count {
            start.add(at).write(T::default());
        }
        std::slice::from_raw_parts_mut(start, count)
    }
}
