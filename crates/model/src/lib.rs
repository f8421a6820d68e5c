//! Cost of communication between threads: taxonomy, equations, fit, prediction.
//!
//! - [`source`]: the cache-impact source's equations, as intended and as printed, with both of its
//!   machines.
//! - [`fitted`]: our own model, fitted to a machine's profile: prediction, fit, advice.
//! - [`locality`]: reuse distances of a trace, and the effects of components on each other in
//!   caches.
//! - [`validation`]: both models compared with measurements that they have not seen.
//! - [`stats`]: agreement of predictions with measurements.
//! - [`timeline`]: completion time of each read of a sequential pass, with and without prefetch.
//! - [`published`]: the sources' figures, for studies to put beside their own.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment. A machine
//! and its measured costs come from `hearth-machine`; the probe measures them, and the placer
//! decides by them.
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

pub mod fitted;
pub mod locality;
pub mod published;
pub mod source;
pub mod stats;
pub mod timeline;
pub mod validation;
