//! Who only waits for whom: of two that take turns, two cores do no more than one.
//!
//! On one core a client and its server look as two neighbours do that compute and then exchange:
//! each runs, sends, and waits to receive. So nothing is said of pairs on one core. On two cores
//! the neighbours overlap, and turns never do: what both take of their cores, added up, is no more
//! than one core has. Where neither core had too much to do meanwhile, one would have done for
//! both, whatever they are.
//!
//! That is kept when they come together, where it could not be seen any more, until they do
//! something else: what they compute for a message, or how often they talk, changes by a factor.

use std::collections::BTreeMap;

use hearth_place::graph::Turn;
use hearth_place::slots::Slot;

use super::site::Scene;
use super::statistics::Statistics;

/// Nothing is said of a pair that was where it is for fewer looks, or for less than so long.
const LOOKS: u32 = 3;
const SEEN_NS: f64 = 200e6;
/// Two whose shares sum up to less never ran together, as far as samples tell; to more, they did.
const APART_MOST: f64 = 1.05;
const OVERLAP_LEAST: f64 = 1.15;
/// A core with more to do may have kept those waiting that are on it.
const BUSY: f64 = 0.9;
/// Who asks talks with this part of its messages to whom it asks, at least.
const MOSTLY: f64 = 0.8;
/// Messages of one direction by those of the other, for each request having its answer, at most.
/// Samples of few are far off.
const UNEVEN: f64 = 2.0;
/// Who does something else does it by this factor; the next time it has to be twice as much.
const OTHERWISE: f64 = 3.0;
/// A pair that was not seen for so many looks is forgotten.
const FORGOTTEN: u32 = 300;

/// What a pair does on one core.
#[derive(Clone, Copy)]
struct Pace {
    /// Requests a second.
    rate: f64,
    /// What both compute for one, in seconds.
    round: f64,
}

impl Pace {
    /// By what factor one is off the other, at least 1. Who talks less may have less of its core.
    fn off(self, other: Pace) -> f64 {
        let round = (self.round / other.round).max(other.round / self.round);
        (self.rate / other.rate).max(round)
    }
}

/// What is known of a pair.
struct Pair {
    /// Where it was at the last look, and for how many looks in a row.
    at: (Slot, Slot),
    looks: u32,
    /// Looks since it was seen.
    unseen: u32,
    takes_turns: bool,
    /// Since it takes turns: what it did when it was on one core first.
    together: Option<Pace>,
    /// By what factor it does something else.
    otherwise: f64,
}

/// What was seen of a pair at one look.
struct Sight {
    at: (Slot, Slot),
    pace: Pace,
    /// What both take of their cores, for each other.
    shares: f64,
    /// One of their cores may have kept them waiting.
    is_busy: bool,
}

/// Which pairs take turns.
#[derive(Default)]
pub(super) struct Turns {
    /// By who asks and who answers.
    pairs: BTreeMap<(u64, u64), Pair>,
}

impl Turns {
    /// Learns from what was seen lately, and tells the scene's connections.
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

    /// Does one wait for what the other answers, as far as was seen?
    pub(super) fn takes_turns(&self, asks: u64, answers: u64) -> bool {
        let pair = self.pairs.get(&(asks, answers));
        pair.is_some_and(|pair| pair.takes_turns)
    }

    /// Slots are others now.
    pub(super) fn look_anew(&mut self) {
        for pair in self.pairs.values_mut() {
            pair.looks = 0;
        }
    }
}

impl Pair {
    fn new(at: (Slot, Slot)) -> Pair {
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

    /// On one core nobody sees whether two take turns, but whether they go on as before.
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

/// The pairs that may take turns: messages go to and fro, and one of the two talks with hardly
/// anyone else. That one comes first.
fn sights(statistics: &Statistics, scene: &Scene) -> Vec<((u64, u64), Sight)> {
    let shares: Vec<f64> = statistics
        .components()
        .iter()
        .map(|&(_, share)| share)
        .collect();
    let mut loads: BTreeMap<Slot, f64> = BTreeMap::new();
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
        // Of two that both talk with each other alone, it does not matter who is said to ask.
        let one = sight(a, b, there, back).map(|sight| ((a, b), sight));
        let one = one.or_else(|| sight(b, a, back, there).map(|sight| ((b, a), sight)));
        found.extend(one.map(|((a, b), sight)| ((scene.ids[a], scene.ids[b]), sight)));
    }
    found
}
