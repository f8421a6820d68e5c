//! Expectations of a run beside observations: figures only.
//!
//! Components are known by type and number. Messages are compared between sets of components: where
//! an end is connected with several, nobody knows how many messages went to each, so all that are
//! connected with it count together.

use std::collections::{BTreeSet, HashMap};

use hearth_driver::expected::Expected;
use hearth_place::cost::Breakdown;
use hearth_watch::{Carrying, Component, Recording, figures};

use super::mostly_on;

/// An expected and an observed figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pair {
    pub(super) expected: f64,
    pub(super) seen: f64,
}

impl Pair {
    /// The observed figure over the expected one; `None` if nothing was expected.
    pub(super) fn ratio(self) -> Option<f64> {
        (self.expected > 0.0).then(|| self.seen / self.expected)
    }
}

/// A component.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparedComponent {
    pub(super) name: String,
    /// The core that a plan has for it.
    pub(super) planned: Option<usize>,
    pub(super) ran_on: Option<usize>,
    /// Its share of a core, of 1.
    pub(super) load: Pair,
    /// Its part of what all that are compared take.
    pub(super) share: Pair,
}

/// Components that send to others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Talk {
    pub(super) name: String,
    /// A second.
    pub(super) messages: Pair,
    /// Bytes of a message; `None` if not observed.
    pub(super) bytes: Option<Pair>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Compared {
    /// Components, the longest-running first.
    pub(super) components: Vec<ComparedComponent>,
    /// Pairs, the ones with most messages first.
    pub(super) talks: Vec<Talk>,
    /// Components that the text promises and that were not made.
    pub(super) missing: Vec<String>,
    /// Components that were made and that the text does not show.
    pub(super) unforeseen: Vec<String>,
    /// The load of the busiest core, of 1. Only with a whole plan.
    pub(super) busiest: Option<Pair>,
    /// The load of the scarcest resource at the text's rates, by the model: where that is more than
    /// 1, all that is expected is by so much less. Without a whole plan each component has a core
    /// for itself.
    pub(super) slower: f64,
}

impl Compared {
    pub(super) fn of(recording: &Recording, expected: &Expected) -> Compared {
        let known = expected.by_instance();
        let graph_of: HashMap<u64, usize> = recording
            .components
            .iter()
            .filter_map(|one| Some((one.id, *known.get(&(one.of.as_str(), one.number))?)))
            .collect();
        let made: BTreeSet<usize> = graph_of.values().copied().collect();
        let graph = &expected.program.graph;
        let missing = known.values().filter(|index| !made.contains(index));
        let mut missing: Vec<String> = missing
            .map(|&index| graph.components[index].name.clone())
            .collect();
        missing.sort_unstable();
        // No round is shorter than its bottleneck, and a round is a second here. Nobody has more
        // than a core.
        let cost = expected.cost();
        let bottleneck = cost.as_ref().map_or(0.0, |cost| cost.bottleneck_ns);
        let slower = expected.loads().into_iter().fold(bottleneck, f64::max) / 1e9;
        let slower = slower.max(1.0);
        let is_user = |one: &&Component| !one.is_service && !one.is_main;
        let unforeseen = recording.components.iter().filter(is_user);
        Compared {
            components: components(recording, expected, slower, &graph_of),
            talks: talks(recording, expected, slower, &graph_of),
            missing,
            unforeseen: unforeseen
                .filter(|one| !graph_of.contains_key(&one.id))
                .map(|one| one.name.clone())
                .collect(),
            busiest: cost.map(|cost| Pair {
                expected: busiest_planned(&cost) / slower,
                seen: busiest_seen(recording),
            }),
            slower,
        }
    }

    /// Messages a second, of all that are compared.
    pub(super) fn messages(&self) -> Pair {
        let sum = |of: fn(&Pair) -> f64| self.talks.iter().map(|talk| of(&talk.messages)).sum();
        Pair {
            expected: sum(|pair| pair.expected),
            seen: sum(|pair| pair.seen),
        }
    }

    /// The number of components that have a place in the plan and ran, and how many of them ran
    /// there.
    pub(super) fn places(&self) -> (usize, usize) {
        let both = self.components.iter();
        let both = both.filter_map(|one| Some((one.planned?, one.ran_on?)));
        let as_planned = both.clone().filter(|(planned, ran_on)| planned == ran_on);
        (both.count(), as_planned.count())
    }

    /// The component whose share differs most, and by how much; and the mean difference.
    pub(super) fn shares(&self) -> Option<(&ComparedComponent, f64, f64)> {
        let difference = |one: &ComparedComponent| (one.share.seen - one.share.expected).abs();
        let worst = self
            .components
            .iter()
            .max_by(|a, b| difference(a).total_cmp(&difference(b)))?;
        let sum: f64 = self.components.iter().map(difference).sum();
        let mean = sum / self.components.len() as f64;
        Some((worst, difference(worst), mean))
    }
}

fn components(
    recording: &Recording,
    expected: &Expected,
    slower: f64,
    graph_of: &HashMap<u64, usize>,
) -> Vec<ComparedComponent> {
    let loads = expected.loads();
    let machine = &expected.site.machine;
    let seconds = recording.ns.max(1) as f64;
    let mut found: Vec<ComparedComponent> = recording
        .components
        .iter()
        .filter_map(|one| {
            let index = *graph_of.get(&one.id)?;
            let slot = expected.slots.get(index).copied().flatten();
            Some(ComparedComponent {
                name: one.name.clone(),
                planned: slot.map(|slot| machine.os(slot).0 as usize),
                ran_on: mostly_on(recording, one),
                load: Pair {
                    expected: loads[index] / 1e9 / slower,
                    seen: one.running as f64 / seconds,
                },
                share: Pair::default(),
            })
        })
        .collect();
    let sum = |of: fn(&Pair) -> f64| -> f64 { found.iter().map(|one| of(&one.load)).sum() };
    let all = Pair {
        expected: sum(|pair| pair.expected).max(f64::MIN_POSITIVE),
        seen: sum(|pair| pair.seen).max(f64::MIN_POSITIVE),
    };
    for one in &mut found {
        one.share = Pair {
            expected: one.load.expected / all.expected,
            seen: one.load.seen / all.seen,
        };
    }
    found.sort_by(|a, b| b.load.seen.total_cmp(&a.load.seen));
    found
}

/// Sets that are joined where they touch.
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut one: usize) -> usize {
        while self.0[one] != one {
            self.0[one] = self.0[self.0[one]];
            one = self.0[one];
        }
        one
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Flows between sets of components, over channels that share an end or both components.
#[derive(Default)]
struct Group {
    from: BTreeSet<u64>,
    to: BTreeSet<u64>,
    messages: f64,
    /// The sizes of messages whose values were observed.
    bytes: f64,
    sized: f64,
}

fn groups(recording: &Recording) -> Vec<Group> {
    let channels = figures::channels(recording);
    let mut sets = Sets((0..channels.len()).collect());
    let mut by_end: HashMap<(u64, u16), usize> = HashMap::new();
    let mut by_pair: HashMap<(u64, u64), usize> = HashMap::new();
    for (nth, channel) in channels.iter().enumerate() {
        let pair = (channel.ends[0].0, channel.ends[1].0);
        let before = [
            by_end.insert(channel.ends[0], nth),
            by_end.insert(channel.ends[1], nth),
            by_pair.insert(pair, nth),
        ];
        for other in before.into_iter().flatten() {
            sets.join(nth, other);
        }
    }
    let mut groups: HashMap<usize, Group> = HashMap::new();
    for (nth, channel) in channels.iter().enumerate() {
        let group = groups.entry(sets.root(nth)).or_default();
        group.from.insert(channel.ends[0].0);
        group.to.insert(channel.ends[1].0);
        let messages = channel.messages() as f64;
        group.messages += messages;
        if let Some(bytes) = channel.bytes() {
            group.bytes += bytes;
            group.sized += messages;
        }
    }
    groups.into_values().collect()
}

fn talks(
    recording: &Recording,
    expected: &Expected,
    slower: f64,
    graph_of: &HashMap<u64, usize>,
) -> Vec<Talk> {
    let mut rates: HashMap<(usize, usize), (f64, f64)> = HashMap::new();
    for connection in &expected.program.graph.connections {
        let pair = (connection.from.index(), connection.to.index());
        let (messages, bytes) = rates.entry(pair).or_default();
        *messages += connection.messages.value;
        *bytes += connection.messages.value * connection.bytes.value;
    }
    let seconds = recording.ns.max(1) as f64 / 1e9;
    let mut found = Vec::new();
    for group in groups(recording) {
        let index = |ids: &BTreeSet<u64>| -> Option<Vec<usize>> {
            ids.iter().map(|id| graph_of.get(id).copied()).collect()
        };
        let (Some(from), Some(to)) = (index(&group.from), index(&group.to)) else {
            continue;
        };
        let (mut messages, mut bytes) = (0.0, 0.0);
        for pair in from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b))) {
            let rate = rates.get(&pair).copied().unwrap_or_default();
            messages += rate.0;
            bytes += rate.1;
        }
        found.push(Talk {
            name: format!(
                "{} → {}",
                names(recording, &group.from),
                names(recording, &group.to)
            ),
            messages: Pair {
                expected: messages / slower,
                seen: group.messages / seconds,
            },
            bytes: (group.sized > 0.0 && messages > 0.0).then(|| Pair {
                expected: bytes / messages,
                seen: group.bytes / group.sized,
            }),
        });
    }
    found.sort_by(|a, b| {
        let by_count = b.messages.seen.total_cmp(&a.messages.seen);
        by_count.then_with(|| a.name.cmp(&b.name))
    });
    found
}

fn names(recording: &Recording, ids: &BTreeSet<u64>) -> String {
    let name = |id: &u64| match recording.component(*id) {
        Some(component) => component.name.clone(),
        None => format!("component {id}"),
    };
    let first = ids.first().map(name).unwrap_or_default();
    match ids.len() {
        0 | 1 => first,
        2 => format!("{first} and {}", ids.last().map(name).unwrap_or_default()),
        count => format!("{first} and {} more", count - 1),
    }
}

fn busiest_planned(cost: &Breakdown) -> f64 {
    let loads = cost.loads.iter().map(|load| load.total_ns() / 1e9);
    loads.fold(0.0, f64::max)
}

fn busiest_seen(recording: &Recording) -> f64 {
    let seconds = recording.ns.max(1) as f64;
    let mut busy: HashMap<usize, f64> = HashMap::new();
    match recording.carrying {
        Carrying::Workers => {
            for worker in &recording.workers {
                let core = worker.core.or(worker.seen_on);
                let place = core.unwrap_or(usize::MAX - usize::from(worker.index));
                *busy.entry(place).or_default() += worker.busy as f64 / seconds;
            }
        }
        Carrying::Threads => {
            for one in &recording.components {
                if let Some(core) = mostly_on(recording, one) {
                    *busy.entry(core).or_default() += one.running as f64 / seconds;
                }
            }
        }
    }
    busy.into_values().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
