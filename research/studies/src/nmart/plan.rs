//! The runs of the study: which workloads there are, and how each is started.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::options::{Experiment, NmartOptions};
use super::programs::Program;
use crate::study;

/// A workload with an allocator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The workload, such as `gawk2`, `larson`, `mean/8/local`.
    pub workload: String,
    /// The published workload beside it, if there is one.
    pub stands_for: Option<String>,
    /// The allocator's id; empty for the distances of nodes, which need none.
    pub allocator: String,
}

impl Case {
    /// The case of the nodes' distances.
    pub(super) fn distances() -> Case {
        Case {
            experiment: Experiment::Distances,
            workload: "nodes".to_owned(),
            stands_for: None,
            allocator: String::new(),
        }
    }
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let (experiment, workload) = (self.experiment.id(), &self.workload);
        match self.allocator.as_str() {
            "" => format!("{experiment}: {workload}"),
            allocator => format!("{experiment}: {workload} with {allocator}"),
        }
    }

    fn row(&self) -> String {
        format!("{},{}", self.workload, self.allocator)
    }

    /// The floor is the least of all runs.
    fn is_whole(&self) -> bool {
        true
    }
}

/// A workload of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) experiment: Experiment,
    pub(super) workload: String,
    stands_for: String,
    pub(super) command: PathBuf,
    pub(super) arguments: Vec<String>,
    /// True if it has one thread, which stays on one core.
    pub(super) is_pinned: bool,
    /// The node that it runs on and those that it takes memory from.
    pub(super) placed: Option<(usize, Vec<usize>)>,
}

impl Load {
    /// A program of one thread.
    pub(super) fn program(experiment: Experiment, program: &Program) -> Load {
        Load {
            experiment,
            workload: program.id.clone(),
            stands_for: program.stands_for.clone(),
            command: program.command.clone(),
            arguments: program.arguments.clone(),
            is_pinned: true,
            placed: None,
        }
    }

    /// A load of ours, of that name in the source, too.
    fn ours(experiment: Experiment, workload: &str, command: &Path, arguments: &str) -> Load {
        Load {
            experiment,
            workload: workload.to_owned(),
            stands_for: workload.to_owned(),
            command: command.to_owned(),
            arguments: arguments.split(' ').map(str::to_owned).collect(),
            is_pinned: false,
            placed: None,
        }
    }

    pub(super) fn with(&self, allocator: &str) -> Case {
        Case {
            experiment: self.experiment,
            workload: self.workload.clone(),
            stands_for: Some(self.stands_for.clone()),
            allocator: allocator.to_owned(),
        }
    }

    pub(super) fn is_of(&self, case: &Case) -> bool {
        self.experiment == case.experiment && self.workload == case.workload
    }
}

/// All workloads that are run with each allocator, in order: of `programs`, and of `command`, the
/// program of loads, if it is there.
pub(super) fn loads(
    options: &NmartOptions,
    programs: &[Program],
    command: Option<&Path>,
    nodes: &[usize],
) -> Vec<Load> {
    let mut loads = Vec::new();
    for experiment in Experiment::ALL.into_iter().filter(|&e| options.wants(e)) {
        if let Experiment::Workloads
        | Experiment::Fragments
        | Experiment::Memory
        | Experiment::Times = experiment
        {
            let programs = programs.iter();
            loads.extend(programs.map(|program| Load::program(experiment, program)));
        }
        if let Some(command) = command {
            loads.extend(match experiment {
                Experiment::Mean | Experiment::Cdf => {
                    synthetic(experiment, options, command, nodes)
                }
                _ => threaded(experiment, options, command),
            });
        }
    }
    loads
}

/// The programs with threads, as far as they belong to an experiment.
fn threaded(experiment: Experiment, options: &NmartOptions, command: &Path) -> Vec<Load> {
    let sizes = options.sizes();
    let (seconds, threads) = sizes.larson;
    let (sharing, shbench) = (sizes.sharing, sizes.shbench);
    let larson = format!("larson {seconds} 32 32768 1000 1000 927 {threads}");
    let all = [
        (
            Experiment::Sharing,
            "cache-scratch",
            format!("cache-scratch {sharing}"),
        ),
        (
            Experiment::Sharing,
            "cache-thrash",
            format!("cache-thrash {sharing}"),
        ),
        (Experiment::Larson, "larson", larson),
        (
            Experiment::Shbench,
            "shbench",
            format!("shbench {shbench} 1"),
        ),
    ];
    let wanted = all
        .iter()
        .filter(|(of, ..)| *of == experiment || experiment == Experiment::Memory);
    wanted
        .map(|(_, name, arguments)| Load::ours(experiment, name, command, arguments))
        .collect()
}

/// The synthetic load: on one node with its own memory, and with that of all others.
fn synthetic(
    experiment: Experiment,
    options: &NmartOptions,
    command: &Path,
    nodes: &[usize],
) -> Vec<Load> {
    let (sizes, id) = (options.sizes(), experiment.id());
    // The source's nodes, where there are as many.
    let node = match experiment {
        Experiment::Mean => nodes.get(1),
        _ => nodes.get(3),
    };
    let node = node.or(nodes.first()).copied().unwrap_or(0);
    let others: Vec<usize> = nodes.iter().copied().filter(|&n| n != node).collect();
    let mut sides = vec![("local", vec![node])];
    if !others.is_empty() {
        sides.push(("remote", others));
    }
    let mut loads = Vec::new();
    for &threads in sizes.threads {
        for (side, memory) in &sides {
            let arguments = format!(
                "{id} {threads} {} as-published {} {} {} {} virtual all 1",
                sizes.requests, sizes.large_mb.0, sizes.large_mb.1, sizes.passes.0, sizes.passes.1,
            );
            let workload = format!("{id}/{threads}/{side}");
            let mut load = Load::ours(experiment, &workload, command, &arguments);
            load.placed = (nodes.len() > 1).then(|| (node, memory.clone()));
            loads.push(load);
        }
    }
    loads
}
