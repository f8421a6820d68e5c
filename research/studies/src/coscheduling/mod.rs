//! The study of coscheduling: programs whose threads wait for each other while they spin, or of
//! which only half compute, share the machine as gangs and without.
//!
//! The source changed a kernel's scheduler and ran virtual machines. Here the programs are
//! processes of this study's program ([`instance`]), alone or as gangs of `hearth-gang`, which
//! [`launch`] starts and times. [`published`] has the source's statements, [`verdict`] judges them
//! and our figures by the same rules, [`page`] shows both.

pub mod instance;
pub mod launch;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod results;
mod study;
pub mod verdict;

pub use options::{CoschedulingOptions, Experiment};
pub use results::Results;
pub use study::Coscheduling;
