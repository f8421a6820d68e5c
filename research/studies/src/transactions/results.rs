//! All that the study found.

use serde::{Deserialize, Serialize};

use super::Transactions;
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs. Their figures are those of [`super::launch`].
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Transactions>;

/// The cores that are used, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// All.
    pub cores: Vec<usize>,
}

impl Results {
    /// The cell of a program traced in some way, if it has runs.
    #[must_use]
    pub fn found(&self, experiment: Experiment, program: &str, tracing: &str) -> Option<&Cell> {
        self.of(experiment).find(|cell| {
            cell.case.program == program && cell.case.tracing == tracing && cell.count() > 0
        })
    }

    /// The programs of an experiment, in the order in which they ran.
    #[must_use]
    pub fn programs(&self, experiment: Experiment) -> Vec<&str> {
        let mut programs = Vec::new();
        for cell in self.of(experiment) {
            if !programs.contains(&cell.case.program.as_str()) {
                programs.push(cell.case.program.as_str());
            }
        }
        programs
    }
}
