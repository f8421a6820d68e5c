//! The study of data locality by message passing: a section of code under a lock, or by message to a proprietor.
//!
//! The source, of 2014, ran loops that go over data of their own and then, through a section, over data that all
//! share: under a lock, on the core of whoever calls, or by message, on the core of a server that keeps the data.
//! [`engine`] is its microbenchmark with its parameters. [`run`] runs its three experiments, in sizes that fit this
//! machine's caches and in the source's own; counts what its printed listing does; analyses the walks' reuse
//! distances ([`distances`]); and sets `auto` beside each mode. [`published`] has the source's findings,
//! [`verdict`] judges them and ours by the same rules, [`costs`] predicts from measured caches and transfers, and
//! [`page`] draws every figure again.

pub mod costs;
pub mod distances;
pub mod engine;
pub mod evidence;
mod explain;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod results;
pub mod session;
pub mod verdict;

pub use options::{Experiment, Options};
pub use results::{Folder, Results};
pub use session::run;

/// The experiments' names and titles, in the order in which they run.
#[must_use]
pub fn experiments() -> Vec<(&'static str, &'static str)> {
    Experiment::ALL.map(|e| (e.id(), e.title())).to_vec()
}
