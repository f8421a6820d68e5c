//! Half-fit: a list for each power of two, and a bitmap of those that are not empty.
//!
//! List `i` holds chunks of `2^i ..= 2^(i+1) - 1` bytes. A request `r` takes the front of the first
//! list that is not empty from `⌊log2(r − 1)⌋ + 1` on: there every chunk is large enough, and none
//! is looked at. So both operations take a constant number of steps, and chunks of the request's
//! own power of two are passed over: the source calls this incomplete memory use.
//!
//! O1heap is this with requests rounded up to powers of two, for which a pool of [`bound`] bytes is
//! known to be enough.

use crate::chunk::{Chunk, Chunks, FreeSet, List, OVERHEAD, PAYLOAD_MIN};
use crate::heap::{Grow, Steps};

const LISTS: usize = usize::BITS as usize;

/// The list that a request of `bytes` bytes is looked for in first.
#[must_use]
pub const fn search_index(bytes: usize) -> u32 {
    match bytes {
        0 | 1 => 0,
        _ => (bytes - 1).ilog2() + 1,
    }
}

/// The list that a chunk of `bytes` bytes, not 0, belongs to.
#[must_use]
pub const fn insert_index(bytes: usize) -> u32 {
    bytes.ilog2()
}

/// A pool in which a Half-fit heap whose requests are rounded up to powers of two never fails, for
/// at most `live` bytes at a time, overheads included, in blocks of at most `largest`: Robson's
/// bound for blocks of powers of two, doubled as rounding at most doubles the live bytes.
#[must_use]
pub const fn bound(live: usize, largest: usize) -> usize {
    2 * live * (1 + search_index(largest) as usize)
}

/// A Half-fit heap.
pub type HalfFit<G, const COUNTED: bool = false> = Chunks<Halves<COUNTED>, G>;

/// The lists.
#[derive(Debug)]
pub struct Halves<const COUNTED: bool> {
    bitmap: usize,
    lists: [List; LISTS],
    steps: Steps<COUNTED>,
}

impl<const COUNTED: bool, G: Grow> Chunks<Halves<COUNTED>, G> {
    /// A heap over a source.
    pub const fn new(source: G) -> Self {
        let free = Halves {
            bitmap: 0,
            lists: [List::EMPTY; LISTS],
            steps: Steps::new(),
        };
        Chunks::with(free, source)
    }
}

impl<const COUNTED: bool> FreeSet for Halves<COUNTED> {
    const SPLIT_FROM: usize = OVERHEAD + PAYLOAD_MIN;

    fn insert(&mut self, chunk: Chunk) {
        self.steps.step();
        let index = insert_index(chunk.size());
        self.lists[index as usize].push(chunk);
        self.bitmap |= 1 << index;
    }

    fn remove(&mut self, chunk: Chunk, size: usize) {
        self.steps.step();
        let index = insert_index(size);
        let list = &mut self.lists[index as usize];
        list.unlink(chunk);
        if list.first().is_none() {
            self.bitmap &= !(1 << index);
        }
    }

    fn find(&mut self, bytes: usize) -> Option<Chunk> {
        self.steps.step();
        let fitting = self.bitmap & (usize::MAX << search_index(bytes));
        if fitting == 0 {
            return None;
        }
        self.lists[fitting.trailing_zeros() as usize].first()
    }

    fn shrunk(&mut self, chunk: Chunk, before: usize) {
        self.remove(chunk, before);
        self.insert(chunk);
    }

    fn lists(&self, chunk: Chunk) -> bool {
        let index = insert_index(chunk.size());
        let mut at = self.lists[index as usize].first();
        while let Some(listed) = at {
            if listed == chunk {
                return self.bitmap & (1 << index) != 0;
            }
            at = listed.next();
        }
        false
    }

    fn steps(&self) -> u64 {
        self.steps.count()
    }
}

#[cfg(test)]
mod tests {
    use super::{insert_index, search_index};

    #[test]
    fn every_chunk_of_the_list_found_is_large_enough() {
        for bytes in 1..1usize << 20 {
            let (search, insert) = (search_index(bytes), insert_index(bytes));
            assert!(1usize << search >= bytes);
            assert!(search == 0 || 1usize << (search - 1) < bytes);
            assert!((1usize << insert..2usize << insert).contains(&bytes));
        }
    }
}
