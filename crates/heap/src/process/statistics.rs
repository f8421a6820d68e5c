//! Statistics in bytes, and memory given back on request.

use crate::ground::geometry::{CHUNK_BYTES, CHUNK_SHIFT};
use crate::process::start::{is_ready, with_own_heap};
use crate::store::large;
use crate::store::pool::POOLS;
use crate::store::space::SPACE;

/// The bytes of a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes of its own chunks.
    pub owned: usize,
    /// Bytes of pages there that may have memory behind them.
    pub touched: usize,
    /// Bytes of blocks in use, cached, or lent to upkeep.
    pub used: usize,
}

/// The bytes of this thread's heap; zero if there is no memory for one.
pub fn figures() -> Figures {
    with_own_heap(|heap| Figures {
        owned: heap.chunks.get() * CHUNK_BYTES,
        touched: heap.touched.get(),
        used: heap.used.get(),
    })
    .unwrap_or_default()
}

/// Asserts the invariants of this thread's heap, and returns its contents.
#[cfg(any(test, feature = "checks"))]
pub fn check_this_thread() -> crate::heap::checks::Census {
    with_own_heap(|heap| heap.check()).unwrap_or_default()
}

/// Asserts the invariants of this thread's nursery, while nobody uses a heap with pages of it.
/// Returns the number of pieces that it has lent.
#[cfg(any(test, feature = "checks"))]
pub fn check_this_nursery() -> usize {
    with_own_heap(|heap| {
        // SAFETY: a nursery never ends, and is its thread's alone.
        let Some(nursery) = (unsafe { heap.nursery.get().as_ref() }) else {
            return 0;
        };
        nursery.settle();
        nursery.check().used.len()
    })
    .unwrap_or_default()
}

/// Sends this thread's frees of other heaps' blocks, and takes back remote frees of its own.
#[cfg(any(test, feature = "checks"))]
pub fn settle_this_thread() {
    with_own_heap(|heap| {
        heap.flush_marks();
        heap.settle();
    });
}

/// The bytes that the process has from the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of chunks that heaps and large blocks have, used or not.
    pub held: usize,
    /// Bytes of idle chunks, which no heap has and which have memory behind them.
    pub idle: usize,
    /// Bytes of blocks that are mappings of their own.
    pub mapped: usize,
    /// The number of such blocks.
    pub mappings: usize,
}

/// The current totals, each read for itself.
pub fn totals() -> Totals {
    if !is_ready() {
        return Totals::default();
    }
    let (mappings, mapped) = large::mapped();
    Totals {
        held: POOLS.held(&SPACE) << CHUNK_SHIFT,
        idle: (POOLS.idle(&SPACE) as usize) << CHUNK_SHIFT,
        mapped,
        mappings,
    }
}

/// Gives the memory of idle chunks back to the system, except `keep` bytes. Returns the bytes given
/// back.
pub fn trim(keep: usize) -> usize {
    if !is_ready() {
        return 0;
    }
    POOLS.trim(&SPACE, keep)
}

// ---- for the helper --------------------------------------------------------------------------
