//! Reasons for a component's place.

use std::fmt;

use hearth_machine::relation::Relation;
use hearth_machine::topology::OsThread;

use super::Other;
use crate::baselines::Affinity;
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::graph::Graph;
use crate::policy::Policy;
use crate::slots::{CpuSlot, Placement, slot_number};

/// Most components for which the cost of going elsewhere is computed one by one.
const LOOKED_AT_MAX: usize = 2048;
/// Slots examined for each.
const SLOTS_MAX: usize = 256;
/// Smallest share of J that counts as a reason.
const NOTHING: f64 = 1e-4;
/// Relative difference below which sums of equal rates are equal.
const ALIKE: f64 = 1e-9;

/// Reason for a component's place. Costs are J's, ns a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The program pins it.
    Pinned {
        /// The hardware thread.
        cpu: OsThread,
    },
    /// The peer it talks to most is on the same slot.
    With {
        /// The peer's name.
        peer: String,
        /// Extra cost of the best other place.
        saves_ns: f64,
    },
    /// The peer it talks to most is near.
    Near {
        /// The peer's name.
        peer: String,
        /// Its distance.
        relation: Relation,
        /// Extra cost of the best other place.
        saves_ns: f64,
    },
    /// It talks to nobody, and computes on a slot that others leave free.
    Apart {
        /// Its work, ns a round.
        work_ns: f64,
        /// Extra cost of the best other place.
        saves_ns: f64,
    },
    /// Another place costs the same.
    Free,
    /// The policy puts it there regardless of cost.
    Policy {
        /// The policy's name.
        name: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned { cpu } => write!(f, "the program puts it on {cpu}"),
            Self::With { peer, saves_ns } => write!(
                f,
                "with `{peer}`, which it talks to most; anywhere else costs {saves_ns:.0} ns a \
                 round more"
            ),
            Self::Near {
                peer,
                relation,
                saves_ns,
            } => write!(
                f,
                "beside `{peer}`, which it talks to most ({relation}); anywhere else costs \
                 {saves_ns:.0} ns a round more"
            ),
            Self::Apart { work_ns, saves_ns } => write!(
                f,
                "computes {work_ns:.0} ns a round where there is room; anywhere else costs \
                 {saves_ns:.0} ns a round more"
            ),
            Self::Free => write!(f, "another place would cost the same"),
            Self::Policy { name } => write!(f, "`{name}` puts it there without a look at costs"),
        }
    }
}

/// The reason of each component, and the best placement that differs by one move.
pub(super) fn reasons(
    graph: &Graph,
    problem: &Problem,
    placement: &Placement,
    policy: &Policy,
) -> (Vec<Reason>, Option<Other>) {
    let affinity = Affinity::of(problem);
    let mut state = State::new(problem, &placement.0);
    let here = state.score();
    let optimised = matches!(policy, Policy::Talk | Policy::File(_));
    let look = optimised && problem.count() <= LOOKED_AT_MAX;
    let mut next: Option<Other> = None;
    let reasons = (0..problem.count())
        .map(|component| {
            if problem.pins[component].is_some() {
                let cpu = problem.machine.os(placement.0[component]);
                return Reason::Pinned { cpu };
            }
            if !optimised {
                let name = policy.to_string();
                return Reason::Policy { name };
            }
            let mut saves_ns = f64::NAN;
            if look && let Some((slot, other)) = elsewhere(&mut state, component) {
                saves_ns = other.total - here.total;
                if next.as_ref().is_none_or(|n| other.total < n.total_ns) {
                    let name = &graph.components[component].name;
                    let cpu = problem.machine.os(slot);
                    next = Some(Other {
                        name: format!("`{name}` on {cpu}"),
                        total_ns: other.total,
                        over_bytes: other.over,
                    });
                }
            }
            if look && (saves_ns.is_nan() || saves_ns <= NOTHING * here.total) {
                return Reason::Free;
            }
            say(
                graph,
                problem,
                &affinity,
                placement,
                component,
                saves_ns.max(0.0),
            )
        })
        .collect();
    (reasons, next)
}

/// The best other slot of a component, and the score there.
fn elsewhere(state: &mut State, component: usize) -> Option<(CpuSlot, crate::search::Score)> {
    let home = state.slot(component);
    let slots = state.problem.slots();
    let mut best: Option<(CpuSlot, crate::search::Score)> = None;
    let all = (0..slots.min(SLOTS_MAX)).map(slot_number);
    for slot in all.filter(|slot| *slot != home) {
        state.put(component, slot);
        let score = state.score();
        if best.is_none_or(|(_, best)| score.total < best.total) {
            best = Some((slot, score));
        }
    }
    state.put(component, home);
    best
}

fn say(
    graph: &Graph,
    problem: &Problem,
    affinity: &Affinity,
    placement: &Placement,
    component: usize,
    saves_ns: f64,
) -> Reason {
    let Some(peer) = closest(affinity, placement, component) else {
        let work_ns = problem.work[component];
        return Reason::Apart { work_ns, saves_ns };
    };
    let (mine, theirs) = (placement.0[component], placement.0[peer]);
    let peer = graph.components[peer].name.clone();
    if mine == theirs {
        return Reason::With { peer, saves_ns };
    }
    let class = problem.class(mine, theirs);
    Reason::Near {
        peer,
        relation: problem.machine.messages().classes()[class].relation,
        saves_ns,
    }
}

/// The peer that a component talks to most. Of equals, one on the same slot: it is there for their
/// sake.
fn closest(affinity: &Affinity, placement: &Placement, component: usize) -> Option<usize> {
    let peers = affinity.peers(component);
    let most = peers.iter().map(|peer| peer.1).max_by(f64::total_cmp)?;
    let mut equals = peers
        .iter()
        .filter(|peer| peer.1 >= most * (1.0 - ALIKE))
        .map(|peer| peer.0 as usize);
    let first = equals.clone().next();
    equals
        .find(|&peer| placement.0[peer] == placement.0[component])
        .or(first)
}
