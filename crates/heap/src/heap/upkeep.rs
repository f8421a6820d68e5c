//! Upkeep.

use core::sync::atomic::Ordering;

use crate::ground::geometry::{RegionId, granule_shift};
use crate::ground::os;
use crate::heap::marks::send_marks;
use crate::heap::state::Heap;
use crate::store::idle::{self, IDLE, WORTHWHILE};
use crate::store::pool::{Forgotten, POOLS};
use crate::store::space::{ChunkTag, SPACE};

/// So many pieces are given back at once.
const TOGETHER: usize = 16;
/// Upkeep takes so many lent pieces at most: what one slow step lends.
const UPKEEP_PIECES: u32 = 64;
/// And as many idle chunks as came since the last one, and so many more.
const UPKEEP_CHUNKS: u32 = WORTHWHILE;

/// Does some of what there is to do, if there is no helper. At the end of a slow step: `heap` is whole, and
/// its owner calls.
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
    let beyond = idle.saturating_sub(IDLE.kept.load(Ordering::Relaxed));
    if beyond > 0 {
        let chunks = beyond.min(came.saturating_add(UPKEEP_CHUNKS));
        let given = idle::forget_idle(chunks, Forgotten::WithMetadata);
        let all = IDLE.given.load(Ordering::Relaxed).saturating_add(given);
        IDLE.given.store(all, Ordering::Relaxed);
        done += given;
    }
    // Where the system refuses, the next call asks again.
    let more = done > 0 && (beyond > UPKEEP_CHUNKS || !IDLE.lent.is_empty());
    IDLE.stage.end_upkeep(more);
}

/// Gives lent pieces back, so many at most, those that follow each other at once. How many there were.
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

/// Gives the memory behind lent blocks that follow each other back to the system, and the blocks to
/// their heaps.
fn forget_run(start: usize, bytes: usize, blocks: &[usize]) {
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

/// Does something with the words of a heap, in a turn that has begun. What it has found to do about idle memory
/// comes after, if there is no helper.
#[inline]
pub(crate) fn in_turn<T>(heap: &'static Heap, operation: impl FnOnce(&'static Heap) -> T) -> T {
    let result = operation(heap);
    heap.handshake.end();
    keep_up_if_wanted(Some(heap));
    result
}
