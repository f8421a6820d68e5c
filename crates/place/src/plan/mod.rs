//! A placement with its reasons: the slot of each component and why, its cost, the cost of
//! alternatives, and whether placement matters.

mod reason;
mod states;
mod stored;
mod verdict;

use hearth_machine::topology::OsThread;

use crate::cost::problem::Problem;
use crate::cost::{Breakdown, CostOptions};
use crate::forms::Placed;
use crate::graph::{Basis, ComponentId, Graph};
use crate::patterns::{self, Group};
use crate::policy::{Policy, PolicyError};
use crate::slots::{CpuSlot, Machine, Placement};
use crate::talk::Effort;

pub use reason::Reason;
pub use states::{Better, UnderState};
pub use stored::{Changes, Fitted, PlanError, StoredPlace, StoredPlan, changes};
pub use verdict::PlacementVerdict;

/// Policies that a plan is compared with.
const RIVALS: [Policy; 4] = [
    Policy::Talk,
    Policy::Spread,
    Policy::Single,
    Policy::Random { seed: 1 },
];

/// Place of one component, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentPlace {
    /// The component.
    pub component: ComponentId,
    /// Its name.
    pub name: String,
    /// The slot.
    pub slot: CpuSlot,
    /// The operating system's number of the slot.
    pub cpu: OsThread,
    /// The reason.
    pub reason: Reason,
}

/// Another placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// The policy, or the difference from the plan.
    pub name: String,
    /// Its J, ns a round.
    pub total_ns: f64,
    /// Bytes of heaps beyond the memory of their nodes.
    pub over_bytes: f64,
}

/// A placement with reasons. Costs are modelled, never measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementPlan {
    /// The policy.
    pub policy: Policy,
    /// By component.
    pub places: Vec<ComponentPlace>,
    /// Its cost.
    pub cost: Breakdown,
    /// Whether the search proved that nothing costs less.
    pub proved: bool,
    /// Other policies, and the next best placement that differs by one move; cheapest first.
    pub others: Vec<Other>,
    /// Whether placement matters here.
    pub verdict: PlacementVerdict,
    /// Its cost in each state of a pair, and what would be better then; empty on a machine whose
    /// pairs have one state.
    pub states: Vec<UnderState>,
    /// Patterns in which components interact: for people only, costs decided.
    pub patterns: Vec<Group>,
    /// Remarks for the user, as sentences.
    pub notes: Vec<String>,
}

impl PlacementPlan {
    /// The slots.
    #[must_use]
    pub fn placement(&self) -> Placement {
        Placement(self.places.iter().map(|place| place.slot).collect())
    }

    /// The plan as [other tools' forms](crate::forms) take it. `machine` is the one it was made
    /// for.
    #[must_use]
    pub fn placed(&self, machine: &Machine) -> Vec<Placed> {
        let placed = self.places.iter().map(|place| {
            let node = machine.slots()[place.slot.index()].node as usize;
            Placed::new(&place.name, place.cpu).on_node(machine.nodes()[node].os)
        });
        placed.collect()
    }
}

/// Places by a policy; gives reasons, alternatives, and whether placement matters.
///
/// # Errors
/// [`PolicyError`]: the graph is not sound, or a file names what is not there.
///
/// ```
/// use hearth_machine::{profile::Profile, synthetic};
/// use hearth_model::fitted::Model;
/// use hearth_place::{cost::CostOptions, slots::Machine, policy::Policy, talk::Effort};
/// use hearth_place::graph::{Component, Connection, Graph};
///
/// let profile = Profile::assumed(synthetic::parse("1 package, 4 cores, l2 4M per package")?);
/// let machine = Machine::new(&profile, &Model::new(&profile)?, &[])?;
/// let mut graph = Graph::new();
/// let a = graph.add(Component::new("a"));
/// let b = graph.add(Component::new("b"));
/// graph.connect(Connection::new(a, b).messages(100.0));
/// let plan = hearth_place::plan::place(
///     &graph, &machine, &Policy::Talk, &CostOptions::default(), Effort::default())?;
/// assert_eq!(plan.places[0].cpu, plan.places[1].cpu);
/// println!("{}", plan.places[0].reason);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn place(
    graph: &Graph,
    machine: &Machine,
    policy: &Policy,
    options: &CostOptions,
    effort: Effort,
) -> Result<PlacementPlan, PolicyError> {
    let placed = policy.place(graph, machine, options, effort)?;
    let problem = Problem::new(graph, machine, options);
    let mut rivals: Vec<(String, Breakdown)> = Vec::new();
    for rival in RIVALS.iter().filter(|rival| *rival != policy) {
        let found = rival.place(graph, machine, options, effort)?;
        rivals.push((rival.to_string(), found.cost));
    }
    let verdict = PlacementVerdict::of(graph, &problem, &placed, &rivals);
    let (reasons, next) = reason::reasons(graph, &problem, &placed.placement, policy);
    let mut others: Vec<Other> = rivals
        .into_iter()
        .map(|(name, cost)| Other {
            name,
            total_ns: cost.total_ns,
            over_bytes: cost.over_bytes,
        })
        .chain(next)
        .collect();
    others.sort_by(|a, b| {
        let over = a.over_bytes.total_cmp(&b.over_bytes);
        over.then(a.total_ns.total_cmp(&b.total_ns))
    });
    let states = states::under_states(graph, machine, policy, options, effort, &placed.placement)?;
    let places = (0..).zip(&graph.components).zip(&placed.placement.0);
    let places = places.zip(reasons);
    Ok(PlacementPlan {
        places: places
            .map(|(((at, component), slot), reason)| ComponentPlace {
                component: ComponentId(at),
                name: component.name.clone(),
                slot: *slot,
                cpu: machine.os(*slot),
                reason,
            })
            .collect(),
        notes: notes(graph, machine, policy, &placed.cost),
        policy: policy.clone(),
        cost: placed.cost,
        proved: placed.proved,
        others,
        verdict,
        states,
        patterns: patterns::recognise(graph),
    })
}

fn notes(graph: &Graph, machine: &Machine, policy: &Policy, cost: &Breakdown) -> Vec<String> {
    let mut notes = Vec::new();
    for component in &graph.components {
        if let Some(cpu) = component
            .pinned
            .filter(|cpu| machine.slot_of(*cpu).is_none())
        {
            notes.push(format!(
                "`{}` is pinned to {cpu}, which may not be used: the pin is ignored",
                component.name
            ));
        }
    }
    if cost.over_bytes > 0.0 {
        notes.push(format!(
            "heaps exceed the memory of their nodes by {:.0} MiB: some of it will be on other \
             nodes",
            cost.over_bytes / f64::from(1 << 20)
        ));
    }
    if !graph.components.is_empty() && graph.weakest_basis() == Basis::Assumed {
        notes.push(
            "some work or message counts are assumed: a graph seen in a run places better"
                .to_owned(),
        );
    }
    if !policy.binds() {
        notes.push(format!(
            "under `{policy}` components move: the cost is that of the beginning"
        ));
    }
    notes
}
