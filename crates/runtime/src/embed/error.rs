//! The errors of each operation, as precise as its outcomes.

use std::fmt;

use thiserror::Error;

use super::placement::Placement;

const NOT_IN_COMPONENT: &str =
    "no component awaits this; outside of components use a `Sender` or a `Receiver`";

/// Reports a send that failed, and gives the value back if it is still here.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
pub enum SendError<T> {
    /// The half-channel has no peer any more.
    #[error("no peer is connected any more")]
    Disconnected(T),
    /// The calling code awaited the send outside any component.
    #[error("{NOT_IN_COMPONENT}")]
    NotInComponent(T),
    /// The receiver, an Insense component, took the value and did not acknowledge it.
    #[error("the receiver did not acknowledge the value")]
    NotAcknowledged,
}

impl<T> SendError<T> {
    /// Returns the value, unless the receiver took it.
    pub fn into_value(self) -> Option<T> {
        match self {
            SendError::Disconnected(value) | SendError::NotInComponent(value) => Some(value),
            SendError::NotAcknowledged => None,
        }
    }
}

/// Leaves the value out, since it need not be printable.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Disconnected(_) => "Disconnected(..)",
            SendError::NotInComponent(_) => "NotInComponent(..)",
            SendError::NotAcknowledged => "NotAcknowledged",
        })
    }
}

/// Reports a receive or a select that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ReceiveError {
    /// The half-channel, or each one of a select, has no peer any more.
    #[error("no peer is connected any more")]
    Disconnected,
    /// The calling code awaited the receive outside any component.
    #[error("{NOT_IN_COMPONENT}")]
    NotInComponent,
}

/// Reports that nothing could be received at once.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TryReceiveError {
    /// No peer waits to send.
    #[error("no peer waits to send")]
    Empty,
    /// The half-channel has no peer any more.
    #[error("no peer is connected any more")]
    Disconnected,
    /// The calling code ran outside any component.
    #[error("{NOT_IN_COMPONENT}")]
    NotInComponent,
}

/// Reports that one of two half-channels already moves its values within this program, while the
/// other is connected to Insense components, which cannot take moved values.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the half-channel is in use within this program; connect it to Insense components before its \
     first message"
)]
pub struct InUse;

/// Reports that a half-channel and a port, or two ports, were not connected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// Their values have different types.
    #[error("the values have different types, with the codes `{ours}` and `{theirs}`")]
    Types {
        /// The type here, as an Insense type code.
        ours: String,
        /// The type at the port.
        theirs: String,
    },
    /// Both send, or both receive.
    #[error("both have the same direction; connect an out with an in")]
    Direction,
    /// The half-channel already moves its values within this program.
    #[error(transparent)]
    InUse(#[from] InUse),
}

/// Reports how an unfinished component ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JoinError {
    /// The component was stopped.
    #[error("the component was stopped")]
    Stopped,
    /// The component panicked.
    #[error("the component panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

/// Reports an exception that ended an Insense component because nothing caught it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct UncaughtException {
    /// The exception and its place in the program.
    pub message: String,
}

/// Reports that the remaining components are all blocked and that nothing outside can wake one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{report}")]
pub struct Deadlock {
    /// The components, with the place and the peer that each of them waits for.
    pub report: String,
}

/// Reports that an Insense component has no port of a name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("component {component} has no port {wanted}; it has {}", names(ports))]
pub struct NoSuchPort {
    /// The kind of component.
    pub component: String,
    /// The name that was asked for.
    pub wanted: String,
    /// The names of the component's ports.
    pub ports: Vec<String>,
}

fn names(ports: &[String]) -> String {
    match ports {
        [] => "none".to_owned(),
        ports => ports.join(", "),
    }
}

/// Reports that no running component has a name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no component {wanted}, or it has ended")]
pub struct NoSuchComponent {
    /// The name that was asked for.
    pub wanted: String,
}

/// Reports that a component was not made because its code uses services of the prelude, such as
/// `storage`, which do not exist: the program's main sequence creates them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "component {component} uses services of the prelude, which its program's main sequence \
     creates; start the program in this runtime, and await the end of its main sequence"
)]
pub struct NoServices {
    /// The kind of component.
    pub component: String,
}

/// Reports that the runtime did not start.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StartError {
    /// This number of workers is not possible.
    #[error("{asked} workers are not possible; ask for 1 to {most}")]
    Workers {
        /// The number that was asked for.
        asked: usize,
        /// The largest possible number.
        most: usize,
    },
    /// The plan or the machine's profile does not fit.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// Reports that components cannot be placed as the settings say.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlacementError {
    /// The policy follows no plan.
    #[error(
        "Placement::{0:?} places every component itself; a plan goes with Placement::WithCreator \
         or Placement::Talk"
    )]
    Policy(Placement),
    /// The plan names a CPU that this process may not use.
    #[error(
        "the plan puts {component} on CPU {cpu}, which this process may not use; it may use {}: \
         make the plan for those, or allow the CPU with `taskset`",
        list(allowed)
    )]
    Cpu {
        /// The component.
        component: String,
        /// The CPU that the plan names.
        cpu: u32,
        /// The CPUs that the process may use.
        allowed: Vec<usize>,
    },
    /// The plan names a CPU that has no worker.
    #[error(
        "the plan puts {component} on CPU {cpu}, which has no worker, as there are workers on {} \
         only: ask for more, or make the plan for those",
        list(with_worker)
    )]
    Worker {
        /// The component.
        component: String,
        /// The CPU that the plan names.
        cpu: u32,
        /// The CPUs that have a worker.
        with_worker: Vec<usize>,
    },
    /// There are more workers than CPUs, so none is bound to a CPU.
    #[error(
        "{workers} workers on {cpus} CPUs are bound to none of them, so no plan can be followed; \
         ask for {cpus} workers at most"
    )]
    Unbound {
        /// The number of workers.
        workers: usize,
        /// The number of CPUs.
        cpus: usize,
    },
    /// The machine's profile is not usable.
    #[error("the machine's profile cannot be used: {0}")]
    Profile(String),
}

fn list(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

/// Reports an environment variable with an unusable value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct EnvironmentError {
    /// The variable, its value, and the values it takes.
    pub message: String,
}
