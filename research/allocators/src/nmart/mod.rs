//! nMART: a private heap for each thread, a pool of empty arenas for each node, constant search.
//!
//! Small requests are looked up in lists 4 bytes apart, normal ones in rows of 64 lists; both lead
//! by bitmap to the front of a list in which every block is large enough ([`mapping`], [`tcb`]).
//! Blocks are merged with their neighbours as they are freed ([`block`]). A thread that frees a
//! block of another thread's heap pushes it on that heap's stack, and the owner takes *all* of the
//! stack back at its next operation: the one loop of the design, and the reason why its bound is
//! amortised. Empty arenas go to the pool of the node that they were made on ([`pools`]).
//!
//! ## Parts of the source that could not be built as they stand
//!
//! | the source | here |
//! |---|---|
//! | less than 512 bytes is small, or up to 512 | up to 512 |
//! | sizes are multiples of 4, with three state bits in their low end | payloads are 8 (mod 16), as the C ABI needs; all 128 classes are there as lists |
//! | a free block of 4 bytes holds links, in singly linked lists out of which neighbours are taken | 24 bytes at least, lists linked both ways |
//! | the matrix has stride 23: 570 cells for 1472 lists | stride 64 |
//! | rows in words of 32 bits, row 0 means nothing found | 64 bits, nothing found is said |
//! | an arena's first block gets all but the arena's header | both block headers come off, its own and the end mark's |
//! | the test for nothing found is on the wrong branch, the split threshold a constant | as its prose says: split if there is room for the request, the least block and a header |
//! | taking a list's front leaves the next one's back link; splitting leaves that of the block behind | both are set |
//! | merging forgets the header that becomes free | it is added |
//! | a block freed by another thread is marked free while it is on its way, and can be merged away | it stays in use until its owner lists it |
//! | the result of the compare-and-swap that pushes it is not looked at | a push is made with the lock held |
//! | draining returns nothing where a fitting block is expected, and writes through the last link | it returns the first block that fits; the stack is taken whole, and walked outside the lock |
//! | an arena is taken from a pool whatever its size, with its former thread's blocks | one that is large enough, made new |
//! | an arena is unmapped before it is taken out of the stack | after |
//! | an empty arena stays with its thread up to a threshold: in the prose only | so here; 1 MB, and mapped back to the system from 2 MB on, as it gives no figures |
//! | `pthread_create` is replaced to give each thread its heap | a thread gets it with its first request, which works for threads made in any way |
//! | nothing is said of a thread's end | it gives back what is empty and parks its heap, which the next thread of the node adopts |
//!
//! The bound of each operation, in steps, is counted by tests: `tests/nmart.rs`.

pub mod block;
pub mod lock;
pub mod mapping;
pub mod pools;
pub mod tcb;

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use self::block::{
    ARENA_OVERHEAD, Arena, Block, FREE, OVERHEAD, PAGE, PAYLOAD_MIN, UNMANAGED, after, arena_of,
    block_of, first_block, init_arena, payload_for, payload_of,
};
use self::lock::Lock;
use self::mapping::search_map;
use self::pools::Pool;
use self::tcb::Tcb;
use crate::heap::{ALIGN, REQUEST_MAX, round_up};

/// Requests above this are mappings of their own.
pub const DIRECT_FROM: usize = 2 << 20;
/// Empty arenas of this size go back to the system. The source has the constant and no figure.
pub const HOLD_MAX: usize = 2 << 20;
/// Bytes of arenas that a heap may have before an empty one goes to the pool. The source has no
/// figure here either.
pub const RETAIN_MAX: usize = 1 << 20;
/// Nodes with a pool of their own. Those of higher numbers share.
pub const NODES_MAX: usize = 64;
/// Size of a thread's first arena.
pub const FIRST_ARENA: usize = PAGE;

/// Source of whole pages, and of the node the calling thread runs on.
///
/// # Safety
/// [`Pages::map`] returns that many zero bytes at the start of a page, the caller's until it unmaps
/// them.
pub unsafe trait Pages: Sync {
    /// `bytes` bytes, whole pages; null if there are none.
    fn map(&self, bytes: usize) -> *mut u8;

    /// Gives them back.
    ///
    /// # Safety
    /// They were mapped so, and nobody uses them.
    unsafe fn unmap(&self, start: *mut u8, bytes: usize);

    /// The node of the core that the calling thread runs on.
    fn node(&self) -> usize;
}

/// The allocator of a process.
#[derive(Debug)]
pub struct Nmart<P, const COUNTED: bool = false> {
    pages: P,
    pools: [Pool; NODES_MAX],
    /// Heaps whose threads have ended, by node.
    parked: [AtomicPtr<Tcb>; NODES_MAX],
    parked_lock: Lock,
    known: AtomicPtr<Tcb>,
    held: AtomicUsize,
}

/// Bytes of a heap's own records, whole pages. They do not fit the first arena of 4 KB that the
/// source reserves them in: its matrix alone has more.
const TCB_BYTES: usize = round_up(size_of::<Tcb>(), PAGE);

impl<P: Pages, const COUNTED: bool> Nmart<P, COUNTED> {
    /// An allocator without any heap yet.
    pub const fn new(pages: P) -> Self {
        Nmart {
            pages,
            pools: [const { Pool::new() }; NODES_MAX],
            parked: [const { AtomicPtr::new(ptr::null_mut()) }; NODES_MAX],
            parked_lock: Lock::new(),
            known: AtomicPtr::new(ptr::null_mut()),
            held: AtomicUsize::new(0),
        }
    }

    /// The source of the pages.
    pub const fn pages(&self) -> &P {
        &self.pages
    }

    /// A node's pool.
    pub fn pool(&self, node: usize) -> &Pool {
        &self.pools[node.min(NODES_MAX - 1)]
    }

    /// Bytes taken from the system.
    pub fn bytes_held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn node(&self) -> usize {
        self.pages.node().min(NODES_MAX - 1)
    }

    fn map(&self, bytes: usize) -> *mut u8 {
        let start = self.pages.map(bytes);
        if !start.is_null() {
            // Relaxed, here and below: a figure, which orders nothing.
            self.held.fetch_add(bytes, Ordering::Relaxed);
        }
        start
    }

    /// # Safety
    /// As for [`Pages::unmap`].
    unsafe fn unmap(&self, start: *mut u8, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.pages.unmap(start, bytes) };
    }

    fn step(tcb: &mut Tcb) {
        if COUNTED {
            tcb.steps += 1;
        }
    }

    /// A heap for the calling thread: one whose thread has ended on this node, with what it has, or
    /// a new one with an arena of a page. Null if there is no memory.
    pub fn attach(&self) -> *mut Tcb {
        let node = self.node();
        let adopted = self.parked_lock.with(|| {
            // Relaxed: written with this lock held only, which orders.
            let top = self.parked[node].load(Ordering::Relaxed);
            if !top.is_null() {
                // SAFETY: a parked heap lives on; the lock makes this thread its only user.
                let next = unsafe { (*top).next_parked };
                self.parked[node].store(next, Ordering::Relaxed);
            }
            top
        });
        if !adopted.is_null() {
            return adopted;
        }
        let tcb: *mut Tcb = self.map(TCB_BYTES).cast();
        if tcb.is_null() {
            return tcb;
        }
        // The pages are zero, which is an empty heap.
        let mut known = self.known.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread knows the heap yet.
            unsafe { (*tcb).next_known = known };
            // Release: a thread that walks the list sees the link. Pairs with the acquire in
            // `each_known`.
            let swapped =
                self.known
                    .compare_exchange_weak(known, tcb, Ordering::Release, Ordering::Relaxed);
            match swapped {
                Ok(_) => break,
                Err(now) => known = now,
            }
        }
        // SAFETY: the heap is this thread's.
        unsafe {
            let arena = self.get_arena(FIRST_ARENA - ARENA_OVERHEAD, tcb);
            if !arena.is_null() {
                self.list_whole(&mut *tcb, arena);
            }
        }
        tcb
    }

    /// Ends the thread: empty arenas go to the pools, the rest waits for the next thread here.
    ///
    /// # Safety
    /// The heap is the calling thread's, which does not use it again.
    pub unsafe fn detach(&self, tcb: *mut Tcb) {
        // SAFETY: the caller's promise. Blocks that come home from now on wait for the adopter.
        unsafe {
            self.drain(&mut *tcb, 0);
            let mut arena = (*tcb).arenas;
            while !arena.is_null() {
                let next = (*arena).next;
                let first = first_block(arena);
                if (*first).is(FREE) && after(first) == (*arena).end {
                    (*tcb).extract(first);
                    (*tcb).remove_arena(arena);
                    self.pool((*arena).node()).push(arena);
                }
                arena = next;
            }
        }
        let node = self.node();
        self.parked_lock.with(|| {
            // SAFETY: the caller's promise; the lock hands the heap on.
            unsafe { (*tcb).next_parked = self.parked[node].load(Ordering::Relaxed) };
            self.parked[node].store(tcb, Ordering::Relaxed);
        });
    }

    /// Calls `what` with each heap there is.
    fn each_known(&self, what: impl Fn(&Tcb)) {
        // Acquire: pairs with the release in `attach`.
        let mut tcb = self.known.load(Ordering::Acquire);
        while !tcb.is_null() {
            // SAFETY: heaps live as long as the process; only their shared part is touched here.
            unsafe {
                what(&*tcb);
                tcb = (*tcb).next_known;
            }
        }
    }

    /// Before a fork: takes every lock, so that the child finds none taken by a thread it lacks.
    pub fn before_fork(&self) {
        self.parked_lock.lock();
        for pool in &self.pools {
            pool.lock.lock();
        }
        self.each_known(|tcb| tcb.remote.lock.lock());
    }

    /// After a fork, in parent and child. In the child the heaps of other threads stay as they are,
    /// lost: their owners may have been in the middle of something.
    pub fn after_fork(&self) {
        self.each_known(|tcb| tcb.remote.lock.unlock());
        for pool in &self.pools {
            pool.lock.unlock();
        }
        self.parked_lock.unlock();
    }

    /// A block of `bytes` bytes or more; null if there is no memory.
    ///
    /// # Safety
    /// The heap is the calling thread's.
    #[inline]
    pub unsafe fn allocate(&self, tcb: *mut Tcb, bytes: usize) -> *mut u8 {
        if bytes > DIRECT_FROM {
            return self.direct(ALIGN, bytes);
        }
        // SAFETY: the caller's promise.
        let tcb = unsafe { &mut *tcb };
        let wanted = payload_for(bytes);
        // SAFETY: the heap is this thread's; what is found or made is a free block of it.
        unsafe {
            let drained = self.drain(tcb, wanted);
            if !drained.is_null() {
                self.split(tcb, drained, wanted);
                return payload_of(drained);
            }
            let (place, least) = search_map(wanted);
            let wanted = payload_for(least);
            Self::step(tcb);
            let mut block = tcb.find(place);
            if block.is_null() {
                let arena = self.get_arena(wanted, tcb);
                if arena.is_null() {
                    return ptr::null_mut();
                }
                self.list_whole(tcb, arena);
                block = tcb.find(place);
            }
            tcb.extract(block);
            (*block).set_free(false);
            Self::step(tcb);
            self.split(tcb, block, wanted);
            payload_of(block)
        }
    }

    /// A block at a multiple of `align`, a power of two.
    ///
    /// # Safety
    /// The heap is the calling thread's.
    pub unsafe fn allocate_aligned(&self, tcb: *mut Tcb, align: usize, bytes: usize) -> *mut u8 {
        if align > REQUEST_MAX || bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let least = OVERHEAD + PAYLOAD_MIN;
        let padded = bytes + align + least;
        if padded > DIRECT_FROM && align > ALIGN {
            return self.direct(align, bytes);
        }
        // SAFETY: the caller's promise.
        let payload = unsafe { self.allocate(tcb, if align > ALIGN { padded } else { bytes }) };
        if payload.is_null() || payload.addr().is_multiple_of(align) {
            return payload;
        }
        let skipped = round_up(payload.addr() + least, align) - payload.addr();
        let front = block_of(payload);
        let rest = block_of(payload.wrapping_add(skipped));
        // SAFETY: the block is this heap's, and the header of the rest lies within its payload.
        unsafe {
            let size = (*front).size();
            (*rest).before = front;
            (*rest).owner = tcb;
            (*rest).set_size(size - skipped);
            (*after(rest)).before = rest;
            (*front).set_size(skipped - OVERHEAD);
            self.local_free(&mut *tcb, front);
            self.split(&mut *tcb, rest, payload_for(bytes));
        }
        payload.wrapping_add(skipped)
    }

    /// Takes a block back: into its own heap if that is the caller's, else onto its owner's stack.
    ///
    /// # Safety
    /// The heap is the calling thread's. The block is of any heap, not freed yet, and nobody uses
    /// it.
    #[inline]
    pub unsafe fn free(&self, tcb: *mut Tcb, payload: *mut u8) {
        let block = block_of(payload);
        // SAFETY: the caller's promise.
        unsafe {
            self.drain(&mut *tcb, 0);
            if (*block).is(UNMANAGED) {
                let (start, bytes) = ((*block).owner.cast(), (*block).before.addr());
                self.unmap(start, bytes);
            } else if (*block).owner == tcb {
                self.local_free(&mut *tcb, block);
            } else {
                Self::remote_free(block);
            }
        }
    }

    /// Usable bytes of a block.
    ///
    /// # Safety
    /// The block is handed out.
    pub unsafe fn usable(payload: *mut u8) -> usize {
        let block = block_of(payload);
        // SAFETY: the caller's promise.
        unsafe {
            if (*block).is(UNMANAGED) {
                let start: *mut u8 = (*block).owner.cast();
                return start.addr() + (*block).before.addr() - payload.addr();
            }
            (*block).size()
        }
    }

    /// Makes a block of the caller's heap hold `bytes` bytes without moving it, if it can: as it
    /// is, or with the free block behind it.
    ///
    /// # Safety
    /// As for [`Nmart::free`], but that the block stays in use.
    pub unsafe fn resize(&self, tcb: *mut Tcb, payload: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            if Self::usable(payload) >= bytes {
                return true;
            }
            let block = block_of(payload);
            if (*block).is(UNMANAGED) || (*block).owner != tcb || bytes > DIRECT_FROM {
                return false;
            }
            let (wanted, next) = (payload_for(bytes), after(block));
            if !(*next).is(FREE) || (*block).size() + OVERHEAD + (*next).size() < wanted {
                return false;
            }
            (*tcb).extract(next);
            (*block).set_size((*block).size() + OVERHEAD + (*next).size());
            (*after(block)).before = block;
            self.split(&mut *tcb, block, wanted);
            true
        }
    }

    /// A mapping of its own.
    #[cold]
    fn direct(&self, align: usize, bytes: usize) -> *mut u8 {
        if bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let padding = if align > PAGE { align } else { 0 };
        let mapped = round_up(bytes + ALIGN + OVERHEAD + align + padding, PAGE);
        let start = self.map(mapped);
        if start.is_null() {
            return start;
        }
        let payload =
            start.wrapping_add(round_up(start.addr() + OVERHEAD, align.max(ALIGN)) - start.addr());
        let block = block_of(payload);
        // SAFETY: the header lies within the mapping, before the payload.
        unsafe {
            (*block).set_unmanaged();
            (*block).before = ptr::without_provenance_mut(mapped);
            (*block).owner = start.cast();
        }
        payload
    }

    /// Takes back what others have freed: all of it, k blocks in O(k). The first that holds
    /// `wanted` bytes once it is merged with its neighbours is returned, in use; null for none, or
    /// if nothing is wanted.
    ///
    /// # Safety
    /// The heap is the calling thread's.
    #[inline]
    unsafe fn drain(&self, tcb: &mut Tcb, wanted: usize) -> *mut Block {
        if !tcb.has_remote() {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { self.drain_slow(tcb, wanted) }
    }

    /// # Safety
    /// The heap is the calling thread's.
    #[cold]
    unsafe fn drain_slow(&self, tcb: &mut Tcb, wanted: usize) -> *mut Block {
        let remote = &tcb.remote;
        // Relaxed: the lock orders.
        let mut block = remote
            .lock
            .with(|| remote.head.swap(ptr::null_mut(), Ordering::Relaxed));
        let mut kept: *mut Block = ptr::null_mut();
        while !block.is_null() {
            // SAFETY: blocks on the stack are this heap's, in use, and linked by the threads that
            // pushed them. One that is kept is in use, so that none of the others is merged with
            // it.
            unsafe {
                let next = (*block).next;
                Self::step(tcb);
                let merged = self.merge(tcb, block);
                if wanted > 0 && kept.is_null() && (*merged).size() >= wanted {
                    (*merged).set_free(false);
                    kept = merged;
                } else {
                    self.keep_or_return(tcb, merged);
                }
                block = next;
            }
        }
        kept
    }

    /// # Safety
    /// The block is handed out, of a heap that is not the caller's, and nobody uses it.
    unsafe fn remote_free(block: *mut Block) {
        // SAFETY: the caller's promise: its payload holds the link, and its owner's records live as
        // long as the process.
        unsafe {
            let remote = &(*(*block).owner).remote;
            remote.lock.with(|| {
                // Relaxed: the lock orders. The block stays in use, so that its owner does not
                // merge it with a neighbour before it has it.
                (*block).next = remote.head.load(Ordering::Relaxed);
                remote.head.store(block, Ordering::Relaxed);
            });
        }
    }

    /// # Safety
    /// The block is in use, of this heap, the calling thread's.
    unsafe fn local_free(&self, tcb: &mut Tcb, block: *mut Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let merged = self.merge(tcb, block);
            self.keep_or_return(tcb, merged);
        }
    }

    /// Marks a block free and merges it with free neighbours, of which there are two at most. The
    /// resulting block is in no list.
    ///
    /// # Safety
    /// As for `local_free`.
    unsafe fn merge(&self, tcb: &mut Tcb, block: *mut Block) -> *mut Block {
        // SAFETY: the neighbours within an arena are this heap's; free ones are listed. The end
        // mark is in use.
        unsafe {
            let mut block = block;
            let mut size = (*block).size();
            let next = after(block);
            Self::step(tcb);
            if (*next).is(FREE) {
                tcb.extract(next);
                size += (*next).size() + OVERHEAD;
                Self::step(tcb);
            }
            let before = (*block).before;
            if !before.is_null() && (*before).is(FREE) {
                tcb.extract(before);
                size += (*before).size() + OVERHEAD;
                block = before;
                Self::step(tcb);
            }
            (*block).set_size(size);
            (*block).set_free(true);
            (*after(block)).before = block;
            block
        }
    }

    /// Lists a free block, unless it is a whole arena that is to leave the heap.
    ///
    /// # Safety
    /// The block is free, merged, in no list, of this heap, the calling thread's.
    unsafe fn keep_or_return(&self, tcb: &mut Tcb, block: *mut Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let is_whole = (*block).before.is_null() && (*after(block)).is(UNMANAGED);
            if is_whole && self.return_arena(tcb, arena_of(block)) {
                return;
            }
            tcb.insert(block);
        }
        Self::step(tcb);
    }

    /// Gives an empty arena back: to the system if it is large, to its node's pool if the heap has
    /// much. Says whether it has.
    ///
    /// # Safety
    /// The arena is empty, its block in no list; the heap is the calling thread's.
    unsafe fn return_arena(&self, tcb: &mut Tcb, arena: *mut Arena) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let size = (*arena).size();
            if size < HOLD_MAX && (tcb.arena_bytes <= RETAIN_MAX || !(*arena).is_movable()) {
                (*arena).set_free(true);
                return false;
            }
            tcb.remove_arena(arena);
            Self::step(tcb);
            if size >= HOLD_MAX {
                self.unmap(arena.cast(), size);
            } else {
                self.pool((*arena).node()).push(arena);
            }
            true
        }
    }

    /// Cuts a block in use behind `wanted` bytes, if the rest is a block.
    ///
    /// # Safety
    /// The block is in use, of this heap, the calling thread's, and holds `wanted` bytes.
    unsafe fn split(&self, tcb: &mut Tcb, block: *mut Block, wanted: usize) {
        // SAFETY: the caller's promise; the rest's header lies within the block's payload.
        unsafe {
            let size = (*block).size();
            if size < wanted + PAYLOAD_MIN + OVERHEAD {
                return;
            }
            (*block).set_size(wanted);
            let rest = after(block);
            (*rest).before = block;
            (*rest).owner = tcb;
            (*rest).set_size(size - wanted - OVERHEAD);
            (*after(rest)).before = rest;
            Self::step(tcb);
            // The block behind one from a list is in use; behind one that is enlarged it may be
            // free.
            let rest = self.merge(tcb, rest);
            tcb.insert(rest);
        }
        Self::step(tcb);
    }

    /// An arena with a block of `wanted` bytes or more, in no stack: from the pool of the node that
    /// the thread runs on, else from the system. Pools of other nodes are never asked.
    ///
    /// # Safety
    /// The heap is the calling thread's.
    #[cold]
    unsafe fn get_arena(&self, wanted: usize, tcb: *mut Tcb) -> *mut Arena {
        let bytes = round_up(wanted + ARENA_OVERHEAD, PAGE);
        let node = self.node();
        let pooled = self.pool(node).pop(bytes);
        // SAFETY: an arena of a pool is the caller's once it is popped, and so are fresh pages.
        unsafe {
            if !pooled.is_null() {
                init_arena(pooled, (*pooled).size(), (*pooled).node(), tcb);
                return pooled;
            }
            let fresh: *mut Arena = self.map(bytes).cast();
            if !fresh.is_null() {
                init_arena(fresh, bytes, node, tcb);
            }
            fresh
        }
    }

    /// Takes an arena into the heap, all of it one free block.
    ///
    /// # Safety
    /// The arena was just made for this heap, the calling thread's.
    unsafe fn list_whole(&self, tcb: &mut Tcb, arena: *mut Arena) {
        // SAFETY: the caller's promise.
        unsafe {
            tcb.add_arena(arena);
            let block = first_block(arena);
            (*block).set_free(true);
            tcb.insert(block);
        }
        Self::step(tcb);
    }
}
