//! All that the study found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::options::{Experiment, Options};
use super::plan::Case;
use super::verdict::Evidence;
use crate::results::{self, About, File, Found, Machine};

/// The name of the page.
pub const PAGE: &str = "memcached.html";

/// A case's runs, figures as [`super::measure`] names them.
pub type Cell = results::Cell<Case>;
/// The folder of the study.
pub type Folder = results::Folder<Results>;

/// All that the study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Of which run.
    #[serde(flatten)]
    pub about: About,
    /// The cores that may be used, by the system's numbers.
    pub cores: Vec<usize>,
    /// What a tick of the time stamp counter takes.
    pub ns_per_tick: f64,
    /// What servers and generators say of themselves, by name.
    pub versions: BTreeMap<String, String>,
    /// How.
    pub options: Options,
    /// Runs.
    pub cells: Vec<Cell>,
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine, cores: Vec<usize>, options: Options) -> Results {
        Results {
            about: About::new(Results::FORMAT, machine),
            cores,
            ns_per_tick: 0.0,
            versions: BTreeMap::new(),
            options,
            cells: Vec::new(),
        }
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.case.experiment == experiment)
    }

    /// The cell of a case.
    #[must_use]
    pub fn cell(&self, case: &Case) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.case == *case)
    }

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

impl Found for Results {
    const FORMAT: u32 = 1;

    fn about(&self) -> &About {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn differs(&self, empty: &Results) -> Option<&'static str> {
        if self.cores != empty.cores {
            return Some("the machine");
        }
        self.options.differs(&empty.options)
    }

    fn adopt(&mut self, empty: Results) {
        self.options = empty.options;
    }

    fn tables(&self) -> Vec<File> {
        let of = |experiment: Experiment| {
            let cells = self.of(experiment);
            let rows = cells.map(|cell| (begin(&cell.case), &cell.figures));
            results::tables(experiment.id(), HEAD, &rows.collect::<Vec<_>>())
        };
        let run = Experiment::ALL.into_iter();
        let run = run.filter(|experiment| self.of(*experiment).next().is_some());
        let claims = results::claims(&Evidence::measured(self).verdicts());
        run.flat_map(of).chain([claims]).collect()
    }
}

const HEAD: &str = "reads,load,threads,server,bound";

fn begin(case: &Case) -> String {
    let bound = if case.is_bound { "yes" } else { "no" };
    format!(
        "{},{},{},{},{bound}",
        case.reads, case.load, case.threads, case.kind
    )
}
