//! The plan of runs: so many programs of a kind of work, as gangs or without.

use serde::{Deserialize, Serialize};

use super::instance::{Way, Work};
use super::options::{CoschedulingOptions, Experiment};
use crate::study::{self, Round};

/// A run: its programs, and how they share the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// How members are held; [`Way::Free`] without gangs.
    pub way: Way,
    /// Whether gangs keep cores to themselves that they do not use.
    pub is_isolated: bool,
    /// The work of each program.
    pub work: Work,
    /// Number of programs.
    pub programs: usize,
    /// Threads of each, and cores of its gang.
    pub threads: usize,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            work,
            programs,
            threads,
            ..
        } = self;
        format!(
            "{}, {programs} programs of {threads} threads, {}",
            self.way(),
            work.id()
        )
    }

    fn row(&self) -> String {
        format!(
            "{},{},{},{}",
            self.way(),
            self.work.id(),
            self.programs,
            self.threads
        )
    }
}

impl Case {
    /// The way's name in tables.
    #[must_use]
    pub fn way(&self) -> String {
        let isolated = if self.is_isolated { "-isolated" } else { "" };
        format!("{}{isolated}", self.way.id())
    }
}

/// The rounds of an experiment on so many CPUs.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &CoschedulingOptions,
    cpus: usize,
) -> Vec<Round<Case>> {
    let case = |way: Way, work: Work, programs: usize, threads: usize| Case {
        experiment,
        way,
        is_isolated: false,
        work,
        programs,
        threads,
    };
    let cases = match experiment {
        Experiment::Barriers => {
            let one = [Way::Free, Way::Stop, Way::Gate].map(|way| (way, 1));
            let two = Way::ALL.map(|way| (way, 2));
            let both = one.into_iter().chain(two);
            both.map(|(way, programs)| case(way, Work::Barrier, programs, cpus))
                .collect()
        }
        Experiment::Packing => {
            let mut cases = vec![case(Way::Free, Work::Barrier, 1, cpus)];
            let ways = [Way::Free, Way::Stop, Way::Gate];
            cases.extend(ways.map(|way| case(way, Work::Barrier, 4, cpus)));
            // Narrower than two threads there is nobody to wait for.
            if cpus >= 4 {
                cases.push(case(Way::Free, Work::Barrier, 1, cpus / 2));
                let ways = [Way::Free, Way::Stop];
                cases.extend(ways.map(|way| case(way, Work::Barrier, 8, cpus / 2)));
            }
            cases
        }
        Experiment::Half => {
            let mut cases = Vec::new();
            for work in [Work::Half, Work::Moving] {
                cases.push(case(Way::Free, work, 1, cpus));
                cases.push(case(Way::Free, work, 4, cpus));
                cases.push(case(Way::Stop, work, 4, cpus));
                cases.push(Case {
                    is_isolated: true,
                    ..case(Way::Stop, work, 4, cpus)
                });
            }
            cases
        }
    };
    vec![Round {
        cases,
        repeats: options.repeats(),
    }]
}
