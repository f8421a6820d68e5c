//! Placement: policies, plans, and the places of components.
//!
//! By default a component runs on the worker of the component that makes it, where messages between
//! the two cost least ([`Placement::WithCreator`]).
//! [`Builder::placement`](crate::Builder::placement) chooses another policy at the start, and
//! [`ComponentBuilder::core`](crate::ComponentBuilder::core) the CPU of one component.
//!
//! # Components that move to their peers
//!
//! [`Placement::Talk`] samples messages and running times to see which components talk with each
//! other and which compute. Ten times a second it plans anew, and moves components if that pays for
//! the moves: components that talk come together, components that compute go apart. A plan must be
//! clearly better once, or better twice in a row. After each move it samples afresh, and moves
//! become ever rarer in a program that never settles. Components that have a CPU of their own stay,
//! and so do services. If the program loses CPUs while it runs, its components leave them.
//!
//! ```
//! use hearth::{Hearth, Placement, block_on, channel};
//! use hearth::place::PlacementChange;
//!
//! let hearth = Hearth::builder().placement(Placement::Talk).start()?;
//! hearth.on_placement(|event| {
//!     if let PlacementChange::Moves { moves, .. } = &event.what {
//!         for one in moves {
//!             eprintln!("{one}: {}", one.why);
//!         }
//!     }
//! });
//! let (out, into) = channel::<u64>();
//! let adder = hearth.component("Adder").spawn(async move {
//!     let mut sum = 0;
//!     while let Ok(number) = into.recv().await {
//!         sum += number;
//!     }
//!     sum
//! });
//! hearth.component("Counter").spawn(async move {
//!     for number in 1..=1000 {
//!         out.send(number).await.unwrap();
//!     }
//! });
//! assert_eq!(block_on(adder)?, 500_500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Plans
//!
//! A [`Plan`] names components and the CPUs on which they begin. They stay there with
//! [`Placement::WithCreator`]; with [`Placement::Talk`] they may move later. A plan is written in
//! code ([`Plan::put`]), read from the file that `hearth place --plan` writes
//! ([`Plan::from_json`]), or made by the crate `hearth-place` from a graph of the program:
//!
//! ```
//! use hearth::Hearth;
//! use hearth::place::Plan;
//! use hearth_machine::{profile::Profile, synthetic};
//! use hearth_model::fitted::Model;
//! use hearth_place::cost::CostOptions;
//! use hearth_place::graph::{Component, Connection, Graph};
//! use hearth_place::slots::Machine;
//! use hearth_place::plan::place;
//! use hearth_place::policy::Policy;
//! use hearth_place::talk::Effort;
//!
//! // Who works how much in a second, and who sends how many messages of how many bytes to whom.
//! let mut graph = Graph::new();
//! let parser = graph.add(Component::new("Parser").work_ns(2e8));
//! let store = graph.add(Component::new("Store").work_ns(1e8));
//! graph.connect(Connection::new(parser, store).messages(50_000.0).bytes(256.0));
//! // A machine: this one's profile, by `Profile::from_json`, or as here one that is described.
//! let profile = Profile::assumed(synthetic::parse("1 package, 2 cores")?);
//! let machine = Machine::new(&profile, &Model::fitted(&profile)?, &[])?;
//! let plan = place(&graph, &machine, &Policy::Talk, &CostOptions::default(), Effort::default())?;
//! for place in &plan.places {
//!     println!("{} on {}: {}", place.name, place.cpu, place.reason);
//! }
//! # if hearth_sys::affinity::allowed().starts_with(&[0, 1]) {
//! let hearth = Hearth::builder().plan(Plan::from(&plan)).start()?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Names
//!
//! A plan uses the names in reports: `Parser` is the first component of that name, `Parser#3` the
//! third of that name that was made at one place of the program's text. Where the order in which
//! components are made differs from run to run, give them names of their own.
//! [`Hearth::unmatched_plan_names`](crate::Hearth::unmatched_plan_names) lists the names that no
//! component has, and so shows a plan that belongs to another program.
//!
//! # The places of components
//!
//! [`Hearth::placements`](crate::Hearth::placements) tells where each component is and how often it
//! has moved. [`Hearth::on_placement`](crate::Hearth::on_placement) tells each decision, its time
//! and its reason. After [`Builder::from_env`](crate::Builder::from_env) the same is written, one
//! line for each decision, to the file that `HEARTH_PLACE_LOG` names.

use hearth_place::plan::StoredPlan;
pub use hearth_runtime::embed::{
    ComponentPlacement, Move, MoveReason, Placement, PlacementChange, PlacementEvent,
};

use crate::error::PlanError;

/// CPUs for components, by name: see [`Builder::plan`](crate::Builder::plan).
///
/// ```
/// use hearth::place::Plan;
///
/// let plan = Plan::new().put("Reader", 0).put("Worker", 0).put("Worker#2", 1);
/// assert_eq!(plan.entries().len(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    entries: Vec<(String, u32)>,
}

impl Plan {
    /// Makes a plan that names no component.
    #[must_use]
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Puts a component on a CPU, by the system's number: `Worker` is the first of that name, as
    /// `Worker#1` is, and `Worker#2` the second. The last call for a name counts.
    #[must_use]
    pub fn put(mut self, component: &str, cpu: u32) -> Plan {
        self.entries.retain(|(there, _)| there != component);
        self.entries.push((component.to_owned(), cpu));
        self
    }

    /// Reads the text that `hearth place --plan` writes.
    ///
    /// ```
    /// use hearth::place::Plan;
    ///
    /// let text = r#"{"format": 1, "places": [{"component": "Reader", "cpu": 1}]}"#;
    /// let plan = Plan::from_json(text)?;
    /// assert_eq!(plan, Plan::new().put("Reader", 1));
    /// let error = Plan::from_json("{}").unwrap_err();
    /// assert!(error.to_string().contains("line 1"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the line, and the mistake there.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        match StoredPlan::from_json(text) {
            Ok(stored) => Ok(Plan::from(&stored)),
            Err(error) => Err(PlanError {
                message: error.to_string(),
            }),
        }
    }

    /// The names and CPUs, in the order in which they were put.
    #[must_use]
    pub fn entries(&self) -> &[(String, u32)] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<(String, u32)> {
        self.entries
    }
}

impl From<&StoredPlan> for Plan {
    fn from(stored: &StoredPlan) -> Plan {
        let places = stored.places.iter();
        places.fold(Plan::new(), |plan, place| {
            plan.put(&place.component, place.cpu.0)
        })
    }
}

impl From<&hearth_place::plan::PlacementPlan> for Plan {
    fn from(plan: &hearth_place::plan::PlacementPlan) -> Plan {
        Plan::from(&StoredPlan::of(plan))
    }
}
