//! Epoch words: which match of a round has a vertex.
//!
//! Two words stand for a vertex:
//!
//! ```text
//!   lock    │ round                                  62 │ 1: held for writing, 0: for reading │
//!   claim   │ pass 24 │ lowest rank that would write 20 │ lowest rank of all 20 │
//! ```
//!
//! A word of an earlier round or pass means nothing, so nothing is ever unlocked. There are
//! several readers of a vertex or one writer.
//!
//! | word | who writes | who reads | when |
//! |---|---|---|---|
//! | claim | every match that is undecided, by compare and swap | the same | claims end before anyone looks: a barrier |
//! | lock | matches that won, which do not overlap | undecided ones | wins end before the next pass: a barrier |
//!
//! A match wins if no match that overlaps with it and is undecided has a lower rank. That depends
//! on ranks alone, not on who came first: a minimum is the same in every order. So threads take
//! the locks of a round as one thread would that goes through all matches by rank.

use hearth_atomics::{AtomicU64, Ordering};

/// One more than the highest rank.
pub(crate) const RANKS: u32 = (1 << RANK_BITS) - 1;
const RANK_BITS: u32 = 20;
const NONE: u64 = RANKS as u64;
/// One more than the highest pass.
pub(crate) const PASSES: u64 = 1 << 24;

/// The words of a vertex.
#[derive(Debug)]
pub(crate) struct Words {
    lock: AtomicU64,
    claim: AtomicU64,
}

fn claim_word(pass: u64, writer: u64, all: u64) -> u64 {
    pass << (2 * RANK_BITS) | writer << RANK_BITS | all
}

fn parts(word: u64) -> (u64, u64, u64) {
    (
        word >> (2 * RANK_BITS),
        word >> RANK_BITS & NONE,
        word & NONE,
    )
}

impl Words {
    /// Words of a vertex that nobody has. Rounds and passes begin with 1.
    pub(crate) fn new() -> Words {
        Words {
            lock: AtomicU64::new(0),
            claim: AtomicU64::new(0),
        }
    }

    /// Forgets passes, so that they can begin with 1 again.
    pub(crate) fn forget(&mut self) {
        self.claim = AtomicU64::new(0);
    }

    /// Claims the vertex for a match, in one pass.
    pub(crate) fn claim(&self, pass: u64, rank: u32, writes: bool) {
        let rank = u64::from(rank);
        // Relaxed: nothing but the word itself is handed on, and a barrier separates claims from
        // looks.
        let mut old = self.claim.load(Ordering::Relaxed);
        loop {
            let (there, writer, all) = match parts(old) {
                (there, writer, all) if there == pass => (there, writer, all),
                _ => (pass, NONE, NONE),
            };
            let writer = if writes { writer.min(rank) } else { writer };
            let new = claim_word(there, writer, all.min(rank));
            if new == old {
                return;
            }
            let swapped =
                self.claim
                    .compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed);
            match swapped {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Whether a match that claimed the vertex has it before all that would overlap.
    pub(crate) fn is_first(&self, rank: u32, writes: bool) -> bool {
        let (_, writer, all) = parts(self.claim.load(Ordering::Relaxed));
        let rank = u64::from(rank);
        if writes { all == rank } else { rank <= writer }
    }

    /// Locks the vertex for a match that won: others that do the same at this time only read it.
    pub(crate) fn lock(&self, round: u64, writes: bool) {
        // Relaxed: the barrier after all wins hands it on.
        self.lock
            .store(round << 1 | u64::from(writes), Ordering::Relaxed);
    }

    /// Whether a lock of this round keeps a match out.
    pub(crate) fn is_locked(&self, round: u64, writes: bool) -> bool {
        let word = self.lock.load(Ordering::Relaxed);
        word >> 1 == round && (writes || word & 1 == 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_rank_is_first() {
        let words = Words::new();
        for (rank, writes) in [(7, false), (3, true), (5, false), (2, false)] {
            words.claim(1, rank, writes);
        }
        assert!(words.is_first(2, false), "reads before the writer");
        assert!(!words.is_first(3, true), "2 reads before it");
        assert!(!words.is_first(5, false), "3 writes before it");
        words.claim(2, 5, false);
        assert!(words.is_first(5, false), "an earlier pass means nothing");
    }

    #[test]
    fn locks_are_of_their_round() {
        let words = Words::new();
        words.lock(1, false);
        assert!(!words.is_locked(1, false) && words.is_locked(1, true));
        words.lock(2, true);
        assert!(words.is_locked(2, false) && !words.is_locked(3, true));
    }
}

/// Threads claim at the same time; then all are joined, which is the barrier. Loom tries every
/// interleaving of the claims. It does not see the passes of a whole round: `tests/rounds.rs` runs
/// these for real, beside one thread.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Three matches on two vertices, with stale words of an earlier pass.
    fn one_pass(wants: [[Option<bool>; 2]; 3]) {
        loom::model(move || {
            let words = Arc::new([Words::new(), Words::new()]);
            words[0].claim(1, 0, true);
            let claimers: Vec<_> = (1..3u32)
                .map(|rank| {
                    let words = Arc::clone(&words);
                    thread::spawn(move || claim_all(&words, rank, wants[rank as usize]))
                })
                .collect();
            claim_all(&words, 0, wants[0]);
            claimers
                .into_iter()
                .for_each(|claimer| claimer.join().unwrap());
            let won: Vec<bool> = (0..3u32)
                .map(|rank| {
                    let mut all = words.iter().zip(wants[rank as usize]);
                    all.all(|(words, wants)| wants.is_none_or(|is| words.is_first(rank, is)))
                })
                .collect();
            let overlap = |a: usize, b: usize| {
                let mut both = wants[a].iter().zip(wants[b]);
                both.any(|(a, b)| matches!((a, b), (Some(a), Some(b)) if *a || b))
            };
            for rank in 0..3 {
                let is_beaten = (0..rank).any(|lower| overlap(lower, rank));
                assert_eq!(won[rank], !is_beaten, "{rank} of {wants:?}");
            }
        });
    }

    fn claim_all(words: &[Words; 2], rank: u32, wants: [Option<bool>; 2]) {
        for (words, wants) in words.iter().zip(wants) {
            if let Some(writes) = wants {
                words.claim(2, rank, writes);
            }
        }
    }

    #[test]
    fn loom_claims() {
        let (none, read, write) = (None, Some(false), Some(true));
        one_pass([[read, none], [read, write], [none, write]]);
        one_pass([[write, read], [read, none], [read, read]]);
        one_pass([[read, read], [write, none], [none, read]]);
        one_pass([[none, write], [write, write], [write, none]]);
    }
}
