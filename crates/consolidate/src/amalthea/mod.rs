//! AMALTHEA models (`.amxmi`), as Eclipse APP4MC writes them: a subset in, the mapping out.
//!
//! Tasks become components: the time of a task is that of its runnables' ticks at a core's
//! frequency, its level the highest of theirs, its period that of its stimulus, its modes those in
//! which the stimulus is enabled. Labels that one task writes and another reads become messages.
//! ECUs with their processing units and memories become units. [`Model::with_mapping`] writes the
//! mapping into the same text and leaves every other byte as it is.

mod read;
mod write;
mod xml;

use crate::model::System;

/// An AMALTHEA model with the system that it describes.
pub struct Model {
    text: String,
    document: xml::Document,
    /// The system.
    pub system: System,
    /// Assumptions for what the subset lacks.
    pub notes: Vec<String>,
    /// Names of processing units, by core.
    processing_units: Vec<String>,
    /// Names of memories, by memory; none for one that the model lacks.
    memories: Vec<Option<String>>,
}

pub use read::read;
