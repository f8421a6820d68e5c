//! What can be chosen: experiments, runs, threads, the listing's defects.

use serde::{Deserialize, Serialize};

use super::engine::Defects;
use crate::StudyError;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// The section's data grows.
    Displacement,
    /// The section modifies more and more.
    Invalidation,
    /// The message grows.
    MessageSize,
    /// What the source's listing modifies.
    Listing,
    /// Reuse distances of the walks.
    Distances,
    /// The mode found by measuring, beside each mode.
    Auto,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Experiment; 6] = [
        Experiment::Displacement,
        Experiment::Invalidation,
        Experiment::MessageSize,
        Experiment::Listing,
        Experiment::Distances,
        Experiment::Auto,
    ];

    /// What it is called on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Experiment::Displacement => "displacement",
            Experiment::Invalidation => "invalidation",
            Experiment::MessageSize => "message-size",
            Experiment::Listing => "listing",
            Experiment::Distances => "distances",
            Experiment::Auto => "auto",
        }
    }

    /// What it measures, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Experiment::Displacement => {
                "the section's data grows past the first cache (figures 3.5)"
            }
            Experiment::Invalidation => {
                "the section modifies more and more lines, with more and more threads (figures 3.6)"
            }
            Experiment::MessageSize => "the message grows, by message only (figures 3.7)",
            Experiment::Listing => "lines that the source's listing modifies, counted",
            Experiment::Distances => "reuse distances of the walks, and what detectors say of them",
            Experiment::Auto => "the mode found by measuring, beside each mode in every cell",
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Few cells and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for 7, or 3 in a look.
    pub repeats: Option<u32>,
    /// A run is measured for so many seconds; `None` for 0.5, or 0.1 in a look. The source has 30.
    pub seconds: Option<f64>,
    /// Which experiments; empty for all.
    pub experiments: Vec<Experiment>,
    /// With which numbers of threads; empty for those of the source's that there are cores for.
    pub threads: Vec<usize>,
    /// Defects of the source's listing, in all runs.
    pub defects: Defects,
    /// What shuffles begin with.
    pub seed: u64,
}

const REPEATS_MAX: u32 = 1000;
/// More threads than this are no use of anything.
const THREADS_MAX: u32 = 64;
/// Shorter runs are ended before they have begun.
const SECONDS_MIN: f64 = 0.01;
const SECONDS_MAX: f64 = 3600.0;

impl Options {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 7 })
    }

    /// How long a run is measured.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 0.5 })
    }

    /// Is this experiment wanted?
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// Checks what was asked for.
    ///
    /// # Errors
    /// [`StudyError::Count`] for no repeats or threads, or too many; [`StudyError::Duration`] for runs that are none.
    pub fn check(&self) -> Result<(), StudyError> {
        let count = |what, given, largest| StudyError::Count {
            what,
            given,
            largest,
        };
        if let Some(given) = self.repeats
            && (given == 0 || given > REPEATS_MAX)
        {
            return Err(count("repeats", given, REPEATS_MAX));
        }
        for &threads in &self.threads {
            let given = u32::try_from(threads).unwrap_or(u32::MAX);
            if !(2..=THREADS_MAX).contains(&given) {
                return Err(StudyError::Threads {
                    given: threads,
                    largest: THREADS_MAX as usize,
                });
            }
        }
        match self.seconds {
            Some(given) if !(SECONDS_MIN..=SECONDS_MAX).contains(&given) => {
                Err(StudyError::Duration { given })
            }
            _ => Ok(()),
        }
    }

    /// What keeps results made with these options from being joined by results made with others.
    /// More experiments may be asked for later.
    #[must_use]
    pub fn differs(&self, other: &Options) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        if self.seed != other.seed {
            return Some("the seed");
        }
        if self.defects != other.defects {
            return Some("the defects");
        }
        if self.seconds() != other.seconds() {
            return Some("the seconds");
        }
        (self.repeats() != other.repeats()).then_some("the repeats")
    }
}

/// The listing's defects by the names that they have on the command line.
pub const DEFECTS: [(&str, &str); 4] = [
    (
        "power-of-two-mask",
        "the divisor is a power of two and used as a mask: half of the lines are modified, whatever was asked",
    ),
    (
        "cursor-kept",
        "the write walk's cursor is not set back: passes after the first touch one line",
    ),
    (
        "counter-kept",
        "the counter of moves goes on over passes: how many lines are modified differs from pass to pass",
    ),
    (
        "head-unmodified",
        "the first line is read and never modified",
    ),
];

/// Turns a defect on.
///
/// # Errors
/// [`StudyError::NotThere`] if the listing has none of that name.
pub fn set_defect(defects: &mut Defects, name: &str) -> Result<(), StudyError> {
    match name {
        "power-of-two-mask" => defects.power_of_two_mask = true,
        "cursor-kept" => defects.cursor_kept = true,
        "counter-kept" => defects.counter_kept = true,
        "head-unmodified" => defects.head_unmodified = true,
        _ => {
            return Err(StudyError::UnknownListingDefect {
                given: name.to_owned(),
                known: DEFECTS.map(|(name, _)| name).to_vec(),
            });
        }
    }
    Ok(())
}

/// The names of those that are on.
#[must_use]
pub fn defects_of(defects: Defects) -> Vec<&'static str> {
    let on = [
        defects.power_of_two_mask,
        defects.cursor_kept,
        defects.counter_kept,
        defects.head_unmodified,
    ];
    let named = DEFECTS.iter().zip(on);
    named
        .filter_map(|((name, _), on)| on.then_some(*name))
        .collect()
}
