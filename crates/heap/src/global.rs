//! Blocks of a process: given out by the heap of the thread that asks, and taken back from any.

use core::ptr;
use core::sync::atomic::Ordering;

use crate::faults::report;
use crate::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, Class, GRANULE_MIN, MEDIUM_MAX, RegionId, SMALL_MAX, granule_shift,
    region_shift,
};
use crate::guarded::{self, Sort};
use crate::harden;
use crate::heap::{Fault, Heap};
use crate::helper::HELPER;
use crate::large;
use crate::nodes;
use crate::private;
use crate::process::{ASKS, SPACE, entry, home};
use crate::real_time;
use crate::region::Kind;
use crate::remote::{self, Marked};
use crate::space::ChunkTag;
use crate::thread;
use crate::threads::{in_turn, with_heap, with_parked};

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

/// What is not in front.
#[inline(never)]
fn allocate_second(heap: &'static Heap, class: Class, size: usize) -> *mut u8 {
    let is_simple = heap.batch.region().is_none()
        && !ASKS.load(Ordering::Relaxed)
        && !harden::looks()
        && !ptr::eq(heap, thread::ENDED);
    if !is_simple || !heap.turn.begin() {
        return allocate_slow(size);
    }
    let block = in_turn(heap, |heap| match heap.take_loose(class) {
        0 => heap.carve(home(), class),
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
        large::allocate(home(), heap.node.get() as usize, size, GRANULE_MIN).0
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
        block = heap.carve(home(), class);
    }
    block
}

#[cold]
fn allocate_hardened(heap: &Heap, class: Class, size: usize, align: usize) -> usize {
    if harden::is_sampled() {
        let node = heap.node.get() as usize;
        if let Some((block, _)) = guarded::allocate(home(), node, size, align, Sort::Sampled) {
            return block;
        }
    }
    heap.flush_marks();
    let block = heap.carve(home(), class);
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
            with_heap(|heap| large::allocate(home(), heap.node.get() as usize, size, GRANULE_MIN));
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
        None => large::allocate(home(), heap.node.get() as usize, size, align).0,
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
    if !heap.fronts.of_thread(kind).push(address) {
        free_near(heap, offset, kind);
    }
}

/// A block of this heap's own whose front is full, or not known.
#[inline(never)]
fn free_near(heap: &'static Heap, offset: usize, kind: Kind) {
    match kind.class() {
        // A KiB is one region there: with blocks of one class only.
        Some(class) if class.level() == 0 => free_loose(heap, class, offset, |heap| {
            heap.try_loosen_on::<0>(class, offset, true)
        }),
        Some(class) => free_above(heap, class, offset),
        None => free_mixed(heap, offset, kind.level()),
    }
}

/// One of a higher level.
#[inline(never)]
fn free_above(heap: &'static Heap, class: Class, offset: usize) {
    free_loose(heap, class, offset, |heap| heap.try_loosen(class, offset));
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

/// For the front it needs no turn: nothing else is changed.
#[inline(always)]
fn free_mixed_on(heap: &'static Heap, offset: usize, level: usize) {
    let address = heap.data.get() + offset;
    match heap.class_of_mixed(level, offset) {
        Some(class) if heap.fronts.of_thread(Kind::pure(class)).push(address) => {}
        Some(class) => free_mixed_full(heap, class, offset),
        None => free_slow(heap, address),
    }
}

#[inline(never)]
fn free_mixed_full(heap: &'static Heap, class: Class, offset: usize) {
    free_loose(heap, class, offset, |heap| heap.try_loosen(class, offset));
}

/// A block whose front is full is one more loose block of its region, if that has some.
#[inline(always)]
fn free_loose(
    heap: &'static Heap,
    class: Class,
    offset: usize,
    try_loosen: impl FnOnce(&Heap) -> bool,
) {
    let address = heap.data.get() + offset;
    // What is on top was freed just now.
    if heap.fronts.of_thread(Kind::pure(class)).is_top(address) || !heap.turn.begin() {
        return free_slow(heap, address);
    }
    if try_loosen(heap) {
        heap.turn.end();
    } else {
        free_unlisted(heap, class, address);
    }
}

/// The first loose block of its region, or one for which the front grows. The turn has begun.
#[inline(never)]
fn free_unlisted(heap: &'static Heap, class: Class, address: usize) {
    if harden::looks() {
        heap.turn.end();
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
    if inside & ((1 << shift) - 1) != 0 || !heap.turn.hold() {
        return free_slow(heap, address);
    }
    let is_new = heap.batch.add(1 << (inside >> shift));
    heap.turn.end();
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
                && heap.turn.begin() =>
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
    if ptr::eq(heap, thread::ENDED) || !heap.turn.begin() {
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
                    if other.turn.begin() {
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
            if offset & (CHUNK_BYTES - 1) != 0 || !large::free(home(), chunk) {
                report(address, Fault::NotABlock, 0);
            }
        }
        ChunkTag::GUARDED => {
            if !guarded::free(home(), chunk, offset & (CHUNK_BYTES - 1)) {
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
    harden::taken_back(offset, owner);
}

/// Takes an own block back whose kind is a mixture, or the front of which is full.
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
            if heap.fronts.of(Kind::pure(class)).push(address) {
                return;
            }
            class
        }
    };
    free_full(heap, class, address);
}

/// Takes an own block back whose front is full.
pub(crate) fn free_full(heap: &Heap, class: Class, address: usize) {
    if heap.is_top(class, address) {
        return report(address, Fault::NotABlock, heap.number.get());
    }
    if let Err((address, fault)) = heap.relieve(home(), class, address) {
        report(address, fault, heap.number.get());
    }
    // Of a component's heap it does not look after them.
    if heap.has_idle_pages() && !heap.is_private.get() {
        HELPER.call();
    }
}

/// Marks a block of another's. Marks of one region are sent together.
fn free_remote(heap: &Heap, owner: u32, offset: usize) {
    let region = SPACE.region_of(offset);
    let shift = granule_shift(region.level());
    let inside = offset - region.offset();
    if inside & ((1 << shift) - 1) != 0 {
        return report(SPACE.data() + offset, Fault::NotABlock, owner);
    }
    let bit = 1 << (inside >> shift);
    if heap.batch.region() == region {
        if !heap.batch.add(bit) {
            report(SPACE.data() + offset, Fault::NotABlock, owner);
        }
        return;
    }
    heap.flush_marks();
    // One that follows another of its region has more behind it, as like as not. What is large is not kept
    // back from its owner, nor what others look for.
    let is_next = heap.marked.replace(region.0) == region.0;
    if is_next && region.level() <= KEPT_BACK_LEVEL_MAX && !harden::looks() {
        heap.begin_batch(owner, region, bit);
    } else {
        send_marks(owner, region, bit);
    }
}

/// Marks of blocks up to this level are kept back until they are followed by one of another region:
/// 16 KiB a thread at most.
const KEPT_BACK_LEVEL_MAX: usize = 2;

/// After so many regions with marks the helper is called.
const SENT_WORTHWHILE: u32 = 1024;

/// Tells others which of their blocks this thread has freed: the last few are kept back until then. For a
/// thread that is going to wait.
pub fn flush() {
    let heap = thread::heap();
    if !heap.is_null() && heap != thread::ENDED {
        // SAFETY: as in `free`.
        let heap = unsafe { &*heap };
        // The handler of a signal leaves what it has interrupted alone.
        if !heap.turn.has_begun() {
            heap.flush_marks();
        }
    }
}

impl Heap {
    /// Keeps the mark of a block of another's region back.
    fn begin_batch(&self, owner: u32, region: RegionId, block: u64) {
        let level = region.level();
        self.batch.begin(owner, region, block);
        self.batch_level.set(level as u32);
        self.batch_start.set(region.offset_on(level));
        self.batch_bytes.set(1 << region_shift(level));
    }

    /// Is a block, if there is one, in the region whose marks are kept back?
    #[inline]
    fn is_in_batch(&self, offset: usize) -> bool {
        offset.wrapping_sub(self.batch_start.get()) < self.batch_bytes.get() && {
            // Part of it may be a region of a lower level.
            let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
            kind.level() == self.batch_level.get() as usize
        }
    }

    /// Sends the marks that are kept back. Busy meanwhile: the handler of a signal would find them half sent.
    pub(crate) fn flush_marks(&self) {
        if self.batch.region().is_none() {
            return;
        }
        let held = self.turn.hold();
        self.batch_bytes.set(0);
        let owner = self.batch.of();
        let told = self.batch.send(tell_marks);
        if held {
            self.turn.end();
        }
        if told.is_awaited {
            entry(owner).awaited.told();
        }
        if told.is_awaited || told.result {
            attend(owner);
        }
        // Their owner may be too quiet to take them back.
        let sent = self.sent.get().wrapping_add(1);
        self.sent.set(sent);
        if sent.is_multiple_of(SENT_WORTHWHILE) {
            HELPER.call();
        }
    }
}

/// Marks blocks of another's region. It has these blocks still, so it is that heap's.
pub(crate) fn send_marks(owner: u32, region: RegionId, marks: u64) {
    if tell_marks(owner, region, marks) {
        attend(owner);
    }
}

/// Marks blocks of another's region. True if the region was pushed into the queue: then its heap is to be
/// attended to, as it may be an orphan.
fn tell_marks(owner: u32, region: RegionId, marks: u64) -> bool {
    match remote::mark(&SPACE.remote(region).marks, marks) {
        Marked::Queued => return false,
        Marked::First => entry(owner).queue.push(&SPACE, region),
        Marked::Twice => report(SPACE.data() + region.offset(), Fault::NotABlock, owner),
    }
    true
}

/// Something was told to a heap: if it is an orphan, it is looked after.
fn attend(number: u32) {
    let entry = entry(number);
    let look = || entry.has_something(&SPACE);
    entry.custody.pushed(look, || private::look_after(number));
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
            let size = guarded::usable_size(home(), chunk, offset & (CHUNK_BYTES - 1));
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
    if size > MEDIUM_MAX
        && offset < SPACE.bytes()
        && large::resize(home(), offset >> CHUNK_SHIFT, size)
    {
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
