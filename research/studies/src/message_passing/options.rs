//! Options of the study: experiments, runs, threads, the listing's defects.

use serde::{Deserialize, Serialize};

use super::engine::Defects;
use crate::StudyError;
use crate::study::{Choice, define_experiments};

define_experiments! {
    Displacement = "displacement": "the section's data grows past the first cache (figures 3.5)",
    Invalidation = "invalidation":
        "the section modifies more and more lines, with more and more threads (figures 3.6)",
    MessageSize = "message-size": "the message grows, by message only (figures 3.7)",
    Listing = "listing": "lines that the source's listing modifies, counted",
    Distances = "distances": "reuse distances of the walks, and what detectors say of them",
    Auto = "auto": "the mode found by measuring, beside each mode in every cell",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagePassingOptions {
    /// Few cells and short runs: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for 7, or 3 in a look.
    pub repeats: Option<u32>,
    /// Length of a run's measurement, seconds; `None` for 0.5, or 0.1 in a look. The source has 30.
    pub seconds: Option<f64>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
    /// Numbers of threads; empty for those of the source's that there are cores for.
    pub threads: Vec<usize>,
    /// Defects of the source's listing, in all runs.
    pub defects: Defects,
    /// Seed of the shuffles.
    pub seed: u64,
}

const REPEATS_MAX: u32 = 1000;
/// More threads than this are no use of anything.
const THREADS_MAX: usize = 64;
/// Shorter runs are ended before they have begun.
const SECONDS_MIN: f64 = 0.01;
const SECONDS_MAX: f64 = 3600.0;

impl MessagePassingOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 7 })
    }

    /// Length of a run's measurement, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 0.5 })
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for MessagePassingOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        let is_odd = |threads: &&usize| !(2..=THREADS_MAX).contains(*threads);
        if let Some(&given) = self.threads.iter().find(is_odd) {
            return Err(StudyError::Threads {
                given,
                largest: THREADS_MAX,
            });
        }
        match self.seconds {
            Some(given) if !(SECONDS_MIN..=SECONDS_MAX).contains(&given) => {
                Err(StudyError::Duration { given })
            }
            _ => Ok(()),
        }
    }

    /// More experiments may be asked for later.
    fn differs(&self, other: &MessagePassingOptions) -> Option<&'static str> {
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
/// [`StudyError::NotThere`] if the listing has no defect of that name.
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
