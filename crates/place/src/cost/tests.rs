use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_model::fitted::Model;

use super::problem::Problem;
use super::state::{Home, State};
use super::{Bottleneck, CostOptions, evaluate};
use crate::graph::{Component, ComponentId, Connection, Graph};
use crate::search::Score;
use crate::slots::{CpuSlot, Machine, Placement};

fn machine(description: &str) -> Machine {
    let topology = synthetic::parse(description).expect("a machine");
    let profile = Profile::assumed(topology);
    let model = Model::new(&profile).expect("a sound profile");
    Machine::new(&profile, &model, &[]).expect("a machine")
}

fn cost(graph: &Graph, machine: &Machine, slots: &[u32]) -> super::Breakdown {
    let placement = Placement(slots.iter().map(|s| CpuSlot(*s)).collect());
    evaluate(graph, machine, &CostOptions::default(), &placement).expect("it fits")
}

/// A graph with everything at once: working sets, heaps, requests. Pins do not matter.
fn random_graph(random: &mut fastrand::Rng, count: usize) -> Graph {
    let mut graph = Graph::new();
    for at in 0..count {
        graph.add(
            Component::new(format!("c{at}"))
                .work_ns(random.f64() * 1000.0)
                .heap_bytes(random.f64() * 3e9)
                .working_set_bytes(random.f64() * 3e6),
        );
    }
    for _ in 0..2 * count {
        let end = |random: &mut fastrand::Rng| {
            ComponentId(u32::try_from(random.usize(..count)).expect("few"))
        };
        let connection = Connection::new(end(random), end(random))
            .messages(random.f64() * 5.0)
            .bytes(f64::from(random.u32(..10_000)));
        if random.bool() {
            graph.call(connection, 100.0);
        } else {
            graph.connect(connection);
        }
    }
    graph
}

fn assert_close(ours: Score, new: Score) {
    for (a, b) in [
        (ours.over, new.over),
        (ours.total, new.total),
        (ours.squares, new.squares),
    ] {
        assert!((a - b).abs() <= 1e-6 * (1.0 + b.abs()), "{a} and {b}");
    }
}

#[test]
fn moving_one_by_one_is_the_same_as_counting_anew() {
    let machine = machine(
        "2 packages, 3 cores, 2 threads, memory 8G, l1d 32K per core, l2 1M per core, \
         l3 8M per package",
    )
    .with_quota(5.0);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20 {
        let count = random.usize(1..20);
        let graph = random_graph(&mut random, count);
        let options = CostOptions::default();
        let problem = Problem::new(&graph, &machine, &options);
        let home = Home {
            at: vec![CpuSlot(0); count],
            away_ns: vec![3.0; count],
        };
        let mut state = State::new(&problem, &vec![CpuSlot(0); count]).with_home(&home);
        for _ in 0..200 {
            let moves: Vec<_> = (0..random.usize(1..=count.min(3)))
                .map(|at| ((at * 7 + 3) % count, CpuSlot(random.u32(..12))))
                .collect();
            let mut once = moves.clone();
            once.sort_unstable();
            once.dedup_by_key(|(component, _)| *component);
            let before = state.score();
            let weighed = state.weigh(&once);
            assert_close(state.score(), before);
            for (component, slot) in once {
                state.put(component, slot);
            }
            assert_close(state.score(), weighed);
        }
        let anew = State::new(&problem, state.placement()).with_home(&home);
        assert_close(state.score(), anew.score());
        let breakdown = anew.breakdown();
        let sum: f64 = breakdown.loads.iter().map(|l| l.communication_ns).sum();
        assert!((sum - breakdown.communication_ns).abs() <= 1e-6 * (1.0 + sum));
    }
}

#[test]
fn who_takes_turns_gains_nothing_by_two_cores() {
    let machine = machine("1 package, 4 cores, l2 4M per package");
    let mut graph = Graph::new();
    let client = graph.add(Component::new("client").work_ns(1000.0));
    let server = graph.add(Component::new("server").work_ns(1000.0));
    graph.call(
        Connection::new(client, server).messages(1.0).bytes(8.0),
        8.0,
    );
    let (near, far) = (
        cost(&graph, &machine, &[0, 0]),
        cost(&graph, &machine, &[0, 1]),
    );
    assert!(near.total_ns < far.total_ns);
    assert_eq!(far.bottleneck, Bottleneck::Cycle(client));
    assert!(far.bottleneck_ns >= 2000.0);
    // If they could, they would.
    for connection in &mut graph.connections {
        connection.turn = crate::graph::Turn::Free;
    }
    assert!(cost(&graph, &machine, &[0, 1]).total_ns < cost(&graph, &machine, &[0, 0]).total_ns);
}

#[test]
fn a_server_of_many_clients_counts_its_share_for_each() {
    let machine = machine("1 package, 8 cores, l2 4M per package");
    let mut graph = Graph::new();
    let server = graph.add(Component::new("server").work_ns(4000.0));
    for at in 0..4 {
        let client = graph.add(Component::new(format!("client{at}")).work_ns(100.0));
        graph.call(
            Connection::new(client, server).messages(1.0).bytes(8.0),
            8.0,
        );
    }
    let apart = cost(&graph, &machine, &[0, 1, 2, 3, 4]);
    assert_eq!(apart.bottleneck, Bottleneck::Slot(CpuSlot(0)));
    assert!(apart.bottleneck_ns < 5000.0, "not 4 × 4000");
}

#[test]
fn sharing_a_cache_costs_when_it_overflows() {
    let machine = machine("2 packages, 2 cores, l2 4M per package");
    let mut graph = Graph::new();
    for name in ["a", "b"] {
        graph.add(Component::new(name).work_ns(1000.0).working_set_bytes(3e6));
    }
    assert!(cost(&graph, &machine, &[0, 1]).sharing_ns > 0.0);
    assert!(cost(&graph, &machine, &[0, 2]).sharing_ns == 0.0);
}

#[test]
fn heaps_beyond_a_node_are_told() {
    let machine = machine("2 packages, 1 core, memory 1G");
    let mut graph = Graph::new();
    for name in ["a", "b"] {
        graph.add(Component::new(name).heap_bytes(0.75 * f64::from(1 << 30)));
    }
    assert!(cost(&graph, &machine, &[0, 0]).over_bytes > 0.0);
    assert!(cost(&graph, &machine, &[0, 1]).over_bytes == 0.0);
}

#[test]
fn siblings_share_their_core() {
    let machine = machine("1 package, 2 cores, 2 threads");
    let mut graph = Graph::new();
    for name in ["a", "b"] {
        graph.add(Component::new(name).work_ns(1000.0));
    }
    let together = cost(&graph, &machine, &[0, 1]);
    assert_eq!(together.bottleneck, Bottleneck::Core(CpuSlot(0)));
    assert!(cost(&graph, &machine, &[0, 2]).total_ns < together.total_ns);
    assert!(together.total_ns < cost(&graph, &machine, &[0, 0]).total_ns);
}
