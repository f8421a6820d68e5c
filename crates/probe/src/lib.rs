//! Fills a profile on a live machine: latencies, transfers, distances, noise.
//!
//! [`run`] measures everything in rounds within the time of a [`Mode`] and returns [`Findings`]:
//! plain figures, each a [`Measured`] with an interval. Nothing needs root or counters; on virtual
//! machines steal and gaps are detected, and disturbed samples are discarded and counted. A figure
//! that cannot be measured is named with its reason; none is made up.
//!
//! Methods: [`statistics`] (rounds and intervals), [`disturbance`] (discarded samples), [`pairs`]
//! (many lines, since one misleads), [`pair_states`] (a pair whose latency goes to and fro between
//! levels), [`staircase`] (caches from a curve). [`handover`] measures
//! whole messages, to fit a model or judge it; it is not part of a probe. Nor is [`freshness`],
//! which compares a profile with the machine within milliseconds. [`convert`] makes a profile of
//! the findings.
//!
//! This crate must never know the use of the figures: no components, no placement, and it prints
//! nothing.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use hearth_probe::{Mode, ProbeOptions};
//!
//! let options = ProbeOptions { mode: Mode::Quick, ..ProbeOptions::default() };
//! let cancel = AtomicBool::new(false);
//! let mut fraction = 0.0;
//! let findings = hearth_probe::run(&hearth_sys::Linux, &options, &cancel, &mut |progress| {
//!     fraction = progress.fraction;
//! })?;
//! for pair in &findings.pairs {
//!     assert!(pair.one_way_ns.low <= pair.one_way_ns.value);
//! }
//! # Ok::<(), hearth_probe::ProbeError>(())
//! ```
#![forbid(unsafe_code)]

pub mod bandwidth;
pub mod context;
pub mod convert;
pub mod costs;
pub mod curve;
pub mod description;
pub mod distances;
pub mod disturbance;
pub mod freshness;
pub mod handover;
pub mod noise;
pub mod options;
pub mod pair_states;
pub mod pairs;
pub mod session;
pub mod staircase;
pub mod states;
pub mod statistics;

pub use disturbance::Discards;
pub use options::{Mode, Part, ProbeOptions, ProbePlan, Step};
pub use session::{Findings, Missing, ProbeError, Progress, run, run_plan};
pub use statistics::Measured;
