//! Caches: for each class a stack of blocks that were freed lately, or cut for the next
//! allocations.
//!
//! A thread's heap has a cache for every class, with room for 62 small blocks, which fits its own
//! chunk. A component's heap lies in a page: its caches, for blocks up to 4 KiB, begin with room
//! for one block each, which suffices for a message to and fro. Both grow, into blocks of the heap
//! itself, when they prove too small and all caches together do not hold much.

mod growth;

use core::cell::Cell;
use core::mem::offset_of;

use crate::ground::directory::Directory;
use crate::ground::geometry::{CLASSES, Class, GRANULES_MAX};
use crate::heap::state::Heap;
use crate::store::region::{KINDS, Kind};

/// The first limit of a thread's caches: what fits the heap's own chunk.
const ROOM: usize = 62;
/// The limit after a component's cache has grown once.
const ROOM_GROWN: u32 = 15;
const ROOM_MAX: usize = 2046;

/// A stack of blocks. The top is kept apart, so that an allocation's result does not wait for the
/// count.
#[repr(C, align(32))]
pub(crate) struct Cache {
    /// The top block; 0 if empty.
    top: Cell<usize>,
    /// The array of the other blocks: at `i` the one below the i-th from the bottom, counted from
    /// 0. So 0 is at 0.
    below: Cell<usize>,
    /// The number of blocks, the top included.
    count: Cell<u32>,
    /// The most blocks allowed; 0 until the cache is made.
    limit: Cell<u32>,
    /// The newest and oldest region with deferred blocks of the class: see
    /// [`crate::heap::deferred`].
    pub(crate) newest: Cell<u32>,
    pub(crate) oldest: Cell<u32>,
}

/// The first limit of a thread's cache: less for larger blocks.
const fn limit_first(level: usize) -> u32 {
    match level {
        0 => ROOM as u32,
        1 => 32,
        2 => 16,
        3 => 4,
        4 => 2,
        _ => 1,
    }
}

/// The final limit of a cache.
const fn limit_max(level: usize) -> u32 {
    match level {
        0 => ROOM_MAX as u32,
        1 => ROOM_MAX as u32 / 2 - 1,
        2 => ROOM as u32,
        _ => limit_first(level),
    }
}

/// Blocks cut at once: they share the search for a region, and each costs only a few instructions
/// more.
pub(crate) const fn filled_at_once(level: usize) -> u32 {
    match level {
        0 => 16,
        1 => 8,
        2 => 4,
        _ => 1,
    }
}

impl Cache {
    /// Pops the top block; 0 if there is none.
    #[inline]
    pub(crate) fn pop(&self) -> usize {
        let block = self.top.get();
        if block != 0 {
            // Not below 0: a signal handler that came between this line and the last, and ends the
            // process as crash reporters do, may find a top that is about to be taken.
            let count = self.count.get().saturating_sub(1);
            self.count.set(count);
            // SAFETY: a cache never counts more than its limit.
            self.top.set(unsafe { self.below(count) }.get());
        }
        block
    }

    /// Pushes a block. False if there is no room, or if it is on top already: the slow path reports
    /// a block freed twice in a row.
    #[inline]
    pub(crate) fn push(&self, block: usize) -> bool {
        let (count, top) = (self.count.get(), self.top.get());
        if count >= self.limit.get() || top == block {
            return false;
        }
        // SAFETY: less than the limit.
        unsafe { self.below(count) }.set(top);
        self.top.set(block);
        self.count.set(count + 1);
        true
    }

    /// Begins to take blocks off the top, up to `most`.
    #[inline]
    pub(crate) fn shed(&self, most: u32) -> Shed<'_> {
        let count = self.count.get();
        Shed {
            cache: self,
            top: self.top.get(),
            count,
            last: count.saturating_sub(most),
        }
    }

    /// Begins to fill the cache, which is empty.
    #[inline]
    pub(crate) fn refill(&self) -> Refill<'_> {
        debug_assert!(self.is_empty());
        Refill {
            cache: self,
            top: 0,
            below: 0,
            count: 0,
        }
    }

    /// The cell below the i-th block.
    ///
    /// # Safety
    /// `i` is at most the limit, which is not 0.
    #[inline]
    unsafe fn below(&self, i: u32) -> &Cell<usize> {
        let place = self.below.get() + i as usize * size_of::<usize>();
        // SAFETY: the array is longer than the limit, and lives as long as the heap.
        unsafe { &*core::ptr::with_exposed_provenance(place) }
    }

    /// Whether this block is on top.
    #[inline]
    pub(crate) fn is_top(&self, block: usize) -> bool {
        self.top.get() == block
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.top.get() == 0
    }

    /// Room for further blocks.
    pub(crate) fn room(&self) -> u32 {
        self.limit.get() - self.count.get().min(self.limit.get())
    }
}

/// Blocks that leave a cache one by one. They have left it once this is dropped.
pub(crate) struct Shed<'a> {
    cache: &'a Cache,
    top: usize,
    count: u32,
    /// The count at which no more are taken.
    last: u32,
}

impl Iterator for Shed<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.count == self.last {
            return None;
        }
        self.count -= 1;
        // SAFETY: a cache never counts more than its limit.
        let below = unsafe { self.cache.below(self.count) }.get();
        Some(core::mem::replace(&mut self.top, below))
    }
}

impl Drop for Shed<'_> {
    #[inline]
    fn drop(&mut self) {
        // A cache without room may be shared, and must not be written to.
        if self.cache.count.get() != self.count {
            self.cache.top.set(self.top);
            self.cache.count.set(self.count);
        }
    }
}

/// Blocks that come to an empty cache one by one; the last one is handed out.
pub(crate) struct Refill<'a> {
    cache: &'a Cache,
    /// The last block, and the one before; 0 if none.
    top: usize,
    below: usize,
    count: u32,
}

impl Refill<'_> {
    /// Adds a block. The cache has room for all but the last.
    #[inline]
    pub(crate) fn add(&mut self, block: usize) {
        if self.count > 1 {
            // SAFETY: the cache has room for this many.
            unsafe { self.cache.below(self.count - 1) }.set(self.below);
        }
        (self.below, self.top) = (self.top, block);
        self.count += 1;
    }

    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Ends the refill, and returns the block to hand out; 0 if there was none.
    #[inline]
    pub(crate) fn end(self) -> usize {
        // A cache without room may be shared, and must not be written to, not even to say that it
        // is empty.
        if self.below != 0 {
            self.cache.top.set(self.below);
            self.cache.count.set(self.count - 1);
        }
        self.top
    }
}

/// The cache of classes that have none: it has no room.
struct NoCache(Cache);

// SAFETY: nobody writes to a cache without room.
unsafe impl Sync for NoCache {}

static NO_CACHE: NoCache = NoCache(Cache {
    top: Cell::new(0),
    below: Cell::new(0),
    count: Cell::new(0),
    limit: Cell::new(0),
    newest: Cell::new(0),
    oldest: Cell::new(0),
});

/// A thread's caches: one for each kind, of which those of mixtures never have room; the region
/// that each class cuts from; and the arrays of caches that have not grown.
#[repr(C, align(64))]
pub(crate) struct Caches {
    of: [Cache; KINDS],
    current: [Cell<u32>; CLASSES],
    /// The first arrays, class by class. Need not be zero.
    small: [Cell<usize>; SMALL],
}

impl Caches {
    /// The first array of a class.
    fn of(&self, class: Class) -> &[Cell<usize>] {
        &self.small[usize::from(PLACES[class.number()])..]
    }
}

/// The position of a class's first array in [`Caches`]; each is one longer than the first limit.
const fn place_of(class: usize) -> usize {
    let (mut place, mut level) = (0, 0);
    while level < class / GRANULES_MAX {
        place += GRANULES_MAX * (limit_first(level) as usize + 1);
        level += 1;
    }
    place + class % GRANULES_MAX * (limit_first(level) as usize + 1)
}
const SMALL: usize = place_of(CLASSES);
static PLACES: [u16; CLASSES] = {
    let (mut places, mut class) = ([0; CLASSES], 0);
    while class < CLASSES {
        places[class] = place_of(class) as u16;
        class += 1;
    }
    places
};

/// Bytes of [`Caches`] that must be zero at first.
pub(crate) const CACHES_ZEROED: usize = core::mem::offset_of!(Caches, small);

/// The caches of a heap that must not be changed: see [`Heap::nothing`].
pub(crate) struct NoCaches(Caches);

// SAFETY: nobody writes to them, as they have no room.
unsafe impl Sync for NoCaches {}

// SAFETY: caches may be zero, as they are at first.
static NO_CACHES: NoCaches = NoCaches(unsafe { core::mem::MaybeUninit::zeroed().assume_init() });

/// Kinds of blocks up to 4 KiB, for which a component's heap has caches.
pub(crate) const KINDS_SLIM: usize = 48;
const _: () = assert!(KINDS_SLIM <= 64);

/// A component's caches, in its first page.
#[repr(C, align(32))]
pub(crate) struct SlimCaches {
    of: [Cache; KINDS_SLIM],
    /// The array shared by all caches with room for one block.
    nothing: Cell<usize>,
}

/// Describes the caches for inspection.
pub(crate) fn describe(directory: &mut Directory) {
    let places = offset_of!(Heap, caches);
    directory.heap_fronts_at = (places + offset_of!(CacheSet, of)) as u64;
    directory.heap_fronts_count_at = (places + offset_of!(CacheSet, kinds)) as u64;
    directory.fronts_stride = size_of::<Cache>() as u64;
    directory.front_count_at = offset_of!(Cache, count) as u64;
}

/// The caches of a heap, and how far they have grown.
pub(crate) struct CacheSet {
    /// The array of caches, one for each of the first `kinds` kinds.
    of: Cell<*const Cache>,
    kinds: Cell<u32>,
    /// Bytes of blocks that caches may hold beyond their first limits.
    grown: Cell<usize>,
    /// All of a thread's caches.
    rest: Cell<*const Caches>,
    /// The shared array of a component's caches.
    nothing: Cell<*const Cell<usize>>,
    /// A component's caches that have been made, one bit per class.
    made: Cell<u64>,
}

impl CacheSet {
    /// Caches without room.
    pub(crate) const fn none() -> CacheSet {
        CacheSet {
            of: Cell::new((&raw const NO_CACHES.0).cast()),
            kinds: Cell::new(0),
            grown: Cell::new(0),
            rest: Cell::new(core::ptr::null()),
            nothing: Cell::new(core::ptr::null()),
            made: Cell::new(0),
        }
    }

    pub(crate) fn set_none(&self) {
        self.of.set((&raw const NO_CACHES.0).cast());
    }

    /// Drops all caches and their contents, of a heap that is given back as a whole.
    pub(crate) fn forget(&self) {
        self.set_none();
        self.kinds.set(0);
        self.made.set(0);
    }

    /// # Safety
    /// The caches are this heap's own as long as it lives, and begin with zeros.
    pub(crate) unsafe fn set_full(&self, caches: *const Caches) {
        self.of.set(caches.cast());
        self.kinds.set(KINDS as u32);
        self.rest.set(caches);
    }

    /// # Safety
    /// The caches are this heap's own as long as it lives, and zero.
    pub(crate) unsafe fn set_slim(&self, caches: *const SlimCaches) {
        self.of.set(caches.cast());
        self.kinds.set(KINDS_SLIM as u32);
        // SAFETY: as the caller promises.
        self.nothing.set(unsafe { &raw const (*caches).nothing });
    }

    /// The cache of a kind; for a thread's heap.
    #[inline]
    pub(crate) fn of_thread(&self, kind: Kind) -> &Cache {
        debug_assert!(usize::from(kind.0) < KINDS);
        // SAFETY: a thread's heap has one for every kind.
        unsafe { &*self.of.get().add(usize::from(kind.0)) }
    }

    /// The cache of a kind; for any heap.
    #[inline]
    pub(crate) fn of(&self, kind: Kind) -> &Cache {
        if u32::from(kind.0) < self.kinds.get() {
            // SAFETY: there are this many.
            unsafe { &*self.of.get().add(usize::from(kind.0)) }
        } else {
            &NO_CACHE.0
        }
    }

    /// The region that a class cuts from, if this heap keeps one for each class.
    pub(crate) fn current(&self, class: Class) -> Option<&Cell<u32>> {
        // SAFETY: the heap's own, if there are any.
        let rest = unsafe { self.rest.get().as_ref() }?;
        Some(&rest.current[class.number()])
    }

    /// The first array of a class's cache, and its limit. None if it has no place.
    fn first(&self, class: Class) -> Option<(usize, u32)> {
        // SAFETY: as above.
        if let Some(rest) = unsafe { self.rest.get().as_ref() } {
            let array = rest.of(class);
            array[0].set(0);
            return Some((
                array.as_ptr().expose_provenance(),
                limit_first(class.level()),
            ));
        }
        if class.number() as u32 >= self.kinds.get() {
            return None;
        }
        self.made.set(self.made.get() | 1 << class.number());
        Some((self.nothing.get().expose_provenance(), 1))
    }

    /// The first limit of a class's cache.
    fn limit_first(&self, class: Class) -> u32 {
        if self.rest.get().is_null() {
            1
        } else {
            limit_first(class.level())
        }
    }

    /// Whether this is a first array.
    fn is_first(&self, class: Class, array: usize) -> bool {
        // SAFETY: as above.
        match unsafe { self.rest.get().as_ref() } {
            Some(rest) => array == rest.of(class).as_ptr().addr(),
            None => array == self.nothing.get().addr(),
        }
    }

    /// The arrays of caches that have grown.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn grown_arrays(&self) -> std::vec::Vec<usize> {
        (0..CLASSES)
            .map(Class::from_number)
            .map(|class| (class, self.of(Kind::pure(class)).below.get()))
            .filter(|(class, array)| *array != 0 && !self.is_first(*class, *array))
            .map(|(_, array)| array)
            .collect()
    }

    /// Asserts the invariants of a class's cache, and returns its blocks.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self, class: Class) -> std::vec::Vec<usize> {
        let cache = self.of(Kind::pure(class));
        let count = cache.count.get();
        assert_eq!(count == 0, cache.is_empty(), "cache {class:?}");
        if count == 0 {
            return std::vec::Vec::new();
        }
        // A cache may still hold more than a limit that has shrunk.
        let most = if self.is_first(class, cache.below.get()) {
            self.limit_first(class)
        } else {
            limit_max(class.level())
        };
        assert!(count <= most, "cache {class:?} has {count}");
        // SAFETY: the array is as long as the final limit, and the cache has been made.
        let below = |i: u32| unsafe { cache.below(i) }.get();
        assert_eq!(below(0), 0, "cache {class:?}");
        (1..count).map(below).chain([cache.top.get()]).collect()
    }
}
