//! All that the study found.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::allocators::Allocator;
use super::characterise::Character;
use super::options::Experiment;
use super::plan::Case;
use super::published;
use super::study::Nmart;
use crate::results::{self, File};
use crate::study;
use hearth_stats::Summary;

/// A program's runs with an allocator.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<Nmart>;

/// The allocators, the meter's unit, and what is known of the programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The allocators that it ran with.
    pub allocators: Vec<Allocator>,
    /// Nanoseconds to one of the meter's units.
    pub ns_per_unit: f64,
    /// Characteristics of the programs' requests, by workload.
    pub characters: BTreeMap<String, Character>,
}

/// The name of the figure of a memory node and the node whose processors copy: mean seconds.
fn distance(memory: usize, processors: usize) -> String {
    format!("memory {memory}, processors {processors}")
}

/// The figures of mean seconds by memory node and processors' node; where there is nothing the mean
/// is not a number.
pub(super) fn distances(means: &[Vec<f64>]) -> Vec<(String, f64)> {
    let row = |(memory, row): (usize, &Vec<f64>)| {
        let row = row.iter().enumerate();
        let figures = row.map(|(of, mean)| (distance(memory, of), *mean));
        figures.collect::<Vec<_>>()
    };
    let figures = means.iter().enumerate().flat_map(row);
    figures.filter(|(_, mean)| mean.is_finite()).collect()
}

impl Results {
    /// The cell of a workload with an allocator.
    #[must_use]
    pub fn find(&self, experiment: Experiment, workload: &str, allocator: &str) -> Option<&Cell> {
        self.of(experiment)
            .find(|cell| cell.case.workload == workload && cell.case.allocator == allocator)
    }

    /// An experiment's workloads, in the order in which they ran, with what they stand for.
    #[must_use]
    pub fn workloads(&self, experiment: Experiment) -> Vec<(&str, Option<&str>)> {
        let mut names: Vec<(&str, Option<&str>)> = Vec::new();
        for Cell { case, .. } in self.of(experiment) {
            if names.iter().all(|(name, _)| *name != case.workload) {
                names.push((&case.workload, case.stands_for.as_deref()));
            }
        }
        names
    }

    /// The allocators of an experiment, in the order of all.
    #[must_use]
    pub fn allocators(&self, experiment: Experiment) -> Vec<&str> {
        let ids = self.site.allocators.iter().map(|one| one.id.as_str());
        ids.filter(|id| self.of(experiment).any(|cell| cell.case.allocator == *id))
            .collect()
    }

    /// Mean seconds by memory node and processors' node, if they were measured.
    #[must_use]
    pub fn distances(&self) -> Option<Vec<Vec<f64>>> {
        let cell = self.of(Experiment::Distances).next()?;
        let nodes = 0..self.about.machine.nodes.len();
        let mean = |memory, processors| {
            let found = cell.runs(&distance(memory, processors)).first();
            found.copied().unwrap_or(f64::NAN)
        };
        let row = |memory| nodes.clone().map(|of| mean(memory, of)).collect();
        Some(nodes.clone().map(row).collect())
    }
}

/// The tables of workloads by allocator, and the histograms.
pub(super) fn tables(results: &Results) -> Vec<File> {
    let mut tables = Vec::new();
    for experiment in Experiment::ALL {
        let rows = results.rows(experiment);
        if experiment == Experiment::Distances || rows.is_empty() {
            continue;
        }
        let id = experiment.id();
        tables.push((format!("{id}.csv"), summaries(results, experiment)));
        let runs = results::runs(COLUMNS, &rows);
        tables.push((format!("{id}.runs.csv"), runs));
    }
    if !results.site.characters.is_empty() {
        tables.push(("histograms.csv".to_owned(), histograms(results)));
    }
    tables
}

/// The columns before the figures.
pub(super) const COLUMNS: &str = "workload,allocator";

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
        let Case {
            workload,
            allocator,
            stands_for,
            ..
        } = &cell.case;
        let stands_for = stands_for.as_deref().unwrap_or_default();
        for (figure, values) in cell.figures.iter() {
            let Some(summary) = Summary::of(values) else {
                continue;
            };
            let beside = published(experiment, stands_for, allocator, figure);
            let beside = beside.map_or(String::new(), |value| value.to_string());
            text += &format!(
                "{workload},{stands_for},{allocator},{figure},{},{},{},{},{},{},{beside}\n",
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
    for (workload, character) in &results.site.characters {
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
