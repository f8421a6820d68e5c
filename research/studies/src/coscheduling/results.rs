//! All that the study found.

use serde::{Deserialize, Serialize};

use super::Coscheduling;
use super::instance::{Way, Work};
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs. Their figures are those of [`super::launch`].
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Coscheduling>;

/// The CPUs that programs may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// By the system's numbers.
    pub cpus: Vec<usize>,
}

/// Programs of one kind that share the machine in one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Programs {
    /// Their number.
    pub count: usize,
    /// Threads of each.
    pub threads: usize,
    /// The work of each.
    pub work: Work,
    /// How they share the machine.
    pub way: Way,
    /// Whether their gangs keep cores that they do not use.
    pub is_isolated: bool,
}

impl Results {
    /// Number of CPUs, N.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.site.cpus.len()
    }

    /// The runs of a figure, if there are any.
    #[must_use]
    pub fn found(
        &self,
        experiment: Experiment,
        programs: Programs,
        figure: &str,
    ) -> Option<&[f64]> {
        let cell = self.of(experiment).find(|cell| {
            let case = &cell.case;
            let is_same = (case.programs, case.threads) == (programs.count, programs.threads);
            is_same
                && (case.way, case.is_isolated) == (programs.way, programs.is_isolated)
                && case.work == programs.work
        })?;
        Some(cell.runs(figure)).filter(|runs| !runs.is_empty())
    }
}
