//! Who waits for whom: requests whose sender does nothing else until the answer has come.
//!
//! A connection from A to B alternates if each send of A on it is followed, on every way, by a receive
//! over a connection from B, and each receive of B by the send of that answer. While B works on the
//! request A computes for a known time at most, and then waits.

use super::tally::{Next, Operation, Tally};
use super::{Alternation, ChannelId, CommunicationGraph, Direction, Flow, InstanceId};
use std::collections::HashMap;

/// Fills in which connections alternate. One that several senders share does if it does for all.
pub(super) fn fill(graph: &mut CommunicationGraph, tallies: &[Tally]) {
    let connections = graph.connections.iter().enumerate();
    let by_ends: HashMap<(ChannelId, ChannelId), usize> = connections
        .map(|(index, connection)| ((connection.from, connection.to), index))
        .collect();
    let peers = Peers::new(graph);
    let mut first = 0;
    while first < graph.flows.len() {
        let connection = graph.flows[first].connection;
        let count = graph.flows[first..]
            .iter()
            .take_while(|flow| flow.connection == connection)
            .count();
        let flows = &graph.flows[first..first + count];
        let turns: Option<Vec<Alternation>> = flows
            .iter()
            .map(|flow| turn(graph, tallies, &by_ends, &peers, flow))
            .collect();
        graph.connections[connection].alternates = turns.and_then(|turns| longest(&turns));
        first += count;
    }
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

fn turn(
    graph: &CommunicationGraph,
    tallies: &[Tally],
    by_ends: &HashMap<(ChannelId, ChannelId), usize>,
    peers: &Peers,
    flow: &Flow,
) -> Option<Alternation> {
    let connection = &graph.connections[flow.connection];
    let asking = &tallies[flow.from.index()].next;
    let serving = &tallies[flow.to.index()].next;
    let request = Operation::new(Direction::Out, connection.from);
    let taken = Operation::new(Direction::In, connection.to);
    let Some(&Next::Always(awaited, meanwhile_ns)) = asking.get(&request) else {
        return None;
    };
    let Some(&Next::Always(answered, serving_ns)) = serving.get(&taken) else {
        return None;
    };
    if awaited.is_send || !answered.is_send {
        return None;
    }
    let answer = *by_ends.get(&(answered.channel, awaited.channel))?;
    // Where others might answer too, or ask, nobody waits for this one. A channel that comes with the
    // request is meant for the answer alone.
    if !graph.connections[answer].is_temporary && peers.of(awaited.channel) != Some(flow.to) {
        return None;
    }
    Some(Alternation {
        answer,
        meanwhile_ns,
        serving_ns,
    })
}

/// Of several that share the connection: the most that any does, if all wait for one answer.
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
