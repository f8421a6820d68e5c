//! Time for one hardware thread to get a line that another has just changed.
//!
//! Two threads take turns at a word by compare-and-swap: each turn fetches the line from the
//! other's cache in a writable state. A line has a home somewhere on the chip, and its latency
//! depends on where; so a visit samples many lines, drawn anew each time, and takes the median over
//! lines. One line, however often, would give a precise answer to another question.
//!
//! Up to 32 threads every pair is measured. Beyond, at most 4·n·log₂n pairs are, chosen in rounds
//! by [`hearth_machine::infer::PairPlan`] from earlier results; the rest is inferred from the
//! groups when the profile is made, and marked so there.
//!
//! A pair whose samples show several [states](crate::pair_states) has a figure for each.

use std::sync::atomic::{AtomicU64, Ordering};

use hearth_machine::infer::{Latencies, Latency, PairPlan, pairs_max};
use hearth_machine::topology::{OsThread, Topology};

use crate::context::{Context, Deadline, Lines, Rounds, Stop, spin_until, together};
use crate::disturbance::{Batch, Before};
use crate::pair_states::{self, PairState};
use crate::statistics::{Measured, Round};

/// The transfer between two hardware threads.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLatency {
    /// The two, by the system's numbers.
    pub cores: [usize; 2],
    /// Nanoseconds one way: half of the round trip. With several states, their mean over time.
    pub one_way_ns: Measured,
    /// States between which the pair goes to and fro, the fastest first; empty if there is one.
    pub states: Vec<PairState>,
}

/// Source of samples for a pair: lines of memory, or a simulated machine.
pub trait Transfers {
    /// Takes `count` samples between two cores, each in nanoseconds for one transfer, from a chunk
    /// of [`TRANSFERS`], in the order of time.
    ///
    /// # Errors
    /// If a core cannot be pinned to.
    fn window(
        &mut self,
        context: &mut Context<'_>,
        cores: [usize; 2],
        count: usize,
    ) -> Result<Batch, Stop>;
}

/// Round trips before the measured ones: the other thread is still starting, the line still
/// elsewhere.
const TRIPS_WARM: u64 = 8;
/// Round trips a chunk, and chunks a line. Short enough that few chunks meet a timer interrupt.
const TRIPS: u64 = 40;
const CHUNKS: usize = 3;
/// Transfers in a chunk: a round trip is two.
pub const TRANSFERS: usize = 2 * TRIPS as usize;
/// Lines a visit: fewer make its median uncertain; more do not help, since rounds differ by more.
const LINES_MIN: usize = 64;
/// Lines a visit where pairs are many: others of its groups make up for one that lacks lines.
const LINES_MIN_OF_MANY: usize = 16;
/// Number of pairs that counts as many.
const MANY_PAIRS: usize = 500;
const LINES_MAX: usize = 2048;
/// Lines a window: about five milliseconds, after which the time is checked.
const WINDOW_LINES: usize = 128;
/// Rough time for a line before anything is known, in seconds.
const LINE_SECONDS: f64 = 40e-6;

/// One pair being measured.
#[derive(Debug)]
pub struct Pair {
    cores: [usize; 2],
    lines_min: usize,
    rounds: Rounds,
    /// All samples of each visit, in the order of time.
    visits: Vec<Vec<f64>>,
    /// Samples that the rounds discarded as gaps.
    gaps: u64,
}

impl Pair {
    /// A pair without samples.
    pub fn new(cores: [usize; 2]) -> Pair {
        Pair {
            cores,
            lines_min: LINES_MIN,
            rounds: Rounds::default(),
            visits: Vec::new(),
            gaps: 0,
        }
    }

    /// Its cores.
    pub fn cores(&self) -> [usize; 2] {
        self.cores
    }

    /// Result of each visit.
    pub fn rounds(&self) -> &[Round] {
        self.rounds.get()
    }

    /// Measures for about `seconds`, on fresh lines.
    ///
    /// # Errors
    /// If cancelled, or if a core cannot be pinned to.
    pub fn visit(
        &mut self,
        context: &mut Context<'_>,
        transfers: &mut dyn Transfers,
        seconds: f64,
    ) -> Result<(), Stop> {
        let wanted = (seconds / LINE_SECONDS) as usize;
        let mut left = wanted.clamp(self.lines_min, LINES_MAX);
        let cores = self.cores;
        let end = Deadline::after(context.system, seconds);
        let mut all = Batch::default();
        while left > 0 && (all.is_empty() || !end.is_over()) {
            let count = left.min(WINDOW_LINES);
            left -= count;
            let (batch, disturbed) =
                context.watched(&cores, |context| transfers.window(context, cores, count))?;
            all.add_window(batch, disturbed);
        }
        self.visits.push(all.in_order());
        let before = context.discards.gap;
        let round = context.finish(all);
        self.gaps += context.discards.gap - before;
        self.rounds.add(round);
        Ok(())
    }

    /// The figure; None if every visit failed.
    pub fn sum_up(&self) -> Option<PairLatency> {
        let whole = self.rounds.sum_up()?;
        let states = pair_states::states(&self.visits, TRANSFERS);
        Some(PairLatency {
            cores: self.cores,
            one_way_ns: pair_states::over_time(&states).unwrap_or(whole),
            states,
        })
    }

    /// Samples that rounds discarded as gaps, and that are of a slower state.
    fn regained(&self, latency: &PairLatency) -> u64 {
        if latency.states.is_empty() {
            return 0;
        }
        let left = u64::from(latency.one_way_ns.discarded);
        self.gaps.saturating_sub(left)
    }

    /// The figure for choosing further pairs, whose states do not matter.
    fn latency(&self) -> Option<(usize, usize, Measured)> {
        let [a, b] = self.cores;
        Some((a, b, self.rounds.sum_up()?))
    }
}

/// All pairs of some cores being measured, or as many of them as are needed.
pub struct Matrix {
    threads: Vec<OsThread>,
    pairs: Vec<Pair>,
    /// Pairs to visit next, the last first.
    queue: Vec<usize>,
    /// Names further pairs until it has enough.
    plan: Option<PairPlan>,
}

impl Matrix {
    /// Cores, by the system's numbers, without samples. Claims are hints where to look, never
    /// believed.
    pub fn new(cores: &[usize], claimed: Option<&Topology>) -> Matrix {
        let threads: Vec<OsThread> = cores.iter().filter_map(|&core| os_thread(core)).collect();
        Matrix {
            plan: Some(PairPlan::new(&threads, claimed)),
            threads,
            pairs: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Number of pairs measured or tried so far.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether no pair was tried yet.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Measures for about `seconds`: new pairs as long as the plan names some, otherwise each pair
    /// once more, in random order. Pairs not reached come first next time. Calls `refused` for each
    /// pair that cannot be measured.
    ///
    /// # Errors
    /// If cancelled.
    pub fn visit(
        &mut self,
        context: &mut Context<'_>,
        transfers: &mut dyn Transfers,
        seconds: f64,
        refused: &mut dyn FnMut(String),
    ) -> Result<(), Stop> {
        let end = Deadline::after(context.system, seconds);
        let (mut visited, mut first_pass) = (0, self.plan.is_some());
        loop {
            if self.queue.is_empty() {
                self.refill(&mut context.random);
                first_pass = self.plan.is_some();
            }
            let wanted = if first_pass {
                pairs_max(self.threads.len())
            } else {
                self.pairs.len()
            };
            let Some(index) = self.queue.pop() else {
                return Ok(());
            };
            let pair = &mut self.pairs[index];
            let each = seconds / wanted.max(1) as f64;
            match pair.visit(context, transfers, each) {
                Err(Stop::Refused(why)) => refused(why.to_string()),
                other => other?,
            }
            visited += 1;
            // A first pass continues until it is complete, or the whole probe's time is over.
            let is_enough = if first_pass && !self.is_large() {
                self.queue.is_empty()
            } else {
                end.is_over() || visited >= wanted
            };
            if is_enough || context.is_over() {
                return Ok(());
            }
        }
    }

    fn is_large(&self) -> bool {
        pairs_max(self.threads.len()) > MANY_PAIRS
    }

    fn refill(&mut self, random: &mut fastrand::Rng) {
        let latencies = self.latencies();
        let from = self.pairs.len();
        let lines_min = if self.is_large() {
            LINES_MIN_OF_MANY
        } else {
            LINES_MIN
        };
        if let Some(plan) = &mut self.plan {
            let next = latencies.map_or_else(Vec::new, |latencies| plan.next_round(&latencies));
            self.pairs.extend(next.into_iter().map(|(a, b)| Pair {
                lines_min,
                ..Pair::new([a.0 as usize, b.0 as usize])
            }));
        }
        self.queue = if self.pairs.len() > from {
            (from..self.pairs.len()).collect()
        } else {
            self.plan = None;
            (0..self.pairs.len()).collect()
        };
        random.shuffle(&mut self.queue);
    }

    /// The measurements so far; None if there are no two cores.
    fn latencies(&self) -> Option<Latencies> {
        table(&self.threads, self.pairs.iter().filter_map(Pair::latency))
    }

    /// The figures of all pairs, by their cores, and the number of samples that were discarded as
    /// gaps during a visit and are of a slower state.
    pub fn sum_up(&self) -> (Vec<PairLatency>, u64) {
        let found = self
            .pairs
            .iter()
            .filter_map(|pair| Some((pair, pair.sum_up()?)));
        let mut found: Vec<(&Pair, PairLatency)> = found.collect();
        found.sort_by_key(|(pair, _)| pair.cores);
        let regained = found.iter().map(|(pair, latency)| pair.regained(latency));
        let regained = regained.sum();
        (
            found.into_iter().map(|(_, latency)| latency).collect(),
            regained,
        )
    }
}

fn os_thread(core: usize) -> Option<OsThread> {
    u32::try_from(core).ok().map(OsThread)
}

/// Measured pairs as the table that groups are inferred from. An interval's half width is 1.96
/// standard errors. None if a thread comes twice.
pub fn latencies(
    threads: &[OsThread],
    pairs: impl IntoIterator<Item = PairLatency>,
) -> Option<Latencies> {
    let of = |pair: PairLatency| (pair.cores[0], pair.cores[1], pair.one_way_ns);
    table(threads, pairs.into_iter().map(of))
}

fn table(
    threads: &[OsThread],
    pairs: impl Iterator<Item = (usize, usize, Measured)>,
) -> Option<Latencies> {
    let mut table = Latencies::new(threads).ok()?;
    for (a, b, measured) in pairs {
        let (a, b) = (os_thread(a), os_thread(b));
        let latency = Latency {
            ns: measured.value,
            error_ns: (measured.high - measured.low) / 2.0 / 1.96,
        };
        if let (Some(a), Some(b)) = (a, b) {
            // Leave out a figure that is not a time, or that belongs to a core that came later.
            let _ = table.set(a, b, latency);
        }
    }
    Some(table)
}

impl Transfers for Lines {
    /// Takes a sample a line: the median of its chunks.
    fn window(
        &mut self,
        context: &mut Context<'_>,
        cores: [usize; 2],
        count: usize,
    ) -> Result<Batch, Stop> {
        let drawn = Lines::draw(count, &mut context.random);
        let words: Vec<&AtomicU64> = {
            let memory = self.words();
            drawn.iter().map(|&word| &memory[word]).collect()
        };
        for word in &words {
            word.store(0, Ordering::Relaxed);
        }
        let trips = TRIPS_WARM + TRIPS * CHUNKS as u64;
        let (clock, reading_ns) = (context.clock, context.reading_ns);
        let first = || {
            let mut batch = Batch::of_chunks(TRANSFERS);
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
}

/// Takes the first side's turns, each waiting for the answer to the one before; returns when the
/// last answer has arrived.
#[inline]
fn serve(word: &AtomicU64, from: u64, trips: u64) {
    for trip in from..from + trips {
        turn(word, 2 * trip);
    }
    // The answer to the last trip, unchanged: the chunk ends when the line is back.
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
