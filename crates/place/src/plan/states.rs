//! A plan in each state of a pair of hardware threads, and the choice that would be better then.

use std::fmt;

use hearth_machine::topology::OsThread;

use crate::cost::{CostOptions, evaluate};
use crate::graph::Graph;
use crate::policy::{Policy, PolicyError};
use crate::slots::{Machine, MachineState, Placement};
use crate::talk::Effort;

/// Least saving for which another placement is named.
const SAVES_MIN: f64 = 0.05;
/// Most components named one by one.
const NAMED_MAX: usize = 3;

/// A plan while a pair of hardware threads is in one of its states.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderState {
    /// The pair.
    pub cpus: [OsThread; 2],
    /// Time of a line from one to the other then, ns.
    pub one_way_ns: f64,
    /// Share of time in which the state holds.
    pub time_share: f64,
    /// J of the plan then, ns a round.
    pub total_ns: f64,
    /// A placement that costs less then by a twentieth or more, if the plan was free to choose.
    pub better: Option<Better>,
}

/// A placement that is better while a state holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// Its J then, ns a round.
    pub total_ns: f64,
    /// Components that are elsewhere in it.
    pub moves: Vec<(String, OsThread)>,
}

impl UnderState {
    /// Saving of the better placement, as a share of the plan's cost; 0 without one.
    #[must_use]
    pub fn saves(&self) -> f64 {
        let better = self.better.as_ref();
        better.map_or(0.0, |better| 1.0 - better.total_ns / self.total_ns)
    }
}

impl fmt::Display for UnderState {
    /// A clause for people, without the plan's cost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.cpus;
        let (ns, share) = (self.one_way_ns, 100.0 * self.time_share);
        write!(
            f,
            "while a line takes {ns:.0} ns between {a} and {b} ({share:.0} % of the time), "
        )?;
        match &self.better {
            None => write!(f, "no other placement is worth a change"),
            Some(better) => {
                let saves = 100.0 * self.saves();
                write!(f, "{} would be {saves:.0} % cheaper", better.told())
            }
        }
    }
}

impl Better {
    /// The places of the components.
    fn told(&self) -> String {
        let (first, more) = self.moves.split_at(self.moves.len().min(NAMED_MAX));
        let one_cpu = first.iter().all(|(_, cpu)| *cpu == first[0].1);
        let names: Vec<String> = first.iter().map(|(name, _)| format!("`{name}`")).collect();
        let mut told = if one_cpu && more.is_empty() {
            format!("{} on {}", list(&names), first[0].1)
        } else {
            let each = first.iter().map(|(name, cpu)| format!("`{name}` on {cpu}"));
            list(&each.collect::<Vec<_>>())
        };
        if !more.is_empty() {
            told = format!("{told}, with {} more elsewhere,", more.len());
        }
        told
    }
}

fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The plan in each state of the machine's pairs.
pub(super) fn under_states(
    graph: &Graph,
    machine: &Machine,
    policy: &Policy,
    options: &CostOptions,
    effort: Effort,
    placement: &Placement,
) -> Result<Vec<UnderState>, PolicyError> {
    let under = |state: &MachineState| {
        let then = machine.under(state);
        let here = evaluate(graph, &then, options, placement)?;
        let better = match policy {
            Policy::Talk => {
                let found = policy.place(graph, &then, options, effort)?;
                let is_better = found.cost.over_bytes <= here.over_bytes
                    && found.cost.total_ns <= (1.0 - SAVES_MIN) * here.total_ns;
                is_better.then(|| Better {
                    total_ns: found.cost.total_ns,
                    moves: moves(graph, machine, placement, &found.placement),
                })
            }
            _ => None,
        };
        Ok(UnderState {
            cpus: state.pair.map(|slot| machine.os(slot)),
            one_way_ns: state.one_way_ns,
            time_share: state.time_share,
            total_ns: here.total_ns,
            better,
        })
    };
    machine.states().iter().map(under).collect()
}

fn moves(
    graph: &Graph,
    machine: &Machine,
    from: &Placement,
    to: &Placement,
) -> Vec<(String, OsThread)> {
    let places = from.0.iter().zip(&to.0).zip(&graph.components);
    places
        .filter(|((before, after), _)| before != after)
        .map(|((_, after), component)| (component.name.clone(), machine.os(*after)))
        .collect()
}
