//! Errors, one type for each kind of operation. Each lists exactly the ways in which its operation
//! can fail, so a `match` needs no wildcard. An operation that did not take its value gives it
//! back in the error.
//!
//! ```
//! use hearth::error::{JoinError, ReceiveError, SendError};
//! use hearth::{Hearth, block_on, channel};
//!
//! let hearth = Hearth::start()?;
//! let (out, into) = channel::<String>();
//! drop(into);
//! let component = hearth.spawn(async move { out.send("letter".to_owned()).await });
//! match block_on(component)? {
//!     Ok(()) => unreachable!("nobody receives"),
//!     Err(SendError::Disconnected(letter)) => assert_eq!(letter, "letter"),
//!     Err(error) => return Err(error.into()),
//! }
//!
//! let hasty = hearth.spawn(async { panic!("too fast") });
//! let error: JoinError = block_on(hasty).unwrap_err();
//! assert_eq!(error.to_string(), "the component panicked: too fast");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

pub use hearth_runtime::embed::{
    ConnectError, Deadlock, EnvironmentError, InUse, JoinError, NoServices, NoSuchComponent,
    NoSuchPort, PlacementError, ReceiveError, SendError, StartError, TryReceiveError,
    UncaughtException,
};
pub use hearth_sync::CallError;
use thiserror::Error;

/// Reports a send of a [`Sender`](crate::Sender) that failed, with the value if it is still here.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
pub enum SenderError<T> {
    /// The half-channel lost all its peers.
    #[error("no peer is connected any more")]
    Disconnected(T),
    /// The receiver, an Insense component, took the value and did not acknowledge it.
    #[error("the receiver did not acknowledge the value")]
    NotAcknowledged,
    /// The component behind the sender has ended: a destructor of a value panicked in it. The value
    /// is here unless it was under way.
    #[error("the component behind the sender has ended")]
    Ended(Option<T>),
}

impl<T> SenderError<T> {
    /// The value, unless the receiver took it or it went with the component behind the sender.
    pub fn into_value(self) -> Option<T> {
        match self {
            SenderError::Disconnected(value) => Some(value),
            SenderError::NotAcknowledged => None,
            SenderError::Ended(value) => value,
        }
    }
}

impl<T> From<SendError<T>> for SenderError<T> {
    fn from(error: SendError<T>) -> SenderError<T> {
        match error {
            SendError::Disconnected(value) => SenderError::Disconnected(value),
            SendError::NotAcknowledged => SenderError::NotAcknowledged,
            SendError::NotInComponent(value) => SenderError::Ended(Some(value)),
        }
    }
}

/// Leaves the value out, which need not be printable.
impl<T> fmt::Debug for SenderError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SenderError::Disconnected(_) => "Disconnected(..)",
            SenderError::NotAcknowledged => "NotAcknowledged",
            SenderError::Ended(_) => "Ended(..)",
        })
    }
}

/// Reports a receive of a [`Receiver`](crate::Receiver) that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ReceiverError {
    /// The half-channel lost all its peers.
    #[error("no peer is connected any more")]
    Disconnected,
    /// The component behind the receiver has ended: a destructor of a value panicked in it.
    #[error("the component behind the receiver has ended")]
    Ended,
}

impl From<ReceiveError> for ReceiverError {
    fn from(error: ReceiveError) -> ReceiverError {
        match error {
            ReceiveError::Disconnected => ReceiverError::Disconnected,
            ReceiveError::NotInComponent => ReceiverError::Ended,
        }
    }
}

/// Reports a text that is not a plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct PlanError {
    /// The line, and the mistake there.
    pub message: String,
}
