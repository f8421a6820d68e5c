//! Caches: blocks of one class that were freed lately, or cut for the next allocations.
//!
//! A thread's heap has a cache for every class, with room for 62 small blocks at once, which its own
//! chunk has place for. A component's heap lies in a page: it has caches for blocks up to 4 KiB, with room
//! for one block each, which is what a message to and fro takes. Both grow, into blocks of the heap's own,
//! when they are found too small and all caches together do not hold much.

mod growth;

use core::cell::Cell;
use core::mem::offset_of;

use crate::ground::directory::Directory;
use crate::ground::geometry::{CLASSES, Class, GRANULES_MAX};
use crate::heap::state::Heap;
use crate::store::region::{KINDS, Kind};

/// Addresses that the cache of a class can hold at first: what fits a heap's own chunk.
const ROOM: usize = 62;
/// When it has grown once, if it began with room for one; and when it has grown for good.
const ROOM_GROWN: u32 = 15;
const ROOM_MAX: usize = 1022;

/// A stack of blocks. The top is kept apart, so that an allocation's result does not wait for the count.
#[repr(C, align(32))]
pub(crate) struct Cache {
    /// The top; 0 if there is none.
    top: Cell<usize>,
    /// Where the others are: at `i` the one below the i-th from the bottom, counted from 0. So at 0
    /// there is 0.
    below: Cell<usize>,
    /// How many there are, the top included.
    count: Cell<u32>,
    /// How many there may be; 0 before the first.
    limit: Cell<u32>,
    /// Regions with deferred blocks of the class: see [`crate::heap::deferred`].
    pub(crate) newest: Cell<u32>,
    pub(crate) oldest: Cell<u32>,
}

/// So many blocks of a class are kept in cache at first: fewer of the larger ones.
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

/// And at most.
const fn limit_max(level: usize) -> u32 {
    match level {
        0 => ROOM_MAX as u32,
        1 => ROOM_MAX as u32 / 2,
        2 => ROOM as u32,
        _ => limit_first(level),
    }
}

/// So many blocks are cut at once, that the way to the region is shared, and a step more is a few
/// instructions.
pub(crate) const fn filled_at_once(level: usize) -> u32 {
    match level {
        0 => 16,
        1 => 8,
        2 => 4,
        _ => 1,
    }
}

impl Cache {
    /// The block on top; 0 if there is none.
    #[inline]
    pub(crate) fn pop(&self) -> usize {
        let block = self.top.get();
        if block != 0 {
            // Not below 0: the handler of a signal that came between this line and the last may
            // find a top that is about to be taken, and ends the process, as crash reporters do.
            let count = self.count.get().saturating_sub(1);
            self.count.set(count);
            // SAFETY: a cache never counts more than its limit.
            self.top.set(unsafe { self.below(count) }.get());
        }
        block
    }

    /// Puts a block on top. False if there is no room, or it is the one on top: what is freed twice in
    /// a row is told on the slow path.
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

    /// Blocks come to the cache, which is empty.
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

    /// Is this the block on top?
    #[inline]
    pub(crate) fn is_top(&self, block: usize) -> bool {
        self.top.get() == block
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.top.get() == 0
    }

    /// So many more blocks may be put here.
    pub(crate) fn room(&self) -> u32 {
        self.limit.get() - self.count.get().min(self.limit.get())
    }
}

/// Blocks that come to an empty cache one by one; the last one is given out.
pub(crate) struct Refill<'a> {
    cache: &'a Cache,
    /// The last one, and the one before; 0 if there is none.
    top: usize,
    below: usize,
    count: u32,
}

impl Refill<'_> {
    /// One more. Of all but the last there is room for in cache.
    #[inline]
    pub(crate) fn add(&mut self, block: usize) {
        if self.count > 1 {
            // SAFETY: as the cache has room for this many.
            unsafe { self.cache.below(self.count - 1) }.set(self.below);
        }
        (self.below, self.top) = (self.top, block);
        self.count += 1;
    }

    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// That was all. The one that is given out; 0 if there is none.
    #[inline]
    pub(crate) fn end(self) -> usize {
        // A cache without room may be everybody's, and nobody may write to it: not even that it is empty.
        if self.below != 0 {
            self.cache.top.set(self.below);
            self.cache.count.set(self.count - 1);
        }
        self.top
    }
}

/// A cache that has no room: of classes that have none.
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

/// What makes a thread's heap fast: a cache for each kind, of which those of mixtures have no room,
/// ever; the region that each class uses; and what is below the tops of caches that have not grown.
#[repr(C, align(64))]
pub(crate) struct Caches {
    of: [Cache; KINDS],
    current: [Cell<u32>; CLASSES],
    /// What is below the tops of caches that have not grown, class by class. Need not be zero.
    small: [Cell<usize>; SMALL],
}

impl Caches {
    /// The places of a class.
    fn of(&self, class: Class) -> &[Cell<usize>] {
        &self.small[usize::from(PLACES[class.number()])..]
    }
}

/// Where a class has its places in [`Caches`], one more than its first limit; and how many there are in all.
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

/// The bytes of caches that must be zero at first.
pub(crate) const CACHES_ZEROED: usize = core::mem::offset_of!(Caches, small);

/// Caches for all thread heaps to which nothing may be done: see [`Heap::nothing`].
pub(crate) struct NoCaches(Caches);

// SAFETY: nobody writes to them, as they have no room.
unsafe impl Sync for NoCaches {}

// SAFETY: caches may be zero, as they are at first.
static NO_CACHES: NoCaches = NoCaches(unsafe { core::mem::MaybeUninit::zeroed().assume_init() });

/// Kinds of blocks up to 4 KiB: those that a component's heap has caches for.
pub(crate) const KINDS_SLIM: usize = 48;
const _: () = assert!(KINDS_SLIM <= 64);

/// What a component's heap has in its first page.
#[repr(C, align(32))]
pub(crate) struct SlimCaches {
    of: [Cache; KINDS_SLIM],
    /// What is below all tops while there is room for one.
    nothing: Cell<usize>,
}

/// For who looks from outside.
pub(crate) fn describe(directory: &mut Directory) {
    let places = offset_of!(Heap, caches);
    directory.heap_fronts_at = (places + offset_of!(CacheSet, of)) as u64;
    directory.heap_fronts_count_at = (places + offset_of!(CacheSet, kinds)) as u64;
    directory.fronts_stride = size_of::<Cache>() as u64;
    directory.front_count_at = offset_of!(Cache, count) as u64;
}

/// Where the caches of a heap are.
pub(crate) struct CacheSet {
    /// As many as kinds have one.
    of: Cell<*const Cache>,
    kinds: Cell<u32>,
    /// Bytes of blocks that they may hold because they have grown.
    grown: Cell<usize>,
    /// A thread's.
    rest: Cell<*const Caches>,
    /// A component's.
    nothing: Cell<*const Cell<usize>>,
    /// A component's that are made, a bit for each class.
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

    /// A heap that is given back as a whole has none any more, nor what is in them.
    pub(crate) fn forget(&self) {
        self.set_none();
        self.kinds.set(0);
        self.made.set(0);
    }

    /// # Safety
    /// They are this heap's own as long as it lives, and begin with zeros.
    pub(crate) unsafe fn set_full(&self, caches: *const Caches) {
        self.of.set(caches.cast());
        self.kinds.set(KINDS as u32);
        self.rest.set(caches);
    }

    /// # Safety
    /// They are this heap's own as long as it lives, and zero.
    pub(crate) unsafe fn set_slim(&self, caches: *const SlimCaches) {
        self.of.set(caches.cast());
        self.kinds.set(KINDS_SLIM as u32);
        // SAFETY: as the caller promises.
        self.nothing.set(unsafe { &raw const (*caches).nothing });
    }

    /// The cache of a kind, of a thread's heap.
    #[inline]
    pub(crate) fn of_thread(&self, kind: Kind) -> &Cache {
        debug_assert!(usize::from(kind.0) < KINDS);
        // SAFETY: a thread's heap has one for every kind.
        unsafe { &*self.of.get().add(usize::from(kind.0)) }
    }

    /// The cache of a kind, of any heap.
    #[inline]
    pub(crate) fn of(&self, kind: Kind) -> &Cache {
        if u32::from(kind.0) < self.kinds.get() {
            // SAFETY: there are as many.
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

    /// What a cache of a class begins with: its array, and its limit. None if it has no place.
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

    /// So much it holds at first.
    fn limit_first(&self, class: Class) -> u32 {
        if self.rest.get().is_null() {
            1
        } else {
            limit_first(class.level())
        }
    }

    /// Is an array one that a cache begins with?
    fn is_first(&self, class: Class, array: usize) -> bool {
        // SAFETY: as above.
        match unsafe { self.rest.get().as_ref() } {
            Some(rest) => array == rest.of(class).as_ptr().addr(),
            None => array == self.nothing.get().addr(),
        }
    }

    /// Where caches lie that have grown.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn grown_arrays(&self) -> std::vec::Vec<usize> {
        (0..CLASSES)
            .map(Class::from_number)
            .map(|class| (class, self.of(Kind::pure(class)).below.get()))
            .filter(|(class, array)| *array != 0 && !self.is_first(*class, *array))
            .map(|(_, array)| array)
            .collect()
    }

    /// Asserts that the cache of a class is as it should be. Its blocks.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self, class: Class) -> std::vec::Vec<usize> {
        let cache = self.of(Kind::pure(class));
        let count = cache.count.get();
        assert_eq!(count == 0, cache.is_empty(), "cache {class:?}");
        if count == 0 {
            return std::vec::Vec::new();
        }
        // A limit that has shrunk may be less than what is there yet.
        let most = if self.is_first(class, cache.below.get()) {
            self.limit_first(class)
        } else {
            limit_max(class.level())
        };
        assert!(count <= most, "cache {class:?} has {count}");
        // SAFETY: the array is as long as the most that it may hold, and there is a cache.
        let below = |i: u32| unsafe { cache.below(i) }.get();
        assert_eq!(below(0), 0, "cache {class:?}");
        (1..count).map(below).chain([cache.top.get()]).collect()
    }
}
