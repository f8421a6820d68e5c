//! The pools: free chunks of each node, taken and given by exchanging an arena's word. No lock, no
//! list, and nothing written into the memory itself.
//!
//! [Hints](crate::store::hints) tell which arenas have room of a kind. A hint may be stale: the
//! arena's word decides. A thread that makes or takes room changes the word first and the hints
//! afterwards.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | an arena's `free` | any thread, by exchange; the holder of all of it, by store | any thread |
//! | an arena's `used` | the chunks' holder, before it gives or while it forgets | any thread |
//! | `begun`, `open` | any thread, by exchange; they only grow | any thread |
//! | `opening` | a thread that opens arenas of a sparse space, before and after | the same |
//!
//! Taking tries a few arenas, then begins one that was never used. So its time is bounded whatever
//! other threads do.

#[cfg(all(test, loom))]
mod loom_tests;
mod sparse;
#[cfg(all(test, not(loom)))]
mod tests;

use core::iter;

use crate::ground::geometry::{ARENA_SHIFT, CHUNK_SHIFT};
use crate::ground::words::{self, ALIGNED};
use crate::store::hints::{Hints, WORD_SHIFT};
use hearth_atomics::{AtomicU32, AtomicU64, Ordering, load_seq_cst};

/// The largest number of nodes that are told apart.
pub(crate) const NODES_MAX: usize = if cfg!(loom) { 1 } else { 64 };
/// Kinds of room: 1 chunk; 4 or 16, aligned; 32; a whole arena; and an idle chunk, which is free
/// and has memory behind it.
pub(crate) const ROOMS: usize = SIZES.len() + 1;
#[cfg(not(loom))]
const SIZES: [u32; 5] = [1, 4, 16, 32, 64];
/// Each kind of room makes a model several times larger.
#[cfg(loom)]
const SIZES: [u32; 2] = [1, 64];
const WHOLE_ARENA: usize = ROOMS - 2;
const IDLE: usize = ROOMS - 1;
/// Arenas tried before a new one is begun.
const TRIES: usize = 4;
/// Attempts at beginning new arenas.
const BEGIN_TRIES: usize = 16;
/// Words of hints searched for several arenas in a row.
const WORD_TRIES: usize = 64;
/// Arenas opened at once, at least: 16 MiB.
const OPENED_MIN: usize = 4;

/// Starts of aligned runs of four chunks.
const ALIGNED_4: u64 = 0x1111_1111_1111_1111;

/// The places where a run of this size may begin.
const fn allowed(chunks: u32) -> u64 {
    match chunks {
        1 => u64::MAX,
        2..=4 => ALIGNED_4,
        5..=16 => ALIGNED,
        _ => u64::MAX,
    }
}

/// Whether an arena's word has room of this kind.
fn has_room([free, used]: &[AtomicU64; 2], room: usize) -> bool {
    let word = load_seq_cst(free);
    if room == IDLE {
        return word & used.load(Ordering::SeqCst) != 0;
    }
    is_room(word, room)
}

/// The idle chunks of an arena: free, with memory behind them.
fn idle_chunks([free, used]: &[AtomicU64; 2]) -> u64 {
    free.load(Ordering::Relaxed) & used.load(Ordering::Relaxed)
}

/// Whether these free chunks have room of this kind.
fn is_room(free: u64, room: usize) -> bool {
    rooms(free) >> room & 1 != 0
}

/// The kinds of room in these free chunks, one bit each. Every size is an earlier one doubled as
/// often as needed.
fn rooms(free: u64) -> u32 {
    let (mut rooms, mut found, mut known) = (0, free, 1);
    for (room, size) in SIZES.iter().enumerate() {
        while known < *size {
            found &= found >> known;
            known *= 2;
        }
        rooms |= u32::from(found & allowed(*size) != 0) << room;
    }
    rooms
}

/// The arenas that pools divide: those of a [space](crate::store::space), or a model's.
pub(crate) trait Arenas {
    /// An arena's words: free chunks, and chunks that have been used.
    fn word(&self, arena: usize) -> &[AtomicU64; 2];
    /// The low and middle words of hints for a kind of room, of all nodes.
    fn hints(&self, room: usize) -> [&[AtomicU64]; 2];
    /// Arenas per node, a power of two.
    fn arenas_of_node(&self) -> usize;
    /// The nodes that supply memory for this one, in order.
    fn near(&self, node: usize) -> impl Iterator<Item = usize>;
    /// Whether a node has memory for this many arenas.
    fn has_memory(&self, node: usize, arenas: usize) -> bool;
    /// Arenas that a node can have: all, or fewer where a limit leaves few.
    fn arenas_at_most(&self) -> usize {
        self.arenas_of_node()
    }
    /// Whether arenas get their addresses only when they are opened.
    fn is_sparse(&self) -> bool {
        false
    }
    /// Lets another thread finish opening an arena.
    fn pause(&self) {}
    /// Opens an arena of a sparse space, its metadata first.
    fn open_sparse(&self, _arena: usize) -> Opened {
        Opened::Refused
    }
    /// Makes arenas and their metadata writable. May be called twice for the same arenas.
    fn open(&self, first: usize, count: usize) -> bool;
    /// Faults in and locks arenas and their metadata.
    fn populate(&self, first: usize, count: usize) -> Prepared;
    /// Whether heaps may have chunks of an arena: not if a large block has all of them.
    fn is_for_heaps(&self, _arena: usize) -> bool {
        true
    }
    /// Faults in the metadata of an arena's chunks.
    fn prepare_account(&self, _arena: usize) {}
    /// Gives the memory behind chunks back to the system. False if it stays.
    ///
    /// # Safety
    /// The caller has the chunks, and nothing of value in them.
    unsafe fn forget(&self, chunk: usize, count: usize) -> bool;
    /// Gives back the pages of metadata that belong to these chunks alone; they read as zero
    /// afterwards.
    ///
    /// # Safety
    /// As for `forget`.
    unsafe fn forget_metadata(&self, chunk: usize, count: usize);

    /// Whether one of these chunks has pages that migrated to another node.
    fn has_migrated(&self, _arena: usize, _chunks: u64) -> bool {
        false
    }
    /// Records that the chunks no longer have pages.
    fn clear_migrated(&self, _arena: usize, _chunks: u64) {}

    /// The node of an arena.
    fn node_of(&self, arena: usize) -> usize {
        arena >> self.arenas_of_node().trailing_zeros()
    }
}

/// The outcome of opening an arena without addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Done,
    /// Something is mapped at its place.
    Already,
    Refused,
}

/// A node's share.
pub(crate) struct Node {
    /// Arenas that have been begun, and arenas that are open.
    begun: AtomicU32,
    open: AtomicU32,
    /// Threads that are opening arenas of a sparse space.
    opening: AtomicU32,
    /// Arenas that may be begun: all, or what real-time mode has prepared.
    most: AtomicU32,
    /// The top words of hints, one for each kind of room.
    tops: [AtomicU64; ROOMS],
}

/// The pools of the process, which divide its one space.
#[cfg(not(loom))]
pub(crate) static POOLS: Pools = Pools::new();

/// The pools of all nodes.
pub(crate) struct Pools {
    pub(crate) nodes: [Node; NODES_MAX],
    /// Idle chunks of all nodes: an estimate, as the two words of an arena change one after the
    /// other.
    idle: core::sync::atomic::AtomicI32,
}

/// Chunks that the caller now has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first one.
    pub(crate) chunk: usize,
    /// Those with memory behind them. Others are zero: never used, or given back to the system
    /// since.
    pub(crate) with_memory: u32,
}

impl Taken {
    /// Whether all of them are zero.
    pub(crate) fn is_zero(self) -> bool {
        self.with_memory == 0
    }
}

/// Memory to give back with idle chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// The chunks alone: the fast way, while others come into use.
    Data,
    /// Their metadata, too.
    WithMetadata,
}

/// The outcome of preparing memory for real-time mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// All of it is populated and locked.
    Locked,
    /// All of it is populated, but the system may take it away.
    NotLocked,
    /// The system refused.
    Nothing,
}

/// A node to take chunks from.
#[derive(Clone, Copy)]
struct From {
    node: usize,
    /// All nodes are full: let the system look for memory.
    is_last_resort: bool,
}

/// The nodes to ask for memory near a node, in order.
fn places(space: &impl Arenas, node: usize) -> impl Iterator<Item = From> {
    let near = space.near(node).map(|node| From {
        node,
        is_last_resort: false,
    });
    near.chain(iter::once(From {
        node,
        is_last_resort: true,
    }))
}

/// Gives migrated pages of returned chunks back to the system, so that the next ones come from the
/// right node. If the system refuses, the next return tries again.
#[cold]
fn send_home(space: &impl Arenas, arena: usize, mask: u64, used: &AtomicU64) {
    let chunk = arena << CHUNKS_SHIFT | mask.trailing_zeros() as usize;
    // SAFETY: the caller still has the chunks, and needs nothing in them.
    if unsafe { space.forget(chunk, mask.count_ones() as usize) } {
        used.fetch_and(!mask, Ordering::Relaxed);
        space.clear_migrated(arena, mask);
    } else {
        used.fetch_or(mask, Ordering::Relaxed);
    }
}

const CHUNKS_SHIFT: u32 = ARENA_SHIFT - CHUNK_SHIFT;

#[cfg(not(loom))]
impl Node {
    const fn new() -> Node {
        Node {
            begun: AtomicU32::new(0),
            open: AtomicU32::new(0),
            opening: AtomicU32::new(0),
            most: AtomicU32::new(u32::MAX),
            tops: [const { AtomicU64::new(0) }; ROOMS],
        }
    }
}

impl Pools {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Pools {
        Pools {
            nodes: [const { Node::new() }; NODES_MAX],
            idle: core::sync::atomic::AtomicI32::new(0),
        }
    }

    /// Takes 1 to 64 consecutive chunks within one arena, of a node or, if that is full, of the
    /// next. Up to 16 are aligned to the next power of four. None if there are no more.
    pub(crate) fn take(&self, space: &impl Arenas, node: usize, chunks: u32) -> Option<Taken> {
        places(space, node).find_map(|from| self.take_of(space, from, chunks))
    }

    /// Takes consecutive whole arenas, likewise.
    pub(crate) fn take_arenas(
        &self,
        space: &impl Arenas,
        node: usize,
        count: usize,
    ) -> Option<Taken> {
        places(space, node).find_map(|from| self.take_arenas_of(space, from, count))
    }

    fn take_of(&self, space: &impl Arenas, from: From, chunks: u32) -> Option<Taken> {
        let room = SIZES.iter().position(|size| *size >= chunks)?;
        for _ in 0..TRIES {
            let Some(arena) = self.hinted(space, from.node, room, |hints| hints.lowest()) else {
                break;
            };
            if let Some(taken) = self.take_from(space, from.node, arena, chunks) {
                return Some(taken);
            }
        }
        self.begin(space, from, chunks)
    }

    /// A node's hints for a kind of room.
    fn hints<'a>(&'a self, space: &'a impl Arenas, node: usize, room: usize) -> Hints<'a> {
        let [low, middle] = space.hints(room);
        let all = space.arenas_of_node();
        let words = |of: &'a [AtomicU64], shift: u32| {
            let first = (all * node) >> shift;
            &of[first..first + (all >> shift).max(1)]
        };
        Hints {
            low: words(low, WORD_SHIFT),
            middle: words(middle, 2 * WORD_SHIFT),
            top: &self.nodes[node].tops[room],
        }
    }

    /// An arena hinted to have room, found by `find`.
    fn hinted(
        &self,
        space: &impl Arenas,
        node: usize,
        room: usize,
        find: impl Fn(&Hints<'_>) -> Option<usize>,
    ) -> Option<usize> {
        // Nodes that the space does not tell apart have neither hints nor words for them.
        if self.nodes[node].tops[room].load(Ordering::Relaxed) == 0 {
            return None;
        }
        let arena = find(&self.hints(space, node, room))?;
        Some(space.arenas_of_node() * node + arena)
    }

    /// Takes chunks of an arena if it has room; otherwise corrects its hints.
    fn take_from(
        &self,
        space: &impl Arenas,
        node: usize,
        arena: usize,
        chunks: u32,
    ) -> Option<Taken> {
        let [free, used] = space.word(arena);
        let word = free.load(Ordering::Relaxed);
        let mut starts = words::runs(word, chunks) & allowed(chunks);
        if starts == 0 {
            self.hint_all(space, node, arena);
            return None;
        }
        // Prefer chunks that have memory behind them.
        let with_memory = starts & words::runs(word & used.load(Ordering::Relaxed), chunks);
        if with_memory != 0 {
            starts = with_memory;
        }
        let first = starts.trailing_zeros();
        let mask = words::ones(chunks) << first;
        // Acquires what the giver of the chunks did with them.
        let exchanged =
            free.compare_exchange(word, word & !mask, Ordering::SeqCst, Ordering::Relaxed);
        exchanged.ok()?;
        self.hint(space, node, arena, [word, word & !mask]);
        let with_memory = used.load(Ordering::Relaxed) & mask;
        self.count_idle(-(with_memory.count_ones() as i32));
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT | first as usize,
            with_memory: with_memory.count_ones(),
        })
    }

    /// Begins an arena and takes its first chunks.
    fn begin(&self, space: &impl Arenas, from: From, chunks: u32) -> Option<Taken> {
        let arena = self.begin_arenas(space, from, 1)?;
        let rest = !words::ones(chunks);
        space.word(arena)[0].store(rest, Ordering::SeqCst);
        self.hint(space, from.node, arena, [0, rest]);
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT,
            with_memory: 0,
        })
    }

    /// Begins consecutive arenas, which belong to the caller.
    fn begin_arenas(&self, space: &impl Arenas, from: From, count: usize) -> Option<usize> {
        let all = space.arenas_at_most();
        let first = space.arenas_of_node() * from.node;
        let own = &self.nodes[from.node];
        for _ in 0..BEGIN_TRIES {
            let begun = own.begun.load(Ordering::Relaxed) as usize;
            // Acquires the opened arenas.
            let open = own.open.load(Ordering::Acquire) as usize;
            if begun + count > all || begun + count > own.most.load(Ordering::Relaxed) as usize {
                return None;
            }
            if begun + count > open {
                // An eighth more than there is, so that the number of calls grows only
                // logarithmically. Two threads may open the same arenas, which does no harm.
                let more = (begun + count - open).max(OPENED_MIN).max(open / 8);
                let more = more.min(all - open);
                let is_full = !from.is_last_resort && !space.has_memory(from.node, more);
                if is_full || !self.open(space, from.node, begun + count, more) {
                    return None;
                }
            }
            let next = (begun + count) as u32;
            let claimed = own.begun.compare_exchange(
                begun as u32,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if claimed.is_ok() {
                return Some(first + begun);
            }
        }
        None
    }

    /// Opens, populates and locks a node's arenas for real-time mode, and allows no others.
    pub(crate) fn prepare(&self, space: &impl Arenas, node: usize, arenas: usize) -> Prepared {
        let own = &self.nodes[node];
        let first = space.arenas_of_node() * node;
        let arenas = arenas.min(space.arenas_at_most());
        own.most.store(arenas as u32, Ordering::Relaxed);
        if !space.open(first, arenas) {
            return Prepared::Nothing;
        }
        own.open.store(arenas as u32, Ordering::Release);
        space.populate(first, arenas)
    }

    /// Faults metadata in before takers of chunks touch it: for a node's arenas from the `done`th
    /// to the last one begun, and the next one. Returns the new `done`.
    pub(crate) fn look_ahead(&self, space: &impl Arenas, node: usize, done: usize) -> usize {
        let own = &self.nodes[node];
        let first = space.arenas_of_node() * node;
        let begun = own.begun.load(Ordering::Relaxed) as usize;
        let open = own.open.load(Ordering::Acquire) as usize;
        for arena in (done..begun.min(open)).map(|i| first + i) {
            if space.is_for_heaps(arena) {
                space.prepare_account(arena);
            }
        }
        let is_next = done <= begun && begun < open;
        if is_next && begun > 0 && space.is_for_heaps(first + begun - 1) {
            space.prepare_account(first + begun);
            return begun + 1;
        }
        done.max(begun)
    }

    /// Opens a node's arenas up to the `end`th: `more` of them, or at least as many as are needed.
    /// False if the system refuses.
    fn open(&self, space: &impl Arenas, node: usize, end: usize, more: usize) -> bool {
        if space.is_sparse() {
            return self.open_sparse(space, node, end);
        }
        let own = &self.nodes[node];
        let open = own.open.load(Ordering::Acquire) as usize;
        let first = space.arenas_of_node() * node + open;
        // If memory does not suffice for `more`, it may for what is needed.
        for more in [more, end.saturating_sub(open)] {
            if space.open(first, more) {
                own.open.fetch_max((open + more) as u32, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Describes the pools for inspection.
    #[cfg(not(loom))]
    pub(crate) fn describe(&self, directory: &mut crate::ground::directory::Directory) {
        directory.pools = self.nodes.as_ptr().addr() as u64;
        directory.pools_stride = size_of::<Node>() as u64;
        directory.pool_begun_at = core::mem::offset_of!(Node, begun) as u64;
        directory.pool_open_at = core::mem::offset_of!(Node, open) as u64;
    }

    /// The arenas of a node that have been begun and whose words may be read.
    fn in_use(&self, space: &impl Arenas, node: usize) -> core::ops::Range<usize> {
        let own = &self.nodes[node];
        let first = space.arenas_of_node() * node;
        let begun = own.begun.load(Ordering::Relaxed);
        first..first + begun.min(own.open.load(Ordering::Acquire)) as usize
    }

    /// Gives back chunks that were taken together, or a part of them. `is_zero`: nobody has written
    /// to them.
    pub(crate) fn give(&self, space: &impl Arenas, chunk: usize, chunks: u32, is_zero: bool) {
        let arena = chunk >> CHUNKS_SHIFT;
        let mask = words::ones(chunks) << (chunk & 63);
        let [free, used] = space.word(arena);
        if space.has_migrated(arena, mask) {
            send_home(space, arena, mask, used);
        } else if !is_zero {
            used.fetch_or(mask, Ordering::Relaxed);
        }
        let with_memory = used.load(Ordering::Relaxed) & mask;
        // Releases what the caller did with them.
        let before = free.fetch_or(mask, Ordering::SeqCst);
        self.count_idle(with_memory.count_ones() as i32);
        self.hint(space, space.node_of(arena), arena, [before, before | mask]);
    }

    /// Takes free arenas if some are found soon, or new ones.
    fn take_arenas_of(&self, space: &impl Arenas, from: From, count: usize) -> Option<Taken> {
        let node = from.node;
        let hints = self.hints(space, node, WHOLE_ARENA);
        if let Some(first) = hints.lowest() {
            let begin = first >> WORD_SHIFT;
            for (i, word) in hints.low[begin..].iter().take(WORD_TRIES).enumerate() {
                let starts = words::runs(word.load(Ordering::Relaxed), count as u32);
                if starts == 0 {
                    continue;
                }
                let arena = ((begin + i) << WORD_SHIFT) + starts.trailing_zeros() as usize;
                let arena = space.arenas_of_node() * node + arena;
                if let Some(taken) = self.claim_arenas(space, node, arena, count) {
                    return Some(taken);
                }
            }
        }
        let arena = self.begin_arenas(space, from, count)?;
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT,
            with_memory: 0,
        })
    }

    /// Takes these arenas if all of them are free.
    fn claim_arenas(
        &self,
        space: &impl Arenas,
        node: usize,
        arena: usize,
        count: usize,
    ) -> Option<Taken> {
        let mut all_with_memory = 0;
        for i in arena..arena + count {
            let [free, used] = space.word(i);
            let claimed = free.compare_exchange(u64::MAX, 0, Ordering::SeqCst, Ordering::Relaxed);
            if claimed.is_err() {
                for taken in arena..i {
                    let [free, used] = space.word(taken);
                    self.count_idle(used.load(Ordering::Relaxed).count_ones() as i32);
                    free.store(u64::MAX, Ordering::SeqCst);
                    self.hint(space, node, taken, [0, u64::MAX]);
                }
                self.hint_all(space, node, i);
                return None;
            }
            let with_memory = used.load(Ordering::Relaxed);
            all_with_memory += with_memory.count_ones();
            self.count_idle(-(with_memory.count_ones() as i32));
            self.hint(space, node, i, [u64::MAX, 0]);
        }
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT,
            with_memory: all_with_memory,
        })
    }

    /// Extends a block from `has` to `wanted` chunks in place. False if those behind it are not
    /// free, or lie in another arena.
    pub(crate) fn extend(
        &self,
        space: &impl Arenas,
        chunk: usize,
        has: usize,
        wanted: usize,
    ) -> bool {
        let (arena, first) = (chunk >> CHUNKS_SHIFT, chunk & 63);
        if first + wanted > 64 {
            return false;
        }
        let [free, used] = space.word(arena);
        let mask = words::ones((wanted - has) as u32) << (first + has);
        let word = free.load(Ordering::Relaxed);
        let is_taken = word & mask == mask
            && free
                .compare_exchange(word, word & !mask, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
        if is_taken {
            let with_memory = used.load(Ordering::Relaxed) & mask;
            self.count_idle(-(with_memory.count_ones() as i32));
            self.hint(space, space.node_of(arena), arena, [word, word & !mask]);
        }
        is_taken
    }

    /// Gives back chunks that may span several arenas.
    pub(crate) fn give_many(&self, space: &impl Arenas, chunk: usize, chunks: usize) {
        let (mut chunk, mut left) = (chunk, chunks);
        while left > 0 {
            let here = left.min(64 - (chunk & 63));
            self.give(space, chunk, here as u32, false);
            chunk += here;
            left -= here;
        }
    }

    /// Gives the memory behind idle chunks back to the system, except `keep` bytes; returns the
    /// bytes given. It holds one run of chunks at a time.
    pub(crate) fn trim(&self, space: &impl Arenas, keep: usize) -> usize {
        let (mut kept, mut given) = (0, 0);
        for arena in self.arenas_in_use(space) {
            let mut idle = idle_chunks(space.word(arena));
            while idle != 0 {
                let start = idle.trailing_zeros();
                let count = (!(idle >> start)).trailing_zeros().min(64 - start);
                let mask = words::ones(count) << start;
                idle &= !mask;
                let bytes = (count as usize) << CHUNK_SHIFT;
                if kept + bytes <= keep {
                    kept += bytes;
                } else if self.forget(space, arena, mask, Forgotten::WithMetadata) {
                    given += bytes;
                }
            }
        }
        given
    }

    /// All arenas that have been begun and opened.
    pub(crate) fn arenas_in_use(&self, space: &impl Arenas) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).flat_map(move |node| self.in_use(space, node))
    }

    /// Chunks in use, of all nodes.
    pub(crate) fn held(&self, space: &impl Arenas) -> usize {
        let held = |arena| space.word(arena)[0].load(Ordering::Relaxed).count_zeros() as usize;
        self.arenas_in_use(space).map(held).sum()
    }

    /// Idle chunks of all nodes.
    pub(crate) fn idle(&self, space: &impl Arenas) -> u32 {
        let idle = |arena| idle_chunks(space.word(arena)).count_ones();
        self.arenas_in_use(space).map(idle).sum()
    }

    /// An estimate of [`Pools::idle`], without a walk.
    pub(crate) fn idle_about(&self) -> u32 {
        self.idle.load(core::sync::atomic::Ordering::Relaxed).max(0) as u32
    }

    fn count_idle(&self, chunks: i32) {
        if chunks != 0 {
            let order = core::sync::atomic::Ordering::Relaxed;
            self.idle.fetch_add(chunks, order);
        }
    }

    /// Gives memory behind idle chunks of one arena of a node back to the system, up to `chunks`;
    /// returns how many. The highest go first, as the lowest are taken first.
    pub(crate) fn forget_idle(
        &self,
        space: &impl Arenas,
        node: usize,
        chunks: u32,
        what: Forgotten,
    ) -> u32 {
        let Some(arena) = self.hinted(space, node, IDLE, |hints| hints.highest()) else {
            return 0;
        };
        let idle = idle_chunks(space.word(arena));
        if idle == 0 {
            self.hint_all(space, node, arena);
            return 0;
        }
        let above = idle.leading_zeros();
        let count = (!(idle << above)).leading_zeros().min(chunks);
        let first = 64 - above - count;
        if self.forget(space, arena, words::ones(count) << first, what) {
            count
        } else {
            0
        }
    }

    /// Gives the memory behind chunks back to the system if all of them are free; with
    /// `WithMetadata` also their metadata, and that of neighbours that are free and without memory.
    fn forget(&self, space: &impl Arenas, arena: usize, mask: u64, what: Forgotten) -> bool {
        let [free, used] = space.word(arena);
        let word = free.load(Ordering::Relaxed);
        if word & mask != mask {
            return false;
        }
        let run = match what {
            Forgotten::Data => mask,
            Forgotten::WithMetadata => {
                words::widen(mask, mask | word & !used.load(Ordering::Relaxed))
            }
        };
        let exchanged =
            free.compare_exchange(word, word & !run, Ordering::SeqCst, Ordering::Relaxed);
        if exchanged.is_err() {
            return false;
        }
        let chunk = |of: u64| arena << CHUNKS_SHIFT | of.trailing_zeros() as usize;
        let count = |of: u64| of.count_ones() as usize;
        // SAFETY: the chunks were free, and this function holds them now.
        let done = unsafe { space.forget(chunk(mask), count(mask)) };
        if done {
            let with_memory = used.fetch_and(!mask, Ordering::Relaxed) & mask;
            self.count_idle(-(with_memory.count_ones() as i32));
            if what == Forgotten::WithMetadata {
                // SAFETY: as above.
                unsafe { space.forget_metadata(chunk(run), count(run)) };
            }
            space.clear_migrated(arena, mask);
        }
        // Other threads saw them as taken until now, so both changes may need new hints.
        free.fetch_or(run, Ordering::SeqCst);
        self.hint_all(space, space.node_of(arena), arena);
        done
    }

    /// Corrects an arena's hints after one exchange of its word.
    ///
    /// The thread that makes the first room of a kind, or takes the last, corrects the hint; others
    /// leave it to those. The hint for idle chunks is always checked: `used` may have changed
    /// between an exchange and a look at it.
    #[inline]
    fn hint(&self, space: &impl Arenas, node: usize, arena: usize, [before, after]: [u64; 2]) {
        let mut changed = rooms(before) ^ rooms(after);
        while changed != 0 {
            let room = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            self.hint_of(space, node, arena, room);
        }
        self.hint_of(space, node, arena, IDLE);
    }

    /// Corrects all hints of an arena.
    fn hint_all(&self, space: &impl Arenas, node: usize, arena: usize) {
        for room in 0..ROOMS {
            self.hint_of(space, node, arena, room);
        }
    }

    fn hint_of(&self, space: &impl Arenas, node: usize, arena: usize, room: usize) {
        let at = arena - space.arenas_of_node() * node;
        let word = space.word(arena);
        self.hints(space, node, room)
            .correct(at, || has_room(word, room));
    }
}
