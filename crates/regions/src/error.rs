//! Errors, one type for each kind of operation.

use thiserror::Error;

/// Reports a call that was not logged, or was not applied to its end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The processor has ended, or the object: it was collected, or its runtime or its regions have
    /// gone.
    #[error("the processor has ended, or its object was collected")]
    Ended,
    /// The call came from a finaliser that the collector runs, or from [`Object::trace`]: neither
    /// may revive anything.
    ///
    /// [`Object::trace`]: crate::Object::trace
    #[error("a finaliser must not call separate objects")]
    Finalising,
    /// The call panicked, or the body of a query did. Its object, and all others, go on.
    #[error("the call panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The object was never there: its constructor panicked.
    #[error("the object is not there, because its constructor panicked")]
    NoObject,
    /// The calls of so many processors would wait for each other in a circle. Only the wait fails:
    /// the query is logged, and is applied when its processor is free.
    #[error("the query would wait for ever: {circle} processors wait for each other in a circle")]
    Deadlock {
        /// Processors in the circle; 1 for a query to the processor's own objects.
        circle: usize,
    },
    /// The wait would block a worker: within a call a query is awaited.
    #[error("a call must not block its worker; use `.await` instead of `wait`")]
    InCall,
}

/// Reports a use of a local reference that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LocalError {
    /// The reference belongs to another processor.
    #[error("the local reference belongs to another processor")]
    Elsewhere,
    /// The object is in use already, further up in this call.
    #[error("the object is in use already in this call")]
    InUse,
    /// The object is not there: its constructor panicked, or it was collected and its finaliser
    /// gave this reference away.
    #[error("the object is not there: its constructor panicked, or it was collected")]
    NoObject,
}
