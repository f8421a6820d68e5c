//! The source's three experiments, as lists of configurations.

use hearth_sync::{Copying, Mode, Queue};
use serde::{Deserialize, Serialize};

use super::config::{Config, LINE_BYTES, MESSAGE_BYTES};

/// The source's first cache of 64 KiB, in lines.
const SOURCE_CACHE_LINES: usize = 1024;
/// Lines of the section in the second and third experiment.
const SECTION_LINES: usize = 128;

/// The source's three experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// The section's data grows, and is only read (figures 3.5).
    Displacement,
    /// The section modifies more and more lines, with more and more threads (figures 3.6).
    Invalidation,
    /// The message grows, by message only (figures 3.7).
    MessageSize,
}

/// Sizes of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// The source's, for a first cache of 1,024 lines.
    Source,
    /// The same in proportion to a first cache of this many lines, as measured here.
    CacheLines(usize),
}

impl Sizes {
    /// Sizes in proportion to a first data cache of `bytes`.
    pub fn of_cache_bytes(bytes: f64) -> Sizes {
        Sizes::CacheLines(((bytes / LINE_BYTES as f64).round() as usize).max(16))
    }

    /// Lines of the first cache.
    pub fn cache_lines(self) -> usize {
        match self {
            Sizes::Source => SOURCE_CACHE_LINES,
            Sizes::CacheLines(lines) => lines,
        }
    }

    /// Lines of each loop's own data: twice the first cache.
    pub fn local_lines(self) -> usize {
        2 * self.cache_lines()
    }

    /// The source's number of lines, in proportion.
    fn scaled(self, lines: usize) -> usize {
        (lines * self.cache_lines() / SOURCE_CACHE_LINES).max(1)
    }
}

/// A configuration, and the point of an experiment's chart that its result belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment.
    pub experiment: Experiment,
    /// The value on the horizontal axis: lines of the section, lines modified, bytes of a message.
    pub x: usize,
    /// The whole configuration.
    pub config: Config,
}

/// The cells of an experiment. Threads are as the source's list of them for the experiment, or as
/// given: those that the machine carries. Everything else is as in `base`, whose mode and sizes are
/// replaced.
pub fn cells(
    experiment: Experiment,
    sizes: Sizes,
    threads: Option<&[usize]>,
    base: &Config,
) -> Vec<Cell> {
    let base = Config {
        local_lines: sizes.local_lines(),
        modified_lines: 0,
        ..base.clone()
    };
    let of_source: &[usize] = match experiment {
        Experiment::Displacement => &[10],
        Experiment::Invalidation => &[2, 4, 8, 12],
        Experiment::MessageSize => &[5, 9, 16],
    };
    let mut cells = Vec::new();
    for &threads in threads.unwrap_or(of_source) {
        let config = Config {
            threads,
            ..base.clone()
        };
        match experiment {
            Experiment::Displacement => displacement(sizes, &config, &mut cells),
            Experiment::Invalidation => invalidation(sizes, &config, &mut cells),
            Experiment::MessageSize => message_size(sizes, &config, &mut cells),
        }
    }
    cells
}

/// Cells from an eighth of 64 lines, where messages cost more than they save, to all of the loop's
/// own data.
fn displacement(sizes: Sizes, base: &Config, cells: &mut Vec<Cell>) {
    for lines in [
        8, 16, 32, 64, 128, 256, 384, 512, 768, 1024, 1280, 1536, 2048,
    ] {
        let section_lines = sizes.scaled(lines);
        for mode in [Mode::Lock, Mode::Message] {
            push(
                cells,
                Experiment::Displacement,
                section_lines,
                Config {
                    mode,
                    section_lines,
                    ..base.clone()
                },
            );
        }
    }
}

fn invalidation(sizes: Sizes, base: &Config, cells: &mut Vec<Cell>) {
    let section_lines = sizes.scaled(SECTION_LINES).max(2);
    let mut seen = Vec::new();
    for modified in [0, 1, 2, 4, 8, 16, 32, 48, 64, 96, 127] {
        // In proportion, and below all of them.
        let modified_lines = (modified * section_lines / SECTION_LINES).min(section_lines - 1);
        if seen.contains(&modified_lines) {
            continue;
        }
        seen.push(modified_lines);
        for mode in [Mode::Lock, Mode::Message] {
            let config = Config {
                mode,
                section_lines,
                modified_lines,
                ..base.clone()
            };
            push(cells, Experiment::Invalidation, modified_lines, config);
        }
    }
}

/// Cells with sections of 128 lines as the source's caption has it, and of one line as its text has
/// it. Only single copies move the message itself.
fn message_size(sizes: Sizes, base: &Config, cells: &mut Vec<Cell>) {
    for section_lines in [sizes.scaled(SECTION_LINES), 1] {
        for message_bytes in MESSAGE_BYTES.into_iter().filter(|&bytes| bytes > 0) {
            let config = Config {
                mode: Mode::Message,
                queue: match base.queue {
                    Queue::Lines => Queue::Ring(Copying::Single),
                    ring => ring,
                },
                section_lines,
                message_bytes,
                ..base.clone()
            };
            push(cells, Experiment::MessageSize, message_bytes, config);
        }
    }
}

/// The pool is raised where the data needs more than the source's 32 MiB.
fn push(cells: &mut Vec<Cell>, experiment: Experiment, x: usize, mut config: Config) {
    let needed = config.data_bytes().div_ceil(1 << 20);
    config.pool_mib = config.pool_mib.max(needed);
    cells.push(Cell {
        experiment,
        x,
        config,
    });
}
