//! The study of processors and their collection: what it costs a collector of objects to collect
//! processors with them.
//!
//! The source collected an Eiffel program's heap. Here a heap of the same shapes is made of words
//! ([`heap`], [`shapes`]) and collected in four ways ([`collector`]): objects only, objects and
//! processors together as the source does it, the same with a field more in each object, and with
//! that field as a reference to the processor as an object. [`published`] has the source's
//! statements, [`verdict`] judges them and our figures by the same rules, [`page`] shows both.
//!
//! Hearth's own processors (`hearth-regions`) count references instead of marking all objects; they
//! are not measured here.

pub mod collector;
pub mod heap;
pub mod launch;
pub mod options;
pub mod page;
pub mod plan;
pub mod published;
pub mod results;
pub mod shapes;
mod study;
pub mod verdict;

pub use options::{CollectionOptions, Experiment};
pub use results::Results;
pub use study::Collection;
