//! Layer 2: completely empty arenas by node, shared by the threads that run there.
//!
//! A pool is a stack for each power of two of pages, and a bitmap of those that are not empty.
//! Mended: the source's listing pops one list whatever the request; here the popped arena is large
//! enough, found by one look at the front of the request's own stack and one at the bitmap above.

use std::cell::UnsafeCell;
use std::ptr;

use super::block::{Arena, PAGE};
use super::lock::Lock;

/// Arenas of up to 2^20 pages.
const STACKS: usize = 21;

#[derive(Debug)]
struct Stacks {
    bits: u32,
    heads: [*mut Arena; STACKS],
    counts: [usize; STACKS],
}

/// A node's pool, on lines of its own.
#[repr(align(64))]
#[derive(Debug)]
pub struct Pool {
    pub(super) lock: Lock,
    stacks: UnsafeCell<Stacks>,
}

// SAFETY: the stacks are touched with the lock held only.
unsafe impl Sync for Pool {}
// SAFETY: arenas in a pool belong to no thread.
unsafe impl Send for Pool {}

fn stack_of(bytes: usize) -> usize {
    ((bytes / PAGE).ilog2() as usize).min(STACKS - 1)
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub const fn new() -> Pool {
        Pool {
            lock: Lock::new(),
            stacks: UnsafeCell::new(Stacks {
                bits: 0,
                heads: [ptr::null_mut(); STACKS],
                counts: [0; STACKS],
            }),
        }
    }

    /// Puts an empty arena in.
    ///
    /// # Safety
    /// The arena is in no stack and no pool, and no other thread knows it.
    pub unsafe fn push(&self, arena: *mut Arena) {
        self.lock.with(|| {
            // SAFETY: the lock is held; the arena is the caller's to give.
            unsafe {
                let stacks = &mut *self.stacks.get();
                let at = stack_of((*arena).size());
                (*arena).next = stacks.heads[at];
                (*arena).previous = ptr::null_mut();
                (*arena).owner = ptr::null_mut();
                stacks.heads[at] = arena;
                stacks.counts[at] += 1;
                stacks.bits |= 1 << at;
            }
        });
    }

    /// Takes out an arena of `bytes` bytes, whole pages, or more; null if there is none that is
    /// found without a search.
    pub fn pop(&self, bytes: usize) -> *mut Arena {
        self.lock.with(|| {
            // SAFETY: the lock is held; heads are arenas of the pool.
            unsafe {
                let stacks = &mut *self.stacks.get();
                let own = stack_of(bytes);
                let front = stacks.heads[own];
                let at = if !front.is_null() && (*front).size() >= bytes {
                    own
                } else {
                    let above = stacks.bits & u32::MAX.checked_shl(own as u32 + 1).unwrap_or(0);
                    if above == 0 {
                        return ptr::null_mut();
                    }
                    above.trailing_zeros() as usize
                };
                let arena = stacks.heads[at];
                stacks.heads[at] = (*arena).next;
                stacks.counts[at] -= 1;
                if stacks.heads[at].is_null() {
                    stacks.bits &= !(1 << at);
                }
                arena
            }
        })
    }

    /// Number of arenas.
    #[must_use]
    pub fn len(&self) -> usize {
        // SAFETY: the lock is held.
        let stacks = || unsafe { (*self.stacks.get()).counts.iter().sum() };
        self.lock.with(stacks)
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Pool {
    fn default() -> Self {
        Pool::new()
    }
}
