//! A heap: what one owner has, and how it gives and takes blocks.
//!
//! A block that is freed goes to the *cache* of its class, a short stack of addresses, and the next
//! one of that class comes from there. When the cache is empty, it is filled from the class's
//! *current* region; when that has no run long enough, from the region of the lowest sufficient
//! grade; and so on up, as [`regions`](crate::heap::regions) says. Nothing is ever written into a free block.
//!
//! All of a heap is written and read by its owner alone, or by the helper in its [place](crate::heap::handshake); what
//! others write lies in its [entry](crate::heap::table).

use crate::heap::table::{Entry, entry};
use core::cell::Cell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::ground::directory::Directory;
use crate::ground::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, Class, GRANULES_MAX, LEVELS, RegionId, granule_shift,
};
use crate::ground::meter;
use crate::ground::words;
use crate::heap::batch::Batch;
use crate::heap::cache::{CacheSet, Caches, SlimCaches};
use crate::heap::handshake::Handshake;
use crate::store::region::{KIB_SHIFT, Kind, PAGE_LEVEL, Region};
use crate::store::space::{ChunkTag, Meta, PageState, SPACE};

/// Grades are 0 to 17.
pub(crate) const GRADES: usize = words::ROOM as usize + 1;
/// Instead of a grade: the region is in no list, as a class is using it.
pub(crate) const TAKEN: u8 = 255;

/// Instead of a grade, with the number of a class: the region is in the list of that class. What is less is a
/// grade; what is more, [`TAKEN`](crate::heap::state::TAKEN).
pub(crate) const DEFERRED: u8 = 64;

const _: () = assert!(words::ROOM < DEFERRED && PAGE_LEVEL * GRANULES_MAX <= 64);

/// The region is in the list of a class, or is used by one.
#[inline]
pub(crate) const fn is_claimed(grade: u8) -> bool {
    grade >= DEFERRED
}

/// A component's heap takes so many pieces of nurseries, then chunks.
pub(crate) const PAGES_MAX: usize = 12;

/// A heap. The first [`size_of::<Heap>()`] bytes of wherever it lies are zeroed before it is made.
#[repr(C, align(64))]
pub(crate) struct Heap {
    // What every operation reads.
    pub(crate) caches: CacheSet,
    pub(crate) data: Cell<usize>,
    bytes: Cell<usize>,
    tags: Cell<usize>,
    kinds: Cell<usize>,
    meta: Cell<usize>,
    /// The tag of its own chunks.
    pub(crate) own: Cell<u32>,
    pub(crate) number: Cell<u32>,
    pub(crate) node: Cell<u32>,
    /// The CPU that its thread was seen on last, by [`crate::heap::thread::cpu`].
    pub(crate) cpu: Cell<u32>,
    /// What others must know of it.
    entry: Cell<*const Entry>,
    /// Another heap of the same thread, for another node; round to the first.
    pub(crate) sibling: Cell<u32>,
    /// A thread's nursery, where components' heaps get their first pages; null before the first.
    pub(crate) nursery: Cell<*const Heap>,
    /// A component's: see [`crate::process::private_heap`].
    pub(crate) is_private: Cell<bool>,
    /// Its owner has left: nothing is kept back.
    pub(crate) is_ending: Cell<bool>,
    /// Blocks may be [deferred](crate::heap::deferred).
    pub(crate) defers: Cell<bool>,
    /// Pages of nurseries that it has, as regions of level 1 or 2.
    pub(crate) pages: [Cell<u32>; PAGES_MAX],
    /// Whose turn it is with all of this but the caches.
    pub(crate) handshake: Handshake,
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
    /// Classes with deferred blocks, a bit each; and whose turn it is to have some coalesced.
    pub(crate) deferred: Cell<u64>,
    pub(crate) next_coalesced: Cell<u32>,
    /// A free region of each level, kept back.
    pub(crate) spare: [Cell<u32>; LEVELS],
    /// One of the ring of regions of whole pages.
    pub(crate) ring: Cell<u32>,
    /// So many times a cache is to give some of its blocks back, as chunks have gone back to the pool;
    /// and the class whose turn it is.
    pub(crate) shrink: Cell<usize>,
    pub(crate) shrinking: Cell<usize>,
    /// Bytes of blocks that are cut off, those in cache included.
    pub(crate) used: Cell<usize>,
    /// Bytes of pages that may have memory behind them.
    pub(crate) touched: Cell<usize>,
    /// Pages that have begun to be used and are not told yet.
    pub(crate) grown: Cell<usize>,
    /// So many regions are to be looked at for idle pages.
    pub(crate) looks: Cell<usize>,
    /// So many regions are to be coalesced that have deferred blocks.
    pub(crate) coalesces: Cell<u32>,
    /// Blocks of another's heap that its thread has freed and not told yet.
    pub(crate) batch: Batch,
    /// Its region, if there is any: the level, where it starts, and its bytes.
    pub(crate) batch_level: Cell<u32>,
    /// The region of which a block of another's was marked last.
    pub(crate) marked: Cell<u32>,
    pub(crate) batch_start: Cell<usize>,
    pub(crate) batch_bytes: Cell<usize>,
    /// The heap of a thread that was made before this one, if it is a thread's: see [`crate::heap::threads`].
    pub(crate) earlier: Cell<u32>,
    /// Chunks that it has.
    pub(crate) chunks: Cell<usize>,
}

/// What a thread has: a heap and its caches, in a chunk of their own.
#[repr(C)]
pub(crate) struct WithCaches {
    pub(crate) heap: Heap,
    pub(crate) caches: Caches,
}

/// What a component has, at the beginning of its first page.
#[repr(C)]
pub(crate) struct WithSlimCaches {
    pub(crate) heap: Heap,
    pub(crate) caches: SlimCaches,
}

const _: () = assert!(size_of::<WithCaches>() <= CHUNK_BYTES);

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

/// The class of what starts at a place of a region with these words. None if nothing does.
#[inline(always)]
fn class_between(level: usize, offset: usize, free: u64, starts: u64) -> Option<Class> {
    let shift = granule_shift(level);
    let first = (offset >> shift) as u32 & 63;
    // What is both is deferred.
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
            caches: CacheSet::none(),
            ..heap
        }
    }

    /// Makes the heap in zeroed memory, without caches.
    pub(crate) fn make(&self, number: u32, node: usize) {
        self.caches.set_none();
        self.entry.set(entry(number));
        self.data.set(SPACE.data());
        self.bytes.set(SPACE.bytes());
        self.tags.set(SPACE.tags_address());
        self.kinds.set(SPACE.kinds_address());
        self.meta.set(SPACE.meta_address());
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

    /// A block of a class that is in cache; 0 if there is none. For a thread's heap.
    #[inline]
    pub(crate) fn try_allocate(&self, class: Class) -> usize {
        self.caches.of_thread(Kind::pure(class)).pop()
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
    pub(crate) fn page_state(&self, region: RegionId) -> &PageState {
        // SAFETY: as for `region`.
        unsafe { &(&(*self.meta_of(region.chunk())).page_states)[region.level() - PAGE_LEVEL] }
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
