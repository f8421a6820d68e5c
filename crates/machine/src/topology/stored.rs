//! JSON form of a topology.

use serde::{Deserialize, Serialize};

use super::{
    Builder, Bytes, CacheKind, CacheSpec, Core, Node, NodeSpec, OsNode, OsPackage, OsThread,
    Package, Thread, ThreadSpec, Topology, TopologyError,
};

#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    packages: Vec<StoredPackage>,
    nodes: Vec<StoredNode>,
    threads: Vec<StoredThread>,
    #[serde(default)]
    caches: Vec<StoredCache>,
    #[serde(default)]
    offline: Vec<OsThread>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distances: Option<Vec<Vec<u32>>>,
}

#[derive(Serialize, Deserialize)]
struct StoredPackage {
    os: OsPackage,
}

#[derive(Serialize, Deserialize)]
struct StoredNode {
    os: OsNode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<Bytes>,
}

#[derive(Serialize, Deserialize)]
struct StoredThread {
    os: OsThread,
    core: Core,
    package: Package,
    node: Node,
}

#[derive(Serialize, Deserialize)]
struct StoredCache {
    level: u8,
    kind: CacheKind,
    size_bytes: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ways: Option<u32>,
    threads: Vec<Thread>,
}

impl From<Topology> for Stored {
    fn from(topology: Topology) -> Stored {
        let threads = topology.threads.iter().map(|thread| StoredThread {
            os: thread.os,
            core: thread.core,
            package: thread.package,
            node: thread.node,
        });
        let packages = topology.packages.iter();
        let nodes = topology.nodes.iter().map(|node| StoredNode {
            os: node.os,
            memory_bytes: node.memory,
        });
        Stored {
            packages: packages.map(|p| StoredPackage { os: p.os }).collect(),
            nodes: nodes.collect(),
            threads: threads.collect(),
            caches: topology
                .caches
                .into_iter()
                .map(|cache| StoredCache {
                    level: cache.level,
                    kind: cache.kind,
                    size_bytes: cache.size,
                    line_bytes: cache.line,
                    ways: cache.ways,
                    threads: cache.threads,
                })
                .collect(),
            offline: topology.offline,
            distances: topology.distances,
        }
    }
}

impl TryFrom<Stored> for Topology {
    type Error = TopologyError;

    fn try_from(stored: Stored) -> Result<Topology, TopologyError> {
        let mut builder = Builder::new();
        for thread in &stored.threads {
            let package = stored.packages.get(thread.package.index());
            let package = package.ok_or_else(|| missing("package", thread.package.0))?;
            let node = stored.nodes.get(thread.node.index());
            let node = node.ok_or_else(|| missing("node", thread.node.0))?;
            builder.thread(ThreadSpec {
                os: thread.os,
                core: thread.core.0,
                package: package.os,
                node: node.os,
            });
        }
        for node in &stored.nodes {
            builder.node(NodeSpec {
                os: node.os,
                memory: node.memory_bytes,
            });
        }
        for cache in &stored.caches {
            let threads: Result<Vec<OsThread>, TopologyError> = cache
                .threads
                .iter()
                .map(|thread| {
                    let found = stored.threads.get(thread.index());
                    Ok(found.ok_or_else(|| missing("thread", thread.0))?.os)
                })
                .collect();
            builder.cache(CacheSpec {
                level: cache.level,
                kind: cache.kind,
                size: cache.size_bytes,
                line: cache.line_bytes,
                ways: cache.ways,
                threads: threads?,
            });
        }
        for os in &stored.offline {
            builder.offline(*os);
        }
        if let Some(rows) = &stored.distances {
            let order = stored.nodes.iter().map(|node| node.os).collect();
            builder.distances(order, rows.clone());
        }
        let topology = builder.build()?;
        if topology.is_listed_in(&stored) {
            Ok(topology)
        } else {
            Err(TopologyError::NotCanonical)
        }
    }
}

fn missing(part: &str, number: u32) -> TopologyError {
    TopologyError::NoSuchPart(format!("{part} {number}"))
}

impl Topology {
    /// Whether the file gives every part the number that it was given here.
    fn is_listed_in(&self, stored: &Stored) -> bool {
        let packages = stored.packages.iter().map(|package| package.os);
        let nodes = stored.nodes.iter().map(|node| node.os);
        let threads = stored.threads.iter().map(|thread| (thread.os, thread.core));
        packages.eq(self.packages.iter().map(|package| package.os))
            && nodes.eq(self.nodes.iter().map(|node| node.os))
            && threads.eq(self.threads.iter().map(|thread| (thread.os, thread.core)))
    }
}
