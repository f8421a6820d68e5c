//! The node-aware allocator study: can a general allocator take bounded time on a machine of
//! several nodes? The source built one in 2013, nMART, and ran it beside six others.
//!
//! Its experiments are run again here ([`Nmart`]) with its allocators, built after its text in the
//! crate `hearth-allocators`, and with those of today that are installed. [`published`] has its
//! tables; [`verdict`] asks what it claims, by rules that its own tables go through as well;
//! [`page`] draws both beside each other. Its tools are here, too: the meter's readings become
//! [`characterise`]d programs, [`monitor`] looks at a process's memory, [`distances`] measures
//! nodes and makes the kernel's table, [`zones`] simulates what the kernel does with it, and
//! [`floor`], which is not the source's, takes a machine's interruptions out of longest times.

pub mod allocators;
pub mod characterise;
pub mod distances;
pub mod floor;
pub mod launch;
mod measured;
pub mod monitor;
pub mod options;
pub mod page;
mod placed;
pub mod plan;
pub mod programs;
pub mod published;
pub mod requests;
pub mod results;
mod study;
pub mod verdict;
pub mod zones;

pub use options::{Experiment, NmartOptions};
pub use results::Results;
pub use study::Nmart;
