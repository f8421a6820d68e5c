//! Walks over lines in a shuffled order: each line says which comes next, so that no prefetcher can
//! know.
//!
//! A line is eight words: the number of the next line, then how often the line was modified, then
//! nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::config::{Defects, LINE_BYTES};

/// Words of a line.
pub(super) const WORDS: usize = LINE_BYTES / 8;

/// A generator whose numbers are the same for the same seed (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; the products' upper halves are even enough for shuffles.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// Lines in the memory of the pool.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Lines<'a> {
    /// Links the lines into one cycle that begins at the first, in an order shuffled as Durstenfeld
    /// does it.
    pub(super) fn shuffled(words: &'a [AtomicU64], random: &mut Random) -> Lines<'a> {
        let count = words.len() / WORDS;
        let mut order: Vec<usize> = (0..count).collect();
        // The first stays the first: all walks begin there.
        for last in (2..count).rev() {
            order.swap(last, 1 + random.below(last));
        }
        let lines = Lines { words };
        for (at, &line) in order.iter().enumerate() {
            let next = order[(at + 1) % count.max(1)];
            lines.link(line).store(next as u64, Relaxed);
            lines.count(line).store(0, Relaxed);
        }
        lines
    }

    pub(super) fn len(self) -> usize {
        self.words.len() / WORDS
    }

    #[inline(always)]
    fn link(self, line: usize) -> &'a AtomicU64 {
        &self.words[line * WORDS]
    }

    /// The counter of a line's modifications.
    #[inline(always)]
    fn count(self, line: usize) -> &'a AtomicU64 {
        &self.words[line * WORDS + 1]
    }

    /// Touches every line once, each when the one before has said where it is. Returns the moves.
    #[inline]
    pub(super) fn read(self) -> u64 {
        let (mut line, mut moves) = (0, 0);
        loop {
            line = self.link(line).load(Relaxed) as usize;
            if line == 0 {
                return moves;
            }
            moves += 1;
        }
    }

    /// The lines in the order of the walk.
    pub(super) fn order(self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.len());
        let mut line = 0;
        loop {
            order.push(line);
            line = self.link(line).load(Relaxed) as usize;
            if line == 0 {
                return order;
            }
        }
    }

    /// Total of the lines' modifications.
    pub(super) fn modifications(self) -> u64 {
        (0..self.len())
            .map(|line| self.count(line).load(Relaxed))
            .sum()
    }

    /// Lines that were modified at all.
    pub(super) fn modified(self) -> usize {
        let is_modified = |line: &usize| self.count(*line).load(Relaxed) > 0;
        (0..self.len()).filter(is_modified).count()
    }
}

/// A walk that modifies some of the lines.
pub(super) struct WriteWalk {
    modified: u64,
    lines: u64,
    mask: u64,
    defects: Defects,
    cursor: usize,
    moves: u64,
}

impl WriteWalk {
    /// A walk that modifies `modified` of `lines` lines in a pass.
    pub(super) fn new(lines: usize, modified: usize, defects: Defects) -> WriteWalk {
        // The listing's divisor: one line in `divisor` is modified, a power of two.
        let divisor = match modified {
            0 => 1,
            modified => ((lines / modified).max(1) as u64 + 1).next_power_of_two() / 2,
        };
        WriteWalk {
            modified: modified as u64,
            lines: lines as u64,
            mask: if defects.power_of_two_mask {
                divisor
            } else {
                divisor - 1
            },
            defects,
            cursor: 0,
            moves: 0,
        }
    }

    /// Touches every line once and modifies those it is to modify; returns the moves.
    #[inline]
    pub(super) fn pass(&mut self, lines: Lines<'_>) -> u64 {
        if self.modified == 0 {
            return lines.read();
        }
        if self.defects.masks() {
            return self.pass_as_listed(lines);
        }
        self.pass_evenly(lines)
    }

    /// Exactly as many lines as asked for, spread evenly over the walk: a line is modified whenever
    /// the sum of `modified / lines` over the lines so far reaches the next whole number.
    fn pass_evenly(&mut self, lines: Lines<'_>) -> u64 {
        let mut line = self.begin();
        let (mut sum, mut moves) = (0, 0);
        loop {
            sum += self.modified;
            if sum >= self.lines {
                sum -= self.lines;
                modify(lines.count(line));
            }
            let next = lines.link(line).load(Relaxed) as usize;
            if next == 0 {
                self.cursor = line;
                return moves;
            }
            line = next;
            moves += 1;
        }
    }

    fn pass_as_listed(&mut self, lines: Lines<'_>) -> u64 {
        let mut line = self.begin();
        if !self.defects.counter_kept {
            self.moves = 0;
        }
        if !self.defects.head_unmodified && line == 0 {
            self.modify_if_due(lines, line);
        }
        let mut moves = 0;
        loop {
            let next = lines.link(line).load(Relaxed) as usize;
            if next == 0 {
                self.cursor = line;
                return moves;
            }
            line = next;
            moves += 1;
            self.modify_if_due(lines, line);
        }
    }

    #[inline(always)]
    fn modify_if_due(&mut self, lines: Lines<'_>, line: usize) {
        self.moves += 1;
        if self.moves & self.mask == 0 {
            modify(lines.count(line));
        }
    }

    fn begin(&self) -> usize {
        if self.defects.cursor_kept {
            self.cursor
        } else {
            0
        }
    }
}

/// Adds one. Only the holder of the section writes, so a load and a store do, as in the source.
#[inline(always)]
fn modify(count: &AtomicU64) {
    count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
}
