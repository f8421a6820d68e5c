//! All that the study found.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::allocators::Allocator;
use super::characterise::Character;
use super::floor::Least;
use super::options::{Experiment, NmartOptions};
use super::published;
use super::verdict::Evidence;
use crate::results::{self, About, Figures, File, Found, Machine};
use hearth_stats::Summary;

/// The name of the page.
pub const PAGE: &str = "nmart.html";

/// The folder of the study.
pub type Folder = results::Folder<Results>;

/// A program's runs with an allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The workload, such as `gawk2`, `larson`, `mean/8/local`.
    pub workload: String,
    /// The published workload beside it, if there is one.
    pub stands_for: Option<String>,
    /// Its id.
    pub allocator: String,
    /// The measured figures.
    pub figures: Figures,
    /// The reason why it could not be run, if so.
    pub failed: Option<String>,
}

impl Cell {
    /// A figure over the runs.
    #[must_use]
    pub fn summary(&self, figure: &str) -> Option<Summary> {
        self.figures.summary(figure)
    }

    /// Notes a run's figure.
    pub fn push(&mut self, figure: &str, value: f64) {
        self.figures.push(figure, value);
    }

    /// Records the floors of several runs.
    pub fn set_floor(&mut self, least: &Least) {
        let figures = [
            ("floor_allocate_max", f64::from(least.allocate_max)),
            ("floor_free_max", f64::from(least.free_max)),
            ("floor_allocate_sum", least.allocate_sum as f64),
            ("floor_free_sum", least.free_sum as f64),
        ];
        for (name, value) in figures {
            self.figures.set(name, vec![value]);
        }
    }
}

/// All results of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The run that they belong to.
    #[serde(flatten)]
    pub about: About,
    /// The options of the run.
    pub options: NmartOptions,
    /// The allocators that it ran with.
    pub allocators: Vec<Allocator>,
    /// Nanoseconds to one of the meter's units.
    pub ns_per_unit: f64,
    /// Runs.
    pub cells: Vec<Cell>,
    /// Characteristics of the programs' requests, by workload.
    pub characters: BTreeMap<String, Character>,
    /// Mean seconds by memory node and processors' node.
    pub distances: Option<Vec<Vec<f64>>>,
}

impl Results {
    /// Creates results without runs.
    #[must_use]
    pub fn new(machine: Machine, options: NmartOptions) -> Results {
        Results {
            about: About::new(Results::FORMAT, machine),
            options,
            allocators: Vec::new(),
            ns_per_unit: 1.0,
            cells: Vec::new(),
            characters: BTreeMap::new(),
            distances: None,
        }
    }

    /// An experiment's cells.
    pub fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.experiment == experiment)
    }

    /// Returns one cell.
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

impl Found for Results {
    const FORMAT: u32 = 1;

    fn about(&self) -> &About {
        &self.about
    }

    fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn differs(&self, empty: &Results) -> Option<&'static str> {
        self.options.differs(&empty.options)
    }

    fn adopt(&mut self, empty: Results) {
        self.options = empty.options;
    }

    fn tables(&self) -> Vec<File> {
        let of = |experiment: Experiment| {
            let id = experiment.id();
            let cells = self.of(experiment);
            let rows = cells.map(|cell| {
                let begin = format!("{},{}", cell.workload, cell.allocator);
                (begin, &cell.figures)
            });
            let runs = results::runs("workload,allocator", &rows.collect::<Vec<_>>());
            [
                (format!("{id}.csv"), summaries(self, experiment)),
                (format!("{id}.runs.csv"), runs),
            ]
        };
        let run = Experiment::ALL.into_iter();
        let run = run.filter(|experiment| self.of(*experiment).next().is_some());
        let mut tables: Vec<File> = run.flat_map(of).collect();
        if !self.characters.is_empty() {
            tables.push(("histograms.csv".to_owned(), histograms(self)));
        }
        tables.push(results::claims(&Evidence::measured(self).verdicts()));
        tables
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
        for (figure, values) in cell.figures.iter() {
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
