//! The study of traces of transactions: what it costs to record them, and whether what is recorded
//! is what happens without.
//!
//! The source traced a word-based memory on a bank and on the ten programs of STAMP. Here the same
//! programs, written after their descriptions, run in Hearth's memory with the source's records and
//! with Hearth's ([`plan`]), each run in a process of its own ([`launch`]). Aborts are compared by
//! an equivalence test ([`equivalence`]); [`published`] has the source's figures, [`verdict`]
//! judges them and ours by the same rules, [`page`] shows both.

pub mod equivalence;
pub mod figures;
pub mod launch;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod results;
mod study;
pub mod verdict;

pub use options::{Experiment, TransactionsOptions};
pub use results::Results;
pub use study::Transactions;
