//! The cycles of components that make requests.
//!
//! A component that waits for its server's answer takes at least its own work, the way there and
//! back, and the server's work for it, one after the other; and the server may have servers of its
//! own. A placement changes only how long messages take, so a cycle is a constant and a weighted
//! sum over connections, found once.
//!
//! A server's work for one request is its work divided by the messages it receives. Its own
//! requests count in the same share. Nested servers are followed [`DEPTH_MAX`] deep, and never
//! around a circle: both limits only lower the bound.

use crate::graph::{Connection, Graph, Turn};

/// Depth to which servers of servers are followed.
const DEPTH_MAX: usize = 6;
/// Least share that is followed.
const SHARE_MIN: f64 = 1e-3;
/// Most connections in one cycle.
const TERMS_MAX: usize = 4096;

/// A cycle: `constant_ns`, and the connections' messages by weight.
#[derive(Clone)]
pub(crate) struct Cycle {
    pub(crate) component: u32,
    pub(crate) constant_ns: f64,
    pub(crate) terms: Vec<(u32, f64)>,
}

/// Requests and answers that each component waits for, and messages it receives.
struct Waits {
    /// Connections that are a component's requests, by component.
    requests: Vec<Vec<u32>>,
    /// Answers to each component.
    answers: Vec<Vec<u32>>,
    /// Messages received in a round without answers, by component.
    received: Vec<f64>,
}

impl Waits {
    fn of(graph: &Graph) -> Self {
        let count = graph.components.len();
        let mut waits = Self {
            requests: vec![Vec::new(); count],
            answers: vec![Vec::new(); count],
            received: vec![0.0; count],
        };
        for (at, connection) in (0..).zip(&graph.connections) {
            let Connection { from, to, .. } = connection;
            if from == to {
                continue;
            }
            match connection.turn {
                Turn::Request => waits.requests[from.index()].push(at),
                Turn::Answer => waits.answers[to.index()].push(at),
                Turn::Free => {}
            }
            if connection.turn != Turn::Answer {
                waits.received[to.index()] += connection.messages.value;
            }
        }
        waits
    }
}

/// The cycle of each component that makes requests.
pub(super) fn cycles(graph: &Graph) -> Vec<Cycle> {
    if graph.connections.iter().all(|c| c.turn != Turn::Request) {
        return Vec::new();
    }
    let waits = Waits::of(graph);
    (0..)
        .zip(&graph.components)
        .filter(|(at, _)| !waits.requests[*at as usize].is_empty())
        .map(|(component, _)| {
            let mut cycle = Cycle {
                component,
                constant_ns: 0.0,
                terms: Vec::new(),
            };
            follow(graph, &waits, component, 1.0, &mut vec![], &mut cycle);
            cycle.terms.sort_by_key(|(connection, _)| *connection);
            cycle.terms.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0.0 };
                same
            });
            cycle
        })
        .collect()
}

fn follow(
    graph: &Graph,
    waits: &Waits,
    component: u32,
    share: f64,
    path: &mut Vec<u32>,
    cycle: &mut Cycle,
) {
    let at = component as usize;
    cycle.constant_ns += share * graph.components[at].work_ns.value;
    path.push(component);
    for list in [&waits.requests[at], &waits.answers[at]] {
        cycle.terms.extend(list.iter().map(|c| (*c, share)));
    }
    for request in &waits.requests[at] {
        let connection = &graph.connections[*request as usize];
        let server = connection.to;
        let received = waits.received[server.index()];
        let part = if received > 0.0 {
            share * connection.messages.value / received
        } else {
            0.0
        };
        let deep = path.len() > DEPTH_MAX || cycle.terms.len() > TERMS_MAX;
        if part >= SHARE_MIN * share && !deep && !path.contains(&server.0) {
            follow(graph, waits, server.0, part, path, cycle);
        }
    }
    path.pop();
}
