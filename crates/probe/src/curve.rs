//! Latency of dependent loads over sizes.
//!
//! The walk follows a ring of lines, each naming the next. In random order nothing can be
//! prefetched, so a load takes the latency of the level that holds the ring; the difference to
//! sequential order is the value of prefetching. The ring grows in place: a new line goes in after
//! one chosen at random, which keeps every cyclic order equally likely.

use hearth_sys::{Refused, System, procfs};

use crate::context::{Context, Deadline, Rounds, Stop};
use crate::disturbance::{Batch, Before};
use crate::options::Mode;
use crate::staircase::{CurvePoint, Level, levels};
use crate::statistics::Measured;

/// Order in which a ring is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Random: no load can be guessed.
    Random,
    /// Ascending addresses.
    Sequential,
}

/// A measured point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The ring's size in bytes: its lines times the stride.
    pub bytes: u64,
    /// Nanoseconds a load.
    pub load_ns: Measured,
}

/// A measured curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The core it was measured on.
    pub core: usize,
    /// Bytes between neighbouring elements in memory.
    pub stride: usize,
    /// The walk's order.
    pub order: Order,
    /// By ascending size.
    pub points: Vec<Point>,
    /// Levels shown by the points; for random order only, since others are prefetched.
    pub levels: Vec<Level>,
    /// Reason why large pages were refused, if they were: then the far end includes address
    /// translation.
    pub huge_refused: Option<Refused>,
}

const SMALLEST: u64 = 1 << 10;
/// Approximate duration of a chunk.
const CHUNK_NS: f64 = 30_000.0;
const CHUNKS: usize = 15;
/// Size above which points are half as dense: walking each takes long.
const COARSE_ABOVE: u64 = 32 << 20;

/// The sizes of a curve: four an octave, from 1 KiB; two an octave above 32 MiB.
pub fn sizes(largest: u64, stride: usize) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut quarter = 0u32;
    loop {
        let exact = SMALLEST as f64 * (f64::from(quarter) / 4.0).exp2();
        let size = (exact as u64 / stride as u64).max(2) * stride as u64;
        if exact as u64 > largest {
            return sizes;
        }
        let is_coarse = size > COARSE_ABOVE && quarter % 2 == 1;
        if !is_coarse && sizes.last() != Some(&size) {
            sizes.push(size);
        }
        quarter += 1;
    }
}

/// The largest ring: the mode's, at most an eighth of the free memory.
fn largest(mode: Mode, system: &dyn System) -> u64 {
    let most = procfs::available_bytes(system).map_or(u64::MAX, |bytes| bytes / 8);
    (mode.curve_bytes() as u64).min(most).max(1 << 20)
}

/// A curve being measured.
pub struct Walk {
    core: usize,
    stride: usize,
    order: Order,
    sizes: Vec<u64>,
    rounds: Vec<Rounds>,
    huge_refused: Option<Refused>,
}

impl Walk {
    /// A curve without samples.
    pub fn new(system: &dyn System, mode: Mode, core: usize, stride: usize, order: Order) -> Walk {
        let sizes = sizes(largest(mode, system), stride);
        Walk {
            core,
            stride,
            order,
            rounds: vec![Rounds::default(); sizes.len()],
            sizes,
            huge_refused: None,
        }
    }

    /// Walks through all sizes once, ascending, as far as `seconds` allow. A size not reached
    /// before may take a quarter of the time of all measurements together, if that is limited:
    /// testing a claim about a cache needs a size beyond it.
    ///
    /// # Errors
    /// If cancelled, if the core cannot be pinned to, or if there is no memory.
    pub fn visit(&mut self, context: &mut Context<'_>, seconds: f64) -> Result<(), Stop> {
        let end = Deadline::after(context.system, seconds);
        let _pinned = context.system.pin(self.core)?;
        let Some(&largest) = self.sizes.last() else {
            return Ok(());
        };
        let reach = |context: &Context<'_>| context.end.map_or(0.0, |end| end.left() / 4.0);
        let end_of_first = Deadline::after(context.system, seconds.max(reach(context)));
        let mut memory = context.pool.take(self.core, largest as usize)?;
        self.huge_refused = memory.huge_refused().cloned();
        let result = self.sizes_in(memory.words_mut(), context, &end, &end_of_first);
        context.pool.give(self.core, memory);
        result
    }

    fn sizes_in(
        &mut self,
        ring: &mut [u64],
        context: &mut Context<'_>,
        end: &Deadline<'_>,
        end_of_first: &Deadline<'_>,
    ) -> Result<(), Stop> {
        let step = self.stride / 8;
        let mut lines = 0usize;
        let mut load_ns = 5.0;
        for index in 0..self.sizes.len() {
            context.check()?;
            let wanted = (self.sizes[index] / self.stride as u64) as usize;
            // Two accesses for each new line, one pass to fill the caches, and the measured loads.
            let accesses = 2 * (wanted - lines) + wanted;
            let walk_seconds = accesses as f64 * load_ns / 1e9 + CHUNK_NS * CHUNKS as f64 / 1e9;
            let is_first = self.rounds[index].get().is_empty();
            let left = if is_first { end_of_first } else { end }.left();
            let is_large = wanted * self.stride > COARSE_ABOVE as usize / 2;
            if context.is_over() || (is_large && walk_seconds > left) {
                break;
            }
            self.grow(ring, &mut lines, wanted, step, &mut context.random);
            let core = [self.core];
            let (batch, disturbed) =
                context.watched(&core, |context| Ok(measure(context, ring, lines, load_ns)))?;
            let mut all = Batch::default();
            all.add_window(batch, disturbed);
            let round = context.finish(all);
            if let Some(round) = round {
                load_ns = round.inner.value.max(0.1);
            }
            self.rounds[index].add(round);
        }
        Ok(())
    }

    fn grow(
        &self,
        ring: &mut [u64],
        lines: &mut usize,
        wanted: usize,
        step: usize,
        random: &mut fastrand::Rng,
    ) {
        match self.order {
            Order::Random => {
                for line in *lines..wanted {
                    let before = if line == 0 { 0 } else { random.usize(..line) };
                    ring[line * step] = if line == 0 { 0 } else { ring[before * step] };
                    ring[before * step] = (line * step) as u64;
                }
            }
            Order::Sequential => {
                for line in (*lines).saturating_sub(1)..wanted {
                    ring[line * step] = ((line + 1) % wanted * step) as u64;
                }
            }
        }
        *lines = wanted;
    }

    /// The last size reached and the last one planned, if they differ.
    pub fn falls_short(&self) -> Option<(u64, u64)> {
        let reached = self
            .rounds
            .iter()
            .rposition(|rounds| !rounds.get().is_empty());
        let planned = *self.sizes.last()?;
        let reached = self.sizes[reached?];
        (reached < planned).then_some((reached, planned))
    }

    /// The curve; leaves out points that no round reached.
    pub fn sum_up(&self) -> Curve {
        let points: Vec<Point> = self
            .sizes
            .iter()
            .zip(&self.rounds)
            .filter_map(|(&bytes, rounds)| {
                let load_ns = rounds.sum_up()?;
                Some(Point { bytes, load_ns })
            })
            .collect();
        let plain: Vec<CurvePoint> = points.iter().map(Point::plain).collect();
        Curve {
            core: self.core,
            stride: self.stride,
            order: self.order,
            levels: match self.order {
                Order::Random => levels(&plain),
                Order::Sequential => Vec::new(),
            },
            points,
            huge_refused: self.huge_refused.clone(),
        }
    }
}

impl Point {
    /// The point without its interval.
    pub fn plain(&self) -> CurvePoint {
        CurvePoint {
            bytes: self.bytes,
            ns: self.load_ns.value,
        }
    }
}

fn measure(context: &Context<'_>, ring: &[u64], lines: usize, load_ns: f64) -> Batch {
    let clock = context.clock;
    let mut at = walk(ring, 0, lines);
    // A first chunk determines the size of the others.
    let trial = 256;
    let begin = clock.ticks_ordered();
    at = walk(ring, at, trial);
    let ns = clock.ns(clock.ticks_ordered().saturating_sub(begin)) / trial as f64;
    let guess = if ns > 0.0 { ns } else { load_ns };
    let loads = ((CHUNK_NS / guess) as usize).clamp(256, 1 << 16);
    let mut batch = Batch::of_chunks(loads);
    for _ in 0..CHUNKS {
        let before = Before::now();
        let begin = clock.ticks_ordered();
        at = walk(ring, at, loads);
        let ns = clock.ns(clock.ticks_ordered() - begin) - context.reading_ns;
        batch.add_chunk(ns, &before);
    }
    std::hint::black_box(at);
    batch
}

/// Each load's address is the value of the one before, so none can begin earlier, and none can be
/// omitted, since the last one's value is used. The check of the index is off that path.
#[inline(never)]
fn walk(ring: &[u64], from: u64, loads: usize) -> u64 {
    let mut at = from;
    for _ in 0..loads {
        at = ring[at as usize];
    }
    std::hint::black_box(at)
}
