//! Distance of two hardware threads by the machine's structure alone.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::topology::{Thread, Topology};

/// The nearest part that two hardware threads share, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closeness {
    /// The same hardware thread.
    Same,
    /// One core.
    SmtSibling,
    /// A data or unified cache of this level in one package, and no nearer one.
    SharedCache(u8),
    /// One package, and no cache.
    SamePackage,
    /// Nothing. A cache that firmware claims across packages does not count: no such hardware is
    /// known, and hypervisors often claim it.
    OtherPackage,
}

/// A [`Closeness`] and, as the second coordinate, whether both have the same local memory. Ordered
/// by closeness, then the same node before different nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Relation {
    /// The nearest part that they share.
    pub closeness: Closeness,
    /// Whether their nodes are the same.
    pub nodes: Nodes,
}

/// Whether two hardware threads have the same local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    /// One node.
    Same,
    /// Two nodes.
    Other,
}

/// The three types of inter-thread communication of the cache-impact source (section 1 of its
/// extraction), by relative placement alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceType {
    /// Type 1: the same core. The source had no SMT; siblings share the caches that define this
    /// type, so they belong here.
    SameCore,
    /// Type 2: different cores of one chip.
    SameChip,
    /// Type 3: different chips.
    OtherChip,
}

impl Relation {
    /// The source's type for this relation.
    pub fn source_type(self) -> SourceType {
        match self.closeness {
            Closeness::Same | Closeness::SmtSibling => SourceType::SameCore,
            Closeness::SharedCache(_) | Closeness::SamePackage => SourceType::SameChip,
            Closeness::OtherPackage => SourceType::OtherChip,
        }
    }
}

impl SourceType {
    /// 1, 2 or 3.
    pub fn number(self) -> u8 {
        match self {
            SourceType::SameCore => 1,
            SourceType::SameChip => 2,
            SourceType::OtherChip => 3,
        }
    }
}

impl Topology {
    /// The relation of two hardware threads; the same in both directions. Panics if one is not of
    /// this topology.
    ///
    /// ```
    /// use hearth_machine::relation::{Closeness, SourceType};
    /// use hearth_machine::topology::{Thread, Topology};
    ///
    /// let machine = hearth_machine::synthetic::parse("2 packages, 2 cores, 2 threads")?;
    /// let relation = machine.relation(Thread(0), Thread(1));
    /// assert_eq!(relation.closeness, Closeness::SmtSibling);
    /// assert_eq!(machine.relation(Thread(0), Thread(4)).source_type(), SourceType::OtherChip);
    /// # Ok::<(), hearth_machine::synthetic::DescriptionError>(())
    /// ```
    pub fn relation(&self, a: Thread, b: Thread) -> Relation {
        let (first, second) = (self.thread(a), self.thread(b));
        let shared = || {
            let caches = self.data_caches(a);
            let shared = caches.filter(|cache| cache.threads.binary_search(&b).is_ok());
            shared.map(|cache| cache.level).min()
        };
        let closeness = if a == b {
            Closeness::Same
        } else if first.core == second.core {
            Closeness::SmtSibling
        } else if first.package != second.package {
            Closeness::OtherPackage
        } else {
            shared().map_or(Closeness::SamePackage, Closeness::SharedCache)
        };
        let nodes = if first.node == second.node {
            Nodes::Same
        } else {
            Nodes::Other
        };
        Relation { closeness, nodes }
    }

    /// For each relation that occurs, nearest first, the first pair with it: by the first thread,
    /// then by the second.
    pub fn representatives(&self) -> Vec<(Relation, (Thread, Thread))> {
        let mut pairs = BTreeMap::new();
        for a in self.all_threads() {
            for b in self.all_threads().skip(a.index()) {
                pairs.entry(self.relation(a, b)).or_insert((a, b));
            }
        }
        pairs.into_iter().collect()
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.closeness {
            Closeness::Same => write!(f, "same thread")?,
            Closeness::SmtSibling => write!(f, "SMT sibling")?,
            Closeness::SharedCache(level) => write!(f, "shared L{level}")?,
            Closeness::SamePackage => write!(f, "same package")?,
            Closeness::OtherPackage => write!(f, "other package")?,
        }
        match (self.closeness, self.nodes) {
            (Closeness::Same | Closeness::SmtSibling, Nodes::Same) => Ok(()),
            (_, Nodes::Same) => write!(f, ", same node"),
            (_, Nodes::Other) => write!(f, ", other node"),
        }
    }
}
