//! All that the study found, and the folder that it is kept in: `results.json`, replaced whole when a
//! round has all its runs, and tables for each experiment. Whatever stops a study, what is there is good.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::options::{Experiment, Options};
use super::plan::Case;
use super::verdict::{Evidence, word};
use crate::nmart::results::{Machine, Summary};
use crate::{StudyError, kept};

/// The format of `results.json`.
const FORMAT: u32 = 1;
/// The name of the file with everything.
pub const RESULTS: &str = "results.json";
/// The name of the page.
pub const PAGE: &str = "memcached.html";

/// A case's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What was run.
    pub case: Case,
    /// Figures by name, one a run, as [`super::measure`] names them.
    pub figures: BTreeMap<String, Vec<f64>>,
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
            failed: None,
        }
    }

    /// Notes a run's figure.
    pub fn push(&mut self, figure: &str, value: f64) {
        self.figures
            .entry(figure.to_owned())
            .or_default()
            .push(value);
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
    /// The cores that may be used, by the system's numbers.
    pub cores: Vec<usize>,
    /// What a tick of the time stamp counter takes.
    pub ns_per_tick: f64,
    /// What servers and generators say of themselves, by name.
    pub versions: BTreeMap<String, String>,
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
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine, cores: Vec<usize>, options: Options) -> Results {
        Results {
            format: FORMAT,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            machine,
            cores,
            ns_per_tick: 0.0,
            versions: BTreeMap::new(),
            options,
            seconds: 0.0,
            is_complete: false,
            notes: Vec::new(),
            cells: Vec::new(),
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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
        } else if earlier.is_debug_build != empty.is_debug_build {
            Some("how Hearth was built")
        } else {
            earlier.options.differs(&empty.options)
        };
        kept::go_on(path, resume, differs)?;
        earlier.options = empty.options;
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
                self.replace(
                    &format!("{id}.csv"),
                    summaries(results, experiment).as_bytes(),
                )?;
                self.replace(
                    &format!("{id}.runs.csv"),
                    runs(results, experiment).as_bytes(),
                )?;
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

/// The first columns of every table.
const HEAD: &str = "reads,load,threads,server,bound";

fn head(case: &Case) -> String {
    let bound = if case.is_bound { "yes" } else { "no" };
    format!(
        "{},{},{},{},{bound}",
        case.reads, case.load, case.threads, case.kind
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
    for verdict in Evidence::measured(results).verdicts() {
        let because = verdict.because.replace('"', "'");
        text += &format!("{},{},\"{because}\"\n", verdict.id, word(verdict.answer));
    }
    text
}
