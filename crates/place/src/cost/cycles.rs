//! The cycles of components that make requests.
//!
//! A component that waits for its server's answer takes at least its own work, the way there and
//! back, and the server's work for it, one after the other; and the server may have servers. Where
//! everyone runs changes only how long messages take, so that a cycle is a number and a sum over
//! connections with a weight each, found once.
//!
//! What a server does for one request is its work by the messages that it receives. Its own
//! requests count in the same share. Servers within servers are followed [`DEPTH_MAX`] deep, and
//! not around in circles: both only make the bound lower.

use crate::graph::{Connection, Graph, Turn};

/// How deep servers of servers are followed.
const DEPTH_MAX: usize = 6;
/// Shares smaller than this are not followed.
const SHARE_MIN: f64 = 1e-3;
/// Most connections of one cycle.
const TERMS_MAX: usize = 4096;

/// A cycle: `constant_ns` and the connections' messages by weight.
#[derive(Clone)]
pub(crate) struct Cycle {
    pub(crate) component: u32,
    pub(crate) constant_ns: f64,
    pub(crate) terms: Vec<(u32, f64)>,
}

/// The requests and answers that each component waits for, and what it receives.
struct Waits {
    /// By component, connections that are its requests.
    requests: Vec<Vec<u32>>,
    /// By component, answers that it gets.
    answers: Vec<Vec<u32>>,
    /// By component, messages received in a round, answers left out.
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

/// A cycle for each component that makes requests.
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
