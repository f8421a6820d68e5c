//! What can be chosen: experiments, runs, thread counts, where cachet is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::StudyError;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// Throughput by threads and mix: the source's figure 4.1.
    Threads,
    /// Each of the source's optimisations, alone and with others.
    Optimisations,
    /// Writes only: how long the section takes, workers bound to cores or not.
    Sections,
    /// Ten times as much data as memory.
    Evicting,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Experiment; 4] = [
        Experiment::Optimisations,
        Experiment::Sections,
        Experiment::Evicting,
        Experiment::Threads,
    ];

    /// What it is called on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Experiment::Threads => "threads",
            Experiment::Optimisations => "optimisations",
            Experiment::Sections => "sections",
            Experiment::Evicting => "evicting",
        }
    }

    /// What it measures, in one line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Experiment::Threads => "throughput by threads and mix, two generators",
            Experiment::Optimisations => {
                "the plain asynchronous version and what each optimisation adds"
            }
            Experiment::Sections => "writes only: cycles in the section, workers bound and unbound",
            Experiment::Evicting => "ten times as much data as memory",
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

/// What to run, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Short runs, few of them, one mix: a look, not a result.
    pub quick: bool,
    /// Runs of each server under each load; `None` for 5, or 2 with short ones.
    pub repeats: Option<u32>,
    /// Which experiments; empty for all.
    pub experiments: Vec<Experiment>,
    /// Server threads; empty for what the machine carries.
    pub threads: Vec<u32>,
    /// Where cachet is; beside the command or among programs if not given.
    pub cachet: Option<PathBuf>,
}

const REPEATS_MAX: u32 = 1000;
const THREADS_MAX: u32 = 1024;
/// The source's largest.
const THREADS_OF_SOURCE: u32 = 30;

impl Options {
    /// Runs of each server under each load.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(if self.quick { 2 } else { 5 })
    }

    /// How long a run counts, in milliseconds. Of throughput by threads and mix there are many.
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

    /// Server threads on so many cores: 1, 2, 4 and so on, the cores themselves, and twice as many.
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

    /// Is this experiment wanted?
    #[must_use]
    pub fn wants(&self, experiment: Experiment) -> bool {
        self.experiments.is_empty() || self.experiments.contains(&experiment)
    }

    /// Checks what was asked for.
    ///
    /// # Errors
    /// [`StudyError::Count`] for no repeats or threads, or too many.
    pub fn check(&self) -> Result<(), StudyError> {
        let wrong = |what, given, largest| {
            Err(StudyError::Count {
                what,
                given,
                largest,
            })
        };
        if let Some(given) = self.repeats
            && (given == 0 || given > REPEATS_MAX)
        {
            return wrong("repeats", given, REPEATS_MAX);
        }
        let odd = self.threads.iter().find(|&&n| n == 0 || n > THREADS_MAX);
        match odd {
            Some(&given) => wrong("threads", given, THREADS_MAX),
            None => Ok(()),
        }
    }

    /// What keeps results made with these options from being joined by results made with others.
    /// More experiments and thread counts may be asked for later.
    #[must_use]
    pub fn differs(&self, other: &Options) -> Option<&'static str> {
        if self.quick != other.quick {
            return Some("--quick");
        }
        (self.repeats != other.repeats).then_some("the repeats")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_follow_the_cores() {
        let options = Options::default();
        assert_eq!(options.threads(1), [1, 2]);
        assert_eq!(options.threads(2), [1, 2, 4]);
        assert_eq!(options.threads(6), [1, 2, 4, 6, 12]);
        assert_eq!(options.threads(64), [1, 2, 4, 8, 16, 32, 64]);
        let given = Options {
            threads: vec![3, 1, 3],
            ..Options::default()
        };
        assert_eq!(given.threads(2), [1, 3]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let none = Options {
            threads: vec![0],
            ..Options::default()
        };
        assert!(none.check().unwrap_err().to_string().contains("1 to 1024"));
        assert!(Options::default().check().is_ok());
        assert!(Experiment::parse("nothing").is_err());
    }
}
