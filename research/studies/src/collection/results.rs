//! All that the study found.

use hearth_stats::{Ratio, interval, median};
use serde::{Deserialize, Serialize};

use super::Collection;
use super::collector::Way;
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs. Their figures are those of [`super::launch`].
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Collection>;

/// The core that collects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// By the system's number.
    pub core: usize,
}

impl Results {
    /// The structures of an experiment that have runs, each as its case of one way.
    #[must_use]
    pub fn structures(&self, experiment: Experiment) -> Vec<&Case> {
        let cells = self.of(experiment);
        cells
            .filter(|cell| cell.case.way == Way::Objects)
            .map(|cell| &cell.case)
            .collect()
    }

    /// Times of a structure's collections in a way.
    #[must_use]
    pub fn times(&self, case: &Case, way: Way) -> Option<&[f64]> {
        let runs = self.cell(&case.by(way))?.runs("seconds");
        Some(runs).filter(|runs| !runs.is_empty())
    }

    /// The ratio of the times of two ways, for one structure.
    #[must_use]
    pub fn ratio(&self, case: &Case, of: Way, to: Way) -> Option<Ratio> {
        hearth_stats::ratio(self.times(case, of)?, self.times(case, to)?)
    }

    /// The geometric mean over structures of the ratios of the times of two ways. None if one of
    /// them is missing.
    #[must_use]
    pub fn mean_ratio(&self, experiments: &[Experiment], of: Way, to: Way) -> Option<Ratio> {
        let mut lists = Vec::new();
        for case in experiments.iter().flat_map(|&it| self.structures(it)) {
            lists.extend([self.times(case, of)?, self.times(case, to)?]);
        }
        if lists.is_empty() {
            return None;
        }
        interval(&lists, |drawn| {
            let mut logarithms = 0.0;
            for pair in drawn.chunks(2) {
                logarithms += (median(&pair[0])? / median(&pair[1])?).ln();
            }
            let mean = (logarithms / (drawn.len() / 2) as f64).exp();
            mean.is_finite().then_some(mean)
        })
    }
}
