//! Options of the study: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;

define_experiments! {
    Bank = "bank":
        "the bank without traces and with every kind: throughput, aborts, bytes, memory",
    Outside = "outside": "the bank with the kernel's probes on its memory's functions, the baseline",
    Alone = "alone": "the bank by one thread, where the other cores are left to compressors",
    Kernels = "kernels": "the ten programs of STAMP and sets, to their end, traces stored in files",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionsOptions {
    /// Few and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for the source's 30, or 3 of a quick study.
    pub repeats: Option<u32>,
    /// Length of a run of the bank, in milliseconds; `None` for 500, or 20 of a quick study.
    pub measure_ms: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl TransactionsOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 30 })
    }

    /// Length of a run of the bank, in milliseconds. The source's took ten seconds.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms.unwrap_or(if self.quick { 20 } else { 500 })
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for TransactionsOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &TransactionsOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
