//! Plans for machines whose pairs of hardware threads have several states: chosen by the mean over
//! time, and told apart where the choice depends on the state.

use hearth_machine::profile::{Figure, PairState, PairTransfer, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::{OsThread, Thread};
use hearth_model::fitted::Model;
use hearth_place::cost::{CostOptions, evaluate, over_time_ns};
use hearth_place::graph::{Component, Connection, Graph};
use hearth_place::plan::{PlacementPlan, place};
use hearth_place::policy::Policy;
use hearth_place::slots::{CpuSlot, Machine, Placement};
use hearth_place::talk::Effort;

fn exact(ns: f64) -> Figure {
    Figure::measured(ns, ns, ns, 100, 0)
}

const INSTANCES: u32 = if cfg!(debug_assertions) { 4 } else { 40 };

/// Two hardware threads, or more of which the first two have these states.
fn machine(cores: u32, states: &[(f64, f64)]) -> Machine {
    let description = format!("1 package, {cores} cores, l1d 32K per core, l3 32M per package");
    let mut profile = Profile::assumed(synthetic::parse(&description).expect("a machine"));
    let mean: f64 = states.iter().map(|(ns, share)| ns * share).sum();
    for b in 1..cores {
        for a in 0..b {
            let ns = if (a, b) == (0, 1) { mean } else { 124.0 };
            let (a, b) = (Thread(a), Thread(b));
            let pair = PairTransfer::from_round_trip(a, b, exact(2.0 * ns));
            profile.pairs.push(pair);
        }
    }
    if states.len() > 1 {
        let state = |&(ns, share): &(f64, f64)| PairState {
            one_way_ns: exact(ns),
            time_share: exact(share),
        };
        profile.pairs[0].states = states.iter().map(state).collect();
    }
    let model = Model::new(&profile).expect("a sound profile");
    Machine::new(&profile, &model, &[]).expect("a machine")
}

const STATES: [(f64, f64); 2] = [(26.0, 0.3), (124.0, 0.7)];

/// A component that sends to another, and the work of each.
fn two(work_ns: f64) -> Graph {
    let mut graph = Graph::new();
    let a = graph.add(Component::new("a").work_ns(work_ns));
    let b = graph.add(Component::new("b").work_ns(work_ns));
    graph.connect(Connection::new(a, b).messages(1.0).bytes(8.0));
    graph
}

fn plan(graph: &Graph, machine: &Machine, policy: &Policy) -> PlacementPlan {
    let options = CostOptions::default();
    place(graph, machine, policy, &options, Effort::default()).expect("a plan")
}

fn at(slots: &[u32]) -> Placement {
    Placement(slots.iter().map(|slot| CpuSlot(*slot)).collect())
}

#[test]
fn the_mean_over_time_decides_and_the_other_choice_is_told() {
    let machine = machine(2, &STATES);
    // So little work that two cores pay only while a line is fast.
    let plan_of_few = plan(&two(200.0), &machine, &Policy::Talk);
    assert_eq!(plan_of_few.placement().slots_used(), 1);
    let [near, far] = &plan_of_few.states[..] else {
        panic!("{:?}", plan_of_few.states);
    };
    assert_eq!((near.one_way_ns, near.time_share), STATES[0]);
    assert!(near.saves() > 0.05, "{near:?}");
    assert_eq!(
        near.better.as_ref().map(|better| better.moves.len()),
        Some(1)
    );
    assert_eq!(far.better, None);
    let said = near.to_string();
    let begins = "while a line takes 26 ns between cpu0 and cpu1 (30 % of the time), `";
    assert!(
        said.starts_with(begins) && said.ends_with(" % cheaper"),
        "{said}"
    );

    // With more work two cores pay over time, and not while a line is slow.
    let plan_of_more = plan(&two(420.0), &machine, &Policy::Talk);
    assert_eq!(plan_of_more.placement().slots_used(), 2, "{plan_of_more:?}");
    assert_eq!(plan_of_more.states[0].better, None);
    assert!(plan_of_more.states[1].saves() > 0.05, "{plan_of_more:?}");

    // With much work they always pay, and there is nothing to say.
    let plan_of_much = plan(&two(5000.0), &machine, &Policy::Talk);
    assert_eq!(plan_of_much.placement().slots_used(), 2);
    assert!(
        plan_of_much
            .states
            .iter()
            .all(|state| state.better.is_none())
    );
    assert!(!plan_of_much.proved, "only the mean was searched");
}

#[test]
fn the_cost_over_time_is_the_mean_of_both_states() {
    let machine = machine(2, &STATES);
    let (graph, options) = (two(200.0), CostOptions::default());
    let cost = |machine: &Machine, placement: &Placement| {
        let cost = evaluate(&graph, machine, &options, placement);
        cost.expect("a cost").total_ns
    };
    for placement in [at(&[0, 0]), at(&[0, 1])] {
        let mean: f64 = machine
            .states()
            .iter()
            .map(|state| state.time_share * cost(&machine.under(state), &placement))
            .sum();
        let found = over_time_ns(&graph, &machine, &options, &placement).expect("a cost");
        assert!((found / mean - 1.0).abs() < 1e-9, "{found} {mean}");
    }
}

/// No placement, of all tried one by one, costs less over time.
#[test]
fn the_choice_is_the_cheapest_over_time() {
    let options = CostOptions::default();
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..INSTANCES {
        let share = 0.1 + 0.8 * random.f64();
        let machine = machine(
            3,
            &[(20.0 + 20.0 * random.f64(), share), (250.0, 1.0 - share)],
        );
        let mut graph = Graph::new();
        let all: Vec<_> = (0..4)
            .map(|at| {
                let work = 1000.0 * random.f64();
                graph.add(Component::new(format!("c{at}")).work_ns(work))
            })
            .collect();
        for (at, one) in all.iter().enumerate() {
            let peer = all[(at + 1) % all.len()];
            graph.connect(Connection::new(*one, peer).messages(3.0 * random.f64()));
        }
        let cost = |placement: &Placement| {
            over_time_ns(&graph, &machine, &options, placement).expect("a cost")
        };
        let chosen = plan(&graph, &machine, &Policy::Talk).placement();
        let least = (0..81)
            .map(|number: u32| cost(&at(&[0, 1, 2, 3].map(|digit| number / 3_u32.pow(digit) % 3))))
            .fold(f64::INFINITY, f64::min);
        // The candidates are the best for the mean and in each state; the mean's best of all may
        // lie between, and costs hardly less.
        assert!(cost(&chosen) <= 1.02 * least, "{} {least}", cost(&chosen));
    }
}

/// A class of pairs stands for all that cost the same: a pair with states is not one of them.
#[test]
fn a_pair_with_states_has_a_class_of_its_own() {
    let machine = machine(3, &[(64.0, 0.5), (184.0, 0.5)]);
    let messages = machine.messages();
    let class = |a, b| messages.class(CpuSlot(a), CpuSlot(b));
    assert_ne!(class(0, 1), class(0, 2));
    assert_eq!(class(1, 2), class(0, 2));
    assert_eq!(machine.states().len(), 2);
}

#[test]
fn one_state_says_nothing() {
    let machine = machine(2, &[(94.6, 1.0)]);
    let plan = plan(&two(200.0), &machine, &Policy::Talk);
    assert!(machine.states().is_empty() && plan.states.is_empty() && plan.proved);
    assert_eq!(plan.places[0].cpu, OsThread(0));
}

/// A policy that does not choose by cost is told its cost in each state, and no better choice.
#[test]
fn other_policies_have_costs_and_no_choice() {
    let plan = plan(&two(200.0), &machine(2, &STATES), &Policy::Spread);
    let [near, far] = &plan.states[..] else {
        panic!("{:?}", plan.states);
    };
    assert!(near.total_ns < far.total_ns);
    assert_eq!((&near.better, &far.better), (&None, &None));
}
