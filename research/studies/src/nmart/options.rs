//! Options of the study: experiments, runs, sizes, allocators.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::StudyError;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// Characteristics of the programs' requests.
    Workloads,
    /// Longest and total times of `malloc` and `free`.
    Times,
    /// Bytes provided for bytes requested.
    Fragments,
    /// Peak memory.
    Memory,
    /// cache-scratch and cache-thrash.
    Sharing,
    /// The server whose threads release each other's blocks.
    Larson,
    /// Random sizes in random order.
    Shbench,
    /// The first synthetic model.
    Mean,
    /// The second.
    Cdf,
    /// The distances of nodes.
    Distances,
    /// The order in which nodes are taken from, simulated.
    Zones,
}

impl Experiment {
    /// All, in the order in which they run: the short ones first.
    pub const ALL: [Experiment; 11] = [
        Experiment::Zones,
        Experiment::Distances,
        Experiment::Workloads,
        Experiment::Fragments,
        Experiment::Memory,
        Experiment::Times,
        Experiment::Sharing,
        Experiment::Larson,
        Experiment::Shbench,
        Experiment::Mean,
        Experiment::Cdf,
    ];

    /// Its name on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Experiment::Workloads => "workloads",
            Experiment::Times => "times",
            Experiment::Fragments => "fragments",
            Experiment::Memory => "memory",
            Experiment::Sharing => "sharing",
            Experiment::Larson => "larson",
            Experiment::Shbench => "shbench",
            Experiment::Mean => "mean",
            Experiment::Cdf => "cdf",
            Experiment::Distances => "distances",
            Experiment::Zones => "zones",
        }
    }

    /// Its purpose, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Experiment::Workloads => "what programs ask for: sizes, intervals, holding times",
            Experiment::Times => "longest and total times of malloc and free, real programs",
            Experiment::Fragments => "bytes provided for bytes requested",
            Experiment::Memory => "peak virtual memory and data",
            Experiment::Sharing => "false sharing: cache-scratch and cache-thrash",
            Experiment::Larson => "a server whose threads free each other's blocks",
            Experiment::Shbench => "random sizes freed in random order, four threads",
            Experiment::Mean => "synthetic load from means, 2 to 64 threads, local and remote",
            Experiment::Cdf => "synthetic load from histograms, the same",
            Experiment::Distances => "distances of nodes, measured as published",
            Experiment::Zones => "which node is taken from next: firmware's and measured order",
        }
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

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NmartOptions {
    /// Small loads and few runs: a look, not a result.
    pub quick: bool,
    /// Runs of each program with each allocator; `None` for what suits the experiment.
    pub repeats: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
    /// Allocators to run with, by name; empty for all that are there.
    pub allocators: Vec<String>,
    /// Workloads to run, by name; empty for all.
    pub workloads: Vec<String>,
    /// Folder of the allocators as published, their meter and their load; beside the command if not
    /// given.
    pub objects: Option<PathBuf>,
}

const REPEATS_MAX: u32 = 1000;

/// The sizes of the loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// larson: seconds, threads; the other arguments are the source's.
    pub larson: (&'static str, u32),
    /// cache-scratch and cache-thrash: threads, iterations, bytes, writes.
    pub sharing: &'static str,
    /// shbench: blocks, threads.
    pub shbench: &'static str,
    /// The synthetic models: threads.
    pub threads: &'static [u32],
    /// Requests.
    pub requests: u32,
    /// The large block, MB.
    pub large_mb: (u32, u32),
    /// Numbers of passes over it.
    pub passes: (u32, u32),
    /// The distances' buffer.
    pub distance_bytes: usize,
    /// Copies for each processor.
    pub distance_repeats: u32,
}

impl NmartOptions {
    /// Runs of each program with each allocator. The source has 1000 for times and fragments, 100
    /// for memory and synthetic load, 400 for programs with threads; its fragments do not vary.
    #[must_use]
    pub fn repeats(&self, experiment: Experiment) -> u32 {
        let usual = match (experiment, self.quick) {
            (Experiment::Fragments | Experiment::Workloads, _) => 1,
            (Experiment::Memory, true) => 1,
            (_, true) => 2,
            (Experiment::Times, false) => 10,
            (Experiment::Memory | Experiment::Mean | Experiment::Cdf, false) => 3,
            (_, false) => 5,
        };
        match (self.repeats, experiment) {
            (Some(repeats), Experiment::Times) => repeats.max(1),
            (Some(repeats), _) if usual > 1 => repeats.max(1),
            _ => usual,
        }
    }

    /// The sizes of the loads: the source's, or small ones.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        if self.quick {
            return Sizes {
                larson: ("0.2", 4),
                sharing: "4 20 8 20000",
                shbench: "160000 4",
                threads: &[2, 8],
                requests: 5_000,
                large_mb: (4, 8),
                passes: (3, 5),
                distance_bytes: 8 << 20,
                distance_repeats: 3,
            };
        }
        Sizes {
            larson: ("1", 16),
            sharing: "32 100 8 1000000",
            shbench: "10000000 4",
            threads: &[2, 4, 8, 16, 32, 64],
            requests: 100_000,
            large_mb: (256, 512),
            passes: (30, 50),
            distance_bytes: 256 << 20,
            distance_repeats: 100,
        }
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// True if this workload is wanted.
    #[must_use]
    pub fn wants_workload(&self, name: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|wanted| wanted == name)
    }

    /// Checks the options.
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

    /// Names the difference that keeps results made with these options from being joined with
    /// results made with others. More experiments and allocators may be asked for later.
    #[must_use]
    pub fn differs(&self, other: &NmartOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.repeats != other.repeats).then_some("the repeats")
    }
}
