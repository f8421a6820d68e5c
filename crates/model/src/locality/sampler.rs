//! Sampling of lines, which bounds memory.

use std::collections::{BinaryHeap, HashSet};
use std::hash::BuildHasherDefault;

use super::stack::{LineHasher, spread};

/// Follows the lines whose hash lies below a threshold, which falls as more lines appear.
///
/// A line is followed at all its uses or at none, so the distances among followed lines, divided by
/// the rate, estimate the true ones. The number of lines followed never exceeds the limit.
#[derive(Clone, Debug)]
pub struct Sampler {
    threshold: u64,
    lines_max: usize,
    followed: HashSet<u64, BuildHasherDefault<LineHasher>>,
    by_number: BinaryHeap<(u64, u64)>,
}

impl Sampler {
    /// Follows at most this many lines, at least 64.
    #[must_use]
    pub fn new(lines_max: usize) -> Self {
        Sampler {
            threshold: u64::MAX,
            lines_max: lines_max.max(64),
            followed: HashSet::default(),
            by_number: BinaryHeap::new(),
        }
    }

    /// Share of all lines that are followed, above 0 and at most 1.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / u64::MAX as f64
    }

    /// Whether this line is followed. Passes lines that are given up for it to `forget`.
    pub fn follows(&mut self, line: u64, mut forget: impl FnMut(u64)) -> bool {
        let number = number(line);
        if number >= self.threshold {
            return false;
        }
        if !self.followed.insert(line) {
            return true;
        }
        self.by_number.push((number, line));
        while self.followed.len() > self.lines_max {
            let Some((number, given_up)) = self.by_number.pop() else {
                break;
            };
            self.threshold = number;
            self.followed.remove(&given_up);
            if given_up != line {
                forget(given_up);
            }
        }
        number < self.threshold
    }
}

/// The line's group of `groups`, whether or not it is followed.
pub(super) fn group(line: u64, groups: usize) -> usize {
    (spread(!line) % groups as u64) as usize
}

/// Hashes, then rotates: the tables' hash is the same function, and must not be biased by it.
fn number(line: u64) -> u64 {
    spread(line ^ 0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .min(u64::MAX - 1)
}
