//! All that the study found.

use serde::{Deserialize, Serialize};

use super::options::{Experiment, Options};
use super::plan::Case;
use super::verdict::Evidence;
use crate::results::{self, About, File, Found, Machine};

/// The name of the page.
pub const PAGE: &str = "insense-multicore.html";

/// A case's runs: `real`, `user` and `system` in seconds, `peak_kb` and `growth_kb`, Cachegrind's counts.
pub type Cell = results::Cell<Case>;
/// The folder of the study.
pub type Folder = results::Folder<Results>;

/// All that the study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Of which run.
    #[serde(flatten)]
    pub about: About,
    /// The cores that were used, by the system's numbers.
    pub cores: Vec<usize>,
    /// How.
    pub options: Options,
    /// The loads' parameters in words, by experiment and load.
    pub loads: Vec<(Experiment, String, String)>,
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
            options,
            loads: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.case.experiment == experiment)
    }

    /// An experiment's loads and their parameters in words, in the order in which they ran.
    pub fn loads_of(&self, experiment: Experiment) -> impl Iterator<Item = (&str, &str)> {
        let of = self.loads.iter().filter(move |(of, ..)| *of == experiment);
        of.map(|(_, load, words)| (load.as_str(), words.as_str()))
    }

    /// One cell, by load, carrier, heaps and placement.
    #[must_use]
    pub fn cell(
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

const HEAD: &str = "load,carrier,heaps,placement";

fn begin(case: &Case) -> String {
    let Case {
        load,
        carrier,
        heaps,
        placement,
        ..
    } = case;
    format!("{load},{carrier},{heaps},{placement}")
}
