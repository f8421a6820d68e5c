//! Cost of communication between threads: fit, prediction, advice; reuse distances.
//!
//! - [`fitted`]: the model, fitted to a machine's profile: prediction, fit, advice.
//! - [`locality`]: reuse distances of a trace, and the effects of components on each other in
//!   caches.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment. A machine
//! and its measured costs come from `hearth-machine`; the probe measures them, and the placer
//! decides by them.
//!
//! ```
//! use hearth_machine::profile::{Carrier, Profile};
//! use hearth_machine::{synthetic, topology::Thread};
//! use hearth_model::fitted::{Between, Model, Question};
//!
//! let machine = synthetic::parse("2 packages, 2 cores, l1d 32K per core, l2 4M per package")?;
//! let model = Model::new(&Profile::assumed(machine))?;
//! let near = Question::new(4096, Between::Pair(Thread(0), Thread(1)), Carrier::Spin);
//! let far = Question { between: Between::Pair(Thread(0), Thread(2)), ..near };
//! assert!(model.predict(&near)?.ns < model.predict(&far)?.ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod fitted;
pub mod locality;
