//! The plan of runs: the cells of the grid with their threads, work and cores.

use serde::{Deserialize, Serialize};

use super::grid::{GRID, Kind};
use super::options::{EventPatternsOptions, Experiment};
use crate::study;

/// The server on half of the cores, the clients on the others.
pub const APART: &str = "apart";
/// Both on all.
pub const TOGETHER: &str = "together";

/// One way of serving.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// A name of `hearth_net::Pattern`.
    pub pattern: String,
    /// A name of `hearth_net::Mechanism`.
    pub mechanism: String,
    /// [`APART`] or [`TOGETHER`].
    pub layout: String,
    /// The server's threads: those that wait and those that work.
    pub threads: usize,
    /// Time that a request takes, by busy waiting.
    pub work_us: u32,
    /// Operations are timed.
    pub is_timed: bool,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            pattern,
            mechanism,
            layout,
            threads,
            work_us,
            ..
        } = self;
        format!("{pattern} {mechanism}, {threads} threads, {work_us} µs, {layout}")
    }

    fn row(&self) -> String {
        let Case {
            pattern,
            mechanism,
            layout,
            threads,
            work_us,
            is_timed,
            ..
        } = self;
        format!("{pattern},{mechanism},{layout},{threads},{work_us},{is_timed}")
    }
}

/// The source's numbers of threads as far as they matter: its peaks are at 10 and 13, and it ended
/// at 16.
const THREADS: [usize; 9] = [1, 2, 3, 4, 6, 8, 10, 13, 16];
const THREADS_QUICK: [usize; 3] = [1, 2, 4];
/// Thread counts where all cores are shared, and with work.
const THREADS_FEW: [usize; 4] = [1, 2, 4, 16];
/// Work of a request, µs. With more than these the work is most of a request.
const WORK_US: [u32; 2] = [10, 100];

/// All cases of an experiment.
#[must_use]
pub fn cases(experiment: Experiment, options: &EventPatternsOptions) -> Vec<Case> {
    let all: &[usize] = if options.quick {
        &THREADS_QUICK
    } else {
        &THREADS
    };
    let few = if options.quick {
        &THREADS_QUICK[..]
    } else {
        &THREADS_FEW
    };
    match experiment {
        Experiment::Threads => of(experiment, APART, all, 0),
        Experiment::Together => of(experiment, TOGETHER, few, 0),
        Experiment::Work => {
            let layouts = [APART, TOGETHER].into_iter();
            let each = layouts.flat_map(|layout| WORK_US.map(|work_us| (layout, work_us)));
            each.flat_map(|(layout, work_us)| of(experiment, layout, few, work_us))
                .collect()
        }
        Experiment::Timers => {
            let timed = of(experiment, APART, &[2], 0).into_iter();
            let timed = timed.filter(|case| case.mechanism == "edge");
            timed
                .flat_map(|case| {
                    [true, false].map(|is_timed| Case {
                        is_timed,
                        ..case.clone()
                    })
                })
                .collect()
        }
    }
}

fn of(experiment: Experiment, layout: &str, threads: &[usize], work_us: u32) -> Vec<Case> {
    let case = |kind: &Kind, threads| Case {
        experiment,
        pattern: kind.pattern.to_owned(),
        mechanism: kind.mechanism.to_owned(),
        layout: layout.to_owned(),
        threads,
        work_us,
        is_timed: true,
    };
    let mut cases = Vec::new();
    for &threads in threads {
        let able = GRID.iter().filter(|kind| kind.threads_min <= threads);
        cases.extend(able.map(|kind| case(kind, threads)));
    }
    cases
}
