//! Machines from a short description.
//!
//! A description is a list of items separated by commas, in any order, each at most once (a cache
//! item once for each level and kind). Blanks do not matter, nor does case.
//!
//! | item | meaning | if absent |
//! |---|---|---|
//! | `P packages` | how many packages | 1 |
//! | `C cores` | cores in each package; `8/4 cores` says it package by package | 1 |
//! | `T threads` | hardware threads of each core | 1 |
//! | `N nodes` | nodes that have threads. A multiple of the packages cuts the cores of each package into equal runs; a divisor gives each node several whole packages | one a package |
//! | `M memory nodes` | nodes without threads, numbered after the others | 0 |
//! | `memory 4G` | of each node; `4G/2G/0` says it node by node, memory nodes last | not known |
//! | `l2 1M per core` | a cache of that size for each `core`, `thread`, `K cores` (runs of K in a package; the last may be shorter), `node` or `package`. `l1d` keeps data, `l1i` instructions, `l1` both. After it, in this order, may come `line 128` (64 if absent) and `ways 8` (not known if absent) | no cache |
//! | `offline 3,8-9` | hardware threads, by the operating system's numbers, that are not online | none |
//! | `distances 10 20/20 10` | what firmware claims from node to node, row by row, memory nodes included | none claimed |
//! | `numbering spread` | how the operating system numbers hardware threads. `adjacent`: siblings follow each other. `spread`: one of each core, package by package, then the second of each. `dealt`: as `spread`, but turn by turn one core of each package | `adjacent` |
//!
//! Sizes are bytes, or take `K`, `M`, `G`, `T` (powers of 1024). [`Description`] prints the
//! canonical form: items in the order of the table without those equal to the default, caches by
//! level and kind. Reading that gives an equal description.

mod examples;
mod grammar;

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use crate::topology::{
    Builder, Bytes, CacheKind, CacheSpec, NodeSpec, OsNode, OsPackage, OsThread, ThreadSpec,
    Topology, TopologyError, format_list,
};

pub use examples::{EXAMPLES, example};

/// Most hardware threads of a description: four times the most that Linux can be built for.
pub const THREADS_MAX: u32 = 1 << 15;

/// A described machine. Read one with [`str::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The cores of each package; as many numbers as packages, each at least 1.
    pub cores: Vec<u32>,
    /// The hardware threads of each core, at least 1.
    pub threads: u32,
    /// Number of nodes with threads.
    pub nodes: u32,
    /// Number of nodes without.
    pub memory_nodes: u32,
    /// The memory of each node, one number for all, or none if unknown.
    pub memory: Vec<Bytes>,
    /// Caches, by level and kind.
    pub caches: Vec<CacheItem>,
    /// Hardware threads that are offline, ascending.
    pub offline: Vec<OsThread>,
    /// The firmware's distances, by node number.
    pub distances: Option<Vec<Vec<u32>>>,
    /// The operating system's numbering of hardware threads.
    pub numbering: Numbering,
}

/// Equal caches all over the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheItem {
    /// 1 is nearest to the core.
    pub level: u8,
    /// The contents.
    pub kind: CacheKind,
    /// The capacity of each.
    pub size: Bytes,
    /// The threads that share one.
    pub per: Per,
    /// The bytes of a line.
    pub line: u32,
    /// Lines in a set, if known.
    pub ways: Option<u32>,
}

/// The threads that share one of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One hardware thread.
    Thread,
    /// The threads of this many neighbouring cores of a package.
    Cores(u32),
    /// The threads of a package that are in one node.
    Node,
    /// A whole package.
    Package,
}

/// The operating system's numbering of hardware threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Siblings follow each other.
    #[default]
    Adjacent,
    /// One of each core, package by package, then the second of each.
    Spread,
    /// As spread, but the packages take turns.
    Dealt,
}

/// Reason why a description is not a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DescriptionError {
    /// An item outside the grammar.
    #[error("cannot read `{item}`; write {expected}")]
    Item {
        /// The item.
        item: String,
        /// The expected form.
        expected: &'static str,
    },
    /// An item that appears twice.
    #[error("`{item}` repeats another item; keep one")]
    Twice {
        /// The second.
        item: String,
    },
    /// A list whose length does not fit the other items.
    #[error("{found} {what} are given where {expected} are needed")]
    Length {
        /// Its subject.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The right one.
        expected: usize,
    },
    /// The cores cannot be divided into nodes.
    #[error("{}", misfit(*.nodes, *.packages, *.cores))]
    Nodes {
        /// Number of nodes.
        nodes: u32,
        /// Number of packages.
        packages: usize,
        /// The cores of the first package that cannot be divided, if the packages can be.
        cores: Option<u32>,
    },
    /// More hardware threads than [`THREADS_MAX`].
    #[error("that is more than {threads_max} hardware threads", threads_max = THREADS_MAX)]
    TooLarge,
    /// The parts contradict each other.
    #[error(transparent)]
    Topology(TopologyError),
}

/// Reason why cores cannot be divided into nodes, and a remedy.
fn misfit(nodes: u32, packages: usize, cores: Option<u32>) -> String {
    match cores {
        None => {
            format!("{nodes} nodes do not fit {packages} packages; take a multiple or a divisor")
        }
        Some(cores) => format!(
            "a package of {cores} cores has too few for its share of {nodes} nodes; take fewer nodes"
        ),
    }
}

/// Reads a description and builds its machine.
///
/// # Errors
/// The item that cannot be read, or the contradiction.
///
/// ```
/// let machine = hearth_machine::synthetic::parse(
///     "2 packages, 4 cores, 2 threads, l2 1M per core, l3 16M per package, 2 nodes",
/// )?;
/// assert_eq!(machine.cores().len(), 8);
/// # Ok::<(), hearth_machine::synthetic::DescriptionError>(())
/// ```
pub fn parse(text: &str) -> Result<Topology, DescriptionError> {
    text.parse::<Description>()?.topology()
}

/// A hardware thread during layout.
struct Seat {
    os: OsThread,
    package: u32,
    /// The number of the core in its package.
    core: u32,
    /// The number of the core in the machine.
    core_of_all: u32,
    node: u32,
}

impl Description {
    /// The machine.
    ///
    /// # Errors
    /// The contradiction.
    pub fn topology(&self) -> Result<Topology, DescriptionError> {
        let seats = self.seats()?;
        let mut builder = Builder::new();
        for os in &self.offline {
            if !seats.iter().any(|seat| seat.os == *os) {
                return Err(DescriptionError::Item {
                    item: format!("offline {}", os.0),
                    expected: "the number of a hardware thread that the other items describe",
                });
            }
            builder.offline(*os);
        }
        let offline: BTreeSet<OsThread> = self.offline.iter().copied().collect();
        for seat in seats.iter().filter(|seat| !offline.contains(&seat.os)) {
            builder.thread(ThreadSpec {
                os: seat.os,
                core: seat.core_of_all,
                package: OsPackage(seat.package),
                node: OsNode(seat.node),
            });
        }
        self.add_nodes(&mut builder)?;
        for item in &self.caches {
            add_caches(&mut builder, item, &seats);
        }
        builder.build().map_err(DescriptionError::Topology)
    }

    fn seats(&self) -> Result<Vec<Seat>, DescriptionError> {
        let cores_of_all: u64 = self.cores.iter().map(|n| u64::from(*n)).sum();
        let threads_of_all = cores_of_all.saturating_mul(u64::from(self.threads));
        if threads_of_all > u64::from(THREADS_MAX) {
            return Err(DescriptionError::TooLarge);
        }
        let mut places = Vec::new();
        for (package, cores) in (0..).zip(&self.cores) {
            for core in 0..*cores {
                places.push((package, core, self.node_of(package, core)?));
            }
        }
        let cores = places.len();
        // Position of each core when the packages take turns.
        let mut dealt: Vec<usize> = (0..cores).collect();
        dealt.sort_by_key(|at| (places[*at].1, places[*at].0));
        let mut turn = vec![0; cores];
        for (position, at) in dealt.into_iter().enumerate() {
            turn[at] = position;
        }
        let mut seats = Vec::new();
        for (at, (package, core, node)) in places.into_iter().enumerate() {
            for smt in 0..self.threads as usize {
                let os = match self.numbering {
                    Numbering::Adjacent => at * self.threads as usize + smt,
                    Numbering::Spread => smt * cores + at,
                    Numbering::Dealt => smt * cores + turn[at],
                };
                seats.push(Seat {
                    os: OsThread(small(os)),
                    package,
                    core,
                    core_of_all: small(at),
                    node,
                });
            }
        }
        Ok(seats)
    }

    fn node_of(&self, package: u32, core: u32) -> Result<u32, DescriptionError> {
        let packages = small(self.cores.len());
        let error = |cores| DescriptionError::Nodes {
            nodes: self.nodes,
            packages: self.cores.len(),
            cores,
        };
        if self.nodes == 0 {
            return Err(error(None));
        }
        if packages.is_multiple_of(self.nodes) {
            return Ok(package / (packages / self.nodes));
        }
        if !self.nodes.is_multiple_of(packages) {
            return Err(error(None));
        }
        let parts = self.nodes / packages;
        let cores = self.cores[package as usize];
        if parts > cores {
            return Err(error(Some(cores)));
        }
        // Runs as equal as possible: the first `cores % parts` have one more.
        let (short, longer) = (cores / parts, cores % parts);
        let in_longer = longer * (short + 1);
        let part = if core < in_longer {
            core / (short + 1)
        } else {
            longer + (core - in_longer) / short
        };
        Ok(package * parts + part)
    }

    fn add_nodes(&self, builder: &mut Builder) -> Result<(), DescriptionError> {
        let count = self.nodes.saturating_add(self.memory_nodes);
        if count > THREADS_MAX {
            return Err(DescriptionError::TooLarge);
        }
        let check = |what, found| {
            let expected = count as usize;
            if found == expected {
                Ok(())
            } else {
                Err(DescriptionError::Length {
                    what,
                    found,
                    expected,
                })
            }
        };
        if self.memory.len() > 1 {
            check("memory sizes", self.memory.len())?;
        }
        for node in 0..count {
            let memory = self.memory.get(node as usize).or(match &self.memory[..] {
                [all] => Some(all),
                _ => None,
            });
            builder.node(NodeSpec {
                os: OsNode(node),
                memory: memory.copied(),
            });
        }
        if let Some(rows) = &self.distances {
            check("rows of distances", rows.len())?;
            for row in rows {
                check("distances in a row", row.len())?;
            }
            builder.distances((0..count).map(OsNode).collect(), rows.clone());
        }
        Ok(())
    }
}

fn add_caches(builder: &mut Builder, item: &CacheItem, seats: &[Seat]) {
    let key = |seat: &Seat| match item.per {
        Per::Thread => (0, seat.os.0),
        Per::Cores(run) => (seat.package, seat.core / run.max(1)),
        Per::Node => (seat.package, seat.node),
        Per::Package => (seat.package, 0),
    };
    let mut groups = std::collections::BTreeMap::<(u32, u32), Vec<OsThread>>::new();
    for seat in seats {
        groups.entry(key(seat)).or_default().push(seat.os);
    }
    for threads in groups.into_values() {
        builder.cache(CacheSpec {
            level: item.level,
            kind: item.kind,
            size: item.size,
            line: Some(item.line),
            ways: item.ways,
            threads,
        });
    }
}

/// Numbers here stay below [`THREADS_MAX`].
fn small(number: usize) -> u32 {
    u32::try_from(number).expect("a description is small")
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |texts: Vec<String>| texts.join("/");
        let mut items = Vec::new();
        let mut count = |number: u32, default: u32, one: &str, many: &str| {
            if number != default {
                items.push(format!("{number} {}", if number == 1 { one } else { many }));
            }
        };
        let packages = u32::try_from(self.cores.len()).unwrap_or(u32::MAX);
        count(packages, 1, "package", "packages");
        if self.cores.windows(2).all(|pair| pair[0] == pair[1]) {
            count(self.cores.first().copied().unwrap_or(0), 1, "core", "cores");
        } else {
            let cores = self.cores.iter().map(u32::to_string).collect();
            items.push(format!("{} cores", join(cores)));
        }
        let mut count = |number: u32, default: u32, one: &str, many: &str| {
            if number != default {
                items.push(format!("{number} {}", if number == 1 { one } else { many }));
            }
        };
        count(self.threads, 1, "thread", "threads");
        count(self.nodes, packages, "node", "nodes");
        count(self.memory_nodes, 0, "memory node", "memory nodes");
        if !self.memory.is_empty() {
            let sizes = self.memory.iter().map(|size| size.compact()).collect();
            items.push(format!("memory {}", join(sizes)));
        }
        items.extend(self.caches.iter().map(CacheItem::to_string));
        if !self.offline.is_empty() {
            let list = format_list(self.offline.iter().map(|os| os.0));
            items.push(format!("offline {list}"));
        }
        if let Some(rows) = &self.distances {
            let row = |row: &Vec<u32>| row.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            let rows = rows.iter().map(row).collect();
            items.push(format!("distances {}", join(rows)));
        }
        match self.numbering {
            Numbering::Adjacent => {}
            Numbering::Spread => items.push("numbering spread".into()),
            Numbering::Dealt => items.push("numbering dealt".into()),
        }
        if items.is_empty() {
            // One thread is the default of everything, and no description is empty.
            items.push("1 package".into());
        }
        f.write_str(&items.join(", "))
    }
}

impl fmt::Display for CacheItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let per = match self.per {
            Per::Thread => "thread".to_owned(),
            Per::Cores(1) => "core".to_owned(),
            Per::Cores(run) => format!("{run} cores"),
            Per::Node => "node".to_owned(),
            Per::Package => "package".to_owned(),
        };
        write!(f, "l{}{kind} {} per {per}", self.level, self.size.compact())?;
        if self.line != 64 {
            write!(f, " line {}", self.line)?;
        }
        match self.ways {
            Some(ways) => write!(f, " ways {ways}"),
            None => Ok(()),
        }
    }
}
