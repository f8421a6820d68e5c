//! Sums samples into rates that decay.

use std::collections::HashMap;

use crate::exchange::carrier::traffic::{Seen, Who};

/// Time in which an observation's weight falls by a factor of e.
const MEMORY_NS: f64 = 400e6;
/// Weight below which an observation is dropped.
const FORGOTTEN: f64 = 1e-3;

/// A decaying sum.
#[derive(Clone, Copy, Debug, Default)]
struct Sum(f64);

/// Statistics of a component.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) who: Who,
    /// The number of its last observed worker.
    pub(super) home: u16,
    pub(super) stays: bool,
    busy_ns: Sum,
    runs: Sum,
}

/// Statistics of messages from one component to another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connection {
    messages: Sum,
    bytes: Sum,
    sized: Sum,
    /// Sent by half-channels that others share.
    is_shared: bool,
}

/// Traffic from one component to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Messages a second.
    pub(super) messages: f64,
    /// Bytes a message.
    pub(super) bytes: f64,
    pub(super) is_shared: bool,
}

/// All recent observations.
#[derive(Default)]
pub(super) struct Statistics {
    /// Observed time, in ns.
    span: Sum,
    components: HashMap<u64, Component>,
    /// Keyed by sender and receiver.
    connections: HashMap<(u64, u64), Connection>,
}

impl Statistics {
    /// Ages all sums by elapsed time.
    pub(super) fn age(&mut self, elapsed_ns: u64) {
        let elapsed = elapsed_ns as f64;
        let kept = (-elapsed / MEMORY_NS).exp();
        self.span.0 = self.span.0 * kept + elapsed;
        self.components.retain(|_, known| {
            known.busy_ns.0 *= kept;
            known.runs.0 *= kept;
            known.runs.0 > FORGOTTEN
        });
        self.connections.retain(|_, known| {
            known.messages.0 *= kept;
            known.bytes.0 *= kept;
            known.sized.0 *= kept;
            known.messages.0 > FORGOTTEN
        });
    }

    /// Adds new samples.
    pub(super) fn add(&mut self, seen: &[Seen]) {
        for one in seen {
            let known = self
                .components
                .entry(one.who.id)
                .or_insert_with(|| Component {
                    who: one.who,
                    home: one.home,
                    stays: one.stays,
                    busy_ns: Sum(0.0),
                    runs: Sum(0.0),
                });
            known.home = one.home;
            known.stays = one.stays;
            known.busy_ns.0 += one.busy_ns as f64;
            known.runs.0 += one.runs as f64;
            let other = one.partner.map_or(0, |end| end.owner);
            if other == 0 || other == one.who.id {
                continue;
            }
            let pair = match one.is_send {
                true => (one.who.id, other),
                false => (other, one.who.id),
            };
            let known = self.connections.entry(pair).or_default();
            known.messages.0 += one.runs as f64;
            known.bytes.0 += one.bytes as f64;
            known.sized.0 += one.sized as f64;
            known.is_shared |= one.is_shared;
        }
    }

    /// Records that a component was sent to another worker.
    pub(super) fn went(&mut self, id: u64, to: u16) {
        if let Some(known) = self.components.get_mut(&id) {
            known.home = to;
        }
    }

    /// Returns the observed time behind the statistics, in ns, decayed as they are.
    pub(super) fn span_ns(&self) -> f64 {
        self.span.0
    }

    /// Returns all components, each with its share of a core, in creation order.
    pub(super) fn components(&self) -> Vec<(&Component, f64)> {
        let span = self.span.0.max(1.0);
        let mut all: Vec<(&Component, f64)> = self
            .components
            .values()
            .map(|known| (known, known.busy_ns.0 / span))
            .collect();
        all.sort_by_key(|(known, _)| known.who.id);
        all
    }

    /// Returns all known connections between components, by their numbers.
    pub(super) fn connections(&self) -> Vec<Flow> {
        let span_s = self.span.0.max(1.0) / 1e9;
        let is_known = |id| self.components.contains_key(id);
        let mut all: Vec<Flow> = self
            .connections
            .iter()
            .filter(|((from, to), _)| is_known(from) && is_known(to))
            .map(|(&(from, to), known)| Flow {
                from,
                to,
                messages: known.messages.0 / span_s,
                bytes: known.bytes.0 / known.sized.0.max(f64::MIN_POSITIVE),
                is_shared: known.is_shared,
            })
            .collect();
        all.sort_by_key(|flow| (flow.from, flow.to));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::exchange::carrier::traffic::End;

    fn who(id: u64) -> Who {
        Who {
            id,
            of: ptr::null(),
            number: 1,
        }
    }

    fn end(channel: usize, owner: u64) -> Option<End> {
        Some(End {
            channel,
            owner,
            port: ptr::null(),
        })
    }

    fn seen(id: u64, end: Option<End>, partner: Option<End>, is_send: bool) -> Seen {
        Seen {
            who: who(id),
            home: 0,
            end,
            partner,
            is_send,
            is_shared: false,
            stays: false,
            runs: 1000,
            bytes: 8000,
            sized: 1000,
            busy_ns: 50_000_000,
        }
    }

    #[test]
    fn messages_go_from_sender_to_receiver_whoever_waited() {
        let mut statistics = Statistics::default();
        statistics.age(100_000_000);
        let (a, b) = (end(8, 2), end(16, 3));
        statistics.add(&[seen(2, a, b, true), seen(3, b, a, false)]);
        let connections = statistics.connections();
        assert_eq!(connections.len(), 1);
        let flow = connections[0];
        assert_eq!((flow.from, flow.to), (2, 3));
        assert!((flow.messages - 20_000.0).abs() < 1.0, "{flow:?}");
        assert!((flow.bytes - 8.0).abs() < 1e-9);
        assert!((statistics.components()[0].1 - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_ended_is_forgotten() {
        let mut statistics = Statistics::default();
        statistics.age(100_000_000);
        statistics.add(&[seen(2, None, None, false)]);
        for _ in 0..100 {
            statistics.age(100_000_000);
        }
        assert!(statistics.components().is_empty());
        assert!((statistics.span_ns() - MEMORY_NS).abs() < 0.2 * MEMORY_NS);
    }
}
