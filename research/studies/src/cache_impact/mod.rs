//! The cache-impact study: one thread writes a buffer, a second one reads it. What does it cost
//! that the reader runs on another core or another chip, as the buffer grows through the caches?
//!
//! The source is a dissertation of 2014 with measurements on two machines. Its experiments are run
//! again here ([`CacheImpact`]), its equations evaluated with parameters measured here
//! ([`compare`]), and its research questions answered by rules ([`verdict`]) that its own published
//! data goes through as well. [`page`] draws all of it.
//!
//! For known errors of the source's programs the default is right, and a [`Defect`] restores the
//! error. If its design hides what is asked, its experiment stays as it is, and one of ours stands
//! beside it: [`Experiment::Ready`] keeps the threads' creation out of the time, which in
//! experiments 2 to 4 is most of it below a megabyte.

pub mod compare;
mod conditions;
pub mod exchange;
pub mod options;
pub mod page;
pub mod plan;
pub mod record;
pub mod replay;
pub mod results;
pub mod ring;
pub mod schedule;
pub mod site;
pub mod snapshot;
pub mod start;
mod study;
pub mod sweep;
pub mod timers;
pub mod verdict;

pub use options::{CacheImpactOptions, Defect, Experiment, Sizes, Start};
pub use results::Results;
pub use study::CacheImpact;
