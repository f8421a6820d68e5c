//! The sources' experiments, run again: the published figure beside the figure measured here.
//!
//! A study is a list of experiments with a page that compares. [`STUDIES`] names them; each has a
//! module. [`study`] is the engine that runs them, [`claims`] judges what they find. They measure
//! on the machine at hand and write files into a folder; what a machine cannot show is said, never
//! made up.
//!
//! This crate must never know how results are shown in a terminal or how a command line is read,
//! and it prints nothing.
//!
//! ```
//! use hearth_studies::{STUDIES, named};
//!
//! let study = named("cache-impact")?;
//! assert!(STUDIES.iter().any(|listed| listed.name == study.name));
//! # Ok::<(), hearth_studies::StudyError>(())
//! ```
#![forbid(unsafe_code)]

pub mod cache_impact;
pub mod claims;
pub mod collection;
pub mod coscheduling;
mod ending;
mod error;
pub mod event_patterns;
mod files;
pub mod insense_multicore;
pub mod judging;
mod kept;
pub mod memcached;
pub mod message_passing;
pub mod monitoring;
pub mod nmart;
pub mod oversubscription;
mod pages;
mod program;
mod progress;
pub mod results;
pub mod study;
mod surroundings;
pub mod transactions;

pub use ending::Outcome;
pub use error::StudyError;
pub use progress::Progress;

/// A study that can be run.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its subject, in one line.
    pub title: &'static str,
    /// The names of its experiments and what each measures, in the order in which they run.
    pub experiments: fn() -> Vec<(&'static str, &'static str)>,
}

/// All studies.
pub const STUDIES: &[Listed] = &[
    Listed {
        name: "cache-impact",
        title: "what it costs that a receiver runs on another core or chip, by size of the message",
        experiments: study::listed::<cache_impact::Experiment>,
    },
    Listed {
        name: "nmart",
        title: "an allocator in bounded time for machines of several nodes, beside six others",
        experiments: study::listed::<nmart::Experiment>,
    },
    Listed {
        name: "insense-multicore",
        title: "what private heaps and the placement of components are worth, by six workloads",
        experiments: study::listed::<insense_multicore::Experiment>,
    },
    Listed {
        name: "memcached",
        title: "a server's critical section under a lock or by message, beside memcached",
        experiments: study::listed::<memcached::Experiment>,
    },
    Listed {
        name: "event-patterns",
        title: "event servers: which threads wait, which work, and how they wait for 512 connections",
        experiments: study::listed::<event_patterns::Experiment>,
    },
    Listed {
        name: "message-passing",
        title: "a section of code under a lock, or by message to who has its data: what caches make of it",
        experiments: study::listed::<message_passing::Experiment>,
    },
    Listed {
        name: "monitoring",
        title: "what it costs to look at a program's calls, by part, and what another core takes over",
        experiments: study::listed::<monitoring::Experiment>,
    },
    Listed {
        name: "transactions",
        title: "traces of transactions: what recording costs, and whether it changes who meets whom",
        experiments: study::listed::<transactions::Experiment>,
    },
    Listed {
        name: "oversubscription",
        title: "what a program's threads cost those beside it, and whether its own times show it",
        experiments: study::listed::<oversubscription::Experiment>,
    },
    Listed {
        name: "coscheduling",
        title: "programs whose threads run at the same time or not at all: what sharing then costs",
        experiments: study::listed::<coscheduling::Experiment>,
    },
    Listed {
        name: "collection",
        title: "processors collected with their objects: what it costs beside objects only",
        experiments: study::listed::<collection::Experiment>,
    },
];

/// The study of that name.
///
/// # Errors
/// [`StudyError::UnknownStudy`] if there is none.
pub fn named(name: &str) -> Result<&'static Listed, StudyError> {
    let found = STUDIES.iter().find(|listed| listed.name == name);
    found.ok_or_else(|| StudyError::UnknownStudy {
        given: name.to_owned(),
    })
}
