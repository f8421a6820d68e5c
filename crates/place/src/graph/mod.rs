//! Components and their communication: how often, and how much.
//!
//! All numbers are per *round*, a unit that all of a graph's numbers share; [`Round`] names it.
//! Each number carries its [`Basis`], its source. A connection has a direction: a request and its
//! answer are two.
//!
//! A graph's file is JSON, see [`Graph::from_json`].

pub(crate) mod read;

use std::fmt;

use hearth_machine::profile::Carrier;
use hearth_machine::topology::OsThread;
use serde::{Deserialize, Serialize};

pub use read::GraphError;

/// Format of a graph's file that this Hearth writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// A component's place in [`Graph::components`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct ComponentId(pub u32);

impl ComponentId {
    /// The number as an index of a table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Unit over which a graph's numbers are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// A pass of the slowest behaviour, or the unit that the rates were balanced to: predicted
    /// graphs.
    #[default]
    Pass,
    /// A second: figures of a running program.
    Second,
    /// A whole run.
    Run,
}

/// Source of a number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A default.
    #[default]
    Assumed,
    /// The compiler, from the program's text.
    Predicted,
    /// The user.
    Declared,
    /// A run.
    Seen,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Assumed => "assumed",
            Self::Predicted => "predicted",
            Self::Declared => "declared",
            Self::Seen => "seen",
        })
    }
}

/// A number and its source. The unit ends the name of the field that holds it.
///
/// In JSON a bare number counts as declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "read::NumberForm")]
pub struct Number {
    /// The number: finite and not negative.
    pub value: f64,
    /// Its source.
    pub basis: Basis,
}

impl Number {
    /// A number with its basis.
    #[must_use]
    pub const fn new(value: f64, basis: Basis) -> Self {
        Self { value, basis }
    }

    /// A number seen in a run.
    #[must_use]
    pub const fn seen(value: f64) -> Self {
        Self::new(value, Basis::Seen)
    }

    /// A number found by the compiler.
    #[must_use]
    pub const fn predicted(value: f64) -> Self {
        Self::new(value, Basis::Predicted)
    }

    /// A number written by the user.
    #[must_use]
    pub const fn declared(value: f64) -> Self {
        Self::new(value, Basis::Declared)
    }

    /// A default.
    #[must_use]
    pub const fn assumed(value: f64) -> Self {
        Self::new(value, Basis::Assumed)
    }
}

/// A bare number is declared.
impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::declared(value)
    }
}

/// One component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Component {
    /// Its name, unique in the graph: stored plans identify it by that.
    pub name: String,
    /// Its type's name, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Its computation in a round, without sending and receiving.
    pub work_ns: Number,
    /// Passes through its working set in a round, which are passes of its behaviour.
    pub passes: Number,
    /// Size of its heap.
    pub heap_bytes: Number,
    /// Memory that it reads and writes in a pass, apart from messages.
    pub working_set_bytes: Number,
    /// The hardware thread that the program names: `on core`, `setCore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<OsThread>,
    /// Whether it has to stay where it runs now; no effect in a first placement.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
}

/// Nothing known, not even a name: one pass a round, without work or memory.
impl Default for Component {
    fn default() -> Self {
        Self {
            name: String::new(),
            type_name: None,
            work_ns: Number::default(),
            passes: Number::assumed(1.0),
            heap_bytes: Number::default(),
            working_set_bytes: Number::default(),
            pinned: None,
            stays: false,
        }
    }
}

impl Component {
    /// A component with only a name: no work, no memory, one pass a round.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The same with a type.
    #[must_use]
    pub fn of_type(mut self, type_name: impl Into<String>) -> Self {
        self.type_name = Some(type_name.into());
        self
    }

    /// The same with work, ns in a round.
    #[must_use]
    pub fn work_ns(mut self, work: impl Into<Number>) -> Self {
        self.work_ns = work.into();
        self
    }

    /// The same with this many passes in a round.
    #[must_use]
    pub fn passes(mut self, passes: impl Into<Number>) -> Self {
        self.passes = passes.into();
        self
    }

    /// The same with a heap of this size.
    #[must_use]
    pub fn heap_bytes(mut self, bytes: impl Into<Number>) -> Self {
        self.heap_bytes = bytes.into();
        self
    }

    /// The same with this much read and written in a pass.
    #[must_use]
    pub fn working_set_bytes(mut self, bytes: impl Into<Number>) -> Self {
        self.working_set_bytes = bytes.into();
        self
    }

    /// The same, pinned to a hardware thread.
    #[must_use]
    pub const fn pinned(mut self, cpu: OsThread) -> Self {
        self.pinned = Some(cpu);
        self
    }

    /// The same, fixed once it runs.
    #[must_use]
    pub const fn stays(mut self) -> Self {
        self.stays = true;
        self
    }
}

/// Treatment of a message's payload.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is copied: the sender writes it.
    #[default]
    Copied,
    /// It changes hands: writing it was part of the sender's work.
    Moved,
}

/// Whether the parties of a message take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Both continue.
    #[default]
    Free,
    /// The sender waits until the receiver has answered.
    Request,
    /// The answer to a request, for which the receiver waited.
    Answer,
}

/// Messages from one component to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The sender.
    pub from: ComponentId,
    /// The receiver.
    pub to: ComponentId,
    /// Messages in a round.
    #[serde(default = "Connection::one_message")]
    pub messages: Number,
    /// Payload of one message.
    #[serde(default = "Connection::one_word")]
    pub bytes: Number,
    /// Way in which control passes; the machine's usual way if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<Carrier>,
    /// Treatment of the payload.
    #[serde(default)]
    pub kind: Kind,
    /// Whether the two take turns.
    #[serde(default)]
    pub turn: Turn,
    /// Whether other components use the same half-channels: between workers, such a message takes a
    /// lock that they take, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
}

impl Connection {
    /// A connection with defaults: one message of one word in a round.
    #[must_use]
    pub const fn new(from: ComponentId, to: ComponentId) -> Self {
        Self {
            from,
            to,
            messages: Self::one_message(),
            bytes: Self::one_word(),
            carrier: None,
            kind: Kind::Copied,
            turn: Turn::Free,
            is_shared: false,
        }
    }

    const fn one_message() -> Number {
        Number::assumed(1.0)
    }

    const fn one_word() -> Number {
        Number::assumed(8.0)
    }

    /// The same with this many messages in a round.
    #[must_use]
    pub fn messages(mut self, messages: impl Into<Number>) -> Self {
        self.messages = messages.into();
        self
    }

    /// The same with messages of this size.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Number>) -> Self {
        self.bytes = bytes.into();
        self
    }

    /// The same by that carrier.
    #[must_use]
    pub const fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = Some(carrier);
        self
    }

    /// The same by half-channels that others use, too.
    #[must_use]
    pub const fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// The same with objects that change hands.
    #[must_use]
    pub const fn moved(mut self) -> Self {
        self.kind = Kind::Moved;
        self
    }

    /// The same as a request, whose answer the sender waits for.
    #[must_use]
    pub const fn request(mut self) -> Self {
        self.turn = Turn::Request;
        self
    }

    /// The same as the answer to a request.
    #[must_use]
    pub const fn answer(mut self) -> Self {
        self.turn = Turn::Answer;
        self
    }
}

/// Components and their connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Graph {
    /// Unit of its numbers.
    pub round: Round,
    /// The components, in the order of their creation.
    pub components: Vec<Component>,
    /// The connections; several between two components are fine.
    pub connections: Vec<Connection>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a component.
    ///
    /// # Panics
    /// With more than 2³² components.
    pub fn add(&mut self, component: Component) -> ComponentId {
        let id = u32::try_from(self.components.len()).expect("components are fewer than 2³²");
        self.components.push(component);
        ComponentId(id)
    }

    /// Adds a connection.
    pub fn connect(&mut self, connection: Connection) {
        self.connections.push(connection);
    }

    /// Adds a request and its answer, as frequent as `request` says; the answer has `answer_bytes`.
    pub fn call(&mut self, request: Connection, answer_bytes: impl Into<Number>) {
        let answer = Connection {
            from: request.to,
            to: request.from,
            bytes: answer_bytes.into(),
            ..request.clone()
        };
        self.connect(request.request());
        self.connect(answer.answer());
    }

    /// The component of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ComponentId> {
        let at = self.components.iter().position(|c| c.name == name)?;
        u32::try_from(at).ok().map(ComponentId)
    }

    /// The component of that number. Panics if there is none.
    #[must_use]
    pub fn component(&self, id: ComponentId) -> &Component {
        &self.components[id.index()]
    }

    /// The weakest basis among the numbers that matter: work, messages and sizes. `Assumed` for an
    /// empty graph.
    #[must_use]
    pub fn weakest_basis(&self) -> Basis {
        let work = self.components.iter().map(|c| c.work_ns.basis);
        let talk = self.connections.iter();
        let talk = talk.flat_map(|c| [c.messages.basis, c.bytes.basis]);
        work.chain(talk).min().unwrap_or_default()
    }
}
