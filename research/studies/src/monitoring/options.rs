//! Options of the study: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

/// Time that the monitored method takes, as in the source.
pub const METHOD_NS: u32 = 500_000;
/// Depth of a call that does nothing else: MooBench's of today.
pub const BUSY_DEPTH: u32 = 10;
/// Calls that do nothing else, in a run: MooBench's of today.
const BUSY_CALLS: u32 = 2_000_000;
const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;

define_experiments! {
    Parts = "parts":
        "instrumentation, collecting and writing by the writer's place: one call in 500 µs, as in the source",
    Busy = "busy": "the same with calls ten deep that do nothing else, as MooBench has them today",
    Depth = "depth": "the parts by the depth of recursion, 1 to 64 calls in 500 µs",
    Saturation = "saturation":
        "64 to 65536 calls in 500 µs: when the writer falls behind, and what each law then loses",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitoringOptions {
    /// Few depths and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell, each a process; `None` for the source's 10, or 2 of a quick study.
    pub repeats: Option<u32>,
    /// Length of the part of a run that counts, in milliseconds; `None` for 1,000, or 50 of a quick
    /// study.
    pub measure_ms: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl MonitoringOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 10 })
    }

    /// Length of the part of a run that counts, in milliseconds. The source's took 500 seconds.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms
            .unwrap_or(if self.quick { 50 } else { 1_000 })
    }

    /// Number of calls of a run, of which the second half counts.
    #[must_use]
    pub fn calls(&self, method_ns: u32) -> u32 {
        let few = if self.quick { 20 } else { 1 };
        match method_ns {
            0 => BUSY_CALLS / few,
            ns => (u64::from(self.measure_ms()) * 2_000_000 / u64::from(ns)).max(4) as u32,
        }
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for MonitoringOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &MonitoringOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
