//! The space: the addresses of all heaps, and where in them everything lies.
//!
//! ```text
//! | tags | owners | kinds | words | hints | remote | meta   | migrated | data   |
//!   4 B    64 B     64 B    16 B            1408 B   3040 B   8 B        64 KiB
//!   for each chunk; words and migrated for each arena
//! ```
//!
//! The metadata of a chunk is found by arithmetic from any address in the chunk, without touching
//! it. The data is divided evenly among the nodes. Pages become writable an arena at a time, so
//! that a program that locks all its memory does not lock what it does not use.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | a chunk's tag | the holder of the chunk | any thread that frees |
//! | a page's owner | the heap that takes or gives back the page | any thread with a block there |
//! | a KiB's kind | the heap that has the chunk | any thread with a block that starts there |
//! | meta | the heap that has the chunk | that heap; the words: any thread with a block there |
//! | remote | threads that free from elsewhere | the heap that has the chunk |
//! | an arena's word | any thread, by atomic exchange | any thread |
//! | an arena's migrated | holders of chunks in the same huge page | whoever gives the chunk back |

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::ground::directory::Directory;
use crate::ground::geometry::{
    ARENA_BYTES, ARENA_SHIFT, CHUNK_BYTES, CHUNK_SHIFT, CHUNKS_MAX, Class, LEVELS, RegionId, SLOTS,
    region_shift,
};
use crate::ground::os::{self, Access, Taken};
use crate::ground::words;
use crate::store::nodes;
use crate::store::pool::{Arenas, Opened, Prepared};
use crate::store::region::{KIB_SHIFT, Kind, PAGE_LEVEL, Region};

/// The metadata of one chunk.
#[repr(C)]
pub(crate) struct Meta {
    pub(crate) regions: [Region; SLOTS],
    /// Each region's grade, by `words::grade`, or a mark that it is in no list of grades.
    pub(crate) grades: [Cell<u8>; SLOTS],
    /// The state of its regions of level 3 and above.
    pub(crate) page_states: [PageState; LEVELS - PAGE_LEVEL],
}

/// The page state of a region of whole pages.
#[repr(C)]
pub(crate) struct PageState {
    /// Pages that may have memory behind them: a bit for each granule, or for each page where
    /// granules are smaller.
    pub(crate) touched: Cell<u64>,
    /// Blocks of idle pages that a component's heap has lent: a bit for each granule where one
    /// starts; in a chunk, a bit for each page where one of its own starts, and 16 above that,
    /// where one of its regions of level 2. Zero where there is no region.
    pub(crate) lent: Cell<u64>,
    /// Neighbours in the heap's ring of all such regions.
    pub(crate) before: Cell<u32>,
    pub(crate) behind: Cell<u32>,
    /// Whether it came from the pool.
    pub(crate) is_root: Cell<bool>,
    /// For a region from the pool: the node that pages have migrated to, other than their addresses
    /// say; whether some may lie on a third node; and which pages, as in `touched`.
    pub(crate) migrated_to: Cell<u8>,
    pub(crate) is_astray: Cell<bool>,
    unused: [u8; 5],
    pub(crate) migrated: Cell<u64>,
}

/// The part of a region that other threads write.
#[repr(C)]
pub(crate) struct Remote {
    /// Blocks freed from elsewhere, by their first granules.
    pub(crate) marks: AtomicU64,
    /// The next region in the owner's queue.
    pub(crate) next: AtomicU32,
    unused: u32,
}

const META_STRIDE: usize = size_of::<Meta>();
const REMOTE_STRIDE: usize = size_of::<Remote>() * SLOTS;
/// One number per page.
const OWNERS_STRIDE: usize = (CHUNK_BYTES / os::PAGE) * size_of::<u32>();
/// One byte per KiB.
const KINDS_STRIDE: usize = CHUNK_BYTES >> KIB_SHIFT;
const _: () = assert!(META_STRIDE == 3040 && REMOTE_STRIDE == 1408);

/// The use of a chunk: four bits for its kind, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkTag(pub(crate) u32);

impl ChunkTag {
    /// Unused.
    pub(crate) const NONE: u32 = 0;
    /// A heap's; the number is the heap's.
    pub(crate) const OWNED: u32 = 1;
    /// The first of a block of whole chunks; the number is how many.
    pub(crate) const LARGE: u32 = 2;
    /// The same for a block with guard pages: see [`crate::store::guarded`].
    pub(crate) const GUARDED: u32 = 4;
    /// The same for such a block after its free, while it is kept inaccessible.
    pub(crate) const QUARANTINED: u32 = 5;
    /// A nursery's; the number is the nursery's, and pages that it lends have owners of their own.
    pub(crate) const SHARED: u32 = 3;

    #[inline]
    pub(crate) const fn of(kind: u32, number: u32) -> ChunkTag {
        ChunkTag(kind | number << 4)
    }

    #[inline]
    pub(crate) const fn kind(self) -> u32 {
        self.0 & 15
    }

    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 >> 4
    }
}

/// The space of the process. There is one, as an address alone must lead to its heap.
pub(crate) static SPACE: Space = Space::new();

/// The arenas and chunks of all nodes.
pub(crate) struct Space {
    /// The first byte of the data; 0 before the space is made.
    pub(crate) data: AtomicUsize,
    tags: AtomicUsize,
    owners: AtomicUsize,
    kinds: AtomicUsize,
    words: AtomicUsize,
    hints: AtomicUsize,
    remote: AtomicUsize,
    meta: AtomicUsize,
    /// Chunks with pages that may lie on another node than their addresses say.
    migrated: AtomicUsize,
    /// The number of arenas.
    arenas: AtomicUsize,
    /// log2 of the arenas per node.
    node_shift: AtomicU32,
    /// Whether huge pages were ever asked for behind a large block.
    may_be_huge: AtomicBool,
    /// Whether arenas get their addresses only when they are opened.
    is_sparse: AtomicBool,
}

/// The smallest useful space.
const ARENAS_MIN: usize = 2;
/// 1 TiB. Machines with more memory are not known to need more of it in small blocks.
const ARENAS: usize = 1 << 18;
const _: () = assert!(ARENAS << (ARENA_SHIFT - CHUNK_SHIFT) <= CHUNKS_MAX);

/// The bytes of an arena's metadata.
pub(crate) const ACCOUNT_BYTES: usize = {
    const CHUNKS: usize = ARENA_BYTES / CHUNK_BYTES;
    let of_chunk =
        size_of::<ChunkTag>() + OWNERS_STRIDE + KINDS_STRIDE + REMOTE_STRIDE + META_STRIDE;
    let of_arena = size_of::<[AtomicU64; 2]>() + size_of::<AtomicU64>();
    CHUNKS * of_chunk + of_arena
};

/// Address space left to others under a limit, at least, beyond what the process uses when it
/// begins: two stacks.
const LEFT_MIN: usize = 16 << 20;

/// The first arenas of a node have no huge pages: the first touch of a small block would bring two
/// megabytes in, and take as long. Beyond these 64 MiB the system decides. With huge pages asked
/// for beyond 8 MiB, programs that touch more than their caches hold were up to a tenth faster, but
/// 50 threads with small heaps had 56 MiB resident instead of 34.
const ARENAS_SMALL: usize = 16;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The least arenas per node where nodes are told apart: one top word of hints.
const ARENAS_OF_NODE_MIN: usize = 4096;

/// The outcome of making a space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Yes,
    /// The system has no place for the arenas of a sparse space.
    NoPlace,
    Refused,
}

/// The hints for a kind of room: see [`crate::store::hints`].
#[repr(C)]
struct HintWords {
    low: [AtomicU64; ARENAS / 64],
    middle: [AtomicU64; ARENAS / 4096],
}

const HINTS_BYTES: usize = size_of::<HintWords>() * crate::store::pool::ROOMS;

impl Space {
    pub(crate) const fn new() -> Space {
        Space {
            data: AtomicUsize::new(0),
            tags: AtomicUsize::new(0),
            owners: AtomicUsize::new(0),
            kinds: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
            hints: AtomicUsize::new(0),
            remote: AtomicUsize::new(0),
            meta: AtomicUsize::new(0),
            migrated: AtomicUsize::new(0),
            arenas: AtomicUsize::new(0),
            node_shift: AtomicU32::new(0),
            may_be_huge: AtomicBool::new(false),
            is_sparse: AtomicBool::new(false),
        }
    }

    /// Reserves addresses for `nodes` nodes, as many as the limits allow; if they allow few, nodes
    /// are not told apart. False if even the smallest space does not fit.
    ///
    /// Under a limit, a reservation takes addresses from stacks, files and large blocks. So arenas
    /// get addresses as they are opened, and whoever comes first has them; but arenas keep them, so
    /// a part is left to others. Where that is impossible, and where nodes are told apart, half of
    /// the limit is left to others.
    pub(crate) fn make(&self, nodes: usize) -> bool {
        let mut arenas = ARENAS;
        if let Some(limit) = os::addresses_max() {
            let left = nodes::mapped_bytes() + (limit / 16).max(LEFT_MIN);
            let fit = limit.saturating_sub(left + HINTS_BYTES) / (ARENA_BYTES + ACCOUNT_BYTES);
            let fit = arenas.min(fit);
            if nodes == 1 && fit >= ARENAS_MIN {
                match self.make_with(fit, 1, true) {
                    Made::NoPlace => {}
                    made => return made == Made::Yes,
                }
            }
            // Alignment costs one.
            let fit = (limit / 2 / (ARENA_BYTES + ACCOUNT_BYTES)).saturating_sub(1);
            arenas = arenas.min((fit + 1).next_power_of_two() / 2);
        }
        while arenas >= ARENAS_MIN {
            let fit = arenas / nodes.next_power_of_two() >= ARENAS_OF_NODE_MIN;
            if self.make_of(arenas, if fit { nodes } else { 1 }) {
                return true;
            }
            arenas /= 2;
        }
        false
    }

    pub(crate) fn make_of(&self, arenas: usize, nodes: usize) -> bool {
        self.make_with(arenas, nodes, false) == Made::Yes
    }

    fn make_with(&self, arenas: usize, nodes: usize, is_sparse: bool) -> Made {
        let chunks = arenas << (ARENA_SHIFT - CHUNK_SHIFT);
        let parts = [
            (&self.tags, chunks * size_of::<ChunkTag>()),
            (&self.owners, chunks * OWNERS_STRIDE),
            (&self.kinds, chunks * KINDS_STRIDE),
            (&self.words, arenas * 16),
            (&self.hints, HINTS_BYTES),
            (&self.remote, chunks * REMOTE_STRIDE),
            (&self.meta, chunks * META_STRIDE),
            (&self.migrated, arenas * 8),
        ];
        let data_bytes = arenas << ARENA_SHIFT;
        let pages = |bytes: usize| bytes.next_multiple_of(os::PAGE);
        let account: usize = parts.iter().map(|(_, bytes)| pages(*bytes)).sum();
        let bytes = if is_sparse {
            account
        } else {
            // Alignment costs one arena.
            account + data_bytes + ARENA_BYTES
        };
        let start = os::reserve(bytes);
        if start == 0 {
            return Made::Refused;
        }
        let mut place = start;
        for (part, bytes) in &parts {
            part.store(place, Ordering::Relaxed);
            place += pages(*bytes);
        }
        let (tags, hints) = (&parts[0], &parts[4]);
        // Any thread may read the tag of any chunk. Fresh tags are zero: unused.
        // SAFETY: inside of what has just been reserved.
        let allowed = unsafe {
            os::allow(tags.0.load(Ordering::Relaxed), tags.1, Access::Read)
                && os::allow(hints.0.load(Ordering::Relaxed), hints.1, Access::Write)
        };
        let data = if is_sparse {
            empty_place(start, data_bytes)
        } else {
            Some(place.next_multiple_of(ARENA_BYTES))
        };
        let Some(data) = data.filter(|_| allowed) else {
            // SAFETY: nobody has seen it yet.
            unsafe { os::unmap(start, bytes) };
            return if allowed {
                Made::NoPlace
            } else {
                Made::Refused
            };
        };
        self.arenas.store(arenas, Ordering::Relaxed);
        self.is_sparse.store(is_sparse, Ordering::Relaxed);
        // Only a single node may have a number of arenas that is not a power of two.
        let per_node = arenas.next_power_of_two() / nodes.next_power_of_two();
        self.node_shift
            .store(per_node.trailing_zeros(), Ordering::Relaxed);
        let reserved_nodes = if is_sparse { 0 } else { arenas / per_node };
        for node in 0..reserved_nodes {
            let first = data + ((node * per_node) << ARENA_SHIFT);
            let bytes = ARENAS_SMALL.min(per_node) << ARENA_SHIFT;
            // SAFETY: inside of what was reserved.
            unsafe { os::huge_pages(first, bytes, false) };
        }
        self.data.store(data, Ordering::Release);
        Made::Yes
    }

    /// Binds each node's part to that node.
    pub(crate) fn bind(&self, numbers: impl Iterator<Item = u32>) {
        let arenas = self.arenas_of_node();
        for (node, number) in numbers.enumerate() {
            for (part, stride) in self.strides() {
                let start = part.load(Ordering::Relaxed) + node * arenas * stride;
                // SAFETY: inside of what was reserved.
                unsafe { os::prefer_node(start, arenas * stride, number) };
            }
        }
    }

    /// The parts that belong to arenas, and the bytes of each per arena.
    fn strides(&self) -> [(&AtomicUsize, usize); 8] {
        const CHUNKS: usize = ARENA_BYTES / CHUNK_BYTES;
        [
            (&self.tags, CHUNKS * size_of::<ChunkTag>()),
            (&self.owners, CHUNKS * OWNERS_STRIDE),
            (&self.kinds, CHUNKS * KINDS_STRIDE),
            (&self.words, 16),
            (&self.remote, CHUNKS * REMOTE_STRIDE),
            (&self.meta, CHUNKS * META_STRIDE),
            (&self.migrated, 8),
            (&self.data, ARENA_BYTES),
        ]
    }

    /// Describes the space for inspection.
    pub(crate) fn describe(&self, directory: &mut Directory) {
        let address = |part: &AtomicUsize| part.load(Ordering::Relaxed) as u64;
        *directory = Directory {
            data: address(&self.data),
            arenas: address(&self.arenas),
            node_shift: u64::from(self.node_shift.load(Ordering::Relaxed)),
            tags: address(&self.tags),
            tags_stride: size_of::<ChunkTag>() as u64,
            owners: address(&self.owners),
            owners_stride: OWNERS_STRIDE as u64,
            kinds: address(&self.kinds),
            kinds_stride: KINDS_STRIDE as u64,
            arena_words: address(&self.words),
            arena_words_stride: 16,
            arena_brought: address(&self.migrated),
            arena_brought_stride: 8,
            remote: address(&self.remote),
            remote_stride: REMOTE_STRIDE as u64,
            meta: address(&self.meta),
            meta_stride: META_STRIDE as u64,
            regions_at: offset_of!(Meta, regions) as u64,
            regions_stride: size_of::<Region>() as u64,
            region_free_at: offset_of!(Region, free) as u64,
            region_starts_at: offset_of!(Region, starts) as u64,
            ..*directory
        };
    }

    /// Asks for huge pages behind a large block of whole arenas, or withdraws that for a node's
    /// first arenas. Elsewhere it stays, as small blocks there may have huge pages, too. A last
    /// huge page that the block fills by half counts: it replaces 256 faults or more.
    pub(crate) fn advise_huge(&self, arena: usize, bytes: usize, wanted: bool) {
        let is_small = arena & (self.arenas_of_node() - 1) < ARENAS_SMALL;
        let bytes = (bytes + HUGE_PAGE / 2) & !(HUGE_PAGE - 1);
        if bytes != 0 && (wanted || is_small) {
            let start = self.data() + (arena << ARENA_SHIFT);
            self.may_be_huge.store(true, Ordering::Relaxed);
            // SAFETY: inside of what was reserved.
            unsafe { os::huge_pages(start, bytes, wanted) };
        }
    }

    /// The number of nodes that are told apart.
    pub(crate) fn nodes(&self) -> usize {
        (self.arenas.load(Ordering::Relaxed) >> self.node_shift.load(Ordering::Relaxed)).max(1)
    }

    /// The node of a chunk, by its address.
    pub(crate) fn node_of_chunk(&self, chunk: usize) -> usize {
        self.node_of(chunk >> (ARENA_SHIFT - CHUNK_SHIFT))
    }

    fn migrated(&self, arena: usize) -> &AtomicU64 {
        let address = self.migrated.load(Ordering::Relaxed) + arena * 8;
        // SAFETY: as for `word`.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    /// Records that pages of a region migrate to another node, together with all that may lie in
    /// the same huge page.
    pub(crate) fn mark_migrated(&self, region: RegionId) {
        let (arena, mask) = self.chunks_with(region);
        self.migrated(arena).fetch_or(mask, Ordering::Relaxed);
    }

    /// Records that a region's pages are on their own node again.
    pub(crate) fn unmark_migrated(&self, region: RegionId) {
        let chunks = 1 << (region_shift(region.level()) - CHUNK_SHIFT);
        self.clear_migrated(
            region.chunk() >> 6,
            words::ones(chunks) << (region.chunk() & 63),
        );
    }

    /// The arena of a region, and the chunks there that move with it.
    fn chunks_with(&self, region: RegionId) -> (usize, u64) {
        let arena = region.chunk() >> (ARENA_SHIFT - CHUNK_SHIFT);
        let of_node = arena & (self.arenas_of_node() - 1);
        let bytes = 1 << region_shift(region.level());
        let may_be_huge = of_node >= ARENAS_SMALL || self.may_be_huge.load(Ordering::Relaxed);
        let (first, count) = chunks_with(region, bytes, may_be_huge);
        (arena, words::ones(count as u32) << (first & 63))
    }

    /// Bytes of data.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.arenas.load(Ordering::Relaxed) << ARENA_SHIFT
    }

    #[inline]
    pub(crate) fn data(&self) -> usize {
        self.data.load(Ordering::Relaxed)
    }

    pub(crate) fn tags_address(&self) -> usize {
        self.tags.load(Ordering::Relaxed)
    }

    pub(crate) fn meta_address(&self) -> usize {
        self.meta.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn tag(&self, chunk: usize) -> &AtomicU32 {
        debug_assert!(chunk << CHUNK_SHIFT < self.bytes());
        let address = self.tags.load(Ordering::Relaxed) + chunk * 4;
        // SAFETY: as for `word`; those that are not open yet may be read.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    /// The heap that owns a page in a nursery's chunk; 0 if none does.
    pub(crate) fn owner(&self, offset: usize) -> &AtomicU32 {
        let address = self.owners.load(Ordering::Relaxed) + offset / os::PAGE * size_of::<u32>();
        // SAFETY: as for `word`; the chunk is a heap's, so it is open.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    /// The remote part of a region.
    #[inline]
    pub(crate) fn remote(&self, region: RegionId) -> &Remote {
        let address = self.remote.load(Ordering::Relaxed)
            + region.chunk() * REMOTE_STRIDE
            + region.slot() * size_of::<Remote>();
        // SAFETY: as for `word`.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    /// The kind of the KiB at an offset.
    #[inline]
    pub(crate) fn kind(&self, offset: usize) -> &AtomicU8 {
        let address = self.kinds.load(Ordering::Relaxed) + (offset >> KIB_SHIFT);
        // SAFETY: as for `word`; the chunk belongs to a heap, so it is open.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    pub(crate) fn kinds_address(&self) -> usize {
        self.kinds.load(Ordering::Relaxed)
    }

    /// The region of a block, by its offset in the data. The chunk belongs to a heap.
    #[inline]
    pub(crate) fn region_of(&self, offset: usize) -> RegionId {
        let kind = Kind(self.kind(offset).load(Ordering::Relaxed));
        RegionId::at(kind.level().min(LEVELS - 1), offset)
    }

    /// The words of a region in an open chunk. Only its owner writes them.
    pub(crate) fn words_of(&self, region: RegionId) -> &Region {
        let meta = self.meta_address() + region.chunk() * META_STRIDE;
        let place: *const Meta = core::ptr::with_exposed_provenance(meta);
        // SAFETY: as the caller says. Only the owner uses the cells, and the words are atomic.
        unsafe {
            let regions = &raw const (*place).regions;
            &*regions.cast::<Region>().add(region.slot())
        }
    }

    /// The class of a live block, by its offset in the data: for any thread, in constant time,
    /// whatever the owner does meanwhile with other blocks. None if no block starts there.
    pub(crate) fn class_at(&self, offset: usize) -> Option<Class> {
        // Acquires the ends of blocks in mixed KiBs.
        let kind = Kind(self.kind(offset).load(Ordering::Acquire));
        let level = kind.level().min(LEVELS - 1);
        let region = RegionId::at(level, offset);
        self.words_of(region).class_of_live(kind, level, offset)
    }
}

/// The chunks of a region, widened to huge pages that may span it: the first, and how many.
fn chunks_with(region: RegionId, bytes: usize, may_be_huge: bool) -> (usize, usize) {
    const HUGE_CHUNKS: usize = (2 << 20) >> CHUNK_SHIFT;
    if may_be_huge {
        return (region.chunk() & !(HUGE_CHUNKS - 1), HUGE_CHUNKS);
    }
    (region.chunk(), bytes >> CHUNK_SHIFT)
}

/// Finds unmapped addresses for all arenas of a sparse space: far below the places that the system
/// picks for mappings, and just as random. A program may map something in between at an address of
/// its own choice; it takes nothing from the arenas, nor they from it.
fn empty_place(mapped: usize, bytes: usize) -> Option<usize> {
    const TRIES: usize = 4;
    let is_empty = |start: usize| {
        let is_done = os::take(start, os::PAGE) == Taken::Done;
        // SAFETY: just mapped, and nobody knows of it.
        is_done && unsafe { os::unmap(start, os::PAGE) }
    };
    (0..TRIES)
        .map(|nth| (mapped / 2 + nth * bytes).next_multiple_of(ARENA_BYTES))
        .find(|start| is_empty(*start) && is_empty(start + bytes - os::PAGE))
}

impl Arenas for Space {
    fn word(&self, arena: usize) -> &[AtomicU64; 2] {
        debug_assert!(arena < self.arenas.load(Ordering::Relaxed));
        let address = self.words.load(Ordering::Relaxed) + arena * 16;
        // SAFETY: part of the space, aligned, zero at first, and only accessed as atomics.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    fn hints(&self, room: usize) -> [&[AtomicU64]; 2] {
        debug_assert!(room < crate::store::pool::ROOMS);
        let address = self.hints.load(Ordering::Relaxed) + room * size_of::<HintWords>();
        // SAFETY: as for `word`.
        let words: &HintWords = unsafe { &*core::ptr::with_exposed_provenance(address) };
        [&words.low, &words.middle]
    }

    fn arenas_of_node(&self) -> usize {
        1 << self.node_shift.load(Ordering::Relaxed)
    }

    fn arenas_at_most(&self) -> usize {
        self.arenas_of_node()
            .min(self.arenas.load(Ordering::Relaxed))
    }

    fn is_sparse(&self) -> bool {
        self.is_sparse.load(Ordering::Relaxed)
    }

    fn pause(&self) {
        os::nap();
    }

    fn open_sparse(&self, arena: usize) -> Opened {
        let is_open = self.strides().iter().all(|(part, stride)| {
            let start = part.load(Ordering::Relaxed) + arena * stride;
            // SAFETY: the arena is part of the space; its data comes below.
            ptr::eq(*part, &raw const self.data)
                || unsafe { os::allow(start, *stride, Access::Write) }
        });
        if !is_open {
            return Opened::Refused;
        }
        let data = self.data() + (arena << ARENA_SHIFT);
        match os::take(data, ARENA_BYTES) {
            Taken::Done => {}
            Taken::Already => return Opened::Already,
            Taken::Refused => return Opened::Refused,
        }
        if arena < ARENAS_SMALL {
            // SAFETY: just mapped.
            unsafe { os::huge_pages(data, ARENA_BYTES, false) };
        }
        Opened::Done
    }

    fn near(&self, node: usize) -> impl Iterator<Item = usize> {
        nodes::order(node)
    }

    fn has_memory(&self, node: usize, arenas: usize) -> bool {
        nodes::count() == 1 || nodes::has_room(node, arenas << ARENA_SHIFT)
    }

    fn open(&self, first: usize, count: usize) -> bool {
        if self.is_sparse() {
            return (first..first + count).all(|arena| self.open_sparse(arena) == Opened::Done);
        }
        self.strides().iter().all(|(part, stride)| {
            let start = part.load(Ordering::Relaxed) + first * stride;
            // SAFETY: the arenas are part of the space.
            unsafe { os::allow(start, count * stride, Access::Write) }
        })
    }

    fn populate(&self, first: usize, count: usize) -> Prepared {
        let mut all = Prepared::Locked;
        let data = self.data() + (first << ARENA_SHIFT);
        // SAFETY: as below. They come now, so that nobody waits for them later.
        unsafe { os::huge_pages(data, count << ARENA_SHIFT, true) };
        for (part, stride) in self.strides() {
            let start = part.load(Ordering::Relaxed) + first * stride;
            // SAFETY: open, and of this space.
            let (populated, locked) = unsafe { os::populate(start, count * stride) };
            if !populated {
                return Prepared::Nothing;
            }
            if !locked {
                all = Prepared::NotLocked;
            }
        }
        all
    }

    fn is_for_heaps(&self, arena: usize) -> bool {
        let first = arena << (ARENA_SHIFT - CHUNK_SHIFT);
        let tag = ChunkTag(self.tag(first).load(Ordering::Relaxed));
        matches!(tag.kind(), ChunkTag::OWNED | ChunkTag::SHARED)
            || self.word(arena)[0].load(Ordering::Relaxed) != 0
    }

    fn prepare_account(&self, arena: usize) {
        const CHUNKS: usize = ARENA_BYTES / CHUNK_BYTES;
        for (part, stride) in [(&self.kinds, KINDS_STRIDE), (&self.meta, META_STRIDE)] {
            let start = part.load(Ordering::Relaxed) + arena * CHUNKS * stride;
            // SAFETY: open, and of this space.
            unsafe { os::fault_in(start, CHUNKS * stride) };
        }
    }

    fn node_of(&self, arena: usize) -> usize {
        arena >> self.node_shift.load(Ordering::Relaxed)
    }

    fn has_migrated(&self, arena: usize, chunks: u64) -> bool {
        // Relaxed: whoever set the bit had the chunks before, or needs no answer.
        self.migrated(arena).load(Ordering::Relaxed) & chunks != 0
    }

    fn clear_migrated(&self, arena: usize, chunks: u64) {
        if self.has_migrated(arena, chunks) {
            self.migrated(arena).fetch_and(!chunks, Ordering::Relaxed);
        }
    }

    unsafe fn forget(&self, chunk: usize, count: usize) -> bool {
        let start = self.data() + (chunk << CHUNK_SHIFT);
        // SAFETY: as the caller promises.
        unsafe { os::forget(start, count << CHUNK_SHIFT) }
    }

    unsafe fn forget_metadata(&self, chunk: usize, count: usize) {
        for (part, stride) in [(&self.remote, REMOTE_STRIDE), (&self.meta, META_STRIDE)] {
            let start = part.load(Ordering::Relaxed) + chunk * stride;
            let first = start.next_multiple_of(os::PAGE);
            let end = (start + count * stride) & !(os::PAGE - 1);
            if first < end {
                // SAFETY: these pages hold nothing but the metadata of these chunks.
                unsafe { os::forget(first, end - first) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_of_huge_pages_bring_their_neighbours() {
        let region = RegionId::at(3, 35 << CHUNK_SHIFT);
        assert_eq!(chunks_with(region, CHUNK_BYTES, false), (35, 1));
        assert_eq!(chunks_with(region, CHUNK_BYTES, true), (32, 32));
        let region = RegionId::at(5, 48 << CHUNK_SHIFT);
        assert_eq!(chunks_with(region, 1 << 20, false), (48, 16));
    }
}
