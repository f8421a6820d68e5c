//! What can be chosen: experiments, runs, how long each is.

use serde::{Deserialize, Serialize};

use crate::StudyError;

/// Connections, all in use from a run's begin to its end: the source's.
pub const CONNECTIONS: usize = 512;
/// Bytes of a request, and of a reply. The source does not say.
pub const MESSAGE_BYTES: usize = 64;
const REPEATS_MAX: u32 = 1000;
const MEASURE_MS_MAX: u32 = 3_600_000;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// The source's: throughput and operations by the number of threads.
    Threads,
    /// The same where server and clients share all cores.
    Together,
    /// Requests that take work.
    Work,
    /// What taking times costs.
    Timers,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Experiment; 4] = [
        Experiment::Threads,
        Experiment::Together,
        Experiment::Work,
        Experiment::Timers,
    ];

    /// What it is called on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Experiment::Threads => "threads",
            Experiment::Together => "together",
            Experiment::Work => "work",
            Experiment::Timers => "timers",
        }
    }

    /// What it measures, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Experiment::Threads => {
                "replies a second and the time of each operation, by threads; server and clients on cores of their own"
            }
            Experiment::Together => "the same with server and clients on all cores",
            Experiment::Work => {
                "requests that take 10 and 100 µs of work, which the source left at 0"
            }
            Experiment::Timers => "what taking the time of each operation costs",
        }
    }

    /// The experiment of that name.
    ///
    /// # Errors
    /// [`StudyError::UnknownExperiment`] if there is none.
    pub fn parse(text: &str) -> Result<Experiment, StudyError> {
        let found = Experiment::ALL.into_iter().find(|e| e.id() == text);
        found.ok_or_else(|| StudyError::UnknownExperiment {
            given: text.to_owned(),
            known: Experiment::ALL.iter().map(|e| e.id()).collect(),
        })
    }
}

/// What to run, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Few threads and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for the source's 5, or 2 of a quick study.
    pub repeats: Option<u32>,
    /// How long what happens counts, in milliseconds; `None` for 2,000, or 200 of a quick study.
    pub measure_ms: Option<u32>,
    /// Which experiments; empty for all.
    pub experiments: Vec<Experiment>,
}

impl Options {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 5 })
    }

    /// How long what happens counts, in milliseconds. The source's runs took five minutes.
    #[must_use]
    pub fn measure_ms(&self) -> u32 {
        self.measure_ms
            .unwrap_or(if self.quick { 200 } else { 2_000 })
    }

    /// How long there is load before it counts.
    #[must_use]
    pub fn warm_up_ms(&self) -> u32 {
        (self.measure_ms() / 4).clamp(50, 500)
    }

    /// Is this experiment wanted?
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// Checks what was asked for.
    ///
    /// # Errors
    /// [`StudyError::Count`] for no repeats or time, or too much.
    pub fn check(&self) -> Result<(), StudyError> {
        let check = |what, given: Option<u32>, largest| match given {
            Some(given) if given == 0 || given > largest => Err(StudyError::Count {
                what,
                given,
                largest,
            }),
            _ => Ok(()),
        };
        check("repeats", self.repeats, REPEATS_MAX)?;
        check("milliseconds of a run", self.measure_ms, MEASURE_MS_MAX)
    }

    /// What keeps results made with these options from being joined by results made with others. More
    /// experiments and more repeats may be asked for later.
    #[must_use]
    pub fn differs(&self, other: &Options) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.measure_ms() != other.measure_ms()).then_some("how long runs are")
    }
}
