//! Blocks larger than a heap makes: whole chunks of the pool, whole arenas, or mappings of their own.

use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::directory::Directory;
use crate::geometry::{ARENA_BYTES, CHUNK_BYTES, CHUNK_SHIFT};
use crate::guarded::{self, Sort};
use crate::harden;
use crate::heap::Home;
use crate::helper::HELPER;
use crate::os::{self, Access};
use crate::pool::Taken;
use crate::real_time;
use crate::space::ChunkTag;

const CHUNKS_OF_ARENA: usize = ARENA_BYTES / CHUNK_BYTES;
/// Blocks of more arenas than this are mapped.
const ARENAS_MAX: usize = 64;

/// A block of whole chunks, aligned to a power of two; 0 if there is no memory. True if it is zero.
pub(crate) fn allocate(home: Home<'_>, node: usize, size: usize, align: usize) -> (usize, bool) {
    let Some(chunks) = size.checked_next_multiple_of(CHUNK_BYTES) else {
        return (0, false);
    };
    if harden::guards()
        && let Some(guarded) = guarded::allocate(home, node, size, align, Sort::Large)
    {
        return guarded;
    }
    let align = align.max(CHUNK_BYTES);
    let chunks = (chunks >> CHUNK_SHIFT).max(1);
    if is_mapped(chunks, align) {
        return (map(size, align), true);
    }
    let Some((taken, chunks)) = take(home, node, chunks, align) else {
        // The addresses may be used up, where a limit leaves few.
        return (map(size, align), true);
    };
    if taken.is_zero {
        HELPER.missed(chunks as u32);
    }
    let tag = ChunkTag::of(ChunkTag::LARGE, chunks as u32);
    home.space.tag(taken.chunk).store(tag.0, Ordering::Relaxed);
    ask_huge(home, taken.chunk, chunks, size);
    let address = home.space.data() + (taken.chunk << CHUNK_SHIFT);
    (address, taken.is_zero)
}

/// Are blocks of so many chunks, or so aligned, mappings of their own?
pub(crate) fn is_mapped(chunks: usize, align: usize) -> bool {
    chunks > ARENAS_MAX * CHUNKS_OF_ARENA || align > ARENA_BYTES
}

/// Chunks for a block, and how many they are.
pub(crate) fn take(
    home: Home<'_>,
    node: usize,
    chunks: usize,
    align: usize,
) -> Option<(Taken, usize)> {
    // What is aligned to more than a chunk gets an arena, as every arena starts at a multiple of
    // its size.
    if chunks > CHUNKS_OF_ARENA || align > CHUNK_BYTES {
        let arenas = chunks.div_ceil(CHUNKS_OF_ARENA);
        let taken = home.pools.take_arenas(home.space, node, arenas)?;
        return Some((taken, arenas * CHUNKS_OF_ARENA));
    }
    let taken = home.pools.take(home.space, node, chunks as u32)?;
    Some((taken, chunks))
}

/// Gives a block back by its first chunk. False if it is none, or was given back already.
pub(crate) fn free(home: Home<'_>, chunk: usize) -> bool {
    let tag = home.space.tag(chunk);
    let was = ChunkTag(tag.swap(ChunkTag::NONE, Ordering::AcqRel));
    if was.kind() != ChunkTag::LARGE {
        return false;
    }
    let chunks = was.number() as usize;
    wipe(home, chunk, chunks);
    leave_huge(home, chunk, chunks);
    home.pools.give_many(home.space, chunk, chunks);
    HELPER.idle(chunks as u32);
    true
}

/// Makes a block shorter or longer where it is. False if it is none, or what follows is not free.
pub(crate) fn resize(home: Home<'_>, chunk: usize, size: usize) -> bool {
    let tag = home.space.tag(chunk);
    let now = ChunkTag(tag.load(Ordering::Relaxed));
    let wanted = size.div_ceil(CHUNK_BYTES);
    if now.kind() != ChunkTag::LARGE {
        return false;
    }
    let has = now.number() as usize;
    if wanted > has {
        return home.pools.extend(home.space, chunk, has, wanted) && {
            tag.store(
                ChunkTag::of(ChunkTag::LARGE, wanted as u32).0,
                Ordering::Relaxed,
            );
            ask_huge(home, chunk, wanted, size);
            true
        };
    }
    if wanted < has {
        tag.store(
            ChunkTag::of(ChunkTag::LARGE, wanted as u32).0,
            Ordering::Relaxed,
        );
        wipe(home, chunk + wanted, has - wanted);
        leave_huge(home, chunk, has);
        ask_huge(home, chunk, wanted, size);
        home.pools
            .give_many(home.space, chunk + wanted, has - wanted);
    }
    true
}

/// A block of more than an arena is likely to be used as a whole, so the system is asked for huge pages.
fn ask_huge(home: Home<'_>, chunk: usize, chunks: usize, size: usize) {
    if chunks > CHUNKS_OF_ARENA && !real_time::is_on() {
        let arena = chunk / CHUNKS_OF_ARENA;
        home.space.advise_huge(arena, size, true);
    }
}

/// What had whole arenas is no block any more, or a shorter one.
fn leave_huge(home: Home<'_>, chunk: usize, chunks: usize) {
    if chunks > CHUNKS_OF_ARENA && !real_time::is_on() {
        let arena = chunk / CHUNKS_OF_ARENA;
        home.space.advise_huge(arena, chunks << CHUNK_SHIFT, false);
    }
}

fn wipe(home: Home<'_>, chunk: usize, chunks: usize) {
    let start = home.space.data() + (chunk << CHUNK_SHIFT);
    harden::wipe_pages(start, chunks << CHUNK_SHIFT);
}

// ---- mappings ------------------------------------------------------------------------------------------

/// As many mappings as there can be. Each is larger than 256 MiB, or aligned to more than 4 MiB.
const MAPPINGS: usize = 4096;

/// Instead of a block: its mapping is being changed.
const ENTERED: usize = 1;

struct Mapping {
    /// Where the block starts; 0 if there is none here, [`ENTERED`] if one is being entered.
    block: AtomicUsize,
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Where the block ends: with the mapping, or at a guard page.
    end: AtomicUsize,
}

static TABLE: [Mapping; MAPPINGS] = [const {
    Mapping {
        block: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; MAPPINGS];

/// A mapping of its own; 0 if there is none to be had, or none allowed as this is real-time mode.
fn map(size: usize, align: usize) -> usize {
    if real_time::is_on() {
        return 0;
    }
    let Some(bytes) = size
        .max(1)
        .checked_next_multiple_of(os::PAGE)
        .and_then(|bytes| bytes.checked_add(align))
    else {
        return 0;
    };
    let start = os::map_memory(bytes);
    if start == 0 {
        return 0;
    }
    let block = start.next_multiple_of(align.max(os::PAGE));
    enter(start, bytes, block, start + bytes)
}

/// A mapping of its own between guard pages; 0 if there is none to be had.
pub(crate) fn map_guarded(size: usize, align: usize) -> usize {
    let Some(pages) = size.max(1).checked_next_multiple_of(os::PAGE) else {
        return 0;
    };
    let slack = if align > os::PAGE { align } else { 0 };
    let Some(bytes) = pages.checked_add(slack + 2 * os::PAGE) else {
        return 0;
    };
    let start = os::reserve(bytes);
    if start == 0 {
        return 0;
    }
    let first = (start + os::PAGE).next_multiple_of(align.max(os::PAGE));
    let end = first + pages;
    // SAFETY: inside of what has just been reserved.
    if !unsafe { os::allow(first, pages, Access::Write) } {
        // SAFETY: nobody has seen it.
        unsafe { os::unmap(start, bytes) };
        return 0;
    }
    let block = ((end - size) & !(align - 1)).max(first);
    enter(start, bytes, block, end)
}

/// Enters a mapping into the table, and gives the block; if it is full, the mapping goes.
fn enter(start: usize, bytes: usize, block: usize, end: usize) -> usize {
    for mapping in &TABLE {
        let claimed =
            mapping
                .block
                .compare_exchange(0, ENTERED, Ordering::Acquire, Ordering::Relaxed);
        if claimed.is_ok() {
            mapping.start.store(start, Ordering::Relaxed);
            mapping.bytes.store(bytes, Ordering::Relaxed);
            mapping.end.store(end, Ordering::Relaxed);
            mapping.block.store(block, Ordering::Release);
            return block;
        }
    }
    // SAFETY: nobody has seen it.
    unsafe { os::unmap(start, bytes) };
    0
}

fn find(block: usize) -> Option<&'static Mapping> {
    if block <= ENTERED {
        return None;
    }
    TABLE
        .iter()
        .find(|mapping| mapping.block.load(Ordering::Acquire) == block)
}

/// Unmaps a block. False if it is none.
pub(crate) fn unmap(block: usize) -> bool {
    let Some(mapping) = find(block) else {
        return false;
    };
    let (start, bytes) = (
        mapping.start.load(Ordering::Relaxed),
        mapping.bytes.load(Ordering::Relaxed),
    );
    let claimed =
        mapping
            .block
            .compare_exchange(block, ENTERED, Ordering::Acquire, Ordering::Relaxed);
    if claimed.is_err() {
        return false;
    }
    mapping.block.store(0, Ordering::Release);
    // SAFETY: the mapping of a block that its owner gives back.
    unsafe { os::unmap(start, bytes) };
    true
}

/// Gives a mapped block another size, perhaps elsewhere. Where it is then; 0 if it is none, or the system
/// refuses, and the block is as it was.
pub(crate) fn remap(block: usize, size: usize) -> usize {
    // With guard pages it is several for the system, which moves one at a time.
    if harden::guards() {
        return 0;
    }
    let Some(mapping) = find(block) else {
        return 0;
    };
    let start = mapping.start.load(Ordering::Relaxed);
    let bytes = mapping.bytes.load(Ordering::Relaxed);
    let wanted = size
        .checked_add(block - start)
        .and_then(|bytes| bytes.checked_next_multiple_of(os::PAGE));
    let Some(wanted) = wanted else { return 0 };
    let claimed =
        mapping
            .block
            .compare_exchange(block, ENTERED, Ordering::Acquire, Ordering::Relaxed);
    if claimed.is_err() {
        return 0;
    }
    // As soon as it has moved, another's block may be where it was.
    // SAFETY: the mapping of a block that is its owner's, who is told the new place.
    let moved = unsafe { os::remap(start, bytes, wanted) };
    if moved == 0 {
        mapping.block.store(block, Ordering::Release);
        return 0;
    }
    let block = moved + (block - start);
    mapping.start.store(moved, Ordering::Relaxed);
    mapping.bytes.store(wanted, Ordering::Relaxed);
    mapping.end.store(moved + wanted, Ordering::Relaxed);
    mapping.block.store(block, Ordering::Release);
    block
}

/// The bytes that a mapped block has.
pub(crate) fn mapped_size(block: usize) -> Option<usize> {
    let mapping = find(block)?;
    Some(mapping.end.load(Ordering::Relaxed) - block)
}

/// The mapped block in whose mapping an address is, and where it ends.
pub(crate) fn mapped_around(address: usize) -> Option<(usize, usize)> {
    TABLE.iter().find_map(|mapping| {
        let block = mapping.block.load(Ordering::Acquire);
        let start = mapping.start.load(Ordering::Relaxed);
        let is_there = block > ENTERED
            && (start..start + mapping.bytes.load(Ordering::Relaxed)).contains(&address);
        is_there.then(|| (block, mapping.end.load(Ordering::Relaxed)))
    })
}

/// For who looks from outside.
pub(crate) fn describe(directory: &mut Directory) {
    directory.mappings = TABLE.as_ptr().addr() as u64;
    directory.mappings_stride = size_of::<Mapping>() as u64;
    directory.mappings_count = MAPPINGS as u64;
    directory.mapping_block_at = offset_of!(Mapping, block) as u64;
    directory.mapping_bytes_at = offset_of!(Mapping, bytes) as u64;
}

/// How many mappings there are, and their bytes.
pub(crate) fn mapped() -> (usize, usize) {
    TABLE
        .iter()
        .filter(|mapping| mapping.block.load(Ordering::Acquire) > ENTERED)
        .fold((0, 0), |(count, bytes), mapping| {
            (count + 1, bytes + mapping.bytes.load(Ordering::Relaxed))
        })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::string::String;

    use crate::global::{allocate, free};

    /// The system's flags of the mapping that an address is in.
    fn flags_of(address: usize) -> String {
        let maps = fs::read_to_string("/proc/self/smaps").expect("there is one");
        let mut is_inside = false;
        for line in maps.lines() {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let bound = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(start), Some(end))) = range.map(|(a, b)| (bound(a), bound(b))) {
                is_inside = (start..end).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:")
                && is_inside
            {
                return flags.into();
            }
        }
        panic!("{address:#x} is nowhere");
    }

    /// As far as the block fills them, and no longer than it is there.
    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn large_blocks_have_huge_pages() {
        if fs::metadata("/sys/kernel/mm/transparent_hugepage").is_err() {
            return;
        }
        let block = allocate(9 << 20);
        let start = block.expose_provenance();
        let is_asked = |flags: &str| flags.split(' ').any(|flag| flag == "hg");
        assert!(is_asked(&flags_of(start)));
        assert!(is_asked(&flags_of(start + (8 << 20) - 1)));
        assert!(!is_asked(&flags_of(start + (8 << 20))));
        // SAFETY: allocated above, and not used any more.
        unsafe { free(block) };
        assert!(!is_asked(&flags_of(start)));
        let block = allocate(4 << 20);
        assert!(!is_asked(&flags_of(block.expose_provenance())));
        // SAFETY: as above.
        unsafe { free(block) };
    }
}
