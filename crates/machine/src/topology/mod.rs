//! The parts of a machine and how they nest.
//!
//! A [`Topology`] is made by a [`Builder`], which checks it, and does not change afterwards. It
//! holds the hardware threads that are *online*; of offline ones only the numbers are known. Each
//! thread belongs to one core, one package and one node; a core lies in one package and one node.
//! Caches, cores and packages nest: any two sets of threads among them are disjoint, or one holds
//! the other. Nodes may straddle packages. A node may have no memory, or no threads.

mod build;
mod ids;
mod list;
mod stored;

use serde::{Deserialize, Serialize};

pub use build::{Builder, CacheSpec, NodeSpec, ThreadSpec, TopologyError};
pub use ids::{Bytes, Core, Node, OsNode, OsPackage, OsThread, Package, Thread};
pub use list::{ListError, format_list, parse_list};

/// A machine's parts. See the [module's text](self) for the invariants, and
/// [`synthetic`](crate::synthetic) for the shortest way to make one.
///
/// ```
/// use hearth_machine::topology::{Builder, OsNode, OsPackage, OsThread, Thread, ThreadSpec};
///
/// let mut builder = Builder::new();
/// for os in [4, 2] {
///     builder.thread(ThreadSpec {
///         os: OsThread(os),
///         core: os,
///         package: OsPackage(0),
///         node: OsNode(0),
///     });
/// }
/// let machine = builder.build()?;
/// assert_eq!(machine.os_thread(Thread(0)), OsThread(2));
/// # Ok::<(), hearth_machine::topology::TopologyError>(())
/// ```
///
/// Its JSON is an object of `packages`, `nodes`, `threads`, `caches`, `offline` and `distances`;
/// positions in `packages`, `nodes` and `threads` are logical numbers, members called `os` the
/// operating system's. Unknown members are ignored. Reading checks everything that a builder
/// checks, and that the order is the canonical one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "stored::Stored", into = "stored::Stored")]
pub struct Topology {
    threads: Vec<HardwareThread>,
    cores: Vec<CoreParts>,
    packages: Vec<PackageParts>,
    nodes: Vec<NodeParts>,
    caches: Vec<Cache>,
    offline: Vec<OsThread>,
    distances: Option<Vec<Vec<u32>>>,
}

/// One online hardware thread and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareThread {
    /// Its number for system calls.
    pub os: OsThread,
    /// Its core.
    pub core: Core,
    /// Its package.
    pub package: Package,
    /// The node whose memory is local to it.
    pub node: Node,
    /// Its place among the online threads of its core, from 0.
    pub smt: u32,
}

/// One core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreParts {
    /// Its package.
    pub package: Package,
    /// Its node.
    pub node: Node,
    /// Its online hardware threads, ascending; at least one.
    pub threads: Vec<Thread>,
}

/// One package, the part in a socket: the source's *chip*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageParts {
    /// Its number in the operating system.
    pub os: OsPackage,
    /// Its online hardware threads, ascending; at least one.
    pub threads: Vec<Thread>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeParts {
    /// Its number for system calls.
    pub os: OsNode,
    /// Its memory: zero for a node without any, nothing if unknown.
    pub memory: Option<Bytes>,
    /// Its online hardware threads, ascending; none for a node of memory alone.
    pub threads: Vec<Thread>,
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data alone.
    Data,
    /// Instructions alone.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Its contents.
    pub kind: CacheKind,
    /// Its capacity.
    pub size: Bytes,
    /// The bytes of a line, a power of two, if known.
    pub line: Option<u32>,
    /// Lines in a set, if known; for a fully associative cache, all lines.
    pub ways: Option<u32>,
    /// The online hardware threads that share it, ascending; at least one.
    pub threads: Vec<Thread>,
}

impl Cache {
    /// Whether data passes through it: true for all but instruction caches.
    pub fn holds_data(&self) -> bool {
        self.kind != CacheKind::Instruction
    }
}

impl Topology {
    /// The online hardware threads; position is [`Thread`].
    pub fn threads(&self) -> &[HardwareThread] {
        &self.threads
    }

    /// The cores; position is [`Core`].
    pub fn cores(&self) -> &[CoreParts] {
        &self.cores
    }

    /// The packages; position is [`Package`].
    pub fn packages(&self) -> &[PackageParts] {
        &self.packages
    }

    /// The nodes; position is [`Node`].
    pub fn nodes(&self) -> &[NodeParts] {
        &self.nodes
    }

    /// The caches, by level, kind and first thread.
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// Hardware threads that exist and are offline, ascending.
    pub fn offline(&self) -> &[OsThread] {
        &self.offline
    }

    /// The firmware's distances, local being 10: row and column are [`Node`]. Nothing if it claims
    /// none.
    pub fn distances(&self) -> Option<&[Vec<u32>]> {
        self.distances.as_deref()
    }

    /// The hardware thread of that number. Panics if there is none: a [`Thread`] belongs to the
    /// topology it came from.
    pub fn thread(&self, thread: Thread) -> &HardwareThread {
        &self.threads[thread.index()]
    }

    /// The operating system's number of a hardware thread. Panics as [`Topology::thread`].
    pub fn os_thread(&self, thread: Thread) -> OsThread {
        self.thread(thread).os
    }

    /// The logical number of a hardware thread, if it is online.
    pub fn thread_of(&self, os: OsThread) -> Option<Thread> {
        let at = self.threads.iter().position(|thread| thread.os == os)?;
        Some(Thread(number(at)))
    }

    /// The logical number of a node.
    pub fn node_of(&self, os: OsNode) -> Option<Node> {
        let at = self.nodes.iter().position(|node| node.os == os)?;
        Some(Node(number(at)))
    }

    /// The logical numbers of all online hardware threads, ascending.
    pub fn all_threads(&self) -> impl DoubleEndedIterator<Item = Thread> + use<> {
        (0..number(self.threads.len())).map(Thread)
    }

    /// The caches that a hardware thread's data passes through, nearest first.
    pub fn data_caches(&self, thread: Thread) -> impl Iterator<Item = &Cache> {
        self.caches
            .iter()
            .filter(move |cache| cache.holds_data() && cache.threads.contains(&thread))
    }
}

/// A position as a number of one of the id types. The builder takes `u32` numbers only and each
/// once, so positions fit.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("parts are fewer than their numbers")
}
