//! Reuse distances of the walks: what caches of this machine's sizes make of them, and the
//! detectors' words.
//!
//! Nothing is measured here. The references are those of the benchmark's own walks, in the order of
//! a run in which each loop has its turn; caches drop the line longest unused, which real ones do
//! nearly.

use hearth_model::locality::{Access, Analysis, AnalysisOptions, Level, Report};
use hearth_sync::Mode;
use serde::{Deserialize, Serialize};

use super::engine::experiments::{self as source, Sizes};
use super::engine::{Config, trace};
use crate::StudyError;

/// Passes of each loop: the first touches all lines first, and all others are alike.
const PASSES: u32 = 6;

/// Results of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// `displacement` or `invalidation`.
    pub experiment: String,
    /// `lock` or `message`.
    pub mode: String,
    /// The source's N.
    pub threads: usize,
    /// Lines of the section.
    pub section_lines: usize,
    /// The number of them that are modified.
    pub modified_lines: usize,
    /// Misses of each level: its lines, the share of all references that miss it, and the share of
    /// the section's.
    pub misses: Vec<(u64, f64, f64)>,
    /// The detectors' findings on displacement.
    pub displacement: Vec<String>,
    /// The detectors' findings on invalidation.
    pub invalidation: Vec<String>,
}

/// Traces of the first two experiments' ends and middles, under the lock and by message.
///
/// # Errors
/// A configuration cannot be; the sizes are the study's own, so that none is.
pub fn traced(
    sizes: Sizes,
    levels: &[usize],
    threads: usize,
    seed: u64,
) -> Result<Vec<Traced>, StudyError> {
    let base = Config {
        seed,
        ..Config::default()
    };
    let mut all = Vec::new();
    for (experiment, name) in [
        (source::Experiment::Displacement, "displacement"),
        (source::Experiment::Invalidation, "invalidation"),
    ] {
        let cells = source::cells(experiment, sizes, Some(&[threads]), &base);
        let mut places: Vec<usize> = cells.iter().map(|cell| cell.x).collect();
        places.dedup();
        for cell in &cells {
            let at = places.iter().position(|x| *x == cell.x).unwrap_or(0);
            if at % 3 == 0 || at + 1 == places.len() {
                all.push(of(name, &cell.config, levels)?);
            }
        }
    }
    Ok(all)
}

fn of(experiment: &str, config: &Config, levels: &[usize]) -> Result<Traced, StudyError> {
    let report = report(config, levels).map_err(|error| StudyError::Benchmark {
        why: error.to_string(),
    })?;
    let section = report.components.iter().find(|found| found.name == SECTION);
    Ok(Traced {
        experiment: experiment.to_owned(),
        mode: config.mode.to_string(),
        threads: config.threads,
        section_lines: config.section_lines,
        modified_lines: config.modified_lines,
        misses: report
            .levels
            .iter()
            .map(|found| {
                let lines = found.level.lines;
                let of_section = section.map_or(0.0, |section| section.histogram.miss_ratio(lines));
                (lines, found.misses.share, of_section)
            })
            .collect(),
        displacement: report
            .displacements
            .iter()
            .map(ToString::to_string)
            .collect(),
        invalidation: report
            .invalidations
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}

const LOCAL: &str = "the loop's own data";
const SECTION: &str = "the section";

fn report(config: &Config, levels: &[usize]) -> Result<Report, super::engine::ConfigError> {
    let mut options = AnalysisOptions::new();
    for (name, &lines) in ["L1d", "L2"].iter().zip(levels) {
        options = options.level(Level::private(name, lines as u64));
    }
    let mut analysis = Analysis::new(options);
    let (local, section) = (analysis.component(LOCAL), analysis.component(SECTION));
    trace::trace(config, PASSES, |reference| {
        analysis.add(Access {
            line: reference.line,
            thread: reference.thread,
            component: if reference.in_section { section } else { local },
            write: reference.write,
        });
    })?;
    Ok(analysis.report())
}

/// True if the walk is that of a section under the lock.
#[must_use]
pub fn is_locked(traced: &Traced) -> bool {
    traced.mode == Mode::Lock.to_string()
}
