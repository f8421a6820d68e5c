//! The cost of a placement.
//!
//! ```text
//! J = B + (C + P) / n
//! ```
//!
//! in ns a round. *C* is the sum of all messages' costs and *P* the time that components lose
//! because their working sets share caches; *n* is the largest number of slots that the components
//! could use, so that the second term is a slot's mean part of both. *B* is the bottleneck, the
//! largest of
//!
//! - the load of a slot: its components' work, their shares of messages and their part of *P*,
//!   divided by the share of the slot's time that is ours;
//! - the load of a core with several slots, by the yield of siblings together
//!   ([`CostOptions::smt_yield`]);
//! - the cycle of a component that makes requests: its own work, its requests and answers, and its
//!   servers' work for it with their own requests. Two components that take turns gain nothing from
//!   two cores, and this term says so;
//! - all loads together divided by the quota, if there is one.
//!
//! *P*: a cache of capacity c whose components' working sets add up to D > c misses the share 1 −
//! c/D of the lines that they go through, each miss at the profile's cost. Misses that a component
//! would have alone are not counted.
//!
//! Memory is a constraint: heaps beyond a node's memory are [`Breakdown::over_bytes`], which no
//! saving outweighs.

mod crowd;
mod cycles;
mod peak;
pub(crate) mod problem;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod weigh;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::graph::{ComponentId, Graph, GraphError};
use crate::slots::{CpuSlot, Machine, Placement};
use problem::Problem;
use state::State;

use hearth_machine::profile::Carrier;

/// Parameters that the profile does not have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostOptions {
    /// Work that the siblings of a core do together, by the work of one alone. Server loads usually
    /// gain 1.25.
    pub smt_yield: f64,
    /// Way in which control passes, for connections that do not specify it.
    pub carrier: Carrier,
}

impl Default for CostOptions {
    fn default() -> Self {
        Self {
            smt_yield: 1.25,
            carrier: Carrier::Worker,
        }
    }
}

/// Reason why a placement has no cost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CostError {
    /// The graph is not valid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The placement has a different number of components.
    #[error(
        "the placement has {placed} components and the graph {components}: make it of this graph"
    )]
    Length {
        /// Components in the graph.
        components: usize,
        /// Components in the placement.
        placed: usize,
    },
    /// The machine has no such slot.
    #[error("the placement names slot {} and the machine has {count}: make it for this machine", .slot.0)]
    NoSuchSlot {
        /// The slot.
        slot: CpuSlot,
        /// Number of slots.
        count: usize,
    },
}

/// The limit to the rate of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Load of one slot.
    Slot(CpuSlot),
    /// Joint load of a core's siblings, named by its first slot.
    Core(CpuSlot),
    /// A component and its servers, one after the other.
    Cycle(ComponentId),
    /// The quota.
    Quota,
}

/// Load of a slot in a round, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Work of its components.
    pub work_ns: f64,
    /// Their shares of messages.
    pub communication_ns: f64,
    /// Time its components lose to others in the same caches.
    pub sharing_ns: f64,
}

impl Load {
    /// The sum.
    #[must_use]
    pub fn total_ns(self) -> f64 {
        self.work_ns + self.communication_ns + self.sharing_ns
    }
}

/// Cost of a placement, and its parts. Modelled, never measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// J, ns a round.
    pub total_ns: f64,
    /// B: no round is shorter.
    pub bottleneck_ns: f64,
    /// The place where B arises.
    pub bottleneck: Bottleneck,
    /// C.
    pub communication_ns: f64,
    /// P.
    pub sharing_ns: f64,
    /// n.
    pub divisor: f64,
    /// By slot.
    pub loads: Vec<Load>,
    /// Bytes of heaps beyond the memory of their nodes.
    pub over_bytes: f64,
}

/// Evaluates a placement. Pins do not matter: the placement is taken as it is.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn evaluate(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    placement: &Placement,
) -> Result<Breakdown, CostError> {
    graph.check()?;
    fits(graph, machine, placement)?;
    let problem = Problem::new(graph, machine, options);
    Ok(State::new(&problem, &placement.0).breakdown())
}

/// J of a placement as its mean over the states of pairs, one pair at a time: J for messages as
/// they cost over time, and for each pair the mean by which its states change that. Exact for a
/// single pair with states; J is more than the sum of its messages, so its mean is not J of their
/// means.
///
/// # Errors
/// As for [`evaluate`].
pub fn over_time_ns(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    placement: &Placement,
) -> Result<f64, CostError> {
    // A heap beyond a node's memory is worse than any time.
    let weigh = |machine: &Machine| {
        let cost = evaluate(graph, machine, options, placement)?;
        let is_over = cost.over_bytes > 0.0;
        Ok::<f64, CostError>(if is_over {
            f64::MAX / 4.0
        } else {
            cost.total_ns
        })
    };
    let plain = weigh(machine)?;
    let mut mean = plain;
    for state in machine.states() {
        mean += state.time_share * (weigh(&machine.under(state))? - plain);
    }
    Ok(mean)
}

/// Checks that a placement belongs to this graph and machine.
pub(crate) fn fits(
    graph: &Graph,
    machine: &Machine,
    placement: &Placement,
) -> Result<(), CostError> {
    let (components, placed) = (graph.components.len(), placement.0.len());
    if components != placed {
        return Err(CostError::Length { components, placed });
    }
    let count = machine.slots().len();
    match placement.0.iter().find(|slot| slot.index() >= count) {
        Some(&slot) => Err(CostError::NoSuchSlot { slot, count }),
        None => Ok(()),
    }
}
