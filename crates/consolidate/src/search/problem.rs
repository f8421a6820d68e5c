//! The system as tables, for the search.

use std::collections::BTreeMap;

use super::Goals;
use crate::model::{Asil, Bound, By, LockStep, System};
use crate::switch::signal_ns_max;

/// A used-up share of a core or bus as a whole number, so that sums have no rounding: this many
/// parts are all of it.
pub(crate) const WHOLE: u64 = 1 << 40;
/// Slack for the rounding up of each term; far less than the checker's tolerance.
const SLACK: u64 = 512;

/// Parts that no core has.
pub(crate) const NEVER: u64 = u64::MAX / 4;

/// A message as one of its ends sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) peer: u32,
    pub(crate) message: u32,
}

/// A message with what it costs.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    /// Bits a second, the mean over time.
    pub(crate) bits_s: f64,
    /// Whether it is ever sent.
    pub(crate) is_sent: bool,
    pub(crate) latency_max_ns: u64,
    /// Parts of each bus, and time on it.
    pub(crate) by_bus: Vec<(u64, u64)>,
    pub(crate) modes: u64,
}

pub(crate) struct Problem<'a> {
    pub(crate) system: &'a System,
    pub(crate) modes: usize,
    pub(crate) shares: Vec<f64>,
    /// Largest parts of a core that may be used in a mode.
    pub(crate) core_max: u64,
    pub(crate) is_response: bool,
    /// Place of each component in the order of priority.
    pub(crate) rank: Vec<u32>,
    /// By component, kind of core and kind of memory: the time, or `u64::MAX`.
    times: Vec<u64>,
    core_kind: Vec<usize>,
    memory_kind: Vec<usize>,
    kinds: (usize, usize),
    /// Cores on which a component may be as far as it alone is concerned.
    pub(crate) candidates: Vec<Vec<u32>>,
    pub(crate) edges: Vec<Vec<Edge>>,
    pub(crate) talks: Vec<Talk>,
    /// The bus between two units; `u32::MAX` for none.
    buses: Vec<u32>,
    pub(crate) bus_max: Vec<u64>,
    /// Groups that a component must be apart from, with their extent.
    pub(crate) apart: Vec<Vec<(u32, By)>>,
    /// Class of each unit: units of one class can be taken for each other.
    pub(crate) unit_class: Vec<u32>,
    /// Class of each core within its unit.
    pub(crate) core_class: Vec<u32>,
    /// Cable from each unit to each point, metres.
    pub(crate) cables: Vec<f64>,
    /// Least parts of a core that a component takes.
    pub(crate) least: Vec<u64>,
    /// The same by kind of memory; [`NEVER`] where it has no seat.
    pub(crate) least_by_memory: Vec<Vec<u64>>,
    /// Price of a byte in each kind of memory, parts: what it saves at the margin.
    pub(crate) prices: Vec<f64>,
    /// Least share-weighted power of a component, watts.
    pub(crate) least_w: Vec<f64>,
    /// Bounds of mode switches without the signal, ns, by the mode before.
    pub(crate) busy_max: Vec<Option<u64>>,
    /// Weight of each goal by its scale.
    pub(crate) weights: Weights,
}

/// Factors of the terms of the goal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weights {
    pub(crate) traffic: f64,
    pub(crate) latency: f64,
    pub(crate) cabling: f64,
    pub(crate) energy: f64,
    pub(crate) mixing: f64,
    pub(crate) cost: f64,
}

/// Parts of a whole, rounded up.
pub(crate) fn parts(time: u64, period: u64) -> u64 {
    let parts = (u128::from(time) * u128::from(WHOLE)).div_ceil(u128::from(period.max(1)));
    u64::try_from(parts)
        .unwrap_or(u64::MAX / 4)
        .min(u64::MAX / 4)
}

impl<'a> Problem<'a> {
    pub(crate) fn new(system: &'a System, goals: &Goals) -> Self {
        let count = system.components.len();
        let (core_kind, core_kinds) = kinds(system.cores.iter().map(|core| &core.kind));
        let (memory_kind, memory_kinds) = kinds(system.memories.iter().map(|one| &one.kind));
        let limit = match system.rules.bound {
            Bound::Utilisation(max) => max,
            Bound::Response => 1.0,
        };
        let mut problem = Self {
            system,
            modes: system.modes.len(),
            shares: system.modes.iter().map(|mode| mode.share).collect(),
            core_max: (limit * WHOLE as f64) as u64 + SLACK,
            is_response: system.rules.bound == Bound::Response,
            rank: ranks(system),
            times: vec![u64::MAX; count * core_kinds * memory_kinds],
            core_kind,
            memory_kind,
            kinds: (core_kinds, memory_kinds),
            candidates: vec![Vec::new(); count],
            edges: vec![Vec::new(); count],
            talks: Vec::new(),
            buses: bus_table(system),
            bus_max: (system.buses.iter())
                .map(|bus| (bus.load_max * WHOLE as f64) as u64 + SLACK)
                .collect(),
            apart: vec![Vec::new(); count],
            unit_class: Vec::new(),
            core_class: Vec::new(),
            cables: cables(system),
            least: Vec::new(),
            least_by_memory: vec![vec![NEVER; memory_kinds]; count],
            prices: vec![0.0; memory_kinds],
            least_w: Vec::new(),
            busy_max: vec![None; system.modes.len()],
            weights: Weights::default(),
        };
        for core in 0..system.cores.len() {
            for memory in 0..system.memories.len() {
                if system.cores[core].unit == system.memories[memory].unit {
                    for component in 0..count {
                        let time = system.time_ns(component, core, memory);
                        let at = problem.time_at(component, core, memory);
                        problem.times[at] = time.unwrap_or(u64::MAX);
                    }
                }
            }
        }
        for switch in system.switches.iter().filter(|one| one.from != one.to) {
            let within = switch.within_ns.saturating_sub(signal_ns_max(system));
            let now = &mut problem.busy_max[switch.from];
            *now = Some(now.map_or(within, |now| now.min(within)));
        }
        problem.find_candidates();
        problem.find_talks();
        problem.find_classes();
        for (group, apart) in (0..).zip(&system.apart) {
            for component in &apart.components {
                problem.apart[*component].push((group, apart.by));
            }
        }
        problem.weights = problem.weigh(goals);
        problem
    }

    pub(crate) fn count(&self) -> usize {
        self.system.components.len()
    }

    fn time_at(&self, component: usize, core: usize, memory: usize) -> usize {
        let (cores, memories) = self.kinds;
        (component * cores + self.core_kind[core]) * memories + self.memory_kind[memory]
    }

    /// Kind of a memory, as a number into the prices.
    pub(crate) fn memory_kind(&self, memory: usize) -> usize {
        self.memory_kind[memory]
    }

    /// Time of a component on a core with a memory; `u64::MAX` if there is none.
    pub(crate) fn time(&self, component: usize, core: usize, memory: usize) -> u64 {
        self.times[self.time_at(component, core, memory)]
    }

    pub(crate) fn bus(&self, from: usize, to: usize) -> Option<usize> {
        let bus = self.buses[from * self.system.units.len() + to];
        (bus != u32::MAX).then_some(bus as usize)
    }

    /// Cores that could take each component if it were alone, and the least that it takes.
    fn find_candidates(&mut self) {
        let system = self.system;
        for (at, component) in system.components.iter().enumerate() {
            let (mut least, mut least_w) = (NEVER, f64::INFINITY);
            let share = system.time_share(component.modes);
            for (number, core) in system.cores.iter().enumerate() {
                let unit = &system.units[core.unit];
                let is_wired = unit.points.as_ref();
                let is_wired = is_wired
                    .is_none_or(|can| component.points.iter().all(|point| can.contains(point)));
                let is_here = component.on.is_none_or(|on| on == core.unit);
                let is_safe = component.asil != Asil::D || core.lockstep != LockStep::No;
                if !(is_wired && is_here && is_safe) {
                    continue;
                }
                let mut fits = false;
                for memory in &unit.memories {
                    let time = self.time(at, number, *memory);
                    let has_room = system.memories[*memory].bytes >= component.bytes;
                    if time > component.deadline_ns || !has_room {
                        continue;
                    }
                    let used = parts(time, component.period_ns);
                    if used > self.core_max {
                        continue;
                    }
                    fits = true;
                    least = least.min(used);
                    let kind = self.memory_kind[*memory];
                    let by_kind = &mut self.least_by_memory[at][kind];
                    *by_kind = used.min(*by_kind);
                    let busy = time as f64 / component.period_ns as f64;
                    least_w = least_w.min(core.busy_w * busy * share);
                }
                if fits {
                    self.candidates[at].push(u32::try_from(number).unwrap_or(u32::MAX));
                }
            }
            self.least.push(least);
            self.least_w
                .push(if least_w.is_finite() { least_w } else { 0.0 });
        }
    }

    fn find_talks(&mut self) {
        let system = self.system;
        for (at, message) in (0..).zip(&system.messages) {
            let modes = system.modes_of(message);
            let bits = message.bytes as f64 * 8.0 * 1e9 / message.period_ns as f64;
            let by_bus = system.buses.iter().map(|bus| {
                let share = (bus.share(message) * WHOLE as f64).ceil();
                (share as u64, bus.transport_ns(message.bytes))
            });
            self.talks.push(Talk {
                bits_s: bits * system.time_share(modes),
                is_sent: !modes.is_empty(),
                latency_max_ns: message.latency_ns.unwrap_or(u64::MAX),
                by_bus: by_bus.collect(),
                modes: modes.0,
            });
            for (end, other) in [(message.from, message.to), (message.to, message.from)] {
                let peer = u32::try_from(other).unwrap_or(u32::MAX);
                self.edges[end].push(Edge { peer, message: at });
            }
        }
    }

    /// Units and cores that can be taken for each other.
    fn find_classes(&mut self) {
        let system = self.system;
        let mut looks: BTreeMap<String, u32> = BTreeMap::new();
        for (at, unit) in system.units.iter().enumerate() {
            let cores = unit.cores.iter().map(|core| self.core_look(*core));
            let memories = unit.memories.iter().map(|one| {
                let memory = &system.memories[*one];
                (&memory.kind, memory.bytes)
            });
            let buses: Vec<usize> = (0..system.buses.len())
                .filter(|bus| system.buses[*bus].units.contains(&at))
                .collect();
            let is_named = system.components.iter().any(|one| one.on == Some(at));
            let numbers = (
                unit.at,
                unit.cost,
                &unit.power_w,
                unit.sleep_w,
                unit.cable_m,
            );
            let rest = (&unit.points, unit.is_protected, unit.core_latency_ns);
            let look = format!(
                "{numbers:?} {rest:?} {buses:?} {:?} {:?} {:?}",
                cores.collect::<Vec<_>>(),
                memories.collect::<Vec<_>>(),
                is_named.then_some(at),
            );
            let next = u32::try_from(looks.len()).unwrap_or(u32::MAX);
            self.unit_class.push(*looks.entry(look).or_insert(next));
        }
        let mut looks: BTreeMap<String, u32> = BTreeMap::new();
        for core in 0..system.cores.len() {
            let next = u32::try_from(looks.len()).unwrap_or(u32::MAX);
            let look = self.core_look(core);
            self.core_class.push(*looks.entry(look).or_insert(next));
        }
    }

    fn core_look(&self, core: usize) -> String {
        let core = &self.system.cores[core];
        let lockstep = match core.lockstep {
            LockStep::No if core.checks.is_some() => "checks",
            LockStep::No => "no",
            LockStep::Always => "always",
            LockStep::With(_) => "pair",
        };
        format!("{} {lockstep} {}", core.kind, core.busy_w)
    }

    /// Divides the weights by the size of each goal at its worst.
    fn weigh(&self, goals: &Goals) -> Weights {
        let system = self.system;
        let traffic: f64 = self.talks.iter().map(|talk| talk.bits_s).sum();
        let slowest = self.talks.iter().filter(|talk| talk.is_sent).map(|talk| {
            let times = talk.by_bus.iter().map(|(_, time)| *time);
            times.max().unwrap_or(0) as f64
        });
        let within: f64 = system
            .units
            .iter()
            .map(|unit| unit.core_latency_ns as f64)
            .fold(0.0, f64::max);
        let latency = slowest.sum::<f64>() + within * self.talks.len() as f64;
        let units = system.units.len() as f64;
        let each = system
            .components
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| {
                let all = (0..system.units.len()).map(|unit| self.cable_m(unit, *point));
                all.sum::<f64>() / units
            });
        let own: f64 = system.units.iter().map(|unit| unit.cable_m).sum();
        let cabling = each.sum::<f64>() + own;
        let base = system.units.iter().map(|unit| {
            let modes = unit.power_w.iter().zip(&self.shares);
            modes.map(|(watts, share)| watts * share).sum::<f64>()
        });
        let busiest = system
            .cores
            .iter()
            .map(|core| core.busy_w)
            .fold(0.0, f64::max);
        let busy = self
            .least
            .iter()
            .map(|least| *least as f64 / WHOLE as f64 * busiest);
        let energy = base.sum::<f64>() + busy.sum::<f64>();
        let mixing = (4 * self.count()) as f64;
        let cost: f64 = system.units.iter().map(|unit| unit.cost).sum();
        let by = |weight: f64, scale: f64| if scale > 0.0 { weight / scale } else { 0.0 };
        Weights {
            traffic: by(goals.traffic, traffic),
            latency: by(goals.latency, latency),
            cabling: by(goals.cabling, cabling),
            energy: by(goals.energy, energy),
            mixing: by(goals.mixing, mixing),
            cost: by(goals.cost, cost),
        }
    }

    pub(crate) fn cable_m(&self, unit: usize, point: usize) -> f64 {
        self.cables[unit * self.system.points.len() + point]
    }

    /// Whether a component is active in a mode.
    pub(crate) fn is_active(&self, component: usize, mode: usize) -> bool {
        self.system.components[component].modes.has(mode)
    }
}

/// Numbers for kinds, and how many there are.
fn kinds<'k>(kinds: impl Iterator<Item = &'k String>) -> (Vec<usize>, usize) {
    let mut numbers: BTreeMap<&String, usize> = BTreeMap::new();
    let of: Vec<usize> = kinds
        .map(|kind| {
            let next = numbers.len();
            *numbers.entry(kind).or_insert(next)
        })
        .collect();
    (of, numbers.len())
}

fn ranks(system: &System) -> Vec<u32> {
    let mut order: Vec<usize> = (0..system.components.len()).collect();
    order.sort_by_key(|at| (system.components[*at].deadline_ns, *at));
    let mut rank = vec![0; order.len()];
    for (place, component) in (0..).zip(order) {
        rank[component] = place;
    }
    rank
}

fn bus_table(system: &System) -> Vec<u32> {
    let units = system.units.len();
    let mut table = vec![u32::MAX; units * units];
    let mut order: Vec<usize> = (0..system.buses.len()).collect();
    // The last one written holds: the shortest latency, the first of several.
    order.sort_by_key(|at| {
        (
            std::cmp::Reverse(system.buses[*at].latency_ns),
            std::cmp::Reverse(*at),
        )
    });
    for bus in order {
        for from in &system.buses[bus].units {
            for to in &system.buses[bus].units {
                table[from * units + to] = u32::try_from(bus).unwrap_or(u32::MAX);
            }
        }
    }
    table
}

fn cables(system: &System) -> Vec<f64> {
    let units = system.units.iter();
    let cables = units.flat_map(|unit| {
        let points = 0..system.points.len();
        points.map(|point| system.cable_m(unit.at, point).unwrap_or(0.0))
    });
    cables.collect()
}
