//! The study of oversubscription: what a program's threads cost the programs beside it, and
//! whether the program can see it.
//!
//! The source multiplied matrices in two programs on eight cores. Here both are processes of this
//! study's program ([`instance`]), which [`launch`] starts and times while both run; [`matrix`] has
//! the work with static parts and with stealing, [`policies`] the ways to choose a number of
//! threads. [`simulated`] has eight cores as well, in a small model of a fair scheduler.
//! [`published`] has the source's statements, [`verdict`] judges them and our figures by the same
//! rules, [`page`] shows both.

pub mod figures;
pub mod instance;
pub mod launch;
pub mod matrix;
pub mod options;
pub mod page;
pub mod plan;
pub mod policies;
pub mod published;
pub mod results;
pub mod simulated;
mod study;
pub mod verdict;

pub use options::{Experiment, OversubscriptionOptions};
pub use results::Results;
pub use study::Oversubscription;
