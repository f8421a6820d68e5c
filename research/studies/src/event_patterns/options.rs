//! Options of the study: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

/// Connections, all in use from a run's begin to its end: the source's.
pub const CONNECTIONS: usize = 512;
/// Bytes of a request, and of a reply. The source does not say.
pub const MESSAGE_BYTES: usize = 64;
const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;

define_experiments! {
    Threads = "threads":
        "replies a second and the time of each operation, by threads; server and clients on cores of their own",
    Together = "together": "the same with server and clients on all cores",
    Work = "work": "requests that take 10 and 100 µs of work, which the source left at 0",
    Timers = "timers": "what taking the time of each operation costs",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPatternsOptions {
    /// Few threads and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for the source's 5, or 2 of a quick study.
    pub repeats: Option<u32>,
    /// Length of the measured part of a run, in milliseconds; `None` for 2,000, or 200 of a quick
    /// study.
    pub measure_ms: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl EventPatternsOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 5 })
    }

    /// Length of the measured part of a run, in milliseconds. The source's runs took five minutes.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms
            .unwrap_or(if self.quick { 200 } else { 2_000 })
    }

    /// Length of the load before the measured part, in milliseconds.
    #[must_use]
    pub fn warm_up_ms(&self) -> u32 {
        (self.measure_ms() / 4).clamp(50, 500)
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for EventPatternsOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        StudyError::check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &EventPatternsOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
