//! A heap: what one owner has, and how it gives and takes blocks.
//!
//! A block that is freed goes to the *front* of its class, a short stack of addresses, and the next
//! one of that class comes from there. When the front is empty, it is filled from the class's
//! *current* region; when that has no run long enough, from the region of the lowest sufficient
//! grade; and so on up, as [`regions`](crate::regions) says. Nothing is ever written into a free block.
//!
//! Fronts and current regions are what makes a heap fast, and take a few pages. The heap of a component
//! begins without: then every block comes from a region that stays in its list, and goes back there.
//!
//! All of a heap is written and read by its owner alone; what others write lies in its
//! [entry](crate::table).

#[cfg(any(test, feature = "checks"))]
pub(crate) mod checks;

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::geometry::{CHUNK_BYTES, CHUNK_SHIFT, CLASSES, Class, LEVELS, RegionId, granule_shift};
use crate::meter;
use crate::pool::Pools;
use crate::space::{ChunkTag, KIB_SHIFT, KINDS, Kind, Meta, Region, Space, WHOLE_LEVEL, Whole};
use crate::table::Entry;
use crate::words;

/// Grades are 0 to 17.
pub(crate) const GRADES: usize = words::ROOM as usize + 1;
/// Instead of a grade: the region is in no list, as a class is using it.
pub(crate) const TAKEN: u8 = 255;

/// Up to this level a class keeps the region it cuts from. Above, regions are large, and shared by all
/// classes of the level.
const CURRENT_LEVEL_MAX: usize = 2;

/// Addresses that the front of a class can hold at first: what fits a heap's own chunk.
const FRONT_SMALL: usize = 62;
/// And when it has grown, if its blocks are small.
const FRONT_LARGE: usize = 1022;
/// So many more each time that it grows.
const FRONT_STEP: u32 = 64;
/// The bytes of blocks that all fronts of a heap may hold beyond what they hold at first: so many, a few
/// thousand small blocks, and one part in so many of what is in use, which then counts little in what
/// is resident.
const GROWN_MIN: usize = 256 << 10;
const GROWN_OF_USED: usize = 32;

/// Blocks of one class that were freed lately, or cut for the next allocations: a stack. The top is
/// kept apart, so that an allocation's result does not wait for the count.
#[repr(C, align(32))]
pub(crate) struct Front {
    /// The top; 0 if there is none.
    top: Cell<usize>,
    /// Where the others are: at `i` the one below the i-th from the bottom, counted from 0. So at 0
    /// there is 0.
    below: Cell<usize>,
    /// How many there are, the top included.
    count: Cell<u32>,
    /// How many there may be; 0 before the first.
    limit: Cell<u32>,
}

impl Front {
    /// The place of the one below the i-th.
    ///
    /// # Safety
    /// It is at most the limit, which is not 0.
    #[inline]
    unsafe fn below(&self, i: u32) -> &Cell<usize> {
        let place = self.below.get() + i as usize * size_of::<usize>();
        // SAFETY: the array is longer than the limit, and lives as long as the heap.
        unsafe { &*core::ptr::with_exposed_provenance(place) }
    }
}

/// So many blocks of a class are kept in front at first: fewer of the larger ones.
const fn front_limit(level: usize) -> u32 {
    match level {
        0 => FRONT_SMALL as u32,
        1 => 32,
        2 => 16,
        3 => 4,
        4 => 2,
        _ => 1,
    }
}

/// And at most.
const fn front_limit_max(level: usize) -> u32 {
    match level {
        0 => FRONT_LARGE as u32,
        1 => FRONT_LARGE as u32 / 2,
        _ => front_limit(level),
    }
}

/// So many blocks are cut at once: that the way to the region is shared, and a step more is a few
/// instructions.
const fn filled_at_once(level: usize) -> u32 {
    match level {
        0 => 8,
        1 => 4,
        _ => 1,
    }
}

/// So many classes are looked at for one that has something in front.
const SHRINK_LOOKS: usize = 8;

/// So many blocks go back from a full front at once. Each may set off a release on every level, so fewer
/// than are cut.
const fn relieved_at_once(level: usize) -> usize {
    match level {
        0 => 4,
        1 => 2,
        _ => 1,
    }
}

/// A component's heap takes so many pieces of nurseries, then chunks.
pub(crate) const PAGES_MAX: usize = 12;

/// What makes a heap fast: a front for each kind, of which those of mixtures have no room, ever; the
/// region that each class uses; and what is below the tops of fronts that have not grown.
#[repr(C, align(64))]
pub(crate) struct Fronts {
    of: [Front; KINDS],
    current: [Cell<u32>; CLASSES],
    /// Need not be zero.
    small: [[Cell<usize>; FRONT_SMALL + 1]; CLASSES],
}

/// The block of a heap that has fronts of its own; and of what a front has grown to.
const FRONTS_CLASS: Class = Class::for_size(size_of::<Fronts>());
const ARRAY_CLASS: Class = Class::for_size((FRONT_LARGE + 1) * size_of::<usize>());

/// The bytes of fronts that must be zero at first.
pub(crate) const FRONTS_ZEROED: usize = core::mem::offset_of!(Fronts, small);

/// The fronts of a heap that has none: they have no room, so nobody ever writes to them.
struct NoFronts(Fronts);

// SAFETY: nobody writes to them.
unsafe impl Sync for NoFronts {}

// SAFETY: fronts may be zero, as they are at first.
static NO_FRONTS: NoFronts = NoFronts(unsafe { core::mem::MaybeUninit::zeroed().assume_init() });

/// A heap. The first [`size_of::<Heap>()`] bytes of wherever it lies are zeroed before it is made.
#[repr(C, align(64))]
pub(crate) struct Heap {
    // What every operation reads.
    fronts: Cell<*const Fronts>,
    data: Cell<usize>,
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
    /// Pages of nurseries that it has, as regions of level 1 or 2.
    pub(crate) pages: [Cell<u32>; PAGES_MAX],
    /// Its thread is in the middle of something. Who finds that is a handler of a signal that came
    /// then, and uses another heap.
    pub(crate) is_busy: Cell<bool>,
    // Regions that are not full, by level and grade; which grades there are, a bit each.
    pub(crate) lists: [[Cell<u32>; GRADES]; LEVELS],
    pub(crate) filled: [Cell<u32>; LEVELS],
    /// A free region of each level, kept back.
    pub(crate) spare: [Cell<u32>; LEVELS],
    /// One of the ring of regions of whole pages.
    pub(crate) ring: Cell<u32>,
    /// So many times a front is to give some of its blocks back, as chunks have gone back to the pool;
    /// and the class whose turn it is.
    pub(crate) shrink: Cell<usize>,
    shrinking: Cell<usize>,
    /// Bytes of blocks that are cut off, those in front included.
    pub(crate) used: Cell<usize>,
    /// Bytes of pages that may have memory behind them.
    pub(crate) touched: Cell<usize>,
    /// Pages that have begun to be used and are not told yet.
    pub(crate) grown: Cell<usize>,
    /// So many regions are to be looked at for idle pages.
    pub(crate) looks: Cell<usize>,
    /// A region of another's heap, and the blocks there that were freed and not told yet.
    pub(crate) marking: Cell<u32>,
    /// That other heap.
    pub(crate) marking_of: Cell<u32>,
    pub(crate) marks: Cell<u64>,
    /// Chunks that it has.
    pub(crate) chunks: Cell<usize>,
    /// Bytes of blocks that fronts may hold because they have grown.
    grown_fronts: Cell<usize>,
}

/// What a thread has: a heap and its fronts, in a chunk of their own.
#[repr(C)]
pub(crate) struct WithFronts {
    pub(crate) heap: Heap,
    pub(crate) fronts: Fronts,
}

const _: () = assert!(size_of::<WithFronts>() <= CHUNK_BYTES);

/// What a pointer that is to be freed turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No heap has given this out.
    Foreign,
    /// No block starts there: it was freed already, or the pointer leads into the middle of one.
    NotABlock,
}

impl Heap {
    /// A heap for which no block is its own, and that has none to give.
    pub(crate) const fn nothing() -> Heap {
        // SAFETY: a heap may be zero, as it is before it is made.
        let heap: Heap = unsafe { core::mem::MaybeUninit::zeroed().assume_init() };
        Heap {
            fronts: Cell::new(&raw const NO_FRONTS.0),
            ..heap
        }
    }

    /// Makes the heap in zeroed memory, without fronts.
    pub(crate) fn make(&self, space: &Space, entry: &Entry, number: u32, node: usize) {
        self.fronts.set(&raw const NO_FRONTS.0);
        self.entry.set(entry);
        self.data.set(space.data());
        self.bytes.set(space.bytes());
        self.tags.set(space.tags_address());
        self.kinds.set(space.kinds_address());
        self.meta.set(space.meta_address());
        self.own.set(ChunkTag::of(ChunkTag::OWNED, number).0);
        self.number.set(number);
        self.node.set(node as u32);
    }

    /// Gives the heap fronts.
    ///
    /// # Safety
    /// They are this heap's own as long as it lives, and begin with zeros.
    pub(crate) unsafe fn set_fronts(&self, fronts: *const Fronts) {
        self.fronts.set(fronts);
    }

    /// Has it fronts?
    #[inline]
    pub(crate) fn has_fronts(&self) -> bool {
        !ptr::eq(self.fronts.get(), &raw const NO_FRONTS.0)
    }

    #[inline]
    fn fronts(&self) -> &Fronts {
        // SAFETY: the heap's own, or those that nobody writes to.
        unsafe { &*self.fronts.get() }
    }

    /// The region that a class cuts from.
    fn current(&self, class: Class) -> &Cell<u32> {
        &self.fronts().current[class.number()]
    }

    /// What others must know of this heap.
    pub(crate) fn entry(&self) -> &Entry {
        // SAFETY: entries live forever.
        unsafe { &*self.entry.get() }
    }

    /// A front is made when it is first reached, so that few pages are touched. True if this one
    /// was not made yet.
    fn make_front(&self, class: Class) -> bool {
        let front = self.front(Kind::pure(class));
        if front.limit.get() != 0 || !self.has_fronts() {
            return false;
        }
        let below = &self.fronts().small[class.number()];
        below[0].set(0);
        front.below.set(below.as_ptr().expose_provenance());
        front.limit.set(front_limit(class.level()));
        true
    }

    /// A front that is full may hold more, if its blocks are small and all fronts together do not hold much.
    fn grow_front(&self, home: Home<'_>, class: Class) -> bool {
        let front = self.front(Kind::pure(class));
        let limit = front.limit.get();
        let grown = (limit + FRONT_STEP).min(front_limit_max(class.level()));
        let bytes = self.grown_fronts.get() + (grown - limit) as usize * class.bytes();
        if limit == 0 || grown == limit || bytes > GROWN_MIN + self.used.get() / GROWN_OF_USED {
            return false;
        }
        if self.is_small(class) {
            // The larger array is a block of this heap's own, for good.
            let mut array = self.try_allocate(ARRAY_CLASS);
            if array == 0 {
                array = self.carve_quietly(home, ARRAY_CLASS);
            }
            if array == 0 {
                return false;
            }
            let place: *mut usize = core::ptr::with_exposed_provenance_mut(array);
            let small = &self.fronts().small[class.number()];
            // SAFETY: the block is longer than what is copied, and nobody else's.
            unsafe { place.copy_from_nonoverlapping(small.as_ptr().cast(), limit as usize + 1) };
            front.below.set(array);
        }
        self.grown_fronts.set(bytes);
        front.limit.set(grown);
        true
    }

    // ---- what every allocation does ---------------------------------------------------------

    /// A block of a class that is in front; 0 if there is none.
    #[inline]
    pub(crate) fn try_allocate(&self, class: Class) -> usize {
        let front = self.front(Kind::pure(class));
        let block = front.top.get();
        if block != 0 {
            // Not below 0: the handler of a signal that came between this line and the last may
            // find a top that is about to be taken, and ends the process, as crash reporters do.
            let count = front.count.get().saturating_sub(1);
            front.count.set(count);
            // SAFETY: a front never counts more than its limit.
            front.top.set(unsafe { front.below(count) }.get());
        }
        block
    }

    /// Takes a block back that is this heap's own and of a class whose front has room. False otherwise.
    #[inline]
    pub(crate) fn try_free(&self, block: usize) -> bool {
        let offset = block.wrapping_sub(self.data.get());
        if offset >= self.bytes.get() {
            return false;
        }
        if self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed) != self.own.get() {
            return false;
        }
        self.keep(Kind(self.kind(offset).load(Ordering::Relaxed)), block)
    }

    /// Puts an own block to the front of its kind, if there is room.
    #[inline]
    pub(crate) fn keep(&self, kind: Kind, block: usize) -> bool {
        let front = self.front(kind);
        let (count, top) = (front.count.get(), front.top.get());
        // What is freed twice in a row is told on the slow path.
        if count >= front.limit.get() || top == block {
            return false;
        }
        // SAFETY: less than the limit.
        unsafe { front.below(count) }.set(top);
        front.top.set(block);
        front.count.set(count + 1);
        true
    }

    #[inline]
    fn front(&self, kind: Kind) -> &Front {
        debug_assert!(usize::from(kind.0) < KINDS);
        // SAFETY: every kind has one.
        unsafe { self.fronts().of.get_unchecked(usize::from(kind.0)) }
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
    fn carve_quietly(&self, home: Home<'_>, class: Class) -> usize {
        let current = self.current(class);
        let region = RegionId(current.get());
        if !region.is_none() {
            let block = self.fill(region, class);
            if block != 0 {
                return block;
            }
            current.set(0);
            self.put_back(home, region);
        }
        let Some(region) = self.region_for(home, class) else {
            return 0;
        };
        let block = self.fill(region, class);
        if class.level() <= CURRENT_LEVEL_MAX && self.has_fronts() {
            current.set(region.0);
        } else {
            self.put_back(home, region);
        }
        block
    }

    /// Cuts a few blocks off a region that is in no list. The lowest; the others go to the front. 0 if it
    /// has no run long enough.
    fn fill(&self, region: RegionId, class: Class) -> usize {
        let (level, granules) = (class.level(), class.granules());
        let free = self.region(region).free.get();
        let at_once = if self.has_fronts() {
            filled_at_once(level)
        } else {
            1
        };
        let begins = words::lowest_runs(free, granules, at_once);
        if begins == 0 {
            return 0;
        }
        self.cut(region, level, begins, granules);
        let cut = (begins.count_ones() as usize) * class.bytes();
        self.used.set(self.used.get() + cut);
        let (start, shift) = (
            self.data.get() + region.offset_on(level),
            granule_shift(level),
        );
        let address = |first: u32| start + ((first as usize) << shift);
        let mut rest = begins & (begins - 1);
        if rest == 0 {
            // The front is empty, and stays so.
            return address(begins.trailing_zeros());
        }
        self.make_front(class);
        let front = self.front(Kind::pure(class));
        let (mut top, mut count) = (0, 0);
        while rest != 0 {
            // From the highest, so that they are given out from the lowest.
            let first = 63 - rest.leading_zeros();
            rest ^= 1 << first;
            // SAFETY: fewer are cut at once than any front may hold.
            unsafe { front.below(count) }.set(top);
            top = address(first);
            count += 1;
        }
        front.top.set(top);
        front.count.set(count);
        address(begins.trailing_zeros())
    }

    /// Is this the block that was freed last?
    pub(crate) fn is_top(&self, class: Class, block: usize) -> bool {
        self.front(Kind::pure(class)).top.get() == block
    }

    /// Takes one block of a class back to its region.
    pub(crate) fn restore_one(
        &self,
        home: Home<'_>,
        class: Class,
        block: usize,
    ) -> Result<(), (usize, Fault)> {
        let level = class.level();
        let offset = block - self.data.get();
        let region = RegionId::at(level, offset);
        let first = (offset - region.offset_on(level)) >> granule_shift(level);
        self.restore(home, region, level, 1 << first, class.granules())
    }

    /// Makes room in the front of a class: it grows, or its newest blocks go back to their regions, those
    /// of one region at once.
    #[inline(never)]
    pub(crate) fn relieve(&self, home: Home<'_>, class: Class) -> Result<(), (usize, Fault)> {
        if self.make_front(class) || self.grow_front(home, class) {
            return Ok(());
        }
        self.drain(home, class)
    }

    /// Some blocks leave the front of a class for their regions.
    fn drain(&self, home: Home<'_>, class: Class) -> Result<(), (usize, Fault)> {
        let (level, granules) = (class.level(), class.granules());
        let (mut region, mut begins) = (RegionId::NONE, 0);
        for _ in 0..relieved_at_once(level) {
            let block = self.try_allocate(class);
            if block == 0 {
                break;
            }
            let offset = block - self.data.get();
            let at = RegionId::at(level, offset);
            if at != region {
                if begins != 0 {
                    self.restore(home, region, level, begins, granules)?;
                }
                (region, begins) = (at, 0);
            }
            let first = (offset - at.offset_on(level)) >> granule_shift(level);
            begins |= 1 << first;
        }
        if begins != 0 {
            self.restore(home, region, level, begins, granules)?;
        }
        Ok(())
    }

    /// Gives the heap fronts, in a block of its own. Without memory it goes on as it is.
    pub(crate) fn make_fronts(&self, home: Home<'_>) {
        let block = self.carve_quietly(home, FRONTS_CLASS);
        if block == 0 {
            return;
        }
        let place: *mut Fronts = ptr::with_exposed_provenance_mut(block);
        // SAFETY: the block is long enough, this heap's own, and nobody else's.
        unsafe {
            place.cast::<u8>().write_bytes(0, FRONTS_ZEROED);
            self.set_fronts(place);
        }
    }

    /// All that is kept back goes to the regions: what is in fronts and where they lie, current regions,
    /// spares. For a heap whose fronts, if it has any, are a block of its own. It keeps nothing back
    /// from then on.
    pub(crate) fn shed(&self, home: Home<'_>) -> Result<(), (usize, Fault)> {
        self.is_ending.set(true);
        if self.has_fronts() {
            self.shed_fronts(home)?;
        }
        for spare in &self.spare {
            let region = RegionId(spare.replace(0));
            if !region.is_none() {
                self.release(home, region);
            }
        }
        Ok(())
    }

    fn shed_fronts(&self, home: Home<'_>) -> Result<(), (usize, Fault)> {
        for class in (0..CLASSES).map(Class::from_number) {
            let front = self.front(Kind::pure(class));
            while front.top.get() != 0 {
                self.drain(home, class)?;
            }
            let array = front.below.get();
            if array != 0 && !self.is_small(class) {
                self.restore_one(home, ARRAY_CLASS, array)?;
            }
            let region = RegionId(self.current(class).replace(0));
            if !region.is_none() {
                self.put_back(home, region);
            }
        }
        let block = self.fronts.replace(&raw const NO_FRONTS.0).addr();
        self.restore_one(home, FRONTS_CLASS, block)
    }

    /// Is what lies below the top of a class's front where it was at first?
    fn is_small(&self, class: Class) -> bool {
        let small = self.fronts().small[class.number()].as_ptr();
        self.front(Kind::pure(class)).below.get() == small.addr()
    }

    /// A heap that shrinks keeps less in front: each block there may be the last of its chunk. It takes
    /// turns, some for each time that chunks have gone.
    #[inline]
    pub(crate) fn shrink_fronts(&self, home: Home<'_>) -> Result<(), (usize, Fault)> {
        if self.shrink.get() == 0 {
            return Ok(());
        }
        self.shrink.set(self.shrink.get() - 1);
        let mut class = Class::from_number(self.shrinking.get());
        for _ in 0..SHRINK_LOOKS {
            if self.front(Kind::pure(class)).top.get() != 0 {
                break;
            }
            class = Class::from_number((class.number() + 1) % CLASSES);
        }
        self.shrinking.set((class.number() + 1) % CLASSES);
        let front = self.front(Kind::pure(class));
        let limit = front.limit.get();
        if limit > front_limit(class.level()) {
            let less = limit
                .saturating_sub(FRONT_STEP)
                .max(front_limit(class.level()));
            let bytes = (limit - less) as usize * class.bytes();
            self.grown_fronts.set(self.grown_fronts.get() - bytes);
            front.limit.set(less);
        }
        self.drain(home, class)
    }

    /// A region that has room for a block of a class, taken off its list: one where others have
    /// just freed some, the tightest, or a new one.
    fn region_for(&self, home: Home<'_>, class: Class) -> Option<RegionId> {
        let (level, granules) = (class.level(), class.granules());
        let fits = |region: &RegionId| {
            region.level() == level && {
                let grade = self.grade(*region).get();
                grade != TAKEN && u32::from(grade) >= granules
            }
        };
        let region = match self.adopt(home).filter(fits) {
            Some(region) => Some(region),
            None => self.find(level, granules),
        };
        let Some(region) = region else {
            return self.fresh(home, level);
        };
        self.take(region);
        Some(region)
    }

    /// The class of an own block of which only the level is known. None if no block starts there.
    #[inline]
    pub(crate) fn class_in_mixture(&self, level: usize, offset: usize) -> Option<Class> {
        let shift = granule_shift(level);
        let words = self.region(RegionId::at(level, offset));
        let (free, starts) = (words.free.get(), words.starts.get());
        let first = (offset >> shift) as u32 & 63;
        if starts >> first & 1 == 0 || offset & ((1 << shift) - 1) != 0 {
            return None;
        }
        let granules = words::length(free, starts, first);
        Some(Class::of(level, granules as usize))
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
