//! What there is, in bytes; and what the helper and the user give back of it.

use core::sync::atomic::Ordering;

use crate::geometry::{CHUNK_BYTES, CHUNK_SHIFT, RegionId, granule_shift};
use crate::global::send_marks;
use crate::large;
use crate::os;
use crate::pool::Forgotten;
#[cfg(any(test, feature = "checks"))]
use crate::process::home;
use crate::process::{POOLS, SPACE, is_made};
use crate::space::ChunkTag;
use crate::threads::with_own_heap;

/// What a heap has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of the chunks that are its own.
    pub owned: usize,
    /// Of pages there that may have memory behind them.
    pub touched: usize,
    /// Of blocks in use or kept in front; and lent to the helper.
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
    with_own_heap(|heap| heap.check(home())).unwrap_or_default()
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
        nursery.settle(home());
        nursery.check(home()).used.len()
    })
    .unwrap_or_default()
}

/// Tells others what this thread has freed of theirs, and takes back what they have freed of its own.
#[cfg(any(test, feature = "checks"))]
pub fn settle_this_thread() {
    with_own_heap(|heap| {
        heap.flush_marks();
        heap.settle(home());
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

/// Gives the memory behind lent blocks that follow each other back to the system, and the blocks to
/// their heaps.
pub(crate) fn forget_lent(start: usize, bytes: usize, blocks: &[usize]) {
    // SAFETY: the pages were lent by their heaps, which have no blocks in them but these.
    unsafe { os::forget(SPACE.data() + start, bytes) };
    let (mut region, mut marks) = (RegionId::NONE, 0);
    let send = |region: RegionId, marks| {
        // The heap still has what it lent, so the chunk is its own, or one that it lends from.
        let tag = SPACE.tag(region.chunk()).load(Ordering::Relaxed);
        send_marks(ChunkTag(tag).number(), region, marks);
    };
    for &offset in blocks {
        let of = SPACE.region_of(offset);
        if of != region && marks != 0 {
            send(region, marks);
            marks = 0;
        }
        region = of;
        marks |= 1 << ((offset - of.offset()) >> granule_shift(of.level()));
    }
    send(region, marks);
}

/// Gives memory behind idle chunks back to the system: about as many as said, of all nodes. How
/// many.
pub(crate) fn forget_idle(chunks: u32, what: Forgotten) -> u32 {
    let mut done = 0;
    for node in 0..SPACE.nodes() {
        while done < chunks {
            match POOLS.forget_idle(&SPACE, node, chunks - done, what) {
                0 => break,
                more => done += more,
            }
        }
    }
    done
}

/// Chunks that no heap has and that have memory behind them.
pub(crate) fn idle_chunks() -> u32 {
    POOLS.idle(&SPACE)
}

/// What keeps account of a node's chunks gets its memory, from the `done`th arena on. How many arenas have it.
pub(crate) fn look_ahead(node: usize, done: usize) -> usize {
    POOLS.look_ahead(&SPACE, node, done)
}
