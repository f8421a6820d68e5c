//! The chunks that nobody has, of each node: taken and given by exchanging an arena's word. No lock, no
//! list, and nothing in the memory itself.
//!
//! [Hints](crate::store::hints) say in which arenas there is room of a kind. A hint may be late: the arena's word
//! alone decides. Whoever makes room, or takes it, changes the word first and tells the hints then.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | an arena's `free` | everyone, by exchange; a store only by who has the whole arena | everyone |
//! | an arena's `used` | who has the chunks: before they are given, or while they are forgotten | everyone |
//! | `begun`, `open` | everyone, by exchange; they only grow | everyone |
//! | `opening` | who opens arenas of a sparse space: adds one before, takes it back after | the same |
//!
//! Taking tries a few arenas, then begins one that was never used. So its time has a bound whatever
//! other threads do.

#[cfg(all(test, loom))]
mod loom_tests;
mod sparse;
#[cfg(all(test, not(loom)))]
mod tests;

use core::iter;

use crate::ground::atomics::{AtomicU32, AtomicU64, Ordering, look};
use crate::ground::geometry::{ARENA_SHIFT, CHUNK_SHIFT};
use crate::ground::words::{self, ALIGNED};
use crate::store::hints::{Hints, WORD_SHIFT};

/// Nodes that are told apart.
pub(crate) const NODES_MAX: usize = if cfg!(loom) { 1 } else { 64 };
/// Kinds of room: a chunk; 4 and 16 of them, aligned; 32 of them; a whole arena; and a chunk that is
/// free and has memory behind it.
pub(crate) const ROOMS: usize = SIZES.len() + 1;
#[cfg(not(loom))]
const SIZES: [u32; 5] = [1, 4, 16, 32, 64];
/// Each kind of room makes a model several times as large.
#[cfg(loom)]
const SIZES: [u32; 2] = [1, 64];
const WHOLE_ARENA: usize = ROOMS - 2;
const IDLE: usize = ROOMS - 1;
/// So many arenas are tried before one is begun.
const TRIES: usize = 4;
/// So often the next arenas are tried for.
const BEGIN_TRIES: usize = 16;
/// So many words of hints are looked at for several arenas in a row.
const WORD_TRIES: usize = 64;
/// Arenas are opened so many at a time at least: 16 MiB.
const OPENED_MIN: usize = 4;

/// Aligned runs of four, and of sixteen.
const ALIGNED_4: u64 = 0x1111_1111_1111_1111;

/// Where a run of a size may begin.
const fn allowed(chunks: u32) -> u64 {
    match chunks {
        1 => u64::MAX,
        2..=4 => ALIGNED_4,
        5..=16 => ALIGNED,
        _ => u64::MAX,
    }
}

/// Says the word of an arena that there is room?
fn has_room([free, used]: &[AtomicU64; 2], room: usize) -> bool {
    let word = look(free);
    if room == IDLE {
        return word & used.load(Ordering::SeqCst) != 0;
    }
    is_room(word, room)
}

/// Is there room of a kind in these free chunks?
fn is_room(free: u64, room: usize) -> bool {
    rooms(free) >> room & 1 != 0
}

/// The kinds of room in these free chunks, a bit each. Every size is twice one of before, as often as need be.
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

/// The arenas that pools are made over: a [space](crate::store::space)'s, or a model's.
pub(crate) trait Arenas {
    /// The word of free chunks of an arena, and the word of those that have been used.
    fn word(&self, arena: usize) -> &[AtomicU64; 2];
    /// Low words and middle words of the hints for a kind of room, of all nodes.
    fn hints(&self, room: usize) -> [&[AtomicU64]; 2];
    /// Arenas that a node has: a power of two.
    fn arenas_of_node(&self) -> usize;
    /// The nodes from which memory for this one comes, in turn.
    fn near(&self, node: usize) -> impl Iterator<Item = usize>;
    /// Has a node memory for so many arenas?
    fn has_memory(&self, node: usize, arenas: usize) -> bool;
    /// Arenas that a node has room for: all, or where a limit leaves few, fewer.
    fn arenas_at_most(&self) -> usize {
        self.arenas_of_node()
    }
    /// Have arenas no addresses before they are opened?
    fn is_sparse(&self) -> bool {
        false
    }
    /// Lets another thread go on that opens an arena.
    fn pause(&self) {}
    /// Opens an arena of a sparse space: with what belongs to it first.
    fn open_sparse(&self, _arena: usize) -> Opened {
        Opened::Refused
    }
    /// Makes arenas and what belongs to them writable. May be called twice for the same ones.
    fn open(&self, first: usize, count: usize) -> bool;
    /// Brings memory behind arenas and what belongs to them, and locks it.
    fn populate(&self, first: usize, count: usize) -> Prepared;
    /// May heaps have chunks of an arena? Not if a large block has all of them.
    fn is_for_heaps(&self, _arena: usize) -> bool {
        true
    }
    /// Brings memory behind what keeps account of an arena's chunks.
    fn prepare_account(&self, _arena: usize) {}
    /// Gives the memory behind chunks back to the system. False if it stays.
    ///
    /// # Safety
    /// The caller has the chunks, and nothing of value in them.
    unsafe fn forget(&self, chunk: usize, count: usize) -> bool;
    /// Gives the memory back that keeps account of chunks, as far as it is of these alone; it reads as zero
    /// afterwards.
    ///
    /// # Safety
    /// As for `forget`.
    unsafe fn forget_metadata(&self, chunk: usize, count: usize);

    /// Lie pages of one of these chunks of an arena on another node than they should?
    fn is_brought(&self, _arena: usize, _chunks: u64) -> bool {
        false
    }
    /// They have no pages any more.
    fn forgot_brought(&self, _arena: usize, _chunks: u64) {}

    /// The node of an arena.
    fn node_of(&self, arena: usize) -> usize {
        arena >> self.arenas_of_node().trailing_zeros()
    }
}

/// What came of opening an arena that has no addresses yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Done,
    /// Something is mapped where it would be.
    Already,
    Refused,
}

/// What a node has in hand.
pub(crate) struct Node {
    /// Arenas that have been begun, and those that are open.
    begun: AtomicU32,
    open: AtomicU32,
    /// Threads that open arenas of a sparse space.
    opening: AtomicU32,
    /// Arenas that may be begun: all, or in real-time mode what was prepared.
    most: AtomicU32,
    /// For each kind of room the words of hints in the middle that are not empty.
    tops: [AtomicU64; ROOMS],
}

/// The pools of the process, which divide its one space.
#[cfg(not(loom))]
pub(crate) static POOLS: Pools = Pools::new();

/// The pools of all nodes.
pub(crate) struct Pools {
    pub(crate) nodes: [Node; NODES_MAX],
    /// Free chunks that have memory behind them, of all nodes: an estimate, as the two words of an arena change
    /// one after the other.
    idle: core::sync::atomic::AtomicI32,
}

/// Chunks that were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first of them.
    pub(crate) chunk: usize,
    /// They are zero: never used, or given back to the system since.
    pub(crate) is_zero: bool,
}

/// What is given back of idle chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// The memory behind them: while others come into use, as fast as can be.
    Data,
    /// And what keeps account of them.
    WithMetadata,
}

/// What came of preparing memory for real-time mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// There is memory behind all of it, and it stays.
    Locked,
    /// There is memory behind all of it, but the system may take it away.
    NotLocked,
    /// There is none.
    Nothing,
}

/// A node to take from.
#[derive(Clone, Copy)]
struct From {
    node: usize,
    /// All nodes are full: the system may look for something.
    is_last_resort: bool,
}

/// The nodes to be asked for memory near a node, in turn.
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

/// Of chunks that are given back pages lie on another node: these go back to the system, so that the next ones
/// come from the right one. Should it refuse, this is tried again another time.
#[cold]
fn send_home(space: &impl Arenas, arena: usize, mask: u64, used: &AtomicU64) {
    let chunk = arena << CHUNKS_SHIFT | mask.trailing_zeros() as usize;
    // SAFETY: the chunks are the caller's yet, who needs nothing of what is in them.
    if unsafe { space.forget(chunk, mask.count_ones() as usize) } {
        used.fetch_and(!mask, Ordering::Relaxed);
        space.forgot_brought(arena, mask);
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

    /// Takes 1 to 64 chunks that follow each other, within an arena: of a node, or if it is full of the
    /// next one. Up to 16 they are aligned to the power of four above. None if there are no more.
    pub(crate) fn take(&self, space: &impl Arenas, node: usize, chunks: u32) -> Option<Taken> {
        places(space, node).find_map(|from| self.take_of(space, from, chunks))
    }

    /// Takes whole arenas that follow each other, likewise.
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
            let Some(arena) = self.hinted(space, from.node, room) else {
                break;
            };
            if let Some(taken) = self.take_from(space, from.node, arena, chunks) {
                return Some(taken);
            }
        }
        self.begin(space, from, chunks)
    }

    /// The hints of a node for a kind of room.
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

    /// The lowest arena that has room, it is said.
    fn hinted(&self, space: &impl Arenas, node: usize, room: usize) -> Option<usize> {
        // Nodes that the space does not tell apart have no hints, nor words for them.
        if self.nodes[node].tops[room].load(Ordering::Relaxed) == 0 {
            return None;
        }
        let arena = self.hints(space, node, room).lowest()?;
        Some(space.arenas_of_node() * node + arena)
    }

    /// Takes chunks of an arena, if it has room. If not, its hints say so afterwards.
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
        // What has memory behind it is used before what has not.
        let with_memory = starts & words::runs(word & used.load(Ordering::Relaxed), chunks);
        if with_memory != 0 {
            starts = with_memory;
        }
        let first = starts.trailing_zeros();
        let mask = words::ones(chunks) << first;
        // Acquires what the one who gave the chunks has done with them.
        let exchanged =
            free.compare_exchange(word, word & !mask, Ordering::SeqCst, Ordering::Relaxed);
        exchanged.ok()?;
        self.hint(space, node, arena, [word, word & !mask]);
        let with_memory = used.load(Ordering::Relaxed) & mask;
        self.count_idle(-(with_memory.count_ones() as i32));
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT | first as usize,
            is_zero: with_memory == 0,
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
            is_zero: true,
        })
    }

    /// Begins arenas that follow each other. They belong to the caller.
    fn begin_arenas(&self, space: &impl Arenas, from: From, count: usize) -> Option<usize> {
        let all = space.arenas_at_most();
        let first = space.arenas_of_node() * from.node;
        let own = &self.nodes[from.node];
        for _ in 0..BEGIN_TRIES {
            let begun = own.begun.load(Ordering::Relaxed) as usize;
            // Acquires that what is open is.
            let open = own.open.load(Ordering::Acquire) as usize;
            if begun + count > all || begun + count > own.most.load(Ordering::Relaxed) as usize {
                return None;
            }
            if begun + count > open {
                // An eighth more than there is, so that the number of such calls grows with the
                // logarithm only. Two threads may open the same arenas, which harms nobody.
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

    /// Real-time mode: opens a node's arenas, brings memory behind them and what belongs to them, and
    /// allows no others. What the system refused.
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

    /// Looks ahead of those who take chunks, that their first touch of what keeps account of them need not go to
    /// the system: for the arenas of a node from the `done`th on that have been begun, and the one that comes
    /// next. How many are done now.
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

    /// Opens a node's arenas up to the `end`th: `more` of them, or at least what is needed. False if
    /// the system refuses.
    fn open(&self, space: &impl Arenas, node: usize, end: usize, more: usize) -> bool {
        if space.is_sparse() {
            return self.open_sparse(space, node, end);
        }
        let own = &self.nodes[node];
        let open = own.open.load(Ordering::Acquire) as usize;
        let first = space.arenas_of_node() * node + open;
        // If there is no memory for so many, perhaps there is for what is needed.
        for more in [more, end.saturating_sub(open)] {
            if space.open(first, more) {
                own.open.fetch_max((open + more) as u32, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// For who looks from outside.
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

    /// Gives chunks back that were taken together, or a part of them. `is_zero`: they have not been
    /// written to.
    pub(crate) fn give(&self, space: &impl Arenas, chunk: usize, chunks: u32, is_zero: bool) {
        let arena = chunk >> CHUNKS_SHIFT;
        let mask = words::ones(chunks) << (chunk & 63);
        let [free, used] = space.word(arena);
        if space.is_brought(arena, mask) {
            send_home(space, arena, mask, used);
        } else if !is_zero {
            used.fetch_or(mask, Ordering::Relaxed);
        }
        let with_memory = used.load(Ordering::Relaxed) & mask;
        // Releases what has been done with them.
        let before = free.fetch_or(mask, Ordering::SeqCst);
        self.count_idle(with_memory.count_ones() as i32);
        self.hint(space, space.node_of(arena), arena, [before, before | mask]);
    }

    /// Such as are free, if some are found soon, or new ones.
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
            is_zero: true,
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
        let mut is_zero = true;
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
            is_zero &= with_memory == 0;
            self.count_idle(-(with_memory.count_ones() as i32));
            self.hint(space, node, i, [u64::MAX, 0]);
        }
        Some(Taken {
            chunk: arena << CHUNKS_SHIFT,
            is_zero,
        })
    }

    /// Takes the chunks that follow a block of `has`, so that it has `wanted`. False if they are not
    /// free, or in another arena.
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

    /// Gives chunks back that may reach over several arenas.
    pub(crate) fn give_many(&self, space: &impl Arenas, chunk: usize, chunks: usize) {
        let (mut chunk, mut left) = (chunk, chunks);
        while left > 0 {
            let here = left.min(64 - (chunk & 63));
            self.give(space, chunk, here as u32, false);
            chunk += here;
            left -= here;
        }
    }

    /// Gives the memory behind free chunks back to the system, but for `keep` bytes. The bytes given
    /// back. While it is at a run of chunks, that run is its own.
    pub(crate) fn trim(&self, space: &impl Arenas, keep: usize) -> usize {
        let (mut kept, mut given) = (0, 0);
        for node in 0..self.nodes.len() {
            for arena in self.in_use(space, node) {
                let [free, used] = space.word(arena);
                let mut idle = free.load(Ordering::Relaxed) & used.load(Ordering::Relaxed);
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
        }
        given
    }

    /// All arenas that have been begun and opened.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn arenas_in_use(&self, space: &impl Arenas) -> std::vec::Vec<usize> {
        (0..self.nodes.len())
            .flat_map(|node| self.in_use(space, node))
            .collect()
    }

    /// Chunks of all nodes that somebody has.
    pub(crate) fn held(&self, space: &impl Arenas) -> usize {
        let mut held = 0;
        for node in 0..self.nodes.len() {
            for arena in self.in_use(space, node) {
                held += space.word(arena)[0].load(Ordering::Relaxed).count_zeros() as usize;
            }
        }
        held
    }

    /// Free chunks of all nodes that have memory behind them.
    pub(crate) fn idle(&self, space: &impl Arenas) -> u32 {
        let mut idle = 0;
        for node in 0..self.nodes.len() {
            for arena in self.in_use(space, node) {
                let [free, used] = space.word(arena);
                let both = free.load(Ordering::Relaxed) & used.load(Ordering::Relaxed);
                idle += both.count_ones();
            }
        }
        idle
    }

    /// About as many, without a walk.
    pub(crate) fn idle_about(&self) -> u32 {
        self.idle.load(core::sync::atomic::Ordering::Relaxed).max(0) as u32
    }

    fn count_idle(&self, chunks: i32) {
        if chunks != 0 {
            let order = core::sync::atomic::Ordering::Relaxed;
            self.idle.fetch_add(chunks, order);
        }
    }

    /// Gives memory behind free chunks of a node back to the system: of those of one arena, as many as asked
    /// at most. How many there were.
    pub(crate) fn forget_idle(
        &self,
        space: &impl Arenas,
        node: usize,
        chunks: u32,
        what: Forgotten,
    ) -> u32 {
        let Some(arena) = self.hinted(space, node, IDLE) else {
            return 0;
        };
        let [free, used] = space.word(arena);
        let idle = free.load(Ordering::Relaxed) & used.load(Ordering::Relaxed);
        if idle == 0 {
            self.hint_all(space, node, arena);
            return 0;
        }
        let first = idle.trailing_zeros();
        let count = (!(idle >> first))
            .trailing_zeros()
            .min(chunks)
            .min(64 - first);
        if self.forget(space, arena, words::ones(count) << first, what) {
            count
        } else {
            0
        }
    }

    /// Gives the memory behind chunks back to the system, if they are all free; perhaps with what keeps account
    /// of them, and of those beside them that are free and have no memory.
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
        // SAFETY: the chunks were free, and are this function's for the moment.
        let done = unsafe { space.forget(chunk(mask), count(mask)) };
        if done {
            let with_memory = used.fetch_and(!mask, Ordering::Relaxed) & mask;
            self.count_idle(-(with_memory.count_ones() as i32));
            if what == Forgotten::WithMetadata {
                // SAFETY: as above.
                unsafe { space.forget_metadata(chunk(run), count(run)) };
            }
            space.forgot_brought(arena, mask);
        }
        // To others they were taken until now: the hints have to be told of both.
        free.fetch_or(run, Ordering::SeqCst);
        self.hint_all(space, space.node_of(arena), arena);
        done
    }

    /// Makes the hints of an arena true, after its word has changed from one to the other by one exchange.
    ///
    /// Who makes the first room of a kind, or takes the last, tells so; who does neither leaves it to
    /// those. What is idle is told always: the second word may have changed between an exchange
    /// and a look at it.
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

    /// The same, whatever has changed.
    fn hint_all(&self, space: &impl Arenas, node: usize, arena: usize) {
        for room in 0..ROOMS {
            self.hint_of(space, node, arena, room);
        }
    }

    fn hint_of(&self, space: &impl Arenas, node: usize, arena: usize, room: usize) {
        let at = arena - space.arenas_of_node() * node;
        let word = space.word(arena);
        self.hints(space, node, room)
            .tell(at, || has_room(word, room));
    }
}
