//! The terms of a prediction, from a profile's figures.
//!
//! A buffer of `n` bytes is `L` lines. The share of them that a level holds is a mixture: with
//! `out_k(n) = 1 / (1 + (C_k / n)^s)`, the share beyond level k, level k holds `out_{k−1} − out_k`.
//! A line from a level costs `max(core, latency / in_flight(L), line / bandwidth)`, where the
//! maximum is a smooth one, and the first line's latency is paid in full.
//! `in_flight(L) = 1 + (m − 1) · L / (L + ramp)`: latency limits short buffers, lines in flight or
//! bandwidth limit long ones.
//!
//! Levels that two cores do not share hold no data that both can reach: there a read costs the
//! transfer of a modified line, and a write the recall of the reader's copy.

use hearth_machine::profile::{Access, Carrier, Figure, Level, LineState, Profile, Provenance};
use hearth_machine::relation::{Closeness, Nodes, Relation};

use super::pairs::{has_states, typical_one_way};
use super::{Buffer, Flow, Parts, Tuning};
use hearth_stats::median;

/// Bytes to a page that a fresh buffer faults in.
const PAGE_BYTES: f64 = 4096.0;
/// Bytes to a line where the topology does not say.
const LINE_BYTES: u32 = 64;
/// Factor of another node's memory where distances were not measured.
const REMOTE: f64 = 1.5;
/// Exponent of the smooth maximum: two equal terms give 1.19 times either.
const SMOOTH: f64 = 4.0;
/// Least share that siblings of one core cannot overlap: they share its execution units.
const SIBLINGS_UNHIDDEN: f64 = 0.5;

/// Groups of figures whose uncertainties are taken as independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Levels,
    Bandwidths,
    Transfers,
    HandOvers,
    System,
}

impl Group {
    pub(super) const ALL: [Self; 5] = [
        Self::Levels,
        Self::Bandwidths,
        Self::Transfers,
        Self::HandOvers,
        Self::System,
    ];
}

/// The end of a figure's interval that makes an exchange costly or cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Cheap,
    Costly,
}

/// Selects a profile's figures, with one group of them moved to an end of its intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick(pub(super) Option<(Group, End)>);

impl Pick {
    fn cost(self, group: Group, figure: Figure) -> f64 {
        let number = match self.0 {
            Some((moved, End::Cheap)) if moved == group => figure.low,
            Some((moved, End::Costly)) if moved == group => figure.high,
            _ => figure.value,
        };
        // Must be positive: we divide by costs and take their logarithms, and an interval may touch
        // zero.
        number.max(figure.value * 1e-3).max(1e-3)
    }

    fn rate(self, figure: Figure) -> f64 {
        let swapped = Figure {
            low: figure.high,
            high: figure.low,
            ..figure
        };
        self.cost(Group::Bandwidths, swapped)
    }
}

#[derive(Clone, Debug)]
struct LevelTerms {
    /// `None` is memory.
    cache: Option<u8>,
    capacity_bytes: f64,
    read_ns: f64,
    write_ns: f64,
    read_bytes_per_ns: f64,
    write_bytes_per_ns: f64,
}

#[derive(Clone, Debug)]
struct RelationTerms {
    relation: Relation,
    /// A line modified by the sender, read by the receiver.
    transfer_ns: f64,
    /// A line in the receiver's cache, written by the sender.
    recall_ns: f64,
    /// By carrier, in the order of [`carrier_index`].
    hand_over_ns: [Option<f64>; 3],
}

/// All figures that a prediction needs.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    levels: Vec<LevelTerms>,
    relations: Vec<RelationTerms>,
    line_bytes: f64,
    page_fault_ns: f64,
    remote: f64,
}

/// One exchange, with the pair's deviation from others of its relation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) bytes: u64,
    pub(super) relation: Relation,
    /// The pair's transfer latency relative to that of its relation.
    pub(super) pair_ratio: f64,
    pub(super) carrier: Carrier,
    pub(super) flow: Flow,
    pub(super) buffer: Buffer,
}

const fn carrier_index(carrier: Carrier) -> usize {
    match carrier {
        Carrier::Threads => 0,
        Carrier::Spin => 1,
        Carrier::Worker => 2,
    }
}

impl Terms {
    /// Takes the figures of a profile that has its defaults.
    pub(super) fn new(profile: &Profile, pick: Pick) -> Self {
        let topology = &profile.topology;
        let line = topology
            .caches()
            .iter()
            .filter(|cache| cache.holds_data())
            .find_map(|cache| cache.line);
        let page_fault = profile.system.page_fault_ns;
        Self {
            levels: levels(profile, pick),
            relations: topology
                .representatives()
                .into_iter()
                .map(|(relation, _)| relation_terms(profile, relation, pick))
                .collect(),
            line_bytes: f64::from(line.unwrap_or(LINE_BYTES).max(1)),
            page_fault_ns: page_fault.map_or(0.0, |figure| pick.cost(Group::System, figure)),
            remote: remote(profile),
        }
    }

    pub(super) fn has(&self, relation: Relation) -> bool {
        self.relations().any(|known| known == relation)
    }

    /// The machine's relations, nearest first.
    pub(super) fn relations(&self) -> impl Iterator<Item = Relation> {
        self.relations.iter().map(|terms| terms.relation)
    }

    /// The parts of an exchange's time. `None` if the machine has no such relation, or the carrier
    /// cannot serve it.
    pub(super) fn parts(&self, exchange: &Exchange, tuning: &Tuning) -> Option<Parts> {
        let terms = self
            .relations
            .iter()
            .find(|terms| terms.relation == exchange.relation)?;
        let carrier = carrier_index(exchange.carrier);
        let ratio = match exchange.carrier {
            // The kernel's part does not depend on the pair.
            Carrier::Threads => 1.0,
            Carrier::Spin | Carrier::Worker => exchange.pair_ratio,
        };
        let factor = match (exchange.carrier, exchange.relation.closeness) {
            (Carrier::Threads, _) => tuning.threads_factor,
            (Carrier::Spin, _) => tuning.spin_factor,
            // A worker calls the next component.
            (Carrier::Worker, Closeness::Same) => 1.0,
            (Carrier::Worker, _) => tuning.worker_factor,
        };
        let hand_over = terms.hand_over_ns[carrier]? * factor * ratio;
        let write = self.side(exchange, terms, tuning, Access::Write);
        let read = self.side(exchange, terms, tuning, Access::Read);
        let faults = match exchange.buffer {
            Buffer::Reused => 0.0,
            Buffer::Fresh => {
                let pages = (exchange.bytes as f64 / PAGE_BYTES).ceil();
                pages * self.page_fault_ns * tuning.fault_factor
            }
        };
        Some(match exchange.flow {
            Flow::Alternating => Parts {
                write_ns: write,
                faults_ns: faults,
                hand_over_ns: hand_over + tuning.message_ns,
                read_ns: read,
                hidden_ns: 0.0,
            },
            Flow::Streaming { .. } => {
                let writer = write + faults;
                let unhidden = match exchange.relation.closeness {
                    Closeness::Same => 1.0,
                    Closeness::SmtSibling => tuning.stream_unhidden.max(SIBLINGS_UNHIDDEN),
                    _ => tuning.stream_unhidden,
                };
                Parts {
                    write_ns: write,
                    faults_ns: faults,
                    hand_over_ns: hand_over * tuning.stream_share.min(1.0) + tuning.message_ns,
                    read_ns: read,
                    hidden_ns: writer.min(read) * (1.0 - unhidden.min(1.0)),
                }
            }
        })
    }

    /// Time of the writer or the reader, ns.
    fn side(
        &self,
        exchange: &Exchange,
        terms: &RelationTerms,
        tuning: &Tuning,
        access: Access,
    ) -> f64 {
        let n = exchange.bytes as f64;
        if exchange.bytes == 0 {
            return 0.0;
        }
        let lines = (n / self.line_bytes).ceil();
        let depth = match exchange.flow {
            Flow::Alternating => 1,
            Flow::Streaming { depth } => depth.max(1),
        };
        let footprint = n * f64::from(depth);
        let writes = access == Access::Write;
        // No other cache has copies of a fresh buffer's lines.
        let alone = writes && exchange.buffer == Buffer::Fresh;
        let core = if writes {
            tuning.core_write_ns
        } else {
            tuning.core_read_ns
        };
        let factor = exchange.pair_ratio * tuning.transfer_factor(exchange.relation);
        let (mut first, mut each) = (0.0, 0.0);
        let mut beyond_before = 1.0;
        for level in &self.levels {
            let capacity = level.capacity_bytes * tuning.capacity_share;
            let beyond = 1.0 / (1.0 + (capacity / footprint).powf(tuning.sharpness));
            let share = beyond_before - beyond;
            beyond_before = beyond;
            let (latency, in_flight, bandwidth) = if alone || shared(exchange.relation, level.cache)
            {
                let remote = self.remote_factor(exchange.relation, level.cache, writes);
                let (latency, in_flight, bandwidth) = if writes {
                    let latency = level.write_ns;
                    (latency, tuning.in_flight_write, level.write_bytes_per_ns)
                } else {
                    let latency = level.read_ns;
                    (latency, tuning.in_flight_read, level.read_bytes_per_ns)
                };
                let bandwidth = bandwidth * tuning.bandwidth_factor / remote;
                (latency * remote, in_flight, bandwidth)
            } else if writes {
                let recall = terms.recall_ns * factor;
                (recall, tuning.in_flight_invalidate, f64::INFINITY)
            } else {
                let transfer = terms.transfer_ns * factor;
                (transfer, tuning.in_flight_transfer, f64::INFINITY)
            };
            let most = in_flight.max(1.0);
            let overlap = 1.0 + (most - 1.0) * lines / (lines + tuning.ramp_lines);
            let line = smooth_max([core, latency / overlap, self.line_bytes / bandwidth]);
            first += share * latency;
            each += share * line;
        }
        first + (lines - 1.0) * each + core
    }

    /// Factor for a reader on another node: it uses memory of the writer's node, which touched it
    /// first.
    fn remote_factor(&self, relation: Relation, cache: Option<u8>, writes: bool) -> f64 {
        if cache.is_none() && !writes && relation.nodes == Nodes::Other {
            self.remote
        } else {
            1.0
        }
    }
}

/// Whether both reach the same copy at this level; all share memory.
fn shared(relation: Relation, cache: Option<u8>) -> bool {
    match (relation.closeness, cache) {
        (_, None) | (Closeness::Same | Closeness::SmtSibling, _) => true,
        (Closeness::SharedCache(level), Some(cache)) => cache >= level,
        (Closeness::SamePackage | Closeness::OtherPackage, Some(_)) => false,
    }
}

/// A smooth maximum of non-negative numbers: the `SMOOTH`-norm.
fn smooth_max(numbers: [f64; 3]) -> f64 {
    let largest = numbers.into_iter().fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = numbers.iter().map(|n| (n / largest).powf(SMOOTH)).sum();
    largest * sum.powf(1.0 / SMOOTH)
}

fn levels(profile: &Profile, pick: Pick) -> Vec<LevelTerms> {
    profile
        .levels
        .iter()
        .filter_map(|cost| {
            let cache = match cost.level {
                Level::Cache(level) => Some(level),
                Level::Memory => None,
            };
            let capacity_bytes = match cache {
                None => f64::INFINITY,
                Some(level) => {
                    let found = profile.caches.iter().find(|found| found.level == level)?;
                    found.capacity_bytes().filter(|bytes| *bytes > 0.0)?
                }
            };
            let rate = |access| {
                let bandwidth = profile.bandwidth(cost.level, access, 1);
                bandwidth.map_or(f64::INFINITY, |b| pick.rate(b.bytes_per_ns))
            };
            Some(LevelTerms {
                cache,
                capacity_bytes,
                read_ns: pick.cost(Group::Levels, cost.read_ns),
                write_ns: pick.cost(Group::Levels, cost.write_ns.unwrap_or(cost.read_ns)),
                read_bytes_per_ns: rate(Access::Read),
                write_bytes_per_ns: rate(Access::Write),
            })
        })
        .collect()
}

fn relation_terms(profile: &Profile, relation: Relation, pick: Pick) -> RelationTerms {
    let pairs = typical_one_way(profile, relation);
    // A measured transfer, else the pairs' time, else the assumption. If pairs have several states
    // nobody knows in which of them a transfer was measured.
    let has_states = has_states(profile, relation);
    let is_known = |f: &Figure| f.provenance != Provenance::Assumed && !has_states;
    let known = |figure: Option<Figure>| match (figure, pairs) {
        (Some(figure), _) if is_known(&figure) => Some(figure),
        (assumed, pairs) => pairs.or(assumed),
    };
    let modified = profile.transfer(relation, LineState::Modified);
    let shared = profile.transfer(relation, LineState::Shared);
    let transfer = known(modified.map(|cost| cost.read_ns));
    let recall = known(shared.and_then(|cost| cost.write_ns));
    let cost = |figure: Option<Figure>| figure.map(|f| pick.cost(Group::Transfers, f));
    let hand_over = |carrier| {
        let figure = profile.hand_over(carrier, relation)?.one_way_ns;
        let figure = match carrier {
            Carrier::Spin => known(Some(figure)).unwrap_or(figure),
            Carrier::Threads | Carrier::Worker => figure,
        };
        Some(pick.cost(Group::HandOvers, figure))
    };
    let transfer_ns = cost(transfer).unwrap_or(0.0);
    RelationTerms {
        relation,
        transfer_ns,
        recall_ns: cost(recall).unwrap_or(transfer_ns),
        hand_over_ns: [Carrier::Threads, Carrier::Spin, Carrier::Worker].map(hand_over),
    }
}

/// Typical factor of another node's memory.
fn remote(profile: &Profile) -> f64 {
    let Some(distances) = &profile.node_distances else {
        return REMOTE;
    };
    let apart: Vec<f64> = distances
        .scaled
        .iter()
        .enumerate()
        .flat_map(|(row, line)| {
            line.iter()
                .enumerate()
                .map(move |(at, cell)| (row, at, cell))
        })
        .filter(|(row, at, _)| row != at)
        .filter_map(|(_, _, cell)| *cell)
        .collect();
    median(&apart).map_or(REMOTE, |distance| (distance / 10.0).max(1.0))
}
