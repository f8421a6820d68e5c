//! All that the study found.

use serde::{Deserialize, Serialize};

use super::Monitoring;
use super::options::{BUSY_DEPTH, Experiment, METHOD_NS};
use super::parts::Runs;
use super::places::{Place, Row};
use super::plan::{BLOCK, Case, Monitor, Way};
use crate::{results, study};

/// A case's runs, figures as [`super::monitored`] names them.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Monitoring>;

/// Cores for the source's rows, and monitors that are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The rows that this machine has, with their cores.
    pub places: Vec<Place>,
    /// Hardware threads and cores that may be used.
    pub cores: usize,
    /// The monitors.
    pub monitors: Vec<Monitor>,
}

impl Site {
    /// The row whose writer is best apart from the application; on one core there is none apart.
    #[must_use]
    pub fn apart(&self) -> Row {
        let has = |row: &Row| self.places.iter().any(|place| place.row == *row);
        let wanted = [Row::A3, Row::A2, Row::A4, Row::A5];
        wanted.into_iter().find(has).unwrap_or(Row::A1)
    }

    /// The rows that this machine lacks.
    #[must_use]
    pub fn lacking(&self) -> Vec<Row> {
        let has = |row: &Row| self.places.iter().any(|place| place.row == *row);
        Row::ALL.into_iter().filter(|row| !has(row)).collect()
    }
}

impl Results {
    /// The four runs of a monitor in a row of `parts` or `busy`.
    #[must_use]
    pub fn runs(&self, experiment: Experiment, monitor: Monitor, row: Row) -> Runs<'_> {
        let (method_ns, depth) = match experiment {
            Experiment::Busy => (0, BUSY_DEPTH),
            _ => (METHOD_NS, 1),
        };
        self.four(experiment, monitor, row, method_ns, depth)
    }

    /// The four runs of a monitor at a depth.
    #[must_use]
    pub fn runs_at(&self, experiment: Experiment, monitor: Monitor, depth: u32) -> Runs<'_> {
        self.four(experiment, monitor, self.site.apart(), METHOD_NS, depth)
    }

    fn four(
        &self,
        experiment: Experiment,
        monitor: Monitor,
        row: Row,
        method_ns: u32,
        depth: u32,
    ) -> Runs<'_> {
        Runs::new(|way: Way| {
            let wanted = Case {
                experiment,
                monitor,
                row,
                way,
                law: BLOCK.to_owned(),
                method_ns,
                depth,
            };
            self.cell(&wanted).map_or(&[], |cell| cell.runs("mean_ns"))
        })
    }

    /// The depths of an experiment that were run with a monitor.
    #[must_use]
    pub fn depths(&self, experiment: Experiment, monitor: Monitor) -> Vec<u32> {
        let cells = self.of(experiment).filter(|cell| {
            cell.case.monitor == monitor && cell.case.way == Way::File && cell.count() > 0
        });
        let mut depths: Vec<u32> = cells.map(|cell| cell.case.depth).collect();
        depths.sort_unstable();
        depths.dedup();
        depths
    }
}
