//! The study of monitoring: the cost of looking at a program's calls, and how much of it another
//! core takes over.
//!
//! The source split what Kieker costs a call into instrumentation, collecting and writing by the
//! differences of four runs ([`parts`]), and moved the writer from the application's core to its
//! second thread, to a neighbour, to another processor ([`places`]); it let calls nest up to 64
//! deep. The same runs are made here ([`plan`]) with Hearth's probes ([`monitored`] is the program
//! that they are in), with Kieker of today and with fastrace beside them ([`launch`]), and beyond
//! 64 deep, to where the writer does not keep up, by each law of loss. [`published`] has the
//! source's table, [`verdict`] judges it and ours by the same rules, [`page`] draws both.

mod explain;
pub mod launch;
pub mod monitored;
pub mod options;
pub mod page;
pub mod parts;
pub mod peers;
pub mod places;
pub mod plan;
pub mod published;
pub mod results;
pub mod site;
mod study;
mod tables;
pub mod verdict;
pub mod ways;

pub use options::{Experiment, MonitoringOptions};
pub use results::Results;
pub use study::Monitoring;
