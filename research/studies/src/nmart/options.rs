//! Options of the study: experiments, runs, sizes, allocators.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

define_experiments! {
    Zones = "zones": "which node is taken from next: firmware's and measured order",
    Distances = "distances": "distances of nodes, measured as published",
    Workloads = "workloads": "what programs ask for: sizes, intervals, holding times",
    Fragments = "fragments": "bytes provided for bytes requested",
    Memory = "memory": "peak virtual memory and data",
    Times = "times": "longest and total times of malloc and free, real programs",
    Sharing = "sharing": "false sharing: cache-scratch and cache-thrash",
    Larson = "larson": "a server whose threads free each other's blocks",
    Shbench = "shbench": "random sizes freed in random order, four threads",
    Mean = "mean": "synthetic load from means, 2 to 64 threads, local and remote",
    Cdf = "cdf": "synthetic load from histograms, the same",
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
/// Runs of a program whose floor is taken: as many as take a machine's interruptions out.
pub(super) const FLOOR_RUNS: u32 = 7;

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
            (Experiment::Fragments | Experiment::Workloads | Experiment::Distances, _) => 1,
            (Experiment::Memory, true) => 1,
            (_, true) => 2,
            (Experiment::Times, false) => 10,
            (Experiment::Memory | Experiment::Mean | Experiment::Cdf, false) => 3,
            (_, false) => 5,
        };
        let repeats = self.repeats.filter(|_| usual > 1).unwrap_or(usual);
        match experiment {
            // At least as many as the floor needs, except in a quick look.
            Experiment::Times if !self.quick => repeats.max(FLOOR_RUNS),
            _ => repeats,
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
}

impl Choice for NmartOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)
    }

    /// More experiments and allocators may be asked for later.
    fn differs(&self, other: &NmartOptions) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.repeats != other.repeats).then_some("the repeats")
    }
}
