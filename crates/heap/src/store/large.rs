//! Blocks larger than a heap cuts: whole chunks of the pool, whole arenas, or mappings of their
//! own.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use core::{ptr, slice};

use crate::ground::directory::Directory;
use crate::ground::geometry::{ARENA_BYTES, CHUNK_BYTES, CHUNK_SHIFT};
use crate::ground::os::{self, Access};
use crate::ground::{harden, real_time};
use crate::store::guarded::{self, Sort};
use crate::store::idle::IDLE;
use crate::store::mappings::{self, Extent, Mapping, SEGMENTS, Segments};
use crate::store::pool::{POOLS, Taken};
use crate::store::space::{ChunkTag, SPACE};

const CHUNKS_OF_ARENA: usize = ARENA_BYTES / CHUNK_BYTES;
/// Larger blocks are mapped.
const ARENAS_MAX: usize = 64;

/// Allocates a block of whole chunks, aligned to a power of two. Returns its address, 0 if there is
/// no memory, and whether it is zero.
pub(crate) fn allocate(node: usize, size: usize, align: usize) -> (usize, bool) {
    let Some(chunks) = size.checked_next_multiple_of(CHUNK_BYTES) else {
        return (0, false);
    };
    if harden::guards()
        && let Some(guarded) = guarded::allocate(node, size, align, Sort::Large)
    {
        return guarded;
    }
    let align = align.max(CHUNK_BYTES);
    let chunks = (chunks >> CHUNK_SHIFT).max(1);
    if is_mapped(chunks, align) {
        return (map(size, align), true);
    }
    let Some((taken, chunks)) = take(node, chunks, align) else {
        // A limit may leave too few addresses for arenas.
        return (map(size, align), true);
    };
    IDLE.report_missed(chunks as u32 - taken.with_memory);
    IDLE.report_large(0, chunks);
    let tag = ChunkTag::of(ChunkTag::LARGE, chunks as u32);
    SPACE.tag(taken.chunk).store(tag.0, Ordering::Relaxed);
    ask_huge(taken.chunk, chunks, size);
    let address = SPACE.data() + (taken.chunk << CHUNK_SHIFT);
    (address, taken.is_zero())
}

/// Whether blocks of this size or alignment are mappings of their own.
pub(crate) fn is_mapped(chunks: usize, align: usize) -> bool {
    chunks > ARENAS_MAX * CHUNKS_OF_ARENA || align > ARENA_BYTES
}

/// Takes the chunks for a block; returns them and their number.
pub(crate) fn take(node: usize, chunks: usize, align: usize) -> Option<(Taken, usize)> {
    // An alignment above a chunk takes whole arenas, which start at multiples of their size.
    if chunks > CHUNKS_OF_ARENA || align > CHUNK_BYTES {
        let arenas = chunks.div_ceil(CHUNKS_OF_ARENA);
        let taken = POOLS.take_arenas(&SPACE, node, arenas)?;
        return Some((taken, arenas * CHUNKS_OF_ARENA));
    }
    let taken = POOLS.take(&SPACE, node, chunks as u32)?;
    Some((taken, chunks))
}

/// Frees a block, by its first chunk. False if there is no such block.
pub(crate) fn free(chunk: usize) -> bool {
    let tag = SPACE.tag(chunk);
    let was = ChunkTag(tag.swap(ChunkTag::NONE, Ordering::AcqRel));
    if was.kind() != ChunkTag::LARGE {
        return false;
    }
    let chunks = was.number() as usize;
    wipe(chunk, chunks);
    leave_huge(chunk, chunks);
    POOLS.give_many(&SPACE, chunk, chunks);
    IDLE.report_large(chunks, 0);
    IDLE.report_idle(chunks as u32);
    true
}

/// Resizes a block in place. False if there is no such block, or its neighbours are not free.
pub(crate) fn resize(chunk: usize, size: usize) -> bool {
    let tag = SPACE.tag(chunk);
    let now = ChunkTag(tag.load(Ordering::Relaxed));
    let wanted = size.div_ceil(CHUNK_BYTES);
    if now.kind() != ChunkTag::LARGE {
        return false;
    }
    let has = now.number() as usize;
    if wanted > has {
        return POOLS.extend(&SPACE, chunk, has, wanted) && {
            tag.store(
                ChunkTag::of(ChunkTag::LARGE, wanted as u32).0,
                Ordering::Relaxed,
            );
            ask_huge(chunk, wanted, size);
            IDLE.report_large(has, wanted);
            true
        };
    }
    if wanted < has {
        tag.store(
            ChunkTag::of(ChunkTag::LARGE, wanted as u32).0,
            Ordering::Relaxed,
        );
        wipe(chunk + wanted, has - wanted);
        leave_huge(chunk, has);
        ask_huge(chunk, wanted, size);
        POOLS.give_many(&SPACE, chunk + wanted, has - wanted);
        IDLE.report_large(has, wanted);
    }
    true
}

/// Asks for huge pages behind a block of more than an arena, which is likely to be used as a whole.
fn ask_huge(chunk: usize, chunks: usize, size: usize) {
    if chunks > CHUNKS_OF_ARENA && !real_time::is_on() {
        let arena = chunk / CHUNKS_OF_ARENA;
        SPACE.advise_huge(arena, size, true);
    }
}

/// Withdraws the request for a block that ends or shrinks.
fn leave_huge(chunk: usize, chunks: usize) {
    if chunks > CHUNKS_OF_ARENA && !real_time::is_on() {
        let arena = chunk / CHUNKS_OF_ARENA;
        SPACE.advise_huge(arena, chunks << CHUNK_SHIFT, false);
    }
}

fn wipe(chunk: usize, chunks: usize) {
    let start = SPACE.data() + (chunk << CHUNK_SHIFT);
    harden::wipe_pages(start, chunks << CHUNK_SHIFT);
}

// ---- mappings --------------------------------------------------------------------------------

/// Places for moved blocks that find no other: see [`mappings::change`].
static SPARES: [Mapping; 16] = [const { Mapping::empty() }; 16];
/// The first segment, which suffices for most processes.
static FIRST: [Mapping; mappings::places_of(0)] =
    [const { Mapping::empty() }; mappings::places_of(0)];
/// Mappings that the system refused to unmap, for any thread to retry. Their pages were given back.
static LEFT: [Mapping; 64] = [const { Mapping::empty() }; 64];
/// Whether there may be some.
static HAS_LEFT: AtomicBool = AtomicBool::new(false);

/// A segment's places and their number.
#[repr(C)]
struct Segment {
    places: AtomicPtr<Mapping>,
    count: AtomicUsize,
}

/// The spares, then the segments; those not yet made have no places.
///
/// There is one table, as an address alone must lead to its block.
struct Table([Segment; 1 + SEGMENTS]);

static TABLE: Table = {
    let mut table = [const {
        Segment {
            places: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
        }
    }; 1 + SEGMENTS];
    table[0] = Segment {
        places: AtomicPtr::new((&raw const SPARES).cast::<Mapping>().cast_mut()),
        count: AtomicUsize::new(SPARES.len()),
    };
    table[1] = Segment {
        places: AtomicPtr::new((&raw const FIRST).cast::<Mapping>().cast_mut()),
        count: AtomicUsize::new(FIRST.len()),
    };
    Table(table)
};

impl Segments for Table {
    fn places(&self, segment: usize) -> Option<&[Mapping]> {
        // Acquires the zeroed places; partner of the exchange in `make`.
        let places = self.0[1 + segment].places.load(Ordering::Acquire);
        if places.is_null() {
            return None;
        }
        // SAFETY: this many were mapped, zeroed, and stay; all fields are atomic.
        Some(unsafe { slice::from_raw_parts(places, mappings::places_of(segment)) })
    }

    #[cold]
    fn make(&self, segment: usize) -> bool {
        let bytes = mappings::places_of(segment) * size_of::<Mapping>();
        let start = os::map_memory(bytes);
        if start == 0 {
            return false;
        }
        let own = &self.0[1 + segment];
        // Releases the places; partner of the load in `places`.
        let made = own.places.compare_exchange(
            ptr::null_mut(),
            ptr::with_exposed_provenance_mut(start),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if made.is_err() {
            // Another thread has made it meanwhile.
            // SAFETY: nobody has seen these.
            unsafe { take_back(start, bytes) };
        } else {
            // For inspection.
            own.count
                .store(mappings::places_of(segment), Ordering::Release);
        }
        true
    }

    fn spares(&self) -> &[Mapping] {
        &SPARES
    }
}

/// Unmaps a range, later if the system refuses now.
///
/// # Safety
/// It is a mapping of this module, and nobody uses it any more.
unsafe fn take_back(start: usize, bytes: usize) {
    retry_left();
    // SAFETY: as the caller promises.
    if unsafe { os::unmap(start, bytes) } {
        return;
    }
    // Without a place its addresses are lost, but not the memory.
    if let Some(place) = LEFT.iter().find(|place| place.claim_empty()) {
        place.publish(Extent {
            block: start,
            start,
            bytes,
            end: start + bytes,
        });
        HAS_LEFT.store(true, Ordering::Relaxed);
    }
}

/// Retries mappings that the system refused to unmap.
fn retry_left() {
    if HAS_LEFT.load(Ordering::Relaxed) && HAS_LEFT.swap(false, Ordering::Relaxed) {
        retry_each_left();
    }
}

#[cold]
fn retry_each_left() {
    for place in &LEFT {
        let Some(seen) = place.look().filter(|seen| place.claim(seen.block)) else {
            continue;
        };
        let extent = Extent {
            block: seen.block,
            ..place.extent()
        };
        // SAFETY: unused, and claimed by this call.
        if unsafe { os::unmap(extent.start, extent.bytes) } {
            place.release();
        } else {
            place.publish(extent);
            HAS_LEFT.store(true, Ordering::Relaxed);
        }
    }
}

/// Maps a block of its own; 0 if the system refuses, and in real-time mode.
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

/// Maps a block of its own between guard pages; 0 if the system refuses.
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
        unsafe { take_back(start, bytes) };
        return 0;
    }
    let block = ((end - size) & !(align - 1)).max(first);
    enter(start, bytes, block, end)
}

/// Enters a mapping into the table and returns its block; unmaps it if there is no place.
fn enter(start: usize, bytes: usize, block: usize, end: usize) -> usize {
    let extent = Extent {
        block,
        start,
        bytes,
        end,
    };
    if mappings::enter(&TABLE, extent) {
        return block;
    }
    // SAFETY: nobody has seen it.
    unsafe { take_back(start, bytes) };
    0
}

/// Unmaps a block. False if there is no such block.
pub(crate) fn unmap(block: usize) -> bool {
    let place = mappings::find(&TABLE, block);
    let Some(place) = place.filter(|place| place.claim(block)) else {
        return false;
    };
    let Extent { start, bytes, .. } = place.extent();
    // Once it is unmapped, another block may take its address.
    place.release();
    // SAFETY: the mapping of a block that its owner gives back.
    unsafe { take_back(start, bytes) };
    true
}

/// Resizes a mapped block, perhaps moving it. Returns its address; 0 if there is no such block, or
/// the system refuses and the block is as it was.
pub(crate) fn remap(block: usize, size: usize) -> usize {
    // With guard pages a block spans several mappings, and the system moves one at a time.
    if harden::guards() {
        return 0;
    }
    let moved = mappings::change(&TABLE, block, |before| {
        let inside = block - before.start;
        let wanted = size.checked_add(inside)?;
        let wanted = wanted.checked_next_multiple_of(os::PAGE)?;
        // SAFETY: the mapping of the caller's block; the caller learns the new address.
        let start = unsafe { os::remap(before.start, before.bytes, wanted) };
        (start != 0).then(|| Extent {
            block: start + inside,
            start,
            bytes: wanted,
            end: start + wanted,
        })
    });
    moved.unwrap_or(0)
}

/// The bytes of a mapped block.
pub(crate) fn mapped_size(block: usize) -> Option<usize> {
    let place = mappings::find(&TABLE, block)?;
    Some(place.extent().end - block)
}

/// The mapped block around an address, and its end.
pub(crate) fn mapped_around(address: usize) -> Option<(usize, usize)> {
    mappings::all(&TABLE)
        .filter_map(Mapping::look)
        .find(|is| (is.start..is.start + is.bytes).contains(&address))
        .map(|is| (is.block, is.end))
}

/// Describes the table for inspection.
pub(crate) fn describe(directory: &mut Directory) {
    directory.segments = TABLE.0.as_ptr().addr() as u64;
    directory.segments_stride = size_of::<Segment>() as u64;
    directory.segments_count = TABLE.0.len() as u64;
    directory.segment_mappings_at = offset_of!(Segment, places) as u64;
    directory.segment_count_at = offset_of!(Segment, count) as u64;
    directory.mappings_stride = size_of::<Mapping>() as u64;
    directory.mapping_block_at = offset_of!(Mapping, block) as u64;
    directory.mapping_bytes_at = offset_of!(Mapping, bytes) as u64;
}

/// The number of mappings, and their bytes.
pub(crate) fn mapped() -> (usize, usize) {
    mappings::all(&TABLE)
        .filter_map(Mapping::look)
        .fold((0, 0), |(count, bytes), is| (count + 1, bytes + is.bytes))
}

#[cfg(test)]
mod tests {
    use core::ptr;
    use std::fs;
    use std::string::String;

    use crate::ground::geometry::ARENA_BYTES;
    use crate::ground::os::{self, Access};
    use crate::store::space::SPACE;
    use crate::{free, reallocate, usable_size};

    /// The kernel's flags of the mapping around an address.
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

    /// The system may place a mapping among arenas without reserved addresses.
    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn a_mapping_may_lie_where_arenas_are_not_open() {
        crate::begin();
        let bytes = 1 << 20;
        // The last arena, which no test reaches.
        let start = SPACE.data() + SPACE.bytes() - ARENA_BYTES;
        // SAFETY: unused.
        assert!(unsafe { os::allow(start, bytes, Access::Write) });
        assert_eq!(super::enter(start, bytes, start, start + bytes), start);
        let block: *mut u8 = ptr::with_exposed_provenance_mut(start);
        // SAFETY: a block of this many bytes.
        unsafe {
            block.write_bytes(7, bytes);
            assert_eq!(usable_size(block), bytes);
            let longer = reallocate(block, 2 * bytes);
            assert!(!longer.is_null() && longer != block);
            assert_eq!(longer.add(bytes - 1).read(), 7);
            assert!(!super::unmap(start), "it has gone");
            free(longer);
        }
    }

    /// In the first arenas huge pages are asked for as far as the block fills them by half, and
    /// only while it lives.
    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn large_blocks_have_huge_pages() {
        crate::begin();
        if fs::metadata("/sys/kernel/mm/transparent_hugepage").is_err() {
            return;
        }
        let is_asked = |offset: usize| {
            let flags = flags_of(SPACE.data() + offset);
            flags.split(' ').any(|flag| flag == "hg")
        };
        for (bytes, asked) in [(3 << 20, 4 << 20), ((3 << 20) - 1, 2 << 20)] {
            SPACE.advise_huge(0, bytes, true);
            assert!(is_asked(0) && is_asked(asked - 1), "{bytes}");
            assert!(!is_asked(asked), "{bytes}");
            SPACE.advise_huge(0, bytes, false);
            assert!(!is_asked(0), "{bytes}");
        }
    }
}
