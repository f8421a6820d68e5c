//! What may go wrong.

use std::fmt;

use hearth_runtime::embed::{ConnectRefused, PortRefused, ReceiveRefused, StartRefused};

/// Why an operation was refused, or how a component ended that did not come to its end.
///
/// ```
/// use hearth::{Error, Hearth, block_on};
///
/// let hearth = Hearth::start()?;
/// let hasty = hearth.spawn(async { panic!("too fast") });
/// let error = block_on(hasty).unwrap_err();
/// assert_eq!(error.to_string(), "the component panicked: too fast");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The half-channel was connected, and nothing is at the other end any more.
    Disconnected,
    /// The receiver, an Insense component, took the value and did not acknowledge it.
    NotAcknowledged,
    /// The operation was awaited outside of a component: a [`Sender`](crate::Sender) or
    /// [`Receiver`](crate::Receiver) works there.
    NotInComponent,
    /// The component was stopped.
    Stopped,
    /// The component panicked.
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// An Insense component ended by an exception that it did not catch.
    Uncaught {
        /// Which one, where.
        message: String,
    },
    /// All components are blocked, and nothing outside can wake one.
    Deadlock {
        /// Who waits where, and for whom.
        report: String,
    },
    /// Two half-channels have values of different types.
    Types {
        /// The type here, as Insense's type codes have it.
        ours: String,
        /// The type there.
        theirs: String,
    },
    /// Two half-channels both send, or both receive.
    Direction,
    /// The half-channel was used within this program before it was connected to an Insense component,
    /// and its values travel in a way that Insense does not know.
    InUse,
    /// There is no such port.
    NoSuchPort {
        /// The kind of component.
        component: String,
        /// The name that it has no port of.
        wanted: String,
        /// The names of its ports.
        ports: Vec<String>,
    },
    /// There is no such component, or it has ended.
    NoSuchComponent {
        /// The name that no component has.
        wanted: String,
    },
    /// Hearth runs in this process already, with other settings.
    AlreadyStarted,
    /// There cannot be so many workers.
    Workers {
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
    /// Components cannot be placed as the settings say: the plan or the machine's profile does not fit.
    Placement {
        /// What does not fit, and what to do.
        message: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Disconnected => f.write_str("nothing is connected any more"),
            Error::NotAcknowledged => f.write_str("the receiver did not acknowledge the value"),
            Error::NotInComponent => f.write_str(
                "no component awaits this; outside of components use a Sender or a Receiver",
            ),
            Error::Stopped => f.write_str("the component was stopped"),
            Error::Panicked { message } => write!(f, "the component panicked: {message}"),
            Error::Uncaught { message } => f.write_str(message),
            Error::Deadlock { report } => f.write_str(report),
            Error::Types { ours, theirs } => write!(
                f,
                "the half-channels have values of different types, with the codes {ours} and {theirs}"
            ),
            Error::Direction => {
                f.write_str("the half-channels have the same direction; connect an out with an in")
            }
            Error::InUse => f.write_str(
                "the half-channel is in use within this program; connect it to Insense components \
                 before its first message",
            ),
            Error::NoSuchPort {
                component,
                wanted,
                ports,
            } => write!(
                f,
                "component {component} has no port {wanted}; it has {}",
                if ports.is_empty() {
                    "none".to_owned()
                } else {
                    ports.join(", ")
                }
            ),
            Error::NoSuchComponent { wanted } => {
                write!(f, "there is no component {wanted}, or it has ended")
            }
            Error::AlreadyStarted => f.write_str(
                "hearth runs in this process already, with other settings; start it with the same",
            ),
            Error::Placement { message } => f.write_str(message),
            Error::Workers { asked, most } => {
                write!(f, "{asked} workers are not possible; ask for 1 to {most}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<ReceiveRefused> for Error {
    fn from(refused: ReceiveRefused) -> Error {
        match refused {
            ReceiveRefused::Disconnected => Error::Disconnected,
            ReceiveRefused::NotInComponent => Error::NotInComponent,
        }
    }
}

impl From<ConnectRefused> for Error {
    fn from(refused: ConnectRefused) -> Error {
        match refused {
            ConnectRefused::Types { ours, theirs } => Error::Types { ours, theirs },
            ConnectRefused::Direction => Error::Direction,
            ConnectRefused::InUse => Error::InUse,
        }
    }
}

impl From<PortRefused> for Error {
    fn from(refused: PortRefused) -> Error {
        let PortRefused {
            component,
            wanted,
            ports,
        } = refused;
        Error::NoSuchPort {
            component,
            wanted,
            ports,
        }
    }
}

impl From<StartRefused> for Error {
    fn from(refused: StartRefused) -> Error {
        match refused {
            StartRefused::Differs => Error::AlreadyStarted,
            StartRefused::Workers { asked, most } => Error::Workers { asked, most },
            StartRefused::Place(refused) => Error::Placement {
                message: refused.to_string(),
            },
        }
    }
}

/// Why a value was not sent, and the value itself.
///
/// ```
/// use hearth::{Error, Hearth, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<String>();
/// drop(into);
/// let component = hearth.spawn(async move { out.send("letter".to_owned()).await });
/// let refused = block_on(component)?.unwrap_err();
/// assert_eq!(refused.reason, Error::Disconnected);
/// assert_eq!(refused.value.as_deref(), Some("letter"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SendError<T> {
    /// What was wrong.
    pub reason: Error,
    /// The value, unless the receiver has it ([`Error::NotAcknowledged`]), or it went with a component
    /// that was stopped.
    pub value: Option<T>,
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError")
            .field("reason", &self.reason)
            .field("value", &self.value.as_ref().map(|_| ".."))
            .finish()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> std::error::Error for SendError<T> {}

impl<T> From<SendError<T>> for Error {
    fn from(error: SendError<T>) -> Error {
        error.reason
    }
}
