//! The communication graph of a program: which components there are, who is connected to whom, and
//! what a pass of each does. Found in the text, before any run.
//!
//! The main sequence is followed as it would run, with all constructors: it is constant as a rule,
//! and then the graph is exact. Parts that depend on input, or are created in a behaviour, are not
//! in the graph and stands in [`CommunicationGraph::unknowns`]. Then one pass of each behaviour is
//! walked and its messages and its work are counted.
//!
//! Nothing here knows of machines or of placement.

mod alternation;
mod balance;
mod build;
mod bytes;
mod choices;
mod facts;
mod hubs;
mod known;
mod messages;
mod passes;
mod rates;
mod show;
mod tally;
mod walk;
mod weights;
mod world;

use crate::source::Span;
pub use crate::tree::Direction;
pub use build::of;

/// A component: an index into [`CommunicationGraph::components`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub struct InstanceId(pub u32);

impl InstanceId {
    /// The main sequence.
    pub const MAIN: InstanceId = InstanceId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A half-channel: an index into [`CommunicationGraph::channels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ChannelId(pub u32);

impl ChannelId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A number, and whether it follows from constants alone. Others are estimates: a condition that is
/// not known counts half for either branch, say.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Amount {
    pub value: f64,
    pub is_exact: bool,
}

/// The communication graph: components, channels, connections and the messages on them.
#[derive(Clone, Debug, Default)]
pub struct CommunicationGraph {
    /// Components, in the order of creation. The main sequence is the first.
    pub components: Vec<Component>,
    /// All half-channels, used or not.
    pub channels: Vec<HalfChannel>,
    /// Connections, in the order in which the program makes them.
    pub connections: Vec<Connection>,
    /// The flows over each connection, in the order of connections.
    pub flows: Vec<Flow>,
    /// A half-channel of each group of peers where more is sent in the long run than received, or
    /// less: the program ends, or deadlocks.
    pub unbalanced: Vec<ChannelId>,
    /// Places in the text that are not constant, each once.
    pub unknowns: Vec<Unknown>,
}

/// The kind of a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// The main sequence. Its one pass is the whole of it.
    #[default]
    Main,
    /// An instance of a component of the program's text.
    User,
    /// An instance that the standard environment makes.
    Service,
}

/// An instance.
#[derive(Clone, Debug, Default)]
pub struct Component {
    /// Its unique name: the variable that it was first stored in, after the name of the component
    /// that created it; with a number where there are several.
    pub name: String,
    /// Its declaration: an index into the program's components, `None` for the main sequence.
    pub declaration: Option<usize>,
    /// The name of that.
    pub type_name: std::sync::Arc<str>,
    pub kind: Kind,
    /// Its creator.
    pub parent: InstanceId,
    /// The core that it puts itself on with `setCore`.
    pub core: Option<u32>,
    /// The place of its creation.
    pub span: Span,
    /// Computing in one pass, in nanoseconds, by the table of weights; of the main sequence all.
    /// Messages are not in it.
    pub work_ns: Amount,
    /// Waiting for the world outside in one pass: a nominal millisecond for each call that may
    /// wait. Timers are not in it.
    pub outside_ns: f64,
    /// Passes a second if every component had a core of its own and messages cost what they do
    /// between neighbours: what the slowest of those that wait for each other allows. 0 if nothing
    /// tells. Of the main sequence, how often all of it would run.
    pub passes_per_second: f64,
    /// After how many passes it stops, where a counter says so.
    pub stops_after: Option<u64>,
    /// Messages in one pass; of the main sequence all. In the order of channels, sends first.
    pub traffic: Vec<Traffic>,
    /// Messages once, in initialisers and the constructor.
    pub start: Vec<Traffic>,
    /// The bytes of arrays and structs that a pass touches.
    pub working_set_bytes: u64,
    /// Bound on the size of its heap; None if there is none.
    pub heap_bytes: Option<u64>,
}

/// The messages of a component on one channel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traffic {
    pub channel: ChannelId,
    pub direction: Direction,
    pub messages: Amount,
    /// The size of one message; for sends only.
    pub bytes: Amount,
    /// True if each message is moved, not copied: the sender has no more use for it.
    pub is_moved: bool,
}

/// One end.
#[derive(Clone, Debug)]
pub struct HalfChannel {
    /// Its creator, which need not be its user.
    pub owner: InstanceId,
    /// The port or variable; empty if it has none.
    pub name: String,
    pub direction: Direction,
    /// The type of its messages, as the program calls it.
    pub payload: std::sync::Arc<str>,
    pub span: Span,
    /// The components that send or receive on it, in order.
    pub users: Vec<InstanceId>,
    /// The period in seconds if a timer sends on it.
    pub timer_seconds: Option<f64>,
}

/// Two peers.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The `out` half.
    pub from: ChannelId,
    /// The `in` half.
    pub to: ChannelId,
    /// The place of the connection.
    pub span: Span,
    /// The bytes of a message, on average over those who send.
    pub bytes: Amount,
    /// True if messages are objects that are handed over and not copied.
    pub is_moved: bool,
    /// Messages a second, at the rates of the components.
    pub messages_per_second: f64,
    /// True if one end belongs to a component of the standard environment.
    pub is_to_service: bool,
    /// True if a behaviour makes the connection, perhaps to another peer in each pass.
    pub is_temporary: bool,
    /// Set if the sender asks and waits for the answer.
    pub alternates: Option<Alternation>,
}

/// Two that take turns: the sender of a request does nothing but wait, for its answer, while the
/// receiver works on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Alternation {
    /// The connection over which the answer comes: an index into
    /// [`CommunicationGraph::connections`].
    pub answer: usize,
    /// Computing of the asking side between request and answer, in nanoseconds: so long do both
    /// work at the same time, at most.
    pub meanwhile_ns: f64,
    /// Computing of the answering side from the request to its answer, in nanoseconds.
    pub serving_ns: f64,
}

/// The messages from one component to another over one connection. If several use a half-channel, a
/// connection has several flows.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// An index into [`CommunicationGraph::connections`].
    pub connection: usize,
    pub from: InstanceId,
    pub to: InstanceId,
    pub messages_per_second: f64,
}

/// The kind of an unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum UnknownKind {
    /// A component is created here an unknown number of times.
    Creation,
    /// Channels are connected here, or a channel becomes another.
    Connection,
    Disconnection,
    /// Something is sent here on a channel that may be any.
    Send,
    /// The same of receiving.
    Receive,
    /// A component is put on a core here.
    Core,
    /// The amount of computation here.
    Work,
}

/// A place of the text of which the graph cannot say what it does.
#[derive(Clone, Debug)]
pub struct Unknown {
    pub kind: UnknownKind,
    /// A clause in plain words.
    pub reason: String,
    pub span: Span,
    /// The components that come by here, in order.
    pub components: Vec<InstanceId>,
}

impl CommunicationGraph {
    pub fn component(&self, id: InstanceId) -> &Component {
        &self.components[id.index()]
    }

    pub fn channel(&self, id: ChannelId) -> &HalfChannel {
        &self.channels[id.index()]
    }
}
