//! The study of data locality by message passing: a section of code under a lock, or by message to
//! a proprietor.
//!
//! The source, of 2014, ran loops that walk data of their own and then, through a section, over
//! data that all share: under a lock, on the caller's core, or by message, on the core of a
//! server that keeps the data. [`engine`] is its microbenchmark with its parameters. [`study`] runs
//! its three experiments, in sizes that fit this machine's caches and in the source's own; counts
//! what its printed listing does; analyses the walks' reuse distances ([`distances`]); and sets
//! `auto` beside each mode. [`published`] has the source's findings, [`evidence`] names ours so
//! that both are judged by the same rules, [`costs`] predicts from measured caches and transfers,
//! and [`page`] draws every figure again.

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
mod study;

pub use options::{Experiment, MessagePassingOptions};
pub use results::Results;
pub use study::MessagePassing;
