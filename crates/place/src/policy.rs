//! Policies of placement, by name.

use std::fmt;

use thiserror::Error;

use crate::baselines::pin;
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::cost::{CostError, CostOptions, over_time_ns};
use crate::graph::Graph;
use crate::slots::{CpuSlot, Machine, slot_number};
use crate::talk::{Effort, Placed, solve};
use crate::{graph::ComponentId, slots::Placement};

use hearth_machine::topology::OsThread;

/// A policy of placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The operating system decides, and may migrate components later. Predicted to cost as much as
    /// [`Policy::Spread`], towards which load balancing tends.
    Os,
    /// Round robin, in the order of creation.
    Spread,
    /// All on the first slot.
    Single,
    /// Random slots.
    Random {
        /// Seed of the choices.
        seed: u64,
    },
    /// Round robin at first; then idle workers take computing components from busy ones. Predicted
    /// to cost as much as its start, [`Policy::Spread`].
    Steal,
    /// By a file of components' names; components that it does not name go where they cost least.
    File(Vec<(String, OsThread)>),
    /// The least predicted cost.
    Talk,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Os => "os",
            Self::Spread => "spread",
            Self::Single => "single",
            Self::Random { .. } => "random",
            Self::Steal => "steal",
            Self::File(_) => "file",
            Self::Talk => "talk",
        })
    }
}

impl Policy {
    /// Whether components stay where the policy puts them.
    #[must_use]
    pub const fn binds(&self) -> bool {
        !matches!(self, Self::Os | Self::Steal)
    }

    /// Places the components. Pins of the program hold under every policy.
    ///
    /// # Errors
    /// [`PolicyError`]: the graph is not sound, or a file names what is not there.
    pub fn place(
        &self,
        graph: &Graph,
        machine: &Machine,
        options: &CostOptions,
        effort: Effort,
    ) -> Result<Placed, PolicyError> {
        graph.check().map_err(CostError::from)?;
        if let Self::File(lines) = self {
            return from_file(graph, machine, options, effort, lines);
        }
        let problem = Problem::new(graph, machine, options);
        let (count, slots) = (problem.count(), problem.slots());
        let mut proved = false;
        let mut at: Vec<CpuSlot> = match self {
            Self::Single => vec![CpuSlot(0); count],
            Self::Random { seed } => {
                let mut random = fastrand::Rng::with_seed(*seed);
                (0..count)
                    .map(|_| slot_number(random.usize(..slots)))
                    .collect()
            }
            Self::Talk if !machine.states().is_empty() => {
                let found = solve_over_states(graph, machine, options, effort)?;
                found.0
            }
            Self::Talk => {
                let (at, all) = solve(&problem, effort, None);
                proved = all;
                at
            }
            Self::Os | Self::Spread | Self::Steal | Self::File(_) => {
                (0..count).map(|c| slot_number(c % slots)).collect()
            }
        };
        pin(&problem, &mut at);
        Ok(Placed {
            cost: State::new(&problem, &at).breakdown(),
            placement: Placement(at),
            proved,
        })
    }
}

/// The cheapest over time of the placements that cost least for messages as they are over time, and
/// in each state of a pair.
fn solve_over_states(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    effort: Effort,
) -> Result<Placement, CostError> {
    let best = |machine: &Machine| {
        let problem = Problem::new(graph, machine, options);
        let (mut at, _) = solve(&problem, effort, None);
        pin(&problem, &mut at);
        Placement(at)
    };
    let mut found = vec![best(machine)];
    for state in machine.states() {
        let other = best(&machine.under(state));
        if !found.contains(&other) {
            found.push(other);
        }
    }
    let mut cheapest = None;
    for placement in found {
        let cost = over_time_ns(graph, machine, options, &placement)?;
        if cheapest.as_ref().is_none_or(|(least, _)| cost < *least) {
            cheapest = Some((cost, placement));
        }
    }
    Ok(cheapest.map_or_else(Placement::default, |(_, placement)| placement))
}

/// Reason why a policy cannot place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The graph cannot be used.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The file names a component that the graph lacks.
    #[error(
        "the placement names `{name}` and the program has no such component: take the line out, or mend the name"
    )]
    NoSuchComponent {
        /// Its name.
        name: String,
    },
    /// The file names a hardware thread that may not be used.
    #[error(
        "the placement puts `{name}` on {cpu}, which may not be used: name another, or allow it"
    )]
    NoSuchCpu {
        /// The component.
        name: String,
        /// The hardware thread.
        cpu: OsThread,
    },
}

/// Pins the components of the file, unless the program does, and places the others around them.
fn from_file(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    effort: Effort,
    lines: &[(String, OsThread)],
) -> Result<Placed, PolicyError> {
    let names: std::collections::HashMap<&str, u32> = (0..)
        .zip(&graph.components)
        .map(|(at, component)| (component.name.as_str(), at))
        .collect();
    let mut pinned = graph.clone();
    for (name, cpu) in lines {
        let id = names.get(name.as_str()).copied().map(ComponentId);
        let id = id.ok_or_else(|| PolicyError::NoSuchComponent { name: name.clone() })?;
        if machine.slot_of(*cpu).is_none() {
            let (name, cpu) = (name.clone(), *cpu);
            return Err(PolicyError::NoSuchCpu { name, cpu });
        }
        let component = &mut pinned.components[id.index()];
        component.pinned = component.pinned.or(Some(*cpu));
    }
    Policy::Talk.place(&pinned, machine, options, effort)
}
