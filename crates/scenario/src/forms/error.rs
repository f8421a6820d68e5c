//! Errors in a text of another tool's form.

use thiserror::Error;

use crate::model::ModelError;

/// Reason why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The text is not JSON or XML.
    #[error("line {line}: {reason}: give a file of the form {form}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// The parser's reason.
        reason: String,
        /// The expected form.
        form: &'static str,
    },
    /// A part is missing or not of the expected kind.
    #[error("{place}: {fault}")]
    Place {
        /// The part, with its line where that is known.
        place: String,
        /// The mistake, and what to do.
        fault: String,
    },
    /// The resulting model is not sound.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ReadError {
    pub(super) fn at(place: impl Into<String>, fault: impl Into<String>) -> Self {
        ReadError::Place {
            place: place.into(),
            fault: fault.into(),
        }
    }
}
