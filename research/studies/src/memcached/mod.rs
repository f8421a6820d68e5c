//! The study `memcached`: is a server faster when its allocation section runs on a thread of its
//! own, asked by message, than under a lock?
//!
//! The source changed memcached 1.4.20 so and measured it on a machine of 64 cores. Here it is
//! cachet ([`kinds`]), whose section runs either way by an option, as it is under a lock, by
//! message as the source first had it, and with each of its three optimisations alone and with
//! others; today's memcached is compared with them. Load is made by our generator and by
//! libmemcached's ([`measure`]). [`published`] has what survives of the source's figures,
//! [`verdict`] judges them and ours by the same rules, [`page`] draws both beside each other.

mod explain;
pub mod gaps;
pub mod kinds;
pub mod measure;
mod measured;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod ratio;
pub mod results;
mod servers;
mod study;
pub mod verdict;

pub use options::{Experiment, MemcachedOptions};
pub use results::Results;
pub use servers::Memcached;
