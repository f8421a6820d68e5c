//! Blocks of a process: given out by the heap of the thread that asks, and taken back from any.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::ground::faults::{Fault, report};
use crate::ground::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, CLASSES, Class, GRANULE_MIN, GRANULES_MAX, MEDIUM_MAX, SMALL_MAX,
    granule_shift,
};
use crate::ground::harden;
use crate::ground::real_time;
use crate::heap::marks::free_remote;
use crate::heap::state::Heap;
use crate::heap::table::entry;
use crate::heap::thread;
use crate::heap::threads::{ASKS, with_parked};
use crate::heap::upkeep::in_turn;
use crate::process::start::with_heap;
use crate::store::guarded::{self, Sort};
use crate::store::idle::IDLE;
use crate::store::large;
use crate::store::nodes;
use crate::store::region::Kind;
use crate::store::space::{ChunkTag, SPACE};

// ---- allocating ------------------------------------------------------------------------------------

/// A block of at least so many bytes, aligned to 16; null if there is no memory.
#[inline]
pub fn allocate(size: usize) -> *mut u8 {
    let heap = thread::only_heap();
    if heap.is_null() {
        return allocate_watching(size);
    }
    // SAFETY: as in `with_heap`; that of a thread that has ended has nothing, and takes nothing.
    allocate_in(unsafe { &*heap }, size)
}

#[inline(always)]
fn allocate_in(heap: &'static Heap, size: usize) -> *mut u8 {
    // Nothing at all is asked for so seldom that it may take the long way.
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
        return allocate_second(heap, class, size);
    }
    ptr::with_exposed_provenance_mut(block)
}

/// Where there are several nodes a thread notices that it has moved, perhaps to another.
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

/// What is not in cache.
#[inline(never)]
fn allocate_second(heap: &'static Heap, class: Class, size: usize) -> *mut u8 {
    let is_simple = heap.batch.region().is_none()
        && !ASKS.load(Ordering::Relaxed)
        && !harden::looks()
        && !ptr::eq(heap, thread::ENDED);
    if !is_simple || !heap.handshake.begin() {
        return allocate_slow(size);
    }
    let block = in_turn(heap, |heap| match heap.take_deferred(class) {
        0 => heap.carve(class),
        block => block,
    });
    told(block)
}

#[inline(never)]
fn allocate_slow(size: usize) -> *mut u8 {
    let block = with_heap(|heap| {
        if size <= MEDIUM_MAX {
            return allocate_of(heap, Class::for_size(size), size, GRANULE_MIN);
        }
        large::allocate(heap.node.get() as usize, size, GRANULE_MIN).0
    });
    told(block.unwrap_or(0))
}

fn allocate_of(heap: &Heap, class: Class, size: usize, align: usize) -> usize {
    let mut block = heap.try_allocate(class);
    if block == 0 {
        if harden::looks() {
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
        harden::given(block, class.bytes(), heap.number.get());
    }
    block
}

/// A block as a pointer; if there is none, that is told in `errno`, too.
fn told(block: usize) -> *mut u8 {
    if block == 0 {
        return refuse();
    }
    ptr::with_exposed_provenance_mut(block)
}

#[cold]
fn refuse() -> *mut u8 {
    real_time::refused();
    // SAFETY: the place of this thread's error number.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// A zeroed block.
pub fn allocate_zeroed(size: usize) -> *mut u8 {
    if size > MEDIUM_MAX {
        let allocated =
            with_heap(|heap| large::allocate(heap.node.get() as usize, size, GRANULE_MIN));
        let (block, is_zero) = allocated.unwrap_or((0, true));
        let block = told(block);
        if !block.is_null() && !is_zero {
            // SAFETY: the block is as large as was asked.
            unsafe { block.write_bytes(0, size) };
        }
        return block;
    }
    let block = allocate(size);
    if !block.is_null() {
        // SAFETY: the block is as large as was asked.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// A block whose address is a multiple of `align`, a power of two.
pub fn allocate_aligned(size: usize, align: usize) -> *mut u8 {
    if align <= GRANULE_MIN {
        return allocate(size);
    }
    let block = with_heap(|heap| match Class::for_aligned(size, align) {
        Some(class) => allocate_of(heap, class, size, align),
        None => large::allocate(heap.node.get() as usize, size, align).0,
    });
    told(block.unwrap_or(0))
}

// ---- freeing ---------------------------------------------------------------------------------------

/// Gives a block back; null is nothing.
///
/// # Safety
/// The block came from one of the functions of this module and is not used any more.
#[inline]
pub unsafe fn free(block: *mut u8) {
    let heap = thread::heap();
    let address = block.expose_provenance();
    if heap.is_null() {
        return free_first(address);
    }
    // SAFETY: as in `with_heap`; that of a thread that has ended has nothing, and takes nothing.
    let heap = unsafe { &*heap };
    let Some(offset) = heap.own_place(address) else {
        return free_others(heap, address);
    };
    let kind = Kind(heap.kind(offset).load(Ordering::Relaxed));
    if !heap.caches.of_thread(kind).push(address) {
        free_near(heap, offset, kind);
    }
}

/// A block of this heap's own whose cache is full, or not known.
#[inline(never)]
fn free_near(heap: &'static Heap, offset: usize, kind: Kind) {
    match kind.class() {
        // A KiB is one region there: with blocks of one class only.
        Some(class) if class.level() == 0 => free_deferred(heap, class, offset, |heap| {
            heap.try_defer_on::<0>(class, offset, true)
        }),
        Some(class) => free_above(heap, class, offset),
        None => free_mixed(heap, offset, kind.level()),
    }
}

/// One of a higher level.
#[inline(never)]
fn free_above(heap: &'static Heap, class: Class, offset: usize) {
    free_deferred(heap, class, offset, |heap| heap.try_defer(class, offset));
}

/// Where blocks of several classes begin in one KiB, a look at the region's words tells which it is.
#[inline(never)]
fn free_mixed(heap: &'static Heap, offset: usize, level: usize) {
    // What depends on the level is constants then.
    match level {
        0 => free_mixed_on(heap, offset, 0),
        1 => free_mixed_on(heap, offset, 1),
        level => free_mixed_on(heap, offset, level),
    }
}

/// For the cache it needs no turn: nothing else is changed.
#[inline(always)]
fn free_mixed_on(heap: &'static Heap, offset: usize, level: usize) {
    let address = heap.data.get() + offset;
    match heap.class_of_mixed(level, offset) {
        Some(class) if heap.caches.of_thread(Kind::pure(class)).push(address) => {}
        Some(class) => free_mixed_full(heap, class, offset),
        None => free_slow(heap, address),
    }
}

#[inline(never)]
fn free_mixed_full(heap: &'static Heap, class: Class, offset: usize) {
    free_deferred(heap, class, offset, |heap| heap.try_defer(class, offset));
}

/// A block whose cache is full is one more deferred block of its region, if that has some.
#[inline(always)]
fn free_deferred(
    heap: &'static Heap,
    class: Class,
    offset: usize,
    try_defer: impl FnOnce(&Heap) -> bool,
) {
    let address = heap.data.get() + offset;
    // What is on top was freed just now.
    if heap.caches.of_thread(Kind::pure(class)).is_top(address) || !heap.handshake.begin() {
        return free_slow(heap, address);
    }
    if try_defer(heap) {
        heap.handshake.end();
    } else {
        free_unlisted(heap, class, address);
    }
}

/// The first deferred block of its region, or one for which the cache grows. The turn has begun.
#[inline(never)]
fn free_unlisted(heap: &'static Heap, class: Class, address: usize) {
    if harden::looks() {
        heap.handshake.end();
        return free_slow(heap, address);
    }
    in_turn(heap, |heap| free_full(heap, class, address));
}

/// Not this heap's: another's in the region whose marks are kept back, or whatever it is.
#[inline(never)]
fn free_others(heap: &'static Heap, address: usize) {
    let offset = address.wrapping_sub(heap.data.get());
    if !heap.is_in_batch(offset) {
        return free_farther(heap, address);
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

/// In another's chunk, or whatever it is.
#[inline(never)]
fn free_farther(heap: &'static Heap, address: usize) {
    match heap.place_of(address) {
        Some((offset, tag))
            if ChunkTag(tag).kind() == ChunkTag::OWNED
                && nodes::count() == 1
                && !harden::looks()
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

/// The first thing that a thread does is to free. Without memory for a heap the block stays.
#[cold]
#[inline(never)]
fn free_first(address: usize) {
    if address != 0 {
        with_heap(|heap| give_back(heap, address));
    }
}

#[inline(never)]
fn free_slow(heap: &'static Heap, address: usize) {
    if ptr::eq(heap, thread::ENDED) || !heap.handshake.begin() {
        if address != 0 {
            with_parked(|heap| give_back(heap, address));
        }
        return;
    }
    in_turn(heap, |heap| give_back(heap, address));
}

#[inline(always)]
fn give_back(heap: &Heap, address: usize) {
    let offset = address.wrapping_sub(SPACE.data());
    if offset >= SPACE.bytes() {
        if address != 0 && !large::unmap(address) {
            report(address, Fault::Foreign, 0);
        }
        return;
    }
    let chunk = offset >> CHUNK_SHIFT;
    let tag = ChunkTag(SPACE.tag(chunk).load(Ordering::Relaxed));
    if harden::looks() {
        look(tag, offset);
    }
    match tag.kind() {
        ChunkTag::OWNED => {
            if tag.number() == heap.number.get() {
                return free_own(heap, offset);
            }
            // Perhaps it is this thread's for another node.
            if nodes::count() > 1 {
                let owner = entry(tag.number());
                let family = heap.entry().family.load(Ordering::Relaxed);
                if owner.family.load(Ordering::Relaxed) == family {
                    // SAFETY: the heap is this thread's, and so are all of its family.
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
        // Nobody's chunk: a large block that was freed already, or an address of ours that never was one. Or a
        // mapping, where arenas get their addresses as they are opened: the system may place it among them.
        _ => {
            if !large::unmap(address) {
                report(address, Fault::NotABlock, 0);
            }
        }
    }
}

/// Looks at a block before anything is done with it, whoever has it.
#[cold]
fn look(tag: ChunkTag, offset: usize) {
    let owner = match tag.kind() {
        ChunkTag::OWNED => tag.number(),
        ChunkTag::SHARED => SPACE.owner(offset).load(Ordering::Relaxed),
        _ => return,
    };
    check_freed(offset, owner);
}

/// Takes an own block back whose kind is a mixture, or the cache of which is full.
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

/// Takes an own block back whose cache is full.
pub(crate) fn free_full(heap: &Heap, class: Class, address: usize) {
    if heap.is_top(class, address) {
        return report(address, Fault::NotABlock, heap.number.get());
    }
    if let Err((address, fault)) = heap.relieve(class, address) {
        report(address, fault, heap.number.get());
    }
    // Of a component's heap it does not look after them.
    if heap.has_idle_pages() && !heap.is_private.get() {
        IDLE.call();
    }
}

/// Tells others which of their blocks this thread has freed: the last few are kept back until then. For a
/// thread that is going to wait.
pub fn flush() {
    let heap = thread::heap();
    if !heap.is_null() && heap != thread::ENDED {
        // SAFETY: as in `free`.
        let heap = unsafe { &*heap };
        // The handler of a signal leaves what it has interrupted alone.
        if !heap.handshake.has_begun() {
            heap.flush_marks();
        }
    }
}

// ---- blocks as they are ------------------------------------------------------------------------------

/// The bytes that a block really has; 0 for null.
///
/// # Safety
/// As for [`free`], but it may be used on.
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
        // Nobody's chunk: see `give_back`.
        _ => large::mapped_size(address).unwrap_or_else(|| {
            report(address, Fault::NotABlock, 0);
            0
        }),
    }
}

/// The block with another size, and what was in it as far as it fits; perhaps elsewhere. Null if there
/// is no memory; the block is as it was then.
///
/// # Safety
/// As for [`free`].
pub unsafe fn reallocate(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        return allocate(size);
    }
    // SAFETY: as the caller promises.
    let has = unsafe { usable_size(block) };
    // It stays where it is unless more than half of it would be idle.
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

// ---- the first steps ---------------------------------------------------------------------------------

/// Makes what the first allocation of the process and of this thread would make. In real-time mode there is a
/// block of each size at hand then, and all that leads to it has been touched.
pub fn begin() {
    with_heap(|_| {});
    if real_time::is_on() {
        touch_all_paths();
    }
}

/// Sizes above this one are touched once a level.
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

/// A block of a heap is freed, by whomever. Says so if there is none, or if it is freed already and on its
/// way home.
pub(crate) fn check_freed(offset: usize, owner: u32) {
    let address = SPACE.data() + offset;
    let Some(class) = SPACE.class_at(offset) else {
        return report(address, Fault::NotABlock, owner);
    };
    let region = SPACE.region_of(offset);
    let bit = 1 << ((offset - region.offset()) >> granule_shift(region.level()));
    // Acquires nothing: who frees a block twice in two threads at once may be told, or not.
    if SPACE.remote(region).marks.load(Ordering::Relaxed) & bit != 0 {
        return report(address, Fault::NotABlock, owner);
    }
    harden::wipe(address, class.bytes());
}
