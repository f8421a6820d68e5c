//! Chunks with boundary tags, as the source's Best-fit, First-fit and Half-fit have them.
//!
//! ```text
//!  ≡ 8 (mod 16)   ≡ 0                        ≡ 0
//!  | header word  | payload, 16·k bytes      | trailer word | header of the next …
//!  | size | state | free: next, previous …   | size | state |
//! ```
//!
//! Both words hold the payload's size with [`USED`] in bit 0. So either neighbour is found, and
//! its state known, from a chunk alone: a released chunk is merged with both at once.
//! A region begins with a trailer and ends with a header, of no bytes and in use, so that merging
//! needs no test for its ends.
//!
//! The source gives the searches, and the rule that a request is cut from the *high* end of the
//! chunk that was found, so that its front stays where it is listed. It leaves open the size of
//! headers, the release of chunks and the order in which they are listed: here 8 and 8 bytes,
//! merged immediately. Best-fit and First-fit list at the back, Half-fit in front.

use std::ptr;

use crate::heap::{ALIGN, Grow, Heap, REQUEST_MAX, round_up};

/// Bit 0 of a header or trailer.
const USED: usize = 1;
const WORD: usize = size_of::<usize>();
/// Header and trailer.
pub const OVERHEAD: usize = 2 * WORD;
/// The two links of a free chunk.
pub const PAYLOAD_MIN: usize = 2 * WORD;

/// A chunk, by the address of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk(*mut u8);

/// The links of a free chunk.
#[derive(Debug)]
struct Links {
    next: *mut u8,
    previous: *mut u8,
}

const _: () = assert!(size_of::<Links>() == PAYLOAD_MIN);

impl Chunk {
    fn some(payload: *mut u8) -> Option<Chunk> {
        (!payload.is_null()).then_some(Chunk(payload))
    }

    fn header(self) -> *mut usize {
        self.0.wrapping_sub(WORD).cast()
    }

    fn tags(self) -> usize {
        // SAFETY: a chunk's header lies just before its payload.
        unsafe { self.header().read() }
    }

    /// Payload bytes.
    #[must_use]
    pub fn size(self) -> usize {
        self.tags() & !USED
    }

    fn is_used(self) -> bool {
        self.tags() & USED != 0
    }

    fn set(self, size: usize, state: usize) {
        // SAFETY: header and trailer enclose the payload of that size, all of it the heap's.
        unsafe {
            self.header().write(size | state);
            self.0.add(size).cast::<usize>().write(size | state);
        }
    }

    fn after(self) -> Chunk {
        Chunk(self.0.wrapping_add(self.size() + OVERHEAD))
    }

    /// The chunk before this one, if it is free.
    fn free_before(self) -> Option<Chunk> {
        // SAFETY: before a header lies the trailer of the chunk before, or the region's first word.
        let trailer = unsafe { self.header().sub(1).read() };
        if trailer & USED != 0 {
            return None;
        }
        Some(Chunk(self.0.wrapping_sub(trailer + OVERHEAD)))
    }

    fn links(self) -> *mut Links {
        self.0.cast()
    }

    /// The next chunk in its list.
    #[must_use]
    pub fn next(self) -> Option<Chunk> {
        // SAFETY: only free chunks are asked, whose payload holds links.
        Chunk::some(unsafe { (*self.links()).next })
    }

    fn previous(self) -> Option<Chunk> {
        // SAFETY: only free chunks are asked, whose payload holds links.
        Chunk::some(unsafe { (*self.links()).previous })
    }

    fn set_next(self, next: Option<Chunk>) {
        // SAFETY: only free chunks are listed; their payload is the heap's and holds links.
        unsafe { (*self.links()).next = next.map_or(ptr::null_mut(), |next| next.0) };
    }

    fn set_previous(self, previous: Option<Chunk>) {
        // SAFETY: as in `set_next`.
        unsafe { (*self.links()).previous = previous.map_or(ptr::null_mut(), |chunk| chunk.0) };
    }
}

/// A doubly linked list.
#[derive(Clone, Copy, Debug)]
pub struct List {
    front: Option<Chunk>,
    back: Option<Chunk>,
}

impl List {
    /// An empty list.
    pub const EMPTY: List = List {
        front: None,
        back: None,
    };

    /// The chunk in front.
    #[must_use]
    pub fn first(&self) -> Option<Chunk> {
        self.front
    }

    /// Puts a free chunk at the back.
    pub fn append(&mut self, chunk: Chunk) {
        chunk.set_next(None);
        chunk.set_previous(self.back);
        match self.back {
            Some(back) => back.set_next(Some(chunk)),
            None => self.front = Some(chunk),
        }
        self.back = Some(chunk);
    }

    /// Puts a free chunk in front.
    pub fn push(&mut self, chunk: Chunk) {
        chunk.set_next(self.front);
        chunk.set_previous(None);
        match self.front {
            Some(front) => front.set_previous(Some(chunk)),
            None => self.back = Some(chunk),
        }
        self.front = Some(chunk);
    }

    /// Takes a chunk out that is in this list.
    pub fn unlink(&mut self, chunk: Chunk) {
        let (next, previous) = (chunk.next(), chunk.previous());
        match previous {
            Some(previous) => previous.set_next(next),
            None => self.front = next,
        }
        match next {
            Some(next) => next.set_previous(previous),
            None => self.back = previous,
        }
    }
}

/// Structure that keeps and finds free chunks.
pub trait FreeSet {
    /// Bytes by which a chunk must exceed the request for the rest to be split off.
    const SPLIT_FROM: usize;

    /// Lists a free chunk.
    fn insert(&mut self, chunk: Chunk);

    /// Takes out a chunk that was listed with this size.
    fn remove(&mut self, chunk: Chunk, size: usize);

    /// A listed chunk of that many bytes or more.
    fn find(&mut self, bytes: usize) -> Option<Chunk>;

    /// A listed chunk's back was cut off; it had `before` bytes.
    fn shrunk(&mut self, chunk: Chunk, before: usize);

    /// Is the chunk listed, and where its size belongs?
    fn lists(&self, chunk: Chunk) -> bool;

    /// See [`crate::heap::Steps`].
    fn steps(&self) -> u64;
}

/// A heap of chunks.
#[derive(Debug)]
pub struct Chunks<S, G> {
    free: S,
    source: G,
    /// Just behind the last region; null before the first.
    end: *mut u8,
    /// The payload of the first chunk of the first region, for walking.
    first: Option<Chunk>,
    regions: usize,
    held: usize,
}

// SAFETY: all pointers, those of its free set too, lead into memory that the heap owns.
unsafe impl<S: FreeSet, G: Send> Send for Chunks<S, G> {}

impl<S: FreeSet, G: Grow> Chunks<S, G> {
    /// A heap without memory yet.
    pub const fn with(free: S, source: G) -> Self {
        Chunks {
            free,
            source,
            end: ptr::null_mut(),
            first: None,
            regions: 0,
            held: 0,
        }
    }

    /// A used chunk of exactly `size` bytes from the source: the source's heaps grow by each
    /// request that finds nothing, and by no more.
    #[cold]
    fn grow(&mut self, size: usize) -> Option<Chunk> {
        if !self.end.is_null() {
            let fresh = self.more(size + OVERHEAD)?;
            if fresh == self.end {
                // The word that ended the region becomes the header.
                let chunk = Chunk(fresh);
                self.close(chunk, size);
                return Some(chunk);
            }
            // Another user has asked the source meanwhile. The new memory lacks room for the words
            // at a region's ends, and is lost.
        }
        let start = self.more(size + 2 * OVERHEAD)?;
        // SAFETY: `start` begins `size + 2 · OVERHEAD` bytes of the heap's.
        unsafe { start.cast::<usize>().write(USED) };
        let chunk = Chunk(start.wrapping_add(OVERHEAD));
        self.close(chunk, size);
        self.regions += 1;
        if self.regions == 1 {
            self.first = Some(chunk);
        }
        Some(chunk)
    }

    fn more(&mut self, bytes: usize) -> Option<*mut u8> {
        let fresh = self.source.grow(bytes);
        if fresh.is_null() {
            return None;
        }
        self.held += bytes;
        Some(fresh)
    }

    /// Makes the last chunk of a region, and the word behind that ends it.
    fn close(&mut self, chunk: Chunk, size: usize) {
        chunk.set(size, USED);
        // SAFETY: behind the trailer there is a word of the region's left.
        unsafe { chunk.after().header().write(USED) };
        self.end = chunk.after().0;
    }

    /// Takes `size` bytes of a listed chunk.
    fn take(&mut self, chunk: Chunk, size: usize) -> Chunk {
        let had = chunk.size();
        if had < size + S::SPLIT_FROM {
            self.free.remove(chunk, had);
            chunk.set(had, USED);
            return chunk;
        }
        chunk.set(had - size - OVERHEAD, 0);
        self.free.shrunk(chunk, had);
        let back = chunk.after();
        back.set(size, USED);
        back
    }

    /// Frees a chunk that is in no list, merged with free neighbours.
    fn merge(&mut self, chunk: Chunk) {
        let (mut chunk, mut size) = (chunk, chunk.size());
        let after = chunk.after();
        if !after.is_used() {
            self.free.remove(after, after.size());
            size += after.size() + OVERHEAD;
        }
        if let Some(before) = chunk.free_before() {
            self.free.remove(before, before.size());
            size += before.size() + OVERHEAD;
            chunk = before;
        }
        chunk.set(size, 0);
        self.free.insert(chunk);
    }
}

/// Payload size for a request: a multiple of [`ALIGN`], with room for the links.
fn payload(bytes: usize) -> usize {
    round_up(bytes.max(PAYLOAD_MIN), ALIGN)
}

// SAFETY: chunks lie side by side within regions of the source; each is either listed or handed
// out.
unsafe impl<S: FreeSet, G: Grow> Heap for Chunks<S, G> {
    const OVERHEAD: usize = OVERHEAD;

    fn allocate(&mut self, bytes: usize) -> *mut u8 {
        if bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let size = payload(bytes);
        let chunk = match self.free.find(size) {
            Some(chunk) => Some(self.take(chunk, size)),
            None => self.grow(size),
        };
        chunk.map_or(ptr::null_mut(), |chunk| chunk.0)
    }

    fn allocate_aligned(&mut self, align: usize, bytes: usize) -> *mut u8 {
        if align <= ALIGN {
            return self.allocate(bytes);
        }
        if align > REQUEST_MAX || bytes > REQUEST_MAX {
            return ptr::null_mut();
        }
        let least = OVERHEAD + PAYLOAD_MIN;
        let block = self.allocate(payload(bytes) + align + least);
        if block.is_null() || block.addr().is_multiple_of(align) {
            return block;
        }
        // The front becomes a chunk of its own, and free.
        let front = Chunk(block);
        let skipped = round_up(block.addr() + least, align) - block.addr();
        let whole = front.size();
        front.set(skipped - OVERHEAD, USED);
        let rest = front.after();
        rest.set(whole - skipped, USED);
        self.merge(front);
        rest.0
    }

    unsafe fn release(&mut self, block: *mut u8) {
        let chunk = Chunk(block);
        debug_assert!(chunk.is_used(), "{block:p} is released twice");
        self.merge(chunk);
    }

    unsafe fn usable(&self, block: *mut u8) -> usize {
        Chunk(block).size()
    }

    fn steps(&self) -> u64 {
        self.free.steps()
    }

    fn bytes_held(&self) -> usize {
        self.held
    }

    /// For a heap over a source whose memory is contiguous: later regions are not walked.
    fn check(&self) -> Result<(), String> {
        let Some(mut chunk) = self.first else {
            return Ok(());
        };
        let mut was_free = false;
        while chunk.size() > 0 {
            // SAFETY: the trailer lies behind the payload.
            let trailer = unsafe { chunk.0.add(chunk.size()).cast::<usize>().read() };
            if trailer != chunk.tags() {
                return Err(format!("{chunk:?}: header and trailer differ"));
            }
            if chunk.size() % ALIGN != 0 || !chunk.0.addr().is_multiple_of(ALIGN) {
                return Err(format!("{chunk:?}: not aligned, {} bytes", chunk.size()));
            }
            let is_free = !chunk.is_used();
            if is_free && was_free {
                return Err(format!("{chunk:?}: free, and so is the one before"));
            }
            if is_free && !self.free.lists(chunk) {
                return Err(format!("{chunk:?}: free and not where it should be listed"));
            }
            was_free = is_free;
            chunk = chunk.after();
        }
        if self.regions == 1 && chunk.0 != self.end {
            return Err(format!("{chunk:?}: the region ends elsewhere"));
        }
        Ok(())
    }
}
