//! All that the study found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Memcached;
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs, figures as [`super::measure`] names them.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Memcached>;

/// The machine, its cores and the versions of programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The cores that may be used, by the system's numbers.
    pub cores: Vec<usize>,
    /// Length of a tick of the time stamp counter, ns.
    pub ns_per_tick: f64,
    /// Versions that servers and generators report of themselves, by name.
    pub versions: BTreeMap<String, String>,
}

impl Site {
    /// Creates a site of cores without further facts.
    #[must_use]
    pub fn new(cores: Vec<usize>) -> Site {
        Site {
            cores,
            ns_per_tick: 0.0,
            versions: BTreeMap::new(),
        }
    }
}

impl Results {
    /// The thread counts of an experiment, ascending.
    #[must_use]
    pub fn threads(&self, experiment: Experiment) -> Vec<u32> {
        let mut counts: Vec<u32> = self.of(experiment).map(|cell| cell.case.threads).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The shares of reads of an experiment, ascending.
    #[must_use]
    pub fn mixes(&self, experiment: Experiment) -> Vec<u32> {
        let mut mixes: Vec<u32> = self.of(experiment).map(|cell| cell.case.reads).collect();
        mixes.sort_unstable();
        mixes.dedup();
        mixes
    }
}
