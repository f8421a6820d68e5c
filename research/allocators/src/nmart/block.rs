//! Blocks and arenas as they lie in memory.
//!
//! ```text
//! arena, whole pages
//! | 0 arena header, 40 bytes | 40 block | block | … | −24 end mark |
//!
//! block
//! | block before | owner | size + state | row | list | payload: size bytes …
//! | 8            | 8     | 4            | 2   | 2    | free: next, previous
//! ```
//!
//! Block headers lie at 8 (mod 16) and payloads have 8 (mod 16) bytes, so that payloads begin at
//! multiples of 16. Mended: the source rounds to 4 bytes and keeps three state bits in the size's
//! low end, where 4-byte sizes leave two; and a small free block of 4 bytes cannot hold its links.
//! The least payload is 24 bytes here. The source's classes of 4 bytes are all there as lists.

use std::ptr;

use super::mapping::{ListId, SMALL_MAX, cell, insert_map};
use super::tcb::Tcb;
use crate::heap::{ALIGN, round_up};

/// A block's header.
pub const OVERHEAD: usize = 24;
/// The least payload.
pub const PAYLOAD_MIN: usize = 24;
/// An arena's header.
pub const ARENA_HEADER: usize = 40;
/// Bytes of an arena besides its first block's payload: its header, that block's, and the end mark.
pub const ARENA_OVERHEAD: usize = ARENA_HEADER + 2 * OVERHEAD;
/// The system's page size; arenas are multiples of it.
pub const PAGE: usize = 4096;

/// The block is in no user's hands and, unless it is just being moved, listed.
pub const FREE: u32 = 1;
/// The block has at most [`SMALL_MAX`] bytes.
pub const SMALL: u32 = 2;
/// The block belongs to no arena: a mapping of its own, or an end mark.
pub const UNMANAGED: u32 = 4;
const STATE: u32 = FREE | SMALL | UNMANAGED;

/// A block's header, and the links of a free one.
#[repr(C)]
#[derive(Debug)]
pub struct Block {
    /// The physical predecessor; null for an arena's first. For an unmanaged block: the mapping's
    /// bytes.
    pub before: *mut Block,
    /// The heap the block belongs to. For an unmanaged block: the start of its mapping.
    pub owner: *mut Tcb,
    size_state: u32,
    /// 0 for small lists, or a row's number from 1.
    row: u16,
    list: u16,
    /// Links of free blocks, and of those on their way home; otherwise payload.
    pub next: *mut Block,
    pub previous: *mut Block,
}

/// A payload's size for a request: 8 (mod 16), and the least or more.
#[must_use]
pub const fn payload_for(bytes: usize) -> usize {
    if bytes <= PAYLOAD_MIN {
        return PAYLOAD_MIN;
    }
    round_up(bytes + OVERHEAD, ALIGN) - OVERHEAD
}

/// The block of a payload.
#[must_use]
pub fn block_of(payload: *mut u8) -> *mut Block {
    payload.wrapping_sub(OVERHEAD).cast()
}

/// A block's payload.
#[must_use]
pub fn payload_of(block: *mut Block) -> *mut u8 {
    block.cast::<u8>().wrapping_add(OVERHEAD)
}

impl Block {
    /// Payload bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        (self.size_state & !STATE) as usize
    }

    /// Is this bit of the state set?
    #[must_use]
    pub fn is(&self, state: u32) -> bool {
        self.size_state & state != 0
    }

    /// Marks it free, or in use.
    pub fn set_free(&mut self, is_free: bool) {
        self.size_state = self.size_state & !FREE | if is_free { FREE } else { 0 };
    }

    /// Gives it a size, and with it the cached list; it is in use until it is marked free.
    pub fn set_size(&mut self, size: usize) {
        debug_assert!(size % ALIGN == 8, "{size}");
        let kind = if size <= SMALL_MAX { SMALL } else { 0 };
        self.size_state = size as u32 | kind;
        (self.row, self.list) = match insert_map(size) {
            ListId::Small(number) => (0, number as u16),
            ListId::Normal(row, list) => (row as u16 + 1, list as u16),
        };
    }

    /// Makes it an unmanaged one without bytes.
    pub fn set_unmanaged(&mut self) {
        self.size_state = UNMANAGED;
        (self.row, self.list) = (0, 0);
    }

    /// The list it belongs to, as kept in the header.
    #[must_use]
    pub fn place(&self) -> ListId {
        match self.row {
            0 => ListId::Small(self.list as usize),
            row => ListId::Normal(row as usize - 1, self.list as usize),
        }
    }
}

/// The block physically behind.
///
/// # Safety
/// The block is managed.
#[must_use]
pub unsafe fn after(block: *mut Block) -> *mut Block {
    // SAFETY: the caller's promise.
    let size = unsafe { (*block).size() };
    payload_of(block).wrapping_add(size).cast()
}

/// An arena's header.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    /// The end mark.
    pub end: *mut Block,
    /// Bit 0 free, bit 1 movable, bits 2 to 11 the node it was made on, from bit 12 on the size:
    /// arenas are whole pages, so that the low twelve bits are free.
    bits: usize,
    /// Links in its heap's stack, or in its pool.
    pub previous: *mut Arena,
    pub next: *mut Arena,
    /// The heap whose stack holds the arena; null in a pool. Ours: the source has owners in blocks
    /// only.
    pub owner: *mut Tcb,
}

const _: () = assert!(size_of::<Arena>() == ARENA_HEADER);
const _: () = assert!(std::mem::offset_of!(Block, next) == OVERHEAD);

const ARENA_FREE: usize = 1;
const ARENA_MOVABLE: usize = 2;
const NODE_SHIFT: u32 = 2;
/// The largest node number that fits an arena's header.
pub const NODE_MAX: usize = (1 << 10) - 1;

impl Arena {
    /// Bytes, all of it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bits & !(PAGE - 1)
    }

    /// The node that it was made on.
    #[must_use]
    pub fn node(&self) -> usize {
        (self.bits >> NODE_SHIFT) & NODE_MAX
    }

    /// May it go to a pool? The source sets the bit and never says its purpose: moves
    /// between the layers are the likely meaning.
    #[must_use]
    pub fn is_movable(&self) -> bool {
        self.bits & ARENA_MOVABLE != 0
    }

    /// Is all of it free?
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.bits & ARENA_FREE != 0
    }

    /// Notes whether all of it is free.
    pub fn set_free(&mut self, is_free: bool) {
        self.bits = self.bits & !ARENA_FREE | if is_free { ARENA_FREE } else { 0 };
    }
}

/// The arena's first block.
#[must_use]
pub fn first_block(arena: *mut Arena) -> *mut Block {
    arena.cast::<u8>().wrapping_add(ARENA_HEADER).cast()
}

/// The arena whose first block this is.
#[must_use]
pub fn arena_of(first: *mut Block) -> *mut Arena {
    first.cast::<u8>().wrapping_sub(ARENA_HEADER).cast()
}

/// Makes an arena of whole pages: one block, in use, not listed.
///
/// Mended: the listing gives the first block all but the arena's header; both block headers, its
/// own and the end mark's, have to be taken off as well.
///
/// # Safety
/// `size` bytes at `arena` are the caller's.
pub unsafe fn init_arena(arena: *mut Arena, size: usize, node: usize, owner: *mut Tcb) {
    let block = first_block(arena);
    let end: *mut Block = arena.cast::<u8>().wrapping_add(size - OVERHEAD).cast();
    // SAFETY: header, first block and end mark lie within the arena.
    unsafe {
        (*arena).end = end;
        (*arena).bits = size | (node.min(NODE_MAX) << NODE_SHIFT) | ARENA_FREE | ARENA_MOVABLE;
        (*arena).previous = ptr::null_mut();
        (*arena).next = ptr::null_mut();
        (*arena).owner = owner;
        (*block).before = ptr::null_mut();
        (*block).owner = owner;
        (*block).set_size(size - ARENA_OVERHEAD);
        (*end).before = block;
        (*end).owner = owner;
        (*end).set_unmanaged();
    }
}

/// A normal place's cell in the matrix, and whether the place is normal.
#[must_use]
pub fn matrix_cell(place: ListId) -> Option<usize> {
    match place {
        ListId::Small(_) => None,
        ListId::Normal(row, list) => Some(cell(row, list)),
    }
}
