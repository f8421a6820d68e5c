//! Placement: from a graph of communicating components and a machine with its message costs, a
//! hardware thread for each component.
//!
//! - [`graph`]: the components, their work and memory, and the connections between them.
//! - [`slots`]: the hardware threads that may be used, the parts they share, and
//!   [the cost of a message](slots::MessageCost) between any two of them.
//! - [`cost`]: the cost of a placement, and its parts.
//! - [`patterns`]: common names for the ways in which components interact.
//! - [`forms`]: graphs and placements for other tools, and graphs from them.
//! - [`talk`]: the placement with the least predicted cost.
//! - [`baselines`]: other algorithms, to start from and to compare with.
//! - [`helper`]: the place of a thread that reads what others write.
//! - [`search`]: budgets, scores and annealing, for whatever is arranged.
//! - [`policy`]: the policies by name; [`adapt`]: following a running program.
//! - [`plan`]: a placement with its reasons, alternatives, and whether it matters.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment; randomness
//! has a seed, and searches are bounded in steps. This crate must never know how a graph was found,
//! how a machine was measured, or how a component is moved.
//!
//! ```
//! use hearth_machine::{profile::Profile, synthetic};
//! use hearth_model::fitted::Model;
//! use hearth_place::cost::{CostOptions, evaluate};
//! use hearth_place::graph::{Component, Connection, Graph};
//! use hearth_place::slots::{CpuSlot, Machine, Placement};
//!
//! let profile = Profile::assumed(synthetic::parse("2 packages, 2 cores, l2 4M per package")?);
//! let machine = Machine::new(&profile, &Model::new(&profile)?, &[])?;
//! let mut graph = Graph::new();
//! let maker = graph.add(Component::new("maker").work_ns(800.0));
//! let taker = graph.add(Component::new("taker").work_ns(900.0));
//! graph.connect(Connection::new(maker, taker).messages(1.0).bytes(64.0));
//! let cost = |a, b| {
//!     let placement = Placement(vec![CpuSlot(a), CpuSlot(b)]);
//!     evaluate(&graph, &machine, &CostOptions::default(), &placement).map(|cost| cost.total_ns)
//! };
//! assert!(cost(0, 1)? < cost(0, 2)?, "near is better than far");
//! assert!(cost(0, 1)? < cost(0, 0)?, "and two cores are better than one");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod adapt;
pub mod baselines;
pub mod cost;
pub mod forms;
pub mod graph;
pub mod helper;
pub mod patterns;
pub mod plan;
pub mod policy;
pub mod search;
pub mod slots;
pub mod talk;
