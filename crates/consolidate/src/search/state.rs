//! Seats of some or all components, with the loads and sums that follow, updated one by one.
//!
//! [`State::fits`] is the search's own test of the rules. It is never used to show that a result is
//! valid: that is the checker's.

use super::problem::{Problem, parts};
use crate::mapping::{Mapping, Seat};
use crate::model::{Asil, By, LockStep};

const NOWHERE: u32 = u32::MAX;
const LEVELS: usize = Asil::ALL.len();
/// Most rounds of a busy period's equation.
const ROUNDS_MAX: usize = 10_000;

#[derive(Clone)]
pub(crate) struct State<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    core: Vec<u32>,
    memory: Vec<u32>,
    /// Time of each component at its seat.
    time: Vec<u64>,
    /// The components of each core in the order of priority.
    on_core: Vec<Vec<u32>>,
    /// Used parts by core and mode.
    used: Vec<u64>,
    /// By component and mode, the response time; only under exact analysis.
    response: Vec<u64>,
    levels: Vec<[u32; LEVELS]>,
    unit_levels: Vec<[u32; LEVELS]>,
    bytes: Vec<u64>,
    pub(crate) unit_count: Vec<u32>,
    awake: Vec<u32>,
    wired: Vec<u32>,
    bus_used: Vec<u64>,
    /// By group that must be apart, components on each unit or core.
    apart: Vec<Vec<u32>>,
    pub(crate) units: usize,
    pub(crate) cores: usize,
    sums: Sums,
    /// Components looked at since the last query.
    pub(crate) steps: u64,
}

/// Terms of the goal, each in its own unit.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    traffic: f64,
    latency: f64,
    cabling: f64,
    energy: f64,
    mixing: f64,
    cost: f64,
}

impl<'p, 'a> State<'p, 'a> {
    /// Nothing placed.
    pub(crate) fn new(problem: &'p Problem<'a>) -> Self {
        let system = problem.system;
        let (units, cores, modes) = (system.units.len(), system.cores.len(), problem.modes);
        let count = problem.count();
        Self {
            problem,
            core: vec![NOWHERE; count],
            memory: vec![NOWHERE; count],
            time: vec![0; count],
            on_core: vec![Vec::new(); cores],
            used: vec![0; cores * modes],
            response: vec![0; count * modes],
            levels: vec![[0; LEVELS]; cores],
            unit_levels: vec![[0; LEVELS]; units],
            bytes: vec![0; system.memories.len()],
            unit_count: vec![0; units],
            awake: vec![0; units * modes],
            wired: vec![0; units * system.points.len()],
            bus_used: vec![0; system.buses.len() * modes],
            apart: (system.apart.iter())
                .map(|apart| match apart.by {
                    By::Unit => vec![0; units],
                    By::Core => vec![0; cores],
                })
                .collect(),
            units: 0,
            cores: 0,
            sums: Sums::default(),
            steps: 0,
        }
    }

    pub(crate) fn seat(&self, component: usize) -> Option<Seat> {
        (self.core[component] != NOWHERE).then(|| Seat {
            core: self.core[component] as usize,
            memory: self.memory[component] as usize,
        })
    }

    pub(crate) fn unit(&self, component: usize) -> Option<usize> {
        let core = self.core[component];
        (core != NOWHERE).then(|| self.problem.system.cores[core as usize].unit)
    }

    pub(crate) fn on(&self, core: usize) -> &[u32] {
        &self.on_core[core]
    }

    pub(crate) fn is_used(&self, core: usize) -> bool {
        !self.on_core[core].is_empty()
    }

    pub(crate) fn used(&self, core: usize, mode: usize) -> u64 {
        self.used[core * self.problem.modes + mode]
    }

    /// The largest load of a core over the modes, parts.
    pub(crate) fn peak(&self, core: usize) -> u64 {
        let modes = self.problem.modes;
        let used = &self.used[core * modes..][..modes];
        used.iter().copied().max().unwrap_or(0)
    }

    /// The same with one more component of this many parts.
    pub(crate) fn peak_with(&self, core: usize, component: usize, more: u64) -> u64 {
        let modes = 0..self.problem.modes;
        let used = modes.map(|mode| match self.problem.is_active(component, mode) {
            true => self.used(core, mode) + more,
            false => self.used(core, mode),
        });
        used.max().unwrap_or(0)
    }

    /// Parts of its core that a component takes.
    pub(crate) fn taken(&self, component: usize) -> u64 {
        parts(
            self.time[component],
            self.problem.system.components[component].period_ns,
        )
    }

    pub(crate) fn bytes_free(&self, memory: usize) -> u64 {
        let all = self.problem.system.memories[memory].bytes;
        all.saturating_sub(self.bytes[memory])
    }

    /// Whether a core is the checker of one that runs in lock-step now.
    pub(crate) fn is_checker(&self, core: usize) -> bool {
        let checked = self.problem.system.cores[core].checks;
        checked.is_some_and(|first| self.levels[first][Asil::D.steps()] > 0)
    }

    /// The seats, if all components have one.
    pub(crate) fn mapping(&self) -> Option<Mapping> {
        let seats = (0..self.problem.count()).map(|component| self.seat(component));
        seats.collect::<Option<Vec<Seat>>>().map(Mapping)
    }

    /// The goal: terms by their weights.
    pub(crate) fn goal(&self) -> f64 {
        let (sums, weights) = (&self.sums, &self.problem.weights);
        weights.traffic * sums.traffic
            + weights.latency * sums.latency
            + weights.cabling * sums.cabling
            + weights.energy * sums.energy
            + weights.mixing * sums.mixing
            + weights.cost * sums.cost
    }

    /// Whether a component that has no seat may take this one.
    pub(crate) fn fits(&mut self, component: usize, seat: Seat) -> bool {
        self.steps += 1;
        self.may_load(component, seat)
            && self.may_mix(component, seat.core)
            && self.may_talk(component, seat.core)
            && self.is_in_time(component, seat)
    }

    /// Memory and utilisation.
    fn may_load(&self, component: usize, seat: Seat) -> bool {
        let problem = self.problem;
        let one = &problem.system.components[component];
        let time = problem.time(component, seat.core, seat.memory);
        time <= one.deadline_ns
            && one.bytes <= self.bytes_free(seat.memory)
            && self.peak_with(seat.core, component, parts(time, one.period_ns)) <= problem.core_max
    }

    /// Lock-step, levels and separations.
    fn may_mix(&self, component: usize, core: usize) -> bool {
        let system = self.problem.system;
        let place = &system.cores[core];
        let level = system.components[component].asil;
        if self.is_checker(core) {
            return false;
        }
        match (level, place.lockstep) {
            (Asil::D, LockStep::No) => return false,
            (Asil::D, LockStep::With(checker)) if self.is_used(checker) => return false,
            _ => {}
        }
        let far = |levels: &[u32; LEVELS], steps_max: usize| {
            let there = (0..LEVELS).filter(|at| levels[*at] > 0);
            let mut there = there.map(|at| at.abs_diff(level.steps()));
            there.any(|steps| steps > steps_max)
        };
        if far(&self.levels[core], system.rules.mixing.steps_max()) {
            return false;
        }
        if !system.units[place.unit].is_protected && far(&self.unit_levels[place.unit], 0) {
            return false;
        }
        let apart = &self.problem.apart[component];
        !apart.iter().any(|(group, by)| {
            let at = match by {
                By::Unit => place.unit,
                By::Core => core,
            };
            self.apart[*group as usize][at] > 0
        })
    }

    /// Buses and times on the way, to peers that have a seat.
    fn may_talk(&mut self, component: usize, core: usize) -> bool {
        let problem = self.problem;
        let unit = problem.system.cores[core].unit;
        let mut added: Vec<(usize, u64, u64)> = Vec::new();
        for edge in &problem.edges[component] {
            let Some(other) = self.unit(edge.peer as usize) else {
                continue;
            };
            self.steps += 1;
            let talk = &problem.talks[edge.message as usize];
            if other == unit {
                let is_one_core = self.core[edge.peer as usize] as usize == core;
                let way = problem.system.units[unit].core_latency_ns;
                if !is_one_core && talk.is_sent && way > talk.latency_max_ns {
                    return false;
                }
                continue;
            }
            let Some(bus) = problem.bus(unit, other) else {
                return false;
            };
            let (share, way) = talk.by_bus[bus];
            if talk.is_sent && way > talk.latency_max_ns {
                return false;
            }
            added.push((bus, share, talk.modes));
        }
        added.iter().all(|(bus, _, _)| {
            (0..problem.modes).all(|mode| {
                let there = added
                    .iter()
                    .filter(|(b, _, modes)| b == bus && modes >> mode & 1 == 1);
                let more: u64 = there.map(|(_, share, _)| share).sum();
                self.bus_used[bus * problem.modes + mode] + more <= problem.bus_max[*bus]
            })
        })
    }

    /// Response times and busy periods of the core with the component.
    fn is_in_time(&mut self, component: usize, seat: Seat) -> bool {
        let problem = self.problem;
        let time = problem.time(component, seat.core, seat.memory);
        for mode in 0..problem.modes {
            if !problem.is_active(component, mode) {
                continue;
            }
            if problem.is_response && !self.responds(component, seat.core, time, mode) {
                return false;
            }
            if let Some(max) = problem.busy_max[mode]
                && self
                    .busy_ns(seat.core, mode, Some((component, time)))
                    .is_none_or(|ns| ns > max)
            {
                return false;
            }
        }
        true
    }

    fn responds(&mut self, component: usize, core: usize, time: u64, mode: usize) -> bool {
        let problem = self.problem;
        let rank = problem.rank[component];
        let own = &problem.system.components[component];
        let there = std::mem::take(&mut self.on_core[core]);
        let split = there.partition_point(|other| problem.rank[*other as usize] < rank);
        let mut is_fine = self
            .settle(&there[..split], None, time, own.deadline_ns, time, mode)
            .is_some();
        for at in split..there.len() {
            if !is_fine {
                break;
            }
            let lower = there[at] as usize;
            if !problem.is_active(lower, mode) {
                continue;
            }
            let start = self.response[lower * problem.modes + mode] + time;
            let deadline = problem.system.components[lower].deadline_ns;
            let extra = Some((time, own.period_ns));
            let found = self.settle(&there[..at], extra, self.time[lower], deadline, start, mode);
            is_fine = found.is_some();
        }
        self.on_core[core] = there;
        is_fine
    }

    /// The least time that holds a component's own work and that of all before it, from a lower
    /// bound on; none if it is beyond the deadline.
    fn settle(
        &mut self,
        above: &[u32],
        extra: Option<(u64, u64)>,
        own: u64,
        deadline: u64,
        start: u64,
        mode: usize,
    ) -> Option<u64> {
        let problem = self.problem;
        let mut length = start.max(own);
        while length <= deadline {
            let mut next = own;
            if let Some((time, period)) = extra {
                next += length.div_ceil(period) * time;
            }
            for other in above {
                let other = *other as usize;
                if problem.is_active(other, mode) {
                    let period = problem.system.components[other].period_ns;
                    next += length.div_ceil(period) * self.time[other];
                }
            }
            self.steps += 1 + above.len() as u64 / 8;
            if next <= length {
                return Some(length);
            }
            length = next;
        }
        None
    }

    /// Longest busy period of a core in a mode, with one more component.
    fn busy_ns(&self, core: usize, mode: usize, more: Option<(usize, u64)>) -> Option<u64> {
        let there = self.on_core[core]
            .iter()
            .map(|at| (*at as usize, self.time[*at as usize]));
        let all = there
            .chain(more)
            .filter(|(at, _)| self.problem.is_active(*at, mode));
        let all: Vec<(u64, u64)> = all
            .map(|(at, time)| (time, self.problem.system.components[at].period_ns))
            .collect();
        let mut length: u64 = all.iter().map(|(time, _)| time).sum();
        for _ in 0..ROUNDS_MAX {
            let next = all
                .iter()
                .map(|(time, period)| length.div_ceil(*period) * time)
                .sum();
            if next <= length {
                return Some(length);
            }
            length = next;
        }
        None
    }

    /// Gives a component a seat that it fits.
    pub(crate) fn place(&mut self, component: usize, seat: Seat) {
        let problem = self.problem;
        self.core[component] = seat.core as u32;
        self.memory[component] = seat.memory as u32;
        self.time[component] = problem.time(component, seat.core, seat.memory);
        let rank = problem.rank[component];
        let there = &mut self.on_core[seat.core];
        let at = there.partition_point(|other| problem.rank[*other as usize] < rank);
        there.insert(at, component as u32);
        self.count(component, seat, true);
        self.refresh(seat.core, at);
    }

    /// Takes a component from its seat.
    pub(crate) fn remove(&mut self, component: usize) {
        let Some(seat) = self.seat(component) else {
            return;
        };
        self.count(component, seat, false);
        let there = &mut self.on_core[seat.core];
        let at = there.iter().position(|other| *other as usize == component);
        let at = at.unwrap_or(0);
        there.remove(at);
        self.core[component] = NOWHERE;
        self.memory[component] = NOWHERE;
        self.refresh(seat.core, at);
    }

    /// Response times of a core's components from one on.
    fn refresh(&mut self, core: usize, from: usize) {
        let problem = self.problem;
        if !problem.is_response {
            return;
        }
        let there = std::mem::take(&mut self.on_core[core]);
        for at in from..there.len() {
            let one = there[at] as usize;
            for mode in 0..problem.modes {
                if problem.is_active(one, mode) {
                    let own = self.time[one];
                    let found = self.settle(&there[..at], None, own, u64::MAX / 4, own, mode);
                    self.response[one * problem.modes + mode] = found.unwrap_or(own);
                }
            }
        }
        self.on_core[core] = there;
    }

    /// Adds a component to all sums, or takes it out of them. Its own seat is set, but it is not
    /// among the components of a core that peers are looked for in.
    fn count(&mut self, component: usize, seat: Seat, is_added: bool) {
        let problem = self.problem;
        let system = problem.system;
        let one = &system.components[component];
        let unit = system.cores[seat.core].unit;
        let sign = if is_added { 1.0 } else { -1.0 };
        let step = |count: &mut u32| {
            // The state before for additions, after for removals: both are 0 at the border.
            match is_added {
                true => *count += 1,
                false => *count -= 1,
            }
            *count == u32::from(is_added)
        };
        if step(&mut self.unit_count[unit]) {
            let place = &system.units[unit];
            self.units = if is_added {
                self.units + 1
            } else {
                self.units - 1
            };
            self.sums.cost += sign * place.cost;
            self.sums.cabling += sign * place.cable_m;
            self.sums.energy += sign * place.sleep_w;
        }
        let time = self.time[component];
        let used = parts(time, one.period_ns);
        let busy_w = system.cores[seat.core].busy_w * time as f64 / one.period_ns as f64;
        for mode in one.modes.iter().take_while(|mode| *mode < problem.modes) {
            let share = problem.shares[mode];
            if step(&mut self.awake[unit * problem.modes + mode]) {
                let place = &system.units[unit];
                self.sums.energy += sign * share * (place.power_w[mode] - place.sleep_w);
            }
            self.sums.energy += sign * share * busy_w;
            let sum = &mut self.used[seat.core * problem.modes + mode];
            *sum = if is_added { *sum + used } else { *sum - used };
        }
        for point in &one.points {
            if step(&mut self.wired[unit * system.points.len() + point]) {
                self.sums.cabling += sign * problem.cable_m(unit, *point);
            }
        }
        let bytes = &mut self.bytes[seat.memory];
        *bytes = if is_added {
            *bytes + one.bytes
        } else {
            *bytes - one.bytes
        };
        for (group, by) in &problem.apart[component] {
            let at = match by {
                By::Unit => unit,
                By::Core => seat.core,
            };
            step(&mut self.apart[*group as usize][at]);
        }
        self.sums.mixing -= mixing(&self.levels[seat.core]);
        self.cores -= self.cores_of(seat.core);
        step(&mut self.levels[seat.core][one.asil.steps()]);
        step(&mut self.unit_levels[unit][one.asil.steps()]);
        self.cores += self.cores_of(seat.core);
        self.sums.mixing += mixing(&self.levels[seat.core]);
        self.count_talk(component, seat.core, is_added);
    }

    /// A core that is used counts once, and its checker with it.
    fn cores_of(&self, core: usize) -> usize {
        let levels = &self.levels[core];
        let is_used = levels.iter().any(|count| *count > 0);
        let is_pair = matches!(self.problem.system.cores[core].lockstep, LockStep::With(_));
        usize::from(is_used) + usize::from(is_pair && levels[Asil::D.steps()] > 0)
    }

    fn count_talk(&mut self, component: usize, core: usize, is_added: bool) {
        let problem = self.problem;
        let unit = problem.system.cores[core].unit;
        let sign = if is_added { 1.0 } else { -1.0 };
        for edge in &problem.edges[component] {
            let Some(other) = self.unit(edge.peer as usize) else {
                continue;
            };
            let talk = &problem.talks[edge.message as usize];
            if other == unit {
                if self.core[edge.peer as usize] as usize != core && talk.is_sent {
                    let way = problem.system.units[unit].core_latency_ns as f64;
                    self.sums.latency += sign * way;
                }
                continue;
            }
            self.sums.traffic += sign * talk.bits_s;
            let Some(bus) = problem.bus(unit, other) else {
                continue;
            };
            let (share, way) = talk.by_bus[bus];
            if talk.is_sent {
                self.sums.latency += sign * way as f64;
            }
            for mode in 0..problem.modes {
                if talk.modes >> mode & 1 == 1 {
                    let sum = &mut self.bus_used[bus * problem.modes + mode];
                    *sum = if is_added { *sum + share } else { *sum - share };
                }
            }
        }
    }
}

/// Steps by which the components of a core are below the highest level there.
fn mixing(levels: &[u32; LEVELS]) -> f64 {
    let highest = (0..LEVELS).rev().find(|at| levels[*at] > 0).unwrap_or(0);
    let steps = (0..highest).map(|at| (highest - at) * levels[at] as usize);
    steps.sum::<usize>() as f64
}
