//! What it takes for one hardware thread to get a line that another has just changed.
//!
//! Two threads take turns at a word by compare-and-swap: each turn fetches the line from the
//! other's cache in a state that may be written. A line has a home somewhere on the chip, and its
//! latency depends on where; so a visit samples many lines, drawn anew each time, and takes the
//! median over lines. One line, however often, would give a precise answer to another question.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Context, Lines, Rounds, Stop, spin_until, together};
use crate::disturbance::{Batch, Before};
use crate::statistics::{Measured, Round};

/// The transfer between two hardware threads.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLatency {
    /// The two, by the system's numbers.
    pub cores: [usize; 2],
    /// Nanoseconds one way: half of the round trip.
    pub one_way_ns: Measured,
}

/// Round trips before the measured ones: the other side is on its way, the line still elsewhere.
const TRIPS_WARM: u64 = 8;
/// Round trips a chunk, and chunks a line. Short enough that few chunks meet a timer interrupt.
const TRIPS: u64 = 40;
const CHUNKS: usize = 3;
/// Lines a visit: fewer make its median uncertain, more do not help, as rounds differ by more.
const LINES_MIN: usize = 64;
const LINES_MAX: usize = 2048;
/// Lines a window.
const WINDOW_LINES: usize = 512;
/// What a line takes, roughly, before anything is known, in seconds.
const LINE_SECONDS: f64 = 40e-6;

/// All pairs of these cores, or, where they are too many, as many as 4·n·log₂n of them at random,
/// in random order. Every core is in some pair.
pub fn choose(cores: &[usize], random: &mut fastrand::Rng) -> Vec<[usize; 2]> {
    let count = cores.len();
    let mut pairs = Vec::new();
    for (index, &first) in cores.iter().enumerate() {
        pairs.extend(cores[index + 1..].iter().map(|&second| [first, second]));
    }
    random.shuffle(&mut pairs);
    let most = pairs_max(count);
    if pairs.len() > most {
        // A ring through all cores first, so that none is left out.
        let mut ring: Vec<[usize; 2]> = (0..count)
            .map(|index| {
                let (a, b) = (cores[index], cores[(index + 1) % count]);
                [a.min(b), a.max(b)]
            })
            .collect();
        let in_ring: std::collections::HashSet<[usize; 2]> = ring.iter().copied().collect();
        let rest = pairs
            .into_iter()
            .filter(|&[a, b]| !in_ring.contains(&[a.min(b), a.max(b)]));
        ring.extend(rest.take(most - count));
        random.shuffle(&mut ring);
        pairs = ring;
    }
    pairs
}

/// The most pairs that are measured among so many cores: 4·n·log₂n.
pub fn pairs_max(count: usize) -> usize {
    let n = count.max(2) as f64;
    (4.0 * n * n.log2()).floor() as usize
}

/// One pair under measurement.
#[derive(Debug)]
pub struct Pair {
    cores: [usize; 2],
    rounds: Rounds,
}

impl Pair {
    /// A pair that nothing is known of.
    pub fn new(cores: [usize; 2]) -> Pair {
        Pair {
            cores,
            rounds: Rounds::default(),
        }
    }

    /// Its cores.
    pub fn cores(&self) -> [usize; 2] {
        self.cores
    }

    /// What each visit found.
    pub fn rounds(&self) -> &[Round] {
        self.rounds.get()
    }

    /// Measures for about `seconds`, on fresh lines.
    ///
    /// # Errors
    /// Cancelled, or a core cannot be pinned to.
    pub fn visit(
        &mut self,
        context: &mut Context<'_>,
        lines: &mut Lines,
        seconds: f64,
    ) -> Result<(), Stop> {
        let wanted = (seconds / LINE_SECONDS) as usize;
        let mut left = wanted.clamp(LINES_MIN, LINES_MAX);
        let cores = self.cores;
        let mut all = Batch::default();
        while left > 0 {
            let count = left.min(WINDOW_LINES);
            left -= count;
            let (batch, disturbed) =
                context.watched(&cores, |context| window(context, lines, cores, count))?;
            all.add_window(batch, disturbed);
        }
        let round = context.finish(all);
        self.rounds.add(round);
        Ok(())
    }

    /// The figure; None if every visit came to nothing.
    pub fn sum_up(&self) -> Option<PairLatency> {
        Some(PairLatency {
            cores: self.cores,
            one_way_ns: self.rounds.sum_up()?,
        })
    }
}

/// A sample a line: the median of its chunks.
fn window(
    context: &mut Context<'_>,
    lines: &mut Lines,
    cores: [usize; 2],
    count: usize,
) -> Result<Batch, Stop> {
    let drawn = Lines::draw(count, &mut context.random);
    let words: Vec<&AtomicU64> = {
        let memory = lines.words();
        drawn.iter().map(|&word| &memory[word]).collect()
    };
    for word in &words {
        word.store(0, Ordering::Relaxed);
    }
    let trips = TRIPS_WARM + TRIPS * CHUNKS as u64;
    let (clock, reading_ns) = (context.clock, context.reading_ns);
    // Two transfers a round trip.
    let per_chunk = (2 * TRIPS) as usize;
    let first = || {
        let mut batch = Batch::of_chunks(per_chunk);
        let mut chunks = [0.0; CHUNKS];
        for word in &words {
            let before = Before::now();
            serve(word, 0, TRIPS_WARM);
            for (index, ns) in chunks.iter_mut().enumerate() {
                let from = TRIPS_WARM + index as u64 * TRIPS;
                let begin = clock.ticks_ordered();
                serve(word, from, TRIPS);
                *ns = clock.ns(clock.ticks_ordered() - begin) - reading_ns;
            }
            chunks.sort_unstable_by(f64::total_cmp);
            batch.add_chunk(chunks[CHUNKS / 2], &before);
        }
        batch
    };
    let second = || {
        for word in &words {
            for trip in 0..trips {
                turn(word, 2 * trip + 1);
            }
            // The last word is the server's: it must see its own turn come back.
        }
    };
    together(context.system, cores, first, second)
}

/// The first side's turns, each waiting for the answer to the one before; it returns when the
/// last answer has come.
#[inline]
fn serve(word: &AtomicU64, from: u64, trips: u64) {
    for trip in from..from + trips {
        turn(word, 2 * trip);
    }
    // The answer to the last trip, without a change: the chunk ends when the line is back.
    spin_until(|| {
        word.compare_exchange(u64::MAX, 0, Ordering::Acquire, Ordering::Acquire)
            == Err(2 * (from + trips))
    });
}

/// Waits for a number and puts the next in its place. Release hands the turn over, acquire takes
/// it; the two sides order nothing else by it.
#[inline]
fn turn(word: &AtomicU64, number: u64) {
    spin_until(|| {
        word.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
}
