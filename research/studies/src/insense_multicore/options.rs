//! What can be chosen: experiments, runs, sizes.

use serde::{Deserialize, Serialize};

use super::workloads::{Load, Workload};
use crate::StudyError;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// Allocation.
    Alloc,
    /// What the source's list under a lock adds.
    List,
    /// Arrays gone over again and again.
    Cache,
    /// Messages and nothing else.
    SenderReceiver,
    /// N to 1.
    ClientServer,
    /// 1 to N.
    DispatchWorker,
    /// Side by side.
    NoCommunication,
    /// Resident memory.
    Memory,
    /// Simulated cache misses.
    Misses,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Experiment; 9] = [
        Experiment::Alloc,
        Experiment::List,
        Experiment::Cache,
        Experiment::SenderReceiver,
        Experiment::ClientServer,
        Experiment::DispatchWorker,
        Experiment::NoCommunication,
        Experiment::Memory,
        Experiment::Misses,
    ];

    /// What it is called on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Experiment::List => "list",
            Experiment::Memory => "memory",
            Experiment::Misses => "misses",
            Experiment::Alloc => Workload::Alloc.id(),
            Experiment::Cache => Workload::Cache.id(),
            Experiment::SenderReceiver => Workload::SenderReceiver.id(),
            Experiment::ClientServer => Workload::ClientServer.id(),
            Experiment::DispatchWorker => Workload::DispatchWorker.id(),
            Experiment::NoCommunication => Workload::NoCommunication.id(),
        }
    }

    /// What it measures, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Experiment::Alloc => "an array made and dropped in each pass; heaps and placements",
            Experiment::List => {
                "allocation with the source's heaps rebuilt: what its list under a lock adds"
            }
            Experiment::Cache => "an array of each component's own, gone over again and again",
            Experiment::SenderReceiver => "two pairs, messages and nothing else",
            Experiment::ClientServer => "twelve clients, three servers that compute",
            Experiment::DispatchWorker => "three dispatchers, twelve workers that compute",
            Experiment::NoCommunication => "four components that compute side by side",
            Experiment::Memory => "resident memory, at most and as it grows",
            Experiment::Misses => "cache misses by Cachegrind, as published",
        }
    }

    /// The workload that it is about, if it is about one alone.
    #[must_use]
    pub fn workload(self) -> Option<Workload> {
        Workload::ALL
            .into_iter()
            .find(|workload| workload.id() == self.id())
    }

    /// The experiment of that name.
    ///
    /// # Errors
    /// [`StudyError::UnknownExperiment`] if there is none.
    pub fn parse(text: &str) -> Result<Experiment, StudyError> {
        let found = Experiment::ALL.into_iter().find(|e| e.id() == text);
        found.ok_or_else(|| StudyError::UnknownExperiment {
            given: text.to_owned(),
            known: Experiment::ALL.iter().map(|e| e.id()).collect(),
        })
    }
}

/// What to run, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Small loads and few runs: a look, not a result.
    pub quick: bool,
    /// Runs of each program in each way; `None` for 7, or 3 with small loads.
    pub repeats: Option<u32>,
    /// Which experiments; empty for all.
    pub experiments: Vec<Experiment>,
    /// What random placements begin with.
    pub seed: u64,
}

const REPEATS_MAX: u32 = 1000;

impl Options {
    /// Runs of each program in each way.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 7 })
    }

    /// Is this experiment wanted?
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// Checks what was asked for.
    ///
    /// # Errors
    /// [`StudyError::Count`] for no repeats, or too many.
    pub fn check(&self) -> Result<(), StudyError> {
        match self.repeats {
            Some(given) if given == 0 || given > REPEATS_MAX => Err(StudyError::Count {
                what: "repeats",
                given,
                largest: REPEATS_MAX,
            }),
            _ => Ok(()),
        }
    }

    /// What keeps results made with these options from being joined by results made with others.
    /// More experiments may be asked for later.
    #[must_use]
    pub fn differs(&self, other: &Options) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        if self.seed != other.seed {
            return Some("the seed");
        }
        (self.repeats != other.repeats).then_some("the repeats")
    }

    /// A workload's loads: the source's parameters as far as it gives them, or small ones.
    #[must_use]
    pub fn loads(&self, workload: Workload) -> Vec<Load> {
        let load = |groups, rows, passes, rounds| Load {
            workload,
            groups,
            rows,
            passes,
            rounds,
        };
        match (workload, self.quick) {
            (Workload::Alloc, false) => [(1, 100), (1, 1000), (4, 100), (4, 1000)]
                .map(|(groups, rows)| load(groups, rows, 5_000, 1))
                .to_vec(),
            (Workload::Alloc, true) => [(1, 400), (4, 200)]
                .map(|(groups, passes)| load(groups, 1000, passes, 1))
                .to_vec(),
            // 250 rows by the listing, which the published counts fit; 850 by the text.
            (Workload::Cache, false) => [250, 850].map(|rows| load(4, rows, 50_000, 1)).to_vec(),
            (Workload::Cache, true) => vec![load(4, 250, 20_000, 1)],
            // 100 messages in the listing take less time than the program's start.
            (Workload::SenderReceiver, false) => vec![load(2, 1, 100_000, 1)],
            (Workload::SenderReceiver, true) => vec![load(2, 1, 3_000, 1)],
            (Workload::ClientServer | Workload::DispatchWorker, false) => {
                vec![load(3, 1000, 100, 100)]
            }
            (Workload::ClientServer | Workload::DispatchWorker, true) => {
                vec![load(3, 1000, 20, 150)]
            }
            (Workload::NoCommunication, false) => {
                [250, 1000].map(|rows| load(4, rows, 100, 1000)).to_vec()
            }
            (Workload::NoCommunication, true) => vec![load(4, 1000, 20, 1000)],
        }
    }
}
