//! Rates of components' passes and of flows over connections: the graph's counts, balanced.

use super::balance::{self, Hub, Part};
use super::hubs::Hubs;
use super::tally::Tally;
use super::{ChannelId, CommunicationGraph, Direction, Flow, InstanceId, Kind, Traffic, weights};

/// Rounds in which what flows over the connections of a hub is fitted to what its ends send and
/// take.
const ROUNDS_OF_FIT: usize = 8;

/// The possible flows over each connection, without rates yet.
pub(super) fn pairs(graph: &mut CommunicationGraph) {
    let mut users = vec![Vec::new(); graph.channels.len()];
    for (index, component) in graph.components.iter().enumerate() {
        for used in &component.traffic {
            users[used.channel.index()].push(InstanceId(index as u32));
        }
    }
    for (index, connection) in graph.connections.iter().enumerate() {
        for &from in &users[connection.from.index()] {
            for &to in &users[connection.to.index()] {
                graph.flows.push(Flow {
                    connection: index,
                    from,
                    to,
                    messages_per_second: 0.0,
                });
            }
        }
    }
}

/// Fills in rates, also of flows, and what does not balance. Flows and alternation are there.
pub(super) fn fill(graph: &mut CommunicationGraph) {
    let pairs = graph.connections.iter().map(|c| (c.from, c.to));
    let hubs = Hubs::new(graph.channels.len(), pairs);
    let waits = waits(graph);
    let speed = |component| speed(component, &waits);
    let mut speeds: Vec<f64> = graph.components.iter().map(speed).collect();
    let (numbers, parts) = parts(graph, &hubs, &mut speeds);
    let solution = balance::solve(&speeds, &parts);
    for (component, rate) in graph.components.iter_mut().zip(&solution.rates) {
        component.passes_per_second = *rate;
    }
    for index in solution.unbalanced {
        let hub = numbers[index];
        graph.unbalanced.push(hubs.first[hub]);
    }
    flows(graph, &hubs);
}

/// By channel: how long a sender waits for each answer, in nanoseconds; on average over its
/// connections.
fn waits(graph: &CommunicationGraph) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); graph.channels.len()];
    for connection in &graph.connections {
        let (sum, count) = &mut sums[connection.from.index()];
        *count += 1.0;
        if let Some(turn) = connection.alternates {
            *sum += (turn.serving_ns - turn.meanwhile_ns).max(0.0);
        }
    }
    let mean = |(sum, count): (f64, f64)| sum / f64::max(count, 1.0);
    sums.into_iter().map(mean).collect()
}

/// The most passes a second, alone on a core. The main sequence has one pass and delays no
/// component.
fn speed(component: &super::Component, waits: &[f64]) -> f64 {
    if component.kind == Kind::Main {
        return f64::INFINITY;
    }
    let messages = component.traffic.iter().map(|t| t.messages.value).sum();
    let sends = component
        .traffic
        .iter()
        .filter(|t| t.direction == Direction::Out);
    let waiting: f64 = sends
        .map(|t| t.messages.value * waits[t.channel.index()])
        .sum();
    passes_per_second(
        component.work_ns.value + component.outside_ns + waiting,
        messages,
    )
}

fn passes_per_second(work_ns: f64, messages: f64) -> f64 {
    1e9 / (work_ns + messages * weights::MESSAGE).max(1.0)
}

/// The same of what is not yet in a graph; the main sequence like any other.
pub(super) fn speed_of(tally: &Tally) -> f64 {
    let used = tally.sends.values().chain(tally.receives.values());
    passes_per_second(
        tally.work_ns + tally.outside_ns,
        used.map(|used| used.messages).sum(),
    )
}

/// The hubs where messages can pass, and their numbers among all.
///
/// A timer is one more that sends, so often as it is set to: its speed is added to the others.
fn parts(graph: &CommunicationGraph, hubs: &Hubs, speeds: &mut Vec<f64>) -> (Vec<usize>, Vec<Hub>) {
    let mut all = vec![Hub::default(); hubs.count()];
    for (index, component) in graph.components.iter().enumerate() {
        for used in &component.traffic {
            let hub = &mut all[hubs.of(used.channel)];
            let side = match used.direction {
                Direction::Out => &mut hub.senders,
                Direction::In => &mut hub.receivers,
            };
            add(side, index, used);
        }
    }
    for (index, channel) in graph.channels.iter().enumerate() {
        if let Some(seconds) = channel.timer_seconds {
            let timer = Part {
                component: speeds.len(),
                messages: 1.0,
                is_exact: true,
            };
            speeds.push(1.0 / seconds);
            all[hubs.of(ChannelId(index as u32))].senders.push(timer);
        }
    }
    let with_both = |(_, hub): &(usize, Hub)| !hub.senders.is_empty() && !hub.receivers.is_empty();
    all.into_iter().enumerate().filter(with_both).unzip()
}

/// Components come in order, so a part of the same component is the last.
fn add(side: &mut Vec<Part>, component: usize, used: &Traffic) {
    let messages = used.messages.value;
    if messages <= 0.0 {
        return;
    }
    match side.last_mut() {
        Some(part) if part.component == component => {
            part.messages += messages;
            part.is_exact &= used.messages.is_exact;
        }
        _ => side.push(Part {
            component,
            messages,
            is_exact: used.messages.is_exact,
        }),
    }
}

/// Messages a second over each connection, and between whom: in the order of [`pairs`].
fn flows(graph: &mut CommunicationGraph, hubs: &Hubs) {
    let users = users(graph);
    let totals: Vec<f64> = users
        .iter()
        .map(|users| users.iter().fold(0.0, |sum, (_, rate)| sum + rate))
        .collect();
    let mut by_hub: Vec<Vec<usize>> = vec![Vec::new(); hubs.count()];
    for (index, connection) in graph.connections.iter().enumerate() {
        by_hub[hubs.of(connection.from)].push(index);
    }
    for connections in &by_hub {
        share_out(graph, connections, &totals);
    }
    let mut flows = graph.flows.iter_mut();
    for connection in &graph.connections {
        let (from, to) = (connection.from.index(), connection.to.index());
        for (_, out) in &users[from] {
            for (_, into) in &users[to] {
                let share = part_of(*out, totals[from], users[from].len())
                    * part_of(*into, totals[to], users[to].len());
                if let Some(flow) = flows.next() {
                    flow.messages_per_second = connection.messages_per_second * share;
                }
            }
        }
    }
}

fn part_of(one: f64, all: f64, count: usize) -> f64 {
    if all > 0.0 {
        one / all
    } else {
        1.0 / count as f64
    }
}

/// By channel: who uses it, and how many messages a second that is.
fn users(graph: &CommunicationGraph) -> Vec<Vec<(InstanceId, f64)>> {
    let mut users = vec![Vec::new(); graph.channels.len()];
    for (index, component) in graph.components.iter().enumerate() {
        for used in &component.traffic {
            let rate = component.passes_per_second * used.messages.value;
            users[used.channel.index()].push((InstanceId(index as u32), rate));
        }
    }
    users
}

/// Fits what flows over the connections of one hub to what the half-channels send and take, in
/// turns from either side.
fn share_out(graph: &mut CommunicationGraph, connections: &[usize], totals: &[f64]) {
    let ends = |graph: &CommunicationGraph, index: usize| {
        let connection = &graph.connections[index];
        (connection.from.index(), connection.to.index())
    };
    if let &[only] = connections {
        let (from, to) = ends(graph, only);
        graph.connections[only].messages_per_second = totals[from].min(totals[to]);
        return;
    }
    for &index in connections {
        let (from, to) = ends(graph, index);
        graph.connections[index].messages_per_second = totals[from] * totals[to];
    }
    let mut sums = std::collections::BTreeMap::new();
    for round in 0..=ROUNDS_OF_FIT {
        // At last nothing is more than either side has.
        let most = if round == ROUNDS_OF_FIT {
            1.0
        } else {
            f64::INFINITY
        };
        for is_out in [true, false] {
            let end = |graph: &CommunicationGraph, index| {
                let (from, to) = ends(graph, index);
                if is_out { from } else { to }
            };
            sums.clear();
            for &index in connections {
                let flow = graph.connections[index].messages_per_second;
                *sums.entry(end(graph, index)).or_insert(0.0) += flow;
            }
            for &index in connections {
                let end = end(graph, index);
                let factor = if sums[&end] > 0.0 {
                    totals[end] / sums[&end]
                } else {
                    0.0
                };
                graph.connections[index].messages_per_second *= f64::min(factor, most);
            }
        }
    }
}
