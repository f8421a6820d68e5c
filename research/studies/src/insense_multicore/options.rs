//! Options of the study: experiments, runs, sizes.

use serde::{Deserialize, Serialize};

use super::workloads::{Load, Workload};
use crate::StudyError;
use crate::study::{Choice, define_experiments};

define_experiments! {
    Alloc = "alloc": "an array made and dropped in each pass; heaps and placements",
    List = "list": "allocation with the source's heaps rebuilt: what its list under a lock adds",
    Cache = "cache": "an array of each component's own, gone over again and again",
    SenderReceiver = "sender-receiver": "two pairs, messages and nothing else",
    ClientServer = "client-server": "twelve clients, three servers that compute",
    DispatchWorker = "dispatch-worker": "three dispatchers, twelve workers that compute",
    NoCommunication = "no-communication": "four components that compute side by side",
    Memory = "memory": "resident memory, at most and as it grows",
    Misses = "misses": "cache misses by Cachegrind, as published",
}

impl Experiment {
    /// The workload that it is about, if it is about one alone.
    #[must_use]
    pub fn workload(self) -> Option<Workload> {
        let mut all = Workload::ALL.into_iter();
        all.find(|workload| workload.id() == self.id())
    }
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsenseMulticoreOptions {
    /// Small loads and few runs: a look, not a result.
    pub quick: bool,
    /// Runs of each program in each way; `None` for 7, or 3 with small loads.
    pub repeats: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
    /// Seed of random placements.
    pub seed: u64,
}

const REPEATS_MAX: u32 = 1000;

impl InsenseMulticoreOptions {
    /// Runs of each program in each way.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 3 } else { 7 })
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
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

impl Choice for InsenseMulticoreOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)
    }

    /// More experiments and repeats may be asked for later.
    fn differs(&self, other: &InsenseMulticoreOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.seed != other.seed).then_some("the seed")
    }
}
