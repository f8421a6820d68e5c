//! Machines and random graphs for tests.
#![allow(dead_code, reason = "each test uses what it needs")]

pub(crate) mod cheaper;

use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::{Component, ComponentId, Connection, Graph};
use hearth_place::slots::{CpuSlot, Machine, Placement};

/// Machines from one core to 128 hardware threads.
pub(crate) const MACHINES: &[&str] = &[
    "1 package, 2 cores, l2 1M per core",
    "1 package, 4 cores, 2 threads, l1d 32K per core, l2 1M per core, l3 8M per package",
    "2 packages, 2 cores, 1 node, l1d 32K per core, l2 4M per package",
    "1 package, 8 cores, memory 16G, l2 512K per core, l3 16M per 4 cores",
    "2 packages, 16 cores, memory 64G, l2 1M per core, l3 32M per package, distances 10 21/21 10",
    "4 packages, 8 cores, 8 nodes, memory 16G, l1d 128K per core, l2 512K per core, \
     l3 12M per package",
    "2 packages, 32 cores, 2 threads, memory 256G, l2 1M per core, l3 32M per 8 cores",
];

pub(crate) fn machine(description: &str) -> Machine {
    let profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let model = Model::new(&profile).expect("a sound profile");
    Machine::new(&profile, &model, &[]).expect("a machine")
}

fn id(at: usize) -> ComponentId {
    ComponentId(u32::try_from(at).expect("few"))
}

/// A graph of one of several shapes: chains, stars, trees, grids, groups, random.
pub(crate) fn graph(random: &mut fastrand::Rng, count: usize) -> Graph {
    let mut graph = Graph::new();
    let scale = 10_f64.powf(1.0 + 4.0 * random.f64());
    let uneven = random.bool();
    let sets = random.u32(..3) == 0;
    for at in 0..count {
        let work = if uneven {
            random.f64().powi(4) * 5.0
        } else {
            1.0
        };
        let mut component = Component::new(format!("c{at}")).work_ns(work * scale);
        if sets {
            component = component.working_set_bytes(random.f64() * 1e6);
        }
        graph.add(component.heap_bytes(random.f64() * 1e6));
    }
    let shape = random.u32(..6);
    let turns = random.u32(..4) == 0;
    let side = (count as f64).sqrt().ceil() as usize;
    let add = |graph: &mut Graph, random: &mut fastrand::Rng, a: usize, b: usize| {
        let connection = Connection::new(id(a), id(b))
            .messages(random.f64() * 10.0)
            .bytes(2_f64.powf(random.f64() * 16.0).floor());
        if turns && random.bool() {
            graph.call(connection, 64.0);
        } else {
            graph.connect(connection);
        }
    };
    for at in 1..count {
        match shape {
            0 => add(&mut graph, random, at - 1, at),
            1 => add(&mut graph, random, at, 0),
            2 => add(&mut graph, random, (at - 1) / 2, at),
            3 => {
                add(&mut graph, random, at - 1, at);
                if at >= side {
                    add(&mut graph, random, at - side, at);
                }
            }
            4 => add(&mut graph, random, at - at % 4, at),
            _ => {
                let (a, b) = (random.usize(..count), random.usize(..count));
                add(&mut graph, random, a, b);
            }
        }
    }
    if random.u32(..5) == 0 {
        graph.components[0].pinned = Some(OsThread(1));
    }
    graph
}

/// The least J of all placements, tried one by one.
pub(crate) fn least_of_all(graph: &Graph, machine: &Machine, options: &CostOptions) -> f64 {
    let (count, slots) = (graph.components.len(), machine.slots().len());
    let mut at = vec![0_u32; count];
    let mut best = f64::INFINITY;
    loop {
        let placement = Placement(at.iter().map(|s| CpuSlot(*s)).collect());
        let pinned = graph.components.iter().zip(&placement.0);
        if pinned.into_iter().all(|(c, s)| {
            c.pinned
                .and_then(|cpu| machine.slot_of(cpu))
                .is_none_or(|pin| pin == *s)
        }) {
            let cost = evaluate(graph, machine, options, &placement).expect("it fits");
            best = best.min(cost.total_ns);
        }
        let Some(next) = at.iter().position(|s| (*s as usize) + 1 < slots) else {
            return best;
        };
        at[..next].fill(0);
        at[next] += 1;
    }
}
