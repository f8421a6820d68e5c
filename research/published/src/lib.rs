//! The sources' models and figures, for studies and benchmarks to compare with Hearth's own.
//!
//! - [`source`]: the cache-impact source's equations, as intended and as printed, with both of its
//!   machines.
//! - [`cache_impact`]: its figures. [`replay`] compares its model with them.
//! - [`node_distance`]: the figures of the node-aware allocator's source.
//! - [`oversubscription`]: CPUs that a program gets among others, and the jump of its times.
//! - [`validation`]: compares that model and Hearth's with measurements that neither has seen.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment. Nothing of
//! the product depends on it.
//!
//! ```
//! use hearth_published::source::{Parameters, Slope, Type};
//!
//! let machine = Parameters::xeon_5130();
//! let near = machine.communication_ns(Type::One, 4096, Slope::Derived);
//! let far = machine.communication_ns(Type::Three, 4096, Slope::Derived);
//! assert!(near < far);
//! ```
#![forbid(unsafe_code)]

pub mod cache_impact;
pub mod node_distance;
pub mod oversubscription;
pub mod replay;
pub mod source;
pub mod validation;
