//! Experiments 0 and 1: register latency, and a thread that writes and reads its own buffer.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sys::clock::{Clock, Source};
use serde::{Deserialize, Serialize};

use super::exchange::{Arena, CONSTANT, FRESH_ABOVE_BYTES, Run, fresh, interval};
use super::options::{CacheImpactOptions, Defect, Start};
use super::snapshot::Snapshot;
use crate::StudyError;

/// The unit that the counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Cycles of the time stamp counter, which runs at a constant rate and not the core's.
    Cycles,
    /// Nanoseconds, where there is no such counter.
    Nanoseconds,
}

impl Unit {
    /// The unit of a clock's ticks.
    #[must_use]
    pub fn of(clock: &Clock) -> Unit {
        match clock.source() {
            Source::Tsc => Unit::Cycles,
            Source::Monotonic => Unit::Nanoseconds,
        }
    }

    /// Its name for axes and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Nanoseconds => "ns",
        }
    }
}

/// Result of experiment 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Register {
    /// The mean as the source takes it, stamps included, in the counter's unit.
    pub mean: f64,
    /// The same with nothing between the stamps. The source did not subtract it.
    pub empty: f64,
    /// Number of samples taken.
    pub samples: u32,
}

/// Repetitions of experiment 0; the source does not give its own.
const REGISTER_SAMPLES: u32 = 10_000;

/// Experiment 0: an ordinary variable is assigned to one in a register.
#[must_use]
pub fn register(clock: &Clock) -> Register {
    let mut sums = [0u64; 2];
    for at in 0..REGISTER_SAMPLES {
        // The value goes to memory and comes back, as an ordinary variable's does without
        // optimisation.
        let mut ordinary = u64::from(at);
        black_box(&mut ordinary);
        let begin = clock.ticks_ordered();
        let held = *black_box(&ordinary);
        let end = clock.ticks_ordered();
        black_box(held);
        sums[0] += end.saturating_sub(begin);
        let begin = clock.ticks_ordered();
        let end = clock.ticks_ordered();
        sums[1] += end.saturating_sub(begin);
    }
    let [mean, empty] = sums.map(|sum| sum as f64 / f64::from(REGISTER_SAMPLES));
    Register {
        mean,
        empty,
        samples: REGISTER_SAMPLES,
    }
}

/// No processor takes less than this, in cycles, for a store, a load of what was stored, and the
/// next address from that; with nanoseconds the same holds at 2 GHz and above. The source's own
/// figures for experiment 1 are far below it.
pub const PASS_MIN: f64 = 0.4;

/// True if `bytes` can have taken this time.
#[must_use]
pub fn is_possible(bytes: u64, time: u64) -> bool {
    time as f64 >= PASS_MIN * (bytes / 8) as f64
}

/// Runs experiment 1.
#[derive(Debug)]
pub struct Sweeper {
    clock: Clock,
    before: Snapshot,
    after: Snapshot,
    start: Start,
    wraps: bool,
    maps_afresh: bool,
    past_the_end: bool,
}

impl Sweeper {
    /// Creates a sweeper that behaves as the options say.
    #[must_use]
    pub fn new(clock: Clock, options: &CacheImpactOptions) -> Sweeper {
        Sweeper {
            clock,
            before: Snapshot::spare(),
            after: Snapshot::spare(),
            start: options.start,
            wraps: options.has(Defect::Unsigned),
            maps_afresh: options.has(Defect::Cliff),
            past_the_end: options.has(Defect::Index),
        }
    }

    /// Makes one run over a buffer of `bytes`. The time is in the counter's [`Unit`].
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn run(&mut self, arena: &mut Arena, bytes: u64) -> Result<Run, StudyError> {
        let clock = self.clock;
        super::start::begin(self.start, &mut self.before, || clock.ticks());
        let begin = clock.ticks_ordered();
        if self.maps_afresh && bytes > FRESH_ABOVE_BYTES {
            let mut mapping = fresh(bytes)?;
            self.pass(mapping.atomics(), bytes);
        } else {
            self.pass(arena.words(bytes), bytes);
        }
        let end = clock.ticks_ordered();
        self.after.after();
        let core = hearth_sys::affinity::current();
        Ok(Run {
            time: interval(begin, end, self.wraps),
            events: self.before.until(&self.after),
            sender: core,
            receiver: core,
        })
    }

    fn pass(&self, words: &[AtomicU64], bytes: u64) {
        let count = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        let count = count.min(words.len().saturating_sub(1));
        let sum = if self.past_the_end {
            pass_past_the_end(words, count)
        } else {
            pass_in_order(&words[..count])
        };
        black_box(sum);
    }
}

/// Writes a word and reads it back, one after the other. The next index comes out of what was
/// read, so that no access begins before the one before has ended.
#[inline(never)]
fn pass_in_order(words: &[AtomicU64]) -> u64 {
    let constant = black_box(CONSTANT);
    let (mut at, mut sum) = (0usize, 0u64);
    while let Some(word) = words.get(at) {
        word.store(constant, Ordering::Relaxed);
        let read = black_box(word.load(Ordering::Relaxed));
        sum = sum.wrapping_add(read);
        // What was read is the constant, so that this adds one; only we know.
        at += 1 + (read ^ constant) as usize;
    }
    sum
}

/// Walks as the source's code does: the index is the count of elements and never changes.
#[inline(never)]
fn pass_past_the_end(words: &[AtomicU64], count: usize) -> u64 {
    let mut sum = 0u64;
    for _ in 0..count {
        let word = &words[black_box(count)];
        word.store(CONSTANT, Ordering::Relaxed);
        sum = sum.wrapping_add(black_box(word.load(Ordering::Relaxed)));
    }
    sum
}
