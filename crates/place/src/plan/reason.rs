//! Why a component is where it is.

use std::fmt;

use hearth_machine::relation::Relation;
use hearth_machine::topology::OsThread;

use super::Other;
use crate::baselines::Affinity;
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::graph::Graph;
use crate::machine::{Placement, Slot, slot_number};
use crate::policy::Policy;

/// Above so many components the cost of going elsewhere is not computed for each.
const LOOKED_AT_MAX: usize = 2048;
/// Slots that are looked at for each.
const SLOTS_MAX: usize = 256;
/// Less than this share of J is no reason.
const NOTHING: f64 = 1e-4;
/// Sums of equal rates differ by less than this share.
const ALIKE: f64 = 1e-9;

/// Why a component is where it is. Costs are J's, ns a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The program says so.
    Pinned {
        /// Where.
        cpu: OsThread,
    },
    /// Whoever it talks to most is on the same slot.
    With {
        /// That one's name.
        peer: String,
        /// What the best other place costs more.
        saves_ns: f64,
    },
    /// Whoever it talks to most is near.
    Near {
        /// That one's name.
        peer: String,
        /// How near.
        relation: Relation,
        /// What the best other place costs more.
        saves_ns: f64,
    },
    /// It talks to nobody, and computes where others do not.
    Apart {
        /// What it computes, ns a round.
        work_ns: f64,
        /// What the best other place costs more.
        saves_ns: f64,
    },
    /// Another place costs the same.
    Free,
    /// The policy puts it there and looks at no cost.
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

/// The reason of each, and the best placement that differs by one move.
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

/// The best other slot of a component and the score there.
fn elsewhere(state: &mut State, component: usize) -> Option<(Slot, crate::cost::state::Score)> {
    let home = state.slot(component);
    let slots = state.problem.slots();
    let mut best: Option<(Slot, crate::cost::state::Score)> = None;
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

/// Whom it talks to most. Of several with whom it talks as much, one on the same slot: it is there for
/// their sake.
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
