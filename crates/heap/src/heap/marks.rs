//! Remote frees between heaps: marks kept back and sent, marks taken back by their owner.

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{RegionId, granule_shift, region_shift};
use crate::ground::{harden, words};
use crate::heap::orphans;
use crate::heap::remote::{self, Links, Marked, collect};
use crate::heap::state::{Heap, is_claimed};
use crate::heap::table::entry;
use crate::store::idle::IDLE;
use crate::store::region::Kind;
use crate::store::space::{SPACE, Space};
use core::sync::atomic::{AtomicU32, Ordering};

/// The highest level whose marks a thread keeps back until it frees a block of another region: so
/// at most 16 KiB per thread.
const KEPT_BACK_LEVEL_MAX: usize = 2;

/// Batches sent between two calls of the helper.
const SENT_WORTHWHILE: u32 = 1024;

impl Links for Space {
    fn next(&self, region: RegionId) -> &AtomicU32 {
        &self.remote(region).next
    }
}

impl Heap {
    /// Takes back the blocks of one region that others have freed. Returns the region if it has
    /// room and no class uses it: a region of one class may have deferred them.
    pub(crate) fn adopt(&self) -> Option<RegionId> {
        let region = self.entry().queue.pop(&SPACE)?;
        let marks = collect(&SPACE.remote(region).marks);
        self.clear_lent(region, marks);
        let words = self.region(region);
        let (free, starts) = (words.free.get(), words.starts.get());
        let blocks = starts & !free;
        if marks & !blocks != 0 {
            report_marks(self, region, marks & !blocks);
        }
        let marks = marks & blocks;
        if let Some(class) = self.class_of_all(region)
            && self.can_defer(region, class)
        {
            self.defer_some(region, class, marks);
            return None;
        }
        let covered = words::blocks(free, starts, marks);
        let bytes = (covered.count_ones() as usize) << granule_shift(region.level());
        self.used.set(self.used.get() - bytes);
        let free = free | covered;
        words.free.set(free);
        words.starts.set(starts & !marks);
        if is_claimed(self.grade(region).get()) {
            return None;
        }
        self.take(region);
        self.put_back(region);
        (free != u64::MAX).then_some(region)
    }

    /// Keeps back the mark of a block of another heap's region.
    fn begin_batch(&self, owner: u32, region: RegionId, block: u64) {
        let level = region.level();
        self.batch.begin(owner, region, block);
        self.batch_level.set(level as u32);
        self.batch_start.set(region.offset_on(level));
        self.batch_bytes.set(1 << region_shift(level));
    }

    /// Whether a block at this offset lies in the region whose marks are kept back.
    #[inline]
    pub(crate) fn is_in_batch(&self, offset: usize) -> bool {
        offset.wrapping_sub(self.batch_start.get()) < self.batch_bytes.get() && {
            // A part of it may be a region of a lower level.
            let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
            kind.level() == self.batch_level.get() as usize
        }
    }

    /// Sends the marks that are kept back. Within a turn: a signal handler must not find them half
    /// sent.
    pub(crate) fn flush_marks(&self) {
        if self.batch.region().is_none() {
            return;
        }
        let held = self.handshake.hold();
        self.batch_bytes.set(0);
        let owner = self.batch.of();
        let sent = self.batch.send(set_marks);
        if held {
            self.handshake.end();
        }
        if sent.is_awaited {
            entry(owner).awaited.sent();
        }
        if sent.is_awaited || sent.result {
            tend_if_orphan(owner);
        }
        // Their owner may be too quiet to take them back.
        let count = self.sent.get().wrapping_add(1);
        self.sent.set(count);
        if count.is_multiple_of(SENT_WORTHWHILE) {
            IDLE.call();
        }
    }
}

/// Frees a block of another heap. Marks of one region are sent together.
pub(crate) fn free_remote(heap: &Heap, owner: u32, offset: usize) {
    let region = SPACE.region_of(offset);
    let shift = granule_shift(region.level());
    let inside = offset - region.offset();
    if inside & ((1 << shift) - 1) != 0 {
        return report(SPACE.data() + offset, Fault::NotABlock, owner);
    }
    let bit = 1 << (inside >> shift);
    if heap.batch.region() == region {
        if !heap.batch.add(bit) {
            report(SPACE.data() + offset, Fault::NotABlock, owner);
        }
        return;
    }
    heap.flush_marks();
    // A free that follows another in its region probably has more behind it. Large blocks are not
    // kept back from their owner, nor any while every block is checked.
    let is_next = heap.marked.replace(region.0) == region.0;
    if is_next && region.level() <= KEPT_BACK_LEVEL_MAX && !harden::is_checking() {
        heap.begin_batch(owner, region, bit);
    } else {
        send_marks(owner, region, bit);
    }
}

/// Sends marks to a heap. The region still has these blocks, so it is that heap's.
pub(crate) fn send_marks(owner: u32, region: RegionId, marks: u64) {
    if set_marks(owner, region, marks) {
        tend_if_orphan(owner);
    }
}

/// Sends marks to a heap. True if that queued the region: then the caller must call
/// [`tend_if_orphan`], as the heap may be an orphan.
fn set_marks(owner: u32, region: RegionId, marks: u64) -> bool {
    match remote::mark(&SPACE.remote(region).marks, marks) {
        Marked::Queued => return false,
        Marked::First => entry(owner).queue.push(&SPACE, region),
        Marked::Twice => report(SPACE.data() + region.offset(), Fault::NotABlock, owner),
    }
    true
}

/// Tends a heap after a push, if it is an orphan.
fn tend_if_orphan(number: u32) {
    let entry = entry(number);
    let look = || entry.has_work(&SPACE);
    entry.custody.pushed(look, || orphans::tend(number));
}

/// Reports marks of places where no block starts.
#[cold]
fn report_marks(heap: &Heap, region: RegionId, marks: u64) {
    let address = heap.address(region, marks.trailing_zeros());
    report(address, Fault::NotABlock, heap.number.get());
}
