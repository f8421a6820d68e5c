//! Best-fit and First-fit: one list of free chunks, searched from its front.
//!
//! Best-fit looks at all of them, as published, even behind one that fits exactly, and takes the
//! first of the smallest. First-fit takes the first that is large enough. Both take O(n) steps, n
//! free chunks. A chunk is cut if the rest is a chunk of the least size with one overhead to
//! spare.
//!
//! Chunks are listed at the back as they are released. The source does not say where. In front,
//! First-fit soon finds nothing but splinters there, and takes thirty times as long as Best-fit to
//! count the words of a text, which the source's does not.

use crate::chunk::{Chunk, Chunks, FreeSet, List, OVERHEAD, PAYLOAD_MIN};
use crate::heap::{Grow, Steps};

/// A heap that takes the smallest chunk that is large enough.
pub type BestFit<G, const COUNTED: bool = false> = Chunks<Sequence<true, COUNTED>, G>;

/// A heap that takes the first chunk that is large enough.
pub type FirstFit<G, const COUNTED: bool = false> = Chunks<Sequence<false, COUNTED>, G>;

/// The list.
#[derive(Debug)]
pub struct Sequence<const BEST: bool, const COUNTED: bool> {
    list: List,
    steps: Steps<COUNTED>,
}

impl<const BEST: bool, const COUNTED: bool, G: Grow> Chunks<Sequence<BEST, COUNTED>, G> {
    /// A heap over a source.
    pub const fn new(source: G) -> Self {
        let free = Sequence {
            list: List::EMPTY,
            steps: Steps::new(),
        };
        Chunks::with(free, source)
    }
}

impl<const BEST: bool, const COUNTED: bool> FreeSet for Sequence<BEST, COUNTED> {
    const SPLIT_FROM: usize = 2 * OVERHEAD + PAYLOAD_MIN;

    fn insert(&mut self, chunk: Chunk) {
        self.steps.step();
        self.list.append(chunk);
    }

    fn remove(&mut self, chunk: Chunk, _size: usize) {
        self.steps.step();
        self.list.unlink(chunk);
    }

    fn find(&mut self, bytes: usize) -> Option<Chunk> {
        let mut best: Option<(usize, Chunk)> = None;
        let mut at = self.list.first();
        while let Some(chunk) = at {
            self.steps.step();
            let size = chunk.size();
            if size >= bytes {
                if !BEST {
                    return Some(chunk);
                }
                if best.is_none_or(|(least, _)| size < least) {
                    best = Some((size, chunk));
                }
            }
            at = chunk.next();
        }
        best.map(|(_, chunk)| chunk)
    }

    fn shrunk(&mut self, _chunk: Chunk, _before: usize) {}

    fn lists(&self, chunk: Chunk) -> bool {
        let mut at = self.list.first();
        while let Some(listed) = at {
            if listed == chunk {
                return true;
            }
            at = listed.next();
        }
        false
    }

    fn steps(&self) -> u64 {
        self.steps.count()
    }
}
