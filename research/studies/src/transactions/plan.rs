//! The plan of runs: programs by ways to trace them.

use hearth_transactions::contender::{CONTENDERS, Tracing};
use hearth_transactions::kernels::Name;
use serde::{Deserialize, Serialize};

use super::options::{Experiment, TransactionsOptions};
use crate::study::{self, Round};

/// The source's workers. More than the machine has cores would measure the scheduler.
const THREADS_MAX: usize = 8;
/// The way of the runs that all others are compared with.
pub const UNTRACED: &str = "untraced";
/// The bank's name.
pub const BANK: &str = "bank";

/// A program with a way to trace it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// [`BANK`], or a kernel's name.
    pub program: String,
    /// A name of [`CONTENDERS`].
    pub tracing: String,
    /// Its threads.
    pub threads: usize,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            program,
            tracing,
            threads,
            ..
        } = self;
        format!("{program} {tracing}, {threads} threads")
    }

    fn row(&self) -> String {
        let Case {
            program,
            tracing,
            threads,
            ..
        } = self;
        format!("{program},{tracing},{threads}")
    }
}

/// Kinds of the kernels' experiment: the source's of its figures, and ours.
pub const OF_KERNELS: [&str; 10] = [
    UNTRACED,
    "hearth-reduced",
    "hearth-full",
    "reduced-bin10k",
    "reduced-lz4-3ct",
    "reduced-zstd",
    "full-bin10k",
    "full-bin1m",
    "full-lz4-3ct",
    "full-zstd",
];
const ALONE: [&str; 6] = [
    UNTRACED,
    "hearth-reduced",
    "hearth-full",
    "full-bin10k",
    "full-lz4-1ct",
    "full-lz4-3ct",
];

/// Threads of the bank on so many cores: two at least, as one alone has no conflicts.
#[must_use]
pub fn threads(cores: usize) -> usize {
    cores.clamp(2, THREADS_MAX)
}

/// The rounds of an experiment: one a program, so that its ways take turns.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &TransactionsOptions,
    cores: usize,
) -> Vec<Round<Case>> {
    let round = |program: &str, ways: &[&str], threads| Round {
        cases: ways
            .iter()
            .map(|&tracing| Case {
                experiment,
                program: program.to_owned(),
                tracing: tracing.to_owned(),
                threads,
            })
            .collect(),
        repeats: options.repeats(),
    };
    let named = |is_outside: bool| -> Vec<&str> {
        let of = CONTENDERS.iter().filter(|(name, tracing)| {
            matches!(tracing, Tracing::Outside { .. }) == is_outside || *name == UNTRACED
        });
        of.map(|(name, _)| *name).collect()
    };
    let all = threads(cores);
    match experiment {
        Experiment::Bank => vec![round(BANK, &named(false), all)],
        Experiment::Outside => vec![round(BANK, &named(true), all)],
        Experiment::Alone => vec![round(BANK, &ALONE, 1)],
        Experiment::Kernels => {
            let wanted = Name::ALL.into_iter().filter(|name| *name != Name::Bank);
            wanted
                .map(|name| round(name.id(), &OF_KERNELS, all))
                .collect()
        }
    }
}
