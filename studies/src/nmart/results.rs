//! All that the study found, and the folder that it is kept in: `results.json`, replaced whole when
//! a cell is finished, and tables for each experiment. Whatever stops a study, what is there is good.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::allocators::Allocator;
use super::characterise::Character;
use super::floor::Least;
use super::options::{Experiment, Options};
use super::published;
use crate::{StudyError, kept};

/// The format of `results.json`.
const FORMAT: u32 = 1;
/// The name of the file with everything.
pub const RESULTS: &str = "results.json";
/// The name of the page.
pub const PAGE: &str = "nmart.html";

/// The machine that results come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
    /// Hardware threads that may be used.
    pub threads: usize,
    /// Nodes with memory that may be used.
    pub nodes: Vec<usize>,
}

/// A program's runs with an allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Of which experiment.
    pub experiment: Experiment,
    /// Such as `gawk2`, `larson`, `mean/8/local`.
    pub workload: String,
    /// The published workload beside it, if there is one.
    pub stands_for: Option<String>,
    /// Its id.
    pub allocator: String,
    /// Figures by name, one a run.
    pub figures: BTreeMap<String, Vec<f64>>,
    /// Why it could not be run, if so.
    pub failed: Option<String>,
}

/// Mean, standard deviation, least, most and median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for one run.
    pub deviation: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// The median.
    pub median: f64,
}

impl Summary {
    /// Of values; none for none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Summary> {
        let count = values.len() as f64;
        let median = hearth_model::stats::median(values)?;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Summary {
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            median,
        })
    }
}

impl Cell {
    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        Summary::of(self.figures.get(figure)?)
    }

    /// Notes a run's figure.
    pub fn push(&mut self, figure: &str, value: f64) {
        self.figures
            .entry(figure.to_owned())
            .or_default()
            .push(value);
    }

    /// Notes what is left of several runs.
    pub fn set_floor(&mut self, least: &Least) {
        let figures = [
            ("floor_allocate_max", f64::from(least.allocate_max)),
            ("floor_free_max", f64::from(least.free_max)),
            ("floor_allocate_sum", least.allocate_sum as f64),
            ("floor_free_sum", least.free_sum as f64),
        ];
        for (name, value) in figures {
            self.figures.insert(name.to_owned(), vec![value]);
        }
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
    /// How.
    pub options: Options,
    /// With what.
    pub allocators: Vec<Allocator>,
    /// How long it has taken so far, in seconds.
    pub seconds: f64,
    /// All that was asked for is there.
    pub is_complete: bool,
    /// What was left out or went differently, in sentences without a full stop.
    pub notes: Vec<String>,
    /// Nanoseconds to one of the meter's units.
    pub ns_per_unit: f64,
    /// Runs.
    pub cells: Vec<Cell>,
    /// What programs ask for, by workload.
    pub characters: BTreeMap<String, Character>,
    /// Mean seconds by memory node and processors' node.
    pub distances: Option<Vec<Vec<f64>>>,
}

impl Results {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine, options: Options) -> Results {
        Results {
            format: FORMAT,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            machine,
            options,
            allocators: Vec::new(),
            seconds: 0.0,
            is_complete: false,
            notes: Vec::new(),
            ns_per_unit: 1.0,
            cells: Vec::new(),
            characters: BTreeMap::new(),
            distances: None,
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
            .filter(move |cell| cell.experiment == experiment)
    }

    /// One cell.
    #[must_use]
    pub fn cell(&self, experiment: Experiment, workload: &str, allocator: &str) -> Option<&Cell> {
        self.of(experiment)
            .find(|cell| cell.workload == workload && cell.allocator == allocator)
    }

    /// An experiment's workloads, in the order in which they ran, with what they stand for.
    #[must_use]
    pub fn workloads(&self, experiment: Experiment) -> Vec<(&str, Option<&str>)> {
        let mut names: Vec<(&str, Option<&str>)> = Vec::new();
        for cell in self.of(experiment) {
            if names.iter().all(|(name, _)| *name != cell.workload) {
                names.push((&cell.workload, cell.stands_for.as_deref()));
            }
        }
        names
    }

    /// The allocators of an experiment, in the order of all.
    #[must_use]
    pub fn allocators(&self, experiment: Experiment) -> Vec<&str> {
        let ids = self
            .allocators
            .iter()
            .map(|allocator| allocator.id.as_str());
        ids.filter(|id| self.of(experiment).any(|cell| cell.allocator == *id))
            .collect()
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
        machine: Machine,
        options: &Options,
        resume: bool,
    ) -> Result<(Folder, Results), StudyError> {
        let folder = Folder::at(path);
        fs::create_dir_all(path).map_err(|error| kept::file("make the folder", path, error))?;
        let Some(mut earlier) = folder.results()? else {
            return Ok((folder, Results::new(machine, options.clone())));
        };
        let differs = if earlier.machine != machine {
            Some("the machine")
        } else if earlier.is_debug_build != cfg!(debug_assertions) {
            Some("how Hearth was built")
        } else {
            earlier.options.differs(options)
        };
        kept::go_on(path, resume, differs)?;
        earlier.options = options.clone();
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
        if !results.characters.is_empty() {
            self.replace("histograms.csv", histograms(results).as_bytes())?;
        }
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

/// Experiment, workload, allocator, figure.
type Key = (Experiment, String, &'static str, &'static str);

/// The published mean of a figure, for what stands for a workload of the source's.
#[must_use]
pub fn published(
    experiment: Experiment,
    workload: &str,
    allocator: &str,
    figure: &str,
) -> Option<f64> {
    static KNOWN: OnceLock<HashMap<Key, f64>> = OnceLock::new();
    let known = KNOWN.get_or_init(known);
    let (_, id) = published::ALLOCATORS
        .iter()
        .find(|(_, id)| *id == allocator)?;
    let figure = FIGURES.iter().find(|known| **known == figure)?;
    known
        .get(&(experiment, workload.to_owned(), id, figure))
        .copied()
}

/// The figures that the source has tables of.
const FIGURES: [&str; 8] = [
    "allocate_max",
    "free_max",
    "allocate_sum",
    "free_sum",
    "seconds",
    "waste_percent",
    "peak_kb",
    "data_kb",
];

fn known() -> HashMap<Key, f64> {
    let mut known = HashMap::new();
    for times in published::times() {
        known.insert(
            (
                Experiment::Times,
                times.workload(),
                times.allocator,
                times.figure(),
            ),
            times.mean,
        );
    }
    for row in published::synthetic() {
        let (experiment, model) = match row.model {
            "MEAN" => (Experiment::Mean, "mean"),
            _ => (Experiment::Cdf, "cdf"),
        };
        for (side, (mean, _)) in [("local", row.local), ("remote", row.remote)] {
            let workload = format!("{model}/{}/{side}", row.threads);
            known.insert((experiment, workload, row.allocator, "seconds"), mean);
        }
    }
    for found in published::appendix() {
        let name = found.name();
        let (experiment, figure) = match (found.field, name.as_str()) {
            ("internal_frag_pct", _) => (Experiment::Fragments, "waste_percent"),
            ("peak_kB", _) => (Experiment::Memory, "peak_kb"),
            ("data_kB", _) => (Experiment::Memory, "data_kb"),
            ("elapsed_s", "larson") => (Experiment::Larson, "seconds"),
            ("elapsed_s", "shbench") => (Experiment::Shbench, "seconds"),
            ("elapsed_s", _) => (Experiment::Sharing, "seconds"),
            _ => continue,
        };
        known.insert((experiment, name, found.allocator, figure), found.value);
    }
    known
}

fn summaries(results: &Results, experiment: Experiment) -> String {
    let mut text = String::from(
        "workload,stands_for,allocator,figure,runs,mean,deviation,least,most,median,published_mean\n",
    );
    for cell in results.of(experiment) {
        let stands_for = cell.stands_for.as_deref().unwrap_or_default();
        for (figure, values) in &cell.figures {
            let Some(summary) = Summary::of(values) else {
                continue;
            };
            let beside = published(experiment, stands_for, &cell.allocator, figure);
            let beside = beside.map_or(String::new(), |value| value.to_string());
            text += &format!(
                "{},{stands_for},{},{figure},{},{},{},{},{},{},{beside}\n",
                cell.workload,
                cell.allocator,
                values.len(),
                summary.mean,
                summary.deviation,
                summary.least,
                summary.most,
                summary.median,
            );
        }
    }
    text
}

fn runs(results: &Results, experiment: Experiment) -> String {
    let mut text = String::from("workload,allocator,figure,run,value\n");
    for cell in results.of(experiment) {
        for (figure, values) in &cell.figures {
            for (run, value) in values.iter().enumerate() {
                let (workload, allocator) = (&cell.workload, &cell.allocator);
                text += &format!("{workload},{allocator},{figure},{},{value}\n", run + 1);
            }
        }
    }
    text
}

fn histograms(results: &Results) -> String {
    let mut text = String::from("workload,quantity,up_to,count,cumulative_percent\n");
    for (workload, character) in &results.characters {
        let named = ["size", "between", "holding"]
            .iter()
            .zip(&character.quantities);
        for (name, quantity) in named {
            for ((edge, count), (_, share)) in quantity.bins.iter().zip(quantity.cumulative()) {
                text += &format!("{workload},{name},{edge},{count},{share:.2}\n");
            }
        }
    }
    text
}
