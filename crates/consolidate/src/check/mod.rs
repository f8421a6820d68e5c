//! The checker: whether a mapping keeps every rule of its system.
//!
//! It reads the system and the mapping and nothing else, and shares no code with the search's own
//! tests; a mistake in one of the two shows as a difference. Every result goes through it before
//! it is shown.

mod response;
mod switching;
mod violation;

pub use violation::Violation;

use crate::mapping::Mapping;
use crate::model::{Asil, Bound, By, LockStep, ModeSet, System};
use crate::switch::SwitchPlan;
use response::{Load, responses};

/// Tolerance of sums of shares: rounding of a few thousand terms.
const ROUNDING: f64 = 1e-9;

/// Findings about a mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Breaches of the rules; empty for a valid mapping.
    pub violations: Vec<Violation>,
    /// Loads of the used cores in each mode.
    pub loads: Vec<CoreLoad>,
    /// Loads of the buses in each mode.
    pub buses: Vec<BusLoad>,
}

impl Checked {
    /// Whether every rule holds.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Load of a core in a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreLoad {
    /// The core.
    pub core: usize,
    /// The mode.
    pub mode: usize,
    /// Sum of time by period.
    pub utilisation: f64,
    /// The active components with their longest response time in ns, in the order of priority;
    /// none where a deadline can be missed. Under a bound on utilisation it is only reported.
    pub responses: Vec<(usize, Option<u64>)>,
}

/// Load of a bus in a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct BusLoad {
    /// The bus.
    pub bus: usize,
    /// The mode.
    pub mode: usize,
    /// Share of its bandwidth.
    pub used: f64,
}

/// Checks a mapping, and the plans of its mode switches.
#[must_use]
pub fn check(system: &System, mapping: &Mapping, switches: &[SwitchPlan]) -> Checked {
    let mut checked = Checked::default();
    let (found, wanted) = (mapping.0.len(), system.components.len());
    if found != wanted {
        checked.violations.push(Violation::Length { found, wanted });
        return checked;
    }
    let check = Check { system, mapping };
    check.seats(&mut checked.violations);
    if !checked.is_valid() {
        return checked;
    }
    check.cores(&mut checked);
    check.lockstep(&mut checked.violations);
    check.levels(&mut checked.violations);
    check.apart(&mut checked.violations);
    check.memories(&mut checked.violations);
    check.messages(&mut checked);
    check.switches(switches, &mut checked.violations);
    checked
}

/// A core's name for people, such as "core 1 of `zone-2`".
#[must_use]
pub fn core_name(system: &System, core: usize) -> String {
    let core = &system.cores[core];
    format!("core {} of `{}`", core.nth, system.units[core.unit].name)
}

struct Check<'a> {
    system: &'a System,
    mapping: &'a Mapping,
}

impl Check<'_> {
    fn name(&self, component: usize) -> String {
        self.system.components[component].name.clone()
    }

    fn unit_name(&self, unit: usize) -> String {
        self.system.units[unit].name.clone()
    }

    fn mode(&self, mode: usize) -> String {
        self.system.modes[mode].name.clone()
    }

    fn unit_of(&self, component: usize) -> usize {
        self.system.cores[self.mapping.0[component].core].unit
    }

    /// Places that exist, have a time, and are allowed for the component alone.
    fn seats(&self, violations: &mut Vec<Violation>) {
        let system = self.system;
        for (at, (component, seat)) in system.components.iter().zip(&self.mapping.0).enumerate() {
            let name = || component.name.clone();
            let core = system.cores.get(seat.core);
            let memory = system.memories.get(seat.memory);
            let (Some(core), Some(memory)) = (core, memory) else {
                violations.push(Violation::Seat { component: name() });
                continue;
            };
            if core.unit != memory.unit {
                violations.push(Violation::Seat { component: name() });
                continue;
            }
            if system.time_ns(at, seat.core, seat.memory).is_none() {
                violations.push(Violation::NoTime {
                    component: name(),
                    core: core.kind.clone(),
                    memory: memory.kind.clone(),
                });
            }
            let unit = &system.units[core.unit];
            if let Some(wanted) = component.on.filter(|wanted| *wanted != core.unit) {
                violations.push(Violation::Pinned {
                    component: name(),
                    wanted: self.unit_name(wanted),
                    unit: unit.name.clone(),
                });
            }
            for point in &component.points {
                if unit.points.as_ref().is_some_and(|can| !can.contains(point)) {
                    violations.push(Violation::Point {
                        component: name(),
                        point: system.points[*point].name.clone(),
                        unit: unit.name.clone(),
                    });
                }
            }
        }
    }

    /// The components of a core that are active in a mode.
    fn active(&self, core: usize, mode: usize) -> Vec<Load> {
        let components = self.mapping.on_core(core);
        let active = components.filter(|at| self.system.components[*at].modes.has(mode));
        active
            .map(|at| {
                let (component, seat) = (&self.system.components[at], self.mapping.0[at]);
                let time = self.system.time_ns(at, seat.core, seat.memory);
                Load {
                    component: at,
                    time_ns: time.unwrap_or(u64::MAX),
                    period_ns: component.period_ns,
                    deadline_ns: component.deadline_ns,
                }
            })
            .collect()
    }

    /// Schedulability of each core in each mode.
    fn cores(&self, checked: &mut Checked) {
        for core in self.mapping.cores() {
            for mode in 0..self.system.modes.len() {
                let mut active = self.active(core, mode);
                active.sort_by_key(|load| (load.deadline_ns, load.component));
                let used = active.iter().map(|l| l.time_ns as f64 / l.period_ns as f64);
                let used = used.fold(0.0, |sum, share| sum + share);
                let times = responses(&active);
                let max = match self.system.rules.bound {
                    Bound::Utilisation(max) => max,
                    Bound::Response => 1.0,
                };
                if used > max + ROUNDING {
                    checked.violations.push(Violation::Utilisation {
                        core: core_name(self.system, core),
                        mode: self.mode(mode),
                        used,
                        max,
                    });
                }
                let late = active.iter().zip(&times).filter(|(load, time)| {
                    let must = self.system.rules.bound == Bound::Response;
                    (must && time.is_none()) || load.time_ns > load.deadline_ns
                });
                for (load, _) in late {
                    checked.violations.push(Violation::Late {
                        component: self.name(load.component),
                        core: core_name(self.system, core),
                        mode: self.mode(mode),
                        deadline_us: load.deadline_ns as f64 / 1e3,
                    });
                }
                let components = active.iter().map(|load| load.component);
                checked.loads.push(CoreLoad {
                    core,
                    mode,
                    utilisation: used,
                    responses: components.zip(times).collect(),
                });
            }
        }
    }

    /// ASIL D on cores in lock-step, and nothing on their checkers.
    fn lockstep(&self, violations: &mut Vec<Violation>) {
        let mut checkers = Vec::new();
        for (at, component) in self.system.components.iter().enumerate() {
            if component.asil != Asil::D {
                continue;
            }
            let core = self.mapping.0[at].core;
            match self.system.cores[core].lockstep {
                LockStep::No => violations.push(Violation::LockStep {
                    component: self.name(at),
                    core: core_name(self.system, core),
                }),
                LockStep::Always => {}
                LockStep::With(checker) => checkers.push(checker),
            }
        }
        checkers.sort_unstable();
        checkers.dedup();
        for core in checkers {
            for component in self.mapping.on_core(core) {
                violations.push(Violation::Checker {
                    component: self.name(component),
                    core: core_name(self.system, core),
                });
            }
        }
    }

    /// Levels that share a core, or a unit without protection.
    fn levels(&self, violations: &mut Vec<Violation>) {
        let level = |at: usize| self.system.components[at].asil;
        let ends = |all: &[usize]| {
            let low = all.iter().copied().min_by_key(|at| level(*at));
            let high = all.iter().copied().max_by_key(|at| level(*at));
            low.zip(high)
        };
        for core in self.mapping.cores() {
            let there: Vec<usize> = self.mapping.on_core(core).collect();
            let Some((a, b)) = ends(&there) else { continue };
            if level(b).steps() - level(a).steps() > self.system.rules.mixing.steps_max() {
                violations.push(Violation::MixedCore {
                    a: self.name(a),
                    a_level: level(a).name(),
                    b: self.name(b),
                    b_level: level(b).name(),
                    core: core_name(self.system, core),
                });
            }
        }
        for unit in self.mapping.units(self.system) {
            if self.system.units[unit].is_protected {
                continue;
            }
            let all = 0..self.mapping.0.len();
            let there: Vec<usize> = all.filter(|at| self.unit_of(*at) == unit).collect();
            let Some((a, b)) = ends(&there) else { continue };
            if level(a) != level(b) {
                violations.push(Violation::MixedUnit {
                    a: self.name(a),
                    a_level: level(a).name(),
                    b: self.name(b),
                    b_level: level(b).name(),
                    unit: self.unit_name(unit),
                });
            }
        }
    }

    fn apart(&self, violations: &mut Vec<Violation>) {
        for apart in &self.system.apart {
            for (nth, a) in apart.components.iter().enumerate() {
                for b in &apart.components[nth + 1..] {
                    let (core, other) = (self.mapping.0[*a].core, self.mapping.0[*b].core);
                    let place = match apart.by {
                        By::Unit if self.unit_of(*a) == self.unit_of(*b) => {
                            format!("`{}`", self.unit_name(self.unit_of(*a)))
                        }
                        By::Core if core == other => core_name(self.system, core),
                        _ => continue,
                    };
                    violations.push(Violation::Together {
                        a: self.name(*a),
                        b: self.name(*b),
                        place,
                    });
                }
            }
        }
    }

    fn memories(&self, violations: &mut Vec<Violation>) {
        for (number, memory) in self.system.memories.iter().enumerate() {
            let seats = self.mapping.0.iter().zip(&self.system.components);
            let there = seats.filter(|(seat, _)| seat.memory == number);
            let used = there.fold(0_u64, |sum, (_, one)| sum.saturating_add(one.bytes));
            if used > memory.bytes {
                violations.push(Violation::Memory {
                    memory: memory.kind.clone(),
                    unit: self.unit_name(memory.unit),
                    used,
                    max: memory.bytes,
                });
            }
        }
    }

    /// Buses, their loads by mode, and times on the way.
    fn messages(&self, checked: &mut Checked) {
        let system = self.system;
        let mut loads = vec![vec![0.0; system.modes.len()]; system.buses.len()];
        for message in &system.messages {
            let (from, to) = (self.unit_of(message.from), self.unit_of(message.to));
            let took_ns = if from != to {
                let Some(bus) = system.bus(from, to) else {
                    checked.violations.push(Violation::NoBus {
                        from: self.name(message.from),
                        from_unit: self.unit_name(from),
                        to: self.name(message.to),
                        to_unit: self.unit_name(to),
                    });
                    continue;
                };
                for mode in system.modes_of(message).iter() {
                    loads[bus][mode] += system.buses[bus].share(message);
                }
                system.buses[bus].transport_ns(message.bytes)
            } else if self.mapping.0[message.from].core == self.mapping.0[message.to].core {
                0
            } else {
                system.units[from].core_latency_ns
            };
            // A message between components that are never active together is never sent.
            let is_sent = system.modes_of(message) != ModeSet::default();
            if let Some(max) = message.latency_ns.filter(|max| is_sent && took_ns > *max) {
                checked.violations.push(Violation::Latency {
                    from: self.name(message.from),
                    to: self.name(message.to),
                    took_us: took_ns as f64 / 1e3,
                    max_us: max as f64 / 1e3,
                });
            }
        }
        for (bus, modes) in loads.into_iter().enumerate() {
            for (mode, used) in modes.into_iter().enumerate() {
                let max = system.buses[bus].load_max;
                if used > max + ROUNDING {
                    checked.violations.push(Violation::Bus {
                        bus: system.buses[bus].name.clone(),
                        mode: self.mode(mode),
                        used,
                        max,
                    });
                }
                checked.buses.push(BusLoad { bus, mode, used });
            }
        }
    }
}
