//! Latencies of machines that are described, not measured.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;

use fastrand::Rng;
use hearth_machine::infer::{Latencies, Latency};
use hearth_machine::relation::{Closeness, Nodes, Relation};
use hearth_machine::synthetic;
use hearth_machine::topology::{OsThread, Thread, Topology};

/// Relative standard deviation of the noise: the goal of the project.
pub(crate) const NOISE: f64 = 0.1;

/// Machines whose trees must be found: name, description, and the firmware's claims if they differ.
pub(crate) const MACHINES: &[(&str, &str, Option<&str>)] = &[
    ("two cores", "2 cores", None),
    ("one core, two threads", "2 threads", None),
    ("flat of three", "3 cores", None),
    ("flat of four", "4 cores, l3 8M per package", None),
    ("flat of eight", "8 cores, l3 8M per package", None),
    ("flat of thirty-two", "32 cores, l3 8M per package", None),
    (
        "SMT laptop",
        "4 cores, 2 threads, l2 1M per core, l3 8M per package, numbering spread",
        None,
    ),
    (
        "SMT laptop, adjacent",
        "4 cores, 2 threads, l3 8M per package",
        None,
    ),
    (
        "four threads a core",
        "4 cores, 4 threads, l3 8M per package",
        None,
    ),
    (
        "eight threads a core, two packages",
        "2 packages, 3 cores, 8 threads",
        None,
    ),
    (
        "two small packages",
        "2 packages, 2 cores, l2 4M per package",
        None,
    ),
    (
        "two packages",
        "2 packages, 12 cores, l3 30M per package",
        None,
    ),
    (
        "two SMT packages",
        "2 packages, 8 cores, 2 threads, l3 16M per package, numbering spread",
        None,
    ),
    (
        "two SMT packages, dealt",
        "2 packages, 6 cores, 2 threads, l3 16M per package, numbering dealt",
        None,
    ),
    (
        "four packages",
        "4 packages, 4 cores, l3 2M per package",
        None,
    ),
    (
        "eight packages",
        "8 packages, 3 cores, l3 2M per package",
        None,
    ),
    (
        "eight SMT packages",
        "8 packages, 2 cores, 2 threads, l3 2M per package, numbering spread",
        None,
    ),
    (
        "eight nodes in four packages",
        "4 packages, 8 cores, 8 nodes, l3 12M per package",
        None,
    ),
    (
        "two nodes a package",
        "2 packages, 8 cores, 4 nodes, l3 16M per package",
        None,
    ),
    ("three nodes in one package", "9 cores, 3 nodes", None),
    (
        "clustered desktop",
        "8 cores, 2 threads, l3 16M per 4 cores, numbering spread",
        None,
    ),
    (
        "clustered desktop, no SMT",
        "12 cores, l3 16M per 3 cores",
        None,
    ),
    (
        "clustered server",
        "2 packages, 16 cores, l3 16M per 4 cores",
        None,
    ),
    (
        "clusters in clusters",
        "16 cores, l2 2M per 2 cores, l3 16M per 8 cores",
        None,
    ),
    (
        "pairs of cores on one L2",
        "2 packages, 4 cores, l2 4M per 2 cores",
        None,
    ),
    ("asymmetric packages", "8/4 cores, l3 16M per package", None),
    ("asymmetric clusters", "10 cores, l3 16M per 4 cores", None),
    (
        "three unequal packages, SMT",
        "2/4/6 cores, 2 threads, l3 16M per package",
        None,
    ),
    (
        "SMT off on some cores",
        "8 cores, 2 threads, l3 16M per package, numbering spread, offline 10-13",
        None,
    ),
    (
        "a package half offline",
        "2 packages, 6 cores, l3 16M per package, offline 7-9",
        None,
    ),
    (
        "holes",
        "2 packages, 4 cores, 2 threads, l3 16M per package, offline 0,5,11-12",
        None,
    ),
    (
        "memory nodes",
        "2 packages, 4 cores, 2 memory nodes, memory 4G/0/8G/8G, l3 8M per package",
        None,
    ),
    (
        "hidden SMT",
        "8 cores, 2 threads, l3 16M per package",
        Some("16 cores, l3 16M per package"),
    ),
    (
        "SMT that is not there",
        "16 cores, l3 16M per package",
        Some("8 cores, 2 threads, l3 16M per package"),
    ),
    (
        "siblings told wrong",
        "4 cores, 2 threads, l3 16M per package, numbering spread",
        Some("4 cores, 2 threads, l3 16M per package"),
    ),
    (
        "packages that are not there",
        "16 cores, l3 16M per package",
        Some("2 packages, 8 cores, l3 16M per package"),
    ),
    (
        "hidden packages",
        "2 packages, 8 cores, l3 16M per package",
        Some("16 cores, l3 64M per package"),
    ),
    (
        "one cache for two clusters",
        "8 cores, l3 16M per 4 cores",
        Some("8 cores, l3 32M per package"),
    ),
    (
        "nodes cut wrong",
        "2 packages, 6 cores, l3 16M per package",
        Some("3 packages, 4 cores, l3 16M per package"),
    ),
];

/// A described machine; one that cannot be read is a mistake in the test.
pub(crate) fn machine(description: &str) -> Topology {
    synthetic::parse(description).unwrap_or_else(|error| panic!("{description}: {error}"))
}

/// Cost of a pair without noise, in nanoseconds. The figures are of the order of those in
/// anchors-rest, section A.
pub(crate) fn cost_ns(relation: Relation) -> f64 {
    match (relation.closeness, relation.nodes) {
        (Closeness::Same, _) => 0.0,
        (Closeness::SmtSibling, _) => 8.0,
        (Closeness::SharedCache(..=2), _) => 18.0,
        (Closeness::SharedCache(_), Nodes::Same) => 40.0,
        (Closeness::SharedCache(_), Nodes::Other) => 62.0,
        (Closeness::SamePackage, Nodes::Same) => 85.0,
        (Closeness::SamePackage, Nodes::Other) => 130.0,
        (Closeness::OtherPackage, _) => 200.0,
    }
}

/// The groups formed by latencies without noise, including the whole machine.
pub(crate) fn groups(machine: &Topology) -> BTreeSet<Vec<OsThread>> {
    let cost = |a: Thread| -> Vec<f64> {
        let others = machine.all_threads();
        others.map(|b| cost_ns(machine.relation(a, b))).collect()
    };
    let mut groups = BTreeSet::new();
    for costs in machine.all_threads().map(cost) {
        let mut reaches = costs.clone();
        reaches.sort_by(f64::total_cmp);
        reaches.dedup();
        for reach in reaches {
            let near = machine.all_threads().filter(|b| costs[b.index()] <= reach);
            let mut group: Vec<OsThread> = near.map(|b| machine.os_thread(b)).collect();
            group.sort_unstable();
            if group.len() > 1 {
                groups.insert(group);
            }
        }
    }
    groups
}

/// One measurement of a pair: the noise multiplies, and the error says how large it is.
pub(crate) fn measure(machine: &Topology, a: OsThread, b: OsThread, rng: &mut Rng) -> Latency {
    let thread = |os| machine.thread_of(os).expect("the thread is online");
    let true_ns = cost_ns(machine.relation(thread(a), thread(b)));
    let ns = true_ns * (NOISE * normal(rng)).exp();
    Latency {
        ns,
        error_ns: NOISE * ns,
    }
}

/// All pairs of a machine.
pub(crate) fn measure_all(machine: &Topology, rng: &mut Rng) -> Latencies {
    let mut latencies = empty(machine);
    for (a, b) in latencies.pairs() {
        let latency = measure(machine, a, b, rng);
        latencies.set(a, b, latency).expect("it is a time");
    }
    latencies
}

pub(crate) fn empty(machine: &Topology) -> Latencies {
    let threads: Vec<OsThread> = machine.threads().iter().map(|thread| thread.os).collect();
    Latencies::new(&threads).expect("threads are told once")
}

/// A standard normal number, by Box and Muller.
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}
