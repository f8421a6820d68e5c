//! Marks.

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{RegionId, granule_shift, region_shift};
use crate::ground::harden;
use crate::ground::words;
use crate::heap::orphans;
use crate::heap::remote::{self, Links, Marked, collect};
use crate::heap::state::{Heap, is_claimed};
use crate::heap::table::entry;
use crate::store::idle::IDLE;
use crate::store::region::Kind;
use crate::store::space::{SPACE, Space};
use core::sync::atomic::{AtomicU32, Ordering};

/// Marks of blocks up to this level are kept back until they are followed by one of another region:
/// 16 KiB a thread at most.
const KEPT_BACK_LEVEL_MAX: usize = 2;

/// After so many regions with marks the helper is called.
const SENT_WORTHWHILE: u32 = 1024;

impl Links for Space {
    fn next(&self, region: RegionId) -> &AtomicU32 {
        &self.remote(region).next
    }
}

impl Heap {
    /// Takes the blocks back that others have freed in one region. That region, unless it is
    /// all free now, or in use by a class: then they may be deferred.
    pub(crate) fn adopt(&self) -> Option<RegionId> {
        let region = self.entry().queue.pop(&SPACE)?;
        let marks = collect(&SPACE.remote(region).marks);
        self.came_home(region, marks);
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

    /// Keeps the mark of a block of another's region back.
    fn begin_batch(&self, owner: u32, region: RegionId, block: u64) {
        let level = region.level();
        self.batch.begin(owner, region, block);
        self.batch_level.set(level as u32);
        self.batch_start.set(region.offset_on(level));
        self.batch_bytes.set(1 << region_shift(level));
    }

    /// Is a block, if there is one, in the region whose marks are kept back?
    #[inline]
    pub(crate) fn is_in_batch(&self, offset: usize) -> bool {
        offset.wrapping_sub(self.batch_start.get()) < self.batch_bytes.get() && {
            // Part of it may be a region of a lower level.
            let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
            kind.level() == self.batch_level.get() as usize
        }
    }

    /// Sends the marks that are kept back. Busy meanwhile: the handler of a signal would find them half sent.
    pub(crate) fn flush_marks(&self) {
        if self.batch.region().is_none() {
            return;
        }
        let held = self.handshake.hold();
        self.batch_bytes.set(0);
        let owner = self.batch.of();
        let told = self.batch.send(tell_marks);
        if held {
            self.handshake.end();
        }
        if told.is_awaited {
            entry(owner).awaited.told();
        }
        if told.is_awaited || told.result {
            attend(owner);
        }
        // Their owner may be too quiet to take them back.
        let sent = self.sent.get().wrapping_add(1);
        self.sent.set(sent);
        if sent.is_multiple_of(SENT_WORTHWHILE) {
            IDLE.call();
        }
    }
}

/// Marks a block of another's. Marks of one region are sent together.
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
    // One that follows another of its region has more behind it, as like as not. What is large is not kept
    // back from its owner, nor what others look for.
    let is_next = heap.marked.replace(region.0) == region.0;
    if is_next && region.level() <= KEPT_BACK_LEVEL_MAX && !harden::looks() {
        heap.begin_batch(owner, region, bit);
    } else {
        send_marks(owner, region, bit);
    }
}

/// Marks blocks of another's region. It has these blocks still, so it is that heap's.
pub(crate) fn send_marks(owner: u32, region: RegionId, marks: u64) {
    if tell_marks(owner, region, marks) {
        attend(owner);
    }
}

/// Marks blocks of another's region. True if the region was pushed into the queue: then its heap is to be
/// attended to, as it may be an orphan.
fn tell_marks(owner: u32, region: RegionId, marks: u64) -> bool {
    match remote::mark(&SPACE.remote(region).marks, marks) {
        Marked::Queued => return false,
        Marked::First => entry(owner).queue.push(&SPACE, region),
        Marked::Twice => report(SPACE.data() + region.offset(), Fault::NotABlock, owner),
    }
    true
}

/// Something was told to a heap: if it is an orphan, it is looked after.
fn attend(number: u32) {
    let entry = entry(number);
    let look = || entry.has_something(&SPACE);
    entry.custody.pushed(look, || orphans::look_after(number));
}

/// Marks of places where no block starts.
#[cold]
fn report_marks(heap: &Heap, region: RegionId, marks: u64) {
    let address = heap.address(region, marks.trailing_zeros());
    report(address, Fault::NotABlock, heap.number.get());
}
