//! Patterns: each by its name, mixtures by their parts, and their sentences.

use std::collections::BTreeSet;

use fastrand::Rng;
use hearth_place::graph::{Component, ComponentId, Connection, Graph};
use hearth_place::patterns::{Flow, Group, Pattern, recognise};

/// Components by name, and connections as `a>b`, each with one message.
fn graph(names: &[&str], connections: &[&str]) -> Graph {
    let mut graph = Graph::new();
    for name in names {
        graph.add(Component::new(*name));
    }
    for connection in connections {
        let (from, to) = connection
            .split_once('>')
            .expect("a connection has two ends");
        let end = |name: &str| graph.find(name).expect("the component is there");
        let connection = Connection::new(end(from), end(to));
        graph.connect(connection);
    }
    graph
}

fn said(graph: &Graph) -> Vec<String> {
    let groups = recognise(graph);
    groups.iter().map(|group| group.sentence(graph)).collect()
}

fn only(graph: &Graph) -> Group {
    let mut groups = recognise(graph);
    assert_eq!(groups.len(), 1, "{groups:?}");
    groups.remove(0)
}

#[test]
fn the_sources_illustration_has_its_four_groups() {
    let names = [
        "p", "q", "boss", "w1", "w2", "c1", "c2", "c3", "server", "i", "j",
    ];
    let connections = [
        "p>q",
        "boss>w1",
        "boss>w2",
        "c1>server",
        "c2>server",
        "c3>server",
    ];
    assert_eq!(
        said(&graph(&names, &connections)),
        [
            "`p` sends to `q`: sender-receiver.",
            "`boss` sends to `w1` and `w2`: dispatch-worker, 1:2.",
            "`c1`, `c2` and `c3` send to `server`: client-server, 3:1.",
            "`i` and `j` talk to nobody: no communication.",
        ]
    );
}

#[test]
fn several_to_several_and_all_to_all() {
    let ways = graph(&["a", "b", "c", "d"], &["a>c", "a>d", "b>c", "b>d"]);
    assert_eq!(
        said(&ways),
        ["`a` and `b` send to `c` and `d`: many-to-many, 2:2."]
    );
    let all = graph(
        &["a", "b", "c"],
        &["a>b", "a>c", "b>a", "b>c", "c>a", "c>b"],
    );
    assert_eq!(
        said(&all),
        ["`a`, `b` and `c` send to one another: many-to-many, 3:3."]
    );
}

#[test]
fn a_pipeline_is_mixed_and_so_is_a_hub_between_two_sides() {
    let path = graph(&["a", "b", "c", "d"], &["a>b", "b>c", "c>d"]);
    assert_eq!(only(&path).pattern(), None);
    assert_eq!(
        said(&path),
        ["`a`, `b`, `c` and `d` are mixed: 3 sender-receivers."]
    );
    let hub = graph(
        &["s1", "s2", "s3", "hub", "r1", "r2"],
        &["s1>hub", "s2>hub", "s3>hub", "hub>r1", "hub>r2", "r2>s1"],
    );
    assert_eq!(
        said(&hub),
        [
            "`s1`, `s2`, `s3` and 3 others are mixed: 1 sender-receiver, 1 dispatch-worker (1:2) \
             and 1 client-server (3:1)."
        ]
    );
    let members: Vec<u32> = only(&hub).members.iter().map(|id| id.0).collect();
    assert_eq!(members, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn whoever_asks_is_the_client() {
    let mut calls = graph(&["server", "c1", "c2"], &[]);
    let ask = |from, to| Connection::new(ComponentId(from), ComponentId(to)).messages(5.0);
    calls.call(ask(1, 0), 64.0);
    calls.call(ask(2, 0), 64.0);
    let group = only(&calls);
    assert_eq!(group.pattern(), Some(Pattern::ClientServer));
    assert_eq!(group.parts[0].flow, Flow::Asked);
    assert_eq!(group.parts[0].messages, 10.0);
    assert_eq!(
        said(&calls),
        ["`c1` and `c2` ask `server` and wait for the answers: client-server, 2:1."]
    );

    let mut one = graph(&["client", "server"], &[]);
    one.call(ask(0, 1), 8.0);
    assert_eq!(
        said(&one),
        ["`client` asks `server` and waits for the answers: client-server, 1:1."]
    );

    let mut boss = graph(&["boss", "w1", "w2"], &[]);
    boss.call(ask(0, 1), 8.0);
    boss.call(ask(0, 2), 8.0);
    assert_eq!(only(&boss).pattern(), Some(Pattern::DispatchWorker));
}

#[test]
fn of_two_ways_those_who_work_more_receive() {
    let both = ["h>a", "h>b", "h>c", "a>h", "b>h", "c>h"];
    let mut star = graph(&["h", "a", "b", "c"], &both);
    // Nothing else is known: the smaller side receives.
    assert_eq!(only(&star).pattern(), Some(Pattern::ClientServer));
    star.components[1].work_ns = 300.0.into();
    assert_eq!(
        said(&star),
        ["`h` sends to `a`, `b` and `c`, which send back: dispatch-worker, 1:3."]
    );
    star.components[0].work_ns = 200.0.into();
    assert_eq!(
        said(&star),
        ["`a`, `b` and `c` send to `h`, which sends back: client-server, 3:1."]
    );
    assert_eq!(only(&star).parts[0].messages, 6.0);
    let pair = graph(&["a", "b"], &["b>a", "a>b"]);
    assert_eq!(
        said(&pair),
        ["`a` sends to `b`, which sends back: sender-receiver."]
    );
    // More messages one way than the other.
    let mut star = graph(&["h", "a", "b"], &["h>a", "h>b", "a>h", "b>h"]);
    star.connections[0].messages = 9.0.into();
    assert_eq!(only(&star).pattern(), Some(Pattern::DispatchWorker));
}

#[test]
fn what_is_silent_or_goes_to_oneself_is_no_communication() {
    let mut quiet = graph(&["a", "b"], &["a>b", "b>b"]);
    quiet.connections[0].messages = 0.0.into();
    assert_eq!(
        said(&quiet),
        ["`a` and `b` talk to nobody: no communication."]
    );
    assert_eq!(
        said(&graph(&["a\nb"], &[])),
        [r"`a\nb` talks to nobody: no communication."]
    );
    assert!(recognise(&Graph::new()).is_empty());
}

#[test]
fn a_hundred_thousand_components_are_one_hub_or_one_path() {
    let count = 100_000;
    let mut hub = Graph::new();
    let mut path = Graph::new();
    for at in 0..count {
        hub.add(Component::new(format!("c{at}")));
        path.add(Component::new(format!("c{at}")));
        if at > 0 {
            hub.connect(Connection::new(ComponentId(0), ComponentId(at)));
            path.connect(Connection::new(ComponentId(at - 1), ComponentId(at)));
        }
    }
    assert_eq!(
        said(&hub),
        ["`c0` sends to `c1`, `c2`, `c3` and 99996 others: dispatch-worker, 1:99999."]
    );
    assert_eq!(
        said(&path),
        ["`c0`, `c1`, `c2` and 99997 others are mixed: 99999 sender-receivers."]
    );
}

/// Every component is in one group, every link in one part of its group, and parts match their
/// names, for any graph.
#[test]
fn groups_and_parts_hold_all_of_any_graph() {
    let mut rng = Rng::with_seed(11);
    for _ in 0..500 {
        let count = rng.u32(1..12);
        let mut graph = Graph::new();
        for at in 0..count {
            let work = f64::from(rng.u32(0..3));
            graph.add(Component::new(format!("c{at}")).work_ns(work));
        }
        for _ in 0..rng.u32(0..16) {
            let end = |rng: &mut Rng| ComponentId(rng.u32(0..count));
            let connection = Connection::new(end(&mut rng), end(&mut rng));
            let connection = connection.messages(f64::from(rng.u32(0..3)));
            match rng.bool() {
                true => graph.connect(connection),
                false => graph.call(connection, 8.0),
            }
        }
        let groups = recognise(&graph);
        let mut members: Vec<ComponentId> = groups.iter().flat_map(|g| g.members.clone()).collect();
        members.sort_unstable();
        let all: Vec<ComponentId> = (0..count).map(ComponentId).collect();
        assert_eq!(members, all);
        for connection in &graph.connections {
            let is_in = |a: &[ComponentId], b: &[ComponentId]| {
                a.contains(&connection.from) && b.contains(&connection.to)
            };
            let parts = groups.iter().flat_map(|group| &group.parts);
            let holding = parts.filter(|part| {
                is_in(&part.senders, &part.receivers) || is_in(&part.receivers, &part.senders)
            });
            let counts = connection.messages.value > 0.0 && connection.from != connection.to;
            assert!(
                !counts || holding.count() > 0,
                "{connection:?} in {groups:?}"
            );
        }
        for group in &groups {
            let sentence = group.sentence(&graph);
            assert!(
                sentence.ends_with('.') && !sentence.contains("  "),
                "{sentence}"
            );
            let known: BTreeSet<&ComponentId> = group.members.iter().collect();
            for part in &group.parts {
                let both = part.senders.iter().chain(&part.receivers);
                assert!(both.clone().all(|id| known.contains(id)));
                let sides = (part.senders.len(), part.receivers.len());
                assert_eq!(
                    part.pattern == Pattern::DispatchWorker,
                    sides.0 == 1 && sides.1 > 1
                );
                assert_eq!(
                    part.pattern == Pattern::ManyToMany,
                    sides.0 > 1 && sides.1 > 1
                );
            }
            // Connected ones are told apart from the lone.
            let pattern = group.pattern();
            assert_eq!(
                pattern == Some(Pattern::NoCommunication),
                group.parts.is_empty()
            );
        }
    }
}
