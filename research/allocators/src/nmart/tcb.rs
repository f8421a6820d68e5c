//! A thread's private heap: the lists, the bitmaps, the stack of arenas, and the stack of blocks
//! that other threads have freed.
//!
//! | field | written by | read by | when |
//! |---|---|---|---|
//! | lists, bitmaps, arenas, steps | the owner | the owner | any time |
//! | `remote.head` | anybody | anybody | with `remote.lock` held; the owner looks without |
//! | `next_known` | the maker of the heap | the forking thread | once, before others can see it |
//! | `next_parked` | the parking or adopting thread | the same | under the parking list's lock |
//!
//! The owner is the thread that the heap is attached to. A parked heap has none, until a thread
//! adopts it; the parking list's lock hands everything over.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::block::{Arena, Block, after, matrix_cell};
use super::lock::Lock;
use super::mapping::{LISTS, ListId, ROWS, SMALL_LISTS, cell};

/// Fields that other threads write, on a cache line of their own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Remote {
    pub lock: Lock,
    pub head: AtomicPtr<Block>,
}

/// The thread control block. All zero bytes are an empty one.
#[repr(C)]
#[derive(Debug)]
pub struct Tcb {
    small_bits: [u64; 2],
    row_bits: u32,
    list_bits: [u64; ROWS],
    small: [*mut Block; SMALL_LISTS],
    matrix: [*mut Block; ROWS * LISTS],
    /// The stack of arenas, the newest on top.
    pub arenas: *mut Arena,
    /// Bytes of those arenas.
    pub arena_bytes: usize,
    /// Steps so far, if they are counted.
    pub steps: u64,
    /// All heaps of the process, for forks.
    pub next_known: *mut Tcb,
    /// Heaps whose thread has ended.
    pub next_parked: *mut Tcb,
    /// Blocks that other threads have freed and the owner has not taken back.
    pub remote: Remote,
}

impl Tcb {
    /// The front of the first list, from `place` on, that is not empty; null if all are.
    ///
    /// Looks at a bounded number of words: at most two of small lists, then at most three of normal
    /// ones.
    pub fn find(&self, place: ListId) -> *mut Block {
        let rows = match place {
            ListId::Small(number) => {
                let bit = number - 1;
                let (word, bit) = (bit / 64, bit % 64);
                let here = self.small_bits[word] & (u64::MAX << bit);
                if here != 0 {
                    return self.small[word * 64 + here.trailing_zeros() as usize];
                }
                if word == 0 && self.small_bits[1] != 0 {
                    return self.small[64 + self.small_bits[1].trailing_zeros() as usize];
                }
                self.row_bits
            }
            ListId::Normal(row, list) => {
                let here = self.list_bits[row] & (u64::MAX << list);
                if here != 0 {
                    return self.matrix[cell(row, here.trailing_zeros() as usize)];
                }
                self.row_bits & (u32::MAX << (row + 1))
            }
        };
        // Mended: the listing takes row 0 for nothing found, and shifts 32 bits for 64.
        if rows == 0 {
            return ptr::null_mut();
        }
        let row = rows.trailing_zeros() as usize;
        self.matrix[cell(row, self.list_bits[row].trailing_zeros() as usize)]
    }

    /// Puts a free block in front of the list that its header names.
    ///
    /// # Safety
    /// The block is of this heap, free, and in no list; the caller owns the heap.
    pub unsafe fn insert(&mut self, block: *mut Block) {
        // SAFETY: the caller's promise.
        let place = unsafe { (*block).place() };
        let head = self.head_mut(place);
        let next = *head;
        *head = block;
        // SAFETY: a free block's payload holds links; the front of a list is a free block.
        unsafe {
            (*block).next = next;
            (*block).previous = ptr::null_mut();
            if !next.is_null() {
                (*next).previous = block;
            }
        }
        if next.is_null() {
            self.mark(place);
        }
    }

    /// Takes a block out of its list.
    ///
    /// # Safety
    /// The block is in the list that its header names; the caller owns the heap.
    pub unsafe fn extract(&mut self, block: *mut Block) {
        // SAFETY: the caller's promise.
        let (place, next, previous) =
            unsafe { ((*block).place(), (*block).next, (*block).previous) };
        if !next.is_null() {
            // Mended: taking the front for a request leaves the new front's link as it was in the
            // listing. SAFETY: links lead to free blocks of the heap.
            unsafe { (*next).previous = previous };
        }
        if previous.is_null() {
            *self.head_mut(place) = next;
            if next.is_null() {
                self.unmark(place);
            }
        } else {
            // SAFETY: links lead to free blocks of the heap.
            unsafe { (*previous).next = next };
        }
    }

    fn head_mut(&mut self, place: ListId) -> &mut *mut Block {
        match (place, matrix_cell(place)) {
            (_, Some(cell)) => &mut self.matrix[cell],
            (ListId::Small(number), _) | (ListId::Normal(number, _), _) => {
                &mut self.small[number - 1]
            }
        }
    }

    fn mark(&mut self, place: ListId) {
        match place {
            ListId::Small(number) => {
                self.small_bits[(number - 1) / 64] |= 1 << ((number - 1) % 64);
            }
            ListId::Normal(row, list) => {
                self.list_bits[row] |= 1 << list;
                self.row_bits |= 1 << row;
            }
        }
    }

    fn unmark(&mut self, place: ListId) {
        match place {
            ListId::Small(number) => {
                self.small_bits[(number - 1) / 64] &= !(1 << ((number - 1) % 64));
            }
            ListId::Normal(row, list) => {
                self.list_bits[row] &= !(1 << list);
                if self.list_bits[row] == 0 {
                    self.row_bits &= !(1 << row);
                }
            }
        }
    }

    /// Puts an arena on top of the stack.
    ///
    /// # Safety
    /// The arena is in no stack and no pool; the caller owns the heap.
    pub unsafe fn add_arena(&mut self, arena: *mut Arena) {
        let top = self.arenas;
        // SAFETY: the caller's promise; the stack's arenas are the heap's.
        unsafe {
            (*arena).previous = ptr::null_mut();
            (*arena).next = top;
            if !top.is_null() {
                (*top).previous = arena;
            }
            self.arena_bytes += (*arena).size();
        }
        self.arenas = arena;
    }

    /// Takes an arena out of the stack.
    ///
    /// # Safety
    /// The arena is in this stack; the caller owns the heap.
    pub unsafe fn remove_arena(&mut self, arena: *mut Arena) {
        // SAFETY: the caller's promise; the stack's arenas are the heap's.
        unsafe {
            let (previous, next) = ((*arena).previous, (*arena).next);
            if !next.is_null() {
                (*next).previous = previous;
            }
            if previous.is_null() {
                self.arenas = next;
            } else {
                (*previous).next = next;
            }
            self.arena_bytes -= (*arena).size();
        }
    }

    /// Are there blocks on their way home? A look without the lock: the next operation finds
    /// blocks that are missed now.
    #[must_use]
    pub fn has_remote(&self) -> bool {
        // Relaxed: only compared with null; a thread that takes the blocks takes the lock.
        !self.remote.head.load(Ordering::Relaxed).is_null()
    }

    /// Walks lists, bitmaps, arenas and blocks.
    ///
    /// # Errors
    /// The first fault, in a sentence.
    ///
    /// # Safety
    /// The caller owns the heap.
    pub unsafe fn check(&self) -> Result<(), String> {
        let mut listed = 0;
        for number in 1..=SMALL_LISTS {
            let is_marked = (self.small_bits[(number - 1) / 64] >> ((number - 1) % 64)) & 1 == 1;
            // SAFETY: the caller's promise.
            listed +=
                unsafe { check_list(self.small[number - 1], ListId::Small(number), is_marked)? };
        }
        for row in 0..ROWS {
            if (self.row_bits >> row) & 1 != u32::from(self.list_bits[row] != 0) {
                return Err(format!("row {row}: its bit says otherwise"));
            }
            for list in 0..LISTS {
                let is_marked = (self.list_bits[row] >> list) & 1 == 1;
                let place = ListId::Normal(row, list);
                // SAFETY: the caller's promise.
                listed += unsafe { check_list(self.matrix[cell(row, list)], place, is_marked)? };
            }
        }
        // SAFETY: the caller's promise.
        let (free, bytes) = unsafe { self.check_arenas()? };
        if free != listed {
            return Err(format!("{free} blocks are free and {listed} are listed"));
        }
        if bytes != self.arena_bytes {
            return Err(format!(
                "{bytes} bytes of arenas, {} noted",
                self.arena_bytes
            ));
        }
        Ok(())
    }

    /// Free blocks in arenas, and bytes of arenas.
    ///
    /// # Safety
    /// The caller owns the heap.
    unsafe fn check_arenas(&self) -> Result<(usize, usize), String> {
        let (mut free, mut bytes) = (0, 0);
        let mut arena = self.arenas;
        while !arena.is_null() {
            // SAFETY: arenas of the stack are the heap's, their blocks lie side by side.
            unsafe {
                bytes += (*arena).size();
                if !ptr::eq((*arena).owner, self) {
                    return Err(format!("{arena:p}: of another heap"));
                }
                let mut block = super::block::first_block(arena);
                let mut before: *mut Block = ptr::null_mut();
                while block != (*arena).end {
                    if (*block).before != before {
                        return Err(format!("{block:p}: knows another block before it"));
                    }
                    if !ptr::eq((*block).owner, self) {
                        return Err(format!("{block:p}: of another heap"));
                    }
                    if (*block).is(super::block::FREE) {
                        free += 1;
                        if !before.is_null() && (*before).is(super::block::FREE) {
                            return Err(format!("{block:p}: free, and so is the one before"));
                        }
                    }
                    before = block;
                    block = after(block);
                    if block > (*arena).end {
                        return Err(format!("{before:p}: reaches beyond its arena"));
                    }
                }
                if (*block).before != before || !(*block).is(super::block::UNMANAGED) {
                    return Err(format!("{block:p}: no end mark"));
                }
                arena = (*arena).next;
            }
        }
        Ok((free, bytes))
    }
}

/// Number of blocks in a list.
///
/// # Safety
/// The caller owns the heap that the list is of.
unsafe fn check_list(head: *mut Block, place: ListId, is_marked: bool) -> Result<usize, String> {
    if is_marked == head.is_null() {
        return Err(format!("{place:?}: its bit says otherwise"));
    }
    let (mut count, mut block, mut previous) = (0, head, ptr::null_mut::<Block>());
    while !block.is_null() {
        // SAFETY: the caller's promise: links lead to free blocks.
        unsafe {
            let is_right = (*block).place() == place
                && super::mapping::insert_map((*block).size()) == place
                && (*block).is(super::block::FREE)
                && (*block).previous == previous;
            if !is_right {
                return Err(format!(
                    "{block:p}: does not belong where it is listed, {place:?}"
                ));
            }
            previous = block;
            block = (*block).next;
        }
        count += 1;
    }
    Ok(count)
}
