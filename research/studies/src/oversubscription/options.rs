//! Options of the study: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;
/// Rows of a matrix. A product of the large ones takes a thread some tens of milliseconds, several
/// of the scheduler's slices, so that sharing a CPU shows; of the small ones, a few.
const ROWS: (usize, usize) = (384, 128);

define_experiments! {
    Impact = "impact":
        "A with 1 to 2N threads beside B with N/2, work stolen: both programs' times, the machine's throughput",
    Artifact = "artifact":
        "A with 1 to 4N threads, static parts and stealing, alone and beside N/2 threads: the jump",
    Policies = "policies":
        "A chooses its threads in seven ways beside 0 to N threads: what it takes from B, what both do",
    Simulated = "simulated": "the jump on eight cores, in a model of a fair scheduler",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OversubscriptionOptions {
    /// Few and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for 10, or 2 of a quick study.
    pub repeats: Option<u32>,
    /// Time in which both programs run, in milliseconds; `None` for 1000, or 60 of a quick study.
    pub measure_ms: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl OversubscriptionOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 10 })
    }

    /// Time in which both programs run, in milliseconds.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms
            .unwrap_or(if self.quick { 60 } else { 1000 })
    }

    /// Rows and columns of the matrices.
    #[must_use]
    pub fn rows(&self) -> usize {
        if self.quick { ROWS.1 } else { ROWS.0 }
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for OversubscriptionOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &OversubscriptionOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
