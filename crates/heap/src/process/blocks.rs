//! The functions to allocate and free: blocks come from the calling thread's heap, and go back to
//! whichever heap they came from.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, CLASSES, Class, GRANULE_MIN, GRANULES_MAX, MEDIUM_MAX, SMALL_MAX,
    granule_shift,
};
use crate::ground::{harden, real_time};
use crate::heap::marks::free_remote;
use crate::heap::state::Heap;
use crate::heap::table::entry;
use crate::heap::thread;
use crate::heap::threads::{ASKS, with_parked};
use crate::heap::upkeep::in_turn;
use crate::process::start::with_heap;
use crate::store::guarded::{self, Sort};
use crate::store::idle::IDLE;
use crate::store::region::Kind;
use crate::store::space::{ChunkTag, SPACE};
use crate::store::{large, nodes};

// ---- allocating ------------------------------------------------------------------------------

/// Allocates a block of at least `size` bytes, aligned to 16; null if there is no memory.
#[inline]
pub fn allocate(size: usize) -> *mut u8 {
    let heap = thread::only_heap();
    if heap.is_null() {
        return allocate_watching(size);
    }
    // SAFETY: as in `with_heap`; an ended thread's stand-in has no blocks, and takes none.
    allocate_in(unsafe { &*heap }, size)
}

#[inline(always)]
fn allocate_in(heap: &'static Heap, size: usize) -> *mut u8 {
    // Size 0 is so rare that it may take the slow path.
    let last = size.wrapping_sub(1);
    let class = if last < SMALL_MAX {
        Class::for_last(last)
    } else if last < MEDIUM_MAX {
        Class::for_size(size)
    } else {
        return allocate_slow(size);
    };
    let block = heap.try_allocate(class);
    if block == 0 {
        return allocate_uncached(heap, class, size);
    }
    ptr::with_exposed_provenance_mut(block)
}

/// Allocates where there are several nodes, and a thread must notice that it has moved.
#[inline(never)]
fn allocate_watching(size: usize) -> *mut u8 {
    let heap = thread::heap();
    if heap.is_null() {
        return allocate_slow(size);
    }
    // SAFETY: as above.
    let heap = unsafe { &*heap };
    if heap.cpu.get() != thread::cpu() {
        return allocate_slow(size);
    }
    allocate_in(heap, size)
}

/// Allocates when the cache is empty.
#[inline(never)]
fn allocate_uncached(heap: &'static Heap, class: Class, size: usize) -> *mut u8 {
    let is_simple = heap.batch.region().is_none()
        && !ASKS.load(Ordering::Relaxed)
        && !harden::is_checking()
        && !ptr::eq(heap, thread::ENDED);
    if !is_simple || !heap.handshake.begin() {
        return allocate_slow(size);
    }
    let block = in_turn(heap, |heap| match heap.take_deferred(class) {
        0 => heap.carve(class),
        block => block,
    });
    to_pointer(block)
}

#[inline(never)]
fn allocate_slow(size: usize) -> *mut u8 {
    let block = with_heap(|heap| {
        if size <= MEDIUM_MAX {
            return allocate_of(heap, Class::for_size(size), size, GRANULE_MIN);
        }
        large::allocate(heap.node.get() as usize, size, GRANULE_MIN).0
    });
    to_pointer(block.unwrap_or(0))
}

fn allocate_of(heap: &Heap, class: Class, size: usize, align: usize) -> usize {
    let mut block = heap.try_allocate(class);
    if block == 0 {
        if harden::is_checking() {
            return allocate_hardened(heap, class, size, align);
        }
        heap.flush_marks();
        block = heap.carve(class);
    }
    block
}

#[cold]
fn allocate_hardened(heap: &Heap, class: Class, size: usize, align: usize) -> usize {
    if harden::is_sampled(SPACE.data()) {
        let node = heap.node.get() as usize;
        if let Some((block, _)) = guarded::allocate(node, size, align, Sort::Sampled) {
            return block;
        }
    }
    heap.flush_marks();
    let block = heap.carve(class);
    if block != 0 {
        harden::hand_out(block, class.bytes(), heap.number.get());
    }
    block
}

/// Converts an address to a pointer; sets `errno` if it is 0.
fn to_pointer(block: usize) -> *mut u8 {
    if block == 0 {
        return out_of_memory();
    }
    ptr::with_exposed_provenance_mut(block)
}

#[cold]
fn out_of_memory() -> *mut u8 {
    real_time::report_refused();
    // SAFETY: the place of this thread's error number.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// Allocates a zeroed block; null if there is no memory.
pub fn allocate_zeroed(size: usize) -> *mut u8 {
    if size > MEDIUM_MAX {
        let allocated =
            with_heap(|heap| large::allocate(heap.node.get() as usize, size, GRANULE_MIN));
        let (block, is_zero) = allocated.unwrap_or((0, true));
        let block = to_pointer(block);
        if !block.is_null() && !is_zero {
            // SAFETY: the block has at least this size.
            unsafe { block.write_bytes(0, size) };
        }
        return block;
    }
    let block = allocate(size);
    if !block.is_null() {
        // SAFETY: the block has at least this size.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// Allocates a block whose address is a multiple of `align`, a power of two; null if there is no
/// memory.
pub fn allocate_aligned(size: usize, align: usize) -> *mut u8 {
    if align <= GRANULE_MIN {
        return allocate(size);
    }
    let block = with_heap(|heap| match Class::for_aligned(size, align) {
        Some(class) => allocate_of(heap, class, size, align),
        None => large::allocate(heap.node.get() as usize, size, align).0,
    });
    to_pointer(block.unwrap_or(0))
}

// ---- freeing ---------------------------------------------------------------------------------

/// Frees a block; null is ignored.
///
/// # Safety
/// The block is null, or came from a function of this module or a heap of this crate, in this
/// process or in the one that it was forked from, and was not freed since. No thread uses it any
/// more: all accesses happen before this call, for example by a message or a join.
#[inline]
pub unsafe fn free(block: *mut u8) {
    let heap = thread::heap();
    let address = block.expose_provenance();
    if heap.is_null() {
        return free_first(address);
    }
    // SAFETY: as in `with_heap`; an ended thread's stand-in has no blocks, and takes none.
    let heap = unsafe { &*heap };
    let Some(offset) = heap.own_place(address) else {
        return free_elsewhere(heap, address);
    };
    let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
    if !heap.caches.of_thread(kind).push(address) {
        free_uncached(heap, offset, kind);
    }
}

/// Frees a block of this heap that did not fit its cache, or whose KiB is mixed.
#[inline(never)]
fn free_uncached(heap: &'static Heap, offset: usize, kind: Kind) {
    match kind.class() {
        Some(class) => free_beyond_cache(heap, class, offset),
        None => free_mixed(heap, offset, kind.level()),
    }
}

/// Frees a block whose cache is full.
#[inline(always)]
fn free_beyond_cache(heap: &'static Heap, class: Class, offset: usize) {
    let address = heap.data.get() + offset;
    // The top block was freed just now.
    if heap.caches.of_thread(Kind::pure(class)).is_top(address)
        || harden::is_checking()
        || !heap.handshake.begin()
    {
        return free_slow(heap, address);
    }
    in_turn(heap, |heap| free_full(heap, class, address));
}

/// Frees a block in a mixed KiB: the region's words give its class.
#[inline(never)]
fn free_mixed(heap: &'static Heap, offset: usize, level: usize) {
    // Makes all that depends on the level constant.
    match level {
        0 => free_mixed_on(heap, offset, 0),
        1 => free_mixed_on(heap, offset, 1),
        level => free_mixed_on(heap, offset, level),
    }
}

/// Pushing to the cache needs no turn: it changes nothing else.
#[inline(always)]
fn free_mixed_on(heap: &'static Heap, offset: usize, level: usize) {
    let address = heap.data.get() + offset;
    match heap.class_of_mixed(level, offset) {
        Some(class) if heap.caches.of_thread(Kind::pure(class)).push(address) => {}
        Some(class) => free_beyond_cache(heap, class, offset),
        None => free_slow(heap, address),
    }
}

/// Frees a block that is not this heap's: in the region whose marks are kept back, or elsewhere.
#[inline(never)]
fn free_elsewhere(heap: &'static Heap, address: usize) {
    let offset = address.wrapping_sub(heap.data.get());
    if !heap.is_in_batch(offset) {
        return free_foreign(heap, address);
    }
    let level = heap.batch_level.get() as usize;
    let shift = granule_shift(level);
    let inside = offset - heap.batch_start.get();
    if inside & ((1 << shift) - 1) != 0 || !heap.handshake.hold() {
        return free_slow(heap, address);
    }
    let is_new = heap.batch.add(1 << (inside >> shift));
    heap.handshake.end();
    if !is_new {
        free_slow(heap, address);
    }
}

/// Frees a block outside of that region.
#[inline(never)]
fn free_foreign(heap: &'static Heap, address: usize) {
    match heap.place_of(address) {
        Some((offset, tag))
            if ChunkTag(tag).kind() == ChunkTag::OWNED
                && nodes::count() == 1
                && !harden::is_checking()
                && !ptr::eq(heap, thread::ENDED)
                && heap.handshake.begin() =>
        {
            in_turn(heap, |heap| {
                free_remote(heap, ChunkTag(tag).number(), offset);
            });
        }
        _ => free_slow(heap, address),
    }
}

/// Frees as a thread's first operation. Without memory for a heap the block stays.
#[cold]
#[inline(never)]
fn free_first(address: usize) {
    if address != 0 {
        with_heap(|heap| free_any(heap, address));
    }
}

#[inline(never)]
fn free_slow(heap: &'static Heap, address: usize) {
    if ptr::eq(heap, thread::ENDED) || !heap.handshake.begin() {
        if address != 0 {
            with_parked(|heap| free_any(heap, address));
        }
        return;
    }
    in_turn(heap, |heap| free_any(heap, address));
}

#[inline(always)]
fn free_any(heap: &Heap, address: usize) {
    let offset = address.wrapping_sub(SPACE.data());
    if offset >= SPACE.bytes() {
        if address != 0 && !large::unmap(address) {
            report(address, Fault::Foreign, 0);
        }
        return;
    }
    let chunk = offset >> CHUNK_SHIFT;
    let tag = ChunkTag(SPACE.tag(chunk).load(Ordering::Relaxed));
    if harden::is_checking() {
        check_any(tag, offset);
    }
    match tag.kind() {
        ChunkTag::OWNED => {
            if tag.number() == heap.number.get() {
                return free_own(heap, offset);
            }
            // Perhaps it is this thread's heap for another node.
            if nodes::count() > 1 {
                let owner = entry(tag.number());
                let family = heap.entry().family.load(Ordering::Relaxed);
                if owner.family.load(Ordering::Relaxed) == family {
                    // SAFETY: this thread owns all heaps of its family.
                    let other = unsafe { &*owner.heap() };
                    if other.handshake.begin() {
                        return in_turn(other, |other| free_own(other, offset));
                    }
                }
            }
            free_remote(heap, tag.number(), offset);
        }
        ChunkTag::SHARED => {
            let owner = SPACE.owner(offset).load(Ordering::Relaxed);
            if owner == 0 {
                return report(address, Fault::NotABlock, 0);
            }
            free_remote(heap, owner, offset);
        }
        ChunkTag::LARGE => {
            if offset & (CHUNK_BYTES - 1) != 0 || !large::free(chunk) {
                report(address, Fault::NotABlock, 0);
            }
        }
        ChunkTag::GUARDED => {
            if !guarded::free(chunk, offset & (CHUNK_BYTES - 1)) {
                report(address, Fault::NotABlock, 0);
            }
        }
        // An unused chunk: a large block freed already, or an address of ours that never was a
        // block. Or a mapping: where arenas get their addresses as they are opened, the system may
        // place one among them.
        _ => {
            if !large::unmap(address) {
                report(address, Fault::NotABlock, 0);
            }
        }
    }
}

/// Checks a free before anything is done with the block.
#[cold]
fn check_any(tag: ChunkTag, offset: usize) {
    let owner = match tag.kind() {
        ChunkTag::OWNED => tag.number(),
        ChunkTag::SHARED => SPACE.owner(offset).load(Ordering::Relaxed),
        _ => return,
    };
    check_freed(offset, owner);
}

/// Frees a block of this heap in a mixed KiB, or whose cache is full.
#[inline]
fn free_own(heap: &Heap, offset: usize) {
    let address = SPACE.data() + offset;
    let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
    let class = match kind.class() {
        Some(class) => class,
        None => {
            let Some(class) = heap.class_in_mixture(kind.level(), offset) else {
                return report(address, Fault::NotABlock, heap.number.get());
            };
            if heap.caches.of(Kind::pure(class)).push(address) {
                return;
            }
            class
        }
    };
    free_full(heap, class, address);
}

/// Frees a block of this heap whose cache is full. A turn has begun.
pub(crate) fn free_full(heap: &Heap, class: Class, address: usize) {
    if heap.is_top(class, address) {
        return report(address, Fault::NotABlock, heap.number.get());
    }
    if let Err((address, fault)) = heap.take_back_full(class, address) {
        report(address, fault, heap.number.get());
    }
    // The helper does not tend components' heaps.
    if heap.has_idle_pages() && !heap.is_private.get() {
        IDLE.call();
    }
}

/// Sends the frees of other heaps' blocks that this thread still keeps back. For a thread that is
/// going to wait.
pub fn flush() {
    let heap = thread::heap();
    if !heap.is_null() && heap != thread::ENDED {
        // SAFETY: as in `free`.
        let heap = unsafe { &*heap };
        // A signal handler leaves an interrupted turn alone.
        if !heap.handshake.has_begun() {
            heap.flush_marks();
        }
    }
}

// ---- blocks as they are ----------------------------------------------------------------------

/// The usable bytes of a block; 0 for null.
///
/// # Safety
/// The block is null, or a block as for [`free`] that no thread frees or resizes during this call.
/// Threads may use its contents.
pub unsafe fn usable_size(block: *const u8) -> usize {
    let address = block.expose_provenance();
    let offset = address.wrapping_sub(SPACE.data());
    if address == 0 {
        return 0;
    }
    if offset >= SPACE.bytes() {
        return large::mapped_size(address).unwrap_or(0);
    }
    let chunk = offset >> CHUNK_SHIFT;
    let tag = ChunkTag(SPACE.tag(chunk).load(Ordering::Relaxed));
    match tag.kind() {
        ChunkTag::OWNED | ChunkTag::SHARED => match SPACE.class_at(offset) {
            Some(class) => class.bytes(),
            None => {
                report(address, Fault::NotABlock, tag.number());
                0
            }
        },
        ChunkTag::LARGE => (tag.number() as usize) << CHUNK_SHIFT,
        ChunkTag::GUARDED => {
            let size = guarded::usable_size(chunk, offset & (CHUNK_BYTES - 1));
            if size == 0 {
                report(address, Fault::NotABlock, 0);
            }
            size
        }
        // An unused chunk: see `free_any`.
        _ => large::mapped_size(address).unwrap_or_else(|| {
            report(address, Fault::NotABlock, 0);
            0
        }),
    }
}

/// Resizes a block, perhaps moving it; contents stay as far as they fit. Null if there is no
/// memory; the block is then as it was.
///
/// # Safety
/// As for [`free`], except that a block may be used again if the result is null. Otherwise only
/// the result is used from then on, even where its address is the same.
pub unsafe fn reallocate(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        return allocate(size);
    }
    // SAFETY: as the caller promises.
    let has = unsafe { usable_size(block) };
    // It stays where it is unless more than half of it would be unused.
    if size <= has && (size >= has / 2 || has <= 64) {
        return block;
    }
    let offset = block.expose_provenance().wrapping_sub(SPACE.data());
    if size > MEDIUM_MAX && offset < SPACE.bytes() && large::resize(offset >> CHUNK_SHIFT, size) {
        return block;
    }
    if size > MEDIUM_MAX && offset >= SPACE.bytes() {
        let moved = large::remap(block.expose_provenance(), size);
        if moved != 0 {
            return ptr::with_exposed_provenance_mut(moved);
        }
    }
    let other = allocate(size);
    if !other.is_null() {
        // SAFETY: both are alive and as long as the shorter.
        unsafe {
            ptr::copy_nonoverlapping(block, other, has.min(size));
            free(block);
        }
    }
    other
}

// ---- the first steps -------------------------------------------------------------------------

/// Makes in advance what the first allocation of the process and of this thread would make. In
/// real-time mode it also prepares a block of each size, and touches all memory on the way to it.
pub fn begin() {
    with_heap(|_| {});
    if real_time::is_on() {
        touch_all_paths();
    }
}

/// Larger sizes are touched once per level.
const TOUCHED_EACH_MAX: usize = 16 << 10;

fn touch_all_paths() {
    let mut blocks = [ptr::null_mut(); CLASSES + 1];
    blocks[CLASSES] = allocate(MEDIUM_MAX + 1);
    let is_touched = |class: &Class| {
        class.bytes() <= TOUCHED_EACH_MAX || class.granules() as usize == GRANULES_MAX
    };
    let classes = (0..CLASSES).map(Class::from_number).filter(is_touched);
    for (block, class) in blocks.iter_mut().zip(classes) {
        *block = allocate(class.bytes());
    }
    for block in blocks {
        // SAFETY: allocated above, or null, and not used.
        unsafe { free(block) };
    }
}

/// Reports a free that is not of a live block, or of a block freed already and on its way home;
/// wipes the block.
pub(crate) fn check_freed(offset: usize, owner: u32) {
    let address = SPACE.data() + offset;
    let Some(class) = SPACE.class_at(offset) else {
        return report(address, Fault::NotABlock, owner);
    };
    let region = SPACE.region_of(offset);
    let bit = 1 << ((offset - region.offset()) >> granule_shift(region.level()));
    // Relaxed: two threads that free a block at the same moment may escape detection.
    if SPACE.remote(region).marks.load(Ordering::Relaxed) & bit != 0 {
        return report(address, Fault::NotABlock, owner);
    }
    harden::wipe(address, class.bytes());
}
