//! All that the study found, and the folder that it is kept in: `results.json`, replaced whole every few
//! seconds, and tables for each experiment. Whatever stops a study, what is there is good.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::figures::Figures;
use super::options::{Experiment, Options};
use super::plan::{APART, Case};
use super::verdict::Evidence;
use crate::nmart::results::{Machine, Summary};
use crate::{StudyError, kept};

/// The format of `results.json`.
const FORMAT: u32 = 1;
/// The name of the file with everything.
pub const RESULTS: &str = "results.json";
/// The name of the page.
pub const PAGE: &str = "event-patterns.html";
/// Clients that are on their cores for more of the time are what limits the rate.
const CLIENTS_FULL: f64 = 0.95;

/// A case's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What was run.
    pub case: Case,
    /// Figures by name, one a run ([`super::figures`]).
    pub figures: BTreeMap<String, Vec<f64>>,
    /// Runs that are there.
    pub runs: u32,
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
            runs: 0,
            failed: None,
        }
    }

    /// Notes a run.
    pub fn push(&mut self, figures: Figures) {
        self.runs += 1;
        for (name, value) in figures {
            self.figures.entry(name).or_default().push(value);
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

    /// The median of a figure.
    #[must_use]
    pub fn median(&self, figure: &str) -> Option<f64> {
        self.summary(figure).map(|summary| summary.median)
    }

    /// Could the server have done more, had it been asked more often? Then its rate is the clients'.
    #[must_use]
    pub fn is_clients_limit(&self, server_cores: usize) -> bool {
        let is_full = self
            .median("client_busy")
            .is_some_and(|busy| busy > CLIENTS_FULL);
        let most = server_cores.min(self.case.threads) as f64;
        let is_idle = self
            .median("server_cores")
            .is_some_and(|cores| cores < CLIENTS_FULL * most);
        is_full && is_idle
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
    /// The server's cores where it has its own, by the system's numbers.
    pub server_cores: Vec<usize>,
    /// The clients' cores there.
    pub client_cores: Vec<usize>,
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
    /// Nothing yet. The first half of the cores is the server's.
    #[must_use]
    pub fn new(machine: Machine, cores: &[usize], options: Options) -> Results {
        let (server, clients) = cores.split_at(cores.len() / 2);
        let server = if server.is_empty() { clients } else { server };
        Results {
            format: FORMAT,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            machine,
            server_cores: server.to_vec(),
            client_cores: clients.to_vec(),
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

    /// How many cores the server may use in a layout.
    #[must_use]
    pub fn cores_of_server(&self, layout: &str) -> usize {
        let others = self.client_cores.iter();
        let others = others.filter(|core| layout != APART && !self.server_cores.contains(core));
        self.server_cores.len() + others.count()
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.case.experiment == experiment)
    }

    /// The cells of one line of a chart, by threads.
    #[must_use]
    pub fn line(
        &self,
        experiment: Experiment,
        [pattern, mechanism, layout]: [&str; 3],
        work_us: u32,
    ) -> Vec<&Cell> {
        let cells = self.of(experiment).filter(|Cell { case, .. }| {
            case.pattern == pattern
                && case.mechanism == mechanism
                && case.layout == layout
                && case.work_us == work_us
                && case.is_timed
        });
        let mut cells: Vec<&Cell> = cells.filter(|cell| cell.runs > 0).collect();
        cells.sort_by_key(|cell| cell.case.threads);
        cells
    }

    /// The cell of such a line with the highest rate.
    #[must_use]
    pub fn peak(&self, experiment: Experiment, names: [&str; 3], work_us: u32) -> Option<&Cell> {
        let line = self.line(experiment, names, work_us).into_iter();
        let rated = line.filter_map(|cell| Some((cell, cell.median("rate")?)));
        let peak = rated.max_by(|a, b| a.1.total_cmp(&b.1));
        peak.map(|(cell, _)| cell)
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
        let cores = |results: &Results| {
            (
                results.machine.clone(),
                results.server_cores.clone(),
                results.client_cores.clone(),
            )
        };
        let differs = if cores(&earlier) != cores(&empty) {
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

const HEAD: &str = "pattern,mechanism,layout,threads,work_us,timed";

fn head(case: &Case) -> String {
    let Case {
        pattern,
        mechanism,
        layout,
        threads,
        work_us,
        is_timed,
        ..
    } = case;
    format!("{pattern},{mechanism},{layout},{threads},{work_us},{is_timed}")
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
        text += &format!("{},{},\"{because}\"\n", verdict.id, verdict.word());
    }
    text
}
