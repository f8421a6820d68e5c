//! Hints: which arenas of a node have room of a kind. There is one bit per arena, above that a bit
//! for each word of 64 arenas, and one level more. So three loads find the lowest arena with room.
//!
//! ```text
//! top         1 word       a bit for each word of the middle that is not empty
//! middle     64 words      a bit for each low word that is not empty
//! low      4096 words      a bit for each arena that has room
//! ```
//!
//! A hint may be stale: the arena's own word decides. While no thread is at work, this holds:
//!
//! - *Every arena with room has its hint.* A thread that makes room changes the arena's word, then
//!   sets the bits from low to top. A thread that clears a bit looks at the word below afterwards,
//!   and sets the bit and all above it again if that word is not empty.
//! - A bit may be set above an empty word: between two bits of one thread, another may take the
//!   room and clear the hints. Whoever is misled by such a bit clears it.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | all words | any thread, by atomic exchange | any thread |
//!
//! All exchanges, and the loads between them, are sequentially consistent: two threads that each
//! change one word and then look at the other's must not both miss the other's change.

use hearth_atomics::{AtomicU64, Ordering, load_seq_cst};

/// log2 of the hints in a word.
pub(crate) const WORD_SHIFT: u32 = if cfg!(loom) { 1 } else { 6 };
/// Misleading bits that one search clears before it gives up.
const TRIES: usize = 4;

/// A node's hints for one kind of room. Arenas count from the node's first.
#[derive(Clone, Copy)]
pub(crate) struct Hints<'a> {
    pub(crate) low: &'a [AtomicU64],
    pub(crate) middle: &'a [AtomicU64],
    pub(crate) top: &'a AtomicU64,
}

/// The word of a bit, and the bit in it.
fn place(at: usize) -> (usize, u64) {
    (at >> WORD_SHIFT, 1 << (at & ((1 << WORD_SHIFT) - 1)))
}

fn lowest(word: u64) -> usize {
    word.trailing_zeros() as usize
}

fn highest(word: u64) -> usize {
    word.ilog2() as usize
}

impl Hints<'_> {
    /// The lowest arena hinted to have room. None also if misleading bits took all tries.
    pub(crate) fn lowest(&self) -> Option<usize> {
        self.find(lowest)
    }

    /// The highest, likewise.
    pub(crate) fn highest(&self) -> Option<usize> {
        self.find(highest)
    }

    #[inline]
    fn find(&self, choose: fn(u64) -> usize) -> Option<usize> {
        // Relaxed will do: the caller checks the arena's word.
        for _ in 0..TRIES {
            let top = self.top.load(Ordering::Relaxed);
            if top == 0 {
                return None;
            }
            let middle = choose(top);
            let bits = self.middle[middle].load(Ordering::Relaxed);
            if bits == 0 {
                self.clear_top(middle);
                continue;
            }
            let low = middle << WORD_SHIFT | choose(bits);
            let bits = self.low[low].load(Ordering::Relaxed);
            if bits == 0 {
                self.clear_middle(low);
                continue;
            }
            return Some(low << WORD_SHIFT | choose(bits));
        }
        None
    }

    /// Corrects an arena's hint after its word has changed.
    pub(crate) fn correct(&self, arena: usize, has_room: impl Fn() -> bool) {
        let has = has_room();
        let (low, bit) = place(arena);
        let is_hinted = load_seq_cst(&self.low[low]) & bit != 0;
        if has && !is_hinted {
            self.set(arena);
        } else if !has && is_hinted {
            self.clear(arena);
            // A thread that made room meanwhile may have found the hint still set.
            if has_room() {
                self.set(arena);
            }
        }
    }

    /// The arena's bits, from low to top.
    #[cfg(test)]
    pub(crate) fn bits(&self, arena: usize) -> [bool; 3] {
        let (low, bit) = place(arena);
        let (middle, middle_bit) = place(low);
        [
            load_seq_cst(&self.low[low]) & bit != 0,
            load_seq_cst(&self.middle[middle]) & middle_bit != 0,
            load_seq_cst(self.top) & 1 << middle != 0,
        ]
    }

    fn set(&self, arena: usize) {
        let (low, bit) = place(arena);
        self.low[low].fetch_or(bit, Ordering::SeqCst);
        self.set_middle(low);
    }

    fn set_middle(&self, low: usize) {
        let (middle, bit) = place(low);
        self.middle[middle].fetch_or(bit, Ordering::SeqCst);
        self.set_top(middle);
    }

    fn set_top(&self, middle: usize) {
        self.top.fetch_or(1 << middle, Ordering::SeqCst);
    }

    fn clear(&self, arena: usize) {
        let (low, bit) = place(arena);
        if self.low[low].fetch_and(!bit, Ordering::SeqCst) & !bit == 0 {
            self.clear_middle(low);
        }
    }

    /// Clears the middle bit of a low word, if that is empty.
    fn clear_middle(&self, low: usize) {
        if load_seq_cst(&self.low[low]) != 0 {
            return;
        }
        let (middle, bit) = place(low);
        let left = self.middle[middle].fetch_and(!bit, Ordering::SeqCst) & !bit;
        if load_seq_cst(&self.low[low]) != 0 {
            // Another thread has set a bit below meanwhile. The bit above may be gone too: a third
            // found this word empty, as it was.
            self.set_middle(low);
        } else if left == 0 {
            self.clear_top(middle);
        }
    }

    /// Clears the top bit of a middle word, if that is empty.
    fn clear_top(&self, middle: usize) {
        if load_seq_cst(&self.middle[middle]) != 0 {
            return;
        }
        self.top.fetch_and(!(1 << middle), Ordering::SeqCst);
        if load_seq_cst(&self.middle[middle]) != 0 {
            self.set_top(middle);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Replays a thread that sets hints more slowly than another takes the room and clears them.
    #[test]
    fn bits_with_nothing_below_are_taken_back() {
        let words = || [const { AtomicU64::new(0) }; 256];
        let (low, middle, top) = (words(), words(), AtomicU64::new(0));
        let hints = Hints {
            low: &low,
            middle: &middle[..4],
            top: &top,
        };
        hints.set_middle(3);
        hints.set_top(1);
        let far = 200 << WORD_SHIFT | 5;
        hints.correct(far, || true);
        assert_eq!(hints.lowest(), Some(far));
        assert_eq!(hints.bits(3 << WORD_SHIFT), [false; 3]);
        hints.correct(far, || false);
        assert_eq!(hints.lowest(), None);
        assert_eq!(top.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Arenas of a few chunks, words of two hints. Loom cannot see words of 64, nor a load that is
    //! too weak where another stands before it, whose fence the model has.
    //!
    //! Planted faults that it found: the second look left out in `correct`, `clear_middle` or
    //! `clear_top`; a middle bit set again without the one above; a search that gives up at a
    //! misleading bit. The last two were real, before there was this model.

    use std::vec::Vec;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Arenas under one middle word: two low words of two.
    const ARENAS: usize = 4;

    /// Stands in for arenas: each is a count of chunks.
    struct Space {
        low: Vec<AtomicU64>,
        middle: Vec<AtomicU64>,
        top: AtomicU64,
        free: Vec<AtomicU64>,
    }

    impl Space {
        fn new(free: [u64; ARENAS]) -> Space {
            let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
            let space = Space {
                low: words(ARENAS >> WORD_SHIFT),
                middle: words(ARENAS >> (2 * WORD_SHIFT)),
                top: AtomicU64::new(0),
                free: free.into_iter().map(AtomicU64::new).collect(),
            };
            for arena in 0..ARENAS {
                space.correct(arena);
            }
            space
        }

        fn hints(&self) -> Hints<'_> {
            Hints {
                low: &self.low,
                middle: &self.middle,
                top: &self.top,
            }
        }

        fn correct(&self, arena: usize) {
            self.hints()
                .correct(arena, || load_seq_cst(&self.free[arena]) != 0);
        }

        fn give(&self, arena: usize) {
            self.free[arena].fetch_add(1, Ordering::SeqCst);
            self.correct(arena);
        }

        fn take(&self, arena: usize) -> bool {
            let free = self.free[arena].load(Ordering::Relaxed);
            let is_taken = free > 0
                && self.free[arena]
                    .compare_exchange(free, free - 1, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok();
            if is_taken || free == 0 {
                self.correct(arena);
            }
            is_taken
        }

        /// Checks the hints while no thread is at work.
        fn check(&self) {
            for arena in 0..ARENAS {
                let has_room = load_seq_cst(&self.free[arena]) != 0;
                let bits = self.hints().bits(arena);
                assert!(!has_room || bits == [true; 3], "arena {arena}: {bits:?}");
            }
            // Misleading bits hide no room; whoever finds one clears it.
            while let Some(arena) = self.hints().lowest() {
                self.take(arena);
            }
            for arena in 0..ARENAS {
                assert_eq!(
                    load_seq_cst(&self.free[arena]),
                    0,
                    "arena {arena} was found"
                );
                assert_eq!(self.hints().bits(arena), [false; 3], "arena {arena}");
            }
        }
    }

    /// A thread's action.
    #[derive(Clone, Copy)]
    enum Act {
        Give(usize),
        Take(usize),
        /// Takes from wherever the hints lead.
        Find,
    }

    /// Checks all interleavings with this many preemptions, unless `LOOM_MAX_PREEMPTIONS` is set.
    fn model<const N: usize>(preemptions: usize, free: [u64; ARENAS], acts: [&'static [Act]; N]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
        builder.check(move || {
            let space = Arc::new(Space::new(free));
            let run = |space: &Space, acts: &[Act]| {
                for act in acts {
                    match *act {
                        Act::Give(arena) => space.give(arena),
                        Act::Take(arena) => {
                            space.take(arena);
                        }
                        Act::Find => {
                            if let Some(arena) = space.hints().lowest() {
                                space.take(arena);
                            }
                        }
                    }
                }
            };
            let threads: Vec<_> = acts[1..]
                .iter()
                .map(|acts| {
                    let space = space.clone();
                    let acts = *acts;
                    thread::spawn(move || run(&space, acts))
                })
                .collect();
            run(&space, acts[0]);
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            space.check();
        });
    }

    use Act::{Find, Give, Take};

    #[test]
    fn loom_one_takes_the_last_and_one_gives() {
        model(4, [1, 0, 0, 0], [&[Take(0)], &[Give(0)]]);
        model(3, [1, 0, 0, 0], [&[Find, Find], &[Give(1)]]);
        model(3, [1, 0, 0, 0], [&[Take(0), Give(0)], &[Take(0), Give(0)]]);
    }

    /// A third thread finds the middle word empty just as another is about to set a bit there
    /// again.
    #[test]
    fn loom_two_low_words_become_empty_and_one_does_not() {
        model(3, [1, 0, 1, 0], [&[Take(0)], &[Give(1)], &[Take(2)]]);
    }

    #[test]
    fn loom_two_give_and_one_finds() {
        model(2, [0; 4], [&[Find, Find], &[Give(0)], &[Give(2)]]);
    }

    /// A thread takes room before its hints are complete; room behind them must be found all the
    /// same.
    #[test]
    fn loom_a_bit_with_nothing_below_hides_no_room() {
        model(4, [0, 0, 0, 1], [&[Give(0)], &[Take(0)]]);
    }
}
