//! Patterns in which components interact, by the source's names, to explain a graph to people. They
//! decide nothing: costs do.
//!
//! A component has two *roles*, as a sender and as a receiver. A component that asks and waits is a
//! sender, one that answers a receiver, so an answer is not a link of its own. Roles that are
//! linked, in any number of steps, make a [`Part`], and its two sides determine its pattern:
//!
//! | senders : receivers | pattern |
//! |---|---|
//! | 1 : 1 | sender-receiver; client-server if the sender waits for answers |
//! | 1 : N | dispatch-worker |
//! | N : 1 | client-server |
//! | N : M | many-to-many |
//!
//! Connected components make a [`Group`]. A group with a single part has that part's pattern; one
//! with several is mixed, and described by its parts: the relay of a pipeline is a receiver in one
//! and a sender in the next.
//!
//! Two parts that mirror each other, such as a hub that deals out and collects without waiting,
//! count as one that goes both ways. Its receivers are the side with more work a head; at equal
//! work, the side with more incoming messages; at equal messages, the smaller side.

mod sentence;

use serde::{Deserialize, Serialize};

use crate::graph::{ComponentId, Graph, Turn};

/// The source's five patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One component sends to another.
    SenderReceiver,
    /// One sends to several.
    DispatchWorker,
    /// Several send to one, or one asks another.
    ClientServer,
    /// Several send to several.
    ManyToMany,
    /// No component sends.
    NoCommunication,
}

impl Pattern {
    /// Its name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SenderReceiver => "sender-receiver",
            Self::DispatchWorker => "dispatch-worker",
            Self::ClientServer => "client-server",
            Self::ManyToMany => "many-to-many",
            Self::NoCommunication => "no communication",
        }
    }
}

/// Direction of messages in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// From its senders to its receivers.
    OneWay,
    /// Both ways, without waiting for answers.
    BothWays,
    /// The senders wait for the receivers' answers, always.
    Asked,
}

/// Components that interact in one pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name; never [`Pattern::NoCommunication`].
    pub pattern: Pattern,
    /// Components that send or ask, ascending; at least one.
    pub senders: Vec<ComponentId>,
    /// Components that receive or answer, ascending; at least one. A component may be on both
    /// sides.
    pub receivers: Vec<ComponentId>,
    /// Direction of messages.
    pub flow: Flow,
    /// Messages in a round, without answers.
    pub messages: f64,
}

/// Components connected with each other and no others, or all components without a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its components, ascending; at least one.
    pub members: Vec<ComponentId>,
    /// Patterns in which they interact, ordered by first sender; none if they do not.
    pub parts: Vec<Part>,
}

impl Group {
    /// The pattern of the whole group; none if it is mixed.
    #[must_use]
    pub fn pattern(&self) -> Option<Pattern> {
        match self.parts.as_slice() {
            [] => Some(Pattern::NoCommunication),
            [part] => Some(part.pattern),
            _ => None,
        }
    }
}

/// Recognises the groups of a graph and their patterns, ordered by first member; components without
/// connections form the last group. Every component is in one group.
///
/// Connections without messages do not count, nor do those of a component with itself. Takes time
/// in proportion to components and connections.
///
/// ```
/// use hearth_place::graph::{Component, Connection, Graph};
/// use hearth_place::patterns::{Pattern, recognise};
///
/// let mut graph = Graph::new();
/// let [boss, ann, bob] = ["boss", "ann", "bob"].map(|name| graph.add(Component::new(name)));
/// graph.connect(Connection::new(boss, ann));
/// graph.connect(Connection::new(boss, bob));
/// let groups = recognise(&graph);
/// assert_eq!(groups[0].pattern(), Some(Pattern::DispatchWorker));
/// let said = groups[0].sentence(&graph);
/// assert_eq!(said, "`boss` sends to `ann` and `bob`: dispatch-worker, 1:2.");
/// ```
#[must_use]
pub fn recognise(graph: &Graph) -> Vec<Group> {
    let count = graph.components.len();
    let links = links(graph);
    let parts = merge_mirrors(graph, raw_parts(count, &links));
    let mut connected = Sets::new(count);
    for link in &links {
        connected.join(link.sender.index(), link.receiver.index());
    }
    let mut is_linked = vec![false; count];
    for link in &links {
        is_linked[link.sender.index()] = true;
        is_linked[link.receiver.index()] = true;
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = vec![NOBODY; count];
    let mut lone = Vec::new();
    for id in ids(count) {
        if !is_linked[id.index()] {
            lone.push(id);
            continue;
        }
        let root = connected.root(id.index());
        if group_of[root] == NOBODY {
            group_of[root] = groups.len();
            groups.push(Group {
                members: Vec::new(),
                parts: Vec::new(),
            });
        }
        groups[group_of[root]].members.push(id);
    }
    for part in parts {
        let root = connected.root(part.senders[0].index());
        groups[group_of[root]].parts.push(part);
    }
    if !lone.is_empty() {
        groups.push(Group {
            members: lone,
            parts: Vec::new(),
        });
    }
    groups
}

/// Messages with a direction, from the side that begins.
struct Link {
    sender: ComponentId,
    receiver: ComponentId,
    messages: f64,
    is_asked: bool,
    is_answer: bool,
}

fn links(graph: &Graph) -> Vec<Link> {
    let count = graph.components.len();
    let connections = graph.connections.iter();
    connections
        .filter(|c| c.messages.value > 0.0 && c.from != c.to)
        .filter(|c| c.from.index() < count && c.to.index() < count)
        .map(|c| {
            let is_answer = c.turn == Turn::Answer;
            let (sender, receiver) = match is_answer {
                true => (c.to, c.from),
                false => (c.from, c.to),
            };
            Link {
                sender,
                receiver,
                messages: c.messages.value,
                is_asked: c.turn != Turn::Free,
                is_answer,
            }
        })
        .collect()
}

/// Table entry for no component.
const NOBODY: usize = usize::MAX;

/// A part before its pattern is known.
struct RawPart {
    senders: Vec<ComponentId>,
    receivers: Vec<ComponentId>,
    messages: f64,
    is_asked: bool,
}

/// Parts by first sender, and the part in which each component sends.
struct RawParts {
    parts: Vec<RawPart>,
    sends_in: Vec<usize>,
}

fn raw_parts(count: usize, links: &[Link]) -> RawParts {
    // Role `i` is component i as a sender, `count + i` as a receiver.
    let mut roles = Sets::new(2 * count);
    let mut is_played = vec![false; 2 * count];
    for link in links {
        let (sender, receiver) = (link.sender.index(), count + link.receiver.index());
        roles.join(sender, receiver);
        is_played[sender] = true;
        is_played[receiver] = true;
    }
    let mut parts: Vec<RawPart> = Vec::new();
    let mut part_of = vec![NOBODY; 2 * count];
    let mut sends_in = vec![NOBODY; count];
    for id in ids(count).filter(|id| is_played[id.index()]) {
        let root = roles.root(id.index());
        if part_of[root] == NOBODY {
            part_of[root] = parts.len();
            parts.push(RawPart {
                senders: Vec::new(),
                receivers: Vec::new(),
                messages: 0.0,
                is_asked: true,
            });
        }
        sends_in[id.index()] = part_of[root];
        parts[part_of[root]].senders.push(id);
    }
    for id in ids(count).filter(|id| is_played[count + id.index()]) {
        // A receiving role has a sender, so its part exists.
        let root = roles.root(count + id.index());
        parts[part_of[root]].receivers.push(id);
    }
    for link in links {
        let part = &mut parts[sends_in[link.sender.index()]];
        part.is_asked &= link.is_asked;
        if !link.is_answer {
            part.messages += link.messages;
        }
    }
    RawParts { parts, sends_in }
}

/// Assigns patterns to parts, and merges each pair of mirror images.
fn merge_mirrors(graph: &Graph, raw: RawParts) -> Vec<Part> {
    let RawParts { parts, sends_in } = raw;
    let mut named = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        // A part has at most one mirror image: its senders are known.
        let other = sends_in[part.receivers[0].index()];
        let mirror = parts
            .get(other)
            .filter(|mirror| mirror.senders == part.receivers && mirror.receivers == part.senders);
        match mirror {
            None => named.push(name(part, false)),
            Some(_) if other == at => named.push(name(part, true)),
            Some(mirror) if at < other => {
                let (forward, back) = match serves(graph, mirror, part) {
                    true => (mirror, part),
                    false => (part, mirror),
                };
                let mut both = name(forward, true);
                both.messages += back.messages;
                named.push(both);
            }
            Some(_) => {}
        }
    }
    named
}

fn name(part: &RawPart, both_ways: bool) -> Part {
    let flow = match (part.is_asked, both_ways) {
        (true, _) => Flow::Asked,
        (false, true) => Flow::BothWays,
        (false, false) => Flow::OneWay,
    };
    let pattern = match (part.senders.len(), part.receivers.len()) {
        (1, 1) if flow == Flow::Asked => Pattern::ClientServer,
        (1, 1) => Pattern::SenderReceiver,
        (1, _) => Pattern::DispatchWorker,
        (_, 1) => Pattern::ClientServer,
        _ => Pattern::ManyToMany,
    };
    Part {
        pattern,
        senders: part.senders.clone(),
        receivers: part.receivers.clone(),
        flow,
        messages: part.messages,
    }
}

/// Whether, of two mirror images, the receivers of `a` serve rather than those of `b`.
fn serves(graph: &Graph, a: &RawPart, b: &RawPart) -> bool {
    if a.is_asked != b.is_asked {
        return a.is_asked;
    }
    let work = |part: &RawPart| {
        let work = part.receivers.iter();
        let work: f64 = work.map(|id| graph.component(*id).work_ns.value).sum();
        work / part.receivers.len() as f64
    };
    let (work_a, work_b) = (work(a), work(b));
    if work_a != work_b {
        return work_a > work_b;
    }
    if a.messages != b.messages {
        return a.messages > b.messages;
    }
    a.receivers.len() < b.receivers.len()
}

fn ids(count: usize) -> impl Iterator<Item = ComponentId> {
    // Ids have 32 bits, so there are no more components.
    (0..count as u64).map_while(|id| u32::try_from(id).ok().map(ComponentId))
}

/// Disjoint sets of numbers: a forest whose trees are kept flat.
struct Sets {
    parent: Vec<usize>,
    size: Vec<u32>,
}

impl Sets {
    fn new(count: usize) -> Self {
        Self {
            parent: (0..count).collect(),
            size: vec![1; count],
        }
    }

    fn root(&mut self, mut of: usize) -> usize {
        while self.parent[of] != of {
            self.parent[of] = self.parent[self.parent[of]];
            of = self.parent[of];
        }
        of
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let (small, large) = match self.size[a] < self.size[b] {
            true => (a, b),
            false => (b, a),
        };
        self.parent[small] = large;
        self.size[large] += self.size[small];
    }
}
