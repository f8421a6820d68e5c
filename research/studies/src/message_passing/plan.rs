//! The plan of runs: every cell of an experiment.

use hearth_sync::{Mode, Queue};
use serde::{Deserialize, Serialize};

use super::engine::experiments::{self as source, Cell, Sizes};
use super::engine::{Config, Defects, grid};
use super::options::{DEFECTS, Experiment, MessagePassingOptions, defects_of, set_defect};
use crate::study;

/// The source's numbers of threads.
pub const DISPLACEMENT_THREADS: usize = 10;
/// Those whose curves it names.
pub const INVALIDATION_THREADS: [usize; 4] = [2, 4, 8, 12];
/// Numbers of threads for little, middling and much work for the server.
pub const MESSAGE_THREADS: [usize; 3] = [5, 9, 16];

/// Scale of the data's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Sizes in proportion to this machine's first cache.
    Machine,
    /// The source's, for a first cache of 1,024 lines.
    Source,
}

impl Fit {
    /// Its name in tables and file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Fit::Machine => "machine",
            Fit::Source => "source",
        }
    }

    /// The sizes.
    #[must_use]
    pub const fn sizes(self, cache_lines: usize) -> Sizes {
        match self {
            Fit::Machine => Sizes::CacheLines(cache_lines),
            Fit::Source => Sizes::Source,
        }
    }
}

/// One configuration and where its figures belong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The scale of the sizes.
    pub fit: Fit,
    /// The value on the horizontal axis: lines of the section, lines modified, bytes of a message.
    pub x: usize,
    /// The whole configuration.
    pub config: Config,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Config { mode, threads, .. } = &self.config;
        format!(
            "{} {mode}, {threads} threads, {}",
            self.experiment.id(),
            self.x
        )
    }

    fn row(&self) -> String {
        let Config {
            mode,
            threads,
            local_lines,
            section_lines,
            modified_lines,
            message_bytes,
            ..
        } = &self.config;
        format!(
            "{},{mode},{threads},{},{local_lines},{section_lines},{modified_lines},{message_bytes},{}",
            self.fit.id(),
            self.config.loops(),
            defects_of(self.config.defects).join("+")
        )
    }
}

type Round = study::Round<Case>;

/// All rounds of an experiment, for a machine with these numbers of cores and lines of the first
/// cache.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &MessagePassingOptions,
    cores: usize,
    cache_lines: usize,
) -> Vec<Round> {
    let plan = CasePlan {
        options,
        cores,
        cache_lines,
    };
    let fits: &[Fit] = if options.quick {
        &[Fit::Machine]
    } else {
        &[Fit::Machine, Fit::Source]
    };
    let all = |of: source::Experiment, threads: Vec<usize>| {
        fits.iter()
            .flat_map(|&fit| plan.of_source(experiment, of, fit, &threads))
            .collect()
    };
    match experiment {
        Experiment::Displacement => all(
            source::Experiment::Displacement,
            plan.threads(&[DISPLACEMENT_THREADS]),
        ),
        Experiment::Invalidation => all(
            source::Experiment::Invalidation,
            plan.threads(&INVALIDATION_THREADS),
        ),
        Experiment::MessageSize => all(
            source::Experiment::MessageSize,
            plan.threads(&MESSAGE_THREADS),
        ),
        Experiment::Listing => vec![plan.listing()],
        Experiment::Auto => plan.auto(),
        // These are computed and not run.
        Experiment::Distances => Vec::new(),
    }
}

struct CasePlan<'a> {
    options: &'a MessagePassingOptions,
    cores: usize,
    cache_lines: usize,
}

impl CasePlan<'_> {
    /// Those that were asked for; or those of the source's that there are cores for, and where it
    /// had more all cores.
    fn threads(&self, of_source: &[usize]) -> Vec<usize> {
        if !self.options.threads.is_empty() {
            return self.options.threads.clone();
        }
        let cores = self.cores.max(2);
        let mut threads: Vec<usize> = of_source.iter().map(|&wanted| wanted.min(cores)).collect();
        threads.dedup();
        threads
    }

    fn base(&self) -> Config {
        Config {
            seconds: self.options.seconds(),
            warm_up_seconds: 0.1,
            repetitions: self.options.repeats(),
            seed: self.options.seed,
            defects: self.options.defects,
            ..Config::default()
        }
    }

    /// A value of x is a round: what slows the machine down for a while slows all its cases.
    fn of_source(
        &self,
        experiment: Experiment,
        of: source::Experiment,
        fit: Fit,
        threads: &[usize],
    ) -> Vec<Round> {
        let sizes = fit.sizes(self.cache_lines);
        let mut cells = source::cells(of, sizes, Some(threads), &self.base());
        if experiment == Experiment::Displacement {
            let alone = cells.iter().filter_map(as_many_loops).collect::<Vec<_>>();
            cells.extend(alone);
        }
        let mut places: Vec<usize> = Vec::new();
        for cell in &cells {
            if !places.contains(&cell.x) {
                places.push(cell.x);
            }
        }
        if self.options.quick {
            // The first and the last stay.
            let last = places.len().saturating_sub(1);
            let thin = |(at, x)| (at % 2 == 0 || at == last).then_some(x);
            places = places
                .iter()
                .copied()
                .enumerate()
                .filter_map(thin)
                .collect();
        }
        let round = |x: usize| Round {
            cases: cells
                .iter()
                .filter(|cell| cell.x == x)
                .map(|cell| Case {
                    experiment,
                    fit,
                    x,
                    config: cell.config.clone(),
                })
                .collect(),
            repeats: self.options.repeats(),
        };
        places.into_iter().map(round).collect()
    }

    /// Plans each defect with several numbers of lines to be modified, one run each: what is
    /// counted does not vary.
    fn listing(&self) -> Round {
        let mut cases = Vec::new();
        for modified_lines in [1, 8, 16, 32, 64, 127] {
            let mut push = |defects: Defects| {
                cases.push(Case {
                    experiment: Experiment::Listing,
                    fit: Fit::Source,
                    x: modified_lines,
                    config: Config {
                        mode: Mode::Lock,
                        threads: 1,
                        local_lines: 128,
                        section_lines: 128,
                        modified_lines,
                        seconds: 0.02,
                        warm_up_seconds: 0.0,
                        defects,
                        ..self.base()
                    },
                });
            };
            push(Defects::default());
            for (name, _) in DEFECTS {
                let mut defects = Defects::default();
                // All of the list are known.
                let _ = set_defect(&mut defects, name);
                push(defects);
            }
        }
        Round { cases, repeats: 1 }
    }

    /// Every mode in each cell of the grid, with Hearth's own queue: it is the modes that are
    /// compared, as a program would have them.
    fn auto(&self) -> Vec<Round> {
        let base = Config {
            queue: Queue::Lines,
            drain_all: true,
            warm_up_seconds: 0.5,
            seconds: 2.0 * self.options.seconds(),
            ..self.base()
        };
        let mut loops = vec![1, self.cores.max(2)];
        if !self.options.threads.is_empty() {
            loops.clone_from(&self.options.threads);
        }
        loops.dedup();
        let sizes = Fit::Machine.sizes(self.cache_lines);
        let mut cells = grid::plan(sizes, &loops, &base);
        if self.options.quick {
            let mut at = 0;
            cells.retain(|_| {
                at += 1;
                at % 6 == 1
            });
        }
        let round = |cell: Cell| {
            let modes = [Mode::Lock, Mode::Combine, Mode::Message, Mode::Auto];
            let case = |mode| Case {
                experiment: Experiment::Auto,
                fit: Fit::Machine,
                x: cell.x,
                config: Config {
                    mode,
                    ..cell.config.clone()
                },
            };
            Round {
                cases: modes.map(case).to_vec(),
                repeats: self.options.repeats(),
            }
        };
        cells.into_iter().map(round).collect()
    }
}

/// Under the lock with as many loops as there are clients by message: what the server's core adds
/// is then seen apart from what its cache does.
fn as_many_loops(cell: &Cell) -> Option<Cell> {
    let is_locked = cell.config.mode == Mode::Lock && cell.config.threads > 1;
    is_locked.then(|| Cell {
        config: Config {
            threads: cell.config.threads - 1,
            ..cell.config.clone()
        },
        ..cell.clone()
    })
}
