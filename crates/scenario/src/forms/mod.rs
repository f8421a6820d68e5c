//! Models from other tools' files; models and runs for other tools.
//!
//! - [`spans`]: stretches of a run on the cores, for pictures.
//! - [`trace`]: a run as BTF, and as JSON that Perfetto and Chrome show.
//! - [`rt_app`]: a scenario as a workload of `rt-app`; models from such workloads.
//! - [`harness`]: a scenario as a Rust program with the same arrivals.
//! - [`amalthea`]: models from AMALTHEA's `.amxmi`.
//!
//! What a form cannot say is told in words ([`Written::left_out`], [`Read::notes`]) and never
//! dropped in silence.

pub mod amalthea;
pub mod harness;
pub mod rt_app;
pub mod spans;
pub mod trace;

mod error;
mod ordered;

pub use error::ReadError;

use crate::model::Model;

/// A text of another tool's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Parts that the form cannot say, a sentence each.
    pub left_out: Vec<String>,
}

/// A model from another tool's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The model.
    pub model: Model,
    /// Parts of the file that are not in the model, and assumptions, a sentence each.
    pub notes: Vec<String>,
}

/// A text in quotes, as JSON has it.
fn quoted(text: &str) -> String {
    // A text always becomes JSON.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
