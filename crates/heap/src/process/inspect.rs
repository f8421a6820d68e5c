//! Reads the heaps of another process from outside.
//!
//! Pure decoding over [`Memory`], which can read the process. Its data was written for the process
//! itself, which runs on meanwhile: readings may be inconsistent, and a heap may end while it is
//! read. So nothing is trusted: every address and count is checked against the
//! [directory](Directory), the directory against the layout known here, and every walk has an end.
//! Nonsense is left out.
//!
//! ```no_run
//! use hearth_heap::inspect::{Memory, Watched};
//!
//! fn live(process: impl Memory, directory: u64) -> Option<u64> {
//!     let watched = Watched::at(process, directory).ok()?;
//!     let mut bytes = 0;
//!     watched.heaps(|heap| bytes += heap.live());
//!     Some(bytes)
//! }
//! ```

// Miri cannot read these files.
#[cfg(all(test, not(miri)))]
mod tests;

use crate::ground::geometry::LEVELS;
use crate::heap::custody;
use core::ops::Range;

use crate::ground::geometry::{
    ARENA_BYTES, ARENA_SHIFT, CHUNK_BYTES, CHUNK_SHIFT, CHUNKS_MAX, CLASSES, Class, FIRST_SLOT,
    RegionId, SLOTS, granule_bytes, region_shift,
};
use crate::ground::words;
use crate::store::pool::NODES_MAX;
use crate::store::space::ChunkTag;

pub use crate::ground::directory::{Directory, MAGIC, NAME, VERSION};

/// Chunks per arena.
pub const ARENA_CHUNKS: usize = ARENA_BYTES / CHUNK_BYTES;

/// The memory of another process.
pub trait Memory {
    /// Fills `into` from an address on. False if it cannot; the caller then ignores `into`.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

impl<M: Memory + ?Sized> Memory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        (**self).read(address, into)
    }
}

/// Reason why a directory cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no directory.
    Absent,
    /// It has another layout, of this version.
    Version(u64),
    /// Its numbers contradict each other.
    Damaged,
}

/// The use of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeapKind {
    /// A thread's.
    Thread,
    /// An ended thread's; the next thread on the node takes it over.
    Parked,
    /// A nursery, which lends pages to components' heaps.
    Nursery,
    /// A component's.
    Component,
    /// An ended component's, while others still have blocks of it.
    Orphan,
}

/// A reading of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapReading {
    /// The number, which may have belonged to a heap that has ended.
    pub number: u32,
    /// The use.
    pub kind: HeapKind,
    /// The node, by index.
    pub node: usize,
    /// Bytes of blocks.
    pub used: u64,
    /// Bytes of cached blocks among these: freed lately, or cut ahead.
    pub in_front: u64,
    /// Bytes of the heap itself among these.
    pub header: u64,
    /// Bytes of whole pages in its chunks that may have memory behind them.
    pub touched: u64,
    /// The number of its chunks.
    pub chunks: u64,
    /// Bytes of pages from nurseries.
    pub lent: u64,
}

impl HeapReading {
    /// Bytes of blocks that the program has, or that others have freed and the heap has not taken
    /// back. A nursery's blocks count where they are lent to.
    pub fn live(&self) -> u64 {
        match self.kind {
            HeapKind::Nursery => 0,
            _ => self.used.saturating_sub(self.in_front + self.header),
        }
    }

    /// Bytes of its chunks and pages.
    pub fn owned(&self) -> u64 {
        (self.chunks << CHUNK_SHIFT) + self.lent
    }

    /// Bytes of them that may have memory behind them. What a nursery lends counts there, too.
    pub fn resident(&self) -> u64 {
        self.touched.min(self.chunks << CHUNK_SHIFT) + self.lent
    }
}

/// The use of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// Unused, a part of a large block, or a thread's heap itself.
    #[default]
    None,
    /// Belongs to the heap with this number.
    Heap(u32),
    /// Belongs to the nursery with this number.
    Nursery(u32),
    /// The first of a large block, with its number of chunks.
    Large(u32),
}

impl Tag {
    fn of(tag: u32) -> Tag {
        let tag = ChunkTag(tag);
        match tag.kind() {
            ChunkTag::OWNED => Tag::Heap(tag.number()),
            ChunkTag::SHARED => Tag::Nursery(tag.number()),
            ChunkTag::LARGE => Tag::Large(tag.number()),
            _ => Tag::None,
        }
    }
}

/// A reading of an arena, with one bit for each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaReading {
    /// The number, counted over all nodes.
    pub number: usize,
    /// Free chunks.
    pub free: u64,
    /// Chunks that were written to and given back, and still have memory behind them.
    pub used: u64,
    /// Chunks with pages that have migrated to the node of their heap.
    pub brought: u64,
    /// The use of each chunk.
    pub tags: [Tag; ARENA_CHUNKS],
}

/// A reading of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReading {
    /// The system's number.
    pub number: u32,
    /// The arenas in use.
    pub arenas: Range<usize>,
}

/// The regions of a chunk: free granules and starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    words: [(u64, u64); SLOTS],
}

impl Regions {
    /// Levels and free granules of all regions. A slot without starts and free granules has no
    /// region.
    pub fn all(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..LEVELS).flat_map(|level| {
            let end = FIRST_SLOT.get(level + 1).copied().unwrap_or(SLOTS);
            let words = &self.words[FIRST_SLOT[level]..end];
            let alive = words.iter().filter(|(free, starts)| free | starts != 0);
            alive.map(move |(free, _)| (level, *free))
        })
    }

    /// Free bytes of the chunk in its own regions, of levels up to a chunk's size.
    fn free_inside(&self) -> usize {
        let bytes = |(level, free): (usize, u64)| free.count_ones() as usize * granule_bytes(level);
        self.all()
            .filter(|(level, _)| region_shift(*level) <= CHUNK_SHIFT)
            .map(bytes)
            .sum()
    }

    /// Free bytes of a chunk in a larger region that begins in this one, `further` chunks before.
    fn free_of_larger(&self, level: usize, further: usize) -> usize {
        let granules = CHUNK_BYTES / granule_bytes(level);
        let (free, _) = self.words[FIRST_SLOT[level]];
        let mine = free >> (granules * further) & ((1 << granules) - 1);
        mine.count_ones() as usize * granule_bytes(level)
    }
}

/// The space of another process.
#[derive(Clone, Copy, Debug)]
pub struct Watched<M> {
    memory: M,
    directory: Directory,
}

/// The largest header of a heap that is believed.
const HEAP_BYTES_MAX: usize = 4096;
/// The largest array of caches that is believed.
const FRONTS_BYTES_MAX: usize = 128 * 64;
const META_BYTES_MAX: usize = 4096;
/// Entries read at once.
const ENTRIES: usize = 64;
const ENTRY_BYTES_MAX: usize = 256;
/// Mappings read at once.
const MAPPINGS: usize = 64;
const MAPPING_BYTES_MAX: usize = 64;
const SEGMENT_BYTES_MAX: usize = 64;
/// The most heaps that are believed.
const ENTRIES_MAX: u64 = 1 << 24;
const MAPPINGS_MAX: u64 = 1 << 24;
const SEGMENTS_MAX: u64 = 64;
/// Above any address of a process, and far from overflow.
const ADDRESS_MAX: u64 = 1 << 57;

fn word(bytes: &[u8], at: u64) -> u64 {
    let at = at as usize;
    let bytes = bytes.get(at..at.wrapping_add(8));
    bytes.map_or(0, |bytes| {
        u64::from_le_bytes(core::array::from_fn(|nth| bytes[nth]))
    })
}

fn half(bytes: &[u8], at: u64) -> u32 {
    let at = at as usize;
    let bytes = bytes.get(at..at.wrapping_add(4));
    bytes.map_or(0, |bytes| {
        u32::from_le_bytes(core::array::from_fn(|nth| bytes[nth]))
    })
}

impl<M: Memory> Watched<M> {
    /// Reads the directory at an address.
    ///
    /// # Errors
    /// If there is none, or none that this version can follow.
    pub fn at(memory: M, address: u64) -> Result<Watched<M>, Unfit> {
        // The layout behind the first two words depends on the version.
        let mut head = [0; 16];
        if !memory.read(address, &mut head) || word(&head, 0) != MAGIC {
            return Err(Unfit::Absent);
        }
        if word(&head, 8) != VERSION {
            return Err(Unfit::Version(word(&head, 8)));
        }
        let mut bytes = [0; 8 * Directory::WORDS];
        if !memory.read(address, &mut bytes) {
            return Err(Unfit::Damaged);
        }
        let words = core::array::from_fn(|nth| word(&bytes, nth as u64 * 8));
        let directory = Directory::from_words(words);
        if !is_sound(&directory) {
            return Err(Unfit::Damaged);
        }
        Ok(Watched { memory, directory })
    }

    /// The directory of the process.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The number of nodes that are told apart.
    pub fn nodes(&self) -> usize {
        nodes_of(&self.directory) as usize
    }

    /// A node, by its index. None if it cannot be read.
    pub fn node(&self, node: usize) -> Option<NodeReading> {
        if node >= self.nodes() {
            return None;
        }
        let known = &self.directory;
        let mut number = [0; 2];
        self.fill(
            known.node_numbers,
            known.node_numbers_stride,
            node,
            &mut number,
        )?;
        let pool = known.pools + known.pools_stride * node as u64;
        let begun = self.half_at(pool + known.pool_begun_at)?;
        let open = self.half_at(pool + known.pool_open_at)?;
        let most = 1usize << known.node_shift;
        let first = most * node;
        Some(NodeReading {
            number: u32::from(u16::from_le_bytes(number)),
            arenas: first..first + (begun.min(open) as usize).min(most),
        })
    }

    /// An arena in use. None if it cannot be read.
    pub fn arena(&self, arena: usize) -> Option<ArenaReading> {
        if arena as u64 >= self.directory.arenas {
            return None;
        }
        let known = &self.directory;
        let mut words = [0; 16];
        self.fill(
            known.arena_words,
            known.arena_words_stride,
            arena,
            &mut words,
        )?;
        let mut brought = [0; 8];
        self.fill(
            known.arena_brought,
            known.arena_brought_stride,
            arena,
            &mut brought,
        )?;
        let mut tags = [0; 4 * ARENA_CHUNKS];
        self.fill(known.tags, 4 * ARENA_CHUNKS as u64, arena, &mut tags)?;
        Some(ArenaReading {
            number: arena,
            free: word(&words, 0),
            used: word(&words, 8),
            brought: word(&brought, 0),
            tags: core::array::from_fn(|nth| Tag::of(half(&tags, nth as u64 * 4))),
        })
    }

    /// The regions of a heap's chunk. None if they cannot be read.
    pub fn regions(&self, chunk: usize) -> Option<Regions> {
        if chunk as u64 >= self.directory.arenas * ARENA_CHUNKS as u64 {
            return None;
        }
        let known = &self.directory;
        let mut meta = [0; META_BYTES_MAX];
        let meta = &mut meta[..known.meta_stride as usize];
        self.fill(known.meta, known.meta_stride, chunk, meta)?;
        let region = |slot: usize| {
            let at = known.regions_at + known.regions_stride * slot as u64;
            let free = word(meta, at + known.region_free_at);
            let starts = word(meta, at + known.region_starts_at);
            // All granules of deferred blocks count as free.
            let deferred = free & starts;
            (
                free | words::blocks(free, starts, deferred),
                starts & !deferred,
            )
        };
        // The first slot has no region.
        let words = core::array::from_fn(|slot| if slot == 0 { (0, 0) } else { region(slot) });
        Some(Regions { words })
    }

    /// The filled fraction of each chunk of an arena, 0 for chunks without a heap; calls `each`
    /// with the level and free granules of every region.
    pub fn filled(
        &self,
        arena: &ArenaReading,
        mut each: impl FnMut(usize, u64),
    ) -> [f32; ARENA_CHUNKS] {
        let mut of_chunks = [None; ARENA_CHUNKS];
        for (nth, tag) in arena.tags.iter().enumerate() {
            if matches!(tag, Tag::Heap(_) | Tag::Nursery(_)) {
                of_chunks[nth] = self.regions(arena.number * ARENA_CHUNKS + nth);
            }
        }
        for regions in of_chunks.iter().flatten() {
            regions.all().for_each(|(level, free)| each(level, free));
        }
        core::array::from_fn(|nth| {
            let Some(regions) = &of_chunks[nth] else {
                return 0.0;
            };
            let mut free = regions.free_inside();
            for level in (0..LEVELS).filter(|level| region_shift(*level) > CHUNK_SHIFT) {
                let offset = nth << CHUNK_SHIFT;
                let first = RegionId::at(level, offset).chunk();
                if let Some(larger) = &of_chunks[first] {
                    free += larger.free_of_larger(level, nth - first);
                }
            }
            1.0 - free.min(CHUNK_BYTES) as f32 / CHUNK_BYTES as f32
        })
    }

    /// All heaps, by number.
    pub fn heaps(&self, mut each: impl FnMut(HeapReading)) {
        let known = &self.directory;
        let next = u64::from(self.half_at(known.entries_next).unwrap_or(0));
        let stride = known.entries_stride as usize;
        let mut entries = [0; ENTRIES * ENTRY_BYTES_MAX];
        let end = next.min(known.entries_most);
        // Number 0 is never used.
        let mut first = 1;
        while first < end {
            let count = (end - first).min(ENTRIES as u64) as usize;
            let read = &mut entries[..count * stride];
            let address = known.entries + first * known.entries_stride;
            if self.memory.read(address, read) {
                for (nth, entry) in read.chunks_exact(stride).enumerate() {
                    if let Some(heap) = self.heap(first as u32 + nth as u32, entry) {
                        each(heap);
                    }
                }
            }
            first += count as u64;
        }
    }

    /// The number of blocks that are mappings of their own, and their bytes.
    pub fn mapped(&self) -> (u64, u64) {
        let known = &self.directory;
        let mut segment = [0; SEGMENT_BYTES_MAX];
        let segment = &mut segment[..known.segments_stride as usize];
        (0..known.segments_count as usize).fold((0, 0), |all, nth| {
            match self.fill(known.segments, known.segments_stride, nth, segment) {
                Some(()) => self.mapped_in(segment, all),
                None => all,
            }
        })
    }

    /// Adds those of a segment.
    fn mapped_in(&self, segment: &[u8], before: (u64, u64)) -> (u64, u64) {
        let known = &self.directory;
        let places = word(segment, known.segment_mappings_at);
        let places_count = word(segment, known.segment_count_at);
        // The count is published last.
        if places_count > MAPPINGS_MAX || places >= ADDRESS_MAX {
            return before;
        }
        let stride = known.mappings_stride as usize;
        let mut bytes = [0; MAPPINGS * MAPPING_BYTES_MAX];
        let (mut first, mut all) = (0, before);
        while first < places_count {
            let count = (places_count - first).min(MAPPINGS as u64) as usize;
            let read = &mut bytes[..count * stride];
            if self
                .memory
                .read(places + first * known.mappings_stride, read)
            {
                for mapping in read.chunks_exact(stride) {
                    // 1 marks a place that is being changed.
                    if word(mapping, known.mapping_block_at) > 1 {
                        let length = word(mapping, known.mapping_bytes_at);
                        all = (all.0 + 1, all.1.saturating_add(length));
                    }
                }
            }
            first += count as u64;
        }
        all
    }

    // ---- the heaps ---------------------------------------------------------------------------

    /// Reads a heap by its entry. None if there is none, or it is ending.
    fn heap(&self, number: u32, entry: &[u8]) -> Option<HeapReading> {
        let known = &self.directory;
        let address = word(entry, known.entry_heap_at);
        let data = known.data..known.data + (known.arenas << ARENA_SHIFT);
        if !data.contains(&address) || !address.is_multiple_of(64) {
            return None;
        }
        let mut header = [0; HEAP_BYTES_MAX];
        let header = &mut header[..known.heap_bytes as usize];
        if !self.memory.read(address, header) {
            return None;
        }
        let node = half(header, known.heap_node_at) as usize;
        if half(header, known.heap_number_at) != number || node >= self.nodes() {
            return None;
        }
        let own = ChunkTag(half(header, known.heap_own_at));
        let kind = match custody::seen(half(entry, known.entry_custody_at)) {
            _ if own.kind() == ChunkTag::SHARED => HeapKind::Nursery,
            custody::Seen::Private => HeapKind::Component,
            custody::Seen::Orphan => HeapKind::Orphan,
            custody::Seen::Thread if half(entry, known.entry_family_at) == 0 => HeapKind::Parked,
            custody::Seen::Thread => HeapKind::Thread,
        };
        let is_private = matches!(kind, HeapKind::Component | HeapKind::Orphan);
        let all = known.arenas << ARENA_SHIFT;
        let reading = HeapReading {
            number,
            kind,
            node,
            used: word(header, known.heap_used_at),
            in_front: self.in_front(header).unwrap_or(0),
            header: u64::from(is_private) * known.private_header_bytes,
            touched: word(header, known.heap_touched_at),
            chunks: word(header, known.heap_chunks_at),
            lent: self.lent(header),
        };
        let is_possible = reading.used <= all
            && reading.touched <= all
            && reading.chunks <= known.arenas * ARENA_CHUNKS as u64;
        is_possible.then_some(reading)
    }

    /// Bytes of cached blocks.
    fn in_front(&self, header: &[u8]) -> Option<u64> {
        let known = &self.directory;
        let count = half(header, known.heap_fronts_count_at) as usize;
        // Caches of mixtures come last, and hold nothing.
        let bytes = count.min(CLASSES) * known.fronts_stride as usize;
        if bytes == 0 {
            return None;
        }
        let mut caches = [0; FRONTS_BYTES_MAX];
        let caches = &mut caches[..bytes];
        if !self.memory.read(word(header, known.heap_fronts_at), caches) {
            return None;
        }
        let caches = caches.chunks_exact(known.fronts_stride as usize);
        let held = caches.enumerate().map(|(class, cache)| {
            let count = u64::from(half(cache, known.front_count_at));
            count * Class::from_number(class).bytes() as u64
        });
        Some(held.sum())
    }

    /// Bytes of pages from nurseries.
    fn lent(&self, header: &[u8]) -> u64 {
        let known = &self.directory;
        let roots =
            (0..known.heap_pages_count).map(|nth| half(header, known.heap_pages_at + nth * 4));
        roots
            .map(RegionId)
            .filter(|root| !root.is_none() && root.slot() < SLOTS)
            .map(|root| 1 << region_shift(root.level()))
            .sum()
    }

    // ---- reading -----------------------------------------------------------------------------

    /// Reads the nth element of an array.
    fn fill(&self, start: u64, stride: u64, nth: usize, into: &mut [u8]) -> Option<()> {
        let address = start.checked_add(stride.checked_mul(nth as u64)?)?;
        self.memory.read(address, into).then_some(())
    }

    fn half_at(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let read = self.memory.read(address, &mut bytes);
        read.then(|| u32::from_le_bytes(bytes))
    }
}

/// A node has a power of two of arenas; a single node may have fewer.
fn nodes_of(known: &Directory) -> u64 {
    (known.arenas >> known.node_shift).max(1)
}

/// Whether the directory can be followed: every field lies within its structure, every size can be
/// read here, and no address overflows.
fn is_sound(known: &Directory) -> bool {
    let within = |places: &[(u64, u64)], size: u64| {
        let mut ends = places.iter().map(|(at, bytes)| at.checked_add(*bytes));
        ends.all(|end| end.is_some_and(|end| end <= size))
    };
    let regions = known.regions_stride.checked_mul(SLOTS as u64);
    let pages = known.heap_pages_count.checked_mul(4);
    let (Some(regions), Some(pages)) = (regions, pages) else {
        return false;
    };
    let is_layout = known.words == Directory::WORDS as u64
        && known.chunk_shift == u64::from(CHUNK_SHIFT)
        && known.arena_shift == u64::from(ARENA_SHIFT)
        && known.tags_stride == 4
        && known.arena_words_stride == 16
        && known.arena_brought_stride == 8;
    let is_bounded = (1..=(CHUNKS_MAX / ARENA_CHUNKS) as u64).contains(&known.arenas)
        && known.node_shift < 32
        && (1..=NODES_MAX as u64).contains(&nodes_of(known))
        && known.entries_most <= ENTRIES_MAX
        && known.segments_count <= SEGMENTS_MAX
        && known.pools_stride <= 1 << 16
        && known.node_numbers_stride <= 1 << 16;
    let is_read = known.meta_stride <= META_BYTES_MAX as u64
        && known.heap_bytes <= HEAP_BYTES_MAX as u64
        && (1..=ENTRY_BYTES_MAX as u64).contains(&known.entries_stride)
        && (1..=MAPPING_BYTES_MAX as u64).contains(&known.mappings_stride)
        && (1..=SEGMENT_BYTES_MAX as u64).contains(&known.segments_stride)
        && (1..=(FRONTS_BYTES_MAX / CLASSES) as u64).contains(&known.fronts_stride);
    let parts = [
        known.data,
        known.tags,
        known.arena_words,
        known.arena_brought,
        known.meta,
        known.node_numbers,
        known.pools,
        known.entries,
        known.entries_next,
        known.segments,
    ];
    let at_all = [known.pool_begun_at, known.pool_open_at];
    is_layout
        && is_bounded
        && is_read
        && parts.iter().all(|part| (1..ADDRESS_MAX).contains(part))
        && at_all.iter().all(|at| *at < known.pools_stride)
        && within(&[(known.regions_at, regions)], known.meta_stride)
        && within(
            &[(known.region_free_at, 8), (known.region_starts_at, 8)],
            known.regions_stride,
        )
        && within(
            &[
                (known.entry_heap_at, 8),
                (known.entry_custody_at, 4),
                (known.entry_family_at, 4),
            ],
            known.entries_stride,
        )
        && within(
            &[
                (known.heap_number_at, 4),
                (known.heap_node_at, 4),
                (known.heap_own_at, 4),
                (known.heap_pages_at, pages),
                (known.heap_used_at, 8),
                (known.heap_touched_at, 8),
                (known.heap_chunks_at, 8),
                (known.heap_fronts_at, 8),
                (known.heap_fronts_count_at, 4),
            ],
            known.heap_bytes,
        )
        && within(&[(known.front_count_at, 4)], known.fronts_stride)
        && within(
            &[(known.segment_mappings_at, 8), (known.segment_count_at, 8)],
            known.segments_stride,
        )
        && within(
            &[(known.mapping_block_at, 8), (known.mapping_bytes_at, 8)],
            known.mappings_stride,
        )
        && known.private_header_bytes <= 1 << 16
}
