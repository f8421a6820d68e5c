//! All that the study found.

use serde::{Deserialize, Serialize};

use super::InsenseMulticore;
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs: `real`, `user` and `system` in seconds, `peak_kb` and `growth_kb`, Cachegrind's
/// counts.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<InsenseMulticore>;

/// The cores used, and the parameters of the loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The cores that are used, by the system's numbers.
    pub cores: Vec<usize>,
    /// The loads' parameters in words, by experiment and load.
    pub loads: Vec<(Experiment, String, String)>,
}

impl Results {
    /// An experiment's loads and their parameters in words, in the order in which they ran.
    pub fn loads_of(&self, experiment: Experiment) -> impl Iterator<Item = (&str, &str)> {
        let of = self
            .site
            .loads
            .iter()
            .filter(move |(of, ..)| *of == experiment);
        of.map(|(_, load, words)| (load.as_str(), words.as_str()))
    }

    /// The last of an experiment's loads; nothing if it did not run.
    pub(super) fn last_load(&self, experiment: Experiment) -> String {
        let last = self.loads_of(experiment).last();
        last.map_or(String::new(), |(load, _)| load.to_owned())
    }

    /// Returns one cell, by load, carrier, heaps and placement.
    #[must_use]
    pub fn named(
        &self,
        experiment: Experiment,
        [load, carrier, heaps, placement]: [&str; 4],
    ) -> Option<&Cell> {
        self.of(experiment).find(|Cell { case, .. }| {
            case.load == load
                && case.carrier == carrier
                && case.heaps == heaps
                && case.placement == placement
        })
    }
}
