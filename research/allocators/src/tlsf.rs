//! Two-level segregated fit: a row for each power of two, cut evenly into 32 lists, and bitmaps of
//! those that are not empty.
//!
//! ```text
//!  ≡ 0 (mod 16)                  ≡ 0
//!  | block before | size | state | payload, 16·k bytes …
//!  | 8 bytes      | 8 bytes      | free: next, previous
//! ```
//!
//! A request is rounded up to the next list's lower end before it is looked up, so that the front
//! of the list found is always large enough: no step depends on the heap. Written after the
//! publication and the traits that the source describes: second-level exponent 5, lists of 16 bytes
//! below 128, at least 10 KB at a time from the system and never a mapping of its own.

use std::ptr;

use crate::heap::{ALIGN, Grow, Heap, REQUEST_MAX, Steps, round_up};

/// Lists a row, as a power of two.
const SL_LOG2: u32 = 5;
const LISTS: usize = 1 << SL_LOG2;
/// Below this size row 0 goes by 4 bytes a list, of which only every fourth is used.
const LINEAR: usize = 128;
/// Binary logarithm of the size at which row 1 begins, less 1.
const FL_OFFSET: u32 = 6;
/// Rows up to 2^47: enough for every request that is not refused.
const ROWS: usize = 42;
/// Bytes of a block's header.
pub const OVERHEAD: usize = 16;
const PAYLOAD_MIN: usize = 16;
/// The least that is asked of the source.
pub const AREA_MIN: usize = 10 * 1024;

/// Bit 0 of a block's size.
const FREE: usize = 1;

/// Row and list.
pub type RowAndList = (usize, usize);

/// The list that a block of `size` bytes belongs to.
#[must_use]
pub const fn insert_map(size: usize) -> RowAndList {
    if size < LINEAR {
        return (0, size / (LINEAR / LISTS));
    }
    let row = size.ilog2();
    let list = (size >> (row - SL_LOG2)) - LISTS;
    ((row - FL_OFFSET) as usize, list)
}

/// The first list in which every block has `size` bytes or more.
#[must_use]
pub const fn search_map(size: usize) -> RowAndList {
    if size < LINEAR {
        return insert_map(size);
    }
    insert_map(size + (1 << (size.ilog2() - SL_LOG2)) - 1)
}

#[repr(C)]
#[derive(Debug)]
struct Block {
    /// Physically; null for a region's first.
    before: *mut Block,
    /// The payload's size, with the state.
    size: usize,
    /// Links of free blocks only; otherwise payload.
    next: *mut Block,
    previous: *mut Block,
}

fn payload_of(block: *mut Block) -> *mut u8 {
    block.cast::<u8>().wrapping_add(OVERHEAD)
}

fn block_of(payload: *mut u8) -> *mut Block {
    payload.wrapping_sub(OVERHEAD).cast()
}

/// # Safety
/// The header is a block's.
unsafe fn size(block: *mut Block) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*block).size & !FREE }
}

/// # Safety
/// The header is a block's.
unsafe fn is_free(block: *mut Block) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*block).size & FREE != 0 }
}

/// # Safety
/// The header is a block's, and not the one that ends a region.
unsafe fn after(block: *mut Block) -> *mut Block {
    // SAFETY: the caller's promise.
    let size = unsafe { size(block) };
    payload_of(block).wrapping_add(size).cast()
}

/// A TLSF heap.
#[derive(Debug)]
pub struct Tlsf<G, const COUNTED: bool = false> {
    rows: u64,
    lists: [u32; ROWS],
    heads: [[*mut Block; LISTS]; ROWS],
    source: G,
    /// The header that ends the last region, null before the first.
    last: *mut Block,
    first: *mut Block,
    regions: usize,
    held: usize,
    steps: Steps<COUNTED>,
}

// SAFETY: all pointers lead into memory that the heap owns.
unsafe impl<G: Send, const COUNTED: bool> Send for Tlsf<G, COUNTED> {}

impl<G: Grow, const COUNTED: bool> Tlsf<G, COUNTED> {
    /// A heap over a source.
    pub const fn new(source: G) -> Self {
        Tlsf {
            rows: 0,
            lists: [0; ROWS],
            heads: [[ptr::null_mut(); LISTS]; ROWS],
            source,
            last: ptr::null_mut(),
            first: ptr::null_mut(),
            regions: 0,
            held: 0,
            steps: Steps::new(),
        }
    }

    fn find(&mut self, (row, list): RowAndList) -> *mut Block {
        self.steps.step();
        let lists = self.lists[row] & (u32::MAX << list);
        if lists != 0 {
            return self.heads[row][lists.trailing_zeros() as usize];
        }
        self.steps.step();
        let rows = self.rows & (u64::MAX << (row + 1));
        if rows == 0 {
            return ptr::null_mut();
        }
        let row = rows.trailing_zeros() as usize;
        self.heads[row][self.lists[row].trailing_zeros() as usize]
    }

    /// # Safety
    /// The block is this heap's, marked free and in no list.
    unsafe fn insert(&mut self, block: *mut Block) {
        self.steps.step();
        // SAFETY: the caller's promise; a free block's payload holds the links.
        let (row, list) = insert_map(unsafe { size(block) });
        let head = self.heads[row][list];
        // SAFETY: as above; the head of a list is a free block of this heap.
        unsafe {
            (*block).next = head;
            (*block).previous = ptr::null_mut();
            if !head.is_null() {
                (*head).previous = block;
            }
        }
        self.heads[row][list] = block;
        self.lists[row] |= 1 << list;
        self.rows |= 1 << row;
    }

    /// # Safety
    /// The block is in its list.
    unsafe fn remove(&mut self, block: *mut Block) {
        self.steps.step();
        // SAFETY: the caller's promise.
        let ((row, list), next, previous) =
            unsafe { (insert_map(size(block)), (*block).next, (*block).previous) };
        if !next.is_null() {
            // SAFETY: links lead to free blocks of this heap.
            unsafe { (*next).previous = previous };
        }
        if previous.is_null() {
            self.heads[row][list] = next;
            if next.is_null() {
                self.lists[row] &= !(1 << list);
                if self.lists[row] == 0 {
                    self.rows &= !(1 << row);
                }
            }
        } else {
            // SAFETY: links lead to free blocks of this heap.
            unsafe { (*previous).next = next };
        }
    }

    /// Frees a block that is in no list, merged with free neighbours.
    ///
    /// # Safety
    /// The block is this heap's.
    unsafe fn merge(&mut self, block: *mut Block) {
        let mut block = block;
        // SAFETY: the blocks before and after one, as far as there are any, are this heap's, and a
        // free one is in its list.
        unsafe {
            let mut bytes = size(block);
            let next = after(block);
            if is_free(next) {
                self.remove(next);
                bytes += size(next) + OVERHEAD;
            }
            let before = (*block).before;
            if !before.is_null() && is_free(before) {
                self.remove(before);
                bytes += size(before) + OVERHEAD;
                block = before;
            }
            (*block).size = bytes | FREE;
            (*after(block)).before = block;
            self.insert(block);
        }
    }

    /// Cuts a used block behind its first `bytes`, if the rest is a block.
    ///
    /// # Safety
    /// The block is this heap's and in use, and has `bytes` bytes or more.
    unsafe fn cut(&mut self, block: *mut Block, bytes: usize) {
        // SAFETY: the caller's promise; what is behind `bytes` is the block's own.
        unsafe {
            let left = size(block) - bytes;
            if left < OVERHEAD + PAYLOAD_MIN {
                return;
            }
            (*block).size = bytes;
            let rest = after(block);
            (*rest).before = block;
            (*rest).size = left - OVERHEAD;
            (*after(rest)).before = rest;
            self.merge(rest);
        }
    }

    /// Adds at least one free block of `bytes` bytes.
    #[cold]
    fn grow(&mut self, bytes: usize) -> bool {
        // The request's list may begin above the request: the block must come from there.
        let needed = bytes + (bytes >> SL_LOG2) + 4 * OVERHEAD;
        let area = round_up(needed.max(AREA_MIN), ALIGN);
        let fresh = self.source.grow(area);
        if fresh.is_null() {
            return false;
        }
        self.held += area;
        let extends = !self.last.is_null() && fresh == payload_of(self.last);
        // The header that ended the region becomes that of the new block.
        let block = if extends {
            self.last
        } else {
            self.regions += 1;
            fresh.cast()
        };
        let end = fresh.wrapping_add(area - OVERHEAD).cast::<Block>();
        // SAFETY: from `block` to the end of `fresh` all is the heap's, and no block's.
        unsafe {
            if !extends {
                (*block).before = ptr::null_mut();
            }
            (*block).size = end.addr() - payload_of(block).addr();
            (*end).before = block;
            (*end).size = 0;
        }
        self.last = end;
        if self.first.is_null() {
            self.first = block;
        }
        // SAFETY: the block is the heap's and in no list.
        unsafe { self.merge(block) };
        true
    }
}

fn rounded(bytes: usize) -> usize {
    round_up(bytes.max(PAYLOAD_MIN), ALIGN)
}

// SAFETY: blocks lie side by side within regions of the source; each is either listed or handed
// out.
unsafe impl<G: Grow, const COUNTED: bool> Heap for Tlsf<G, COUNTED> {
    const OVERHEAD: usize = OVERHEAD;

    fn allocate(&mut self, bytes: usize) -> *mut u8 {
        if bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let bytes = rounded(bytes);
        let place = search_map(bytes);
        let mut block = self.find(place);
        if block.is_null() {
            if !self.grow(bytes) {
                return ptr::null_mut();
            }
            block = self.find(place);
        }
        if block.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the front of a list is a free block, here of `bytes` bytes or more.
        unsafe {
            self.remove(block);
            (*block).size &= !FREE;
            self.cut(block, bytes);
        }
        payload_of(block)
    }

    fn allocate_aligned(&mut self, align: usize, bytes: usize) -> *mut u8 {
        if align <= ALIGN {
            return self.allocate(bytes);
        }
        if align > REQUEST_MAX || bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let least = OVERHEAD + PAYLOAD_MIN;
        let payload = self.allocate(rounded(bytes) + align + least);
        if payload.is_null() || payload.addr().is_multiple_of(align) {
            return payload;
        }
        let skipped = round_up(payload.addr() + least, align) - payload.addr();
        let aligned = payload.wrapping_add(skipped);
        let (front, rest) = (block_of(payload), block_of(aligned));
        // SAFETY: the header of the rest lies within the front's payload; its end is the front's.
        unsafe {
            (*rest).before = front;
            (*rest).size = size(front) - skipped;
            (*after(rest)).before = rest;
            (*front).size = skipped - OVERHEAD;
            self.merge(front);
            self.cut(rest, rounded(bytes));
        }
        aligned
    }

    unsafe fn release(&mut self, payload: *mut u8) {
        let block = block_of(payload);
        // SAFETY: the caller's promise.
        unsafe {
            debug_assert!(!is_free(block), "{payload:p} is released twice");
            self.merge(block);
        }
    }

    unsafe fn usable(&self, payload: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { size(block_of(payload)) }
    }

    fn steps(&self) -> u64 {
        self.steps.count()
    }

    fn bytes_held(&self) -> usize {
        self.held
    }

    fn check(&self) -> Result<(), String> {
        for row in 0..ROWS {
            if (self.rows >> row) & 1 != u64::from(self.lists[row] != 0) {
                return Err(format!("row {row}: its bit says otherwise"));
            }
            for list in 0..LISTS {
                let is_marked = (self.lists[row] >> list) & 1 == 1;
                if is_marked == self.heads[row][list].is_null() {
                    return Err(format!("list {row}, {list}: its bit says otherwise"));
                }
            }
        }
        let (mut block, mut before) = (self.first, ptr::null_mut::<Block>());
        // SAFETY: blocks lie side by side up to the header without bytes.
        unsafe {
            while !block.is_null() && size(block) > 0 {
                if (*block).before != before {
                    return Err(format!("{block:p}: knows another block before it"));
                }
                if is_free(block) {
                    if !before.is_null() && is_free(before) {
                        return Err(format!("{block:p}: free, and so is the one before"));
                    }
                    let (row, list) = insert_map(size(block));
                    let mut listed = self.heads[row][list];
                    while !listed.is_null() && listed != block {
                        listed = (*listed).next;
                    }
                    if listed.is_null() {
                        return Err(format!("{block:p}: free and in no list"));
                    }
                }
                before = block;
                block = after(block);
            }
        }
        if self.regions == 1 && block != self.last {
            return Err(format!("{block:p}: the region ends elsewhere"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{insert_map, search_map};

    #[test]
    fn every_block_of_the_list_found_is_large_enough() {
        for size in (16..1usize << 20).step_by(16) {
            let place = insert_map(size);
            assert!(search_map(size) >= place, "{size}");
            // The smallest block of the list that a request is looked up in.
            let (row, list) = search_map(size);
            let least = match row {
                0 => list * 4,
                _ => (32 + list) << (row + 1),
            };
            assert!(least >= size, "{size}: {least}");
            assert_eq!(insert_map(least), (row, list));
        }
    }
}
