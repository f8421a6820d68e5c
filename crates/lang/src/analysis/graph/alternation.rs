//! Alternation: requests whose sender does nothing else until the answer arrives.
//!
//! A connection from A to B alternates if each send of A on it is followed, on every way, by a
//! receive over a connection from B, and each receive of B by the send of that answer, before which
//! it may ask others and wait for them. While B works on the request A computes for a known time at
//! most, and then waits.

use super::tally::{Next, Operation, Tally};
use super::{Alternation, ChannelId, CommunicationGraph, Direction, Flow, InstanceId};
use std::collections::HashMap;

/// Requests inside requests that are followed.
const DEPTH_MAX: usize = 8;

/// Fills in which connections alternate. One that several senders share does if it does for all. A
/// server that asks another one before it answers is found when that one has been.
pub(super) fn fill(graph: &mut CommunicationGraph, tallies: &[Tally]) {
    let connections = graph.connections.iter().enumerate();
    let by_ends: HashMap<(ChannelId, ChannelId), usize> = connections
        .map(|(index, connection)| ((connection.from, connection.to), index))
        .collect();
    let peers = Peers::new(graph);
    for _ in 0..DEPTH_MAX {
        let search = Search {
            graph,
            tallies,
            by_ends: &by_ends,
            peers: &peers,
            servings: servings(graph),
        };
        let found = search.all();
        let is_news = found.len()
            > graph
                .connections
                .iter()
                .filter(|c| c.alternates.is_some())
                .count();
        for (connection, turn) in found {
            graph.connections[connection].alternates = Some(turn);
        }
        if !is_news {
            return;
        }
    }
}

/// By channel that requests are sent on: how long the answer takes at most, in nanoseconds. None if
/// not all of its connections alternate.
fn servings(graph: &CommunicationGraph) -> Vec<Option<f64>> {
    let mut servings = vec![None; graph.channels.len()];
    let mut is_other = vec![false; graph.channels.len()];
    for connection in &graph.connections {
        let from = connection.from.index();
        match connection.alternates {
            Some(turn) => {
                let longest = servings[from].unwrap_or(0.0);
                servings[from] = Some(turn.serving_ns.max(longest));
            }
            None => is_other[from] = true,
        }
    }
    for (serving, is_other) in servings.iter_mut().zip(is_other) {
        *serving = serving.filter(|_| !is_other);
    }
    servings
}

/// By channel that is received from: the only component that sends to it.
struct Peers(Vec<Option<InstanceId>>);

impl Peers {
    fn new(graph: &CommunicationGraph) -> Peers {
        let mut peers = vec![None; graph.channels.len()];
        let mut is_several = vec![false; graph.channels.len()];
        for flow in &graph.flows {
            let to = graph.connections[flow.connection].to.index();
            is_several[to] |= peers[to].is_some_and(|known| known != flow.from);
            peers[to] = Some(flow.from);
        }
        for (peer, is_several) in peers.iter_mut().zip(is_several) {
            *peer = peer.filter(|_| !is_several);
        }
        Peers(peers)
    }

    fn of(&self, channel: ChannelId) -> Option<InstanceId> {
        self.0[channel.index()]
    }
}

struct Search<'a> {
    graph: &'a CommunicationGraph,
    tallies: &'a [Tally],
    by_ends: &'a HashMap<(ChannelId, ChannelId), usize>,
    peers: &'a Peers,
    servings: Vec<Option<f64>>,
}

impl Search<'_> {
    /// The connections that alternate, as far as those inside others are known.
    fn all(&self) -> Vec<(usize, Alternation)> {
        let mut found = Vec::new();
        for flows in self
            .graph
            .flows
            .chunk_by(|a, b| a.connection == b.connection)
        {
            let turns: Option<Vec<Alternation>> =
                flows.iter().map(|flow| self.turn(flow)).collect();
            if let Some(turn) = turns.and_then(|turns| longest(&turns)) {
                found.push((flows[0].connection, turn));
            }
        }
        found
    }

    fn turn(&self, flow: &Flow) -> Option<Alternation> {
        let connection = &self.graph.connections[flow.connection];
        let request = Operation::new(Direction::Out, connection.from);
        let (awaited, meanwhile_ns) = self.next(flow.from, request)?;
        if awaited.is_send {
            return None;
        }
        let (answer, serving_ns) = self.answer(flow.to, connection.to, awaited.channel)?;
        // Where others might answer too, or ask, no component waits for this one. A channel that
        // comes with the request is meant for the answer alone.
        let is_only = self.peers.of(awaited.channel) == Some(flow.to);
        if !is_only && !self.graph.connections[answer].is_temporary {
            return None;
        }
        Some(Alternation {
            answer,
            meanwhile_ns,
            serving_ns,
        })
    }

    /// The connection over which a component answers what it has received, and how long that takes:
    /// it may wait for answers of its own on the way.
    fn answer(
        &self,
        serving: InstanceId,
        request: ChannelId,
        awaited: ChannelId,
    ) -> Option<(usize, f64)> {
        let mut taken = Operation::new(Direction::In, request);
        let mut sum_ns = 0.0;
        for _ in 0..DEPTH_MAX {
            let (sent, work_ns) = self.next(serving, taken)?;
            sum_ns += work_ns;
            if !sent.is_send {
                return None;
            }
            if let Some(&answer) = self.by_ends.get(&(sent.channel, awaited)) {
                return Some((answer, sum_ns));
            }
            let inner_ns = self.servings[sent.channel.index()]?;
            let (received, meanwhile_ns) = self.next(serving, sent)?;
            sum_ns += inner_ns.max(meanwhile_ns);
            taken = received;
        }
        None
    }

    fn next(&self, of: InstanceId, operation: Operation) -> Option<(Operation, f64)> {
        match self.tallies[of.index()].next.get(&operation)? {
            Next::Always(next, work_ns) => Some((*next, *work_ns)),
            Next::Several => None,
        }
    }
}

/// The most that any of several senders on the connection does, if all wait for one answer.
fn longest(turns: &[Alternation]) -> Option<Alternation> {
    let (first, rest) = turns.split_first()?;
    rest.iter().try_fold(*first, |longest, turn| {
        (turn.answer == longest.answer).then_some(Alternation {
            answer: longest.answer,
            meanwhile_ns: longest.meanwhile_ns.max(turn.meanwhile_ns),
            serving_ns: longest.serving_ns.max(turn.serving_ns),
        })
    })
}
