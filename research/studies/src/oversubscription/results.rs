//! All that the study found.

use serde::{Deserialize, Serialize};

use super::Oversubscription;
use super::options::Experiment;
use super::plan::Case;
use crate::{results, study};

/// A case's runs. Their figures are those of [`super::launch`]; simulated ones have `time` and
/// `others` of [`super::simulated`].
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Oversubscription>;

/// The CPUs that both programs may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// By the system's numbers.
    pub cpus: Vec<usize>,
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
        (way, threads, foreign): (&str, usize, usize),
        figure: &str,
    ) -> Option<&[f64]> {
        let cell = self.of(experiment).find(|cell| {
            let case = &cell.case;
            case.way == way && case.threads == threads && case.foreign == foreign
        })?;
        Some(cell.runs(figure)).filter(|runs| !runs.is_empty())
    }

    /// The medians of a figure by A's threads.
    #[must_use]
    pub fn curve(
        &self,
        experiment: Experiment,
        (way, foreign): (&str, usize),
        figure: &str,
    ) -> Vec<(usize, f64)> {
        let cells = self.of(experiment).filter(|cell| {
            cell.case.way == way && cell.case.foreign == foreign && cell.case.threads > 0
        });
        let point = |cell: &Cell| Some((cell.case.threads, cell.median(figure)?));
        let mut points: Vec<(usize, f64)> = cells.filter_map(point).collect();
        points.sort_by_key(|(threads, _)| *threads);
        points
    }
}
