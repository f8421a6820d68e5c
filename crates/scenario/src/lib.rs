//! Worst cases of task sets: which arrivals, durations and ties make a system late, hungry, busy,
//! overfull or stuck.
//!
//! - [`model`]: tasks, cores, resources, queues and the scheduler; from a TOML file.
//! - [`scenario`]: one choice of everything that the model leaves open, as a value to keep.
//! - [`sim`]: the run that follows from a model and a scenario, the same every time.
//! - [`proof`]: bounds that hold for every scenario, and exact worst cases of small sets.
//! - [`search`]: the scenario with the worst run, by a genetic search or at random; verdicts.
//! - [`generate`]: task sets after published statistics of cars, to test and compare with.
//! - [`forms`]: models from other tools' files; models and runs for other tools.
//!
//! Everything here is a function of its arguments: no clock, no files, no environment. Times are
//! whole nanoseconds, randomness has a seed, and a search asks its caller after each run whether
//! to go on. This crate must never know how a model was measured or where results are shown.
//!
//! ```
//! use hearth_scenario::model::Model;
//! use hearth_scenario::scenario::Scenario;
//! use hearth_scenario::sim::simulate;
//!
//! let model = Model::from_toml(
//!     r#"
//! format = 1
//! horizon = "20ms"
//! [[task]]
//! name = "control"
//! arrival = { period = "5ms" }
//! duration = "1ms..2ms"
//! priority = 2
//! [[task]]
//! name = "log"
//! arrival = { period = "10ms" }
//! duration = "4ms"
//! priority = 1
//! "#,
//! )?;
//! let run = simulate(&model, &Scenario::fullest(&model, 0));
//! assert_eq!(run.tasks[1].response_ns_max, Some(8_000_000), "4 ms, and 2 ms of control twice");
//! # Ok::<(), hearth_scenario::model::ModelError>(())
//! ```
#![forbid(unsafe_code)]

pub mod model;

pub mod scenario;

pub mod sim;

mod genes;

pub mod proof;

pub mod search;

pub mod generate;

pub mod forms;

#[cfg(test)]
mod random;
