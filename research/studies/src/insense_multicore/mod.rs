//! The multi-core study: what private heaps and the placement of components are worth.
//!
//! The source gave each Insense component a thread of its own, compared one shared heap with a heap
//! for each component, and four ways of placing threads on cores, by six workloads. They are run
//! again here: under both carriers, with both heaps and every placement that there is
//! ([`placements`]), and as plain C with threads and mutexes beside, which the source wanted and
//! did not have. The source's own shared heap, a list of every block under a lock, is rebuilt
//! ([`ways`]), so that its addition can be separated from the cost of sharing. [`published`] has
//! the source's findings, [`verdict`] judges them and ours by the same rules, [`defects`] lists
//! what was mended, and [`page`] draws both beside each other.

pub mod build;
pub mod defects;
mod explain;
pub mod launch;
pub mod layouts;
pub mod misses;
pub mod options;
pub mod page;
pub mod placements;
pub mod plan;
pub mod published;
pub mod results;
mod study;
pub mod verdict;
pub mod ways;
pub mod workloads;

pub use options::{Experiment, InsenseMulticoreOptions};
pub use results::Results;
pub use study::InsenseMulticore;
