//! Options of the study: experiments, sizes, repeats, and the source's defects.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

define_experiments! {
    Timers = "timers": "jitter of clock_gettime and of the time stamp counter",
    Opening = "open": "page faults of opening files in /proc",
    Events = "events": "how long an interrupt and a minor fault take",
    Register = "0": "register latency",
    Ring = "1b": "latency of a ring of pointers by stride and size; cache levels",
    Zero = "zero": "two threads hand over nothing: the overhead",
    Sweep = "1": "write and read latency by buffer size, one thread",
    SameCore = "2": "hand-over through a mutex, both threads on one core",
    SameChip = "3": "hand-over through a mutex, two cores of a chip",
    OtherChip = "4": "hand-over through a mutex, two chips",
    Ready = "ready": "hand-over between threads that are there already; not of the source",
}

/// A defect of the source's programs that can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defect {
    /// Experiment 1 indexes with the count of elements: every access hits the one element just
    /// past the end. (Here the buffer is longer, so that the element exists.)
    Index,
    /// Experiments 2 to 4 pin to the system's cores 0, 1 and −1, whatever they are. −1 is refused
    /// and the receiver of experiment 4 runs where it happens to be.
    Pinning,
    /// Buffers above 32 MiB are mapped afresh for each run, as the C library's allocator does, and
    /// every page faults again.
    Cliff,
    /// The difference of two stamps is unsigned: a negative one becomes some 1.8e19.
    Unsigned,
}

impl Defect {
    /// All of them.
    pub const ALL: [Defect; 4] = [
        Defect::Index,
        Defect::Pinning,
        Defect::Cliff,
        Defect::Unsigned,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Defect::Index => "index",
            Defect::Pinning => "pinning",
            Defect::Cliff => "cliff",
            Defect::Unsigned => "unsigned",
        }
    }

    /// Its effect, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Defect::Index => "experiment 1 touches one element just past the end, again and again",
            Defect::Pinning => "experiments 2 to 4 pin to cores 0, 1 and -1 as they are written",
            Defect::Cliff => "buffers above 32 MiB are mapped afresh for each run",
            Defect::Unsigned => "negative intervals wrap around",
        }
    }

    /// The defect of that name.
    ///
    /// # Errors
    /// [`StudyError::UnknownDefect`] if there is none.
    pub fn parse(text: &str) -> Result<Defect, StudyError> {
        let found = Defect::ALL.into_iter().find(|d| d.id() == text);
        found.ok_or_else(|| StudyError::UnknownDefect {
            given: text.to_owned(),
            known: Defect::ALL.iter().map(|d| d.id()).collect(),
        })
    }
}

/// Sizes that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// The source's 235.
    Dense,
    /// Powers of two, 8 B to 128 MiB.
    Powers,
}

/// Event that a timed run waits for before its first stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// The clock's next value.
    Tick,
    /// The next interrupt of the local timer.
    Interrupt,
}

/// Options of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheImpactOptions {
    /// A sixth of the sizes, fewer repeats: a look, not a result.
    pub quick: bool,
    /// Timed runs for each size; `None` is the source's 10, or 3 if quick.
    pub repeats: Option<u32>,
    /// Number of times that each sweep is made as a whole.
    pub sweeps: u32,
    /// The sizes.
    pub sizes: Sizes,
    /// No size above this, in bytes.
    pub bytes_max: u64,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
    /// Defects to reproduce.
    pub defects: Vec<Defect>,
    /// Buffers begin at a line's begin.
    pub is_aligned: bool,
    /// Event that a run waits for.
    pub start: Start,
    /// Seed of random choices: the order of random rings.
    pub seed: u64,
}

impl Default for CacheImpactOptions {
    fn default() -> Self {
        CacheImpactOptions {
            quick: false,
            repeats: None,
            sweeps: 1,
            sizes: Sizes::Dense,
            bytes_max: 128 << 20,
            experiments: Vec::new(),
            defects: Vec::new(),
            is_aligned: true,
            start: Start::Tick,
            seed: 1,
        }
    }
}

/// More repeats than this do not fit the table's columns in any program that reads it.
const REPEATS_MAX: u32 = 1000;
const SWEEPS_MAX: u32 = 100;

impl CacheImpactOptions {
    /// Timed runs for each size.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 10 })
    }

    /// Exchanges of nothing for each placement.
    #[must_use]
    pub fn zero_repeats(&self) -> u32 {
        if self.quick { 100 } else { 1000 }
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// True if this defect is to be reproduced.
    #[must_use]
    pub fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// The buffer sizes in bytes, ascending; first 0, the overhead.
    #[must_use]
    pub fn bytes(&self) -> Vec<u64> {
        super::schedule::bytes(self.sizes, self.quick, self.bytes_max)
    }
}

impl Choice for CacheImpactOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("sweeps", Some(self.sweeps), SWEEPS_MAX)
    }

    /// More experiments may be asked for later.
    fn differs(&self, other: &CacheImpactOptions) -> Option<&'static str> {
        let differences = [
            (self.bytes() != other.bytes(), "the sizes"),
            (self.repeats() != other.repeats(), "the repeats"),
            (self.zero_repeats() != other.zero_repeats(), "--quick"),
            (self.defects != other.defects, "the defects"),
            (self.is_aligned != other.is_aligned, "the alignment"),
            (self.start != other.start, "what a run waits for"),
        ];
        let found = differences.into_iter().find(|(differs, _)| *differs);
        found.map(|(_, what)| what)
    }
}
