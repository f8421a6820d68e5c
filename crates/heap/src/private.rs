//! Heaps that are nobody's but their component's: made in less than a microsecond, small at first, ended as
//! a whole.
//!
//! A private heap begins with one page, at the start of which it lies itself. Pages come from the
//! *nursery* of the thread that asks: a heap of its own, whose blocks are lent to private heaps as
//! regions. What a private heap is lent is no different from what it would have cut from a region of its own
//! on the next level: it goes back as a block, to the nursery's thread by a mark if it must. From some 100 KiB
//! on it takes chunks from the pool, as any heap does.
//!
//! Whose a page of a nursery's chunk is, is written in the page's [owner](crate::space::Space::owner).
//!
//! A heap whose owner leaves gives all back that has no block in it. If others have blocks of it
//! yet, it lives on as an [orphan](crate::orphan), and each region goes when its last block is home.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use crate::faults::report;
use crate::figures::Figures;
use crate::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, Class, GRANULE_MIN, GRANULES_MAX, MEDIUM_MAX, RegionId, SMALL_MAX,
    granule_bytes, granule_shift, region_shift,
};
use crate::global;
use crate::harden;
use crate::heap::{Fault, Heap, Home, PAGES_MAX, WithSlimFronts};
use crate::helper::HELPER;
use crate::large;
use crate::loose;
use crate::nodes;
use crate::orphan::Attended;
use crate::os;
use crate::process::{SPACE, TABLE, entry, home, is_made};
use crate::real_time;
use crate::region::Kind;
use crate::space::{ChunkTag, Space};
use crate::thread;
use crate::threads::{current_node, in_turn, with_heap_on};

/// Regions of these levels come from nurseries: a page, or four.
const LEVEL_OF_PAGE: usize = 1;
const LEVEL_OF_PAGES: usize = 2;
/// So many single pages, then fours.
const SINGLE_PAGES: usize = 4;
/// The granules that the heap itself takes of its first page, and the bytes.
const HEADER: u32 = size_of::<WithSlimFronts>().div_ceil(granule_bytes(LEVEL_OF_PAGE)) as u32;
pub(crate) const HEADER_BYTES: usize = HEADER as usize * granule_bytes(LEVEL_OF_PAGE);
/// A nursery, as a block of its thread's heap.
const OF_NURSERY: Class = Class::for_size(size_of::<Heap>());
/// A heap leaves room in its page for a region of level 0, and a few larger blocks.
const _: () = assert!(HEADER <= 48 - 4);

/// A heap that is not a thread's. It has one user at a time; its blocks may be freed by any thread, as
/// those of [`allocate`](crate::allocate) may, and outlive it: what it has beyond them is given back when it
/// is dropped.
///
/// ```
/// let heap = hearth_heap::PrivateHeap::new().expect("there is memory");
/// let block = heap.allocate(100);
/// assert!(!block.is_null());
/// // SAFETY: allocated above, and not used any more.
/// unsafe { heap.free(block) };
/// ```
#[derive(Debug)]
pub struct PrivateHeap(NonNull<Heap>);

// SAFETY: it is used by one thread at a time; whoever hands it over lets the next see what was done.
unsafe impl Send for PrivateHeap {}

impl PrivateHeap {
    /// A heap on the node that this thread runs on. None if there is no memory.
    #[must_use]
    pub fn new() -> Option<PrivateHeap> {
        is_made().then(|| make(current_node())).flatten()
    }

    /// A heap on the node of a CPU, by the operating system's number. None if there is no memory.
    #[must_use]
    pub fn near_cpu(cpu: u32) -> Option<PrivateHeap> {
        is_made().then(|| make(nodes::of_cpu(cpu))).flatten()
    }

    /// A heap for what is known to be in it at most, on the node of a CPU, or else the one that this thread
    /// runs on: what the blocks need beyond the first page is taken at once. The heap may become larger
    /// nevertheless. None if there is no memory.
    #[must_use]
    pub fn with_room(cpu: Option<u32>, room: Room) -> Option<PrivateHeap> {
        let heap = match cpu {
            Some(cpu) => PrivateHeap::near_cpu(cpu),
            None => PrivateHeap::new(),
        }?;
        if let Some(level) = room.level() {
            prepare(heap.heap(), level);
        }
        Some(heap)
    }

    #[inline]
    fn heap(&self) -> &Heap {
        // SAFETY: it lives until this is dropped, and nobody else uses it meanwhile.
        unsafe { self.0.as_ref() }
    }

    /// A block of at least so many bytes, aligned to 16; null if there is no memory.
    #[inline]
    #[must_use]
    pub fn allocate(&self, size: usize) -> *mut u8 {
        let heap = self.heap();
        let class = if size <= SMALL_MAX {
            Class::for_small(size)
        } else if size <= MEDIUM_MAX {
            Class::for_size(size)
        } else {
            return allocate_large(heap, size).0;
        };
        let mut block = heap.fronts.of(Kind::pure(class)).pop();
        if block == 0 {
            block = carve(heap, class);
        }
        ptr::with_exposed_provenance_mut(block)
    }

    /// A zeroed block; null if there is no memory.
    #[must_use]
    pub fn allocate_zeroed(&self, size: usize) -> *mut u8 {
        let (block, is_zero) = if size > MEDIUM_MAX {
            allocate_large(self.heap(), size)
        } else {
            (self.allocate(size), false)
        };
        if !block.is_null() && !is_zero {
            // SAFETY: the block is as large as was asked.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    /// Gives a block back; null is nothing. It may be this heap's, another private heap's, or a thread's:
    /// then it goes home.
    ///
    /// # Safety
    /// The block came from a heap of this crate and is not used any more.
    #[inline]
    pub unsafe fn free(&self, block: *mut u8) {
        let (heap, address) = (self.heap(), block.expose_provenance());
        let offset = address.wrapping_sub(heap.data.get());
        if offset >= SPACE.bytes() || !heap.is_own(offset) {
            // SAFETY: as the caller promises.
            return unsafe { global::free(block) };
        }
        let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
        if !heap.fronts.of(kind).push(address) {
            free_own(heap, offset);
        }
    }

    /// From now on new memory comes from the node of a CPU, by the operating system's number: the heap's user
    /// has gone there. What it has stays where it is, unless it is [brought](PrivateHeap::bring).
    pub fn move_near_cpu(&self, cpu: u32) {
        self.heap().node.set(nodes::of_cpu(cpu) as u32);
    }

    /// Brings what the heap has on other nodes to the one that it is on now: so many bytes at most, whole pages of
    /// its chunks, the fullest chunks first. The bytes that lie there now and did not, as far as is known; 0 when
    /// nothing is left that can be brought.
    ///
    /// Contents and addresses stay. The time is that of copying so many bytes, a few microseconds for a page of
    /// 4 KiB on most machines, and of three looks at each region of whole pages; nobody else waits, but who
    /// touches such a page in that moment. On a machine of one node, and in real-time mode, nothing is
    /// done, and the system is not called. If the system refuses, as that node is full or closed to the process,
    /// all stays as it is.
    ///
    /// Pages of less than a chunk, which are shared with other heaps, stay where they are; so do blocks of more
    /// than 256 KiB.
    pub fn bring(&self, bytes_max: usize) -> usize {
        self.heap().bring(home(), bytes_max)
    }

    /// Gives all of the heap back at once, the blocks that it has given out and nobody has freed, too: without
    /// looking at them, in time for its chunks of 64 KiB and its pieces of up to 16 KiB, and for the threads
    /// that the process has.
    ///
    /// Others may have freed blocks of it before, and their marks be on their way yet. What they are to be set
    /// in stays until they are: a chunk or a piece for each thread that keeps some back, until it
    /// [flushes](crate::flush) or ends.
    ///
    /// Blocks of more than 256 KiB belong to no heap: they stay, and are freed as ever.
    ///
    /// ```
    /// let heap = hearth_heap::PrivateHeap::new().expect("there is memory");
    /// for size in 1..10_000 {
    ///     assert!(!heap.allocate(size).is_null());
    /// }
    /// // SAFETY: nobody has kept a block.
    /// unsafe { heap.destroy() };
    /// ```
    ///
    /// # Safety
    /// No block of the heap of 256 KiB or less is used from now on: neither read nor written, nor freed. What
    /// was freed was freed before: each of these calls has returned, and this thread knows, as by a message
    /// or a join.
    pub unsafe fn destroy(self) {
        let heap = ManuallyDrop::new(self);
        // What this thread keeps back itself need not be awaited.
        global::flush();
        heap.heap().discard(home());
        leave(heap.heap());
        // So many chunks may have become idle at once that it begins.
        HELPER.keep_up_if_wanted(None);
    }

    /// What the heap has.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let heap = self.heap();
        Figures {
            owned: heap.chunks.get() * CHUNK_BYTES + heap.bytes_of_pages(),
            touched: heap.touched.get() + heap.bytes_of_pages(),
            used: heap.used.get(),
        }
    }

    /// Its number among all heaps of the process, as reports of faults tell it.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.heap().number.get()
    }

    /// The heap as its number, for whoever must keep it in a structure of C. [`PrivateHeap::from_number`]
    /// takes it back.
    #[must_use]
    pub fn into_number(self) -> u32 {
        let number = self.number();
        core::mem::forget(self);
        number
    }

    /// The heap of a number, to be used: only who takes it out with [`ManuallyDrop::into_inner`] ends it. None
    /// for 0.
    ///
    /// # Safety
    /// The number is 0 or came from [`PrivateHeap::into_number`], and the heap is not ended; it is used by one
    /// thread at a time, and taken out once.
    #[must_use]
    #[inline]
    pub unsafe fn from_number(number: u32) -> Option<ManuallyDrop<PrivateHeap>> {
        if number == 0 {
            return None;
        }
        let heap = NonNull::new(entry(number).heap().cast_mut())?;
        Some(ManuallyDrop::new(PrivateHeap(heap)))
    }

    /// Asserts that the heap is as it should be, and tells what is in it.
    #[cfg(any(test, feature = "checks"))]
    #[must_use]
    pub fn check(&self) -> crate::heap::checks::Census {
        self.heap().check(home())
    }

    /// Takes back what others have freed.
    #[cfg(any(test, feature = "checks"))]
    pub fn settle(&self) {
        self.heap().settle(home());
    }
}

impl Drop for PrivateHeap {
    fn drop(&mut self) {
        if let Err((address, fault)) = self.heap().shed(home()) {
            report(address, fault, self.number());
        }
        leave(self.heap());
    }
}

/// What a heap has at most at once, in bytes: all blocks together, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub bytes: usize,
    pub largest: usize,
}

/// Less than this is in the first page, or will be when it is asked for.
const PREPARED_MIN: usize = 512;
/// More is not prepared: the worst case may never come, and pages that were touched stay.
const PREPARED_MAX: usize = 64 << 10;
/// Its blocks are as large.
const LEVEL_MAX: usize = 4;
const _: () = assert!(Class::of(LEVEL_MAX, GRANULES_MAX).bytes() == PREPARED_MAX);

impl Room {
    /// The level of a region that has this room, if it is to be taken at once. Blocks come and go in any
    /// order, so there are holes, and fronts keep some back: twice the bytes and three times the largest
    /// block were enough for random lives of all kinds (`tests/private.rs`). Of a region that is too
    /// large only the pages that are used have memory.
    const fn level(self) -> Option<usize> {
        if self.bytes <= PREPARED_MIN || self.bytes > PREPARED_MAX || self.largest > self.bytes {
            return None;
        }
        let needed = 2 * self.bytes + 3 * self.largest;
        let mut level = LEVEL_OF_PAGE;
        while level < LEVEL_MAX
            && (Class::of(level, GRANULES_MAX).bytes() < self.largest
                || 1 << region_shift(level) < needed)
        {
            level += 1;
        }
        Some(level)
    }
}

// ---- making and ending ---------------------------------------------------------------------------

fn make(node: usize) -> Option<PrivateHeap> {
    let number = TABLE.number()?;
    let Some(offset) = take(node, LEVEL_OF_PAGE) else {
        TABLE.end(number);
        return None;
    };
    let address = SPACE.data() + offset;
    let place: *mut WithSlimFronts = ptr::with_exposed_provenance_mut(address);
    // SAFETY: the page has just been taken; all fields of a heap and its fronts may be zero.
    let (heap, fronts) = unsafe {
        place
            .cast::<u8>()
            .write_bytes(0, size_of::<WithSlimFronts>());
        (&(*place).heap, &raw const (*place).fronts)
    };
    let entry = entry(number);
    heap.make(&SPACE, entry, number, node);
    // SAFETY: zero, and in the heap's own page.
    unsafe { heap.fronts.set_slim(fronts) };
    heap.keeps_loose.set(loose::is_wanted());
    heap.is_private.set(true);
    let region = RegionId::at(LEVEL_OF_PAGE, offset);
    heap.own_pages(&SPACE, region, LEVEL_OF_PAGE);
    heap.begin(region, true);
    heap.cut_header(region);
    heap.used.set(HEADER_BYTES);
    heap.put_back(home(), region);
    entry.custody.begin(true);
    entry.set_heap(address);
    NonNull::new(place.cast()).map(PrivateHeap)
}

/// The heap has a free region of a level from now on, or none if there is no memory.
fn prepare(heap: &Heap, level: usize) {
    let region = if level <= LEVEL_OF_PAGES {
        let Some(offset) = take(heap.node.get() as usize, level) else {
            return;
        };
        let region = RegionId::at(level, offset);
        heap.own_pages(&SPACE, region, level);
        heap.begin(region, true);
        region
    } else {
        let Some(region) = heap.take_chunks(home(), level) else {
            return;
        };
        region
    };
    // All free, so it is kept as a spare.
    heap.put_back(home(), region);
    HELPER.keep_up_if_wanted(None);
}

/// The owner of a heap leaves, which has only what others have. It is an orphan then; or ended, if that is
/// nothing.
fn leave(heap: &Heap) {
    let number = heap.number.get();
    if take_home(heap) == Attended::Lives {
        let entry = entry(number);
        let look = || entry.has_something(&SPACE);
        entry.custody.leave(look, || look_after(number));
    }
}

/// The page in which a heap lies, as its region.
pub(crate) fn page_of(heap: &Heap) -> RegionId {
    RegionId::at(LEVEL_OF_PAGE, ptr::from_ref(heap).addr() - SPACE.data())
}

/// For an orphan: takes back what has come home, and ends it if that is all.
pub(crate) fn look_after(number: u32) -> Attended {
    // SAFETY: the heap lives as long as it is not ended, and it is the caller's for the moment.
    take_home(unsafe { &*entry(number).heap() })
}

fn take_home(heap: &Heap) -> Attended {
    let entry = heap.entry();
    loop {
        while entry.queue.has_some(&SPACE) {
            let _ = heap.adopt(home());
        }
        // Who is yet to tell that it is done must find the heap's number as it is.
        if entry.awaited.is_waiting() {
            return Attended::Lives;
        }
        if !entry.awaited.is_over() {
            break;
        }
        // Of what was awaited some may have been taken back before.
        entry.awaited.end();
        if heap.used.get() > HEADER_BYTES {
            heap.discard(home());
        }
    }
    if heap.used.get() > HEADER_BYTES {
        return Attended::Lives;
    }
    end(heap);
    Attended::Ended
}

/// The last that a heap has is the page in which it lies.
fn end(heap: &Heap) {
    let number = heap.number.get();
    let region = page_of(heap);
    let words = heap.region(region);
    words.starts.set(0);
    words.free.set(0);
    // Nothing of the heap is used from here on.
    harden::wipe(ptr::from_ref(heap).addr(), HEADER_BYTES);
    give(region, LEVEL_OF_PAGE);
    TABLE.end(number);
}

// ---- blocks ----------------------------------------------------------------------------------------

#[inline(never)]
fn carve(heap: &Heap, class: Class) -> usize {
    heap.expect_more(home(), class);
    // What the front has moved to may be of this class, and more have been cut with it.
    let mut block = heap.fronts.of(Kind::pure(class)).pop();
    if block == 0 {
        block = heap.carve(home(), class);
    }
    HELPER.keep_up_if_wanted(None);
    if block == 0 {
        real_time::refused();
    } else if harden::looks() {
        harden::given(block, class.bytes(), heap.number.get());
    }
    block
}

#[cold]
fn allocate_large(heap: &Heap, size: usize) -> (*mut u8, bool) {
    let (block, is_zero) = large::allocate(home(), heap.node.get() as usize, size, GRANULE_MIN);
    if block == 0 {
        real_time::refused();
    }
    (ptr::with_exposed_provenance_mut(block), is_zero)
}

/// Takes an own block back whose kind is a mixture, or the front of which is full.
#[inline(never)]
fn free_own(heap: &Heap, offset: usize) {
    let (number, address) = (heap.number.get(), SPACE.data() + offset);
    if harden::looks() {
        harden::taken_back(offset, number);
    }
    let Some(class) = heap.class_of(address) else {
        return report(address, Fault::NotABlock, number);
    };
    if !heap.fronts.of(Kind::pure(class)).push(address) {
        global::free_full(heap, class, address);
    }
}

// ---- pages of nurseries ------------------------------------------------------------------------------

/// The nursery of a thread's heap, made if there is none.
fn nursery(heap: &Heap) -> Option<&'static Heap> {
    if heap.nursery.get().is_null() {
        heap.nursery.set(make_nursery(heap)?);
    }
    // SAFETY: a nursery never ends, and is its thread's alone.
    Some(unsafe { &*heap.nursery.get() })
}

#[cold]
fn make_nursery(heap: &Heap) -> Option<*const Heap> {
    let number = TABLE.number()?;
    let mut block = heap.try_allocate(OF_NURSERY);
    if block == 0 {
        block = heap.carve(home(), OF_NURSERY);
    }
    if block == 0 {
        TABLE.end(number);
        return None;
    }
    let place: *mut Heap = ptr::with_exposed_provenance_mut(block);
    // SAFETY: the block is this heap's for good; all fields of a heap may be zero.
    let nursery = unsafe {
        place.cast::<u8>().write_bytes(0, size_of::<Heap>());
        &*place
    };
    let entry = entry(number);
    nursery.make(&SPACE, entry, number, heap.node.get() as usize);
    nursery.own.set(ChunkTag::of(ChunkTag::SHARED, number).0);
    entry.custody.begin(false);
    entry.set_heap(block);
    Some(place)
}

/// Pages that make a region of a level, from this thread's nursery on a node.
fn take(node: usize, level: usize) -> Option<usize> {
    let of_pages = Class::of(level + 1, GRANULES_MAX);
    let block = with_heap_on(node, |heap| match nursery(heap) {
        // Quietly: idle pages that it lent to the helper would leave holes between which a run of the right
        // length lies across two regions.
        Some(nursery) => nursery.carve_quietly(home(), of_pages),
        None => 0,
    })?;
    debug_assert!(
        block & ((1 << region_shift(level)) - 1) == 0,
        "pages make a region"
    );
    (block != 0).then(|| block - SPACE.data())
}

/// Gives pages back to the nursery that they came from.
fn give(region: RegionId, level: usize) {
    let offset = region.offset_on(level);
    let end = offset + (1 << region_shift(level));
    for page in (offset..end).step_by(os::PAGE) {
        SPACE.owner(page).store(0, Ordering::Relaxed);
    }
    let number = ChunkTag(SPACE.tag(region.chunk()).load(Ordering::Relaxed)).number();
    let above = RegionId::at(level + 1, offset);
    let first = (offset - above.offset_on(level + 1)) >> granule_shift(level + 1);
    let own = thread::heap();
    if !own.is_null() && own != thread::ENDED {
        // SAFETY: the thread's heap, and its nursery.
        let (own, nursery) = unsafe { (&*own, (*own).nursery.get().as_ref()) };
        if let Some(nursery) = nursery
            && nursery.number.get() == number
            && own.turn.begin()
        {
            let taken = in_turn(own, |_| {
                nursery.restore(home(), above, level + 1, 1 << first, GRANULES_MAX as u32)
            });
            if let Err((address, fault)) = taken {
                report(address, fault, number);
            }
            return;
        }
    }
    global::send_marks(number, above, 1 << first);
}

impl Heap {
    /// A small heap takes pages, a larger one fours of pages. None if it is to take chunks, or there are
    /// no pages. In no list, and its words are not set.
    pub(crate) fn take_pages(&self, home: Home<'_>, level: usize) -> Option<RegionId> {
        let count = self.pages.iter().filter(|root| root.get() != 0).count();
        let is_right = match level {
            LEVEL_OF_PAGE => count < SINGLE_PAGES,
            LEVEL_OF_PAGES => count < PAGES_MAX,
            _ => false,
        };
        if !is_right {
            return None;
        }
        let region = RegionId::at(level, take(self.node.get() as usize, level)?);
        self.own_pages(home.space, region, level);
        Some(region)
    }

    /// The heap itself takes the beginning of its first region: blocks of 16 granules, and a shorter one.
    pub(crate) fn cut_header(&self, region: RegionId) {
        const MOST: u32 = GRANULES_MAX as u32;
        let full = (0..HEADER / MOST).fold(0, |begins, nth| begins | 1 << (nth * MOST));
        self.cut(region, LEVEL_OF_PAGE, full, MOST);
        if !HEADER.is_multiple_of(MOST) {
            let begin = 1 << (HEADER / MOST * MOST);
            self.cut(region, LEVEL_OF_PAGE, begin, HEADER % MOST);
        }
    }

    /// These pages are this heap's.
    fn own_pages(&self, space: &Space, region: RegionId, level: usize) {
        let offset = region.offset_on(level);
        let end = offset + (1 << region_shift(level));
        for page in (offset..end).step_by(os::PAGE) {
            space
                .owner(page)
                .store(self.number.get(), Ordering::Relaxed);
        }
        if let Some(place) = self.pages.iter().find(|root| root.get() == 0) {
            place.set(region.0);
        }
    }

    /// Gives a region back that is all free, if it came from a nursery.
    pub(crate) fn give_pages(&self, _home: Home<'_>, region: RegionId) -> bool {
        let Some(place) = self.pages.iter().find(|root| root.get() == region.0) else {
            return false;
        };
        place.set(0);
        self.region(region).free.set(0);
        give(region, region.level());
        true
    }

    /// Is a byte of the data in this heap's own pages or chunks?
    #[inline]
    fn is_own(&self, offset: usize) -> bool {
        let tag = self.tag(offset >> CHUNK_SHIFT).load(Ordering::Relaxed);
        tag == self.own.get()
            || ChunkTag(tag).kind() == ChunkTag::SHARED
                && SPACE.owner(offset).load(Ordering::Relaxed) == self.number.get()
    }

    /// Is a region of level 2 in pages of a nursery?
    #[inline]
    pub(crate) fn is_in_nursery(&self, region: RegionId) -> bool {
        self.is_private.get() && self.tag(region.chunk()).load(Ordering::Relaxed) != self.own.get()
    }

    /// Bytes of pages from nurseries.
    fn bytes_of_pages(&self) -> usize {
        let bytes = |root: &core::cell::Cell<u32>| match RegionId(root.get()) {
            RegionId::NONE => 0,
            region => 1 << region_shift(region.level()),
        };
        self.pages.iter().map(bytes).sum()
    }
}
