//! The source's microbenchmark: loops that walk data of their own, then through a section over
//! shared data.
//!
//! [`Config`] has the source's five parameters and what else must be said, and is read from a file
//! in JSON. [`run()`] runs it once and returns the counts as [`Measured`]; [`repeat`] runs it
//! as often as it says. [`experiments`] lists the cells of the source's three experiments, [`grid`]
//! compares `auto` with both modes in each of them, and [`trace`] reports which lines a run refers
//! to.
//!
//! The source's own kernel is replaced by: threads pinned one to a core, waiting by looking before
//! sleeping, one mapping of 32 MiB on huge pages where the system gives them, and cycles that a
//! thread had a core for, by the system's accounts. Interrupts and the system's scheduler remain.

pub mod config;
mod drive;
pub mod experiments;
pub mod grid;
mod measured;
mod pool;
pub mod trace;
mod walk;

#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError, Defects, Waiting};
pub use drive::{RunError, repeat, run};
pub use measured::{Measured, Spread, Summary};
pub use pool::Pages;
