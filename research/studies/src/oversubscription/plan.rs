//! The plan of runs: ways of A by its threads, beside B's.

use serde::{Deserialize, Serialize};

use super::matrix::Partition;
use super::options::{Experiment, OversubscriptionOptions};
use super::policies::Policy;
use crate::study::{self, Round};

/// The way of runs without A.
pub const NOBODY: &str = "nobody";
/// The way of simulated runs whose threads never move to another core.
pub const PINNED: &str = "static-pinned";
/// Cores and B's threads of the source's machine and of the simulated one.
pub const SOURCE: (usize, usize) = (8, 4);
/// Numbers of threads of a sweep, beyond which it takes steps.
const SWEEP: usize = 64;

/// A way to run A, beside B.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// [`NOBODY`], a name of [`Partition`] or of [`Policy`], or [`PINNED`].
    pub way: String,
    /// A's threads; 0 where a policy chooses them.
    pub threads: usize,
    /// B's threads; 0 without B.
    pub foreign: usize,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            way,
            threads,
            foreign,
            ..
        } = self;
        match threads {
            0 => format!("{way} beside {foreign} threads"),
            _ => format!("{way}, {threads} threads beside {foreign}"),
        }
    }

    fn row(&self) -> String {
        format!("{},{},{}", self.way, self.threads, self.foreign)
    }
}

/// B's threads in the sweeps: half of the CPUs, as in the source.
#[must_use]
pub fn foreign(cpus: usize) -> usize {
    (cpus / 2).max(1)
}

/// Threads of a sweep from 1 to `most`: all, or on large machines some, and always those around N
/// and around N less B's threads.
#[must_use]
pub fn sweep(most: usize, cpus: usize) -> Vec<usize> {
    let step = most.div_ceil(SWEEP).max(1);
    let room = cpus.saturating_sub(foreign(cpus));
    let always = [
        1,
        room,
        room + 1,
        cpus,
        cpus + 1,
        2 * cpus,
        2 * cpus + 1,
        most,
    ];
    let is_in = |threads: &usize| threads.is_multiple_of(step) || always.contains(threads);
    (1..=most).filter(is_in).collect()
}

/// The rounds of an experiment on so many CPUs.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &OversubscriptionOptions,
    cpus: usize,
) -> Vec<Round<Case>> {
    let case = |way: &str, threads: usize, foreign: usize| Case {
        experiment,
        way: way.to_owned(),
        threads,
        foreign,
    };
    let round = |cases: Vec<Case>| Round {
        cases,
        repeats: options.repeats(),
    };
    let (fixed, stealing) = (Partition::Static.id(), Partition::Stealing.id());
    let r = foreign(cpus);
    let swept = |ways: &[&str], most: usize, cpus: usize, r: usize| {
        let threads = sweep(most, cpus).into_iter();
        let cases = threads.flat_map(|threads| {
            let with = move |way: &&str| [case(way, threads, 0), case(way, threads, r)];
            ways.iter().flat_map(with).collect::<Vec<_>>()
        });
        cases.collect::<Vec<_>>()
    };
    match experiment {
        Experiment::Impact => {
            let mut cases = swept(&[stealing], 2 * cpus, cpus, r);
            cases.push(case(NOBODY, 0, r));
            vec![round(cases)]
        }
        Experiment::Artifact => vec![round(swept(&[fixed, stealing], 4 * cpus, cpus, r))],
        Experiment::Policies => of_policies(cpus)
            .into_iter()
            .map(|r| {
                let mut cases: Vec<Case> = Policy::ALL
                    .iter()
                    .map(|policy| case(policy.id(), 0, r))
                    .collect();
                if r > 0 {
                    cases.push(case(NOBODY, 0, r));
                }
                round(cases)
            })
            .collect(),
        Experiment::Simulated => {
            let (cpus, r) = SOURCE;
            vec![Round {
                cases: swept(&[fixed, PINNED, stealing], 4 * cpus, cpus, r),
                // Every run would be the same.
                repeats: 1,
            }]
        }
    }
}

/// B's threads beside which policies choose: 0 to N, or on large machines a few of these.
#[must_use]
pub fn of_policies(cpus: usize) -> Vec<usize> {
    let all = match cpus {
        0..=4 => (0..=cpus).collect(),
        _ => vec![0, 1, cpus / 2, cpus - 1, cpus],
    };
    let mut all: Vec<usize> = all;
    all.dedup();
    all
}
