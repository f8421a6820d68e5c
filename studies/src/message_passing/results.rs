//! All that the study found, and the folder that it is kept in: `results.json`, replaced whole when a
//! round has all its runs, and a table for each experiment. Whatever stops a study, what is there is good.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::costs::Costs;
use super::distances::Traced;
use super::engine::experiments::Sizes;
use super::engine::{Config, Measured, Pages};
use super::options::{Experiment, Options};
use super::plan::{Case, Fit};
use super::verdict::Verdict;
use super::{evidence, options};
use crate::nmart::results::{Machine, Summary};
use crate::{StudyError, kept};

/// The format of `results.json`.
const FORMAT: u32 = 1;
/// The name of the file with everything.
pub const RESULTS: &str = "results.json";
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
    /// Figures by name, one a run: [`RATE`], [`CYCLES`], [`BUSY`], [`MODIFIED`], `lines`, `fairness`.
    pub figures: BTreeMap<String, Vec<f64>>,
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
            figures: BTreeMap::new(),
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
                self.figures.entry(name.to_owned()).or_default().push(value);
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
        self.figures.get(figure).map_or(&[], Vec::as_slice)
    }

    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        Summary::of(self.runs(figure))
    }
}

/// All that the study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The format of the file.
    pub format: u32,
    /// The version of the Hearth that measured.
    pub hearth_version: String,
    /// Built without optimisation.
    pub is_debug_build: bool,
    /// Where.
    pub machine: Machine,
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
    /// How long it has taken so far, in seconds.
    pub seconds: f64,
    /// All that was asked for is there.
    pub is_complete: bool,
    /// What was left out or went differently, in sentences without a full stop.
    pub notes: Vec<String>,
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
            format: FORMAT,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            machine,
            cores,
            cache_lines,
            second_cache_lines: None,
            costs: None,
            options,
            seconds: 0.0,
            is_complete: false,
            notes: Vec::new(),
            cells: Vec::new(),
            traced: Vec::new(),
        }
    }

    /// Says something once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
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

/// The folder of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at a path, whatever is in it.
    #[must_use]
    pub fn at(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
        }
    }

    /// Opens or makes the folder, and reads what is there if it is to be gone on with.
    ///
    /// # Errors
    /// It holds results and `resume` is false; they were made on another machine or with other
    /// options; a file cannot be read, written or understood.
    pub fn open(
        path: &Path,
        empty: Results,
        resume: bool,
    ) -> Result<(Folder, Results), StudyError> {
        let folder = Folder::at(path);
        fs::create_dir_all(path).map_err(|error| kept::file("make the folder", path, error))?;
        let Some(mut earlier) = folder.results()? else {
            return Ok((folder, empty));
        };
        let differs = if earlier.machine != empty.machine || earlier.cores != empty.cores {
            Some("the machine")
        } else if earlier.cache_lines != empty.cache_lines {
            Some("the size of the first cache")
        } else if earlier.is_debug_build != empty.is_debug_build {
            Some("how Hearth was built")
        } else {
            earlier.options.differs(&empty.options)
        };
        kept::go_on(path, resume, differs)?;
        earlier.options = empty.options;
        earlier.costs = empty.costs.or(earlier.costs);
        earlier.is_complete = false;
        Ok((folder, earlier))
    }

    /// What the folder holds; nothing if there is none.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn results(&self) -> Result<Option<Results>, StudyError> {
        kept::read(&self.path.join(RESULTS), FORMAT, |results: &Results| {
            results.format
        })
    }

    /// Replaces `results.json` and the tables.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn save(&self, results: &Results) -> Result<(), StudyError> {
        let text = serde_json::to_string(results).unwrap_or_default();
        self.replace(RESULTS, text.as_bytes())?;
        for experiment in Experiment::ALL {
            if results.of(experiment).next().is_some() {
                let id = experiment.id();
                let summaries = summaries(results, experiment);
                self.replace(&format!("{id}.csv"), summaries.as_bytes())?;
                let runs = runs(results, experiment);
                self.replace(&format!("{id}.runs.csv"), runs.as_bytes())?;
            }
        }
        self.replace("claims.csv", claims(results).as_bytes())?;
        Ok(())
    }

    /// Gives a file new contents by one rename.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(&self, name: &str, contents: &[u8]) -> Result<PathBuf, StudyError> {
        kept::replace(&self.path, name, contents)
    }
}

const HEAD: &str =
    "sizes,mode,threads,loops,local_lines,section_lines,modified_lines,message_bytes,defect";

fn head(case: &Case) -> String {
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

fn summaries(results: &Results, experiment: Experiment) -> String {
    let mut text = format!("{HEAD},figure,runs,median,least,most,mean,deviation\n");
    for cell in results.of(experiment) {
        for (figure, values) in &cell.figures {
            let Some(summary) = Summary::of(values) else {
                continue;
            };
            text += &format!(
                "{},{figure},{},{},{},{},{},{}\n",
                head(&cell.case),
                values.len(),
                summary.median,
                summary.least,
                summary.most,
                summary.mean,
                summary.deviation
            );
        }
    }
    text
}

fn runs(results: &Results, experiment: Experiment) -> String {
    let mut text = format!("{HEAD},figure,run,value\n");
    for cell in results.of(experiment) {
        for (figure, values) in &cell.figures {
            for (run, value) in values.iter().enumerate() {
                text += &format!("{},{figure},{},{value}\n", head(&cell.case), run + 1);
            }
        }
    }
    text
}

fn claims(results: &Results) -> String {
    let mut text = String::from("claim,answer,because\n");
    for Verdict {
        id,
        answer,
        because,
        ..
    } in evidence::measured(results).verdicts()
    {
        let because = because.replace('"', "'");
        text += &format!("{id},{},\"{because}\"\n", answer.word());
    }
    text
}
