//! Memory of items, and the order in which they give it up.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use hearth_heap::PrivateHeap;
use hearth_heap::geometry::{CHUNK_BYTES, Class, MEDIUM_MAX};

use super::{
    ACTIVE, FETCHED, Fresh, Header, ItemId, Link, Making, Out, bytes_of, header, id, write,
};

/// Segment of an item. Within each, items are ordered by when they came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Segment {
    /// New.
    Hot = 0,
    /// Used again and again.
    Warm = 1,
    /// The next to go.
    Cold = 2,
}

#[derive(Debug, Default)]
struct Queue {
    newest: Link,
    oldest: Link,
    items: usize,
    bytes: usize,
}

/// The oldest item of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    /// Its identity.
    pub id: ItemId,
    /// Hash of its key, to find it.
    pub hash: u64,
    /// True if it was fetched at least twice since it was last asked.
    pub is_active: bool,
    /// True if it was ever fetched.
    pub is_fetched: bool,
    /// Expiry; 0 is never.
    pub expires: u32,
    /// Time of its last use.
    pub used: u32,
}

/// The memory of a store's items: a heap, and a queue for each segment.
#[derive(Debug)]
pub struct Pool {
    heap: PrivateHeap,
    queues: [Queue; 3],
    /// Size of the items in bytes.
    bytes: usize,
    /// Size of their blocks.
    charged: usize,
    /// The part of it in blocks mapped one by one.
    large: usize,
    number: u32,
    /// Limit of the blocks' size, set by tests that want the system to give no more.
    #[cfg(test)]
    pub given_most: usize,
}

// SAFETY: the heap is used by one thread at a time, and the links of the queues only through this.
unsafe impl Send for Pool {}

/// Number of pools so far, so that no item gets into another's queues.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

impl Pool {
    /// An empty pool. None if there is no memory.
    #[must_use]
    pub fn new() -> Option<Pool> {
        Some(Pool {
            heap: PrivateHeap::new()?,
            queues: Default::default(),
            bytes: 0,
            charged: 0,
            large: 0,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            #[cfg(test)]
            given_most: usize::MAX,
        })
    }

    /// Size of the items in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of their blocks in bytes.
    #[must_use]
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Size of the heap in bytes, including free memory between blocks.
    #[must_use]
    pub fn owned(&self) -> usize {
        self.heap.figures().owned + self.large
    }

    /// Number of items in a segment.
    #[must_use]
    pub fn items_in(&self, segment: Segment) -> usize {
        self.queues[segment as usize].items
    }

    /// Size of a segment's items in bytes.
    #[must_use]
    pub fn bytes_in(&self, segment: Segment) -> usize {
        self.queues[segment as usize].bytes
    }

    /// Makes an item, the newest of the hot ones. None if there is no memory.
    pub fn make(&mut self, making: &Making<'_>) -> Option<Fresh> {
        assert!(
            making.key.len() <= super::KEY_MAX,
            "a key of {} bytes",
            making.key.len()
        );
        let bytes = bytes_of(making.key.len(), making.value_bytes as usize);
        #[cfg(test)]
        if self.charged + block_bytes(bytes) > self.given_most {
            return None;
        }
        let block = NonNull::new(self.heap.allocate(bytes))?;
        // SAFETY: the block is large enough, aligned to 16, and was just given out.
        let item = unsafe { write(block, making, self.number) };
        self.bytes += bytes;
        self.charged += block_bytes(bytes);
        self.large += large(bytes);
        self.push(item, Segment::Hot, bytes);
        Some(Fresh { item, filled: 0 })
    }

    /// Frees an item that is in no chain.
    pub fn release(&mut self, out: Out) {
        let item = out.0;
        // SAFETY: the item is alive until this function ends.
        let known = unsafe { header(item) };
        assert_eq!(known.pool, self.number, "an item of another pool");
        let bytes = out.bytes();
        self.unlink(item, bytes);
        self.bytes -= bytes;
        self.charged -= block_bytes(bytes);
        self.large -= large(bytes);
        // SAFETY: the block came from this heap; it is in no chain, as the token says, and in no
        // queue any more.
        unsafe { self.heap.free(item.as_ptr().cast()) };
    }

    /// The oldest item of a segment.
    #[must_use]
    pub fn tail(&self, segment: Segment) -> Option<Tail> {
        self.queues[segment as usize].oldest.map(tail_of)
    }

    /// The oldest items of a segment, oldest first.
    pub fn tails(&self, segment: Segment) -> impl Iterator<Item = Tail> {
        let mut next = self.queues[segment as usize].oldest;
        std::iter::from_fn(move || {
            let item = next?;
            // SAFETY: items in a queue are alive, and the pool is borrowed.
            next = unsafe { header(item) }.newer.get();
            Some(tail_of(item))
        })
    }

    /// Makes the oldest item of one segment the newest of another, or of the same, and resets its
    /// activity. False if there is none.
    pub fn shift(&mut self, from: Segment, to: Segment) -> bool {
        let Some(item) = self.queues[from as usize].oldest else {
            return false;
        };
        // SAFETY: items in a queue are alive.
        let known = unsafe { header(item) };
        let bits = known.bits.load(Ordering::Relaxed);
        known.bits.store(bits & !ACTIVE, Ordering::Relaxed);
        let bytes = bytes_of(known.key_bytes as usize, known.value_bytes as usize);
        self.unlink(item, bytes);
        self.push(item, to, bytes);
        true
    }

    fn push(&mut self, item: NonNull<Header>, segment: Segment, bytes: usize) {
        let queue = &mut self.queues[segment as usize];
        // SAFETY: it is alive, and in no queue.
        let known = unsafe { header(item) };
        known.segment.set(segment as u8);
        known.newer.set(None);
        known.older.set(queue.newest);
        match queue.newest {
            // SAFETY: items in a queue are alive.
            Some(newest) => unsafe { header(newest) }.newer.set(Some(item)),
            None => queue.oldest = Some(item),
        }
        queue.newest = Some(item);
        queue.items += 1;
        queue.bytes += bytes;
    }

    fn unlink(&mut self, item: NonNull<Header>, bytes: usize) {
        // SAFETY: it is alive, and in the queue that it names.
        let known = unsafe { header(item) };
        let queue = &mut self.queues[known.segment.get() as usize];
        let (newer, older) = (known.newer.get(), known.older.get());
        match newer {
            // SAFETY: items in a queue are alive.
            Some(newer) => unsafe { header(newer) }.older.set(older),
            None => queue.newest = older,
        }
        match older {
            // SAFETY: as above.
            Some(older) => unsafe { header(older) }.newer.set(newer),
            None => queue.oldest = newer,
        }
        queue.items -= 1;
        queue.bytes -= bytes;
    }
}

fn large(bytes: usize) -> usize {
    if bytes > MEDIUM_MAX {
        block_bytes(bytes)
    } else {
        0
    }
}

/// Size of a block for this many bytes.
#[must_use]
pub fn block_bytes(bytes: usize) -> usize {
    if bytes > MEDIUM_MAX {
        bytes.next_multiple_of(CHUNK_BYTES)
    } else {
        Class::for_size(bytes).bytes()
    }
}

fn tail_of(item: NonNull<Header>) -> Tail {
    // SAFETY: items in a queue are alive while the pool is borrowed; and what is read here is
    // atomic or never changes.
    let known = unsafe { header(item) };
    let bits = known.bits.load(Ordering::Relaxed);
    Tail {
        id: id(item),
        hash: known.hash,
        is_active: bits & ACTIVE != 0,
        is_fetched: bits & FETCHED != 0,
        expires: known.expires.load(Ordering::Relaxed),
        used: known.used.load(Ordering::Relaxed),
    }
}
