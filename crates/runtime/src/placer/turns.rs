//! Finds pairs that take turns, a client waiting for its server: two cores do no more for them than
//! one.
//!
//! On one core a client and its server look like two neighbours that compute and then exchange:
//! each runs, sends, and waits to receive. So pairs on one core are not judged. On two cores
//! neighbours overlap, and turns never do: both shares added up are no more than one core. If
//! neither core was overloaded meanwhile, one would have done for both, whatever they are.
//!
//! The verdict is kept when the two come together, where turns cannot be observed any more, until
//! the pair changes its behaviour: its computing time for a message, or its rate of messages,
//! changes by a factor.

use std::collections::BTreeMap;

use hearth_place::graph::Turn;
use hearth_place::slots::CpuSlot;

use super::site::Scene;
use super::statistics::Statistics;

/// Looks, and [`SEEN_NS`] of time, that a pair must have stayed in place before it is judged.
const LOOKS: u32 = 3;
const SEEN_NS: f64 = 200e6;
/// Sums of two shares: up to this one the two never ran together, as far as samples tell; from
/// [`OVERLAP_LEAST`] on they did.
const APART_MOST: f64 = 1.05;
const OVERLAP_LEAST: f64 = 1.15;
/// Load from which a core may have kept its components waiting.
const BUSY: f64 = 0.9;
/// Least part of its messages that a client exchanges with its server.
const MOSTLY: f64 = 0.8;
/// Largest ratio of the messages of the two directions at which each request still counts as
/// answered. Samples of few are far off.
const UNEVEN: f64 = 2.0;
/// Factor that counts as a change of behaviour; the next one must be twice as large.
const OTHERWISE: f64 = 3.0;
/// Looks after which an unobserved pair is forgotten.
const FORGOTTEN: u32 = 300;

/// A pair's pace on one core.
#[derive(Clone, Copy)]
struct Pace {
    /// Requests a second.
    rate: f64,
    /// Computing time of both for one request, in seconds.
    round: f64,
}

impl Pace {
    /// Returns the factor between the two paces, at least 1. A slower rate may come with less of
    /// its core.
    fn off(self, other: Pace) -> f64 {
        let round = (self.round / other.round).max(other.round / self.round);
        (self.rate / other.rate).max(round)
    }
}

/// Knowledge of a pair.
struct Pair {
    /// Its place at the last look, and for how many looks in a row.
    at: (CpuSlot, CpuSlot),
    looks: u32,
    /// Looks since it was last observed.
    unseen: u32,
    takes_turns: bool,
    /// Once it takes turns: its first pace on one core.
    together: Option<Pace>,
    /// Factor that counts as a change of its behaviour.
    otherwise: f64,
}

/// One look at a pair.
struct Sight {
    at: (CpuSlot, CpuSlot),
    pace: Pace,
    /// Shares of their cores that both take for each other.
    shares: f64,
    /// One of their cores may have kept them waiting.
    is_busy: bool,
}

/// The pairs that take turns.
#[derive(Default)]
pub(super) struct Turns {
    /// Keyed by client and server.
    pairs: BTreeMap<(u64, u64), Pair>,
}

impl Turns {
    /// Learns from recent statistics, and marks the scene's connections.
    pub(super) fn tell(&mut self, statistics: &Statistics, scene: &mut Scene) {
        let is_enough = statistics.span_ns() >= SEEN_NS;
        for pair in self.pairs.values_mut() {
            pair.unseen += 1;
        }
        for (ids, sight) in sights(statistics, scene) {
            let pair = self.pairs.entry(ids).or_insert_with(|| Pair::new(sight.at));
            pair.look(&sight, is_enough);
        }
        self.pairs.retain(|_, pair| pair.unseen < FORGOTTEN);
        for connection in &mut scene.graph.connections {
            let ends = [connection.from, connection.to].map(|end| scene.ids[end.index()]);
            connection.turn = match ends {
                [from, to] if self.takes_turns(from, to) => Turn::Request,
                [from, to] if self.takes_turns(to, from) => Turn::Answer,
                _ => Turn::Free,
            };
        }
    }

    /// Tells whether the first was observed to wait for the second's answers.
    pub(super) fn takes_turns(&self, asks: u64, answers: u64) -> bool {
        let pair = self.pairs.get(&(asks, answers));
        pair.is_some_and(|pair| pair.takes_turns)
    }

    /// Restarts the count of looks: the slots have changed.
    pub(super) fn look_anew(&mut self) {
        for pair in self.pairs.values_mut() {
            pair.looks = 0;
        }
    }
}

impl Pair {
    fn new(at: (CpuSlot, CpuSlot)) -> Pair {
        Pair {
            at,
            looks: 0,
            unseen: 0,
            takes_turns: false,
            together: None,
            otherwise: OTHERWISE,
        }
    }

    fn look(&mut self, sight: &Sight, is_enough: bool) {
        self.unseen = 0;
        if std::mem::replace(&mut self.at, sight.at) != sight.at {
            self.looks = 0;
        }
        self.looks += 1;
        if self.looks < LOOKS || !is_enough {
            return;
        }
        if sight.at.0 == sight.at.1 {
            self.look_together(sight.pace);
        } else if sight.shares > OVERLAP_LEAST {
            self.takes_turns = false;
        } else if sight.shares < APART_MOST && !sight.is_busy {
            self.takes_turns = true;
        }
    }

    /// Checks a pair on one core: turns cannot be observed there, a change of pace can.
    fn look_together(&mut self, pace: Pace) {
        if !self.takes_turns {
            return;
        }
        let before = *self.together.get_or_insert(pace);
        if pace.off(before) > self.otherwise {
            self.takes_turns = false;
            self.together = None;
            self.otherwise *= 2.0;
        }
    }
}

/// The pairs that may take turns: messages go both ways, and one of the two, listed first, talks
/// with hardly any other component.
fn sights(statistics: &Statistics, scene: &Scene) -> Vec<((u64, u64), Sight)> {
    let shares: Vec<f64> = statistics
        .components()
        .iter()
        .map(|&(_, share)| share)
        .collect();
    let mut loads: BTreeMap<CpuSlot, f64> = BTreeMap::new();
    for (at, share) in scene.at.iter().zip(&shares) {
        if let Some(slot) = at {
            *loads.entry(*slot).or_default() += share;
        }
    }
    let mut messages: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let (mut all, mut received) = (vec![0.0; shares.len()], vec![0.0; shares.len()]);
    for connection in &scene.graph.connections {
        let (from, to) = (connection.from.index(), connection.to.index());
        let count = connection.messages.value;
        *messages.entry((from, to)).or_default() += count;
        all[from] += count;
        all[to] += count;
        received[to] += count;
    }
    let sight = |a: usize, b: usize, there: f64, back: f64| {
        let at = (scene.at[a]?, scene.at[b]?);
        let is_asked = there + back >= MOSTLY * all[a];
        if !is_asked || there > UNEVEN * back || back > UNEVEN * there || there <= 0.0 {
            return None;
        }
        let both = shares[a] + shares[b] * there / received[b];
        let load = |slot| loads.get(&slot).copied().unwrap_or(0.0);
        let pace = Pace {
            rate: there,
            round: both.max(f64::MIN_POSITIVE) / there,
        };
        Some(Sight {
            at,
            pace,
            shares: both,
            is_busy: load(at.0) > BUSY || load(at.1) > BUSY,
        })
    };
    let mut found = Vec::new();
    for (&(a, b), &there) in messages.iter().filter(|((a, b), _)| a < b) {
        let back = messages.get(&(b, a)).copied().unwrap_or(0.0);
        // Of two that talk only with each other, either may be listed as the client.
        let one = sight(a, b, there, back).map(|sight| ((a, b), sight));
        let one = one.or_else(|| sight(b, a, back, there).map(|sight| ((b, a), sight)));
        found.extend(one.map(|((a, b), sight)| ((scene.ids[a], scene.ids[b]), sight)));
    }
    found
}
