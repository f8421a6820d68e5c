//! The heaps of a process: one a thread, handed on when it ends; and what is too large for a heap.

use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};

use crate::geometry::{
    CHUNK_BYTES, CHUNK_SHIFT, Class, GRANULE_MIN, MEDIUM_MAX, RegionId, SMALL_MAX, granule_shift,
};
use crate::heap::{Fault, Heap, Home};
use crate::helper::HELPER;
use crate::large;
use crate::nodes;
use crate::os;
use crate::pool::{NODES_MAX, Pools};
use crate::real_time;
use crate::remote::{self, Marked};
use crate::space::{ChunkTag, Kind, Space};
use crate::thread;

static SPACE: Space = Space::new();
static POOLS: Pools = Pools::new();

/// The addresses of all heaps by their numbers; number 0 is nobody's.
static HEAPS: AtomicUsize = AtomicUsize::new(0);
/// As many heaps as there can be at once; and where the addresses are limited.
const HEAPS_MAX: usize = 1 << 20;
const HEAPS_MAX_LIMITED: usize = 1 << 14;
static HEAPS_NOW: AtomicUsize = AtomicUsize::new(0);
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);
/// Heaps of threads that have ended, by node: the number of one, and a count of changes above it.
static PARKED: [AtomicU64; NODES_MAX] = [const { AtomicU64::new(0) }; NODES_MAX];
/// So often a parked heap is tried for before a new one is made.
const PARKED_TRIES: usize = 8;

// How far the process is.
const UNMADE: u8 = 0;
const BEING_MADE: u8 = 1;
const MADE: u8 = 2;
const IMPOSSIBLE: u8 = 3;
static STATE: AtomicU8 = AtomicU8::new(UNMADE);

pub(crate) fn home() -> Home<'static> {
    Home {
        space: &SPACE,
        pools: &POOLS,
    }
}

/// Makes the space, once. False if there are no addresses for it.
fn is_made() -> bool {
    loop {
        match STATE.compare_exchange(UNMADE, BEING_MADE, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                let heaps_now = match os::addresses_max() {
                    Some(_) => HEAPS_MAX_LIMITED,
                    None => HEAPS_MAX,
                };
                HEAPS_NOW.store(heaps_now, Ordering::Relaxed);
                let heaps = os::map_memory(heaps_now * size_of::<usize>());
                nodes::read();
                let made = heaps != 0 && SPACE.make(nodes::count());
                let watch = made && SPACE.nodes() > 1;
                if watch {
                    SPACE.bind((0..nodes::count()).map(nodes::number));
                } else {
                    nodes::forget();
                }
                ASKS.store(!thread::begin_cpu(watch), Ordering::Relaxed);
                HEAPS.store(heaps, Ordering::Relaxed);
                if made {
                    real_time::begin(&SPACE, &POOLS);
                }
                thread::make_key();
                STATE.store(if made { MADE } else { IMPOSSIBLE }, Ordering::Release);
            }
            // Another thread is at it, which takes a few system calls.
            Err(BEING_MADE) => os::pause(),
            Err(state) => return state == MADE,
        }
    }
}

fn heap_slot(number: u32) -> &'static AtomicUsize {
    let address = HEAPS.load(Ordering::Relaxed) + number as usize * size_of::<usize>();
    // SAFETY: the table has a word for every number that was given out, and lives forever.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// The heap of a number that a tag told.
pub(crate) fn heap_of(number: u32) -> &'static Heap {
    let address = heap_slot(number).load(Ordering::Acquire);
    // SAFETY: a chunk with this number in its tag belongs to a heap, whose memory stays.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

// ---- heaps of threads ----------------------------------------------------------------------------

/// There are several nodes, and threads do not see that they move: they ask at every slow step.
static ASKS: AtomicBool = AtomicBool::new(false);
/// Numbers of threads that have heaps.
static NEXT_FAMILY: AtomicU32 = AtomicU32::new(1);

/// Does something with the heap of this thread for the node that it runs on, made if there is none. None if
/// there is no memory.
fn with_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    let heap = thread::heap();
    if heap.is_null() {
        return begin_thread().map(|heap| busily(heap, operation));
    }
    if heap == thread::ENDED {
        return with_parked(operation);
    }
    // SAFETY: what is in the thread's pointer is its heap, whose memory stays.
    let mut heap = unsafe { &*heap };
    let is_elsewhere = thread::cpu() != heap.cpu.get();
    if is_elsewhere || ASKS.load(Ordering::Relaxed) {
        heap = follow_thread(heap);
    }
    if heap.is_busy.get() {
        return with_parked(operation);
    }
    Some(busily(heap, operation))
}

/// Does something with the words of a heap, so that the handler of a signal can tell. What it has found to
/// do for the helper comes after.
#[inline]
fn busily<T>(heap: &'static Heap, operation: impl FnOnce(&'static Heap) -> T) -> T {
    heap.is_busy.set(true);
    // Handlers run on this thread: only the compiler could change the order.
    compiler_fence(Ordering::SeqCst);
    let result = operation(heap);
    compiler_fence(Ordering::SeqCst);
    heap.is_busy.set(false);
    HELPER.start_if_wanted();
    result
}

/// Does something with a parked heap: for a thread that has ended, as nobody would be told that it needs a
/// heap no longer; and for the handler of a signal that has interrupted the thread's own heap.
#[cold]
fn with_parked<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    let node = current_node();
    let heap = adopt_parked(node).or_else(|| make_heap(node))?;
    begin_family(heap);
    let result = operation(heap);
    heap.flush_marks();
    heap.family.store(0, Ordering::Relaxed);
    park(heap);
    Some(result)
}

/// A heap is alone with its thread.
fn begin_family(heap: &Heap) {
    let family = NEXT_FAMILY.fetch_add(1, Ordering::Relaxed);
    heap.family.store(family, Ordering::Relaxed);
    heap.sibling.set(heap.number.get());
}

/// The node that this thread runs on.
fn current_node() -> usize {
    if nodes::count() == 1 {
        return 0;
    }
    let cpu = if ASKS.load(Ordering::Relaxed) {
        thread::ask_cpu()
    } else {
        thread::cpu()
    };
    nodes::of_cpu(cpu)
}

#[cold]
fn begin_thread() -> Option<&'static Heap> {
    if !is_made() {
        return None;
    }
    let node = current_node();
    let heap = adopt_parked(node).or_else(|| make_heap(node))?;
    begin_family(heap);
    enter(heap);
    thread::watch_end(heap);
    Some(heap)
}

/// From now on the thread uses this heap of its own.
fn enter(heap: &'static Heap) {
    heap.cpu.set(thread::cpu());
    thread::set_heap(heap);
}

/// The thread has moved, perhaps to another node: then to its heap there.
#[cold]
fn follow_thread(heap: &'static Heap) -> &'static Heap {
    let node = current_node();
    if node == heap.node.get() as usize {
        heap.cpu.set(thread::cpu());
        return heap;
    }
    heap.flush_marks();
    let mut own = heap_of(heap.sibling.get());
    while own.node.get() as usize != node {
        if ptr::eq(own, heap) {
            // It has none there yet. Without memory for one it stays with the old.
            let Some(new) = adopt_parked(node).or_else(|| make_heap(node)) else {
                heap.cpu.set(thread::cpu());
                return heap;
            };
            let family = heap.family.load(Ordering::Relaxed);
            new.family.store(family, Ordering::Relaxed);
            new.sibling.set(heap.sibling.replace(new.number.get()));
            own = new;
            break;
        }
        own = heap_of(own.sibling.get());
    }
    enter(own);
    own
}

fn make_heap(node: usize) -> Option<&'static Heap> {
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    if number as usize >= HEAPS_NOW.load(Ordering::Relaxed) {
        return None;
    }
    let taken = POOLS.take(&SPACE, node, 1)?;
    let address = SPACE.data() + (taken.chunk << CHUNK_SHIFT);
    if !taken.is_zero {
        // SAFETY: the chunk has just been taken.
        unsafe {
            ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, size_of::<Heap>())
        };
    }
    // SAFETY: zeroed memory of its size, of which nobody else knows; all its fields may be zero.
    let heap: &'static Heap = unsafe { &*ptr::with_exposed_provenance(address) };
    heap.make(&SPACE, number, node);
    heap_slot(number).store(address, Ordering::Release);
    Some(heap)
}

/// A heap whose thread has ended: all of it, with whatever is in it.
fn adopt_parked(node: usize) -> Option<&'static Heap> {
    let parked = &PARKED[node];
    for _ in 0..PARKED_TRIES {
        let top = parked.load(Ordering::Acquire);
        let number = top as u32;
        if number == 0 {
            return None;
        }
        let heap = heap_of(number);
        let next = u64::from(heap.parked.load(Ordering::Relaxed));
        // The count above keeps a heap that was taken and parked again meanwhile apart.
        let changed = ((top >> 32) + 1) << 32 | next;
        // Acquires what its last thread did.
        if parked
            .compare_exchange(top, changed, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return Some(heap);
        }
    }
    None
}

/// This thread ends, or says so: its heaps go to the next ones on their nodes.
pub(crate) fn thread_ends() {
    let heap = thread::heap();
    if heap.is_null() || heap == thread::ENDED {
        return;
    }
    thread::set_heap(thread::ENDED);
    // SAFETY: as in `with_heap`.
    let first = unsafe { &*heap };
    first.flush_marks();
    let mut heap = heap_of(first.sibling.get());
    loop {
        let next = heap.sibling.get();
        heap.family.store(0, Ordering::Relaxed);
        park(heap);
        if ptr::eq(heap, first) {
            return;
        }
        heap = heap_of(next);
    }
}

/// Leaves a heap to the next thread on its node. It is tried again while others park or adopt one
/// there, so that none is lost; no allocation waits for it.
fn park(heap: &Heap) {
    let parked = &PARKED[heap.node.get() as usize];
    let mut top = parked.load(Ordering::Relaxed);
    loop {
        heap.parked.store(top as u32, Ordering::Relaxed);
        let changed = ((top >> 32) + 1) << 32 | u64::from(heap.number.get());
        // Releases what this thread did with it.
        match parked.compare_exchange_weak(top, changed, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => top = now,
        }
    }
}

/// Makes what the first allocation of the process and of this thread would make.
pub fn begin() {
    with_heap(|_| {});
}

// ---- allocating ------------------------------------------------------------------------------------

/// A block of at least so many bytes, aligned to 16; null if there is no memory.
#[inline]
pub fn allocate(size: usize) -> *mut u8 {
    let heap = thread::heap();
    if heap.is_null() || size > MEDIUM_MAX {
        return allocate_slow(size);
    }
    // SAFETY: as in `with_heap`; that of a thread that has ended has nothing, and takes nothing.
    let heap = unsafe { &*heap };
    if heap.cpu.get() != thread::cpu() {
        return allocate_slow(size);
    }
    let class = if size <= SMALL_MAX {
        Class::for_small(size)
    } else {
        Class::for_size(size)
    };
    let block = heap.try_allocate(class);
    if block == 0 {
        return allocate_slow(size);
    }
    ptr::with_exposed_provenance_mut(block)
}

#[inline(never)]
fn allocate_slow(size: usize) -> *mut u8 {
    let block = with_heap(|heap| {
        if size <= MEDIUM_MAX {
            return allocate_of(heap, Class::for_size(size));
        }
        large::allocate(home(), heap.node.get() as usize, size, CHUNK_BYTES).0
    });
    told(block.unwrap_or(0))
}

fn allocate_of(heap: &Heap, class: Class) -> usize {
    let mut block = heap.try_allocate(class);
    if block == 0 {
        heap.flush_marks();
        block = heap.carve(home(), class);
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
            with_heap(|heap| large::allocate(home(), heap.node.get() as usize, size, CHUNK_BYTES));
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
        Some(class) => allocate_of(heap, class),
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
    if !heap.try_free(address) {
        free_slow(heap, address);
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
    if ptr::eq(heap, thread::ENDED) || heap.is_busy.get() {
        if address != 0 {
            with_parked(|heap| give_back(heap, address));
        }
        return;
    }
    busily(heap, |heap| give_back(heap, address));
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
    match tag.kind() {
        ChunkTag::OWNED => {
            if tag.number() == heap.number.get() {
                return free_own(heap, offset);
            }
            // Perhaps it is this thread's for another node.
            if nodes::count() > 1 {
                let owner = heap_of(tag.number());
                let family = heap.family.load(Ordering::Relaxed);
                if owner.family.load(Ordering::Relaxed) == family {
                    return free_own(owner, offset);
                }
            }
            free_remote(heap, tag, offset);
        }
        ChunkTag::LARGE => {
            if offset & (CHUNK_BYTES - 1) != 0 || !large::free(home(), chunk) {
                report(address, Fault::NotABlock, 0);
            }
        }
        // Nobody's chunk: a large block that was freed already, or an address of ours that never was one.
        _ => report(address, Fault::NotABlock, 0),
    }
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
            if heap.keep(Kind::pure(class), address) {
                return;
            }
            class
        }
    };
    free_full(heap, class, address);
}

/// Takes an own block back whose front is full.
#[inline(never)]
fn free_full(heap: &Heap, class: Class, address: usize) {
    if heap.is_top(class, address) {
        return report(address, Fault::NotABlock, heap.number.get());
    }
    let done = heap.relieve(home(), class).and_then(|()| {
        if heap.keep(Kind::pure(class), address) {
            return heap.shrink_fronts(home());
        }
        // A front of one.
        let level = class.level();
        let offset = address - SPACE.data();
        let region = RegionId::at(level, offset);
        let first = (offset - region.offset_on(level)) >> granule_shift(level);
        heap.restore(home(), region, level, 1 << first, class.granules())
    });
    if let Err((address, fault)) = done {
        report(address, fault, heap.number.get());
    }
}

/// Marks a block of another's. Marks of one region are sent together.
fn free_remote(heap: &Heap, tag: ChunkTag, offset: usize) {
    let region = SPACE.region_of(offset);
    let shift = granule_shift(region.level());
    let inside = offset - region.offset();
    if inside & ((1 << shift) - 1) != 0 {
        return report(SPACE.data() + offset, Fault::NotABlock, tag.number());
    }
    let bit = 1 << (inside >> shift);
    if heap.marking.get() != region.0 {
        heap.flush_marks();
        heap.marking.set(region.0);
    }
    let marks = heap.marks.get();
    if marks & bit != 0 {
        return report(SPACE.data() + offset, Fault::NotABlock, tag.number());
    }
    heap.marks.set(marks | bit);
    // What is large is not kept back from its owner.
    if region.level() > 1 {
        heap.flush_marks();
    }
}

impl Heap {
    /// Sends the marks that are kept back.
    pub(crate) fn flush_marks(&self) {
        let region = RegionId(self.marking.replace(0));
        if region.is_none() {
            return;
        }
        send_marks(region, self.marks.replace(0));
    }
}

/// Marks blocks of another's region.
fn send_marks(region: RegionId, marks: u64) {
    // The region has blocks that are not freed yet, so the chunk is its heap's still.
    let tag = ChunkTag(SPACE.tag(region.chunk()).load(Ordering::Relaxed));
    match remote::mark(&SPACE.remote(region).marks, marks) {
        Marked::Queued => {}
        Marked::First => heap_of(tag.number()).queue.push(&SPACE, region),
        Marked::Twice => report(
            SPACE.data() + region.offset(),
            Fault::NotABlock,
            tag.number(),
        ),
    }
}

// ---- for the helper -----------------------------------------------------------------------------------

/// Gives the memory behind lent blocks that follow each other back to the system, and the blocks to
/// their heaps.
pub(crate) fn forget_lent(start: usize, bytes: usize, blocks: &[usize]) {
    // SAFETY: the pages were lent by their heaps, which have no blocks in them but these.
    unsafe { os::forget(SPACE.data() + start, bytes) };
    let (mut region, mut marks) = (RegionId::NONE, 0);
    for &offset in blocks {
        let of = SPACE.region_of(offset);
        if of != region && marks != 0 {
            send_marks(region, marks);
            marks = 0;
        }
        region = of;
        marks |= 1 << ((offset - of.offset()) >> granule_shift(of.level()));
    }
    send_marks(region, marks);
}

/// Gives memory behind idle chunks back to the system: about as many as said, of all nodes. How
/// many.
pub(crate) fn forget_idle(chunks: u32) -> u32 {
    let mut done = 0;
    for node in 0..POOLS.nodes.len() {
        while done < chunks {
            match POOLS.forget_idle(&SPACE, node, chunks - done) {
                0 => break,
                more => done += more,
            }
        }
    }
    done
}

/// Chunks that no heap has and that have memory behind them.
pub(crate) fn idle_chunks() -> u32 {
    POOLS.idle(&SPACE)
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
        // The words of a region that holds a live block may change, but not where that block ends.
        ChunkTag::OWNED => match heap_of(tag.number()).class_at(&SPACE, offset) {
            Some(class) => class.bytes(),
            None => {
                report(address, Fault::NotABlock, tag.number());
                0
            }
        },
        ChunkTag::LARGE => (tag.number() as usize) << CHUNK_SHIFT,
        _ => {
            report(address, Fault::NotABlock, 0);
            0
        }
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

// ---- what should not be ------------------------------------------------------------------------------

/// Says what is wrong with a pointer, and ends the process: going on would corrupt it.
#[cold]
pub(crate) fn report(address: usize, fault: Fault, owner: u32) {
    let what: &[u8] = match fault {
        Fault::Foreign => b" was not given out by this allocator",
        Fault::NotABlock => b" is not the start of a block in use: freed twice, or overwritten",
    };
    let owner_text = os::hexadecimal(owner as usize);
    let of: [&[u8]; 2] = if owner == 0 {
        [b"", b""]
    } else {
        [b"; heap ", &owner_text[14..]]
    };
    os::die(&[
        b"hearth: free: ",
        &os::hexadecimal(address),
        what,
        of[0],
        of[1],
        b"\n",
    ]);
}

/// Marks of places where no block starts.
#[cold]
pub(crate) fn report_marks(heap: &Heap, region: RegionId, marks: u64) {
    let address = heap.address(region, marks.trailing_zeros());
    report(address, Fault::NotABlock, heap.number.get());
}

/// What a heap has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of the chunks that are its own.
    pub owned: usize,
    /// Of pages there that may have memory behind them.
    pub touched: usize,
    /// Of blocks in use or kept in front; and lent to the helper.
    pub used: usize,
}

/// What this thread's heap has. Nothing if there is no memory for one.
pub fn figures() -> Figures {
    with_heap(|heap| Figures {
        owned: heap.chunks.get() * CHUNK_BYTES,
        touched: heap.touched.get(),
        used: heap.used.get(),
    })
    .unwrap_or_default()
}

/// Asserts that this thread's heap is as it should be, and tells what is in it.
#[cfg(any(test, feature = "checks"))]
pub fn check_this_thread() -> crate::heap::checks::Census {
    with_heap(|heap| heap.check(home())).unwrap_or_default()
}

/// Tells others what this thread has freed of theirs, and takes back what they have freed of its own.
#[cfg(any(test, feature = "checks"))]
pub fn settle_this_thread() {
    with_heap(|heap| {
        heap.flush_marks();
        heap.settle(home());
    });
}

/// What the process has got from the system, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What heaps have and what large blocks take, whether blocks use all of it or not.
    pub held: usize,
    /// What no heap has, though there is memory behind it.
    pub idle: usize,
    /// Blocks that are mappings of their own.
    pub mapped: usize,
    /// How many of these there are.
    pub mappings: usize,
}

/// What the process has at this moment, each for itself.
pub fn totals() -> Totals {
    if !is_made() {
        return Totals::default();
    }
    let (mappings, mapped) = large::mapped();
    Totals {
        held: POOLS.held(&SPACE) << CHUNK_SHIFT,
        idle: (POOLS.idle(&SPACE) as usize) << CHUNK_SHIFT,
        mapped,
        mappings,
    }
}

/// Gives memory that no heap has back to the system, but for `keep` bytes. The bytes given back.
pub fn trim(keep: usize) -> usize {
    if !is_made() {
        return 0;
    }
    POOLS.trim(&SPACE, keep)
}
