//! A heap: what one owner has, and how it gives and takes blocks.
//!
//! A block that is freed goes to the *front* of its class, a short stack of addresses, and the next
//! one of that class comes from there. When the front is empty, it is filled from the class's
//! *current* region; when that has no run long enough, from the region of the lowest sufficient
//! grade; and so on up, as [`regions`](crate::regions) says. Nothing is ever written into a free block.
//!
//! All of a heap is written and read by its owner alone, or by the helper in its [place](crate::turn); what
//! others write lies in its [entry](crate::table).

#[cfg(any(test, feature = "checks"))]
pub(crate) mod checks;

use core::cell::Cell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::batch::Batch;
use crate::directory::Directory;
use crate::faults::Told;
use crate::front::{Fronts, Places, SlimFronts, filled_at_once};
use crate::geometry::{CHUNK_BYTES, CHUNK_SHIFT, Class, LEVELS, RegionId, granule_shift};
use crate::loose::is_claimed;
use crate::meter;
use crate::pool::Pools;
use crate::region::{KIB_SHIFT, Kind, Region, WHOLE_LEVEL};
use crate::space::{ChunkTag, Meta, Space, Whole};
use crate::table::Entry;
use crate::turn::Turn;
use crate::words;

/// Grades are 0 to 17.
pub(crate) const GRADES: usize = words::ROOM as usize + 1;
/// Instead of a grade: the region is in no list, as a class is using it.
pub(crate) const TAKEN: u8 = 255;

/// Up to this level a class keeps the region it cuts from. Above, regions are large, and shared by all
/// classes of the level.
const CURRENT_LEVEL_MAX: usize = 2;

/// Where a class finds no room, loose blocks of so many regions are joined before it looks further. With four,
/// `batches` took a twentieth more instructions, and no program had less memory.
const JOINED: u32 = 1;

/// A component's heap takes so many pieces of nurseries, then chunks.
pub(crate) const PAGES_MAX: usize = 12;

/// A heap. The first [`size_of::<Heap>()`] bytes of wherever it lies are zeroed before it is made.
#[repr(C, align(64))]
pub(crate) struct Heap {
    // What every operation reads.
    pub(crate) fronts: Places,
    pub(crate) data: Cell<usize>,
    bytes: Cell<usize>,
    tags: Cell<usize>,
    kinds: Cell<usize>,
    meta: Cell<usize>,
    /// The tag of its own chunks.
    pub(crate) own: Cell<u32>,
    pub(crate) number: Cell<u32>,
    pub(crate) node: Cell<u32>,
    /// The CPU that its thread was seen on last, by [`crate::thread::cpu`].
    pub(crate) cpu: Cell<u32>,
    /// What others must know of it.
    entry: Cell<*const Entry>,
    /// Another heap of the same thread, for another node; round to the first.
    pub(crate) sibling: Cell<u32>,
    /// A thread's nursery, where components' heaps get their first pages; null before the first.
    pub(crate) nursery: Cell<*const Heap>,
    /// A component's: see [`crate::private`].
    pub(crate) is_private: Cell<bool>,
    /// Its owner has left: nothing is kept back.
    pub(crate) is_ending: Cell<bool>,
    /// Blocks may be [loose](crate::loose).
    pub(crate) keeps_loose: Cell<bool>,
    /// Pages of nurseries that it has, as regions of level 1 or 2.
    pub(crate) pages: [Cell<u32>; PAGES_MAX],
    /// Whose turn it is with all of this but the fronts.
    pub(crate) turn: Turn,
    /// The helper's: turns that the owner had had when it last looked.
    pub(crate) seen: Cell<u32>,
    /// The helper's: when it last looked, there was nothing to do; and regions at which it, or without one the
    /// owner, has looked since idle pages were found.
    pub(crate) is_tidy: Cell<bool>,
    pub(crate) looked: Cell<usize>,
    /// Without a helper: the ring was gone around in vain, and is not again while so much is in use.
    pub(crate) tidied_at: Cell<usize>,
    /// So often marks were sent.
    pub(crate) sent: Cell<u32>,
    // Regions that are not full, by level and grade; which grades there are, a bit each.
    pub(crate) lists: [[Cell<u32>; GRADES]; LEVELS],
    pub(crate) filled: [Cell<u32>; LEVELS],
    /// Classes with loose blocks, a bit each; and whose turn it is to have some joined.
    pub(crate) loose: Cell<u64>,
    pub(crate) joining: Cell<u32>,
    /// A free region of each level, kept back.
    pub(crate) spare: [Cell<u32>; LEVELS],
    /// One of the ring of regions of whole pages.
    pub(crate) ring: Cell<u32>,
    /// So many times a front is to give some of its blocks back, as chunks have gone back to the pool;
    /// and the class whose turn it is.
    pub(crate) shrink: Cell<usize>,
    pub(crate) shrinking: Cell<usize>,
    /// Bytes of blocks that are cut off, those in front included.
    pub(crate) used: Cell<usize>,
    /// Bytes of pages that may have memory behind them.
    pub(crate) touched: Cell<usize>,
    /// Pages that have begun to be used and are not told yet.
    pub(crate) grown: Cell<usize>,
    /// So many regions are to be looked at for idle pages.
    pub(crate) looks: Cell<usize>,
    /// So many regions are to be joined that have loose blocks.
    pub(crate) joins: Cell<u32>,
    /// Blocks of another's heap that its thread has freed and not told yet.
    pub(crate) batch: Batch,
    /// Its region, if there is any: the level, where it starts, and its bytes.
    pub(crate) batch_level: Cell<u32>,
    /// The region of which a block of another's was marked last.
    pub(crate) marked: Cell<u32>,
    pub(crate) batch_start: Cell<usize>,
    pub(crate) batch_bytes: Cell<usize>,
    /// The heap of a thread that was made before this one, if it is a thread's: see [`crate::threads`].
    pub(crate) earlier: Cell<u32>,
    /// Chunks that it has.
    pub(crate) chunks: Cell<usize>,
}

/// What a thread has: a heap and its fronts, in a chunk of their own.
#[repr(C)]
pub(crate) struct WithFronts {
    pub(crate) heap: Heap,
    pub(crate) fronts: Fronts,
}

/// What a component has, at the beginning of its first page.
#[repr(C)]
pub(crate) struct WithSlimFronts {
    pub(crate) heap: Heap,
    pub(crate) fronts: SlimFronts,
}

const _: () = assert!(size_of::<WithFronts>() <= CHUNK_BYTES);

/// For who looks from outside.
pub(crate) fn describe(directory: &mut Directory) {
    *directory = Directory {
        heap_bytes: size_of::<Heap>() as u64,
        heap_number_at: offset_of!(Heap, number) as u64,
        heap_node_at: offset_of!(Heap, node) as u64,
        heap_own_at: offset_of!(Heap, own) as u64,
        heap_pages_at: offset_of!(Heap, pages) as u64,
        heap_pages_count: PAGES_MAX as u64,
        heap_used_at: offset_of!(Heap, used) as u64,
        heap_touched_at: offset_of!(Heap, touched) as u64,
        heap_chunks_at: offset_of!(Heap, chunks) as u64,
        ..*directory
    };
}

/// What a pointer that is to be freed turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No heap has given this out.
    Foreign,
    /// No block starts there: it was freed already, or the pointer leads into the middle of one.
    NotABlock,
}

/// The class of what starts at a place of a region with these words. None if nothing does.
#[inline(always)]
fn class_between(level: usize, offset: usize, free: u64, starts: u64) -> Option<Class> {
    let shift = granule_shift(level);
    let first = (offset >> shift) as u32 & 63;
    // What is both is loose.
    if (starts & !free) >> first & 1 == 0 || offset & ((1 << shift) - 1) != 0 {
        return None;
    }
    let granules = words::length(free, starts, first);
    Some(Class::of(level, granules as usize))
}

impl Heap {
    /// A heap for which no block is its own, and that has none to give.
    pub(crate) const fn nothing() -> Heap {
        // SAFETY: a heap may be zero, as it is before it is made.
        let heap: Heap = unsafe { core::mem::MaybeUninit::zeroed().assume_init() };
        Heap {
            fronts: Places::none(),
            ..heap
        }
    }

    /// Makes the heap in zeroed memory, without fronts.
    pub(crate) fn make(&self, space: &Space, entry: &Entry, number: u32, node: usize) {
        self.fronts.set_none();
        self.entry.set(entry);
        self.data.set(space.data());
        self.bytes.set(space.bytes());
        self.tags.set(space.tags_address());
        self.kinds.set(space.kinds_address());
        self.meta.set(space.meta_address());
        self.own.set(ChunkTag::of(ChunkTag::OWNED, number).0);
        self.number.set(number);
        self.node.set(node as u32);
        self.tidied_at.set(usize::MAX);
    }

    /// What others must know of this heap.
    pub(crate) fn entry(&self) -> &Entry {
        // SAFETY: entries live forever.
        unsafe { &*self.entry.get() }
    }

    // ---- what every allocation does ---------------------------------------------------------

    /// A block of a class that is in front; 0 if there is none. For a thread's heap.
    #[inline]
    pub(crate) fn try_allocate(&self, class: Class) -> usize {
        self.fronts.of_thread(Kind::pure(class)).pop()
    }

    /// Where a block is that is in a chunk of this heap. None if it is not.
    #[inline]
    pub(crate) fn own_place(&self, block: usize) -> Option<usize> {
        let offset = block.wrapping_sub(self.data.get());
        let is_own = offset < self.bytes.get()
            && self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed) == self.own.get();
        is_own.then_some(offset)
    }

    // ---- the rest -----------------------------------------------------------------------------

    /// A block of a class from the regions, and a few more of it to the front, which is empty; 0 if there
    /// is no memory.
    pub(crate) fn carve(&self, home: Home<'_>, class: Class) -> usize {
        let block = self.carve_quietly(home, class);
        self.balance(home, class.level());
        block
    }

    /// The same, without a look at idle pages.
    pub(crate) fn carve_quietly(&self, home: Home<'_>, class: Class) -> usize {
        let block = self.take_loose(class);
        if block != 0 {
            return block;
        }
        let current = self.fronts.current(class);
        if let Some(current) = current {
            let region = RegionId(current.get());
            if !region.is_none() {
                let block = self.fill(region, class);
                if block != 0 {
                    return block;
                }
                current.set(0);
                self.put_back(home, region);
            }
        }
        let adopted = self.adopt(home);
        let block = self.take_loose(class);
        if block != 0 {
            return block;
        }
        let region = self
            .region_for(home, class, adopted)
            .or_else(|| self.last_region_for(home, class));
        let Some(region) = region else {
            return 0;
        };
        let block = self.fill(region, class);
        match current {
            Some(current) if class.level() <= CURRENT_LEVEL_MAX => current.set(region.0),
            _ => self.put_back(home, region),
        }
        block
    }

    /// Cuts a few blocks off a region that is in no list. The lowest; the others go to the front. 0 if it
    /// has no run long enough.
    fn fill(&self, region: RegionId, class: Class) -> usize {
        // What depends on the level is constants then.
        match class.level() {
            0 => self.fill_on(0, region, class),
            1 => self.fill_on(1, region, class),
            2 => self.fill_on(2, region, class),
            level => self.fill_on(level, region, class),
        }
    }

    #[inline(always)]
    fn fill_on(&self, level: usize, region: RegionId, class: Class) -> usize {
        let granules = class.granules();
        let free = self.region(region).free.get();
        let runs = words::runs(free, granules);
        if runs == 0 {
            return 0;
        }
        self.make_front(class);
        let front = self.fronts.of(Kind::pure(class));
        // What is given out now may come back to the front, too.
        let at_once = filled_at_once(level).min(front.room().max(1));
        let begins = words::lowest_runs(free, runs, granules, at_once);
        self.cut(region, level, begins, granules);
        let start = self.data.get() + region.offset_on(level);
        let (mut rest, mut refill) = (begins, front.refill());
        while rest != 0 {
            // The highest first, so that the lowest is on top.
            let first = 63 - rest.leading_zeros();
            rest ^= 1 << first;
            refill.add(start + ((first as usize) << granule_shift(level)));
        }
        let cut = (refill.count() * granules) as usize;
        self.used
            .set(self.used.get() + (cut << granule_shift(level)));
        refill.end()
    }

    /// Takes one block of a class back to its region.
    pub(crate) fn restore_one(&self, home: Home<'_>, class: Class, block: usize) -> Told {
        let level = class.level();
        let offset = block - self.data.get();
        let region = RegionId::at(level, offset);
        let first = (offset - region.offset_on(level)) >> granule_shift(level);
        self.restore(home, region, level, 1 << first, class.granules())
    }

    /// Takes back a block of which only the address is known.
    pub(crate) fn restore_any(&self, home: Home<'_>, block: usize) -> Told {
        match self.class_of(block) {
            Some(class) => self.restore_one(home, class, block),
            None => Err((block, Fault::NotABlock)),
        }
    }

    /// All that is kept back goes to the regions: what is in fronts, spares. It keeps nothing back from then
    /// on.
    pub(crate) fn shed(&self, home: Home<'_>) -> Told {
        self.is_ending.set(true);
        self.keeps_loose.set(false);
        self.join_any(home, u32::MAX);
        self.shed_fronts(home)?;
        for spare in &self.spare {
            let region = RegionId(spare.replace(0));
            if !region.is_none() {
                self.release(home, region);
            }
        }
        Ok(())
    }

    /// A region that has room for a block of a class, taken off its list: one where others have
    /// just freed some, the tightest, or a new one.
    fn region_for(
        &self,
        home: Home<'_>,
        class: Class,
        adopted: Option<RegionId>,
    ) -> Option<RegionId> {
        let (level, granules) = (class.level(), class.granules());
        let fits = |region: &RegionId| {
            region.level() == level && {
                let grade = self.grade(*region).get();
                !is_claimed(grade) && u32::from(grade) >= granules
            }
        };
        let region = adopted
            .filter(fits)
            .or_else(|| self.find(level, granules))
            .or_else(|| {
                self.join_level(home, level, JOINED);
                self.find(level, granules)
            });
        let Some(region) = region else {
            return self.fresh(home, level);
        };
        self.take(region);
        Some(region)
    }

    /// The same where there is no memory: of all blocks that are loose.
    #[cold]
    fn last_region_for(&self, home: Home<'_>, class: Class) -> Option<RegionId> {
        if self.join_any(home, u32::MAX) == 0 {
            return None;
        }
        self.region_for(home, class, None)
    }

    /// The class of an own block. None if no block starts there.
    pub(crate) fn class_of(&self, block: usize) -> Option<Class> {
        let offset = block - self.data.get();
        let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
        let class = kind
            .class()
            .or_else(|| self.class_in_mixture(kind.level(), offset))?;
        let is_aligned = offset & ((1 << granule_shift(class.level())) - 1) == 0;
        is_aligned.then_some(class)
    }

    /// Where a block is in the space, and the tag of its chunk. None if it is not there.
    #[inline]
    pub(crate) fn place_of(&self, block: usize) -> Option<(usize, u32)> {
        let offset = block.wrapping_sub(self.data.get());
        let is_there = offset < self.bytes.get();
        is_there.then(|| {
            (
                offset,
                self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed),
            )
        })
    }

    /// The class of a block of this heap's own where blocks of several of one level begin. None if no block starts
    /// there. The helper may be at the words.
    #[inline(always)]
    pub(crate) fn class_of_mixed(&self, level: usize, offset: usize) -> Option<Class> {
        // Behind the load of the kind, which the helper may have stored.
        fence(Ordering::Acquire);
        let region = self.region(RegionId::at(level, offset));
        region.class_of_live(Kind::mixed(level), level, offset)
    }

    /// The class of an own block of which only the level is known. None if no block starts there.
    #[inline]
    pub(crate) fn class_in_mixture(&self, level: usize, offset: usize) -> Option<Class> {
        let words = self.region(RegionId::at(level, offset));
        class_between(level, offset, words.free.get(), words.starts.get())
    }

    // ---- where things are -----------------------------------------------------------------------

    #[inline]
    fn meta_of(&self, chunk: usize) -> *const Meta {
        core::ptr::with_exposed_provenance(self.meta.get() + chunk * size_of::<Meta>())
    }

    /// The words of a region of this heap.
    #[inline]
    pub(crate) fn region(&self, region: RegionId) -> &Region {
        meter::touch();
        debug_assert!(!region.is_none());
        // SAFETY: the region is this heap's, so its metadata is open. Of its cells only the owner
        // makes use, and the words are atomic.
        unsafe {
            let regions = &raw const (*self.meta_of(region.chunk())).regions;
            &*regions.cast::<Region>().add(region.slot())
        }
    }

    /// The grade of a region of this heap.
    #[inline]
    pub(crate) fn grade(&self, region: RegionId) -> &Cell<u8> {
        // SAFETY: as for `region`.
        unsafe {
            let grades = &raw const (*self.meta_of(region.chunk())).grades;
            &*grades.cast::<Cell<u8>>().add(region.slot())
        }
    }

    /// What is known of a region of level 3 or above of this heap.
    pub(crate) fn whole(&self, region: RegionId) -> &Whole {
        // SAFETY: as for `region`.
        unsafe { &(&(*self.meta_of(region.chunk())).wholes)[region.level() - WHOLE_LEVEL] }
    }

    /// The tag of a chunk.
    #[inline]
    pub(crate) fn tag(&self, chunk: usize) -> &AtomicU32 {
        // SAFETY: a tag of the space, only accessed as an atomic, readable for every chunk.
        unsafe { &*core::ptr::with_exposed_provenance(self.tags.get() + chunk * 4) }
    }

    /// What starts in a KiB of a chunk of this heap.
    #[inline]
    pub(crate) fn kind(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the chunk is this heap's, so its kinds are open, only accessed as atomics.
        unsafe { &*core::ptr::with_exposed_provenance(self.kinds.get() + (offset >> KIB_SHIFT)) }
    }

    /// Where a granule of a region is.
    #[inline]
    pub(crate) fn address(&self, region: RegionId, first: u32) -> usize {
        let shift = granule_shift(region.level());
        self.data.get() + region.offset() + ((first as usize) << shift)
    }
}

/// Where chunks come from and go to.
#[derive(Clone, Copy)]
pub(crate) struct Home<'a> {
    pub(crate) space: &'a Space,
    pub(crate) pools: &'a Pools,
}
