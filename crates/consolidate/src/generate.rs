//! Random systems, for tests and measurements.
//!
//! Periods follow the shares that Kramer, Ziegenbein and Hamann published of an engine control
//! (WATERS 2015), without the angle-synchronous part. Everything else is chosen, not measured:
//! loads, modes, levels, messages and places.

use crate::model::{
    Apart, Asil, Before, Bound, Bus, By, Component, Core, LockStep, Memory, Message, Mixing, Mode,
    ModeSet, Point, Protocol, Rules, System, Time, Unit,
};

/// Periods in ms, and how many of 85 runnables have them.
const PERIODS: [(u64, u32); 9] = [
    (1, 3),
    (2, 2),
    (5, 2),
    (10, 25),
    (20, 25),
    (50, 3),
    (100, 20),
    (200, 1),
    (1000, 4),
];

/// Choices of a random system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Number of components.
    pub components: usize,
    /// Number of units to choose from; none means enough for all by a wide margin.
    pub units: Option<usize>,
    /// The test of schedulability.
    pub bound: Bound,
    /// Levels on a core.
    pub mixing: Mixing,
    /// Least and largest share of a core that a component takes.
    pub load: (f64, f64),
    /// Messages a component.
    pub messages: f64,
    /// Share of messages with a bound so tight that both ends must share a unit.
    pub tight: f64,
    /// Number of sorts of units: 1 or 2.
    pub sorts: usize,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            components: 20,
            units: None,
            bound: Bound::Response,
            mixing: Mixing::Any,
            load: (0.01, 0.1),
            messages: 1.5,
            tight: 0.02,
            sorts: 1,
        }
    }
}

impl Recipe {
    /// The system of a seed.
    #[must_use]
    pub fn system(&self, seed: u64) -> System {
        let mut random = fastrand::Rng::with_seed(seed);
        let components = self.components.max(1);
        let mean = f64::midpoint(self.load.0, self.load.1);
        let units = self.units.unwrap_or_else(|| {
            let cores = components as f64 * mean * 1.3;
            4 + (cores / 1.5).ceil() as usize
        });
        let mut system = System {
            name: format!("random {seed}"),
            modes: ["driving", "charging"]
                .iter()
                .zip([0.2, 0.8])
                .map(|(name, share)| Mode {
                    name: (*name).to_owned(),
                    share,
                })
                .collect(),
            components: Vec::new(),
            messages: Vec::new(),
            points: (0..components.div_ceil(6).min(30))
                .map(|at| Point {
                    name: format!("p{at}"),
                    at: Some((random.f64() * 4.5, random.f64() * 1.8)),
                    cables: f64::from(random.u32(1..=3)),
                })
                .collect(),
            units: Vec::new(),
            cores: Vec::new(),
            memories: Vec::new(),
            buses: Vec::new(),
            apart: Vec::new(),
            switches: Vec::new(),
            before: Vec::new(),
            rules: Rules {
                bound: self.bound,
                mixing: self.mixing,
                protocol: Protocol::Idle,
            },
        };
        for at in 0..units.max(1) {
            self.unit(&mut system, at, &mut random);
        }
        for at in 0..components {
            let component = self.component(&system, at, &mut random);
            system.before.push(Before {
                name: format!("ecu{at}"),
                at: Some((random.f64() * 4.5, random.f64() * 1.8)),
                cost: 20.0,
                power_w: vec![2.0; 2],
                sleep_w: 0.1,
                cable_m: 1.5,
                cores: 1,
            });
            system.components.push(component);
        }
        system.buses.push(Bus {
            name: "backbone".to_owned(),
            bits_per_s: 1e8,
            latency_ns: 100_000,
            overhead_bytes: 42,
            load_max: 0.8,
            units: (0..system.units.len()).collect(),
        });
        self.links(&mut system, &mut random);
        system
    }

    /// Three cores, one of them in lock-step, or two cores that can be a pair.
    fn unit(&self, system: &mut System, at: usize, random: &mut fastrand::Rng) {
        let number = system.units.len();
        let is_small = self.sorts > 1 && at % 2 == 1;
        let locks: &[LockStep] = match is_small {
            false => &[LockStep::Always, LockStep::No, LockStep::No],
            true => &[LockStep::With(system.cores.len() + 1), LockStep::No],
        };
        let first = system.cores.len();
        for (nth, lockstep) in locks.iter().enumerate() {
            system.cores.push(Core {
                unit: number,
                nth,
                kind: if is_small { "small" } else { "big" }.to_owned(),
                lockstep: *lockstep,
                checks: (is_small && nth == 1).then_some(first),
                busy_w: 1.0,
            });
        }
        let memories = [("flash", 4096), ("ram", 256)];
        let first_memory = system.memories.len();
        for (kind, kib) in memories {
            system.memories.push(Memory {
                unit: number,
                kind: kind.to_owned(),
                bytes: kib * 1024,
            });
        }
        system.units.push(Unit {
            name: format!("zone{at}"),
            at: Some((random.f64() * 4.5, random.f64() * 1.8)),
            cost: if is_small { 30.0 } else { 50.0 },
            power_w: if is_small {
                vec![2.0, 1.5]
            } else {
                vec![4.0, 3.0]
            },
            sleep_w: 0.2,
            points: None,
            is_protected: true,
            core_latency_ns: 2_000,
            cable_m: 2.0,
            cores: (first..first + locks.len()).collect(),
            memories: vec![first_memory, first_memory + 1],
        });
    }

    fn component(&self, system: &System, at: usize, random: &mut fastrand::Rng) -> Component {
        let mut pick = random.u32(..PERIODS.iter().map(|(_, share)| *share).sum::<u32>());
        let mut period_ms = 10;
        for (ms, share) in PERIODS {
            period_ms = ms;
            if pick < share {
                break;
            }
            pick -= share;
        }
        let period_ns = period_ms * 1_000_000;
        let load = self.load.0 + random.f64() * (self.load.1 - self.load.0);
        let ns = ((period_ns as f64 * load) as u64).max(1);
        let time = |core: &str, memory: &str, factor: f64| Time {
            core: Some(core.to_owned()),
            memory: Some(memory.to_owned()),
            ns: (ns as f64 * factor) as u64,
        };
        let modes = match random.u32(..10) {
            0..=2 => ModeSet::default().with(0),
            3 | 4 => ModeSet::default().with(1),
            _ => ModeSet::all(2),
        };
        let points = match random.u32(..10) {
            0 | 1 => 1,
            2 => 2,
            _ => 0,
        };
        let mut points: Vec<usize> = (0..points)
            .map(|_| random.usize(..system.points.len()))
            .collect();
        points.sort_unstable();
        points.dedup();
        Component {
            name: format!("c{at}"),
            modes,
            period_ns,
            deadline_ns: period_ns,
            times: vec![
                time("big", "flash", 1.0),
                time("big", "ram", 0.8),
                time("small", "flash", 1.3),
                time("small", "ram", 1.05),
            ],
            asil: match random.u32(..20) {
                0..=9 => Asil::Qm,
                10..=12 => Asil::A,
                13..=15 => Asil::B,
                16 | 17 => Asil::C,
                _ => Asil::D,
            },
            bytes: random.u64(8..=96) * 1024,
            points,
            on: None,
            before: Some(at),
        }
    }

    fn links(&self, system: &mut System, random: &mut fastrand::Rng) {
        let count = system.components.len();
        if count < 2 {
            return;
        }
        for _ in 0..(count as f64 * self.messages) as usize {
            let from = random.usize(..count);
            // Mostly a neighbour: functions are written down together.
            let to = match random.u32(..4) {
                0 => random.usize(..count),
                _ => (from + random.usize(1..=4.min(count - 1))) % count,
            };
            if from == to {
                continue;
            }
            let latency_ns = match random.f64() < self.tight {
                true => Some(50_000),
                false => Some(2_000_000).filter(|_| random.bool()),
            };
            system.messages.push(Message {
                from,
                to,
                bytes: random.u64(1..=64),
                period_ns: system.components[from].period_ns,
                latency_ns,
            });
        }
        for _ in 0..count / 20 {
            let a = random.usize(..count);
            let b = (a + 1 + random.usize(..count - 1)) % count;
            // Not both: apart, and so near that a message takes less than a bus allows.
            let talks = |message: &Message| {
                let ends = [message.from, message.to];
                ends.contains(&a) && ends.contains(&b)
            };
            if !system.messages.iter().any(talks) {
                system.apart.push(Apart {
                    components: vec![a.min(b), a.max(b)],
                    by: if random.bool() { By::Unit } else { By::Core },
                });
            }
        }
    }
}
