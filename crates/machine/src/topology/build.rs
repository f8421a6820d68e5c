//! Builds a checked, renumbered topology from a description with the operating system's numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;

use super::{
    Bytes, Cache, CacheKind, Core, CoreParts, HardwareThread, Node, NodeParts, OsNode, OsPackage,
    OsThread, Package, PackageParts, Thread, Topology, format_list, number,
};

/// Collects a machine's parts, by the operating system's numbers, in any order.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    threads: Vec<ThreadSpec>,
    nodes: Vec<NodeSpec>,
    caches: Vec<CacheSpec>,
    offline: Vec<OsThread>,
    distances: Option<(Vec<OsNode>, Vec<Vec<u32>>)>,
}

/// An online hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSpec {
    /// Its number.
    pub os: OsThread,
    /// A number that the threads of the same core share and that no other core of the same package
    /// has.
    pub core: u32,
    /// Its package.
    pub package: OsPackage,
    /// Its node.
    pub node: OsNode,
}

/// A node. Nodes that threads name need not be given unless their memory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its number.
    pub os: OsNode,
    /// Its memory: zero for none, nothing if unknown.
    pub memory: Option<Bytes>,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Its contents.
    pub kind: CacheKind,
    /// Its capacity.
    pub size: Bytes,
    /// The bytes of a line, if known.
    pub line: Option<u32>,
    /// Lines in a set, if known.
    pub ways: Option<u32>,
    /// The threads that share it. Offline threads may be named, and are left out.
    pub threads: Vec<OsThread>,
}

/// Reason why parts do not form a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// No hardware thread is online.
    #[error("no hardware thread is online; name at least one")]
    NoThreads,
    /// Two hardware threads have one number, or one is online and offline.
    #[error("{0} appears twice; give each hardware thread once")]
    ThreadTwice(OsThread),
    /// Two nodes have one number.
    #[error("{0} appears twice; give each node once")]
    NodeTwice(OsNode),
    /// The threads of one core are in two nodes.
    #[error("the core of CPUs {} is in two nodes; put its threads in one", format_list(.0.iter().map(|os| os.0)))]
    CoreInTwoNodes(Vec<OsThread>),
    /// A cache of level 0, without capacity, or with a line that is not a power of two.
    #[error(
        "{cache} cannot exist: give a level from 1, a size above 0 and a line of a power of two"
    )]
    BadCache {
        /// The cache, as text.
        cache: String,
    },
    /// A cache names a hardware thread that is neither online nor offline.
    #[error("{cache} names {thread}, which does not exist; add the thread, online or offline")]
    UnknownThread {
        /// The cache, as text.
        cache: String,
        /// The number.
        thread: OsThread,
    },
    /// Two sets of threads overlap and neither holds the other.
    #[error("{first} and {second} overlap and neither holds the other; mend or drop one")]
    Crossing {
        /// One of them, as text.
        first: String,
        /// The other.
        second: String,
    },
    /// Two caches of one level and kind share a thread.
    #[error("{first} and {second} share a thread; a thread has one cache of each level and kind")]
    CacheTwice {
        /// One of them, as text.
        first: String,
        /// The other.
        second: String,
    },
    /// The distances do not have one row and one column for each node, or contain a zero.
    #[error("the distances must be {nodes} rows of {nodes} numbers above 0, one for each node")]
    BadDistances {
        /// Number of nodes.
        nodes: usize,
    },
    /// A stored topology does not list its parts in the canonical order.
    #[error(
        "the parts are not in canonical order (package, node, core, SMT position); write the topology anew from a capture"
    )]
    NotCanonical,
    /// A stored topology names a part that it does not have.
    #[error("there is no {0}; the file is damaged, write it anew")]
    NoSuchPart(String),
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds an online hardware thread.
    pub fn thread(&mut self, thread: ThreadSpec) -> &mut Builder {
        self.threads.push(thread);
        self
    }

    /// Adds a hardware thread that exists and is offline.
    pub fn offline(&mut self, thread: OsThread) -> &mut Builder {
        self.offline.push(thread);
        self
    }

    /// Adds a node, or the memory of one that threads name.
    pub fn node(&mut self, node: NodeSpec) -> &mut Builder {
        self.nodes.push(node);
        self
    }

    /// Adds a cache.
    pub fn cache(&mut self, cache: CacheSpec) -> &mut Builder {
        self.caches.push(cache);
        self
    }

    /// Sets the firmware's distances: `rows[i][j]` is from `nodes[i]` to `nodes[j]`.
    pub fn distances(&mut self, nodes: Vec<OsNode>, rows: Vec<Vec<u32>>) -> &mut Builder {
        self.distances = Some((nodes, rows));
        self
    }

    /// Checks and numbers all parts.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.check_numbers()?;
        let mut topology = self.number_threads()?;
        topology.caches = self.number_caches(&topology)?;
        check_nesting(&topology)?;
        topology.distances = self.order_distances(&topology)?;
        Ok(topology)
    }

    fn check_numbers(&self) -> Result<(), TopologyError> {
        if self.threads.is_empty() {
            return Err(TopologyError::NoThreads);
        }
        let mut seen = BTreeSet::new();
        let online = self.threads.iter().map(|thread| thread.os);
        for os in online.chain(self.offline.iter().copied()) {
            if !seen.insert(os) {
                return Err(TopologyError::ThreadTwice(os));
            }
        }
        let mut seen = BTreeSet::new();
        match self.nodes.iter().find(|node| !seen.insert(node.os)) {
            Some(node) => Err(TopologyError::NodeTwice(node.os)),
            None => Ok(()),
        }
    }

    fn number_threads(&self) -> Result<Topology, TopologyError> {
        // A core is identified by its package and its key; its lowest thread determines its
        // position.
        let mut members: BTreeMap<(OsPackage, u32), Vec<&ThreadSpec>> = BTreeMap::new();
        for thread in &self.threads {
            let core = (thread.package, thread.core);
            members.entry(core).or_default().push(thread);
        }
        let package_os: BTreeSet<OsPackage> = self.threads.iter().map(|t| t.package).collect();
        let package_os: Vec<OsPackage> = package_os.into_iter().collect();
        let nodes = self.order_nodes();
        let mut cores = Vec::new();
        for ((package, _), mut threads) in members {
            threads.sort_by_key(|thread| thread.os);
            let node = threads[0].node;
            if threads.iter().any(|thread| thread.node != node) {
                let threads = threads.iter().map(|thread| thread.os).collect();
                return Err(TopologyError::CoreInTwoNodes(threads));
            }
            let node = position(&nodes, |spec| spec.os == node);
            cores.push((package, node, threads));
        }
        cores.sort_by_key(|(package, node, threads)| (*package, *node, threads[0].os));
        let mut offline = self.offline.clone();
        offline.sort_unstable();
        let mut topology = Topology {
            threads: Vec::new(),
            cores: Vec::new(),
            packages: package_os
                .iter()
                .map(|os| PackageParts {
                    os: *os,
                    threads: Vec::new(),
                })
                .collect(),
            nodes: nodes
                .iter()
                .map(|spec| NodeParts {
                    os: spec.os,
                    memory: spec.memory,
                    threads: Vec::new(),
                })
                .collect(),
            caches: Vec::new(),
            offline,
            distances: None,
        };
        for (package, node, members) in cores {
            let package = Package(position(&package_os, |os| *os == package));
            let core = Core(number(topology.cores.len()));
            let mut threads = Vec::new();
            for (smt, member) in (0..).zip(members) {
                let thread = Thread(number(topology.threads.len()));
                threads.push(thread);
                topology.threads.push(HardwareThread {
                    os: member.os,
                    core,
                    package,
                    node: Node(node),
                    smt,
                });
            }
            topology.packages[package.index()].threads.extend(&threads);
            topology.nodes[node as usize].threads.extend(&threads);
            topology.cores.push(CoreParts {
                package,
                node: Node(node),
                threads,
            });
        }
        Ok(topology)
    }

    /// Nodes with threads by package, then by number; then nodes without.
    fn order_nodes(&self) -> Vec<NodeSpec> {
        let mut nodes: BTreeMap<OsNode, Option<Bytes>> = BTreeMap::new();
        for thread in &self.threads {
            nodes.entry(thread.node).or_default();
        }
        for node in &self.nodes {
            nodes.insert(node.os, node.memory);
        }
        let first_package = |os: OsNode| {
            let threads = self.threads.iter().filter(|thread| thread.node == os);
            threads.map(|thread| thread.package).min()
        };
        let mut order: Vec<NodeSpec> = nodes
            .into_iter()
            .map(|(os, memory)| NodeSpec { os, memory })
            .collect();
        order.sort_by_key(|node| {
            let package = first_package(node.os);
            (package.is_none(), package, node.os)
        });
        order
    }

    fn number_caches(&self, topology: &Topology) -> Result<Vec<Cache>, TopologyError> {
        let by_os: BTreeMap<OsThread, Thread> = topology
            .all_threads()
            .map(|thread| (topology.os_thread(thread), thread))
            .collect();
        let mut caches = Vec::new();
        for spec in &self.caches {
            let is_power = spec.line.is_none_or(u32::is_power_of_two);
            if spec.level == 0 || spec.size.0 == 0 || !is_power || spec.ways == Some(0) {
                return Err(TopologyError::BadCache {
                    cache: spec.to_string(),
                });
            }
            let mut threads = BTreeSet::new();
            for os in &spec.threads {
                match by_os.get(os) {
                    Some(thread) => _ = threads.insert(*thread),
                    None if self.offline.contains(os) => {}
                    None => {
                        return Err(TopologyError::UnknownThread {
                            cache: spec.to_string(),
                            thread: *os,
                        });
                    }
                }
            }
            if !threads.is_empty() {
                caches.push(Cache {
                    level: spec.level,
                    kind: spec.kind,
                    size: spec.size,
                    line: spec.line,
                    ways: spec.ways,
                    threads: threads.into_iter().collect(),
                });
            }
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.threads[0]));
        Ok(caches)
    }

    fn order_distances(&self, topology: &Topology) -> Result<Option<Vec<Vec<u32>>>, TopologyError> {
        let Some((order, rows)) = &self.distances else {
            return Ok(None);
        };
        let error = TopologyError::BadDistances {
            nodes: topology.nodes.len(),
        };
        let count = topology.nodes.len();
        let square = order.len() == count
            && rows.len() == count
            && rows
                .iter()
                .all(|row| row.len() == count && row.iter().all(|d| *d > 0));
        let places: Option<Vec<usize>> = topology
            .nodes
            .iter()
            .map(|node| order.iter().position(|os| *os == node.os))
            .collect();
        let Some(places) = places.filter(|_| square) else {
            return Err(error);
        };
        let row = |i: &usize| places.iter().map(|j| rows[*i][*j]).collect();
        Ok(Some(places.iter().map(row).collect()))
    }
}

fn position<T>(items: &[T], is: impl Fn(&T) -> bool) -> u32 {
    number(items.iter().position(is).expect("it was just collected"))
}

/// Checks that cores, packages and caches are disjoint or nested.
fn check_nesting(topology: &Topology) -> Result<(), TopologyError> {
    let by_os = |threads: &[Thread]| {
        format_list(threads.iter().map(|thread| topology.os_thread(*thread).0))
    };
    let name = |cache: &Cache| {
        format!(
            "the {} of CPUs {}",
            kind_name(cache.level, cache.kind),
            by_os(&cache.threads)
        )
    };
    let mut sets: Vec<(String, &[Thread])> = Vec::new();
    for (i, cache) in topology.caches.iter().enumerate() {
        for other in &topology.caches[..i] {
            let same = (other.level, other.kind) == (cache.level, cache.kind);
            if same && overlap(&other.threads, &cache.threads) {
                return Err(TopologyError::CacheTwice {
                    first: name(other),
                    second: name(cache),
                });
            }
        }
        sets.push((name(cache), &cache.threads));
    }
    for core in &topology.cores {
        let text = format!("the core of CPUs {}", by_os(&core.threads));
        sets.push((text, &core.threads));
    }
    for package in &topology.packages {
        let text = format!("the package of CPUs {}", by_os(&package.threads));
        sets.push((text, &package.threads));
    }
    match find_crossing(&sets.iter().map(|(_, set)| *set).collect::<Vec<_>>()) {
        None => Ok(()),
        Some((first, second)) => Err(TopologyError::Crossing {
            first: sets[first].0.clone(),
            second: sets[second].0.clone(),
        }),
    }
}

/// Whether two ascending lists share an element.
fn overlap(a: &[Thread], b: &[Thread]) -> bool {
    a.iter().any(|thread| b.binary_search(thread).is_ok())
}

/// Two of the ascending lists that overlap without nesting.
fn find_crossing(sets: &[&[Thread]]) -> Option<(usize, usize)> {
    // Largest first: then each set must lie whole in the last set that holds its first thread.
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(sets[*i].len()));
    let mut holder: BTreeMap<Thread, usize> = BTreeMap::new();
    for i in order {
        let first = holder.get(&sets[i][0]).copied();
        for thread in sets[i] {
            let before = holder.insert(*thread, i);
            if before != first {
                // One of the two holds the set only in part.
                let whole = |j: &usize| sets[i].iter().all(|t| sets[*j].binary_search(t).is_ok());
                let mut holders = [first, before].into_iter().flatten();
                return Some((i, holders.find(|j| !whole(j))?));
            }
        }
    }
    None
}

fn kind_name(level: u8, kind: CacheKind) -> String {
    let suffix = match kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    format!("L{level}{suffix}")
}

impl fmt::Display for CacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} of {} of CPUs {}",
            kind_name(self.level, self.kind),
            self.size,
            format_list(self.threads.iter().map(|os| os.0))
        )
    }
}
