//! The plan of runs: every server under every load.

use serde::{Deserialize, Serialize};

use super::kinds::{KINDS, LOCK, MEMCACHED, MESSAGE, PLAIN};
use super::options::{Experiment, MemcachedOptions};
use crate::pages::counted;
use crate::study::{self, Round};

/// Our generator.
pub const OURS: &str = "cachet-load";
/// libmemcached's.
pub const MEMCASLAP: &str = "memcaslap";

/// One server under one load.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// Reads in a hundred requests.
    pub reads: u32,
    /// [`OURS`] or [`MEMCASLAP`].
    pub load: String,
    /// Server threads, and threads of the load.
    pub threads: u32,
    /// A name of [`KINDS`].
    pub kind: String,
    /// True if the server's threads are bound to cores.
    pub is_bound: bool,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        format!(
            "{} {} % reads, {}{}, {}: {}",
            self.experiment.id(),
            self.reads,
            counted(self.threads as usize, "thread"),
            if self.is_bound { " bound" } else { "" },
            self.load,
            self.kind
        )
    }

    fn row(&self) -> String {
        let bound = if self.is_bound { "yes" } else { "no" };
        let Case {
            reads,
            load,
            threads,
            kind,
            ..
        } = self;
        format!("{reads},{load},{threads},{kind},{bound}")
    }
}

/// Memory in which all values fit, MiB.
const ROOMY_MIB: usize = 1024;
/// Memory limits for ten times as much data: in long and in short runs, MiB.
const TIGHT_MIB: (usize, usize) = (64, 16);

/// Memory that values may need in MiB, and the number of keys.
#[must_use]
pub const fn data(experiment: Experiment, options: &MemcachedOptions) -> (usize, u64) {
    let tight = if options.quick {
        TIGHT_MIB.1
    } else {
        TIGHT_MIB.0
    };
    match experiment {
        Experiment::Evicting => (tight, (10 * tight as u64) << 10),
        _ => (ROOMY_MIB, options.keys()),
    }
}

/// All rounds of an experiment on `cores` cores: servers that run at the same time and get the same
/// load in turns.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &MemcachedOptions,
    cores: usize,
) -> Vec<Round<Case>> {
    let counts = options.threads(cores);
    let round = |threads, reads, load: &str, kinds: &[(&str, bool)]| Round {
        cases: kinds
            .iter()
            .map(|&(kind, is_bound)| Case {
                experiment,
                reads,
                load: load.to_owned(),
                threads,
                kind: kind.to_owned(),
                is_bound,
            })
            .collect(),
        repeats: options.repeats(),
    };
    let unbound = |kinds: &[&'static str]| -> Vec<(&'static str, bool)> {
        kinds.iter().map(|&kind| (kind, false)).collect()
    };
    match experiment {
        Experiment::Threads => {
            let kinds = unbound(&[MEMCACHED, LOCK, MESSAGE, "auto"]);
            let mut rounds = Vec::new();
            // The load that claims are judged by comes first, in case there is no time for both.
            for load in [OURS, MEMCASLAP] {
                for &threads in &counts {
                    // Mixes are compared with each other, so they take turns, too.
                    let of_mixes = options.mixes().iter();
                    let cases = of_mixes.flat_map(|&mix| round(threads, mix, load, &kinds).cases);
                    rounds.push(Round {
                        cases: cases.collect(),
                        ..round(threads, 0, load, &[])
                    });
                }
            }
            rounds
        }
        Experiment::Optimisations => {
            let all: Vec<&'static str> = KINDS
                .iter()
                .map(|kind| kind.id)
                .filter(|id| !matches!(*id, MEMCACHED | "auto"))
                .collect();
            with_and_beyond(&counts, cores)
                .into_iter()
                .map(|threads| round(threads, 70, OURS, &unbound(&all)))
                .collect()
        }
        Experiment::Sections => counts
            .iter()
            .map(|&threads| {
                let kinds = [
                    (LOCK, false),
                    (LOCK, true),
                    (MESSAGE, false),
                    (MESSAGE, true),
                ];
                round(threads, 0, OURS, &kinds)
            })
            .collect(),
        Experiment::Evicting => with_and_beyond(&counts, cores)
            .into_iter()
            .take(1)
            .map(|threads| {
                let kinds = unbound(&[MEMCACHED, LOCK, PLAIN, MESSAGE]);
                round(threads, 70, OURS, &kinds)
            })
            .collect(),
    }
}

/// The largest count that has a core for each thread, and the largest of all.
fn with_and_beyond(counts: &[u32], cores: usize) -> Vec<u32> {
    let fits = counts.iter().copied().filter(|&n| n as usize <= cores);
    let mut found: Vec<u32> = fits.max().into_iter().collect();
    found.extend(counts.iter().copied().max());
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_and_count_has_every_server_under_both_loads() {
        let rounds = rounds(Experiment::Threads, &MemcachedOptions::default(), 2);
        assert_eq!(rounds.len(), 3 * 2);
        assert!(rounds.iter().all(|round| round.cases.len() == 4 * 3));
        let of = |reads, threads| {
            let cases = rounds.iter().flat_map(|round| &round.cases);
            cases
                .filter(|case| case.reads == reads && case.threads == threads)
                .count()
        };
        assert_eq!(of(75, 4), 8);
        assert_eq!(of(90, 4), 0);
    }

    #[test]
    fn all_eight_combinations_are_there() {
        let rounds = rounds(Experiment::Optimisations, &MemcachedOptions::default(), 2);
        assert_eq!(rounds.len(), 2);
        assert_eq!(rounds[0].cases.len(), 11);
        assert_eq!(
            (rounds[0].cases[0].threads, rounds[1].cases[0].threads),
            (2, 4)
        );
    }

    #[test]
    fn ten_times_the_memory_is_asked_for() {
        let (memory_mib, keys) = data(Experiment::Evicting, &MemcachedOptions::default());
        assert_eq!(keys * 1024, (10 * memory_mib as u64) << 20);
        let rounds = rounds(Experiment::Evicting, &MemcachedOptions::default(), 2);
        assert_eq!(rounds.len(), 1);
    }
}
