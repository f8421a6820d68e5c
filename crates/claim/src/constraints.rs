//! Constraints on a claim: how many cores, and which.

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::topology::{OsNode, OsThread};
use hearth_place::graph::Kind;
use hearth_place::slots::{CpuSlot, Machine, Message};

/// A core: the lowest number of its CPUs. A claim has whole cores, with all their CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Core(pub u32);

/// Cores from which each is tried as the first of a group, at most.
const SEEDS_MAX: usize = 64;

/// Weight of what counts before something else: no machine has such distances, in ns.
const FIRST: f64 = 1e6;

/// Position of a claim's cores relative to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Near each other: messages between them cost little.
    #[default]
    Compact,
    /// Far from each other: each has caches and memory of its own.
    Scatter,
}

/// Wish of a claim. All parts hold together.
///
/// ```
/// use hearth_claim::Constraints;
///
/// let wide = Constraints::cores(2..=8).scatter();
/// let near = Constraints::cores(1..=4).on_node(1).sharing_cache(3, 8);
/// # let _ = (wide, near);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraints {
    pub(crate) least: u32,
    pub(crate) most: u32,
    spread: Spread,
    nodes: Vec<OsNode>,
    /// A CPU, and the level of a cache of it that all cores share.
    beside: Option<(u8, OsThread)>,
    memory: Option<OsNode>,
}

impl Constraints {
    /// Between so many cores, one at least.
    #[must_use]
    pub fn cores(quantity: std::ops::RangeInclusive<u32>) -> Constraints {
        let least = (*quantity.start()).max(1);
        Constraints {
            least,
            most: (*quantity.end()).max(least),
            spread: Spread::default(),
            nodes: Vec::new(),
            beside: None,
            memory: None,
        }
    }

    /// Far from each other. Otherwise they are near each other.
    #[must_use]
    pub fn scatter(self) -> Constraints {
        let spread = Spread::Scatter;
        Constraints { spread, ..self }
    }

    /// On a node; called again, on this one or the former.
    #[must_use]
    pub fn on_node(mut self, node: u32) -> Constraints {
        self.nodes.push(OsNode(node));
        self
    }

    /// Behind the same cache of a level as a CPU.
    #[must_use]
    pub fn sharing_cache(self, level: u8, cpu: u32) -> Constraints {
        let beside = Some((level, OsThread(cpu)));
        Constraints { beside, ..self }
    }

    /// As near to a node's memory as others leave room, on whatever node.
    #[must_use]
    pub fn near_memory_of(self, node: u32) -> Constraints {
        let memory = Some(OsNode(node));
        Constraints { memory, ..self }
    }

    /// The same wish for no more than so many cores.
    pub(crate) fn at_most(&self, cores: u32) -> Constraints {
        let mut wish = self.clone();
        (wish.least, wish.most) = (wish.least.min(cores), wish.most.min(cores));
        wish
    }

    /// Fewest and most cores.
    #[must_use]
    pub fn quantity(&self) -> (u32, u32) {
        (self.least, self.most)
    }
}

/// The cores that may be used, and the cost of messages between them.
#[derive(Clone, Debug)]
pub struct Site {
    machine: Machine,
    /// The cores, in the order of the machine's.
    cores: Vec<Core>,
}

impl Site {
    /// The cores of a machine that was made of a profile.
    #[must_use]
    pub fn new(profile: &Profile, machine: Machine) -> Site {
        let topology = &profile.topology;
        // All CPUs count, also those that this process may not use: others name the core so, too.
        let core = |slots: &Vec<CpuSlot>| {
            let thread = machine.slots()[slots[0].index()].thread;
            let core = topology.thread(thread).core;
            let cpus = topology
                .all_threads()
                .filter(|one| topology.thread(*one).core == core);
            let lowest = cpus.map(|cpu| topology.os_thread(cpu).0).min();
            Core(lowest.unwrap_or_default())
        };
        let cores = machine.cores().iter().map(core).collect();
        Site { machine, cores }
    }

    /// The cores.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    fn slots(&self, core: Core) -> &[CpuSlot] {
        let at = self.cores.iter().position(|one| *one == core);
        at.map_or(&[], |at| self.machine.cores()[at].as_slice())
    }

    /// The usable CPUs of some cores, ascending.
    #[must_use]
    pub fn cpus(&self, cores: &[Core]) -> Vec<usize> {
        let slots = cores.iter().flat_map(|core| self.slots(*core));
        let mut cpus: Vec<usize> = slots
            .map(|slot| self.machine.os(*slot).0 as usize)
            .collect();
        cpus.sort_unstable();
        cpus
    }
}

/// Chooses among free cores what a claim that holds some already may get in addition: as many as
/// there are, up to its most. The claim may still have fewer than its least.
#[must_use]
pub fn choose(site: &Site, held: &[Core], free: &[Core], wish: &Constraints) -> Vec<Core> {
    let site = Chooser { site, wish };
    let mut free: Vec<Core> = free
        .iter()
        .copied()
        .filter(|core| site.fits(*core))
        .collect();
    free.sort_by(|a, b| {
        site.to_memory(*a)
            .total_cmp(&site.to_memory(*b))
            .then(a.cmp(b))
    });
    free.dedup();
    let count = (wish.most as usize)
        .saturating_sub(held.len())
        .min(free.len());
    if count == 0 {
        return Vec::new();
    }
    // A claim that has cores grows from these; a new one from the best beginning.
    let seeds: Vec<Option<Core>> = match (held, wish.spread) {
        ([], Spread::Compact) => free.iter().take(SEEDS_MAX).copied().map(Some).collect(),
        _ => vec![None],
    };
    let grown = seeds
        .into_iter()
        .map(|seed| site.grow(held, seed, &free, count));
    let best = grown.min_by(|a, b| site.cost(a).total_cmp(&site.cost(b)));
    let mut best = best.unwrap_or_default();
    best.sort();
    best
}

/// Chooses which cores a claim gives back: those whose loss leaves the best rest.
#[must_use]
pub fn give_back(site: &Site, held: &[Core], count: usize, wish: &Constraints) -> Vec<Core> {
    let site = Chooser { site, wish };
    let mut rest = held.to_vec();
    let mut given = Vec::new();
    for _ in 0..count.min(held.len()) {
        let without = |at: &usize| {
            let mut others = rest.clone();
            others.remove(*at);
            site.cost(&others)
        };
        let last = (0..rest.len()).rev();
        if let Some(at) = last.min_by(|a, b| without(a).total_cmp(&without(b))) {
            given.push(rest.remove(at));
        }
    }
    given.sort();
    given
}

struct Chooser<'a> {
    site: &'a Site,
    wish: &'a Constraints,
}

impl Chooser<'_> {
    fn machine(&self) -> &Machine {
        &self.site.machine
    }

    /// A usable CPU of a core.
    fn slot(&self, core: Core) -> Option<CpuSlot> {
        self.site.slots(core).first().copied()
    }

    /// Whether a core may belong to the claim at all.
    fn fits(&self, core: Core) -> bool {
        let Some(slot) = self.slot(core) else {
            return false;
        };
        let parts = &self.machine().slots()[slot.index()];
        let node = self.machine().nodes()[parts.node as usize].os;
        let is_there = self.wish.nodes.is_empty() || self.wish.nodes.contains(&node);
        is_there
            && self.wish.beside.is_none_or(|(level, cpu)| {
                let other = self.machine().slot_of(cpu);
                other.is_some_and(|other| self.share_cache(level, slot, other))
            })
    }

    fn share_cache(&self, level: u8, one: CpuSlot, other: CpuSlot) -> bool {
        let caches = self.machine().caches().iter();
        let mut caches = caches.filter(|cache| cache.level == level);
        caches.any(|cache| cache.slots.contains(&one) && cache.slots.contains(&other))
    }

    /// Cost of a line from one core to another, ns.
    fn distance(&self, one: Core, other: Core) -> f64 {
        match (self.slot(one), self.slot(other)) {
            (Some(one), Some(other)) => self.between(one, other),
            _ => 0.0,
        }
    }

    fn between(&self, one: CpuSlot, other: CpuSlot) -> f64 {
        let message = Message {
            bytes: 64.0,
            carrier: Carrier::Spin,
            kind: Kind::Copied,
        };
        self.machine()
            .messages()
            .share(one, other, &message)
            .total_ns()
    }

    /// Distance from the nearest core of the node whose memory matters, ns.
    fn to_memory(&self, core: Core) -> f64 {
        let Some(memory) = self.wish.memory else {
            return 0.0;
        };
        let node = self.machine().nodes().iter().find(|node| node.os == memory);
        let there = node.map(|node| node.slots.as_slice()).unwrap_or_default();
        let Some(own) = self.slot(core).filter(|own| !there.contains(own)) else {
            return 0.0;
        };
        let distances = there.iter().map(|slot| self.between(own, *slot));
        distances.reduce(f64::min).unwrap_or(0.0)
    }

    /// Adds cores to a claim, one after the other.
    fn grow(&self, held: &[Core], seed: Option<Core>, free: &[Core], count: usize) -> Vec<Core> {
        let mut chosen: Vec<Core> = seed.into_iter().collect();
        while chosen.len() < count {
            let left = free.iter().copied().filter(|core| !chosen.contains(core));
            let next = left.min_by(|a, b| {
                let value = |core: &Core| self.value(held.iter().chain(&chosen), *core);
                value(a).total_cmp(&value(b))
            });
            match next {
                Some(core) => chosen.push(core),
                None => break,
            }
        }
        chosen
    }

    /// Value of a core for a claim that has others; small is good.
    fn value<'c>(&self, others: impl Iterator<Item = &'c Core>, core: Core) -> f64 {
        let distances: Vec<f64> = others.map(|other| self.distance(*other, core)).collect();
        let sum: f64 = distances.iter().sum();
        let apart = match self.wish.spread {
            Spread::Compact => sum,
            // The nearest one counts; among equals, all.
            Spread::Scatter => {
                let nearest = distances.into_iter().reduce(f64::min).unwrap_or(0.0);
                -(nearest * FIRST + sum)
            }
        };
        apart + self.to_memory(core)
    }

    /// Value of a whole claim; small is good.
    fn cost(&self, cores: &[Core]) -> f64 {
        let mut sum = 0.0;
        for (at, core) in cores.iter().enumerate() {
            let distances = cores[..at].iter().map(|other| self.distance(*other, *core));
            let distances: f64 = distances.sum();
            sum += match self.wish.spread {
                Spread::Compact => distances,
                Spread::Scatter => -distances,
            };
            sum += self.to_memory(*core);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::site;

    const TWO_PACKAGES: &str = "2 packages, 4 cores, l1d 32K per core, l2 8M per package";

    fn numbers(cores: &[Core]) -> Vec<u32> {
        cores.iter().map(|core| core.0).collect()
    }

    fn chosen(held: &[u32], free: &[u32], wish: &Constraints) -> Vec<u32> {
        let site = site(TWO_PACKAGES);
        let cores = |numbers: &[u32]| {
            numbers
                .iter()
                .map(|number| Core(*number))
                .collect::<Vec<_>>()
        };
        numbers(&choose(&site, &cores(held), &cores(free), wish))
    }

    #[test]
    fn compact_claims_stay_in_a_package() {
        let wish = Constraints::cores(1..=3);
        assert_eq!(chosen(&[], &[0, 1, 2, 3, 4, 5, 6, 7], &wish), [0, 1, 2]);
        // Two are free in one package and three in the other.
        assert_eq!(chosen(&[], &[0, 1, 5, 6, 7], &wish), [5, 6, 7]);
        assert_eq!(chosen(&[4], &[0, 1, 2, 3, 5, 6], &wish), [5, 6]);
    }

    #[test]
    fn scattered_claims_take_turns() {
        let wish = Constraints::cores(1..=4).scatter();
        let four = chosen(&[], &[0, 1, 2, 3, 4, 5, 6, 7], &wish);
        assert_eq!(four.iter().filter(|core| **core < 4).count(), 2, "{four:?}");
        assert_eq!(chosen(&[0, 1, 2], &[3, 7], &wish), [7]);
    }

    #[test]
    fn constraints_hold_together() {
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        let wish = Constraints::cores(1..=8).sharing_cache(2, 5);
        assert_eq!(chosen(&[], &all, &wish), [4, 5, 6, 7]);
        let nowhere = Constraints::cores(1..=8).on_node(3);
        assert_eq!(chosen(&[], &all, &nowhere), [0_u32; 0]);
        let most = Constraints::cores(1..=2);
        assert_eq!(chosen(&[0, 1], &[2, 3], &most), [0_u32; 0]);
        assert_eq!(chosen(&[], &[9], &most), [0_u32; 0]);
    }

    #[test]
    fn nodes_and_memory_count() {
        let site = site("2 nodes, 2 packages, 2 cores, l2 4M per package");
        let all = site.cores();
        assert_eq!(numbers(all), [0, 1, 2, 3]);
        let on = Constraints::cores(1..=4).on_node(1);
        assert_eq!(numbers(&choose(&site, &[], all, &on)), [2, 3]);
        let near = Constraints::cores(1..=3).near_memory_of(1);
        let chosen = numbers(&choose(&site, &[], all, &near));
        assert!(
            chosen.contains(&2) && chosen.contains(&3) && chosen.len() == 3,
            "{chosen:?}"
        );
    }

    #[test]
    fn a_core_has_all_its_cpus() {
        let site = site("1 package, 2 cores, 2 threads, l2 4M per package");
        assert_eq!(site.cores().len(), 2);
        assert_eq!(site.cpus(site.cores()), [0, 1, 2, 3]);
        assert_eq!(site.cpus(&site.cores()[..1]).len(), 2);
    }

    #[test]
    fn what_is_given_back_leaves_the_best_rest() {
        let site = site(TWO_PACKAGES);
        let held = [Core(0), Core(1), Core(6), Core(2)];
        let wish = Constraints::cores(1..=8);
        assert_eq!(give_back(&site, &held, 1, &wish), [Core(6)]);
        let scattered = wish.scatter();
        assert_eq!(give_back(&site, &held, 2, &scattered).len(), 2);
        let rest: Vec<Core> = give_back(&site, &held, 2, &scattered);
        assert!(!rest.contains(&Core(6)), "{rest:?}");
    }
}
