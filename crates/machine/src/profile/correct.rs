//! Correction of a profile's transfers by a factor.

use super::{Carrier, Profile};
use crate::relation::Relation;

impl Profile {
    /// The same profile with every transfer between hardware threads of a relation `factor` times
    /// as long, marked as inferred: lines in each state, pairs, and hand-overs that are transfers.
    /// The kernel's part of waking a thread stays. Measured exchanges of that relation are left
    /// out, since they no longer hold.
    #[must_use]
    pub fn with_transfers_times(mut self, relation: Relation, factor: f64) -> Self {
        let topology = &self.topology;
        for transfer in &mut self.transfers {
            if transfer.relation == relation {
                transfer.read_ns = transfer.read_ns.times(factor).inferred();
                let write = transfer.write_ns;
                transfer.write_ns = write.map(|figure| figure.times(factor).inferred());
            }
        }
        for pair in &mut self.pairs {
            if topology.relation(pair.a, pair.b) == relation {
                pair.round_trip_ns = pair.round_trip_ns.times(factor).inferred();
                pair.one_way_ns = pair.one_way_ns.times(factor).inferred();
                for state in &mut pair.states {
                    state.one_way_ns = state.one_way_ns.times(factor).inferred();
                }
            }
        }
        for hand_over in &mut self.hand_overs {
            let is_transfer = match hand_over.carrier {
                Carrier::Spin | Carrier::Worker => true,
                Carrier::Threads => false,
            };
            if is_transfer && hand_over.relation == relation {
                hand_over.one_way_ns = hand_over.one_way_ns.times(factor).inferred();
            }
        }
        self.exchanges
            .retain(|one| topology.relation(one.sender, one.receiver) != relation);
        self
    }
}
