//! Exact reuse distances.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Slots of a new stack; a power of two and a multiple of 64.
const SLOTS_MIN: usize = 4096;

/// Memory of a line that is touched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Other lines touched since its last use.
    pub distance: u64,
    /// The note left at its last use.
    pub note: u32,
}

/// The lines in the order of their last use.
///
/// Each use takes the next slot of a row, and a line's mark stands in the slot of its last use: the
/// distance is the number of marks behind it. Marks are bits; a Fenwick tree counts them by words,
/// so a reference costs one look-up and three walks of log₂(slots / 64) steps. When the row is full
/// the marks are moved together, at a constant cost for each reference on average, so `n`
/// references take O(n log m) steps and O(m) memory for `m` distinct lines.
#[derive(Clone, Debug)]
pub struct Stack {
    last: HashMap<u64, LastUse, BuildHasherDefault<LineHasher>>,
    /// Bit `s` is set if slot `s` is the last use of some line.
    marks: Vec<u64>,
    /// A Fenwick tree over the numbers of marks in the words.
    counts: Vec<usize>,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct LastUse {
    slot: usize,
    note: u32,
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack {
    /// An empty stack.
    #[must_use]
    pub fn new() -> Self {
        Stack {
            last: HashMap::default(),
            marks: vec![0; SLOTS_MIN / 64],
            counts: vec![0; SLOTS_MIN / 64 + 1],
            next: 0,
        }
    }

    /// Number of known lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.last.len()
    }

    /// Uses a line, and leaves a note with it. `None` at its first use.
    pub fn touch(&mut self, line: u64, note: u32) -> Option<Touch> {
        if self.next == self.marks.len() * 64 {
            self.move_together();
        }
        let slot = self.next;
        self.next += 1;
        let before = self.last.insert(line, LastUse { slot, note });
        let touch = before.map(|place| {
            let distance = self.marks_after(place.slot);
            self.unmark(place.slot);
            Touch {
                distance,
                note: place.note,
            }
        });
        self.mark(slot);
        touch
    }

    /// Forgets a line, as if it had never been touched.
    pub fn remove(&mut self, line: u64) {
        if let Some(place) = self.last.remove(&line) {
            self.unmark(place.slot);
        }
    }

    fn mark(&mut self, slot: usize) {
        self.marks[slot / 64] |= 1 << (slot % 64);
        let mut at = slot / 64 + 1;
        while at < self.counts.len() {
            self.counts[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn unmark(&mut self, slot: usize) {
        self.marks[slot / 64] &= !(1 << (slot % 64));
        let mut at = slot / 64 + 1;
        while at < self.counts.len() {
            self.counts[at] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Number of marks in slots behind this one. The map already has the newest use, whose mark is
    /// not set yet, so the tree counts and not the map.
    fn marks_after(&self, slot: usize) -> u64 {
        let upto = self.marks_before_word(slot / 64 + 1);
        let behind_in_word = (self.marks[slot / 64] >> (slot % 64)) >> 1;
        (self.marks_before_word(self.marks.len()) - upto) as u64
            + u64::from(behind_in_word.count_ones())
    }

    fn marks_before_word(&self, word: usize) -> usize {
        let (mut sum, mut at) = (0, word);
        while at > 0 {
            sum += self.counts[at];
            at &= at - 1;
        }
        sum
    }

    /// Moves the marks to the front, in order, in a row of at least twice as many slots.
    fn move_together(&mut self) {
        let mut before = Vec::with_capacity(self.marks.len());
        let mut sum = 0;
        for word in &self.marks {
            before.push(sum);
            sum += word.count_ones() as usize;
        }
        for place in self.last.values_mut() {
            let (word, bit) = (place.slot / 64, place.slot % 64);
            let below = self.marks[word] & ((1 << bit) - 1);
            place.slot = before[word] + below.count_ones() as usize;
        }
        let words = (2 * sum).next_power_of_two().max(SLOTS_MIN) / 64;
        self.marks = vec![0; words];
        self.marks[..sum / 64].fill(u64::MAX);
        if !sum.is_multiple_of(64) {
            self.marks[sum / 64] = (1 << (sum % 64)) - 1;
        }
        self.counts = vec![0; words + 1];
        for (word, marks) in self.marks.iter().enumerate() {
            let at = word + 1;
            self.counts[at] += marks.count_ones() as usize;
            let parent = at + (at & at.wrapping_neg());
            if parent <= words {
                self.counts[parent] += self.counts[at];
            }
        }
        self.next = sum;
    }
}

/// Hashes a line number by a multiplication and a fold. Traces are not hostile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = spread(self.0.rotate_left(5) ^ number);
    }
}

/// Finaliser of a 64-bit mixing function (two multiplications by odd constants with well
/// distributed bits, each behind a shift): every bit of the number reaches every bit of the result.
pub(super) fn spread(number: u64) -> u64 {
    let a = (number ^ (number >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let b = (a ^ (a >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    b ^ (b >> 32)
}
