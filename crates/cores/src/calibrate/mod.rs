//! Calibrating a parallel section at a program's start: which number of threads uses the CPUs that
//! others leave, by the section's own times alone.
//!
//! A fair scheduler hides oversubscription from who causes it: with more threads a program gets
//! more. But a section whose work is divided *statically*, one equal part a thread, ends with its
//! slowest thread. As soon as there are more ready threads than CPUs, one of them shares a CPU, and
//! the section's time jumps. The place of the jump says how many threads others run (Christmann,
//! Hebisch and Weisbecker, MSEPT 2012).
//!
//! [`calibrate`] runs a section with 1 to N threads, several times each, and weighs every place of
//! the jump against the others, against a section that stops scaling for reasons of its own, and
//! against noise (`weigh`). It says when it cannot tell. It needs neither `/proc` nor rights, and
//! sees what no list of processes shows: other containers, and a hypervisor's other guests. It
//! looks at one moment, as [`Cores::measured`](crate::Cores::measured) does.
//!
//! ```no_run
//! use hearth_cores::calibrate::{Calibration, calibrate};
//!
//! # fn multiply(threads: usize) {}
//! let found = calibrate(&Calibration::default(), &mut |threads| {
//!     let begin = std::time::Instant::now();
//!     multiply(threads); // one equal part for each thread
//!     begin.elapsed()
//! });
//! let pool = found.threads;
//! ```

mod weigh;

use std::fmt;
use std::time::{Duration, Instant};

use hearth_sys::clock::process_ns;

use crate::Cores;
pub use weigh::{Weights, weigh};

/// Rounds without which nothing is said.
const ROUNDS_MIN: usize = 3;
/// With less than this share of a CPU a single thread of the section shares it.
const ALONE: f64 = 0.85;

/// How a section is calibrated.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// CPUs; those of [`Cores::limits`] if `None`, quota included.
    pub cpus: Option<usize>,
    /// Runs with each number of threads.
    pub runs: usize,
    /// No run begins later than this after the first one began. The whole takes at most a section's
    /// time longer.
    pub time_max: Duration,
    /// Largest share of the section's time with one thread that further threads do not shorten.
    /// On two CPUs a serial section looks like one beside another thread, and only this tells them
    /// apart.
    pub serial_max: f64,
    /// Least probability with which something is said.
    pub confidence_min: f64,
}

impl Default for Calibration {
    /// Nine runs each within two seconds, for sections that are parallel but for a tenth, with a
    /// confidence of 0.9.
    fn default() -> Calibration {
        Calibration {
            cpus: None,
            runs: 9,
            time_max: Duration::from_secs(2),
            serial_max: 0.1,
            confidence_min: 0.9,
        }
    }
}

/// Times of a section with one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Threads.
    pub threads: usize,
    /// The median, seconds.
    pub median: f64,
    /// Spread of the logarithms of the times around that of the median, as a standard deviation
    /// that a few outliers do not change.
    pub spread: f64,
    /// Runs.
    pub runs: usize,
}

impl Point {
    /// The point of some times in seconds; `None` if none of them is above zero.
    #[must_use]
    pub fn of(threads: usize, times: &[f64]) -> Option<Point> {
        let is_time = |time: &&f64| **time > 0.0 && time.is_finite();
        let mut times: Vec<f64> = times.iter().filter(is_time).copied().collect();
        let runs = times.len();
        let median = middle(&mut times)?;
        let mut off: Vec<f64> = times
            .iter()
            .map(|time| (time / median).ln().abs())
            .collect();
        Some(Point {
            threads,
            median,
            // For a normal distribution.
            spread: 1.4826 * middle(&mut off)?,
            runs,
        })
    }
}

/// Result of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// CPUs that were reckoned with.
    pub cpus: usize,
    /// Threads to use, from 1 to `cpus`: those that others leave room for. In doubt the largest
    /// number that is within the room with the wanted confidence.
    pub threads: usize,
    /// Estimate of others' threads that were ready all the time; `None` if it cannot be told. Not
    /// whole where a single thread of the section did not have a CPU to itself.
    pub foreign: Option<f64>,
    /// Probability of that estimate, from 0 to 1; of the likeliest one in doubt.
    pub confidence: f64,
    /// The reason why nothing can be told.
    pub doubt: Option<Doubt>,
    /// Share of a CPU that the section had with one thread, if that is known.
    pub own_share: Option<f64>,
    /// The measured curve, by threads.
    pub points: Vec<Point>,
}

/// Reason why a calibration cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Fewer than three runs with each number of threads were made in the time.
    TooFewRuns,
    /// The times fit several numbers of foreign threads.
    Unclear,
    /// The section gets no faster from some number of threads on, without a jump: something else
    /// than CPUs limits it.
    StopsScaling,
    /// The times fit nothing: neither a parallel section nor a jump.
    Shapeless,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::TooFewRuns => "fewer than three runs with each number of threads fit the time",
            Doubt::Unclear => "the times fit several numbers of foreign threads",
            Doubt::StopsScaling => "something else than CPUs limits the section",
            Doubt::Shapeless => "the times fit neither a parallel section nor a jump",
        })
    }
}

/// Runs a section with 1 to N threads and says how many others leave room for.
///
/// The section divides its work into one equal part for each thread, without moving work between
/// threads, never waits, and returns the time that it took: with one thread several of the
/// scheduler's slices, ten milliseconds or more. It is run with each number of threads in turn, so
/// that slow changes of load meet all of them, and once before that does not count.
pub fn calibrate(how: &Calibration, section: &mut dyn FnMut(usize) -> Duration) -> Calibrated {
    let begin = Instant::now();
    let this = std::process::id();
    let clocks = &mut Clocks {
        elapsed: &mut || begin.elapsed(),
        used: &mut || process_ns(this).map(Duration::from_nanos),
    };
    calibrate_by(how, clocks, section)
}

/// Clocks of a calibration.
#[doc(hidden)]
pub struct Clocks<'a> {
    /// Time since the calibration began.
    pub elapsed: &'a mut dyn FnMut() -> Duration,
    /// CPU time of the process, if it is known.
    pub used: &'a mut dyn FnMut() -> Option<Duration>,
}

/// The same with other clocks, for tests and simulations.
#[doc(hidden)]
pub fn calibrate_by(
    how: &Calibration,
    clocks: &mut Clocks<'_>,
    section: &mut dyn FnMut(usize) -> Duration,
) -> Calibrated {
    let cpus = how.cpus.unwrap_or_else(cpus).max(1);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); cpus];
    let mut shares = Vec::new();
    // Wakes threads, and touches memory for the first time.
    section(cpus);
    'rounds: for round in 0..how.runs {
        for turn in 0..cpus {
            if (clocks.elapsed)() >= how.time_max {
                break 'rounds;
            }
            // Up and down, so that a steady drift cancels out.
            let threads = match round % 2 {
                0 => turn + 1,
                _ => cpus - turn,
            };
            let (from, had) = ((clocks.elapsed)(), (clocks.used)());
            let time = section(threads);
            if threads == 1 {
                let wall = (clocks.elapsed)().saturating_sub(from).as_secs_f64();
                let used = had
                    .zip((clocks.used)())
                    .map(|(had, has)| has.saturating_sub(had));
                shares.extend(used.map(|used| (used.as_secs_f64() / wall.max(1e-9)).min(1.0)));
            }
            times[threads - 1].push(time.as_secs_f64());
        }
    }
    judge(how, &times, &shares)
}

/// The verdict on times in seconds, by threads from 1 on, and on the shares of a CPU that single
/// threads had.
#[doc(hidden)]
#[must_use]
pub fn judge(how: &Calibration, times: &[Vec<f64>], shares: &[f64]) -> Calibrated {
    let cpus = times.len();
    let points: Vec<Point> = times
        .iter()
        .enumerate()
        .filter_map(|(at, times)| Point::of(at + 1, times))
        .collect();
    let mut found = Calibrated {
        cpus,
        threads: 1,
        foreign: None,
        confidence: 0.0,
        doubt: Some(Doubt::TooFewRuns),
        own_share: middle(&mut shares.to_vec()),
        points,
    };
    let enough = |point: &Point| point.runs >= ROUNDS_MIN;
    if found.points.len() < cpus || !found.points.iter().all(enough) {
        return found;
    }
    if let Some(share) = found.own_share.filter(|share| *share < ALONE) {
        let crowded = shares.iter().filter(|share| **share < ALONE).count();
        found.confidence = crowded as f64 / shares.len() as f64;
        // A thread among r others gets N / (r + 1) of a CPU.
        found.foreign = Some(cpus as f64 / share - 1.0);
        found.doubt = None;
        if found.confidence < how.confidence_min {
            found.foreign = None;
            found.doubt = Some(Doubt::Unclear);
        }
        return found;
    }
    if cpus == 1 && found.own_share.is_none() {
        found.doubt = Some(Doubt::Unclear);
        return found;
    }
    let weights = weigh(&found.points, how.serial_max);
    let (likeliest, most) = weights.likeliest();
    found.confidence = most;
    let is_sure = most >= how.confidence_min;
    if is_sure && most >= weights.scaling.max(weights.shapeless) {
        found.foreign = Some(likeliest as f64);
        found.threads = cpus - likeliest;
        found.doubt = None;
        return found;
    }
    found.threads = weights.room(how.confidence_min);
    found.doubt = Some(if weights.scaling >= how.confidence_min {
        Doubt::StopsScaling
    } else if weights.shapeless >= how.confidence_min {
        Doubt::Shapeless
    } else {
        Doubt::Unclear
    });
    found
}

/// CPUs by what is written down.
fn cpus() -> usize {
    let limits = Cores::limits();
    (limits.obtainable.ceil() as usize).clamp(1, limits.allowed.len().max(1))
}

/// The middle of values; sorts them.
fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(values[last / 2].midpoint(values[last.div_ceil(2)]))
}
