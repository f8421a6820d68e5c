//! The state of a heap, and where things lie in it.
//!
//! A freed block goes to the *cache* of its class, and the next block of that class comes from
//! there. An empty cache is filled from the class's *current* region; if that has no run long
//! enough, from the region of the lowest sufficient grade; and so on up, as
//! [`regions`](crate::heap::regions) says. Nothing is ever written into a free block.
//!
//! Only the owner reads and writes a heap, or the helper in its [place](crate::heap::handshake);
//! what other threads write lies in its [entry](crate::heap::table).

use crate::heap::table::{Entry, entry};
use core::cell::Cell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::ground::directory::Directory;
use crate::ground::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, Class, GRANULES_MAX, LEVELS, RegionId, granule_shift,
};
use crate::ground::{meter, words};
use crate::heap::batch::Batch;
use crate::heap::cache::{CacheSet, Caches, SlimCaches};
use crate::heap::handshake::Handshake;
use crate::store::region::{KIB_SHIFT, Kind, PAGE_LEVEL, Region};
use crate::store::space::{ChunkTag, Meta, PageState, SPACE};

/// The number of grades, 0 to 17.
pub(crate) const GRADES: usize = words::ROOM as usize + 1;
/// Stands for a grade: a class uses the region, which is in no list.
pub(crate) const TAKEN: u8 = 255;

/// Plus the number of a class, stands for a grade: the region is in that class's list of deferred
/// blocks. Smaller values are grades, larger ones [`TAKEN`].
pub(crate) const DEFERRED: u8 = 64;

const _: () = assert!(words::ROOM < DEFERRED && PAGE_LEVEL * GRANULES_MAX <= 64);

/// Whether a class uses the region, or has it in its list of deferred blocks.
#[inline]
pub(crate) const fn is_claimed(grade: u8) -> bool {
    grade >= DEFERRED
}

/// Pieces of nurseries that a component's heap takes before it takes chunks.
pub(crate) const PAGES_MAX: usize = 12;

/// Blocks that go back to their regions together, or with the whole heap: see
/// [`crate::heap::home`].
#[derive(Default)]
pub(crate) struct Pile {
    /// Whether blocks are piled up.
    pub(crate) is_open: Cell<bool>,
    /// The number of blocks.
    pub(crate) count: Cell<u32>,
    /// Their bytes together.
    pub(crate) bytes: Cell<usize>,
    /// The address of the top block, which begins with that of the one below; 0 if empty.
    pub(crate) top: Cell<usize>,
}

/// A heap. Its memory is zeroed before it is made.
#[repr(C, align(64))]
pub(crate) struct Heap {
    // Read by every operation:
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
    /// The CPU that its thread was last seen on, by [`crate::heap::thread::cpu`].
    pub(crate) cpu: Cell<u32>,
    /// The part of it that other threads use.
    entry: Cell<*const Entry>,
    /// The next heap of the same thread, for another node; a ring.
    pub(crate) sibling: Cell<u32>,
    /// A thread's nursery, from which components' heaps get their first pages; null before the
    /// first.
    pub(crate) nursery: Cell<*const Heap>,
    /// Whether it is a component's.
    pub(crate) is_private: Cell<bool>,
    /// Whether its owner has left: it keeps nothing back.
    pub(crate) is_ending: Cell<bool>,
    /// Whether blocks may be [deferred](crate::heap::deferred).
    pub(crate) defers: Cell<bool>,
    /// Blocks freed since the heap's owner began to leave.
    pub(crate) pile: Pile,
    /// Its pages from nurseries, as regions of level 1 or 2.
    pub(crate) pages: [Cell<u32>; PAGES_MAX],
    /// Guards all of this but the caches.
    pub(crate) handshake: Handshake,
    /// For the helper: the owner's turns at its last look.
    pub(crate) seen: Cell<u32>,
    /// For the helper: whether its last look found nothing to do; and regions looked at in vain
    /// since idle pages were found, also by the owner where there is no helper.
    pub(crate) is_tidy: Cell<bool>,
    pub(crate) looked: Cell<usize>,
    /// Without a helper: the owner searched the ring in vain, and does not search again while this
    /// much is in use.
    pub(crate) tidied_at: Cell<usize>,
    /// Number of times that marks were sent.
    pub(crate) sent: Cell<u32>,
    // Lists of regions that are not full, by level and grade; and the grades with regions, one bit
    // each:
    pub(crate) lists: [[Cell<u32>; GRADES]; LEVELS],
    pub(crate) filled: [Cell<u32>; LEVELS],
    /// Classes with deferred blocks, one bit each; and the class to coalesce next.
    pub(crate) deferred: Cell<u64>,
    pub(crate) next_coalesced: Cell<u32>,
    /// A free region of each level, kept back.
    pub(crate) spare: [Cell<u32>; LEVELS],
    /// A member of the ring of regions of whole pages.
    pub(crate) ring: Cell<u32>,
    /// Number of times that a cache is still to give some of its blocks back, since chunks have
    /// returned to the pool; and the class to begin with.
    pub(crate) shrink: Cell<usize>,
    pub(crate) shrinking: Cell<usize>,
    /// Bytes of blocks, those in caches included.
    pub(crate) used: Cell<usize>,
    /// Bytes of pages that may have memory behind them.
    pub(crate) touched: Cell<usize>,
    /// Pages that have begun to be used and are not yet reported.
    pub(crate) grown: Cell<usize>,
    /// Regions still to be searched for idle pages.
    pub(crate) looks: Cell<usize>,
    /// Regions with deferred blocks still to be coalesced.
    pub(crate) coalesces: Cell<u32>,
    /// Blocks of another heap that its thread has freed and not yet marked.
    pub(crate) batch: Batch,
    /// The batch's region: its level, its start and its bytes.
    pub(crate) batch_level: Cell<u32>,
    /// The region of the last remote free.
    pub(crate) marked: Cell<u32>,
    pub(crate) batch_start: Cell<usize>,
    pub(crate) batch_bytes: Cell<usize>,
    /// The thread heap made before this one, by number: see [`crate::heap::table::thread_heaps`].
    pub(crate) earlier: Cell<u32>,
    /// The number of its chunks.
    pub(crate) chunks: Cell<usize>,
}

/// A thread's heap and its caches, in a chunk of their own.
#[repr(C)]
pub(crate) struct WithCaches {
    pub(crate) heap: Heap,
    pub(crate) caches: Caches,
}

/// A component's heap and its caches, at the start of its first page.
#[repr(C)]
pub(crate) struct WithSlimCaches {
    pub(crate) heap: Heap,
    pub(crate) caches: SlimCaches,
}

const _: () = assert!(size_of::<WithCaches>() <= CHUNK_BYTES);

/// Describes a heap for inspection.
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

/// The class of the block at an offset of a region with these words. None if none starts there.
#[inline(always)]
fn class_between(level: usize, offset: usize, free: u64, starts: u64) -> Option<Class> {
    let shift = granule_shift(level);
    let first = (offset >> shift) as u32 & 63;
    // Free and a start: deferred.
    if (starts & !free) >> first & 1 == 0 || offset & ((1 << shift) - 1) != 0 {
        return None;
    }
    let granules = words::length(free, starts, first);
    Some(Class::of(level, granules as usize))
}

impl Heap {
    /// A heap without blocks, which takes none and gives none.
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

    /// The part of this heap that other threads use.
    pub(crate) fn entry(&self) -> &Entry {
        // SAFETY: entries live forever.
        unsafe { &*self.entry.get() }
    }

    // ---- what every allocation does ----------------------------------------------------------

    /// Pops a block of a class from its cache; 0 if there is none. For a thread's heap.
    #[inline]
    pub(crate) fn try_allocate(&self, class: Class) -> usize {
        self.caches.of_thread(Kind::pure(class)).pop()
    }

    /// The offset of a block in a chunk of this heap. None if it lies elsewhere.
    #[inline]
    pub(crate) fn own_place(&self, block: usize) -> Option<usize> {
        let offset = block.wrapping_sub(self.data.get());
        let is_own = offset < self.bytes.get()
            && self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed) == self.own.get();
        is_own.then_some(offset)
    }

    // ---- the rest ----------------------------------------------------------------------------

    /// The class of a block of this heap. None if none starts there.
    pub(crate) fn class_of(&self, block: usize) -> Option<Class> {
        let offset = block - self.data.get();
        let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
        let class = kind
            .class()
            .or_else(|| self.class_in_mixture(kind.level(), offset))?;
        let is_aligned = offset & ((1 << granule_shift(class.level())) - 1) == 0;
        is_aligned.then_some(class)
    }

    /// The offset of a block in the space, and its chunk's tag. None if it lies outside.
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

    /// The class of a block of this heap in a mixed KiB. None if none starts there. The helper may
    /// be changing the words.
    #[inline(always)]
    pub(crate) fn class_of_mixed(&self, level: usize, offset: usize) -> Option<Class> {
        // Behind the load of the kind, which the helper may have stored.
        fence(Ordering::Acquire);
        let region = self.region(RegionId::at(level, offset));
        region.class_of_live(Kind::mixed(level), level, offset)
    }

    /// The class of a block of this heap in a mixed KiB. None if none starts there.
    #[inline]
    pub(crate) fn class_in_mixture(&self, level: usize, offset: usize) -> Option<Class> {
        let words = self.region(RegionId::at(level, offset));
        class_between(level, offset, words.free.get(), words.starts.get())
    }

    // ---- where things are --------------------------------------------------------------------

    #[inline]
    fn meta_of(&self, chunk: usize) -> *const Meta {
        core::ptr::with_exposed_provenance(self.meta.get() + chunk * size_of::<Meta>())
    }

    /// The words of a region of this heap.
    #[inline]
    pub(crate) fn region(&self, region: RegionId) -> &Region {
        meter::touch();
        debug_assert!(!region.is_none());
        // SAFETY: the region is this heap's, so its metadata is open. Only the owner uses its
        // cells, and the words are atomic.
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

    /// The page state of a region of level 3 or above of this heap.
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

    /// The kind of a KiB in a chunk of this heap.
    #[inline]
    pub(crate) fn kind(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the chunk is this heap's, so its kinds are open, only accessed as atomics.
        unsafe { &*core::ptr::with_exposed_provenance(self.kinds.get() + (offset >> KIB_SHIFT)) }
    }

    /// The address of a granule.
    #[inline]
    pub(crate) fn address(&self, region: RegionId, first: u32) -> usize {
        let shift = granule_shift(region.level());
        self.data.get() + region.offset() + ((first as usize) << shift)
    }
}
