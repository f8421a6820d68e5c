//! The study of event servers: which threads wait, which work, and how they wait.
//!
//! The source compared Half-Sync/Half-Async with Leader/Followers, each with `select`,
//! level-triggered and edge-triggered `epoll`, by 512 connections with one request each under way,
//! on one to sixteen cores. The same grid is run here, and what Hearth adds to it ([`grid`]): a
//! server in a process of its own ([`server`]), clients in this one ([`launch`]), and what each
//! operation costs ([`figures`]). [`published`] has the source's findings, [`verdict`] judges them
//! and ours by the same rules, [`page`] draws both.

mod explain;
pub mod figures;
pub mod grid;
pub mod launch;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod results;
pub mod server;
pub mod snapshot;
mod study;
pub mod verdict;

pub use options::{EventPatternsOptions, Experiment};
pub use results::Results;
pub use study::EventPatterns;
