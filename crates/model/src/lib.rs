//! What inter-thread communication costs: taxonomy, equations, fit, prediction.
//!
//! - [`source`]: the cache-impact source's equations, as intended and as printed, with both of its
//!   machines.
//! - [`hearth`]: our own model, fitted to a machine's profile: prediction, fit, advice.
//! - [`locality`]: reuse distances of a trace, and what components do to each other in caches.
//! - [`validation`]: both models beside measurements that they have not seen.
//! - [`stats`]: how well predictions agree with measurements.
//! - [`timeline`]: when each read of a sequential pass completes, with and without prefetch.
//! - [`published`]: the sources' figures, for studies to put beside their own.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment. What a
//! machine is, and its measured costs, come from `hearth-machine`; measuring them is the probe's
//! work, deciding by them the placer's.
//!
//! ```
//! use hearth_model::source::{Parameters, Slope, Type};
//!
//! let machine = Parameters::xeon_5130();
//! let near = machine.communication_ns(Type::One, 4096, Slope::Derived);
//! let far = machine.communication_ns(Type::Three, 4096, Slope::Derived);
//! assert!(near < far);
//! ```
#![forbid(unsafe_code)]

pub mod hearth;
pub mod locality;
pub mod published;
pub mod source;
pub mod stats;
pub mod timeline;
pub mod validation;
