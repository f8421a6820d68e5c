//! A component's heap given back as a whole, blocks and all: chunk by chunk and piece by piece.
//!
//! Its user says that no block of it is used any more; nothing is known, nor need it be, of what others have
//! freed before and how far that is on its way. Such a block's mark may be
//!
//! - set: then the region's marks are not zero, and it is in the queue, though perhaps behind one whose
//!   push is not done;
//! - kept back by a thread, which will set it when it likes, or is about to: in that thread's
//!   [batch](crate::heap::batch), which is asked for;
//! - to be set by the [helper](crate::process::helper), to which the heap has lent idle pages: noted by the heap, in
//!   [`PageState::lent`](crate::store::space::PageState::lent), until the mark has been taken back.
//!
//! *What is awaited stays; all else goes.* Of a region of which a mark is on its way the marked blocks stay,
//! and the regions that it is a part of; so the chunk, or the piece of a nursery, is this heap's until
//! the mark is there, and the mark hits nobody else. If something is left, the heap is an
//! [orphan](crate::heap::custody), whose last block takes it along. A thread keeps marks of one region back at most,
//! so what stays is a chunk or a piece for each thread that does, and what the helper has, which is home
//! within a few of its ticks.
//!
//! The order matters: batches are looked through before marks. A mark that is no longer in a batch was set
//! before, and is seen.
//!
//! Marks that a thread has set, and the owner has taken back, may be in the thread's batch for a moment yet;
//! they would be awaited for good. So all is done once more when all batches that were asked for are told:
//! what is left then has marks, or is the helper's. The heap's number is in use until then.
//!
//! Time: twice a look at the words of each region that a chunk or piece has room for, whether it has blocks
//! or not; one at each thread's batch; and for each region that others have freed blocks of, that its marks
//! are taken from the queue. Where another's push holds the queue up, those behind it stay with
//! it for that moment, which costs some twenty looks each.

use crate::ground::geometry::LEVELS;
use crate::heap::table::thread_heaps;
use core::sync::atomic::Ordering;

use crate::ground::geometry::{
    CHUNK_SHIFT, GRANULES_MAX, RegionId, granule_bytes, granule_shift, region_shift,
};
use crate::ground::harden;
use crate::ground::meter;
use crate::ground::words;
use crate::heap::pieces::{HEADER_BYTES, page_of};
use crate::heap::remote::collect;
use crate::heap::state::{GRADES, Heap, TAKEN};
use crate::store::region::PAGE_LEVEL;
use crate::store::space::SPACE;

/// As many granules as a region of the level below has of the level above.
const REGION_GRANULES: u32 = GRANULES_MAX as u32;

/// All regions that there may be in one, itself at last.
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
    /// Gives back all but the heap itself and what is awaited, of a component's heap whose blocks nobody uses. It
    /// has no caches from then on.
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

    /// Empties the queue, as far as it can be reached: so that regions need not stay for marks that are there.
    fn take_marks(&self) {
        while let Some(region) = self.entry().queue.pop(&SPACE) {
            meter::step();
            let marks = collect(&SPACE.remote(region).marks);
            self.came_home(region, marks);
        }
    }

    /// From now on the heap has nothing but its roots. The first of those from the pool, each of which leads to
    /// the next.
    fn take_apart(&self) -> RegionId {
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

    /// Does something with each root from the pool, which may be gone then.
    fn each_root(&self, roots: RegionId, mut each: impl FnMut(RegionId)) {
        let mut root = roots;
        while !root.is_none() {
            let next = RegionId(self.page_state(root).behind.get());
            each(root);
            root = next;
        }
    }

    /// Nothing is in a root any more but, as starts of regions that nobody has, what the helper will send.
    fn clear(&self, root: RegionId) {
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

    /// Blocks of a region whose marks are on their way: noted as its starts, until [`Heap::keep`].
    pub(crate) fn await_blocks(&self, region: RegionId, blocks: u64) {
        let starts = &self.region(region).starts;
        starts.set(starts.get() | blocks);
    }

    /// Does a root stay? Yes if something in it is awaited; then only that is in it.
    fn keep_awaited(&self, root: RegionId) -> bool {
        let mut is_awaited = false;
        for region in inside(root) {
            // Acquires what was done before it was pushed, of which the push may not be done.
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

    /// Has a region stay, and those that it is a part of, up to a root. Of each block that is awaited there the
    /// first granule stays: it is never used again, and its mark frees as much.
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

    /// Cuts blocks off a region, of which kinds say nothing, and puts it into the list of its grade.
    fn hold(&self, region: RegionId, begins: u64, granules: u32) {
        let (level, words) = (region.level(), self.region(region));
        self.unlink(region, level, self.grade(region).get());
        let free = words.free.get() & !words::spread(begins, granules);
        words.starts.set(words.starts.get() | begins);
        words.free.set(free);
        self.link(region, level, words::grade(free));
    }

    /// Gives a root back that came from the pool, and in which there is nothing.
    fn give_root(&self, root: RegionId) {
        debug_assert!(root.offset().is_multiple_of(1 << CHUNK_SHIFT));
        self.page_state(root).is_root.set(false);
        self.give_chunks(root);
    }
}
