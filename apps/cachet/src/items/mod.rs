//! Items: one block each, which holds the item's header, its key and its value. The only module
//! with unsafe code.
//!
//! ```text
//! 0        8        16       24       32      40           56            64
//! ┌────────┬────────┬────────┬────────┬───────┬────────────┬─────────────┬─────┬───────┬──────┐
//! │ chain  │ newer  │ older  │ hash   │ cas   │ expires …  │ lengths …   │ key │ value │ \r\n │
//! └────────┴────────┴────────┴────────┴───────┴────────────┴─────────────┴─────┴───────┴──────┘
//! ```
//!
//! An item is in up to two structures at once, each with its own rules:
//!
//! *maker* is the owner of the [`Fresh`] while the item is new; *chain* the borrower of the
//! [`Chains`] that it is in later, exclusive to write; *pool* the exclusive borrower of the
//! [`Pool`].
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `chain`, `cas`, `client_flags`, `marks`, key, value | maker, then chain | maker, then chain |
//! | `newer`, `older`, `segment` | pool | pool |
//! | `expires`, `used`, `bits` | both, atomically | both |
//! | `hash`, lengths, `pool` | nobody after it is made | all |
//!
//! Tokens that cannot be copied control access. A [`Fresh`] is an item in the pool's queues and in
//! no chain; [`Chains`] take it in, and return an [`Out`] when they let an item go; only
//! [`Pool::release`] takes that, and frees the block. So an item in a chain is alive, and so is one
//! in a queue: releasing takes it out first.
//!
//! Dropping a token leaks its block and does no other harm.

mod chains;
mod pool;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub use chains::{Chains, Entry, EntryMut, WalkPosition};
pub use pool::{Pool, Segment, Tail, block_bytes};

/// Longest key in bytes, as in memcached.
pub const KEY_MAX: usize = 250;

/// Overhead of an item in bytes: its header, and the end of line after the value, which is stored
/// so that an answer is one copy.
pub const OVERHEAD: usize = size_of::<Header>() + 2;

/// The item was fetched since it was stored.
const FETCHED: u8 = 1;
/// It was fetched again, so it is worth keeping.
const ACTIVE: u8 = 2;

#[repr(C)]
struct Header {
    chain: Cell<Link>,
    newer: Cell<Link>,
    older: Cell<Link>,
    hash: u64,
    cas: Cell<u64>,
    expires: AtomicU32,
    used: AtomicU32,
    client_flags: Cell<u32>,
    value_bytes: u32,
    pool: u32,
    key_bytes: u8,
    bits: AtomicU8,
    marks: Cell<u8>,
    segment: Cell<u8>,
}

/// Link to the next item.
type Link = Option<NonNull<Header>>;

const _: () = assert!(
    size_of::<Header>() == 64,
    "an item begins with one cache line"
);

/// Marks that the meta commands leave on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// The value should be fetched again from its origin.
    pub const STALE: Marks = Marks(1);
    /// A client was told to fetch it again.
    pub const TOKEN_SENT: Marks = Marks(2);
    /// The key was given in base64.
    pub const BINARY_KEY: Marks = Marks(4);

    /// True if any of these marks is set.
    #[must_use]
    pub fn has(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    /// These marks added.
    #[must_use]
    pub fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// These marks removed.
    #[must_use]
    pub fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }
}

/// Identity of an item, for comparison only: the item may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemId(usize);

fn id(item: NonNull<Header>) -> ItemId {
    ItemId(item.as_ptr().addr())
}

/// The header of a living item.
///
/// # Safety
/// The item is not freed while the reference is used.
#[inline]
unsafe fn header<'a>(item: NonNull<Header>) -> &'a Header {
    // SAFETY: as the caller promises; all fields that change are cells or atomic, and the tables
    // above says who may use them.
    unsafe { item.as_ref() }
}

/// Address of an item's key.
#[inline]
fn key_start(item: NonNull<Header>) -> *mut u8 {
    // SAFETY: a block is longer than the header that it begins with.
    unsafe { item.as_ptr().add(1).cast::<u8>() }
}

/// The key of a living item.
///
/// # Safety
/// As for [`header`]; the key never changes.
#[inline]
unsafe fn key<'a>(item: NonNull<Header>) -> &'a [u8] {
    // SAFETY: as the caller promises.
    let bytes = unsafe { header(item) }.key_bytes as usize;
    // SAFETY: so many bytes were written there when the item was made.
    unsafe { std::slice::from_raw_parts(key_start(item), bytes) }
}

/// The value of an item with its end of line, as pointer and length.
///
/// # Safety
/// As for [`header`].
#[inline]
unsafe fn value_parts(item: NonNull<Header>) -> (*mut u8, usize) {
    // SAFETY: as the caller promises.
    let header = unsafe { header(item) };
    // SAFETY: the block has the key's bytes there.
    let start = unsafe { key_start(item).add(header.key_bytes as usize) };
    (start, header.value_bytes as usize + 2)
}

/// A new item that its maker fills: in a queue, but not to be found.
#[derive(Debug)]
#[must_use = "it is to be stored, or given up"]
pub struct Fresh {
    item: NonNull<Header>,
    /// Number of bytes of the value and its end of line written so far.
    filled: usize,
}

// SAFETY: only its owner uses its cells, except those of the queues, which only the pool's user
// uses; the rest is atomic.
unsafe impl Send for Fresh {}

impl Fresh {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: only `Pool::release` frees it, and takes an `Out` to do so.
        unsafe { header(self.item) }
    }

    /// Hash of its key.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.header().hash
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        // SAFETY: the item is alive, as above.
        unsafe { key(self.item) }
    }

    /// Length of its value.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.header().value_bytes as usize
    }

    /// Number of missing bytes of the value and the `\r\n` after it.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.value_bytes() + 2 - self.filled
    }

    /// Appends bytes to the value, the last two of which are `\r\n`. At most as many as are
    /// missing.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "{} bytes where {} are missing",
            bytes.len(),
            self.missing()
        );
        // SAFETY: the item is alive, as above.
        let (start, _) = unsafe { value_parts(self.item) };
        // SAFETY: so many bytes were written, so it is not beyond the block.
        let place = unsafe { start.add(self.filled) };
        // SAFETY: as many bytes are missing, so they fit the block, and no other thread has
        // the block yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.filled += bytes.len();
    }

    /// The part of the value written so far, with its end of line.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the item is alive, as above.
        let (start, _) = unsafe { value_parts(self.item) };
        // SAFETY: so many bytes were written, and no thread writes meanwhile.
        unsafe { std::slice::from_raw_parts(start, self.filled) }
    }

    /// The client's own number.
    #[must_use]
    pub fn client_flags(&self) -> u32 {
        self.header().client_flags.get()
    }

    /// Sets the client's own number.
    pub fn set_client_flags(&mut self, flags: u32) {
        self.header().client_flags.set(flags);
    }

    /// Expiry; 0 is never.
    #[must_use]
    pub fn expires(&self) -> u32 {
        self.header().expires.load(Ordering::Relaxed)
    }

    /// Sets the expiry; 0 is never.
    pub fn set_expires(&mut self, expires: u32) {
        self.header().expires.store(expires, Ordering::Relaxed);
    }

    /// Sets the number of the value.
    pub fn set_cas(&mut self, cas: u64) {
        self.header().cas.set(cas);
    }

    /// Sets the marks.
    pub fn set_marks(&mut self, marks: Marks) {
        self.header().marks.set(marks.0);
    }

    /// The marks.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks(self.header().marks.get())
    }

    /// Gives the item up: it may be released.
    pub fn give_up(self) -> Out {
        Out(self.item)
    }
}

/// An item that is no longer in a chain, to be released.
#[derive(Debug)]
#[must_use = "its memory is to be released"]
pub struct Out(NonNull<Header>);

// SAFETY: it is in no chain, so only the pool's user uses its cells.
unsafe impl Send for Out {}

impl Out {
    fn header(&self) -> &Header {
        // SAFETY: only `Pool::release` frees it, and takes this.
        unsafe { header(self.0) }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        // SAFETY: the item is alive, as above.
        unsafe { key(self.0) }
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let header = self.header();
        bytes_of(header.key_bytes as usize, header.value_bytes as usize)
    }

    /// Expiry; 0 is never.
    #[must_use]
    pub fn expires(&self) -> u32 {
        self.header().expires.load(Ordering::Relaxed)
    }

    /// Number of the value; 0 if it was never stored.
    #[must_use]
    pub fn cas(&self) -> u64 {
        self.header().cas.get()
    }
}

/// Size of an item in bytes.
#[must_use]
pub fn bytes_of(key_bytes: usize, value_bytes: usize) -> usize {
    OVERHEAD + key_bytes + value_bytes
}

/// Writes an item into a block.
///
/// # Safety
/// The block has at least `bytes_of` bytes, aligned to 16, and is nobody else's.
unsafe fn write(block: NonNull<u8>, made: &Making<'_>, pool: u32) -> NonNull<Header> {
    let item = block.cast::<Header>();
    let header = Header {
        chain: Cell::new(None),
        newer: Cell::new(None),
        older: Cell::new(None),
        hash: made.hash,
        cas: Cell::new(0),
        expires: AtomicU32::new(0),
        used: AtomicU32::new(made.now),
        client_flags: Cell::new(0),
        value_bytes: made.value_bytes,
        pool,
        key_bytes: made.key.len() as u8,
        bits: AtomicU8::new(0),
        marks: Cell::new(0),
        segment: Cell::new(0),
    };
    // SAFETY: the block is large enough and aligned.
    unsafe { item.as_ptr().write(header) };
    // SAFETY: the key's bytes follow the header, as the block is large enough.
    unsafe { ptr::copy_nonoverlapping(made.key.as_ptr(), key_start(item), made.key.len()) };
    item
}

/// Parts of a new item.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// At most [`KEY_MAX`] bytes.
    pub key: &'a [u8],
    /// The hash of the key.
    pub hash: u64,
    /// Length of the value.
    pub value_bytes: u32,
    /// The present second.
    pub now: u32,
}
