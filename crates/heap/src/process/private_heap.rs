//! Heaps that are nobody's but their component's: made in less than a microsecond, small at first, ended as
//! a whole.
//!
//! A private heap begins with one page, at the start of which it lies itself. Pages come from the
//! *nursery* of the thread that asks: a heap of its own, whose blocks are lent to private heaps as
//! regions. What a private heap is lent is no different from what it would have cut from a region of its own
//! on the next level: it goes back as a block, to the nursery's thread by a mark if it must. From some 100 KiB
//! on it takes chunks from the pool, as any heap does.
//!
//! Whose a page of a nursery's chunk is, is written in the page's [owner](crate::store::space::Space::owner).
//!
//! A heap whose owner leaves gives all back that has no block in it. If others have blocks of it
//! yet, it lives on as an [orphan](crate::heap::custody), and each region goes when its last block is home.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{
    CHUNK_BYTES, Class, GRANULE_MIN, GRANULES_MAX, MEDIUM_MAX, SMALL_MAX, region_shift,
};
use crate::ground::harden;
use crate::ground::real_time;
use crate::heap::component;
use crate::heap::orphans;
use crate::heap::pieces::LEVEL_OF_PAGE;
use crate::heap::state::Heap;
use crate::heap::table::entry;
use crate::heap::threads::current_node;
use crate::heap::upkeep;
use crate::process::blocks;
use crate::process::start::is_made;
use crate::process::statistics::Figures;
use crate::store::large;
use crate::store::nodes;
use crate::store::region::Kind;
use crate::store::space::SPACE;

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
        PrivateHeap::on_node(current_node)
    }

    /// A heap on the node of a CPU, by the operating system's number. None if there is no memory.
    #[must_use]
    pub fn near_cpu(cpu: u32) -> Option<PrivateHeap> {
        PrivateHeap::on_node(|| nodes::of_cpu(cpu))
    }

    fn on_node(node: impl FnOnce() -> usize) -> Option<PrivateHeap> {
        let heap = is_made().then(|| component::make(node()))??;
        Some(PrivateHeap(heap))
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
            component::prepare(heap.heap(), level);
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
        let mut block = heap.caches.of(Kind::pure(class)).pop();
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
            return unsafe { blocks::free(block) };
        }
        let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
        if !heap.caches.of(kind).push(address) {
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
        self.heap().bring(bytes_max)
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
        blocks::flush();
        heap.heap().discard();
        orphans::leave(heap.heap());
        // So many chunks may have become idle at once that it begins.
        upkeep::keep_up_if_wanted(None);
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
        self.heap().check()
    }

    /// Takes back what others have freed.
    #[cfg(any(test, feature = "checks"))]
    pub fn settle(&self) {
        self.heap().settle();
    }
}

impl Drop for PrivateHeap {
    fn drop(&mut self) {
        if let Err((address, fault)) = self.heap().shed() {
            report(address, fault, self.number());
        }
        orphans::leave(self.heap());
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
    /// order, so there are holes, and caches keep some back: twice the bytes and three times the largest
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

// ---- blocks ----------------------------------------------------------------------------------------

#[inline(never)]
fn carve(heap: &Heap, class: Class) -> usize {
    heap.expect_more(class);
    // What the cache has moved to may be of this class, and more have been cut with it.
    let mut block = heap.caches.of(Kind::pure(class)).pop();
    if block == 0 {
        block = heap.carve(class);
    }
    upkeep::keep_up_if_wanted(None);
    if block == 0 {
        real_time::refused();
    } else if harden::looks() {
        harden::given(block, class.bytes(), heap.number.get());
    }
    block
}

#[cold]
fn allocate_large(heap: &Heap, size: usize) -> (*mut u8, bool) {
    let (block, is_zero) = large::allocate(heap.node.get() as usize, size, GRANULE_MIN);
    if block == 0 {
        real_time::refused();
    }
    (ptr::with_exposed_provenance_mut(block), is_zero)
}

/// Takes an own block back whose kind is a mixture, or the cache of which is full.
#[inline(never)]
fn free_own(heap: &Heap, offset: usize) {
    let (number, address) = (heap.number.get(), SPACE.data() + offset);
    if harden::looks() {
        blocks::check_freed(offset, number);
    }
    let Some(class) = heap.class_of(address) else {
        return report(address, Fault::NotABlock, number);
    };
    if !heap.caches.of(Kind::pure(class)).push(address) {
        blocks::free_full(heap, class, address);
    }
}

// ---- pages of nurseries ------------------------------------------------------------------------------
