//! End of a study.

use crate::StudyError;

/// Outcome of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was asked for is there.
    Complete,
    /// The caller raised the flag. What was measured until then is in the folder.
    Cancelled,
}

/// Reason why a study ends early.
pub(crate) enum End {
    /// It was asked to.
    Cancelled,
    /// It cannot continue.
    Failed(StudyError),
}

impl<E: Into<StudyError>> From<E> for End {
    fn from(error: E) -> End {
        End::Failed(error.into())
    }
}

/// Turns a study's end into the caller's result. Measurements made before an error are worth
/// keeping, too.
pub(crate) fn outcome(ended: Result<(), End>) -> Result<Outcome, StudyError> {
    match ended {
        Ok(()) => Ok(Outcome::Complete),
        Err(End::Cancelled) => Ok(Outcome::Cancelled),
        Err(End::Failed(error)) => Err(error),
    }
}
