//! All that the study found.

use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::costs::Costs;
use super::distances::Traced;
use super::engine::experiments::Sizes;
use super::engine::{Config, Measured, Pages};
use super::options::{Experiment, Options};
use super::plan::{Case, Fit};
use super::{evidence, options};
use crate::results::{self, About, Figures, File, Found, Machine};
use hearth_stats::Summary;

/// The name of the page.
pub const PAGE: &str = "message-passing.html";

/// Iterations of all loops per second.
pub const RATE: &str = "rate";
/// Cycles for which threads had a core, per iteration.
pub const CYCLES: &str = "cycles";
/// Share of requests that found the server busy, percent.
pub const BUSY: &str = "busy";
/// Lines that a pass modified, counted.
pub const MODIFIED: &str = "modified";

/// A case's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What was run.
    pub case: Case,
    /// [`RATE`], [`CYCLES`], [`BUSY`], [`MODIFIED`], `lines`, `fairness`.
    pub figures: Figures,
    /// What the data was on in the last run.
    pub pages: Option<Pages>,
    /// What the section said of itself then, in `auto`.
    pub explained: Option<String>,
    /// Why it could not be run, if so.
    pub failed: Option<String>,
}

impl Cell {
    /// Nothing yet.
    #[must_use]
    pub fn new(case: Case) -> Cell {
        Cell {
            case,
            figures: Figures::default(),
            pages: None,
            explained: None,
            failed: None,
        }
    }

    /// Notes a run.
    pub fn push(&mut self, run: Measured) {
        let figures = [
            (RATE, Some(run.iterations_per_second)),
            (CYCLES, Some(run.cycles_per_iteration)),
            (BUSY, run.server_busy_percent),
            (MODIFIED, Some(run.modified_per_pass)),
            ("lines", Some(run.lines_modified as f64)),
            ("fairness", Some(run.fairness)),
        ];
        for (name, value) in figures {
            if let Some(value) = value {
                self.figures.push(name, value);
            }
        }
        self.pages = Some(run.pages);
        if self.case.config.mode == Mode::Auto {
            self.explained = Some(run.explained);
        }
    }

    /// A figure of all runs.
    #[must_use]
    pub fn runs(&self, figure: &str) -> &[f64] {
        self.figures.runs(figure)
    }

    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        self.figures.summary(figure)
    }
}

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
    /// Lines of the first data cache, by which sizes are fitted.
    pub cache_lines: usize,
    /// Lines of the second, if it is known.
    pub second_cache_lines: Option<usize>,
    /// What caches and transfers cost, if the machine was measured.
    pub costs: Option<Costs>,
    /// How.
    pub options: Options,
    /// Runs.
    pub cells: Vec<Cell>,
    /// Reuse distances.
    pub traced: Vec<Traced>,
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(
        machine: Machine,
        cores: Vec<usize>,
        cache_lines: usize,
        options: Options,
    ) -> Results {
        Results {
            about: About::new(Results::FORMAT, machine),
            cores,
            cache_lines,
            second_cache_lines: None,
            costs: None,
            options,
            cells: Vec::new(),
            traced: Vec::new(),
        }
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.case.experiment == experiment)
    }

    /// An experiment's cells of some sizes in a mode with so many threads, by what is on the horizontal axis.
    #[must_use]
    pub fn series(
        &self,
        experiment: Experiment,
        fit: Fit,
        mode: Mode,
        threads: usize,
    ) -> Vec<&Cell> {
        let is_of = |cell: &&Cell| {
            let Case {
                fit: of, config, ..
            } = &cell.case;
            *of == fit && config.mode == mode && config.threads == threads
        };
        let mut cells: Vec<&Cell> = self.of(experiment).filter(is_of).collect();
        cells.sort_by_key(|cell| cell.case.x);
        cells
    }

    /// The sizes that an experiment has cells of.
    #[must_use]
    pub fn fits(&self, experiment: Experiment) -> Vec<Fit> {
        let mut fits: Vec<Fit> = self.of(experiment).map(|cell| cell.case.fit).collect();
        fits.sort_unstable();
        fits.dedup();
        fits
    }

    /// The numbers of threads that an experiment has cells of in a mode, ascending.
    #[must_use]
    pub fn threads(&self, experiment: Experiment, mode: Mode) -> Vec<usize> {
        let of = self.of(experiment);
        let mut threads: Vec<usize> = of
            .filter(|cell| cell.case.config.mode == mode)
            .map(|cell| cell.case.config.threads)
            .collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The sizes.
    #[must_use]
    pub fn sizes(&self, fit: Fit) -> Sizes {
        fit.sizes(self.cache_lines)
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
        if self.cache_lines != empty.cache_lines {
            return Some("the size of the first cache");
        }
        self.options.differs(&empty.options)
    }

    fn adopt(&mut self, empty: Results) {
        self.options = empty.options;
        self.costs = empty.costs.or(self.costs.take());
    }

    fn tables(&self) -> Vec<File> {
        let of = |experiment: Experiment| {
            let cells = self.of(experiment);
            let rows = cells.map(|cell| (begin(&cell.case), &cell.figures));
            results::tables(experiment.id(), HEAD, &rows.collect::<Vec<_>>())
        };
        let run = Experiment::ALL.into_iter();
        let run = run.filter(|experiment| self.of(*experiment).next().is_some());
        let claims = results::claims(&evidence::measured(self).verdicts());
        run.flat_map(of).chain([claims]).collect()
    }
}

const HEAD: &str =
    "sizes,mode,threads,loops,local_lines,section_lines,modified_lines,message_bytes,defect";

fn begin(case: &Case) -> String {
    let Config {
        mode,
        threads,
        local_lines,
        section_lines,
        modified_lines,
        message_bytes,
        ..
    } = &case.config;
    format!(
        "{},{mode},{threads},{},{local_lines},{section_lines},{modified_lines},{message_bytes},{}",
        case.fit.id(),
        case.config.loops(),
        options::defects_of(case.config.defects).join("+")
    )
}
