//! What there is, in bytes; and what the helper and the user give back of it.

use crate::ground::geometry::{CHUNK_BYTES, CHUNK_SHIFT};
use crate::heap::threads::with_own_heap;
use crate::process::start::is_made;
use crate::store::large;
use crate::store::pool::POOLS;
use crate::store::space::SPACE;

/// What a heap has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of the chunks that are its own.
    pub owned: usize,
    /// Of pages there that may have memory behind them.
    pub touched: usize,
    /// Of blocks in use or kept in cache; and lent to the helper.
    pub used: usize,
}

/// What this thread's heap has. Nothing if there is no memory for one.
pub fn figures() -> Figures {
    with_own_heap(|heap| Figures {
        owned: heap.chunks.get() * CHUNK_BYTES,
        touched: heap.touched.get(),
        used: heap.used.get(),
    })
    .unwrap_or_default()
}

/// Asserts that this thread's heap is as it should be, and tells what is in it.
#[cfg(any(test, feature = "checks"))]
pub fn check_this_thread() -> crate::heap::checks::Census {
    with_own_heap(|heap| heap.check()).unwrap_or_default()
}

/// Asserts that this thread's nursery is as it should be, while nobody uses a heap that has pages of it. How
/// many pieces it has lent.
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

/// Tells others what this thread has freed of theirs, and takes back what they have freed of its own.
#[cfg(any(test, feature = "checks"))]
pub fn settle_this_thread() {
    with_own_heap(|heap| {
        heap.flush_marks();
        heap.settle();
    });
}

/// What the process has got from the system, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What heaps have and what large blocks take, whether blocks use all of it or not.
    pub held: usize,
    /// What no heap has, though there is memory behind it.
    pub idle: usize,
    /// Blocks that are mappings of their own.
    pub mapped: usize,
    /// How many of these there are.
    pub mappings: usize,
}

/// What the process has at this moment, each for itself.
pub fn totals() -> Totals {
    if !is_made() {
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

/// Gives memory that no heap has back to the system, but for `keep` bytes. The bytes given back.
pub fn trim(keep: usize) -> usize {
    if !is_made() {
        return 0;
    }
    POOLS.trim(&SPACE, keep)
}

// ---- for the helper -----------------------------------------------------------------------------------
