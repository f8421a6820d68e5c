//! NOrec's log of writes: what a commit will store, and where a transaction finds it before.

use crate::counter::summary;
use crate::raw::{RawWord, Target};

/// Writes up to which looking through all of them is faster than an index.
#[cfg(not(loom))]
const SCAN_MAX: usize = 8;
#[cfg(loom)]
const SCAN_MAX: usize = 1;

/// A slot of the index. It is in use if its stamp is the log's.
#[derive(Clone, Copy, Default)]
struct Slot {
    stamp: u32,
    position: u32,
}

/// The words written and their new values, in order.
///
/// A word may be there twice: a savepoint keeps what came before it, so a later write to a word of
/// before is appended. The last entry counts.
pub(crate) struct Writes {
    entries: Vec<(Target, u64)>,
    /// The summary of all addresses: most words that are read are not among them.
    summary: u64,
    /// Entries that a savepoint keeps.
    kept: usize,
    /// Positions of the last entry of each word, by address: at least twice as many slots as
    /// entries. Made when the log is longer than `SCAN_MAX`.
    index: Vec<Slot>,
    stamp: u32,
}

impl Writes {
    pub(crate) fn new() -> Writes {
        Writes {
            entries: Vec::with_capacity(16),
            summary: 0,
            kept: 0,
            index: Vec::new(),
            stamp: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.summary = 0;
        self.kept = 0;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn summary(&self) -> u64 {
        self.summary
    }

    #[inline(always)]
    pub(crate) fn entries(&self) -> &[(Target, u64)] {
        &self.entries
    }

    /// The value that the transaction has written to a word.
    #[inline(always)]
    pub(crate) fn find(&self, raw: &RawWord) -> Option<u64> {
        if self.summary & summary(raw.address()) == 0 {
            return None;
        }
        self.position(raw).map(|position| self.entries[position].1)
    }

    /// Logs a write.
    ///
    /// # Safety
    /// The words of the log are alive.
    #[inline(always)]
    pub(crate) unsafe fn put(&mut self, raw: &RawWord, value: u64) {
        let bit = summary(raw.address());
        if self.summary & bit != 0
            && let Some(position) = self.position(raw)
            && position >= self.kept
        {
            self.entries[position].1 = value;
            return;
        }
        self.summary |= bit;
        self.entries.push((Target::of(raw), value));
        if self.entries.len() > SCAN_MAX {
            // SAFETY: the caller's promise.
            unsafe { self.note_last(raw.address()) };
        }
    }

    /// Keeps all entries until `release`, and gives how many were kept before.
    pub(crate) fn keep(&mut self) -> usize {
        std::mem::replace(&mut self.kept, self.entries.len())
    }

    /// Ends what `keep` began.
    pub(crate) fn release(&mut self, kept: usize) {
        self.kept = kept;
    }

    /// Forgets the entries from the `length`th on. Their bits stay in the summary.
    ///
    /// # Safety
    /// The words of the log are alive.
    pub(crate) unsafe fn truncate(&mut self, length: usize) {
        self.entries.truncate(length);
        if length > SCAN_MAX {
            // SAFETY: the caller's promise.
            self.build_index(|target| unsafe { target.get() }.address());
        }
    }

    #[inline]
    fn position(&self, raw: &RawWord) -> Option<usize> {
        let target = Target::of(raw);
        if self.entries.len() <= SCAN_MAX {
            return self.entries.iter().rposition(|&(other, _)| other == target);
        }
        let slot = self.index[self.slot_of(target, raw.address())];
        (slot.stamp == self.stamp).then_some(slot.position as usize)
    }

    /// The slot of a word, or the empty one where it belongs.
    fn slot_of(&self, target: Target, address: usize) -> usize {
        let last = self.index.len() - 1;
        let mut at = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 32 & last;
        loop {
            let slot = self.index[at];
            if slot.stamp != self.stamp || self.entries[slot.position as usize].0 == target {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    /// Enters the last entry, of the word with this address, into the index.
    ///
    /// # Safety
    /// The words of the log are alive.
    #[cold]
    unsafe fn note_last(&mut self, address: usize) {
        let last = self.entries.len() - 1;
        if last == SCAN_MAX || self.entries.len() * 2 > self.index.len() {
            // SAFETY: the caller's promise.
            self.build_index(|target| unsafe { target.get() }.address());
            return;
        }
        let slot = self.slot_of(self.entries[last].0, address);
        self.index[slot] = Slot {
            stamp: self.stamp,
            position: last as u32,
        };
    }

    fn build_index(&mut self, address: impl Fn(Target) -> usize) {
        if self.entries.len() * 2 > self.index.len() {
            let slots = (self.entries.len() * 4).next_power_of_two();
            self.index = vec![Slot::default(); slots];
            self.stamp = 0;
        }
        self.stamp = match self.stamp.checked_add(1) {
            Some(stamp) => stamp,
            None => {
                self.index.fill(Slot::default());
                1
            }
        };
        for position in 0..self.entries.len() {
            let target = self.entries[position].0;
            let slot = self.slot_of(target, address(target));
            self.index[slot] = Slot {
                stamp: self.stamp,
                position: position as u32,
            };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Random writes, with savepoints kept and undone, beside a map.
    #[test]
    #[cfg_attr(miri, ignore = "too many lookups for an interpreter")]
    fn the_last_write_to_a_word_is_found() {
        let words: Vec<RawWord> = (0..100).map(|_| RawWord::new(0)).collect();
        for seed in 1..200u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut below = |bound: usize| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 33) as usize % bound
            };
            let mut writes = Writes::new();
            for _ in 0..3 {
                writes.clear();
                let mut known = HashMap::new();
                let mut savepoints = Vec::new();
                let spread = 1 + below(words.len());
                for value in 0..below(150) as u64 {
                    match below(12) {
                        0 => savepoints.push((writes.len(), writes.keep(), known.clone())),
                        1 => {
                            if let Some((length, kept, then)) = savepoints.pop() {
                                // SAFETY: the words live to the end of the test.
                                unsafe { writes.truncate(length) };
                                writes.release(kept);
                                known = then;
                            }
                        }
                        2 => {
                            if let Some((_, kept, _)) = savepoints.pop() {
                                writes.release(kept);
                            }
                        }
                        _ => {
                            let word = below(spread);
                            // SAFETY: as above.
                            unsafe { writes.put(&words[word], value) };
                            known.insert(word, value);
                        }
                    }
                    for (at, word) in words.iter().enumerate() {
                        assert_eq!(writes.find(word), known.get(&at).copied(), "seed {seed}");
                    }
                }
            }
        }
    }
}
