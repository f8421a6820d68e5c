//! Items: one block each, that holds what is known of the item, its key and its value. The one module with
//! unsafe code.
//!
//! ```text
//! 0        8        16       24       32      40           56            64
//! ┌────────┬────────┬────────┬────────┬───────┬────────────┬─────────────┬─────┬───────┬──────┐
//! │ chain  │ newer  │ older  │ hash   │ cas   │ expires …  │ lengths …   │ key │ value │ \r\n │
//! └────────┴────────┴────────┴────────┴───────┴────────────┴─────────────┴─────┴───────┴──────┘
//! ```
//!
//! An item is in up to two structures at once, each with rules of its own:
//!
//! | field | who writes | who reads | when |
//! |---|---|---|---|
//! | `chain`, `cas`, `client_flags`, `marks`, key and value | who has the [`Fresh`], later who has the [`Chains`] exclusively | who has the `Chains` | first while the item is new, later while it is in a chain |
//! | `newer`, `older`, `segment` | who has the [`Pool`] exclusively | the same | always |
//! | `expires`, `used`, `bits` | both, atomically | both | always |
//! | `hash`, lengths, `pool` | nobody, once it is made | all | always |
//!
//! What may be done is told by tokens that cannot be copied. A [`Fresh`] is an item that is in the pool's
//! queues and in no chain; [`Chains`] take it in, and give an [`Out`] when they let an item go; only
//! [`Pool::release`] takes that, and frees the block. So what is in a chain is alive, and what is in
//! a queue is, too: it is taken out of there by whoever frees it.
//!
//! A token that is dropped leaks its block and does no other harm.

mod chains;
mod pool;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub use chains::{Chains, Entry, EntryMut, Place};
pub use pool::{Pool, Segment, Tail, block_bytes};

/// The longest key, in bytes, as memcached has it.
pub const KEY_MAX: usize = 250;

/// What an item needs beside its key and its value, in bytes: what is known of it, and the end of line after
/// the value, which is kept there so that an answer is one copy.
pub const OVERHEAD: usize = size_of::<Header>() + 2;

/// The item was fetched since it was stored.
const FETCHED: u8 = 1;
/// It was fetched again: worth keeping.
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

/// The next one, if there is one.
type Link = Option<NonNull<Header>>;

const _: () = assert!(
    size_of::<Header>() == 64,
    "an item begins with one cache line"
);

/// What the meta commands note at an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// It is to be fetched anew from where it comes from.
    pub const STALE: Marks = Marks(1);
    /// Somebody was told to fetch it anew.
    pub const TOKEN_SENT: Marks = Marks(2);
    /// Its key was given in base64.
    pub const BINARY_KEY: Marks = Marks(4);

    /// Is any of these noted?
    #[must_use]
    pub fn has(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    /// With these, too.
    #[must_use]
    pub fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// Without these.
    #[must_use]
    pub fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }
}

/// Which item, to be compared and nothing else: the item may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemId(usize);

fn id(item: NonNull<Header>) -> ItemId {
    ItemId(item.as_ptr().addr())
}

/// What is known of an item that is alive.
///
/// # Safety
/// The item is not freed while the reference is used.
#[inline]
unsafe fn header<'a>(item: NonNull<Header>) -> &'a Header {
    // SAFETY: as the caller promises; all fields that change are cells or atomic, and the tables above says who
    // may use them.
    unsafe { item.as_ref() }
}

/// Where the bytes of an item's key begin.
#[inline]
fn key_start(item: NonNull<Header>) -> *mut u8 {
    // SAFETY: a block is longer than the header that it begins with.
    unsafe { item.as_ptr().add(1).cast::<u8>() }
}

/// The key of an item that is alive.
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

/// The value of an item and the end of line after it, as raw parts.
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

/// A new item, which its maker fills: in a queue, but not to be found.
#[derive(Debug)]
#[must_use = "it is to be stored, or given up"]
pub struct Fresh {
    item: NonNull<Header>,
    /// So many bytes of the value, and of the end of line after it, were written.
    filled: usize,
}

// SAFETY: whoever has it is the only one to use its cells but those of the queues, which the pool's user uses;
// the rest is atomic.
unsafe impl Send for Fresh {}

impl Fresh {
    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: only `Pool::release` frees it, and takes an `Out` to do so.
        unsafe { header(self.item) }
    }

    /// The hash of its key.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.header().hash
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        // SAFETY: it is alive, as above.
        unsafe { key(self.item) }
    }

    /// How long its value will be.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.header().value_bytes as usize
    }

    /// How many bytes of the value and of the `\r\n` after it are missing yet.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.value_bytes() + 2 - self.filled
    }

    /// Adds bytes to the value, the last two of which are `\r\n`. There must not be more than are missing.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "{} bytes where {} are missing",
            bytes.len(),
            self.missing()
        );
        // SAFETY: it is alive, as above.
        let (start, _) = unsafe { value_parts(self.item) };
        // SAFETY: so many bytes were written, so it is not beyond the block.
        let place = unsafe { start.add(self.filled) };
        // SAFETY: as many bytes are missing, so they belong to the block, which nobody else knows to be theirs.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.filled += bytes.len();
    }

    /// What of the value was written, with the end of line.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: it is alive, as above.
        let (start, _) = unsafe { value_parts(self.item) };
        // SAFETY: so many bytes were written, and nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(start, self.filled) }
    }

    /// The number that the client keeps with the item.
    #[must_use]
    pub fn client_flags(&self) -> u32 {
        self.header().client_flags.get()
    }

    /// Sets the number that the client keeps with it.
    pub fn set_client_flags(&mut self, flags: u32) {
        self.header().client_flags.set(flags);
    }

    /// When it ends; 0 is never.
    pub fn set_expires(&mut self, expires: u32) {
        self.header().expires.store(expires, Ordering::Relaxed);
    }

    /// Sets the number of its value.
    pub fn set_cas(&mut self, cas: u64) {
        self.header().cas.set(cas);
    }

    /// Sets what is noted at it.
    pub fn set_marks(&mut self, marks: Marks) {
        self.header().marks.set(marks.0);
    }

    /// What is noted at it.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks(self.header().marks.get())
    }

    /// It will not be stored: it may be released.
    pub fn give_up(self) -> Out {
        Out(self.item)
    }
}

/// An item that is in no chain any more. To be released.
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

    /// How many bytes it needs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let header = self.header();
        bytes_of(header.key_bytes as usize, header.value_bytes as usize)
    }

    /// When it was to end; 0 is never.
    #[must_use]
    pub fn expires(&self) -> u32 {
        self.header().expires.load(Ordering::Relaxed)
    }

    /// The number of its value; 0 if it was never stored.
    #[must_use]
    pub fn cas(&self) -> u64 {
        self.header().cas.get()
    }
}

/// How many bytes an item needs.
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

/// What an item is made of.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// At most [`KEY_MAX`] bytes.
    pub key: &'a [u8],
    /// The hash of the key.
    pub hash: u64,
    /// How long the value will be.
    pub value_bytes: u32,
    /// The present second.
    pub now: u32,
}
