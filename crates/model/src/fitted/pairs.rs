//! Pairs of hardware threads as a profile has them: how each deviates from others of its relation,
//! and the states between which it goes to and fro.

use std::collections::BTreeMap;

use hearth_machine::profile::{Figure, PairTransfer, Profile};
use hearth_machine::relation::Relation;
use hearth_machine::topology::{Thread, Topology};
use hearth_stats::median;

/// A state of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairState {
    /// Transfer latency, one way, ns.
    pub one_way_ns: f64,
    /// Its ratio to the usual one of the pair's relation.
    pub ratio: f64,
    /// Share of time in which the state holds; those of a pair add up to 1.
    pub time_share: f64,
}

/// One pair in one of its states, the others as they are over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// The pair, the lower number first.
    pub pair: (Thread, Thread),
    /// Its state.
    pub state: PairState,
}

/// All pairs of a profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Transfer latency of each pair, over time, relative to its relation's.
    ratios: BTreeMap<(Thread, Thread), f64>,
    /// States of those that have several, the fastest first.
    states: BTreeMap<(Thread, Thread), Vec<PairState>>,
}

fn key(a: Thread, b: Thread) -> (Thread, Thread) {
    (a.min(b), a.max(b))
}

impl Pairs {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut typical: BTreeMap<Relation, Option<Figure>> = BTreeMap::new();
        let mut pairs = Self::default();
        for pair in &profile.pairs {
            let relation = profile.topology.relation(pair.a, pair.b);
            let middle = typical
                .entry(relation)
                .or_insert_with(|| typical_one_way(profile, relation));
            let middle = middle.map_or(0.0, |figure| figure.value);
            if middle <= 0.0 || pair.one_way_ns.value <= 0.0 {
                continue;
            }
            let key = key(pair.a, pair.b);
            pairs.ratios.insert(key, pair.one_way_ns.value / middle);
            if !pair.states.is_empty() {
                let states = pair.states.iter().map(|state| PairState {
                    one_way_ns: state.one_way_ns.value,
                    ratio: state.one_way_ns.value / middle,
                    time_share: state.time_share.value,
                });
                pairs.states.insert(key, states.collect());
            }
        }
        pairs
    }

    /// The pair's latency over time relative to its relation's, if known.
    pub(super) fn ratio(&self, a: Thread, b: Thread) -> Option<f64> {
        self.ratios.get(&key(a, b)).copied()
    }

    /// The pair's states; empty if it has one.
    pub(super) fn states(&self, a: Thread, b: Thread) -> &[PairState] {
        let states = self.states.get(&key(a, b));
        states.map_or(&[], Vec::as_slice)
    }

    /// The states of a relation, as those of its most usual pair, around the usual latency.
    pub(super) fn usual_states(&self, topology: &Topology, relation: Relation) -> Vec<PairState> {
        let of = self
            .ratios
            .iter()
            .filter(|((a, b), _)| topology.relation(*a, *b) == relation);
        let off = |ratio: &f64| ratio.ln().abs();
        let usual = of.min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)));
        let Some((&(a, b), own)) = usual else {
            return Vec::new();
        };
        let around = |state: &PairState| PairState {
            ratio: state.ratio / own,
            ..*state
        };
        self.states(a, b).iter().map(around).collect()
    }

    /// Every pair with several states, in each of them.
    pub(super) fn scenarios(&self) -> Vec<Scenario> {
        let of = |(&pair, states): (&(Thread, Thread), &Vec<PairState>)| -> Vec<Scenario> {
            let scenario = |&state| Scenario { pair, state };
            states.iter().map(scenario).collect()
        };
        self.states.iter().flat_map(of).collect()
    }

    /// The same with one pair in a state for good.
    pub(super) fn under(mut self, scenario: &Scenario) -> Self {
        self.states.remove(&scenario.pair);
        self.ratios.insert(scenario.pair, scenario.state.ratio);
        self
    }
}

/// Whether pairs of a relation have several states.
pub(super) fn has_states(profile: &Profile, relation: Relation) -> bool {
    of_relation(profile, relation).any(|pair| !pair.states.is_empty())
}

fn of_relation(profile: &Profile, relation: Relation) -> impl Iterator<Item = &PairTransfer> {
    let topology = &profile.topology;
    let is_so = move |pair: &&PairTransfer| topology.relation(pair.a, pair.b) == relation;
    profile.pairs.iter().filter(is_so)
}

/// The pair's latency over time. With several states its interval is as wide as the widest of
/// theirs: each state is predicted for itself.
fn one_way(pair: &PairTransfer) -> Figure {
    let figure = pair.one_way_ns;
    if pair.states.is_empty() {
        return figure;
    }
    let states = || pair.states.iter().map(|state| state.one_way_ns);
    let down = states().map(|f| f.low / f.value).fold(1.0, f64::min);
    let up = states().map(|f| f.high / f.value).fold(1.0, f64::max);
    Figure {
        low: figure.value * down,
        high: figure.value * up,
        ..figure
    }
}

/// The median one-way latency of a relation's pairs, and of each end of their intervals.
pub(super) fn typical_one_way(profile: &Profile, relation: Relation) -> Option<Figure> {
    let figures: Vec<Figure> = of_relation(profile, relation).map(one_way).collect();
    let middle = |of: fn(&Figure) -> f64| median(&figures.iter().map(of).collect::<Vec<_>>());
    Some(Figure::measured(
        middle(|f| f.value)?,
        middle(|f| f.low)?,
        middle(|f| f.high)?,
        figures.iter().map(|figure| figure.samples).sum(),
        figures.iter().map(|figure| figure.discarded).sum(),
    ))
}
