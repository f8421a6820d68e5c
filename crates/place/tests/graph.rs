//! A graph's file: round trips, and messages about faults.

use hearth_place::graph::{Basis, Component, Connection, Graph, Turn};

#[test]
fn what_is_written_is_read() {
    let mut graph = Graph::new();
    let a = graph.add(Component::new("a").of_type("Maker").work_ns(1.5).stays());
    let b = graph.add(Component::new("b").pinned(hearth_machine::topology::OsThread(3)));
    graph.call(Connection::new(a, b).messages(0.1).bytes(64.0), 8.0);
    graph.connect(Connection::new(b, a).moved());
    let text = graph.to_json();
    assert_eq!(Graph::from_json(&text), Ok(graph));
    let empty = Graph::new();
    assert_eq!(Graph::from_json(&empty.to_json()), Ok(empty));
}

#[test]
fn what_is_left_out_is_assumed() {
    let text = r#"{"format": 1, "components": [{"name": "a"}, {"name": "b", "later": 1}],
        "connections": [{"from": 0, "to": 1, "turn": "request"}]}"#;
    let graph = Graph::from_json(text).expect("a graph");
    assert_eq!(graph.components[0], Component::new("a"));
    assert_eq!(graph.connections[0].messages.value, 1.0);
    assert_eq!(graph.connections[0].turn, Turn::Request);
    assert_eq!(graph.weakest_basis(), Basis::Assumed);
}

#[test]
fn what_is_wrong_is_said() {
    let said = |text: &str| Graph::from_json(text).expect_err("it is wrong").to_string();
    for (text, word) in [
        ("", "line 1"),
        ("{}", "not a graph"),
        (r#"{"format": 9}"#, "format 9"),
        (r#"{"format": 1, "components": [{}]}"#, "no name"),
        (
            r#"{"format": 1, "components": [{"name": "a"}, {"name": "a"}]}"#,
            "`a`",
        ),
        (
            r#"{"format": 1, "components": [{"name": "a", "work_ns": -1}]}"#,
            "`work_ns` of component `a`",
        ),
        (
            r#"{"format": 1, "components": [{"name": "a"}],
                "connections": [{"from": 0, "to": 1}]}"#,
            "names component 1",
        ),
        (r#"{"format": 1, "components": 7}"#, "line 1"),
    ] {
        assert!(said(text).contains(word), "{text}: {}", said(text));
    }
}
