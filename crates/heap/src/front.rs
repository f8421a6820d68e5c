//! Fronts: blocks of one class that were freed lately, or cut for the next allocations.
//!
//! A thread's heap has a front for every class, with room for 62 small blocks at once, which its own
//! chunk has place for. A component's heap lies in a page: it has fronts for blocks up to 4 KiB, with room
//! for one block each, which is what a message to and fro takes. Both grow, into blocks of the heap's own,
//! when they are found too small and all fronts together do not hold much.

use core::cell::Cell;
use core::mem::offset_of;

use crate::directory::Directory;
use crate::faults::Told;
use crate::geometry::{CLASSES, Class, GRANULES_MAX};
use crate::harden;
use crate::heap::{Heap, Home};
use crate::region::{KINDS, Kind};

/// Addresses that the front of a class can hold at first: what fits a heap's own chunk.
const ROOM: usize = 62;
/// When it has grown once, if it began with room for one; and when it has grown for good.
const ROOM_GROWN: u32 = 15;
const ROOM_MAX: usize = 1022;
/// So many more each time that it grows above the first.
const STEP: u32 = 64;
/// The bytes of blocks that all fronts of a heap may hold beyond what they hold at first: so many, a few
/// thousand small blocks, and one part in so many of what is in use, which then counts little in what
/// is resident.
const GROWN_MIN: usize = 256 << 10;
const GROWN_OF_USED: usize = 32;
/// The same for a component's heap.
const GROWN_MIN_PRIVATE: usize = 16 << 10;
const GROWN_OF_USED_PRIVATE: usize = 8;

/// A stack of blocks. The top is kept apart, so that an allocation's result does not wait for the count.
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
    /// Regions with loose blocks of the class: see [`crate::loose`].
    pub(crate) newest: Cell<u32>,
    pub(crate) oldest: Cell<u32>,
}

/// So many blocks of a class are kept in front at first: fewer of the larger ones.
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

/// So many blocks leave a front at once.
const fn drained_at_once(level: usize) -> u32 {
    match level {
        0 | 1 => 8,
        2 => 4,
        _ => 1,
    }
}

/// So many classes are looked at for one that has something in front.
const SHRINK_LOOKS: usize = 8;

impl Front {
    /// The block on top; 0 if there is none.
    #[inline]
    pub(crate) fn pop(&self) -> usize {
        let block = self.top.get();
        if block != 0 {
            // Not below 0: the handler of a signal that came between this line and the last may
            // find a top that is about to be taken, and ends the process, as crash reporters do.
            let count = self.count.get().saturating_sub(1);
            self.count.set(count);
            // SAFETY: a front never counts more than its limit.
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

    /// Blocks come to the front, which is empty.
    #[inline]
    pub(crate) fn refill(&self) -> Refill<'_> {
        debug_assert!(self.is_empty());
        Refill {
            front: self,
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

/// Blocks that come to an empty front one by one; the last one is given out.
pub(crate) struct Refill<'a> {
    front: &'a Front,
    /// The last one, and the one before; 0 if there is none.
    top: usize,
    below: usize,
    count: u32,
}

impl Refill<'_> {
    /// One more. Of all but the last there is room for in front.
    #[inline]
    pub(crate) fn add(&mut self, block: usize) {
        if self.count > 1 {
            // SAFETY: as the front has room for this many.
            unsafe { self.front.below(self.count - 1) }.set(self.below);
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
        // A front without room may be everybody's, and nobody may write to it: not even that it is empty.
        if self.below != 0 {
            self.front.top.set(self.below);
            self.front.count.set(self.count - 1);
        }
        self.top
    }
}

/// A front that has no room: of classes that have none.
struct NoFront(Front);

// SAFETY: nobody writes to a front without room.
unsafe impl Sync for NoFront {}

static NO_FRONT: NoFront = NoFront(Front {
    top: Cell::new(0),
    below: Cell::new(0),
    count: Cell::new(0),
    limit: Cell::new(0),
    newest: Cell::new(0),
    oldest: Cell::new(0),
});

/// What makes a thread's heap fast: a front for each kind, of which those of mixtures have no room,
/// ever; the region that each class uses; and what is below the tops of fronts that have not grown.
#[repr(C, align(64))]
pub(crate) struct Fronts {
    of: [Front; KINDS],
    current: [Cell<u32>; CLASSES],
    /// What is below the tops of fronts that have not grown, class by class. Need not be zero.
    small: [Cell<usize>; SMALL],
}

impl Fronts {
    /// The places of a class.
    fn of(&self, class: Class) -> &[Cell<usize>] {
        &self.small[usize::from(PLACES[class.number()])..]
    }
}

/// Where a class has its places in [`Fronts`], one more than its first limit; and how many there are in all.
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

/// The bytes of fronts that must be zero at first.
pub(crate) const FRONTS_ZEROED: usize = core::mem::offset_of!(Fronts, small);

/// Fronts for all thread heaps to which nothing may be done: see [`Heap::nothing`].
pub(crate) struct NoFronts(Fronts);

// SAFETY: nobody writes to them, as they have no room.
unsafe impl Sync for NoFronts {}

// SAFETY: fronts may be zero, as they are at first.
static NO_FRONTS: NoFronts = NoFronts(unsafe { core::mem::MaybeUninit::zeroed().assume_init() });

/// Kinds of blocks up to 4 KiB: those that a component's heap has fronts for.
pub(crate) const KINDS_SLIM: usize = 48;
const _: () = assert!(KINDS_SLIM <= 64);

/// What a component's heap has in its first page.
#[repr(C, align(32))]
pub(crate) struct SlimFronts {
    of: [Front; KINDS_SLIM],
    /// What is below all tops while there is room for one.
    nothing: Cell<usize>,
}

/// For who looks from outside.
pub(crate) fn describe(directory: &mut Directory) {
    let places = offset_of!(Heap, fronts);
    directory.heap_fronts_at = (places + offset_of!(Places, of)) as u64;
    directory.heap_fronts_count_at = (places + offset_of!(Places, kinds)) as u64;
    directory.fronts_stride = size_of::<Front>() as u64;
    directory.front_count_at = offset_of!(Front, count) as u64;
}

/// Where the fronts of a heap are.
pub(crate) struct Places {
    /// As many as kinds have one.
    of: Cell<*const Front>,
    kinds: Cell<u32>,
    /// Bytes of blocks that they may hold because they have grown.
    grown: Cell<usize>,
    /// A thread's.
    rest: Cell<*const Fronts>,
    /// A component's.
    nothing: Cell<*const Cell<usize>>,
    /// A component's that are made, a bit for each class.
    made: Cell<u64>,
}

impl Places {
    /// Fronts without room.
    pub(crate) const fn none() -> Places {
        Places {
            of: Cell::new((&raw const NO_FRONTS.0).cast()),
            kinds: Cell::new(0),
            grown: Cell::new(0),
            rest: Cell::new(core::ptr::null()),
            nothing: Cell::new(core::ptr::null()),
            made: Cell::new(0),
        }
    }

    pub(crate) fn set_none(&self) {
        self.of.set((&raw const NO_FRONTS.0).cast());
    }

    /// A heap that is given back as a whole has none any more, nor what is in them.
    pub(crate) fn forget(&self) {
        self.set_none();
        self.kinds.set(0);
        self.made.set(0);
    }

    /// # Safety
    /// They are this heap's own as long as it lives, and begin with zeros.
    pub(crate) unsafe fn set_full(&self, fronts: *const Fronts) {
        self.of.set(fronts.cast());
        self.kinds.set(KINDS as u32);
        self.rest.set(fronts);
    }

    /// # Safety
    /// They are this heap's own as long as it lives, and zero.
    pub(crate) unsafe fn set_slim(&self, fronts: *const SlimFronts) {
        self.of.set(fronts.cast());
        self.kinds.set(KINDS_SLIM as u32);
        // SAFETY: as the caller promises.
        self.nothing.set(unsafe { &raw const (*fronts).nothing });
    }

    /// The front of a kind, of a thread's heap.
    #[inline]
    pub(crate) fn of_thread(&self, kind: Kind) -> &Front {
        debug_assert!(usize::from(kind.0) < KINDS);
        // SAFETY: a thread's heap has one for every kind.
        unsafe { &*self.of.get().add(usize::from(kind.0)) }
    }

    /// The front of a kind, of any heap.
    #[inline]
    pub(crate) fn of(&self, kind: Kind) -> &Front {
        if u32::from(kind.0) < self.kinds.get() {
            // SAFETY: there are as many.
            unsafe { &*self.of.get().add(usize::from(kind.0)) }
        } else {
            &NO_FRONT.0
        }
    }

    /// The region that a class cuts from, if this heap keeps one for each class.
    pub(crate) fn current(&self, class: Class) -> Option<&Cell<u32>> {
        // SAFETY: the heap's own, if there are any.
        let rest = unsafe { self.rest.get().as_ref() }?;
        Some(&rest.current[class.number()])
    }

    /// What a front of a class begins with: its array, and its limit. None if it has no place.
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

    /// Is an array one that a front begins with?
    fn is_first(&self, class: Class, array: usize) -> bool {
        // SAFETY: as above.
        match unsafe { self.rest.get().as_ref() } {
            Some(rest) => array == rest.of(class).as_ptr().addr(),
            None => array == self.nothing.get().addr(),
        }
    }

    /// Where fronts lie that have grown.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn grown_arrays(&self) -> std::vec::Vec<usize> {
        (0..CLASSES)
            .map(Class::from_number)
            .map(|class| (class, self.of(Kind::pure(class)).below.get()))
            .filter(|(class, array)| *array != 0 && !self.is_first(*class, *array))
            .map(|(_, array)| array)
            .collect()
    }

    /// Asserts that the front of a class is as it should be. Its blocks.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self, class: Class) -> std::vec::Vec<usize> {
        let front = self.of(Kind::pure(class));
        let count = front.count.get();
        assert_eq!(count == 0, front.is_empty(), "front {class:?}");
        if count == 0 {
            return std::vec::Vec::new();
        }
        // A limit that has shrunk may be less than what is there yet.
        let most = if self.is_first(class, front.below.get()) {
            self.limit_first(class)
        } else {
            limit_max(class.level())
        };
        assert!(count <= most, "front {class:?} has {count}");
        // SAFETY: the array is as long as the most that it may hold, and there is a front.
        let below = |i: u32| unsafe { front.below(i) }.get();
        assert_eq!(below(0), 0, "front {class:?}");
        (1..count).map(below).chain([front.top.get()]).collect()
    }
}

impl Heap {
    /// Is this the block that was freed last?
    pub(crate) fn is_top(&self, class: Class, block: usize) -> bool {
        self.fronts.of(Kind::pure(class)).is_top(block)
    }

    /// A front is made when it is first reached, so that few pages are touched. True if this one
    /// was not made yet.
    pub(crate) fn make_front(&self, class: Class) -> bool {
        let front = self.fronts.of(Kind::pure(class));
        // Where every operation is to be looked at, no front ever has room.
        if front.limit.get() != 0 || harden::looks() {
            return false;
        }
        let Some((array, limit)) = self.fronts.first(class) else {
            return false;
        };
        front.below.set(array);
        front.limit.set(limit);
        true
    }

    /// A front that is full may hold more, if its blocks are small and all fronts together do not hold much.
    fn grow_front(&self, home: Home<'_>, class: Class) -> bool {
        let front = self.fronts.of(Kind::pure(class));
        let limit = front.limit.get();
        let grown = match limit {
            0 => return false,
            1..ROOM_GROWN => ROOM_GROWN,
            ROOM_GROWN..STEP if limit < ROOM as u32 => ROOM as u32,
            _ => limit + STEP,
        };
        let grown = grown.min(limit_max(class.level()));
        if grown <= limit {
            return false;
        }
        let bytes = self.fronts.grown.get() + (grown - limit) as usize * class.bytes();
        let (min, of_used) = if self.is_private.get() {
            (GROWN_MIN_PRIVATE, GROWN_OF_USED_PRIVATE)
        } else {
            (GROWN_MIN, GROWN_OF_USED)
        };
        if bytes > min + self.used.get() / of_used {
            return false;
        }
        if grown > self.front_room(class) && !self.lengthen(home, class, grown) {
            return false;
        }
        self.fronts.grown.set(bytes);
        front.limit.set(grown);
        true
    }

    /// So many blocks the array of a front has place for.
    fn front_room(&self, class: Class) -> u32 {
        let array = self.fronts.of(Kind::pure(class)).below.get();
        if self.fronts.is_first(class, array) {
            return self.fronts.limit_first(class);
        }
        let bytes = self.class_of(array).map_or(0, Class::bytes);
        (bytes / size_of::<usize>()).saturating_sub(1) as u32
    }

    /// Moves what is below a front to a longer array, a block of this heap's own.
    fn lengthen(&self, home: Home<'_>, class: Class, wanted: u32) -> bool {
        let front = self.fronts.of(Kind::pure(class));
        let room = match wanted {
            0..=ROOM_GROWN => ROOM_GROWN as usize,
            _ if wanted as usize <= ROOM => ROOM,
            _ => ROOM_MAX,
        };
        let of_array = Class::for_size((room + 1) * size_of::<usize>());
        let mut array = self.fronts.of(Kind::pure(of_array)).pop();
        if array == 0 {
            array = self.carve_quietly(home, of_array);
        }
        if array == 0 {
            return false;
        }
        let before = front.below.replace(array);
        let place: *mut usize = core::ptr::with_exposed_provenance_mut(array);
        let from: *const usize = core::ptr::with_exposed_provenance(before);
        // Where there is no block, the first says so.
        let count = (front.count.get() as usize).max(1);
        // SAFETY: both are as long, and apart.
        unsafe { place.copy_from_nonoverlapping(from, count) };
        if !self.fronts.is_first(class, before) {
            // It is a block in use, so it goes back to its region.
            let _ = self.restore_any(home, before);
        }
        true
    }

    /// A front that is empty once more shall have room for as many blocks as are cut at once.
    pub(crate) fn expect_more(&self, home: Home<'_>, class: Class) {
        let limit = self.fronts.of(Kind::pure(class)).limit.get();
        if limit != 0 && limit < filled_at_once(class.level()) - 1 {
            self.grow_front(home, class);
        }
    }

    /// Takes a block of a class back whose front has no room: that grows, or the block is loose.
    #[inline(never)]
    pub(crate) fn relieve(&self, home: Home<'_>, class: Class, block: usize) -> Told {
        let front = self.fronts.of(Kind::pure(class));
        if (self.make_front(class) || self.grow_front(home, class)) && front.push(block) {
            return Ok(());
        }
        self.loosen(home, class, block)?;
        self.join_some(home);
        self.shrink_fronts(home)
    }

    /// Some blocks leave the front of a class.
    fn drain(&self, home: Home<'_>, class: Class) -> Told {
        let front = self.fronts.of(Kind::pure(class));
        for _ in 0..drained_at_once(class.level()) {
            match front.pop() {
                0 => break,
                block => self.loosen(home, class, block)?,
            }
        }
        Ok(())
    }

    /// A heap that shrinks keeps less in front: each block there may be the last of its chunk. It takes
    /// turns, some for each time that chunks have gone.
    #[inline]
    pub(crate) fn shrink_fronts(&self, home: Home<'_>) -> Told {
        if self.shrink.get() == 0 {
            return Ok(());
        }
        self.shrink.set(self.shrink.get() - 1);
        let mut class = Class::from_number(self.shrinking.get());
        for _ in 0..SHRINK_LOOKS {
            if !self.fronts.of(Kind::pure(class)).is_empty() {
                break;
            }
            class = Class::from_number((class.number() + 1) % CLASSES);
        }
        self.shrinking.set((class.number() + 1) % CLASSES);
        let front = self.fronts.of(Kind::pure(class));
        let (limit, first) = (front.limit.get(), self.fronts.limit_first(class));
        if limit > first {
            let less = limit.saturating_sub(STEP).max(first);
            let bytes = (limit - less) as usize * class.bytes();
            self.fronts.grown.set(self.fronts.grown.get() - bytes);
            front.limit.set(less);
        }
        self.drain(home, class)
    }

    /// For a component's heap: all blocks in front go to their regions, and then what the fronts have grown
    /// into.
    pub(crate) fn shed_fronts(&self, home: Home<'_>) -> Told {
        let mut made = self.fronts.made.get();
        while made != 0 {
            let class = Class::from_number(made.trailing_zeros() as usize);
            made &= made - 1;
            let front = self.fronts.of(Kind::pure(class));
            while !front.is_empty() {
                self.drain(home, class)?;
            }
            let array = front.below.get();
            if array != 0 && !self.fronts.is_first(class, array) {
                front.limit.set(0);
                front.below.set(0);
                self.restore_any(home, array)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::PrivateHeap;

    /// Of such blocks a component's heap has no front. Miri tells if two threads write to the one that stands for it.
    #[test]
    fn what_stands_for_no_front_is_not_written_to() {
        let threads = [(); 2].map(|()| {
            std::thread::spawn(|| {
                let own = PrivateHeap::new().expect("there is memory");
                let block = own.allocate(5000);
                assert!(!block.is_null());
                // SAFETY: allocated above, and not used any more.
                unsafe { own.free(block) };
            })
        });
        for thread in threads {
            thread.join().expect("it does not panic");
        }
    }
}
