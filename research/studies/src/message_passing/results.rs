//! All that the study found.

use std::collections::BTreeMap;

use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::MessagePassing;
use super::costs::Costs;
use super::distances::Traced;
use super::engine::experiments::Sizes;
use super::engine::{Measured, Pages};
use super::options::Experiment;
use super::plan::{Case, Fit};
use crate::{results, study};

/// Iterations of all loops per second.
pub const RATE: &str = "rate";
/// Cycles for which threads had a core, per iteration.
pub const CYCLES: &str = "cycles";
/// Share of requests that found the server busy, percent.
pub const BUSY: &str = "busy";
/// Lines that a pass modified, counted.
pub const MODIFIED: &str = "modified";

/// Were all pages of the data huge? 1 or 0.
pub const HUGE: &str = "huge_pages";

/// A case's runs: [`RATE`], [`CYCLES`], [`BUSY`], [`MODIFIED`], [`HUGE`], `lines`, `fairness`.
pub type Cell = results::Cell<Case>;
/// All that the study found.
pub type Results = study::Results<MessagePassing>;

/// The machine with its caches, and what was computed rather than run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The cores that are used, by the system's numbers.
    pub cores: Vec<usize>,
    /// Lines of the first data cache, by which sizes are fitted.
    pub cache_lines: usize,
    /// Lines of the second, if it is known.
    pub second_cache_lines: Option<usize>,
    /// Costs of caches and transfers, if the machine was measured.
    pub costs: Option<Costs>,
    /// Reuse distances.
    pub traced: Vec<Traced>,
    /// The section's report on itself in the last run of each `auto` case, by the case in words.
    #[serde(default)]
    pub explained: BTreeMap<String, String>,
}

/// The figures of a run.
pub(super) fn figures(run: &Measured) -> Vec<(String, f64)> {
    let figures = [
        (RATE, Some(run.iterations_per_second)),
        (CYCLES, Some(run.cycles_per_iteration)),
        (BUSY, run.server_busy_percent),
        (MODIFIED, Some(run.modified_per_pass)),
        (HUGE, Some(f64::from(run.pages == Pages::Huge))),
        ("lines", Some(run.lines_modified as f64)),
        ("fairness", Some(run.fairness)),
    ];
    let known = figures.into_iter();
    known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

impl Results {
    /// An experiment's cells of some sizes in a mode with `threads` threads, by what is on the
    /// horizontal axis.
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
        fit.sizes(self.site.cache_lines)
    }
}
