//! Blocks with guard pages: a write before or behind one, or after its free, faults.
//!
//! ```text
//! whole chunks, as of any large block
//! | lead | ..... block, to the end of its last page | guard: at least a page, and the rest |
//! ```
//!
//! The block ends where the guard begins, up to its alignment. The *lead* is a page before the
//! block, where one is free. A block aligned to more than a page starts with its chunks, and has no
//! lead.
//!
//! The words of the first chunk, which no heap uses, hold the block's offset in the chunk (`free`)
//! and its size (`starts`). The tag holds the number of chunks; whoever exchanges it has the block.
//!
//! A freed block loses its memory, and stays inaccessible until a number of others have been freed.
//! Each takes up to three of the 65530 mappings that the kernel allows a process, so there is a
//! limit: blocks beyond it have no guards.

use crate::store::idle::IDLE;
use crate::store::pool::POOLS;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ground::geometry::{ARENA_BYTES, CHUNK_BYTES, CHUNK_SHIFT, RegionId};
use crate::ground::limits;
use crate::ground::os::{self, Access, PAGE};
use crate::store::large;
use crate::store::quarantine::Quarantine;
use crate::store::region::{PAGE_LEVEL, Region};
use crate::store::space::{ChunkTag, SPACE};

/// Guarded blocks at most, those in quarantine included.
const MOST: u32 = 8192;
/// Samples at most, so that some are always left for large blocks.
const MOST_SAMPLED: usize = MOST as usize / 2;
/// Samples take at most this fraction of the chunks, where a limit leaves few: what they take
/// cannot be given back as long as the program has the blocks.
const SAMPLED_OF_CHUNKS: usize = 64;
/// Samples use at most this fraction of the memory that control groups leave.
const SAMPLED_OF_MEMORY: usize = 16;
/// Memory that a sample uses beside its block's: measured 7,500 bytes, for a page of its own, one
/// for its chunk's words, and page tables.
const SAMPLE_BYTES: usize = 2 * PAGE;
/// Samples at most, set once when the process begins.
static SAMPLED_MAX: AtomicU32 = AtomicU32::new(MOST_SAMPLED as u32);
/// Fewer addresses than this would be noticed by the program.
const PLENTY: usize = 64 << 30;
/// Addresses are few: a large block has guards only in the chunks that it takes without them, too;
/// a sample takes one chunk; no freed block stays. Set once when the process begins.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);
/// Guarded blocks of the process, whose mappings the kernel limits.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Freed blocks that stay inaccessible.
const KEPT: usize = 256;
/// Larger blocks do not stay.
const KEPT_CHUNKS_MAX: usize = ARENA_BYTES / CHUNK_BYTES;
/// The freed blocks of all threads, by their first chunks.
static RING: Quarantine<KEPT> = Quarantine::new();

/// The reason for guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Larger than a heap cuts: it must have them, and a failure is reported.
    Large,
    /// Picked as a sample: skipped if there are many already.
    Sampled,
}

/// Offsets from the start of the first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GuardedLayout {
    lead: usize,
    block: usize,
    guard: usize,
}

impl GuardedLayout {
    /// Places a block in `bytes`, at least a page more than its own.
    fn of(bytes: usize, size: usize, align: usize) -> GuardedLayout {
        let pages = size.next_multiple_of(PAGE);
        let is_free = bytes - pages >= 2 * PAGE && align <= PAGE;
        let lead = if is_free { PAGE } else { 0 };
        let guard = lead + pages;
        let block = if align <= PAGE {
            (guard - size) & !(align - 1)
        } else {
            0
        };
        GuardedLayout { lead, block, guard }
    }

    /// Reads a block's place and size.
    fn read(words: &Region) -> (GuardedLayout, usize) {
        let (block, size) = (words.free.get() as usize, words.starts.get() as usize);
        // The block starts in the first page behind the lead.
        let lead = block & !(PAGE - 1);
        let guard = lead + size.next_multiple_of(PAGE);
        (GuardedLayout { lead, block, guard }, size)
    }
}

fn words(chunk: usize) -> &'static Region {
    SPACE.words_of(RegionId::at(PAGE_LEVEL, chunk << CHUNK_SHIFT))
}

fn start_of(chunk: usize) -> usize {
    SPACE.data() + (chunk << CHUNK_SHIFT)
}

/// Allocates a block with guard pages; returns its address and whether it is zero. None if that is
/// impossible.
pub(crate) fn allocate(
    node: usize,
    size: usize,
    align: usize,
    sort: Sort,
) -> Option<(usize, bool)> {
    let size = size.max(1);
    let bytes = size.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
    let chunks = bytes.div_ceil(CHUNK_BYTES);
    // What a limit leaves for it: the chunks of a block without guards, or one for a sample.
    let affordable = match sort {
        Sort::Large => size.div_ceil(CHUNK_BYTES),
        Sort::Sampled => 1,
    };
    if is_limited() && chunks > affordable {
        report_limited();
        return None;
    }
    if large::is_mapped(chunks, align) {
        let block = large::map_guarded(size, align);
        return (block != 0).then_some((block, true));
    }
    let most = match sort {
        Sort::Large => MOST,
        Sort::Sampled => SAMPLED_MAX.load(Ordering::Relaxed),
    };
    if COUNT.fetch_add(1, Ordering::Relaxed) >= most {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        match sort {
            Sort::Large => report_limit(),
            Sort::Sampled if most < MOST_SAMPLED as u32 => report_limited(),
            Sort::Sampled => {}
        }
        return None;
    }
    let guarded = allocate_counted(node, size, align, chunks);
    if guarded.is_none() {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
    guarded
}

fn allocate_counted(
    node: usize,
    size: usize,
    align: usize,
    chunks: usize,
) -> Option<(usize, bool)> {
    let (taken, chunks) = large::take(node, chunks, align).or_else(|| {
        release_all();
        large::take(node, chunks, align)
    })?;
    let (start, bytes) = (start_of(taken.chunk), chunks << CHUNK_SHIFT);
    let place = GuardedLayout::of(bytes, size, align);
    // SAFETY: chunks that have just been taken.
    let is_guarded = unsafe {
        os::allow(start + place.guard, bytes - place.guard, Access::None)
            && (place.lead == 0 || os::allow(start, place.lead, Access::None))
    };
    if !is_guarded {
        // Treated as freed: it goes back once its pages can be made accessible again.
        let tag = ChunkTag::of(ChunkTag::QUARANTINED, chunks as u32);
        SPACE.tag(taken.chunk).store(tag.0, Ordering::Release);
        COUNT.fetch_add(1, Ordering::Relaxed);
        release(taken.chunk);
        report_limit();
        return None;
    }
    let words = words(taken.chunk);
    words.free.set(place.block as u64);
    words.starts.set(size as u64);
    let tag = ChunkTag::of(ChunkTag::GUARDED, chunks as u32);
    SPACE.tag(taken.chunk).store(tag.0, Ordering::Release);
    Some((start + place.block, taken.is_zero()))
}

#[cold]
fn report_limit() {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        os::say(&[
            b"hearth: guard: too many large blocks for guard pages; further ones have none until \
              some are freed\n",
        ]);
    }
}

#[cold]
fn report_limited() {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        os::say(&[
            b"hearth: guard: this process's memory is limited (ulimit -v, ulimit -d or a control \
              group), so some blocks have no guard pages\n",
        ]);
    }
}

fn is_limited() -> bool {
    IS_LIMITED.load(Ordering::Relaxed)
}

/// The bytes of a block, by its first chunk and its offset there; 0 if none starts there.
pub(crate) fn usable_size(chunk: usize, inside: usize) -> usize {
    let (place, _) = GuardedLayout::read(words(chunk));
    if place.block == inside {
        place.guard - place.block
    } else {
        0
    }
}

/// Frees a block. False if none starts there, or it is freed already.
pub(crate) fn free(chunk: usize, inside: usize) -> bool {
    let tag = SPACE.tag(chunk);
    let now = ChunkTag(tag.load(Ordering::Acquire));
    let (place, _) = GuardedLayout::read(words(chunk));
    if now.kind() != ChunkTag::GUARDED || place.block != inside {
        return false;
    }
    let kept = ChunkTag::of(ChunkTag::QUARANTINED, now.number());
    let claimed = tag.compare_exchange(now.0, kept.0, Ordering::AcqRel, Ordering::Relaxed);
    if claimed.is_err() {
        return false;
    }
    let (start, bytes) = (start_of(chunk), (now.number() as usize) << CHUNK_SHIFT);
    // SAFETY: this call has the block.
    unsafe {
        if !os::forget(start + place.lead, place.guard - place.lead) {
            // Locked memory stays. The next holder must find it empty, in any mode.
            let data: *mut u8 = ptr::with_exposed_provenance_mut(start + place.lead);
            data.write_bytes(0, place.guard - place.lead);
        }
        os::allow(start, bytes, Access::None);
    }
    if now.number() as usize > KEPT_CHUNKS_MAX || is_limited() {
        release(chunk);
        return true;
    }
    if let Some(before) = RING.keep(chunk as u32) {
        release(before as usize);
    }
    true
}

/// Gives a freed block back to the pool.
fn release(chunk: usize) {
    let tag = SPACE.tag(chunk);
    let chunks = ChunkTag(tag.load(Ordering::Acquire)).number() as usize;
    let start = start_of(chunk);
    // SAFETY: this call has the block.
    if !unsafe { os::allow(start, chunks << CHUNK_SHIFT, Access::Write) } {
        // It waits until a later free displaces it, or addresses run out. If the ring is full, it
        // stays inaccessible for good.
        let _ = RING.keep_if_room(chunk as u32);
        return;
    }
    let words = words(chunk);
    words.starts.set(0);
    words.free.set(0);
    tag.store(ChunkTag::NONE, Ordering::Release);
    POOLS.give_many(&SPACE, chunk, chunks);
    COUNT.fetch_sub(1, Ordering::Relaxed);
    IDLE.report_idle(chunks as u32);
}

/// Releases all freed blocks, when there are no more addresses.
#[cold]
fn release_all() {
    RING.take_all(|chunk| release(chunk as usize));
}

// ---- what faults tell ------------------------------------------------------------------------

/// The process's previous action on faults.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, before the handler that reads it is installed.
unsafe impl Sync for Before {}

/// There is one action per process and signal.
static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// Leaves to the program what its limits on addresses and memory give: whatever fits without guards
/// fits with them, but for the little that samples take.
pub(crate) fn respect_limits() {
    let addresses = limits::data_max().map_or(SPACE.bytes(), |most| most.min(SPACE.bytes()));
    IS_LIMITED.store(addresses < PLENTY, Ordering::Relaxed);
    let by_addresses = (addresses >> CHUNK_SHIFT) / SAMPLED_OF_CHUNKS;
    let in_memory = |most: usize| most / SAMPLED_OF_MEMORY / SAMPLE_BYTES;
    let by_memory = limits::resident_max().map_or(MOST_SAMPLED, in_memory);
    let most = MOST_SAMPLED.min(by_addresses).min(by_memory);
    SAMPLED_MAX.store(most as u32, Ordering::Relaxed);
}

/// Installs a handler that reports faults at guard pages. A program's own handler replaces it.
pub(crate) fn watch() {
    if cfg!(miri) {
        return;
    }
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = faulted;
    // SAFETY: an action may be zero but for these fields; the handler calls nothing that a handler
    // must not. One thread calls this, before the first block is handed out.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, ptr::null(), &mut action);
        if action.sa_sigaction == handler as usize {
            // It is installed already: a fork cut off the thread that was about to record that.
            return;
        }
        BEFORE.0.get().write(MaybeUninit::new(action));
        action = core::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
    }
}

/// Reports the block at fault and restores the previous action: the access faults again when this
/// returns, and a signal that was sent is sent again.
extern "C" fn faulted(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel's record of this signal, and the previous action.
    unsafe {
        let is_sent = (*info).si_code <= 0;
        if !is_sent {
            report_access((*info).si_addr().addr());
        }
        libc::sigaction(signal, BEFORE.0.get().cast(), ptr::null_mut());
        if is_sent {
            libc::raise(signal);
        }
    }
}

fn report_access(address: usize) {
    let Some((block, size, is_freed)) = around(address) else {
        return;
    };
    let end = block + size;
    let (distance, relation): (usize, &[u8]) = if is_freed {
        (address.abs_diff(block), b" bytes from the start of a freed")
    } else if address < block {
        (block - address, b" bytes before a")
    } else if address >= end {
        (address - end, b" bytes behind the end of a")
    } else {
        return;
    };
    let (distance, first) = os::decimal(distance);
    let (size, first_of_size) = os::decimal(size);
    os::say(&[
        b"hearth: guard: ",
        &os::hexadecimal(address),
        b" was accessed, ",
        &distance[first..],
        relation,
        b" block of ",
        &size[first_of_size..],
        b" bytes at ",
        &os::hexadecimal(block),
        b"\n",
    ]);
}

/// The guarded block around an address, its size, and whether it is freed.
fn around(address: usize) -> Option<(usize, usize, bool)> {
    let offset = address.wrapping_sub(SPACE.data());
    if offset >= SPACE.bytes() {
        let (block, end) = large::mapped_around(address)?;
        return Some((block, end - block, false));
    }
    let at = offset >> CHUNK_SHIFT;
    for chunk in (0..=at).rev() {
        let tag = ChunkTag(SPACE.tag(chunk).load(Ordering::Acquire));
        if tag.0 == ChunkTag::NONE && !large::is_mapped(at - chunk, 1) {
            continue;
        }
        let is_one = [ChunkTag::GUARDED, ChunkTag::QUARANTINED].contains(&tag.kind());
        if !is_one || chunk + tag.number() as usize <= at {
            return None;
        }
        let (place, size) = GuardedLayout::read(words(chunk));
        let block = start_of(chunk) + place.block;
        return Some((block, size, tag.kind() == ChunkTag::QUARANTINED));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_at_their_guards() {
        let chunks = 5 * CHUNK_BYTES;
        for size in [
            1,
            16,
            17,
            4096,
            4097,
            270_000,
            chunks - 2 * PAGE,
            chunks - PAGE,
        ] {
            for align in [16, 64, 4096] {
                let place = GuardedLayout::of(chunks, size, align);
                assert_eq!(place.block % align, 0);
                assert!(place.block >= place.lead && place.block + size <= place.guard);
                assert!(place.guard - (place.block + size) < align);
                assert!(place.guard + PAGE <= chunks);
                assert!(place.block < 2 * PAGE);
            }
        }
        let place = GuardedLayout::of(chunks, 100, CHUNK_BYTES);
        assert_eq!((place.lead, place.block, place.guard), (0, 0, PAGE));
    }
}
