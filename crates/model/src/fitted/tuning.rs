//! Numbers of the model that no probe measures, and that a fit adjusts.

use hearth_machine::relation::Relation;
use serde::{Deserialize, Serialize};

/// Numbers that a fit adjusts. The defaults work unfitted.
///
/// Counts of lines in flight and the ramp are those of out-of-order cores of the 2020s with ten to
/// sixteen miss buffers; the others follow from them or are neutral.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// Core's work on a line it reads, ns, when nothing else limits.
    pub core_read_ns: f64,
    /// Core's work on a line it writes, ns.
    pub core_write_ns: f64,
    /// Lines in flight in a long read from own caches and memory.
    pub in_flight_read: f64,
    /// Lines in flight in a long write.
    pub in_flight_write: f64,
    /// Lines in flight when they come from another core's cache.
    pub in_flight_transfer: f64,
    /// Lines in flight when a write must remove other cores' copies.
    pub in_flight_invalidate: f64,
    /// Lines after which half of the lines in flight are reached: prefetchers react late.
    pub ramp_lines: f64,
    /// Capacity usable by a buffer, as a share of the cache's.
    pub capacity_share: f64,
    /// Sharpness with which a buffer leaves a level as it outgrows it. Infinite would be a step.
    pub sharpness: f64,
    /// Factor on the profile's bandwidths.
    pub bandwidth_factor: f64,
    /// Factor on the profile's hand-over by kernel threads.
    pub threads_factor: f64,
    /// Factor on the profile's hand-over by spinning.
    pub spin_factor: f64,
    /// Factor on the profile's hand-over between two workers, which is a transfer: the message goes
    /// one way over its line, the partner's next step comes back, and both look at more than that
    /// line. Measured with messages to and fro between two workers, and in one direction.
    pub worker_factor: f64,
    /// Share of a hand-over that each message of a stream still pays.
    pub stream_share: f64,
    /// Share of a stream's shorter side that does not overlap with the longer one.
    pub stream_unhidden: f64,
    /// Further cost of each message, ns.
    pub message_ns: f64,
    /// Factor on the profile's page faults.
    pub fault_factor: f64,
    /// Factors on the profile's transfer latency of data, by relation; 1 for those not listed.
    pub transfers: Vec<RelationFactor>,
}

/// A factor for one relation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationFactor {
    /// The relation.
    pub relation: Relation,
    /// The factor.
    pub factor: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            core_read_ns: 2.0,
            core_write_ns: 2.0,
            in_flight_read: 10.0,
            in_flight_write: 10.0,
            in_flight_transfer: 5.0,
            in_flight_invalidate: 5.0,
            ramp_lines: 8.0,
            capacity_share: 1.0,
            sharpness: 3.0,
            bandwidth_factor: 1.0,
            threads_factor: 1.0,
            spin_factor: 1.0,
            worker_factor: 2.5,
            stream_share: 0.3,
            stream_unhidden: 0.15,
            message_ns: 5.0,
            fault_factor: 1.0,
            transfers: Vec::new(),
        }
    }
}

/// Standard deviation of the logarithm of each of [`Tuning::scalars`]. A fit needs evidence to go
/// further.
const SPREADS: [f64; SCALARS] = [
    1.0, 1.0, 0.7, 0.7, 0.7, 0.7, 1.0, 0.5, 0.4, 0.5, 0.7, 0.7, 0.7, 0.8, 0.8, 1.5, 0.7,
];
const SCALARS: usize = 17;
/// The same for a relation's factor.
const TRANSFER_SPREAD: f64 = 0.5;

impl Tuning {
    /// The tuning as JSON, for [`Tuning::from_json`].
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads a stored tuning.
    ///
    /// # Errors
    /// If the text is not a tuning.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    fn scalars(&mut self) -> [&mut f64; SCALARS] {
        [
            &mut self.core_read_ns,
            &mut self.core_write_ns,
            &mut self.in_flight_read,
            &mut self.in_flight_write,
            &mut self.in_flight_transfer,
            &mut self.in_flight_invalidate,
            &mut self.ramp_lines,
            &mut self.capacity_share,
            &mut self.sharpness,
            &mut self.bandwidth_factor,
            &mut self.threads_factor,
            &mut self.spin_factor,
            &mut self.worker_factor,
            &mut self.stream_share,
            &mut self.stream_unhidden,
            &mut self.message_ns,
            &mut self.fault_factor,
        ]
    }

    /// The defaults, with a factor for each of `relations` to adjust.
    pub(super) fn for_relations(relations: impl IntoIterator<Item = Relation>) -> Self {
        let transfers = relations.into_iter().map(|relation| RelationFactor {
            relation,
            factor: 1.0,
        });
        Self {
            transfers: transfers.collect(),
            ..Self::default()
        }
    }

    /// The spread of each number that a fit adjusts.
    pub(super) fn spreads(&self) -> Vec<f64> {
        let transfers = self.transfers.iter().map(|_| TRANSFER_SPREAD);
        SPREADS.into_iter().chain(transfers).collect()
    }

    /// This tuning with each number multiplied by `exp` of its element in `logs`.
    pub(super) fn moved(&self, logs: &[f64]) -> Self {
        let mut moved = self.clone();
        let (scalars, factors) = logs.split_at(SCALARS);
        for (number, log) in moved.scalars().into_iter().zip(scalars) {
            *number *= log.exp();
        }
        for (transfer, log) in moved.transfers.iter_mut().zip(factors) {
            transfer.factor *= log.exp();
        }
        moved
    }

    /// The factor on a relation's transfer latency.
    #[must_use]
    pub fn transfer_factor(&self, relation: Relation) -> f64 {
        self.transfers
            .iter()
            .find(|transfer| transfer.relation == relation)
            .map_or(1.0, |transfer| transfer.factor)
    }
}
