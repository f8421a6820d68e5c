//! Heaps of components: made in less than a microsecond, small at first, ended as a whole.
//!
//! A private heap begins with one page from the [nursery](crate::heap::nursery) of the calling
//! thread, and takes further pages there. From some 100 KiB on it takes chunks from the pool, as
//! any heap does.
//!
//! A heap whose owner leaves gives back all that has no block in it. If others still have blocks of
//! it, it lives on as an [orphan](crate::heap::custody), and each region goes when its last block
//! is home.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{
    CHUNK_BYTES, Class, GRANULE_MIN, GRANULES_MAX, MEDIUM_MAX, SMALL_MAX, region_shift,
};
use crate::ground::{harden, real_time};
use crate::heap::pieces::LEVEL_OF_PAGE;
use crate::heap::state::Heap;
use crate::heap::table::entry;
use crate::heap::threads::current_node;
use crate::heap::{component, orphans, upkeep};
use crate::process::blocks;
use crate::process::start::is_ready;
use crate::process::statistics::Figures;
use crate::store::region::Kind;
use crate::store::space::SPACE;
use crate::store::{large, nodes};

/// A heap of its own, for one user at a time. Any thread may free its blocks, as those of
/// [`allocate`](crate::allocate), and they may outlive it: dropping it gives back all that has no
/// block in it.
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

// SAFETY: one thread uses it at a time; whoever hands it over synchronizes with the next.
unsafe impl Send for PrivateHeap {}

impl PrivateHeap {
    /// Makes a heap on the node that this thread runs on. None if there is no memory.
    #[must_use]
    pub fn new() -> Option<PrivateHeap> {
        PrivateHeap::on_node(current_node)
    }

    /// Makes a heap on the node of a CPU, by the operating system's number. None if there is no
    /// memory.
    #[must_use]
    pub fn near_cpu(cpu: u32) -> Option<PrivateHeap> {
        PrivateHeap::on_node(|| nodes::of_cpu(cpu))
    }

    fn on_node(node: impl FnOnce() -> usize) -> Option<PrivateHeap> {
        let heap = is_ready().then(|| component::make(node()))??;
        Some(PrivateHeap(heap))
    }

    /// Makes a heap with room for known contents, on the node of a CPU, or else on this thread's:
    /// it takes at once what the blocks need beyond the first page. The heap may become larger
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

    /// Allocates a block of at least `size` bytes, aligned to 16; null if there is no memory.
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

    /// Allocates a zeroed block; null if there is no memory.
    #[must_use]
    pub fn allocate_zeroed(&self, size: usize) -> *mut u8 {
        let (block, is_zero) = if size > MEDIUM_MAX {
            allocate_large(self.heap(), size)
        } else {
            (self.allocate(size), false)
        };
        if !block.is_null() && !is_zero {
            // SAFETY: the block has at least this size.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    /// Frees a block of this heap, of another private heap, or of a thread's; null is ignored.
    ///
    /// # Safety
    /// As for [`free`](crate::free).
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

    /// Takes new memory from the node of a CPU from now on, by the operating system's number, as
    /// the heap's user has moved there. Existing pages stay where they are, unless they are
    /// [migrated](PrivateHeap::bring).
    pub fn move_near_cpu(&self, cpu: u32) {
        self.heap().node.set(nodes::of_cpu(cpu) as u32);
    }

    /// Migrates the heap's pages to the node that it is on now, up to `bytes_max`: whole pages of
    /// its chunks, the fullest chunks first. Returns the bytes that have come, as far as is known;
    /// 0 when nothing is left to migrate.
    ///
    /// Contents and addresses stay. It takes the time to copy the bytes, a few microseconds for a
    /// page of 4 KiB on most machines, and three looks at each region of whole pages. Other threads
    /// wait only if they touch such a page at that moment. On a machine of one node, and in
    /// real-time mode, it does nothing and makes no system call. If the system refuses, because
    /// that node is full or closed to the process, everything stays as it is.
    ///
    /// Pieces of less than a chunk, whose pages other heaps share, stay where they are; so do
    /// blocks of more than 256 KiB.
    pub fn bring(&self, bytes_max: usize) -> usize {
        self.heap().migrate(bytes_max)
    }

    /// Gives the whole heap back at once, with all blocks that nobody has freed: without looking at
    /// them, in time proportional to its chunks of 64 KiB, its pieces of up to 16 KiB, and the
    /// threads of the process.
    ///
    /// Others may have freed blocks of it before whose marks are still on the way. Their regions
    /// stay until the marks have come: a chunk or a piece for each thread that keeps some back,
    /// until it [flushes](crate::flush) or ends.
    ///
    /// Blocks of more than 256 KiB belong to no heap: they stay, and are freed as usual.
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
    /// From now on nobody reads, writes or frees a block of the heap of 256 KiB or less. All
    /// earlier frees of its blocks have returned, and this thread knows it, for example by a
    /// message or a join.
    pub unsafe fn destroy(self) {
        let heap = ManuallyDrop::new(self);
        // Otherwise this thread's own marks would be awaited.
        blocks::flush();
        heap.heap().discard();
        orphans::end_or_orphan(heap.heap());
        // Enough chunks may have become idle at once.
        upkeep::keep_up_if_wanted(None);
    }

    /// Prepares the end: the user frees what it still has, and drops the heap. Blocks freed from
    /// now on are taken back together when the heap is dropped, and the whole heap at once if
    /// nobody else has a block of it.
    pub fn wind_up(&self) {
        self.heap().pile_up();
    }

    /// The bytes of this heap.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let heap = self.heap();
        Figures {
            owned: heap.chunks.get() * CHUNK_BYTES + heap.bytes_of_pages(),
            touched: heap.touched.get() + heap.bytes_of_pages(),
            used: heap.used.get(),
        }
    }

    /// The heap's number in this process, as reports of faults name it.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.heap().number.get()
    }

    /// Converts the heap to its number, to keep it in a structure of C.
    /// [`PrivateHeap::from_number`] converts it back.
    #[must_use]
    pub fn into_number(self) -> u32 {
        let number = self.number();
        core::mem::forget(self);
        number
    }

    /// The heap of a number, for use; only [`ManuallyDrop::into_inner`] takes it out, to end it.
    /// None for 0.
    ///
    /// # Safety
    /// The number is 0, or came from [`PrivateHeap::into_number`] of a heap that has not ended.
    /// While the result is used, nothing else uses the heap: neither another thread nor another
    /// result for the same number. One thread's uses happen before the next thread's. At most one
    /// of all results is taken out.
    #[must_use]
    #[inline]
    pub unsafe fn from_number(number: u32) -> Option<ManuallyDrop<PrivateHeap>> {
        if number == 0 {
            return None;
        }
        let heap = NonNull::new(entry(number).heap().cast_mut())?;
        Some(ManuallyDrop::new(PrivateHeap(heap)))
    }

    /// Asserts the heap's invariants, and returns its contents.
    #[cfg(any(test, feature = "checks"))]
    #[must_use]
    pub fn check(&self) -> crate::heap::checks::Census {
        self.heap().check()
    }

    /// Takes back remote frees.
    #[cfg(any(test, feature = "checks"))]
    pub fn settle(&self) {
        self.heap().settle();
    }
}

impl Drop for PrivateHeap {
    fn drop(&mut self) {
        let heap = self.heap();
        if !heap.give_back_if_home()
            && let Err((address, fault)) = heap.take_pile_apart().and_then(|()| heap.shed())
        {
            report(address, fault, self.number());
        }
        orphans::end_or_orphan(heap);
    }
}

/// The most that a heap holds at once, in bytes: all blocks together, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub bytes: usize,
    pub largest: usize,
}

/// Less than this is in the first page, or will be when it is asked for.
const PREPARED_MIN: usize = 512;
/// More is not prepared: the worst case may never come, and touched pages stay.
const PREPARED_MAX: usize = 64 << 10;
/// The level whose largest block has this size.
const LEVEL_MAX: usize = 4;
const _: () = assert!(Class::of(LEVEL_MAX, GRANULES_MAX).bytes() == PREPARED_MAX);

impl Room {
    /// The level of a region with this room, if it is to be taken at once. Blocks come and go in
    /// any order, so there are holes, and caches keep some back: twice the bytes and three times
    /// the largest block sufficed for random lives of all kinds (`tests/private.rs`). Of a region
    /// that is too large only the used pages have memory.
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

// ---- making and ending -----------------------------------------------------------------------

// ---- blocks ----------------------------------------------------------------------------------

#[inline(never)]
fn carve(heap: &Heap, class: Class) -> usize {
    heap.grow_if_small(class);
    // The cache may have moved to a block of this class, and more have been cut with it.
    let mut block = heap.caches.of(Kind::pure(class)).pop();
    if block == 0 {
        block = heap.carve(class);
    }
    upkeep::keep_up_if_wanted(None);
    if block == 0 {
        real_time::report_refused();
    } else if harden::is_checking() {
        harden::hand_out(block, class.bytes(), heap.number.get());
    }
    block
}

#[cold]
fn allocate_large(heap: &Heap, size: usize) -> (*mut u8, bool) {
    let (block, is_zero) = large::allocate(heap.node.get() as usize, size, GRANULE_MIN);
    if block == 0 {
        real_time::report_refused();
    }
    (ptr::with_exposed_provenance_mut(block), is_zero)
}

/// Frees a block of this heap in a mixed KiB, or whose cache is full.
#[inline(never)]
fn free_own(heap: &Heap, offset: usize) {
    let (number, address) = (heap.number.get(), SPACE.data() + offset);
    if harden::is_checking() {
        blocks::check_freed(offset, number);
    }
    let Some(class) = heap.class_of(address) else {
        return report(address, Fault::NotABlock, number);
    };
    if !heap.caches.of(Kind::pure(class)).push(address) {
        blocks::free_full(heap, class, address);
    }
}

// ---- pages of nurseries ----------------------------------------------------------------------
