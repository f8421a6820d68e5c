//! Options of the study: experiments, runs, thread counts, cachet's path.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::StudyError;
use crate::study::{Choice, define_experiments};

define_experiments! {
    Optimisations = "optimisations": "the plain asynchronous version and what each optimisation adds",
    Sections = "sections": "writes only: cycles in the section, workers bound and unbound",
    Evicting = "evicting": "ten times as much data as memory",
    Threads = "threads": "throughput by threads and mix, two generators",
}

/// Options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemcachedOptions {
    /// Short runs, few of them, one mix: a look, not a result.
    pub quick: bool,
    /// Runs of each server under each load; `None` for 5, or 2 with short ones.
    pub repeats: Option<u32>,
    /// Experiments to run; empty for all.
    pub experiments: Vec<Experiment>,
    /// Server threads; empty for what the machine carries.
    pub threads: Vec<u32>,
    /// Path of cachet; searched beside the command and among programs if not given.
    pub cachet: Option<PathBuf>,
}

const REPEATS_MAX: u32 = 1000;
const THREADS_MAX: u32 = 1024;
/// The source's largest.
const THREADS_OF_SOURCE: u32 = 30;

impl MemcachedOptions {
    /// Runs of each server under each load.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 5 })
    }

    /// Length of the measured part of a run, in milliseconds. The experiment of throughput by
    /// threads and mix has many runs.
    #[must_use]
    pub const fn run_ms(&self, experiment: Experiment) -> u64 {
        match (experiment, self.quick) {
            (_, true) => 300,
            (Experiment::Threads, false) => 1000,
            (_, false) => 2000,
        }
    }

    /// Shares of reads in percent: the source's mixes.
    #[must_use]
    pub const fn mixes(&self) -> &'static [u32] {
        if self.quick { &[70] } else { &[70, 75, 80] }
    }

    /// Keys, each with 64 bytes and a value of 1,024.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        if self.quick { 10_000 } else { 100_000 }
    }

    /// Server threads on `cores` cores: 1, 2, 4 and so on, the cores themselves, and twice as many.
    #[must_use]
    pub fn threads(&self, cores: usize) -> Vec<u32> {
        let cores = u32::try_from(cores).unwrap_or(1).max(1);
        let mut counts = self.threads.clone();
        if counts.is_empty() && self.quick {
            counts = vec![1, cores.min(2)];
        } else if counts.is_empty() {
            let doubling = (0..6).map(|k| 1 << k).filter(|&count| count < cores);
            counts = doubling.chain([cores, 2 * cores]).collect();
            counts.retain(|&count| count <= THREADS_OF_SOURCE.max(cores));
        }
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// True if this experiment is wanted.
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }
}

impl Choice for MemcachedOptions {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn check(&self) -> Result<(), StudyError> {
        StudyError::check("repeats", self.repeats, REPEATS_MAX)?;
        let mut threads = self.threads.iter();
        threads.try_for_each(|&threads| StudyError::check("threads", Some(threads), THREADS_MAX))
    }

    /// More experiments, repeats and thread counts may be asked for later.
    fn differs(&self, other: &MemcachedOptions) -> Option<&'static str> {
        (self.quick != other.quick).then_some("--quick")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_follow_the_cores() {
        let options = MemcachedOptions::default();
        assert_eq!(options.threads(1), [1, 2]);
        assert_eq!(options.threads(2), [1, 2, 4]);
        assert_eq!(options.threads(6), [1, 2, 4, 6, 12]);
        assert_eq!(options.threads(64), [1, 2, 4, 8, 16, 32, 64]);
        let given = MemcachedOptions {
            threads: vec![3, 1, 3],
            ..MemcachedOptions::default()
        };
        assert_eq!(given.threads(2), [1, 3]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let none = MemcachedOptions {
            threads: vec![0],
            ..MemcachedOptions::default()
        };
        assert!(none.check().unwrap_err().to_string().contains("1 to 1024"));
        assert!(MemcachedOptions::default().check().is_ok());
        let nothing = ["nothing".to_owned()];
        assert!(crate::study::experiments::<Experiment>(&nothing).is_err());
    }
}
