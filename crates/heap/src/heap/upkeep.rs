//! Upkeep: gives idle memory back. A thread does a little after its own slow step where there is no
//! helper; the helper calls the same functions.
//!
//! Upkeep takes a bounded number of lent pieces, and as many chunks as have become idle since the
//! last time. It keeps a few megabytes of idle chunks, and more if the process has asked again for
//! memory that was given back.

use core::sync::atomic::Ordering;

use crate::ground::geometry::{RegionId, granule_shift};
use crate::ground::os;
use crate::heap::marks::send_marks;
use crate::heap::state::Heap;
use crate::store::idle::{self, IDLE, WORTHWHILE};
use crate::store::pool::{Forgotten, POOLS};
use crate::store::space::{ChunkTag, SPACE};

/// Pieces given back in one system call.
const TOGETHER: usize = 16;
/// Lent pieces taken by one upkeep: as many as one slow step lends.
const UPKEEP_PIECES: u32 = 64;
/// Idle chunks given back by one upkeep, beyond those that have come since the last one.
const UPKEEP_CHUNKS: u32 = WORTHWHILE;

/// Does some of the work, if there is any and no helper. Called by the heap's owner at the end of a
/// slow step.
#[inline]
pub(crate) fn keep_up_if_wanted(heap: Option<&'static Heap>) {
    if IDLE.stage.is_wanted() {
        keep_up(heap);
    }
}

#[cold]
fn keep_up(heap: Option<&'static Heap>) {
    if !IDLE.stage.begin_upkeep() {
        return;
    }
    if let Some(heap) = heap
        && heap.handshake.begin()
    {
        heap.tidy_a_little();
        heap.handshake.end();
    }
    let mut done = forget_lent(UPKEEP_PIECES) + IDLE.follow_growth(UPKEEP_CHUNKS);
    let came = IDLE.came.swap(0, Ordering::Relaxed);
    let idle = POOLS.idle_about();
    let beyond = idle.saturating_sub(IDLE.kept());
    if beyond > 0 {
        let chunks = beyond.min(came.saturating_add(UPKEEP_CHUNKS));
        let given = idle::forget_idle(chunks, Forgotten::WithMetadata);
        IDLE.report_given(given);
        done += given;
    }
    // If the system refuses, the next call asks again.
    let more = done > 0 && (beyond > UPKEEP_CHUNKS || !IDLE.lent.is_empty());
    IDLE.stage.end_upkeep(more);
}

/// Gives back up to `most` lent pieces, consecutive ones together; returns how many.
pub(crate) fn forget_lent(most: u32) -> u32 {
    let (mut count, mut left) = (0, most);
    let mut take = || {
        left = left.checked_sub(1)?;
        IDLE.lent.next()
    };
    let mut next = take();
    while let Some((start, bytes)) = next {
        let mut offsets = [start; TOGETHER];
        let (mut pieces, mut end) = (1, start + bytes);
        next = take();
        while let Some((offset, bytes)) = next
            && offset == end
            && pieces < TOGETHER
        {
            offsets[pieces] = offset;
            (pieces, end) = (pieces + 1, end + bytes);
            next = take();
        }
        forget_run(start, end - start, &offsets[..pieces]);
        count += pieces as u32;
    }
    count
}

/// Gives the memory behind consecutive lent blocks back to the system, and frees the blocks.
fn forget_run(start: usize, bytes: usize, blocks: &[usize]) {
    // SAFETY: their heaps lent these pages, and have no other blocks in them.
    unsafe { os::forget(SPACE.data() + start, bytes) };
    let (mut region, mut marks) = (RegionId::NONE, 0);
    let send = |region: RegionId, marks| {
        // The heap still has what it lent, so the chunk is its own, or a nursery's.
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

/// Runs an operation on a heap whose turn has begun, ends the turn, and does upkeep if it is due.
#[inline]
pub(crate) fn in_turn<T>(heap: &'static Heap, operation: impl FnOnce(&'static Heap) -> T) -> T {
    let result = operation(heap);
    heap.handshake.end();
    keep_up_if_wanted(Some(heap));
    result
}
