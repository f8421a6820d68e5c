//! `auto` beside both modes, in each cell of the first two experiments.

use std::fmt::Write as _;

use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::drive::{RunError, run};
use super::experiments::{Cell, Experiment, Sizes, cells};
use super::measured::Spread;

/// Share by which `auto` may lie below the better mode in a cell.
pub const MARGIN: f64 = 0.05;

/// A cell, with the same loops in all modes: the server comes in addition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The experiment.
    pub experiment: Experiment,
    /// Loops.
    pub loops: usize,
    /// Lines of the section.
    pub section_lines: usize,
    /// Lines modified.
    pub modified_lines: usize,
    /// Iterations per second under the lock; like the next three a median of runs that took turns.
    pub lock: f64,
    /// Combining.
    pub combine: f64,
    /// The rate by message.
    pub message: f64,
    /// The rate in `auto`.
    pub auto: f64,
    /// The rate of `auto` in each turn, over that of the mode whose median is best; the median and
    /// the range.
    pub ratio: Spread,
    /// The section's own explanation in `auto`.
    pub explained: String,
}

impl Row {
    /// True if `auto` is within [`MARGIN`] of the best mode, by the median of the turns.
    pub fn holds(&self) -> bool {
        self.ratio.median >= 1.0 - MARGIN
    }
}

/// The cells of the grid for these numbers of loops: those of [`Experiment::Displacement`] and of
/// [`Experiment::Invalidation`], with the mode left open.
pub fn plan(sizes: Sizes, loops: &[usize], base: &Config) -> Vec<Cell> {
    let base = Config {
        server_counted: false,
        ..base.clone()
    };
    [Experiment::Displacement, Experiment::Invalidation]
        .into_iter()
        .flat_map(|experiment| cells(experiment, sizes, Some(loops), &base))
        .filter(|cell| cell.config.mode == Mode::Lock)
        .collect()
}

/// Runs a cell in all modes, in turns; as many as the configuration has repetitions.
///
/// # Errors
/// As [`run`].
pub fn measure(cell: &Cell) -> Result<Row, RunError> {
    const MODES: [Mode; 4] = [Mode::Lock, Mode::Combine, Mode::Message, Mode::Auto];
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut explained = String::new();
    for repetition in 0..cell.config.repetitions {
        for (mode, rates) in MODES.into_iter().zip(&mut rates) {
            let config = Config {
                mode,
                ..cell.config.clone()
            };
            let measured = run(&config, repetition)?;
            rates.push(measured.iterations_per_second);
            explained = measured.explained;
        }
    }
    let median =
        |rates: &[f64]| Spread::of(rates.iter().copied()).map_or(0.0, |spread| spread.median);
    // The best mode is the one with the best median: the best of each turn would be chosen by its
    // noise.
    let best = (0..3)
        .max_by(|&a, &b| median(&rates[a]).total_cmp(&median(&rates[b])))
        .unwrap_or(0);
    let ratios = rates[3]
        .iter()
        .zip(&rates[best])
        .map(|(auto, best)| auto / best);
    let ratio = Spread::of(ratios.collect::<Vec<f64>>());
    Ok(Row {
        experiment: cell.experiment,
        loops: cell.config.loops(),
        section_lines: cell.config.section_lines,
        modified_lines: cell.config.modified_lines,
        lock: median(&rates[0]),
        combine: median(&rates[1]),
        message: median(&rates[2]),
        auto: median(&rates[3]),
        ratio: ratio.ok_or_else(|| {
            RunError::from(super::ConfigError::Value(
                "no repetitions; ask for 1".into(),
            ))
        })?,
        explained,
    })
}

/// The rows as a table for a terminal, thousands of iterations per second.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "loops  section  modified     lock  combine  message     auto  auto/best (least to most)\n",
    );
    for row in rows {
        let k = |rate: f64| rate / 1e3;
        let _ = writeln!(
            text,
            "{:5}  {:7}  {:8}  {:7.1}  {:7.1}  {:7.1}  {:7.1}  {:.3} ({:.3} to {:.3}){}",
            row.loops,
            row.section_lines,
            row.modified_lines,
            k(row.lock),
            k(row.combine),
            k(row.message),
            k(row.auto),
            row.ratio.median,
            row.ratio.least,
            row.ratio.most,
            if row.holds() { "" } else { "  below" }
        );
    }
    let held = rows.iter().filter(|row| row.holds()).count();
    let _ = writeln!(
        text,
        "{held} of {} cells within 5 % of the best mode",
        rows.len()
    );
    text
}
