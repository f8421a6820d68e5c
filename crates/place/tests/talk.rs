//! Comparison of the optimiser with the baselines and with all placements, and its invariants.

mod support;

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_place::baselines::Baseline;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::{Component, Connection, Graph};
use hearth_place::slots::{CpuSlot, Machine, Placement};
use hearth_place::talk::{EXACT_MAX, Effort, talk};

/// Number of random instances; a build for tests is slow enough with fewer.
const INSTANCES: u64 = if cfg!(debug_assertions) { 140 } else { 1400 };

#[test]
fn never_worse_than_a_baseline() {
    let machines: Vec<Machine> = support::MACHINES
        .iter()
        .map(|m| support::machine(m))
        .collect();
    let options = CostOptions::default();
    let mut better = [0; 3];
    for seed in 0..INSTANCES {
        let mut random = fastrand::Rng::with_seed(seed);
        let machine = &machines[random.usize(..machines.len())];
        let count = random.usize(1..=64);
        let graph = support::graph(&mut random, count);
        let effort = Effort {
            steps: 30_000,
            seed,
        };
        let ours = talk(&graph, machine, &options, effort, None).expect("it can be placed");
        for (at, baseline) in Baseline::ALL.into_iter().enumerate() {
            let theirs = baseline
                .place(&graph, machine, &options)
                .expect("a placement");
            let theirs = evaluate(&graph, machine, &options, &theirs).expect("it fits");
            let worse = ours.cost.total_ns > theirs.total_ns * (1.0 + 1e-9);
            assert!(
                ours.cost.over_bytes < theirs.over_bytes
                    || (ours.cost.over_bytes <= theirs.over_bytes && !worse),
                "seed {seed}: {} and {baseline:?} {}",
                ours.cost.total_ns,
                theirs.total_ns
            );
            better[at] += u32::from(ours.cost.total_ns < 0.99 * theirs.total_ns);
        }
    }
    // It would not be an optimiser if it only returned its start.
    assert!(
        better.iter().all(|b| u64::from(*b) > INSTANCES / 4),
        "{better:?}"
    );
}

#[test]
fn small_graphs_are_placed_as_well_as_any() {
    let options = CostOptions::default();
    let mut proved = 0;
    let (machines, instances) = (&support::MACHINES[..4], 60);
    for seed in 0..instances {
        let mut random = fastrand::Rng::with_seed(1000 + seed);
        let machine = support::machine(machines[random.usize(..machines.len())]);
        // Few enough to try one by one.
        let most = match machine.slots().len() {
            2 => 10,
            4 => 6,
            _ => 4,
        };
        let count = random.usize(2..=most);
        let graph = support::graph(&mut random, count);
        let ours = talk(&graph, &machine, &options, Effort::default(), None).expect("a placement");
        let best = support::least_of_all(&graph, &machine, &options);
        let share = ours.cost.total_ns / best;
        assert!(share <= 1.01, "seed {seed}: {share} times the best");
        if ours.proved {
            proved += 1;
            assert!(
                share <= 1.0 + 1e-6,
                "seed {seed}: proved, and {share} times the best"
            );
        }
    }
    assert!(proved > instances / 2, "{proved} proved");
}

#[test]
fn pins_and_allowed_cores_hold_and_nothing_is_left_to_chance() {
    let topology = synthetic::parse(support::MACHINES[4]).expect("a machine");
    let profile = Profile::assumed(topology);
    let model = Model::new(&profile).expect("a sound profile");
    let options = CostOptions::default();
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let allowed: Vec<OsThread> = (0..32).filter(|_| random.bool()).map(OsThread).collect();
        let machine = Machine::new(&profile, &model, &allowed).expect("a machine");
        let count = random.usize(1..40);
        let mut graph = support::graph(&mut random, count);
        for component in &mut graph.components {
            if random.u32(..4) == 0 && !allowed.is_empty() {
                component.pinned = Some(allowed[random.usize(..allowed.len())]);
            }
        }
        let effort = Effort {
            steps: 10_000,
            seed,
        };
        let placed = talk(&graph, &machine, &options, effort, None).expect("a placement");
        for (component, slot) in graph.components.iter().zip(&placed.placement.0) {
            let cpu = machine.os(*slot);
            assert!(allowed.is_empty() || allowed.contains(&cpu));
            let pin = component
                .pinned
                .filter(|pin| machine.slot_of(*pin).is_some());
            assert!(pin.is_none_or(|pin| pin == cpu), "seed {seed}");
        }
        let again = talk(&graph, &machine, &options, effort, None).expect("a placement");
        assert_eq!(placed, again, "seed {seed}");
    }
}

#[test]
fn heaps_fit_where_they_can() {
    let machine = support::machine("2 packages, 2 cores, memory 4G, l3 8M per package");
    let mut graph = Graph::new();
    let ids: Vec<_> = (0..16)
        .map(|at| {
            graph.add(
                Component::new(format!("c{at}"))
                    .heap_bytes(4.5e8)
                    .work_ns(10.0),
            )
        })
        .collect();
    for pair in ids.windows(2) {
        graph.connect(Connection::new(pair[0], pair[1]).messages(10.0));
    }
    let placed = talk(
        &graph,
        &machine,
        &CostOptions::default(),
        Effort::default(),
        None,
    );
    assert_eq!(placed.expect("a placement").cost.over_bytes, 0.0);
}

#[test]
fn who_only_talks_stays_together_and_who_only_computes_does_not() {
    let machine = support::machine(support::MACHINES[3]);
    let place = |work: f64, messages: f64| {
        let mut graph = Graph::new();
        let ids: Vec<_> = (0..4)
            .map(|at| graph.add(Component::new(format!("c{at}")).work_ns(work)))
            .collect();
        for pair in ids.windows(2) {
            graph.connect(Connection::new(pair[0], pair[1]).messages(messages));
        }
        let placed = talk(
            &graph,
            &machine,
            &CostOptions::default(),
            Effort::default(),
            None,
        );
        placed.expect("a placement")
    };
    assert_eq!(place(0.0, 10.0).placement.slots_used(), 1);
    assert_eq!(place(1e6, 1.0).placement.slots_used(), 4);
    assert!(place(0.0, 10.0).proved);
    assert_eq!(EXACT_MAX, 12);
}

#[test]
fn a_graph_of_thousands_is_placed_better_than_in_turn() {
    let machine = support::machine(support::MACHINES[4]);
    let count = if cfg!(debug_assertions) {
        3_000
    } else {
        30_000
    };
    let mut graph = Graph::new();
    let ids: Vec<_> = (0..count)
        .map(|at| graph.add(Component::new(format!("c{at}")).work_ns(100.0)))
        .collect();
    for pair in ids.windows(2) {
        graph.connect(Connection::new(pair[0], pair[1]).messages(5.0).bytes(64.0));
    }
    let options = CostOptions::default();
    let ours = talk(&graph, &machine, &options, Effort::default(), None).expect("a placement");
    let turn = (0..count).map(|c| CpuSlot(u32::try_from(c % 32).expect("few")));
    let turn = evaluate(&graph, &machine, &options, &Placement(turn.collect())).expect("it fits");
    assert!(ours.cost.total_ns < 0.5 * turn.total_ns);
}

/// A component that stays with the rest of a group pays for its lock, too, when another leaves: one
/// group is divided, and not two.
#[test]
fn as_few_groups_are_divided_as_can_be() {
    let machine = support::machine("1 package, 2 cores");
    let mut graph = Graph::new();
    let groups: Vec<Vec<_>> = (0..3)
        .map(|group| {
            let hub = graph.add(Component::new(format!("dispatcher{group}")).work_ns(1e3));
            let workers = (0..4).map(|at| {
                let worker = Component::new(format!("worker{group}.{at}")).work_ns(1e6);
                let worker = graph.add(worker);
                let jobs = Connection::new(hub, worker).messages(100.0);
                graph.connect(jobs.carrier(Carrier::Worker).shared());
                worker
            });
            workers.collect()
        })
        .collect();
    let placed = talk(
        &graph,
        &machine,
        &CostOptions::default(),
        Effort::default(),
        None,
    );
    let at = placed.expect("a placement").placement.0;
    let divided = groups.iter().filter(|workers| {
        let homes = workers.iter().map(|worker| at[worker.index()]);
        homes.collect::<std::collections::BTreeSet<_>>().len() > 1
    });
    assert_eq!(divided.count(), 1, "{at:?}");
}
