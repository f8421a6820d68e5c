//! Options of the study: experiments, runs.

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

const REPEATS_MAX: u32 = 1000;

define_experiments! {
    Trees = "trees": "full binary trees of two depths, each wholly on one processor, by processors",
    Cycles = "cycles": "rings whose nodes are on random processors, by processors and by objects",
    Links = "links": "objects on random processors with up to ten random links, by objects",
    Dead = "dead": "the trees with every second processor dead",
    Million = "million": "trees, rings and links on a million processors",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionOptions {
    /// Few runs of small heaps: a look, not a result.
    pub quick: bool,
    /// Runs of each cell; `None` for the source's 50, or 5 of a quick study.
    pub repeats: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
}

impl CollectionOptions {
    /// Runs of each cell.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 5 } else { 50 })
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for CollectionOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)
    }

    /// More experiments and more repeats may be asked for later.
    fn differs(&self, other: &CollectionOptions) -> Option<&'static str> {
        (self.quick != other.quick).then_some("--quick")
    }
}
