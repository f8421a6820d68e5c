//! Conversion of findings into the profile. Nothing is measured here, and a figure that was not
//! measured stays absent.

mod claims;

use std::collections::BTreeSet;

use hearth_machine::infer::{self, Latencies, Tree};
use hearth_machine::profile::{
    Access as Pass, Bandwidth as Band, CacheFinding, Carrier, CurvePoint, Exchange, Figure, Gap,
    HandOver, Host, Level as StoredLevel, LevelCost, LineState, Mode as StoredMode, NodeDistances,
    Noise, Origin, Pages, PairState, PairTransfer, Profile, StateTransfer,
};
use hearth_machine::relation::Relation;
use hearth_machine::topology::{OsNode, OsThread, Thread, Topology};
use hearth_sys::System;
use hearth_sys::clock::Source;

use crate::bandwidth::Stream;
use crate::costs::Service;
use crate::curve::{Curve, Order, Point};
use crate::handover::Flow;
use crate::noise::BUCKETS;
use crate::options::Mode;
use crate::pairs::latencies;
use crate::session::Findings;
use crate::staircase::{self, CacheVerdict, Level, check_claim};
use crate::states::{Access, State};
use crate::statistics::{Measured, median};

/// Facts about a probe that its findings lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The version of the measuring Hearth.
    pub hearth_version: String,
    /// Start of the probe, in seconds since 1970, UTC.
    pub started_unix_s: Option<u64>,
}

/// The machine's software and hardware, from the system's files. Unreadable facts are absent.
pub fn host(system: &dyn System, findings: &Findings) -> Host {
    let file = |path: &str| {
        let text = system.read(path).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let cpuinfo = system.read("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.trim() == name);
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    let is_virtual =
        line("flags").is_some_and(|flags| flags.split_whitespace().any(|f| f == "hypervisor"));
    let clock = &findings.clock;
    Host {
        name: file("/proc/sys/kernel/hostname"),
        kernel: file("/proc/sys/kernel/osrelease"),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        cpu_model: line("model name"),
        microcode: line("microcode"),
        hypervisor: file("/sys/hypervisor/type")
            .or_else(|| file("/sys/class/dmi/id/sys_vendor").filter(|_| is_virtual))
            .or_else(|| is_virtual.then(|| "unknown".to_owned())),
        clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        tsc_ghz: (clock.source() == Source::Tsc).then(|| 1.0 / clock.ns_per_tick()),
        governor: file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        quota_cpus: findings.quota,
        allowed: findings.cores.iter().map(|&core| os_thread(core)).collect(),
    }
}

/// Builds the profile. Leaves out cores that the topology does not know because they came online
/// later.
pub fn profile(findings: &Findings, topology: Topology, host: Host, about: &About) -> Profile {
    let origin = Origin {
        hearth_version: about.hearth_version.clone(),
        started_unix_s: about.started_unix_s,
        duration_s: findings.seconds,
        mode: match findings.options.mode {
            Mode::Quick => StoredMode::Quick,
            Mode::Normal => StoredMode::Normal,
            Mode::Deep => StoredMode::Deep,
        },
        seed: findings.options.seed,
        notes: notes(findings),
    };
    let parts = Parts {
        findings,
        topology: &topology,
        structure: Structure::of(findings),
    };
    let node_distances = parts.node_distances();
    Profile {
        host,
        caches: parts.caches(),
        curve: parts.curve(),
        levels: parts.levels(),
        transfers: parts.transfers(),
        pairs: parts.pairs(),
        bandwidths: parts.bandwidths(),
        claims: parts.claims(node_distances.as_ref()),
        node_distances,
        noise: parts.noise(),
        hand_overs: parts.hand_overs(),
        exchanges: parts.exchanges(),
        system: system_costs(findings),
        ..Profile::empty(origin, topology.clone())
    }
}

fn notes(findings: &Findings) -> Vec<String> {
    let said = |missing: &crate::Missing| format!("{}: {}", missing.part.title(), missing.why);
    let mut notes: Vec<String> = findings.missing.iter().map(said).collect();
    if findings.disturbed > 0 {
        notes.push(format!(
            "{} of the rounds were disturbed throughout, and their samples were used all the same",
            findings.disturbed
        ));
    }
    let cores = findings.cores.len();
    if let Some(quota) = findings.quota.filter(|&quota| quota < cores as f64) {
        notes.push(format!(
            "a quota of {quota} cores for the {cores} that were measured: whatever used them all at \
             once was stopped in between, and so will programs be"
        ));
    }
    let apart = findings.offsets.iter().filter(|(_, o)| !o.is_synchronous());
    let apart: Vec<String> = apart
        .map(|(core, o)| format!("core {core} by {:.0} ns", o.ns))
        .collect();
    if !apart.is_empty() {
        let first = findings.cores[0];
        notes.push(format!(
            "clocks differ from core {first}'s: {}",
            apart.join(", ")
        ));
    }
    notes
}

fn os_thread(core: usize) -> OsThread {
    OsThread(u32::try_from(core).unwrap_or(u32::MAX))
}

fn figure(measured: Measured) -> Figure {
    let (samples, discarded) = (measured.samples.into(), measured.discarded.into());
    Figure::measured(
        measured.value,
        measured.low,
        measured.high,
        samples,
        discarded,
    )
}

fn system_costs(findings: &Findings) -> hearth_machine::profile::SystemCosts {
    let cost = |service: Service| {
        let found = findings.costs.iter().find(|cost| cost.service == service);
        found.map(|cost| figure(cost.each_ns))
    };
    hearth_machine::profile::SystemCosts {
        thread_create_join_ns: cost(Service::ThreadCreateJoin),
        context_switch_ns: cost(Service::SwitchByYield),
        futex_wake_same_core_ns: cost(Service::FutexWakeSameCore),
        futex_wake_other_core_ns: cost(Service::FutexWakeAcross),
        page_fault_ns: cost(Service::FaultSmall),
        huge_page_fault_ns: cost(Service::FaultHuge),
        mutex_ns: cost(Service::Mutex),
        semaphore_ns: cost(Service::Semaphore),
        sched_yield_ns: cost(Service::Yield),
        syscall_ns: cost(Service::Syscall),
        clock_read_ns: cost(Service::ClockMonotonicRaw),
    }
}

struct Parts<'a> {
    findings: &'a Findings,
    topology: &'a Topology,
    structure: Option<Structure>,
}

/// Structure of the machine by the measured pairs.
struct Structure {
    latencies: Latencies,
    tree: Tree,
}

impl Structure {
    /// None if no pair was measured. Threads without a measured pair are left out: nothing can be
    /// inferred about a core that went away.
    fn of(findings: &Findings) -> Option<Structure> {
        let cores: BTreeSet<usize> = findings.pairs.iter().flat_map(|pair| pair.cores).collect();
        let threads: Vec<OsThread> = cores.into_iter().map(os_thread).collect();
        let latencies = latencies(&threads, findings.pairs.iter().cloned())?;
        (latencies.measured() > 0).then(|| Structure {
            tree: Tree::infer(&latencies),
            latencies,
        })
    }

    /// Factor by which pairs at the level above a group's are slower than at its own, with an
    /// interval from the spread of both; None for a group that the tree does not have.
    fn separation(&self, group: &[OsThread]) -> Option<Figure> {
        let has = |level: &infer::Level| level.groups.iter().any(|g| g.as_slice() == group);
        let at = self.tree.levels.iter().position(has)?;
        let (inside, outside) = (&self.tree.levels[at], self.tree.levels.get(at + 1)?);
        let ratio = outside.latency_ns? / inside.latency_ns?;
        let error = |level: &infer::Level| level.spread / (level.pairs_measured as f64).sqrt();
        let factor = (1.96 * error(inside).hypot(error(outside))).exp();
        let pairs = inside.pairs_measured + outside.pairs_measured;
        let figure = Figure::measured(ratio, ratio / factor, ratio * factor, pairs as u64, 0);
        Some(figure.inferred())
    }
}

impl Parts<'_> {
    fn thread(&self, core: usize) -> Option<Thread> {
        self.topology.thread_of(os_thread(core))
    }

    fn relation(&self, a: usize, b: usize) -> Option<Relation> {
        Some(self.topology.relation(self.thread(a)?, self.thread(b)?))
    }

    /// The curve from which levels are inferred.
    fn main_curve(&self) -> Option<&Curve> {
        let random = |curve: &&Curve| curve.order == Order::Random;
        self.findings.curves.iter().find(random)
    }

    /// Claimed data caches of the core with the curve, by level.
    fn claimed(&self) -> Vec<(u8, u64)> {
        let core = self.main_curve().map(|curve| curve.core);
        let Some(thread) = core.and_then(|core| self.thread(core)) else {
            return Vec::new();
        };
        let caches = self.topology.data_caches(thread);
        caches.map(|cache| (cache.level, cache.size.0)).collect()
    }

    fn plain(curve: &Curve) -> Vec<staircase::CurvePoint> {
        curve.points.iter().map(Point::plain).collect()
    }

    fn caches(&self) -> Vec<CacheFinding> {
        let claimed = self.claimed();
        let found: Vec<Figure> = self.main_curve().map_or_else(Vec::new, |curve| {
            let capacity = |level: &Level| {
                let capacity = level.capacity?;
                let points = samples_of(curve);
                let (value, low, high) = (capacity.bytes, capacity.low, capacity.high);
                Some(Figure::measured(value, low, high, points.0, points.1).inferred())
            };
            curve.levels.iter().filter_map(capacity).collect()
        });
        let count = claimed.len().max(found.len());
        (0..count)
            .map(|index| CacheFinding {
                level: claimed
                    .get(index)
                    .map_or(u8::try_from(index + 1).unwrap_or(u8::MAX), |(l, _)| *l),
                claimed_bytes: claimed.get(index).map(|(_, bytes)| *bytes),
                inferred_bytes: found.get(index).copied(),
            })
            .collect()
    }

    fn curve(&self) -> Vec<CurvePoint> {
        let random = self
            .findings
            .curves
            .iter()
            .filter(|c| c.order == Order::Random);
        let mut points: Vec<CurvePoint> = random
            .flat_map(|curve| {
                curve.points.iter().map(|point| CurvePoint {
                    size_bytes: point.bytes,
                    stride_bytes: curve.stride as u64,
                    pages: match curve.huge_refused {
                        Some(_) => Pages::Small,
                        None => Pages::Unknown,
                    },
                    load_ns: figure(point.load_ns),
                })
            })
            .collect();
        points.sort_by_key(|point| (point.size_bytes, point.stride_bytes));
        points
    }

    /// The profile's level for the curve's level of this index. The last one is memory if as many
    /// caches were found as are claimed, or if the claim of the next one is contradicted; otherwise
    /// the curve may not have left that cache.
    fn place(&self, curve: &Curve, index: usize) -> StoredLevel {
        let cache = |index: usize| {
            let level = self.claimed().get(index).map(|(level, _)| *level);
            StoredLevel::Cache(level.unwrap_or(u8::try_from(index + 1).unwrap_or(u8::MAX)))
        };
        if curve.levels[index].capacity.is_some() {
            return cache(index);
        }
        match self.claimed().get(index) {
            None => StoredLevel::Memory,
            Some(&(_, bytes)) => match check_claim(bytes, &curve.levels, &Self::plain(curve)) {
                CacheVerdict::Contradicted { .. } => StoredLevel::Memory,
                CacheVerdict::Confirmed { .. } | CacheVerdict::Undecided => cache(index),
            },
        }
    }

    fn levels(&self) -> Vec<LevelCost> {
        let Some(curve) = self.main_curve() else {
            return Vec::new();
        };
        let own_write = self
            .findings
            .states
            .iter()
            .find(|cost| (cost.state, cost.access) == (State::Own, Access::Write));
        let mut from = 0.0;
        let mut costs = Vec::new();
        for (index, level) in curve.levels.iter().enumerate() {
            let to = level.capacity.map_or(f64::INFINITY, |c| c.low);
            let read_ns = plateau(curve, level, from, to);
            from = level.capacity.map_or(from, |c| c.high);
            costs.push(LevelCost {
                level: self.place(curve, index),
                read_ns,
                write_ns: own_write
                    .filter(|_| index == 0)
                    .map(|cost| figure(cost.line_ns)),
            });
        }
        costs
    }

    fn transfers(&self) -> Vec<StateTransfer> {
        let states = [
            (State::Modified, LineState::Modified),
            (State::Exclusive, LineState::Exclusive),
            (State::Shared, LineState::Shared),
        ];
        let found = &self.findings.states;
        let of = |state, access| {
            let matches =
                move |c: &&crate::states::StateCost| (c.state, c.access) == (state, access);
            found.iter().find(matches)
        };
        states
            .iter()
            .filter_map(|&(state, stored)| {
                let read = of(state, Access::Read)?;
                Some(StateTransfer {
                    relation: self.relation(read.reader, read.owner)?,
                    state: stored,
                    read_ns: figure(read.line_ns),
                    write_ns: of(state, Access::Write).map(|cost| figure(cost.line_ns)),
                })
            })
            .collect()
    }

    /// Measured pairs, and others as far as similar pairs were measured: those are marked as
    /// inferred, with the spread of the similar pairs as the interval.
    fn pairs(&self) -> Vec<PairTransfer> {
        let stored = |pair: &crate::pairs::PairLatency| {
            let (a, b) = (self.thread(pair.cores[0])?, self.thread(pair.cores[1])?);
            let round_trip = figure(pair.one_way_ns).times(2.0);
            let states = pair.states.iter().map(|state| PairState {
                one_way_ns: figure(state.one_way_ns),
                time_share: figure(state.time_share),
            });
            Some(PairTransfer {
                states: states.collect(),
                ..PairTransfer::from_round_trip(a, b, round_trip)
            })
        };
        let mut pairs: Vec<PairTransfer> = self.findings.pairs.iter().filter_map(stored).collect();
        let filled = self.structure.as_ref().map_or_else(Vec::new, |structure| {
            structure.tree.fill(&structure.latencies)
        });
        let inferred = filled
            .iter()
            .filter(|filled| filled.origin != infer::Origin::Measured)
            .filter_map(|filled| {
                let thread = |os| self.topology.thread_of(os);
                let (ns, reach) = (filled.latency.ns, 1.96 * filled.latency.error_ns);
                let one_way = Figure::measured(ns, (ns - reach).max(0.0), ns + reach, 0, 0);
                let round_trip = one_way.inferred().times(2.0);
                let (a, b) = (thread(filled.a)?, thread(filled.b)?);
                Some(PairTransfer::from_round_trip(a, b, round_trip))
            });
        pairs.extend(inferred);
        pairs.sort_by_key(|pair| (pair.a, pair.b));
        pairs
    }

    fn bandwidths(&self) -> Vec<Band> {
        let level = |bytes: usize| {
            let curve = self.main_curve();
            let place = curve.and_then(|curve| {
                let fits = |level: &Level| level.capacity.is_none_or(|c| c.high >= bytes as f64);
                let index = curve.levels.iter().position(fits)?;
                Some(self.place(curve, index))
            });
            place.unwrap_or(StoredLevel::Memory)
        };
        let stored = |band: &crate::bandwidth::Bandwidth| Band {
            level: level(band.bytes),
            access: match band.stream {
                Stream::Read => Pass::Read,
                Stream::Write => Pass::Write,
                Stream::Copy => Pass::Copy,
            },
            threads: u32::try_from(band.cores.len()).unwrap_or(u32::MAX),
            bytes_per_ns: figure(band.bytes_per_ns),
        };
        self.findings.bandwidths.iter().map(stored).collect()
    }

    fn node_distances(&self) -> Option<NodeDistances> {
        let found = self.findings.distances.as_ref()?;
        let index = |os: usize| {
            let os = OsNode(u32::try_from(os).ok()?);
            Some(self.topology.node_of(os)?.index())
        };
        let count = self.topology.nodes().len();
        let mut times = vec![vec![None; count]; count];
        for (row, &memory) in found.seconds.iter().zip(&found.memory_nodes) {
            for (&cell, &user) in row.iter().zip(&found.cpu_nodes) {
                if let (Some(row), Some(column)) = (index(memory), index(user)) {
                    times[row][column] = Some(figure(cell));
                }
            }
        }
        let firmware = self.topology.distances().map(<[Vec<u32>]>::to_vec);
        Some(NodeDistances::from_measured(times, firmware))
    }

    fn noise(&self) -> Vec<Noise> {
        let stored = |noise: &crate::noise::CoreNoise| {
            let counted = |value: f64| Figure::measured(value, value, value, 1, 0);
            let edge = |bucket: usize| 1000u64 << bucket;
            let bin = |(bucket, &count): (usize, &u64)| Gap {
                from_ns: edge(bucket),
                below_ns: (bucket + 1 < BUCKETS).then(|| edge(bucket + 1)),
                count,
            };
            Some(Noise {
                thread: self.thread(noise.core)?,
                observed_s: noise.seconds,
                gaps: noise.gaps.iter().enumerate().map(bin).collect(),
                interrupts_per_s: noise.interrupts_per_s.map(counted),
                steal_share: noise.steal_share.map(counted),
            })
        };
        self.findings.noise.iter().filter_map(stored).collect()
    }

    /// A spinning receiver sees a message when it has its line: a transfer. A sleeping one is
    /// woken. On one core, a spinning receiver must yield to receive anything.
    fn exchanges(&self) -> Vec<Exchange> {
        let stored = |point: &crate::handover::Point| {
            let asked = &point.request;
            Some(Exchange {
                bytes: asked.bytes,
                sender: self.thread(asked.cores[0])?,
                receiver: self.thread(asked.cores[1])?,
                carrier: asked.carrier,
                stream_depth: match asked.flow {
                    Flow::Alternating => None,
                    Flow::Streaming { depth } => Some(depth),
                },
                fresh_buffer: false,
                exchange_ns: figure(point.exchange_ns),
            })
        };
        self.findings.messages.iter().filter_map(stored).collect()
    }

    fn hand_overs(&self) -> Vec<HandOver> {
        let mut found: Vec<HandOver> = Vec::new();
        let cost = |service: Service| {
            let costs = &self.findings.costs;
            let cost = costs.iter().find(|cost| cost.service == service)?;
            Some(figure(cost.each_ns))
        };
        let first = self.findings.cores[0];
        let second = self.findings.cores.get(1).copied();
        let by_system = [
            (Service::FutexWakeSameCore, Carrier::Threads, Some(first)),
            (Service::FutexWakeAcross, Carrier::Threads, second),
            (Service::SwitchByYield, Carrier::Spin, Some(first)),
        ];
        for (service, carrier, other) in by_system {
            let relation = other.and_then(|other| self.relation(first, other));
            if let (Some(relation), Some(one_way_ns)) = (relation, cost(service)) {
                found.push(HandOver {
                    carrier,
                    relation,
                    one_way_ns,
                });
            }
        }
        for (relation, one_way_ns) in self.transfers_by_relation() {
            // A worker watches its inbox by spinning, so both carriers wait for the same line.
            for carrier in [Carrier::Spin, Carrier::Worker] {
                found.push(HandOver {
                    carrier,
                    relation,
                    one_way_ns,
                });
            }
        }
        found
    }

    /// The median pair of each relation.
    fn transfers_by_relation(&self) -> Vec<(Relation, Figure)> {
        let mut by_relation: Vec<(Relation, Vec<Measured>)> = Vec::new();
        for pair in &self.findings.pairs {
            let Some(relation) = self.relation(pair.cores[0], pair.cores[1]) else {
                continue;
            };
            match by_relation.iter_mut().find(|(of, _)| *of == relation) {
                Some((_, pairs)) => pairs.push(pair.one_way_ns),
                None => by_relation.push((relation, vec![pair.one_way_ns])),
            }
        }
        by_relation.sort_by_key(|(relation, _)| *relation);
        let middle = |(relation, mut pairs): (Relation, Vec<Measured>)| {
            pairs.sort_by(|a, b| a.value.total_cmp(&b.value));
            (relation, figure(pairs[pairs.len() / 2]))
        };
        by_relation.into_iter().map(middle).collect()
    }
}

fn samples_of(curve: &Curve) -> (u64, u64) {
    curve.points.iter().fold((0, 0), |(kept, gone), point| {
        (
            kept + u64::from(point.load_ns.samples),
            gone + u64::from(point.load_ns.discarded),
        )
    })
}

/// A level's latency with the interval of its middle points.
fn plateau(curve: &Curve, level: &Level, from: f64, to: f64) -> Figure {
    let points = curve
        .points
        .iter()
        .map(|point| (point.bytes as f64, point.load_ns));
    let inside: Vec<Measured> = points
        .filter(|(bytes, _)| *bytes > from && *bytes < to)
        .map(|(_, measured)| measured)
        .collect();
    let of = |end: fn(&Measured) -> f64| {
        let ends: Vec<f64> = inside.iter().map(end).collect();
        median(&ends).unwrap_or(level.latency_ns)
    };
    let samples = inside.iter().map(|m| u64::from(m.samples)).sum();
    let discarded = inside.iter().map(|m| u64::from(m.discarded)).sum();
    Figure::measured(
        level.latency_ns,
        of(|m| m.low).min(level.latency_ns),
        of(|m| m.high).max(level.latency_ns),
        samples,
        discarded,
    )
}
