//! Options of the study: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;

define_experiments! {
    Barriers = "barriers":
        "one program and two at a spinning barrier, N threads each: who ran when, and what got done",
    Packing = "packing":
        "four programs as wide as the machine, and eight of half its width: work done, by ideal packing",
    Half = "half":
        "four programs of which half of the threads compute: work done, by ideal packing",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoschedulingOptions {
    /// Few and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for 10, or 2 of a quick study.
    pub repeats: Option<u32>,
    /// Time in which programs run, in milliseconds; `None` for 1500, or 200 of a quick study.
    pub measure_ms: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl CoschedulingOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 10 })
    }

    /// Time in which programs run, in milliseconds.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms
            .unwrap_or(if self.quick { 200 } else { 1500 })
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for CoschedulingOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &CoschedulingOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
