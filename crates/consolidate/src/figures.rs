//! Figures of a mapping, counted from nothing: units, traffic, latency, cables, energy, levels.

use crate::mapping::Mapping;
use crate::model::{ModeSet, System};

/// Figures of a mapping, or of today's units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Units with components.
    pub units: usize,
    /// Cores with components, and cores that check one of them in a configurable pair.
    pub cores: usize,
    /// Cost of the units.
    pub cost: f64,
    /// Bits a second on buses, the mean over time.
    pub traffic_bits_s: f64,
    /// The same in each mode.
    pub traffic_by_mode: Vec<f64>,
    /// Sum of all messages' longest times on the way, ns; none if it is not known.
    pub latency_ns: Option<f64>,
    /// Cables to points and units, metres.
    pub cabling_m: f64,
    /// Power, watts, the mean over time.
    pub power_w: f64,
    /// The same in each mode.
    pub power_by_mode: Vec<f64>,
    /// Steps by which components are below the highest level on their core, in all.
    pub mixing_steps: Option<usize>,
}

impl Figures {
    /// Figures of a mapping that has been checked.
    #[must_use]
    pub fn of(system: &System, mapping: &Mapping) -> Figures {
        let units = mapping.units(system);
        let locked = mapping.locked(system);
        let pairs = locked.iter().filter(|core| {
            let core = &system.cores[**core];
            matches!(core.lockstep, crate::model::LockStep::With(_))
        });
        let unit = |component: usize| mapping.unit(system, component);
        let mut figures = Figures {
            units: units.len(),
            cores: mapping.cores().len() + pairs.count(),
            cost: units.iter().map(|unit| system.units[*unit].cost).sum(),
            ..Figures::default()
        };
        figures.talk(system, unit);
        figures.latency_ns = Some(latency_ns(system, mapping));
        for at in &units {
            let there = (0..mapping.0.len()).filter(|component| unit(*component) == *at);
            let place = &system.units[*at];
            figures.cabling_m += place.cable_m + cables_m(system, place.at, there);
        }
        let awake = |at: usize, mode: usize| {
            let mut all = system.components.iter().enumerate();
            all.any(|(component, one)| one.modes.has(mode) && unit(component) == at)
        };
        for mode in 0..system.modes.len() {
            let base = units.iter().map(|at| match awake(*at, mode) {
                true => system.units[*at].power_w[mode],
                false => system.units[*at].sleep_w,
            });
            let active = system.components.iter().enumerate();
            let busy = active
                .filter(|(_, one)| one.modes.has(mode))
                .map(|(at, one)| {
                    let seat = mapping.0[at];
                    let time = system.time_ns(at, seat.core, seat.memory).unwrap_or(0);
                    system.cores[seat.core].busy_w * time as f64 / one.period_ns as f64
                });
            figures
                .power_by_mode
                .push(base.sum::<f64>() + busy.sum::<f64>());
        }
        figures.power_w = mean(system, &figures.power_by_mode);
        let steps = mapping.cores().into_iter().map(|core| {
            let level = |at: usize| system.components[at].asil.steps();
            let highest = mapping.on_core(core).map(level).max().unwrap_or(0);
            mapping
                .on_core(core)
                .map(|at| highest - level(at))
                .sum::<usize>()
        });
        figures.mixing_steps = Some(steps.sum());
        figures
    }

    /// Figures of today's units; none unless every component has one.
    #[must_use]
    pub fn before(system: &System) -> Option<Figures> {
        let places = system.components.iter().map(|one| one.before);
        let places: Vec<usize> = places.collect::<Option<_>>()?;
        let mut units = places.clone();
        units.sort_unstable();
        units.dedup();
        let mut figures = Figures {
            units: units.len(),
            cores: units.iter().map(|at| system.before[*at].cores).sum(),
            cost: units.iter().map(|at| system.before[*at].cost).sum(),
            ..Figures::default()
        };
        figures.talk(system, |component| places[component]);
        for at in &units {
            let there = (0..places.len()).filter(|component| places[*component] == *at);
            let place = &system.before[*at];
            figures.cabling_m += place.cable_m + cables_m(system, place.at, there);
        }
        for mode in 0..system.modes.len() {
            let power = units.iter().map(|at| {
                let mut all = system.components.iter().zip(&places);
                let is_awake = all.any(|(one, place)| place == at && one.modes.has(mode));
                let unit = &system.before[*at];
                match is_awake {
                    true => unit.power_w.get(mode).copied().unwrap_or(0.0),
                    false => unit.sleep_w,
                }
            });
            figures.power_by_mode.push(power.sum());
        }
        figures.power_w = mean(system, &figures.power_by_mode);
        Some(figures)
    }

    /// Traffic between units. Before, the buses are not known, so payloads count without frames.
    fn talk(&mut self, system: &System, unit: impl Fn(usize) -> usize) {
        self.traffic_by_mode = vec![0.0; system.modes.len()];
        for message in &system.messages {
            if unit(message.from) == unit(message.to) {
                continue;
            }
            let bits = message.bytes as f64 * 8.0 * 1e9 / message.period_ns as f64;
            for mode in system.modes_of(message).iter() {
                self.traffic_by_mode[mode] += bits;
            }
        }
        self.traffic_bits_s = mean(system, &self.traffic_by_mode);
    }
}

fn latency_ns(system: &System, mapping: &Mapping) -> f64 {
    let sent = system.messages.iter();
    let sent = sent.filter(|message| system.modes_of(message) != ModeSet::default());
    let times = sent.map(|message| {
        let seats = (mapping.0[message.from], mapping.0[message.to]);
        let unit = |core: usize| system.cores[core].unit;
        let (from, to) = (unit(seats.0.core), unit(seats.1.core));
        if seats.0.core == seats.1.core {
            0.0
        } else if from == to {
            system.units[from].core_latency_ns as f64
        } else {
            let bus = system.bus(from, to);
            bus.map_or(0.0, |bus| {
                system.buses[bus].transport_ns(message.bytes) as f64
            })
        }
    });
    times.sum()
}

/// Cables from a place to the points that components there need, each point once.
fn cables_m(
    system: &System,
    from: Option<(f64, f64)>,
    components: impl Iterator<Item = usize>,
) -> f64 {
    let mut points: Vec<usize> = components
        .flat_map(|at| system.components[at].points.iter().copied())
        .collect();
    points.sort_unstable();
    points.dedup();
    let cables = points
        .iter()
        .filter_map(|point| system.cable_m(from, *point));
    cables.sum()
}

fn mean(system: &System, by_mode: &[f64]) -> f64 {
    let modes = system.modes.iter().zip(by_mode);
    modes.map(|(mode, value)| mode.share * value).sum()
}
