//! Plans: reasons, patterns, verdicts, files; and following a program that changes.

mod support;

use hearth_machine::profile::Profile;
use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_model::fitted::Model;
use hearth_place::adapt::{Patience, follow, replan};
use hearth_place::cost::CostOptions;
use hearth_place::forms::CpuSet;
use hearth_place::graph::{Component, ComponentId, Connection, Graph};
use hearth_place::plan::{PlacementPlan, Reason, StoredPlan, changes, place};
use hearth_place::policy::{Policy, PolicyError};
use hearth_place::slots::{CpuSlot, Machine, Placement};
use hearth_place::talk::Effort;

fn plan(graph: &Graph, machine: &Machine, policy: &Policy) -> PlacementPlan {
    place(
        graph,
        machine,
        policy,
        &CostOptions::default(),
        Effort::default(),
    )
    .expect("a plan")
}

/// `count` components, and connections by number, one word ten times a round.
fn graph(count: u32, connections: &[(u32, u32)]) -> Graph {
    let mut graph = Graph::new();
    for at in 0..count {
        graph.add(Component::new(format!("c{at}")).work_ns(50.0));
    }
    for (a, b) in connections {
        let connection = Connection::new(ComponentId(*a), ComponentId(*b));
        graph.connect(connection.messages(10.0));
    }
    graph
}

#[test]
fn reasons_say_what_they_save() {
    let machine = support::machine(support::MACHINES[3]);
    let mut graph = graph(3, &[(0, 1)]);
    graph.components[2].pinned = Some(OsThread(3));
    for connection in &mut graph.connections {
        connection.messages.value = 100.0;
    }
    let ours = plan(&graph, &machine, &Policy::Talk);
    assert!(ours.proved);
    assert!(
        matches!(&ours.places[0].reason, Reason::With { peer, saves_ns }
        if peer == "c1" && *saves_ns > 0.0)
    );
    assert_eq!(ours.places[2].reason, Reason::Pinned { cpu: OsThread(3) });
    assert!(ours.others.iter().all(|o| o.total_ns >= ours.cost.total_ns));
    assert!(ours.verdict.matches_text());
    let spread = plan(&graph, &machine, &Policy::Spread);
    assert!(matches!(spread.places[0].reason, Reason::Policy { .. }));
    assert!(spread.verdict.behind > 0.0);
    assert!(!plan(&graph, &machine, &Policy::Os).notes.is_empty());
}

trait Text {
    fn matches_text(&self) -> bool;
}

impl Text for hearth_place::plan::PlacementVerdict {
    fn matches_text(&self) -> bool {
        self.to_string().starts_with("placement matters") == self.matters()
    }
}

#[test]
fn one_core_or_one_component_needs_no_placement() {
    let machine = support::machine("1 package");
    let one = plan(&graph(5, &[(0, 1), (1, 2)]), &machine, &Policy::Talk);
    assert!(!one.verdict.matters() && one.proved);
    let nothing = plan(&Graph::new(), &machine, &Policy::Talk);
    assert!(nothing.places.is_empty() && !nothing.verdict.matters());
}

#[test]
fn a_plan_is_read_back_for_what_is_there_now() {
    let description = support::MACHINES[4];
    let machine = support::machine(description);
    let before = graph(6, &[(0, 1), (2, 3), (4, 5)]);
    let old = StoredPlan::of(&plan(&before, &machine, &Policy::Spread));
    assert_eq!(StoredPlan::from_json(&old.to_json()), Ok(old.clone()));

    let mut after = before.clone();
    after.components[5].name = "newcomer".into();
    let profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let model = Model::new(&profile).expect("sound");
    let fewer: Vec<OsThread> = (1..8).map(OsThread).collect();
    let fewer = Machine::new(&profile, &model, &fewer).expect("a machine");
    let fitted = old.fit(&after, &fewer);
    assert_eq!(fitted.new, ["newcomer"]);
    assert_eq!(fitted.missing, ["c5"]);
    assert_eq!(fitted.lost, [("c0".to_owned(), OsThread(0))]);
    let options = CostOptions::default();
    let found = follow(&after, &fewer, &options, &fitted.slots).expect("places");
    for (slot, known) in found.0.iter().zip(&fitted.slots) {
        assert!(known.is_none_or(|known| known == *slot));
    }
    let lines = after.components.iter().zip(&found.0);
    let mut new = old.clone();
    new.places.clear();
    for (component, slot) in lines {
        new.places.push(hearth_place::plan::StoredPlace {
            component: component.name.clone(),
            cpu: fewer.os(*slot),
            why: String::new(),
        });
    }
    let said = changes(&old, &new);
    assert_eq!(said.come.len(), 1);
    assert_eq!(said.gone, [("c5".to_owned(), OsThread(5))]);
    assert_eq!(said.moved.len(), 1);
    assert!(said.to_string().contains("`c5` is gone"));
    for (text, word) in [
        ("x", "line 1"),
        (r#"{"format": 7, "places": []}"#, "format 7"),
        (
            r#"{"format":1,"places":[{"component":"a","cpu":0},{"component":"a","cpu":1}]}"#,
            "two places for `a`",
        ),
    ] {
        let error = StoredPlan::from_json(text).expect_err("it is wrong");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_file_places_whom_it_names() {
    let machine = support::machine(support::MACHINES[3]);
    let graph = graph(3, &[(0, 1), (1, 2)]);
    let file = |name: &str, cpu| Policy::File(vec![(name.to_owned(), OsThread(cpu))]);
    let placed = plan(&graph, &machine, &file("c1", 5));
    assert_eq!(placed.places[1].cpu, OsThread(5));
    let refused = |policy: Policy| {
        policy
            .place(&graph, &machine, &CostOptions::default(), Effort::default())
            .expect_err("it is refused")
    };
    assert!(matches!(
        refused(file("who", 1)),
        PolicyError::NoSuchComponent { .. }
    ));
    assert!(matches!(
        refused(file("c1", 99)),
        PolicyError::NoSuchCpu { .. }
    ));
}

#[test]
fn nobody_moves_unless_it_pays_and_nobody_moves_back() {
    let options = CostOptions::default();
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let machine = support::machine(support::MACHINES[random.usize(1..5)]);
        let slots = u32::try_from(machine.slots().len()).expect("few");
        let count = random.usize(2..24);
        let graph = support::graph(&mut random, count);
        let start = Placement((0..count).map(|_| CpuSlot(random.u32(..slots))).collect());
        let effort = Effort {
            steps: 30_000,
            seed,
        };
        let after = |placement: &Placement, patience: &Patience| {
            replan(&graph, &machine, &options, placement, patience, effort).expect("an answer")
        };
        let hurried = Patience {
            rounds: 1.0,
            move_ns: 1e12,
            ..Patience::default()
        };
        let pinned = |m: &hearth_place::adapt::Move| graph.component(m.component).pinned.is_some();
        assert!(
            after(&start, &hurried).moves.iter().all(pinned),
            "seed {seed}"
        );
        let patient = Patience {
            rounds: 1e6,
            ..Patience::default()
        };
        let moved = after(&start, &patient);
        if !moved.moves.is_empty() {
            assert!(moved.cost.total_ns <= moved.before_ns);
        }
        let again = after(&moved.placement, &patient);
        let undone = again.moves.iter().any(|m| {
            moved
                .moves
                .iter()
                .any(|first| first.component == m.component && first.from == m.to)
                && again.cost.total_ns > 0.95 * again.before_ns
        });
        assert!(!undone, "seed {seed}");
    }
}

#[test]
fn who_stays_is_not_moved() {
    let machine = support::machine(support::MACHINES[3]);
    let mut graph = graph(2, &[(0, 1)]);
    graph.components[0].stays = true;
    graph.connections[0].messages.value = 1e6;
    let start = Placement(vec![CpuSlot(0), CpuSlot(7)]);
    let options = CostOptions::default();
    let patience = Patience::default();
    let found = replan(
        &graph,
        &machine,
        &options,
        &start,
        &patience,
        Effort::default(),
    );
    let found = found.expect("an answer");
    assert_eq!(found.placement.0, [CpuSlot(0), CpuSlot(0)]);
    assert_eq!(found.moves.len(), 1);
}

#[test]
fn other_tools_take_it() {
    let machine = support::machine(support::MACHINES[4]);
    let spread = plan(&graph(18, &[(0, 1)]), &machine, &Policy::Spread);
    let set = CpuSet::of(&spread.placed(&machine)).expect("a set");
    assert_eq!(set.cpu_list(), "0-17");
    assert_eq!(set.node_list().as_deref(), Some("0-1"));
    assert_eq!(spread.patterns.len(), 2);
}
