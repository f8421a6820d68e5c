//! The supporting tests: how even the clocks are, what opening files costs, how long interrupts
//! and faults take. As published, and beside it what the published way includes by mistake.

use std::fs::File;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hearth_stats::median;
use hearth_sys::clock::{Clock, monotonic_ns};
use hearth_sys::mapping::{HugePages, MapOptions, Mapping, page_bytes};
use hearth_sys::usage::{self, Whose};
use serde::{Deserialize, Serialize};

use super::exchange::Stopwatch;
use super::snapshot::Snapshot;
use super::start::timer;
use crate::StudyError;

/// Differences of readings that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// The timer that was read, for people.
    pub timer: String,
    /// The differences, in nanoseconds for the clock and in the counter's unit for the counter.
    pub differences: Vec<u64>,
}

impl Jitter {
    /// Least, median and largest difference; `None` if nothing was read.
    #[must_use]
    pub fn summary(&self) -> Option<(u64, f64, u64)> {
        let numbers: Vec<f64> = self.differences.iter().map(|&d| d as f64).collect();
        let least = *self.differences.iter().min()?;
        let most = *self.differences.iter().max()?;
        Some((least, median(&numbers)?, most))
    }
}

/// Results of the timer tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timers {
    /// `clock_gettime` with `CLOCK_MONOTONIC`, ns.
    pub clock: Jitter,
    /// The counter: plain, behind CPUID as published, between fences, and RDTSCP.
    pub counter: Vec<Jitter>,
}

/// Readings a test, as published.
const READINGS: usize = 1024;
/// Sleep before the readings, so that they begin with a fresh share of time.
const REST: Duration = Duration::from_millis(20);

/// The timer tests.
#[must_use]
pub fn timers(clock: &Clock) -> Timers {
    let stopwatch = Stopwatch::default();
    Timers {
        clock: jitter("clock_gettime", || stopwatch.now_ns()),
        counter: vec![
            jitter("RDTSC", || clock.ticks()),
            jitter("CPUID, RDTSC", || clock.ticks_serialised()),
            jitter("LFENCE, RDTSC, LFENCE", || clock.ticks_ordered()),
            jitter("RDTSCP", || clock.ticks_with_core().0),
        ],
    }
}

/// Two passes: the first brings memory and instructions in.
fn jitter(name: &str, mut read: impl FnMut() -> u64) -> Jitter {
    let mut readings = vec![0u64; READINGS + 1];
    for _ in 0..2 {
        std::thread::sleep(REST);
        for reading in &mut readings {
            *reading = read();
        }
    }
    let differences = readings
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    Jitter {
        timer: name.to_owned(),
        differences,
    }
}

/// Result of the file-open test: the process's minor faults, one number for each step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The opened files, each with the faults while it was opened and closed.
    pub steps: Vec<(String, u64)>,
    /// Faults while `/proc/interrupts` was read until it changed.
    pub until_changed: u64,
    /// Number of readings until then.
    pub reads: u64,
}

/// The file-open fault test. Faults are read from `getrusage`, which opens no file itself.
#[must_use]
pub fn opening() -> Opening {
    let faults = || usage::read(Whose::Process).faults_minor;
    let mut found = Opening::default();
    for path in [
        "/proc/interrupts",
        "/proc/interrupts",
        "/proc/iomem",
        "/proc/iomem",
    ] {
        let before = faults();
        drop(File::open(path));
        found.steps.push((path.to_owned(), faults() - before));
    }
    let before = faults();
    let mut snapshot = Snapshot::default();
    snapshot.before();
    let first = snapshot.interrupts();
    let end = monotonic_ns() + PATIENCE_NS;
    while monotonic_ns() < end {
        snapshot.before();
        found.reads += 1;
        if snapshot.interrupts() != first {
            break;
        }
    }
    found.until_changed = faults() - before;
    found
}

/// Durations of events, each as published and as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCosts {
    /// The published measure: from before one reading of `/proc/interrupts` to after the one that
    /// shows one timer interrupt more, ns. Reading and parsing are most of it.
    pub interrupt_published_ns: Vec<f64>,
    /// The published measure: from one change of the fault count in `/proc/self/stat` to the next,
    /// ns. Empty where reading the file faults no more.
    pub fault_published_ns: Vec<f64>,
    /// Times that a thread which only reads the counter loses in one piece, ns: the gaps longer
    /// than [`GAP_NS`], of interrupts and of the hypervisor alike.
    pub gaps_ns: Vec<f64>,
    /// Interrupts of all cores during the search for gaps.
    pub interrupts_meanwhile: u64,
    /// The first touch of a fresh small page less that of a touched one, ns: the median over
    /// blocks of pages.
    pub fault_ns: Option<f64>,
}

/// Shorter gaps are the loop's own.
pub const GAP_NS: f64 = 1_000.0;

const SAMPLES: usize = 10;
/// Time limit for one sample of an event that does not come.
const PATIENCE_NS: u64 = 100_000_000;
/// Duration of the search for gaps.
const LISTEN: Duration = Duration::from_millis(400);
const BLOCK_PAGES: usize = 64;
const BLOCKS: usize = 32;

/// The event tests.
///
/// # Errors
/// There is not enough memory.
pub fn events(clock: &Clock) -> Result<EventCosts, StudyError> {
    let (gaps_ns, interrupts_meanwhile) = gaps(clock);
    Ok(EventCosts {
        interrupt_published_ns: interrupts_as_published(),
        fault_published_ns: faults_as_published(),
        gaps_ns,
        interrupts_meanwhile,
        fault_ns: fault(clock)?,
    })
}

fn interrupts_as_published() -> Vec<f64> {
    let mut snapshot = Snapshot::spare();
    let mut samples = Vec::new();
    let give_up = monotonic_ns() + SAMPLES as u64 * PATIENCE_NS;
    while samples.len() < SAMPLES && monotonic_ns() < give_up {
        // First to the next interrupt, so that there is time until the one after it.
        snapshot.before();
        let mut count = timer(&snapshot);
        let first = count;
        while count == first && monotonic_ns() < give_up {
            snapshot.before();
            count = timer(&snapshot);
        }
        let target = count + 1;
        while count < target && monotonic_ns() < give_up {
            let begin = Instant::now();
            snapshot.before();
            count = timer(&snapshot);
            if count == target {
                samples.push(begin.elapsed().as_nanos() as f64);
            }
        }
    }
    samples
}

fn faults_as_published() -> Vec<f64> {
    let mut samples = Vec::new();
    let faults = || {
        // As a program that begins anew each time.
        let mut snapshot = Snapshot::default();
        snapshot.before();
        snapshot.counts().faults_minor.unwrap_or(0)
    };
    let give_up = monotonic_ns() + SAMPLES as u64 * PATIENCE_NS / 4;
    let mut count = faults();
    let mut begin = None;
    while samples.len() < SAMPLES && monotonic_ns() < give_up {
        let now = faults();
        if now != count {
            if let Some(begin) = begin.replace(Instant::now()) {
                samples.push(begin.elapsed().as_nanos() as f64);
            }
            count = now;
        }
    }
    samples
}

fn gaps(clock: &Clock) -> (Vec<f64>, u64) {
    let (mut before, mut after) = (Snapshot::spare(), Snapshot::spare());
    let mut found = Vec::with_capacity(1 << 12);
    let limit = clock.ticks_of(GAP_NS);
    before.before();
    let begin = clock.ticks();
    let end = begin + clock.ticks_of(LISTEN.as_nanos() as f64);
    let mut last = begin;
    while last < end && found.len() < found.capacity() {
        let now = clock.ticks();
        let gap = now.saturating_sub(last);
        if gap > limit {
            found.push(clock.ns(gap));
        }
        last = now;
    }
    after.after();
    (found, before.until(&after).interrupts)
}

/// A page's first touch, ns, without what touching costs.
fn fault(clock: &Clock) -> Result<Option<f64>, StudyError> {
    let page = page_bytes();
    let mut costs = Vec::new();
    let mut mapping = Mapping::new(MapOptions {
        bytes: BLOCK_PAGES * BLOCKS * page,
        align: page,
        huge: HugePages::Refused,
        prefault: false,
    })?;
    let block_words = BLOCK_PAGES * page / 8;
    let mut touch = |block: usize| {
        let words = &mut mapping.words_mut()[block * block_words..][..block_words];
        let begin = clock.ticks_ordered();
        for word in words.iter_mut().step_by(page / 8) {
            *word = black_box(1);
        }
        black_box(words.first());
        clock.ns(clock.ticks_ordered().saturating_sub(begin)) / BLOCK_PAGES as f64
    };
    for block in 0..BLOCKS {
        let first = touch(block);
        costs.push(first - touch(block));
    }
    Ok(median(&costs).filter(|&ns| ns > 0.0))
}
