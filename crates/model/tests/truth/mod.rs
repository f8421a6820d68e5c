//! A machine simulated in more detail than the model knows: lines one by one, lines in flight that
//! grow as prefetchers notice, translation misses, sharp and blunt capacities, noise, outliers.

use hearth_machine::profile::{
    Access, Bandwidth, Carrier, Figure, HandOver, Level, LevelCost, LineState, PairTransfer,
    Profile, StateTransfer,
};
use hearth_machine::relation::{Closeness, Nodes, Relation};
use hearth_machine::synthetic;
use hearth_machine::topology::{Thread, Topology};
use hearth_model::fitted::{Between, Buffer, Flow, Question, Sample};

pub(crate) struct Truth {
    topology: Topology,
    random: fastrand::Rng,
    /// Capacity, read and write latency, read and write bytes a ns; memory last.
    levels: [(f64, f64, f64, f64, f64); 4],
    core_read_ns: f64,
    core_write_ns: f64,
    flight: f64,
    flight_transfer: f64,
    notice_lines: f64,
    blunt: [f64; 3],
    wake_ns: f64,
    translation_ns: f64,
    unhidden: f64,
}

impl Truth {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut about = |value: f64, factor: f64| value * factor.powf(2.0 * random.f64() - 1.0);
        let levels = [
            (48e3, about(1.3, 1.2), about(1.1, 1.2), 80.0, 40.0),
            (1.25e6, about(4.5, 1.3), about(5.5, 1.3), 40.0, 24.0),
            (24e6, about(20.0, 1.4), about(24.0, 1.4), 18.0, 10.0),
            (
                f64::INFINITY,
                about(95.0, 1.3),
                about(110.0, 1.3),
                about(11.0, 1.5),
                about(6.0, 1.5),
            ),
        ];
        let (core_read_ns, core_write_ns) = (about(2.2, 1.6), about(1.7, 1.6));
        let (flight, flight_transfer) = (about(10.0, 1.4), about(5.0, 1.6));
        let notice_lines = about(10.0, 2.0);
        let blunt = [about(0.2, 1.5), about(0.3, 1.5), about(0.35, 1.5)];
        let (wake_ns, translation_ns) = (about(5_000.0, 1.5), about(0.4, 1.5));
        let unhidden = about(0.12, 1.5);
        Self {
            topology: synthetic::parse(
                "2 packages, 4 cores, 2 threads, l1d 48K per core, l2 1280K per core, \
                 l3 24M per package",
            )
            .expect("a description"),
            random,
            levels,
            core_read_ns,
            core_write_ns,
            flight,
            flight_transfer,
            notice_lines,
            blunt,
            wake_ns,
            translation_ns,
            unhidden,
        }
    }

    fn one_way_ns(&self, a: Thread, b: Thread) -> f64 {
        let relation = self.topology.relation(a, b);
        let base = match relation.closeness {
            Closeness::Same => self.levels[0].1,
            Closeness::SmtSibling => 9.0,
            Closeness::OtherPackage => 140.0,
            _ => 50.0,
        };
        // Neighbours on a ring differ by where they stop.
        base * (1.0 + 0.03 * f64::from(a.0.abs_diff(b.0) % 4))
    }

    fn hand_over_ns(&self, carrier: Carrier, a: Thread, b: Thread) -> f64 {
        let same = a == b;
        match carrier {
            Carrier::Threads => self.wake_ns * if same { 0.5 } else { 1.0 },
            Carrier::Spin => 1.2 * self.one_way_ns(a, b),
            Carrier::Worker if same => 6.0,
            Carrier::Worker => 2.3 * self.one_way_ns(a, b),
        }
    }

    fn reach(relation: Relation) -> usize {
        match relation.closeness {
            Closeness::Same | Closeness::SmtSibling => 0,
            Closeness::SharedCache(level) => usize::from(level) - 1,
            _ => 3,
        }
    }

    fn side_ns(&self, question: &Question, a: Thread, b: Thread, access: Access) -> f64 {
        let n = question.bytes as f64;
        let lines = (n / 64.0).ceil();
        let depth = match question.flow {
            Flow::Alternating => 1.0,
            Flow::Streaming { depth } => f64::from(depth),
        };
        let relation = self.topology.relation(a, b);
        let write = access == Access::Write;
        let core = if write {
            self.core_write_ns
        } else {
            self.core_read_ns
        };
        let mut total = 0.0;
        let mut before = 1.0;
        for (at, &(capacity, read, store, read_rate, store_rate)) in self.levels.iter().enumerate()
        {
            let beyond = if at == 3 {
                0.0
            } else {
                let place = (0.8 * capacity / (n * depth)).ln() / self.blunt[at];
                1.0 / (1.0 + place.exp())
            };
            let share = before - beyond;
            before = beyond;
            let far = at == 3 && !write && relation.nodes == Nodes::Other;
            let (latency, flight, rate) = if at >= Self::reach(relation) {
                let latency = if write { store } else { read };
                let rate = if write { store_rate } else { read_rate };
                let far = if far { 1.6 } else { 1.0 };
                (latency * far, self.flight, rate / far)
            } else {
                let latency = self.one_way_ns(a, b) * if write { 0.85 } else { 1.1 };
                (latency, self.flight_transfer, f64::INFINITY)
            };
            let line = |index: f64| {
                let flight = flight - (flight - 1.0) * (-index / self.notice_lines).exp();
                core.max(latency / flight).max(64.0 / rate) + 0.1 * core
            };
            let single = lines.min(128.0);
            let mut level: f64 = (1..single as u32).map(|index| line(f64::from(index))).sum();
            level += latency + core + (lines - single) * line(1e9);
            total += share * level;
        }
        total + self.translation_ns * lines / (1.0 + (6e6 / n).powi(2))
    }

    /// Without noise, ns.
    pub(crate) fn exact_ns(&self, question: &Question) -> f64 {
        let Between::Pair(a, b) = question.between else {
            panic!("the truth is about pairs");
        };
        let mut write = self.side_ns(question, a, b, Access::Write);
        let read = self.side_ns(question, a, b, Access::Read);
        if question.buffer == Buffer::Fresh {
            write += 450.0 * (question.bytes as f64 / 4096.0).ceil();
        }
        let hand_over = self.hand_over_ns(question.carrier, a, b);
        match question.flow {
            Flow::Alternating => write + read + hand_over + 8.0,
            Flow::Streaming { .. } if a == b => write + read + 0.25 * hand_over + 8.0,
            Flow::Streaming { .. } => {
                let smt = self.topology.relation(a, b).closeness == Closeness::SmtSibling;
                let unhidden = if smt { 0.6 } else { self.unhidden };
                write.max(read) + unhidden * write.min(read) + 0.25 * hand_over + 8.0
            }
        }
    }

    /// With 4 % noise, and one in thirty disturbed.
    pub(crate) fn measured_ns(&mut self, question: &Question) -> f64 {
        let exact = self.exact_ns(question);
        let normal: f64 = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        let outlier = if self.random.u32(..30) == 0 { 1.6 } else { 1.0 };
        exact * (0.04 * normal).exp() * outlier
    }

    /// A probe's profile: every figure within 8 %, some things not measured.
    pub(crate) fn profile(&mut self) -> Profile {
        let mut profile = Profile::assumed(self.topology.clone());
        let mut seen = self.random.fork();
        let mut figure = |value: f64| {
            let value = value * (1.0 + 0.08 * (2.0 * seen.f64() - 1.0));
            Figure::measured(value, value * 0.9, value * 1.1, 100, 2)
        };
        let names = [
            Level::Cache(1),
            Level::Cache(2),
            Level::Cache(3),
            Level::Memory,
        ];
        profile.levels = names
            .into_iter()
            .zip(self.levels)
            .map(|(level, (_, read, write, _, _))| LevelCost {
                level,
                read_ns: figure(read),
                write_ns: Some(figure(write)),
            })
            .collect();
        profile.bandwidths = names
            .into_iter()
            .zip(self.levels)
            .flat_map(|(level, (_, _, _, read, write))| {
                [(Access::Read, read), (Access::Write, write)]
                    .map(|(access, rate)| (level, access, rate))
            })
            .map(|(level, access, rate)| Bandwidth {
                level,
                access,
                threads: 1,
                bytes_per_ns: figure(rate),
            })
            .collect();
        let threads: Vec<Thread> = self.topology.all_threads().collect();
        profile.pairs = threads
            .iter()
            .flat_map(|&a| threads.iter().map(move |&b| (a, b)))
            .filter(|(a, b)| a < b)
            .map(|(a, b)| {
                let round_trip = figure(2.0 * self.one_way_ns(a, b));
                PairTransfer::from_round_trip(a, b, round_trip)
            })
            .collect();
        profile.transfers.clear();
        profile.hand_overs.clear();
        for (relation, (a, b)) in self.topology.representatives() {
            for state in [LineState::Modified, LineState::Shared] {
                profile.transfers.push(StateTransfer {
                    relation,
                    state,
                    read_ns: figure(self.one_way_ns(a, b)),
                    write_ns: Some(figure(self.one_way_ns(a, b))),
                });
            }
            for carrier in [Carrier::Threads, Carrier::Spin, Carrier::Worker] {
                if a != b || carrier != Carrier::Spin {
                    profile.hand_overs.push(HandOver {
                        carrier,
                        relation,
                        one_way_ns: figure(self.hand_over_ns(carrier, a, b)),
                    });
                }
            }
        }
        profile
    }

    /// Exchanges of 64 B to 64 MiB by every relation, carrier and flow.
    pub(crate) fn samples(&mut self) -> Vec<Sample> {
        let pairs = [(0, 0), (0, 1), (0, 2), (1, 6), (0, 8), (3, 14)];
        let mut samples = Vec::new();
        for exponent in 0..=20 {
            for (a, b) in pairs {
                for carrier in [Carrier::Threads, Carrier::Spin, Carrier::Worker] {
                    let between = Between::Pair(Thread(a), Thread(b));
                    let mut question = Question::new(64 << exponent, between, carrier);
                    if self.random.bool() {
                        question.flow = Flow::Streaming { depth: 4 };
                    }
                    if a == b && carrier == Carrier::Spin {
                        continue;
                    }
                    let ns = self.measured_ns(&question);
                    samples.push(Sample { question, ns });
                }
            }
        }
        samples
    }
}
