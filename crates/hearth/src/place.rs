//! Who runs where: policies, plans, and what is known of it.
//!
//! Without a word about it, a component runs on the worker of the one that makes it, where messages
//! between the two cost least ([`Placement::Os`]). The other policies are chosen at the start
//! ([`Builder::placement`](crate::Builder::placement)), and one component's CPU as it is made
//! ([`Spawn::core`](crate::Spawn::core)).
//!
//! # Components that move to whom they talk with
//!
//! With [`Placement::Talk`] samples of messages and of how long components run show who talks with whom
//! and who computes. Ten times a second a plan is made by these, and components move where it wants them
//! if that pays for the moves: what talks comes together, what computes goes apart. A plan must be
//! clearly better, or be better twice in a row; after each move everything is seen anew, and moves become
//! ever more rare in a program that is never content. Components that have a CPU of their own stay, and
//! so do services. A program that loses CPUs while it runs has its components moved from them.
//!
//! ```
//! use hearth::{Hearth, Placement, block_on, channel};
//! use hearth::place::Happened;
//!
//! let hearth = Hearth::builder().placement(Placement::Talk).start()?;
//! hearth.on_placement(|event| {
//!     if let Happened::Moves { moves, .. } = &event.what {
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
//! # Ok::<(), hearth::Error>(())
//! ```
//!
//! # Plans
//!
//! A [`Plan`] says where components begin, by their names. They stay there with [`Placement::Os`]; with
//! [`Placement::Talk`] it is where they begin. It is written down ([`Plan::put`]), read from the file
//! that `hearth place --plan` writes ([`Plan::from_json`]), or made by the crate `hearth-place` from a
//! graph of the program, in code:
//!
//! ```
//! use hearth::Hearth;
//! use hearth::place::Plan;
//! use hearth_machine::{profile::Profile, synthetic};
//! use hearth_model::fitted::Model;
//! use hearth_place::cost::Options;
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
//! let plan = place(&graph, &machine, &Policy::Talk, &Options::default(), Effort::default())?;
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
//! A plan's names are those of reports: `Parser` is the first component of that name, `Parser#3` the
//! third that was made of that name at one place of the program's text. Where the order in which
//! components are made differs from run to run, give them names of their own. A name that nobody has places
//! nobody: [`Hearth::missing_of_plan`](crate::Hearth::missing_of_plan) tells these, and so whether a plan is
//! of another program.
//!
//! # Where they are
//!
//! [`Hearth::places`](crate::Hearth::places) says where each component is and how often it has moved, and
//! [`Hearth::on_placement`](crate::Hearth::on_placement) what was decided, when and why. If the variable
//! `HEARTH_PLACE_LOG` names a file, the same is written to it, a line for each decision.

use hearth_place::plan::{PlanError, StoredPlan};
use hearth_runtime::embed::Places;
pub use hearth_runtime::embed::{Event, Happened, Move, Placement, Station, Why};

use crate::error::Error;

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
    places: Places,
}

impl Plan {
    /// One that names nobody.
    #[must_use]
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Puts a component on a CPU, by the system's number: `Worker` is the first of that name, as
    /// `Worker#1` is, and `Worker#2` the second. The last word about a component counts.
    #[must_use]
    pub fn put(mut self, component: &str, cpu: u32) -> Plan {
        self.places.put(component, cpu);
        self
    }

    /// Reads what `hearth place --plan` writes.
    ///
    /// ```
    /// use hearth::place::Plan;
    ///
    /// let plan = Plan::from_json(r#"{"format": 1, "places": [{"component": "Reader", "cpu": 1}]}"#)?;
    /// assert_eq!(plan, Plan::new().put("Reader", 1));
    /// let error = Plan::from_json("{}").unwrap_err();
    /// assert!(error.to_string().contains("line 1"), "{error}");
    /// # Ok::<(), hearth::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Placement`], with the line and what is wrong there.
    pub fn from_json(text: &str) -> Result<Plan, Error> {
        let stored = StoredPlan::from_json(text).map_err(|error: PlanError| Error::Placement {
            message: error.to_string(),
        })?;
        Ok(Plan::from(&stored))
    }

    /// Names and CPUs, in the order in which they were put.
    #[must_use]
    pub fn entries(&self) -> &[(String, u32)] {
        self.places.entries()
    }

    pub(crate) fn into_places(self) -> Places {
        self.places
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

impl From<&hearth_place::plan::Plan> for Plan {
    fn from(plan: &hearth_place::plan::Plan) -> Plan {
        Plan::from(&StoredPlan::of(plan))
    }
}
