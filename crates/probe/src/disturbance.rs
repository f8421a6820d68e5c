//! Detection of disturbances during a sample.
//!
//! There are two scales. A chunk of operations (tens of microseconds) is discarded when its thread
//! was switched or moved, or when it took longer than the others by a gap. A window of chunks (tens
//! of milliseconds) is discarded when the hypervisor stole time from a participating core, or
//! devices interrupted it often: those counts are in files too slow to read around every chunk.

use hearth_sys::clock::Clock;
use hearth_sys::procfs::{self, Interrupts};
use hearth_sys::usage::{self, Usage, Whose};
use hearth_sys::{System, affinity};

use crate::statistics::{Measured, Round, median, median_with_interval};

/// Excess over the other chunks that counts as a gap, together with [`GAP_SHARE`] of their median.
/// Five microseconds is above the cost of a timer interrupt and below any switch.
pub const GAP_NS: f64 = 5_000.0;
/// See [`GAP_NS`].
pub const GAP_SHARE: f64 = 0.2;
/// Cores above which the kernel's table of interrupts is a megabyte of text, too slow to read
/// around every window; gaps still reveal them.
const CORES_WITH_INTERRUPTS: usize = 64;
/// Interrupts by devices a second that count as a disturbance: one in each window of a millisecond.
const DEVICE_INTERRUPTS_PER_SECOND: f64 = 1000.0;

/// Discarded samples by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    /// The thread was on another core afterwards.
    pub migrated: u64,
    /// The thread had left its core in between.
    pub switched: u64,
    /// A gap of [`GAP_NS`] or more.
    pub gap: u64,
    /// The hypervisor ran another guest.
    pub steal: u64,
    /// Devices interrupted.
    pub interrupted: u64,
}

impl Discards {
    /// The sum of all reasons.
    pub fn total(&self) -> u64 {
        self.migrated + self.switched + self.gap + self.steal + self.interrupted
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Discards) {
        self.migrated += other.migrated;
        self.switched += other.switched;
        self.gap += other.gap;
        self.steal += other.steal;
        self.interrupted += other.interrupted;
    }
}

/// Disturbance of a window of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbed {
    /// Not at all.
    No,
    /// The hypervisor ran another guest.
    Steal,
    /// Devices interrupted.
    Interrupts,
}

/// Watches over a window, by the system's files.
pub struct Watch<'a> {
    system: &'a dyn System,
    cores: &'a [usize],
    stat: String,
    /// None on machines with too many cores.
    interrupts: Option<Interrupts>,
    begin: u64,
}

impl<'a> Watch<'a> {
    /// Begins to watch these cores. Unreadable files count as no disturbance.
    pub fn begin(system: &'a dyn System, cores: &'a [usize]) -> Watch<'a> {
        let stat = system.read("/proc/stat").unwrap_or_default();
        let is_large = procfs::parse_stat(&stat).len() > CORES_WITH_INTERRUPTS;
        Watch {
            system,
            cores,
            stat,
            interrupts: (!is_large).then(|| Interrupts::snapshot(system)),
            begin: hearth_sys::clock::monotonic_ns(),
        }
    }

    /// The disturbance since the beginning.
    pub fn end(self) -> Disturbed {
        let ns = hearth_sys::clock::monotonic_ns() - self.begin;
        // Read both texts before parsing either.
        let stat = self.system.read("/proc/stat").unwrap_or_default();
        let before = self.interrupts.as_ref();
        let interrupts = before.map(|before| (before, Interrupts::snapshot(self.system)));
        if self.steal_of(&stat) > self.steal_of(&self.stat) {
            return Disturbed::Steal;
        }
        let from_devices = interrupts.map_or(0, |(before, after)| {
            let count = self.device_interrupts(&after);
            count.saturating_sub(self.device_interrupts(before))
        });
        let a_second = from_devices as f64 * 1e9 / ns.max(1) as f64;
        if from_devices > 1 && a_second > DEVICE_INTERRUPTS_PER_SECOND {
            return Disturbed::Interrupts;
        }
        Disturbed::No
    }

    fn steal_of(&self, stat: &str) -> u64 {
        procfs::parse_stat(stat)
            .iter()
            .filter(|times| self.cores.contains(&times.core))
            .map(|times| times.steal)
            .sum()
    }

    /// Interrupts by devices: lines named by a number. The others are timers and calls between
    /// cores, which the probe itself causes.
    fn device_interrupts(&self, interrupts: &Interrupts) -> u64 {
        let columns: Vec<usize> = interrupts
            .by_core()
            .iter()
            .enumerate()
            .filter(|(_, (core, _))| self.cores.contains(core))
            .map(|(column, _)| column)
            .collect();
        interrupts
            .by_kind()
            .iter()
            .filter(|(name, _)| name.bytes().all(|b| b.is_ascii_digit()))
            .map(|(_, counts)| columns.iter().map(|&column| counts[column]).sum::<u64>())
            .sum()
    }
}

/// State of the thread before a chunk.
#[derive(Clone, Copy)]
pub struct Before {
    usage: Usage,
    core: Option<usize>,
}

impl Before {
    /// Reads the state.
    pub fn now() -> Before {
        Before {
            usage: usage::read(Whose::Thread),
            core: affinity::current(),
        }
    }
}

/// Samples of one measurement in one round, each in nanoseconds for an operation, from a chunk of
/// `operations`.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    clean: Vec<f64>,
    /// Disturbed samples, and those of disturbed windows; used only when hardly any others exist.
    suspect: Vec<f64>,
    operations: f64,
    discards: Discards,
}

/// Result of a round, and its discarded samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The estimate.
    pub round: Round,
    /// The discarded samples.
    pub discards: Discards,
    /// Whether disturbed samples had to be used because hardly any others existed.
    pub is_disturbed: bool,
}

impl Batch {
    /// A batch whose chunks hold this many operations each.
    pub fn of_chunks(operations: usize) -> Batch {
        Batch {
            operations: operations.max(1) as f64,
            ..Batch::default()
        }
    }

    /// Adds a chunk that took `ns` as a whole; sets it aside if the thread was switched or moved
    /// since `before`.
    pub fn add_chunk(&mut self, ns: f64, before: &Before) {
        let after = Before::now();
        let used = after.usage.since(&before.usage);
        if after.core != before.core {
            self.discards.migrated += 1;
            self.suspect.push(ns / self.operations);
        } else if used.switches_forced + used.switches_voluntary > 0 {
            self.discards.switched += 1;
            self.suspect.push(ns / self.operations);
        } else {
            self.add_plain(ns);
        }
    }

    /// Adds a chunk that always switches, or is too short to check.
    pub fn add_plain(&mut self, ns: f64) {
        self.clean.push(ns / self.operations);
    }

    /// Number of samples kept so far.
    pub fn len(&self) -> usize {
        self.clean.len()
    }

    /// Whether no sample was kept.
    pub fn is_empty(&self) -> bool {
        self.clean.is_empty() && self.suspect.is_empty()
    }

    /// Adds the samples of a window, or sets them aside if it was disturbed.
    pub fn add_window(&mut self, window: Batch, disturbed: Disturbed) {
        if self.operations == 0.0 {
            self.operations = window.operations;
        }
        self.discards.add(&window.discards);
        self.suspect.extend(window.suspect);
        match disturbed {
            Disturbed::No => self.clean.extend(window.clean),
            Disturbed::Steal => {
                self.discards.steal += window.clean.len() as u64;
                self.suspect.extend(window.clean);
            }
            Disturbed::Interrupts => {
                self.discards.interrupted += window.clean.len() as u64;
                self.suspect.extend(window.clean);
            }
        }
    }

    /// Whether disturbed samples have to be used.
    fn is_disturbed(&self) -> bool {
        let taken = self.clean.len() + self.suspect.len();
        // A tenth is enough for a median; with fewer, the disturbed ones are better than nothing.
        self.clean.len() < (taken / 10).max(1)
    }

    /// The samples that the estimate rests on, gaps included, in the order of time but for
    /// disturbed ones, which come last.
    pub fn in_order(&self) -> Vec<f64> {
        let mut samples = self.clean.clone();
        if self.is_disturbed() {
            samples.extend(&self.suspect);
        }
        samples
    }

    /// The round's estimate: the median without gaps. None if nothing is left.
    pub fn finish(mut self) -> Option<Outcome> {
        let is_disturbed = self.is_disturbed();
        if is_disturbed {
            self.clean.append(&mut self.suspect);
            self.discards = Discards::default();
        }
        let middle = median(&self.clean)?;
        let longest = middle + (GAP_NS / self.operations).max(GAP_SHARE * middle);
        let before = self.clean.len();
        self.clean.retain(|&ns| ns <= longest);
        self.discards.gap += (before - self.clean.len()) as u64;
        let discarded = u32::try_from(self.discards.total()).unwrap_or(u32::MAX);
        let inner: Measured = median_with_interval(&self.clean, discarded)?;
        Some(Outcome {
            round: Round { inner },
            discards: self.discards,
            is_disturbed,
        })
    }
}

/// The least time between two ordered readings of the clock, in nanoseconds: the amount that
/// measuring adds to a chunk.
pub fn reading_ns(clock: &Clock) -> f64 {
    let least = (0..1000)
        .map(|_| {
            let begin = clock.ticks_ordered();
            clock.ticks_ordered().saturating_sub(begin)
        })
        .min();
    clock.ns(least.unwrap_or(0))
}
