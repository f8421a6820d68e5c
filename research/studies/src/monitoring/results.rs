//! All that the study found.

use super::Monitoring;
use super::options::{BUSY_DEPTH, Experiment, METHOD_NS};
use super::parts::Runs;
use super::places::Row;
use super::plan::{BLOCK, Case};
use super::ways::{Monitor, Way};
use crate::{results, study};

/// A case's runs, figures as [`super::monitored`] names them.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Monitoring>;

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
