//! What a placement costs.
//!
//! ```text
//! J = B + (C + P) / n
//! ```
//!
//! in ns a round. *C* is the sum of all messages' costs and *P* what components lose because their
//! working sets share caches; *n* is how many slots the components could use at most, so that the
//! second term is what a slot bears of both in the mean. *B* is the bottleneck, the largest of
//!
//! - the load of a slot: the work of its components, their shares of messages and their part of
//!   *P*, by the share of its time that is ours;
//! - the load of a core of several slots, by what siblings do together ([`Options::smt_yield`]);
//! - the cycle of a component that makes requests: its own work, its requests and answers, and
//!   what its servers do for it, with their own requests. Two that take turns gain nothing by two
//!   cores, and this is why;
//! - all loads together by the quota, if there is one.
//!
//! *P*: a cache of capacity c whose components' working sets sum up to D > c misses the share
//! 1 − c/D of the lines that they go through, each miss at the profile's cost; what a component
//! would miss alone is its own affair and not counted.
//!
//! Memory is a constraint: heaps beyond a node's memory are [`Breakdown::over_bytes`], and no cost
//! makes up for them.

mod crowd;
mod cycles;
mod peak;
pub(crate) mod problem;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod weigh;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::graph::{ComponentId, Graph, GraphError};
use crate::machine::{Machine, Placement, Slot};
use problem::Problem;
use state::State;

use hearth_machine::profile::Carrier;

/// What the profile does not know.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How much the siblings of a core do together, by what one does alone. 1.25 is what server
    /// loads usually gain.
    pub smt_yield: f64,
    /// How control passes where a connection does not say.
    pub carrier: Carrier,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            smt_yield: 1.25,
            carrier: Carrier::Worker,
        }
    }
}

/// Why a placement has no cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostError {
    /// The graph is not sound.
    Graph(GraphError),
    /// The placement has another number of components.
    Length {
        /// The graph's.
        components: usize,
        /// The placement's.
        placed: usize,
    },
    /// The machine has no such slot.
    NoSuchSlot {
        /// Which.
        slot: Slot,
        /// How many there are.
        count: usize,
    },
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graph(error) => write!(f, "{error}"),
            Self::Length { components, placed } => write!(
                f,
                "the placement has {placed} components and the graph {components}: make it of \
                 this graph"
            ),
            Self::NoSuchSlot { slot, count } => write!(
                f,
                "the placement names slot {} and the machine has {count}: make it for this \
                 machine",
                slot.0
            ),
        }
    }
}

impl std::error::Error for CostError {}

impl From<GraphError> for CostError {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

/// What bounds the rate of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// One slot's load.
    Slot(Slot),
    /// A core's siblings together; its first slot.
    Core(Slot),
    /// What a component and its servers do one after the other.
    Cycle(ComponentId),
    /// The quota.
    Quota,
}

/// What a slot does in a round, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Its components' work.
    pub work_ns: f64,
    /// Its shares of messages.
    pub communication_ns: f64,
    /// What its components lose to others in the same caches.
    pub sharing_ns: f64,
}

impl Load {
    /// The sum.
    #[must_use]
    pub fn total_ns(self) -> f64 {
        self.work_ns + self.communication_ns + self.sharing_ns
    }
}

/// What a placement costs, and of what that consists. Modelled, never measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// J, ns a round.
    pub total_ns: f64,
    /// B: no round can be shorter.
    pub bottleneck_ns: f64,
    /// Where that is.
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

/// What a placement costs. Pins do not matter here: this is the cost of what is asked.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn evaluate(
    graph: &Graph,
    machine: &Machine,
    options: &Options,
    placement: &Placement,
) -> Result<Breakdown, CostError> {
    graph.check()?;
    fits(graph, machine, placement)?;
    let problem = Problem::new(graph, machine, options);
    Ok(State::new(&problem, &placement.0).breakdown())
}

/// Whether a placement is of this graph and machine.
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
