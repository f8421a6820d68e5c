//! The plan of runs: every case of an experiment.

use serde::{Deserialize, Serialize};

use super::options::{Experiment, InsenseMulticoreOptions};
use super::placements::PLACEMENTS;
use super::ways::{HEAPS, WAYS};
use super::workloads::{Load, Workload};
use crate::study::{self, Round};

/// Carriers of components, by the command's names; the alternative is plain C.
pub const CARRIERS: [&str; 2] = ["threads", "workers"];
/// The carrier of C programs: the kernel's threads, without Insense.
pub const C: &str = "c";

/// One way of running a load.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The load's name.
    pub load: String,
    /// `threads`, `workers` or `c`.
    pub carrier: String,
    /// A name of [`WAYS`].
    pub heaps: String,
    /// A name of [`PLACEMENTS`].
    pub placement: String,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        self.row().replace(',', " ")
    }

    fn row(&self) -> String {
        let Case {
            load,
            carrier,
            heaps,
            placement,
            ..
        } = self;
        format!("{load},{carrier},{heaps},{placement}")
    }
}

/// All rounds of an experiment: loads with their cases.
#[must_use]
pub fn rounds(
    experiment: Experiment,
    options: &InsenseMulticoreOptions,
) -> Vec<(Load, Round<Case>)> {
    let repeats = options.repeats();
    let round = |load: Load, repeats, cases: Vec<[&str; 3]>| {
        let case = |[carrier, heaps, placement]: [&str; 3]| Case {
            experiment,
            load: load.id(),
            carrier: carrier.to_owned(),
            heaps: heaps.to_owned(),
            placement: placement.to_owned(),
        };
        let cases = cases.into_iter().map(case).collect();
        (load, Round { cases, repeats })
    };
    match experiment {
        Experiment::List => lists(options)
            .into_iter()
            .map(|load| round(load, repeats, of_list()))
            .collect(),
        Experiment::Memory => Workload::ALL
            .into_iter()
            .filter_map(|workload| options.loads(workload).pop())
            .map(|load| round(load, 1, of_memory(load.workload)))
            .collect(),
        Experiment::Misses => misses(options)
            .into_iter()
            .map(|load| round(load, 1, of_misses()))
            .collect(),
        _ => {
            let workload = experiment.workload().into_iter();
            let loads = workload.flat_map(|workload| options.loads(workload));
            loads
                .map(|load| round(load, repeats, matrix(load.workload)))
                .collect()
        }
    }
}

/// Every carrier, heap and placement; then C.
fn matrix(workload: Workload) -> Vec<[&'static str; 3]> {
    let suiting = || {
        PLACEMENTS
            .iter()
            .filter(move |placement| placement.suits(workload))
    };
    let mut cases = Vec::new();
    for carrier in CARRIERS {
        for heaps in HEAPS {
            let placements = suiting().filter(|p| carrier == "workers" || !p.for_workers_only);
            cases.extend(placements.map(|placement| [carrier, heaps, placement.id]));
        }
    }
    let in_c = suiting().filter(|placement| placement.is_in_c());
    cases.extend(in_c.map(|placement| [C, "malloc", placement.id]));
    cases
}

/// Fewer passes than for the heaps alone: a search through the list takes its time.
fn lists(options: &InsenseMulticoreOptions) -> Vec<Load> {
    let (one, four) = if options.quick {
        (400, 100)
    } else {
        (2_000, 1_000)
    };
    let load = |(groups, passes)| Load {
        workload: Workload::Alloc,
        groups,
        rows: 1000,
        passes,
        rounds: 1,
    };
    [(1, one), (4, four)].map(load).to_vec()
}

/// Every way under threads, as the source's components had, in the source's three placements; the
/// search, which is slow, in one. The same in C, and the two ends on workers.
fn of_list() -> Vec<[&'static str; 3]> {
    let mut cases = Vec::new();
    for placement in ["os", "spread", "single"] {
        for way in WAYS
            .iter()
            .filter(|way| way.id != "searched" || placement == "os")
        {
            cases.push(["threads", way.id, placement]);
            if way.is_in_c() && placement == "os" {
                cases.push([C, way.id, placement]);
            }
        }
    }
    cases.extend(["private", "shared", "malloc", "listed"].map(|way| ["workers", way, "os"]));
    cases
}

fn of_memory(workload: Workload) -> Vec<[&'static str; 3]> {
    let mut cases = vec![[C, "malloc", "os"]];
    for carrier in CARRIERS {
        cases.extend(HEAPS.map(|heaps| [carrier, heaps, "os"]));
    }
    if workload == Workload::Alloc {
        let rebuilt = ["malloc", "listed", "source-private"];
        cases.extend(rebuilt.map(|heaps| ["threads", heaps, "os"]));
    }
    cases
}

/// Cachegrind is slow, and the misses are those of first touches: passes hardly add to them.
fn misses(options: &InsenseMulticoreOptions) -> Vec<Load> {
    let passes = if options.quick { 50 } else { 1_000 };
    let load = |rows| Load {
        workload: Workload::Cache,
        groups: 4,
        rows,
        passes,
        rounds: 1,
    };
    let rows: &[u32] = if options.quick { &[250] } else { &[250, 850] };
    rows.iter().copied().map(load).collect()
}

fn of_misses() -> Vec<[&'static str; 3]> {
    let mut cases = Vec::new();
    for placement in ["os", "single", "spread"] {
        for heaps in ["private", "shared", "malloc", "listed", "source-private"] {
            cases.push(["threads", heaps, placement]);
        }
    }
    cases
}
