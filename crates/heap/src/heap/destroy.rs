//! Destruction of a component's heap as a whole, blocks and all: chunk by chunk and piece by piece.
//!
//! The caller vouches that nobody uses a block any more; which blocks others have freed before, and
//! how far their marks have come, is unknown and need not be known. The mark of such a block may be
//!
//! - set: then the region's marks are not zero, and it is in the queue, though perhaps behind one
//!   that is still being pushed;
//! - kept back by a thread, which will set it at any time: then it is in that thread's
//!   [batch](crate::heap::batch), which this module asks for;
//! - to be set by [upkeep](crate::heap::upkeep) for lent idle pages: the heap has recorded them in
//!   [`PageState::lent`](crate::store::space::PageState::lent) until their marks are taken back.
//!
//! *Regions with marks on the way stay; all else goes.* The marked blocks stay, and the regions
//! around them; so the chunk, or the piece of a nursery, is this heap's until the mark has come,
//! and the mark hits nobody else. If anything is left, the heap is an
//! [orphan](crate::heap::custody), which ends with its last block. A thread keeps back marks of one
//! region at most, so no more stays than a chunk or a piece for each thread that does, and the lent
//! pages, which are home within a few ticks of the helper.
//!
//! The order matters: batches are searched before marks. A mark that has left its batch was set
//! before, and is seen.
//!
//! A mark that a thread has set, and the owner has taken back, may be in the thread's batch for
//! another moment; its block would be awaited for good. So everything is repeated when all threads
//! that were asked have given notice: what is left then has marks, or is lent. The heap's number
//! stays in use until then.
//!
//! Time: two looks at the words of each region that a chunk or piece has room for, with blocks or
//! not; one look at each thread's batch; and one pop for each region that others have freed blocks
//! of. Where another thread's push holds the queue up, the regions behind it stay for that moment,
//! at some twenty looks each.

use crate::ground::geometry::LEVELS;
use crate::heap::table::thread_heaps;
use core::sync::atomic::Ordering;

use crate::ground::geometry::{
    CHUNK_SHIFT, GRANULES_MAX, RegionId, granule_bytes, granule_shift, region_shift,
};
use crate::ground::{harden, meter, words};
use crate::heap::pieces::{HEADER_BYTES, page_of};
use crate::heap::remote::collect;
use crate::heap::state::{GRADES, Heap, TAKEN};
use crate::store::region::PAGE_LEVEL;
use crate::store::space::SPACE;

/// Granules that a region of the level below takes up.
const REGION_GRANULES: u32 = GRANULES_MAX as u32;

/// All regions that may lie in one, itself last.
fn inside(root: RegionId) -> impl Iterator<Item = RegionId> {
    let (start, bytes) = (root.offset(), 1usize << region_shift(root.level()));
    (0..=root.level()).flat_map(move |level| {
        meter::step();
        (start..start + bytes)
            .step_by(1 << region_shift(level))
            .map(move |offset| {
                meter::step();
                RegionId::at(level, offset)
            })
    })
}

impl Heap {
    /// Gives back all but the heap itself and what is awaited, of a component's heap whose blocks
    /// nobody uses. The heap has no caches from then on.
    pub(crate) fn discard(&self) {
        self.is_ending.set(true);
        self.defers.set(false);
        self.caches.forget();
        self.take_marks();
        let roots = self.take_apart();
        let own = page_of(self);
        let pieces = || self.pages.iter().map(|root| RegionId(root.get()));
        self.each_root(roots, |root| self.clear(root));
        for root in pieces().filter(|root| !root.is_none()) {
            self.clear(root);
        }
        let batches = thread_heaps().map(|heap| {
            meter::step();
            &heap.batch
        });
        let awaited = &self.entry().awaited;
        awaited.ask(self.number.get(), batches, |region, marks| {
            self.await_blocks(region, marks);
        });
        self.each_root(roots, |root| {
            if !self.keep_awaited(root) {
                self.give_root(root);
            }
        });
        for root in pieces().filter(|root| !root.is_none()) {
            if !self.keep_awaited(root) && root != own {
                self.give_pages(root);
            }
        }
        self.keep(own, own);
    }

    /// Empties the queue as far as possible, so that regions need not stay for marks that are
    /// there.
    fn take_marks(&self) {
        while let Some(region) = self.entry().queue.pop(&SPACE) {
            meter::step();
            let marks = collect(&SPACE.remote(region).marks);
            self.clear_lent(region, marks);
        }
    }

    /// Reduces the heap to its roots. Returns the first of those from the pool; each leads to the
    /// next.
    fn take_apart(&self) -> RegionId {
        let roots = self.roots();
        for level in 0..LEVELS {
            (0..GRADES).for_each(|grade| self.lists[level][grade].set(0));
            self.filled[level].set(0);
            self.spare[level].set(0);
        }
        self.looks.set(0);
        self.touched.set(0);
        self.used.set(HEADER_BYTES);
        roots
    }

    /// Links the roots from the pool, and returns the first; each leads to the next.
    pub(crate) fn roots(&self) -> RegionId {
        let first = RegionId(self.ring.replace(0));
        let (mut roots, mut region) = (RegionId::NONE, first);
        while !region.is_none() {
            meter::step();
            let whole = self.page_state(region);
            let next = RegionId(whole.behind.get());
            if whole.is_root.get() {
                whole.behind.set(roots.0);
                roots = region;
            }
            region = if next == first { RegionId::NONE } else { next };
        }
        roots
    }

    /// Calls `each` for every root from the pool; each may be gone after its call.
    pub(crate) fn each_root(&self, roots: RegionId, mut each: impl FnMut(RegionId)) {
        let mut root = roots;
        while !root.is_none() {
            let next = RegionId(self.page_state(root).behind.get());
            each(root);
            root = next;
        }
    }

    /// Empties a root; only lent blocks remain, as starts of regions that nobody has.
    pub(crate) fn clear(&self, root: RegionId) {
        for region in inside(root) {
            let words = self.region(region);
            words.free.set(0);
            words.starts.set(0);
            self.grade(region).set(TAKEN);
            if region.level() >= PAGE_LEVEL {
                self.await_lent(region);
            }
        }
        let start = self.data.get() + root.offset();
        let bytes = 1 << region_shift(root.level());
        if root.level() >= PAGE_LEVEL {
            harden::wipe_pages(start, bytes);
        } else if root == page_of(self) {
            harden::wipe(start + HEADER_BYTES, bytes - HEADER_BYTES);
        } else {
            harden::wipe(start, bytes);
        }
    }

    /// Records blocks whose marks are on their way as starts of their region, until [`Heap::keep`].
    pub(crate) fn await_blocks(&self, region: RegionId, blocks: u64) {
        let starts = &self.region(region).starts;
        starts.set(starts.get() | blocks);
    }

    /// Whether a root stays, as something in it is awaited; then only that is in it.
    fn keep_awaited(&self, root: RegionId) -> bool {
        let mut is_awaited = false;
        for region in inside(root) {
            // Acquires what was done before the push, which may not be complete.
            let marks = SPACE.remote(region).marks.load(Ordering::Acquire);
            if marks != 0 {
                self.await_blocks(region, marks);
            }
            is_awaited |= self.region(region).starts.get() != 0;
        }
        if is_awaited {
            for region in inside(root) {
                if self.region(region).starts.get() != 0 {
                    self.keep(region, root);
                }
            }
        }
        is_awaited
    }

    /// Keeps a region, and those around it up to a root. Of each awaited block only the first
    /// granule stays: the block is never used again, and its mark frees as much.
    fn keep(&self, region: RegionId, root: RegionId) {
        if self.grade(region).get() != TAKEN {
            // It stays already.
            return;
        }
        let level = region.level();
        let awaited = self.region(region).starts.get();
        self.begin(region, true);
        if region == page_of(self) {
            self.cut_header(region);
        }
        let bytes = awaited.count_ones() as usize * granule_bytes(level);
        self.used.set(self.used.get() + bytes);
        self.hold(region, awaited, 1);
        if region != root {
            let above = RegionId::at(level + 1, region.offset());
            self.keep(above, root);
            let first = (region.offset() - above.offset()) >> granule_shift(level + 1);
            self.hold(above, 1 << first, REGION_GRANULES);
        }
    }

    /// Cuts blocks off a region without setting kinds, and lists the region by its grade.
    fn hold(&self, region: RegionId, begins: u64, granules: u32) {
        let (level, words) = (region.level(), self.region(region));
        self.unlink(region, level, self.grade(region).get());
        let free = words.free.get() & !words::spread(begins, granules);
        words.starts.set(words.starts.get() | begins);
        words.free.set(free);
        self.link(region, level, words::grade(free));
    }

    /// Gives back an empty root that came from the pool.
    pub(crate) fn give_root(&self, root: RegionId) {
        debug_assert!(root.offset().is_multiple_of(1 << CHUNK_SHIFT));
        self.page_state(root).is_root.set(false);
        self.give_chunks(root);
    }
}
