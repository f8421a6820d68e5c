//! Turns a capture's files into a topology, claims and notes.
//!
//! Linux's own rules: a folder `cpuN` without `topology` is offline; `core_cpus_list` is the name
//! of `thread_siblings_list` since 5.6, `package_cpus_list` of `core_siblings_list`.

use std::collections::{BTreeMap, BTreeSet};

use super::{AccessFigure, Capture, CaptureError, Claim, Environment, Fact, Note, Reading};
use crate::topology::{
    Builder, Bytes, CacheKind, CacheSpec, NodeSpec, OsNode, OsPackage, OsThread, ThreadSpec,
    Topology, TopologyError, format_list, parse_list,
};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

pub(super) fn read(capture: &Capture) -> Result<Reading, CaptureError> {
    let mut reader = Reader {
        capture,
        notes: Vec::new(),
        claims: Vec::new(),
    };
    let online = reader.online()?;
    let offline = reader.offline(&online);
    let threads = reader.threads(&online);
    let (nodes, distances) = reader.nodes(&online);
    let caches = reader.caches(&online);
    let mut parts = Parts {
        threads,
        offline,
        nodes,
        distances,
        caches,
    };
    let topology = reader.settle(&mut parts)?;
    reader.claim_groups(&topology);
    let environment = Environment::read(capture, &mut reader.notes);
    Ok(Reading {
        topology,
        claims: reader.claims,
        environment,
        notes: reader.notes,
    })
}

/// Everything that goes into a builder.
struct Parts {
    threads: Vec<ThreadSpec>,
    offline: Vec<OsThread>,
    nodes: Vec<(NodeSpec, Vec<OsThread>)>,
    distances: Option<(Vec<OsNode>, Vec<Vec<u32>>)>,
    caches: Vec<CacheSpec>,
}

impl Parts {
    fn build(&self) -> Result<Topology, TopologyError> {
        let mut builder = Builder::new();
        let mut homes: BTreeMap<OsThread, OsNode> = BTreeMap::new();
        for (node, threads) in &self.nodes {
            builder.node(*node);
            homes.extend(threads.iter().map(|os| (*os, node.os)));
        }
        let first = self.nodes.first().map_or(OsNode(0), |(node, _)| node.os);
        for thread in &self.threads {
            builder.thread(ThreadSpec {
                node: homes.get(&thread.os).copied().unwrap_or(first),
                ..*thread
            });
        }
        for os in &self.offline {
            builder.offline(*os);
        }
        for cache in &self.caches {
            builder.cache(cache.clone());
        }
        if let Some((nodes, rows)) = &self.distances {
            builder.distances(nodes.clone(), rows.clone());
        }
        builder.build()
    }
}

struct Reader<'a> {
    capture: &'a Capture,
    notes: Vec<Note>,
    claims: Vec<Claim>,
}

impl Reader<'_> {
    fn note(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note {
            path: path.into(),
            text: text.into(),
        });
    }

    /// A list of numbers in a file; adds a note if it is not one.
    fn list(&mut self, path: &str) -> Option<Vec<u32>> {
        match parse_list(self.capture.file(path)?) {
            Ok(numbers) => Some(numbers),
            Err(error) => {
                self.note(path, format!("{error}; taken as missing"));
                None
            }
        }
    }

    fn number(&self, path: &str) -> Option<u32> {
        self.capture.file(path)?.parse().ok()
    }

    fn online(&mut self) -> Result<BTreeSet<OsThread>, CaptureError> {
        let path = format!("{CPU}/online");
        if let Some(numbers) = self.list(&path).filter(|numbers| !numbers.is_empty()) {
            return Ok(numbers.into_iter().map(OsThread).collect());
        }
        // cpuinfo lists the online ones, wherever /proc is.
        let text = self.capture.file("/proc/cpuinfo").unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let found: BTreeSet<OsThread> = lines
            .filter(|(key, _)| key.trim() == "processor")
            .filter_map(|(_, value)| Some(OsThread(value.trim().parse().ok()?)))
            .collect();
        if found.is_empty() {
            return Err(CaptureError::NoThreads);
        }
        self.note(
            path,
            "missing; the threads in /proc/cpuinfo are taken as online",
        );
        Ok(found)
    }

    fn offline(&mut self, online: &BTreeSet<OsThread>) -> Vec<OsThread> {
        // Possible numbers without hardware are not threads: `present` leaves them out.
        let path = format!("{CPU}/present");
        let Some(present) = self.list(&path) else {
            self.note(path, "missing; whether threads are offline is not known");
            return Vec::new();
        };
        let present = present.into_iter().map(OsThread);
        present.filter(|os| !online.contains(os)).collect()
    }

    fn threads(&mut self, online: &BTreeSet<OsThread>) -> Vec<ThreadSpec> {
        let mut threads = Vec::new();
        let (mut coreless, mut packageless) = (Vec::new(), Vec::new());
        for os in online {
            let folder = format!("{CPU}/cpu{}/topology", os.0);
            let siblings = self
                .list(&format!("{folder}/core_cpus_list"))
                .or_else(|| self.list(&format!("{folder}/thread_siblings_list")));
            // A core is named by its lowest online thread: core numbers repeat between dies.
            let lowest = siblings.and_then(|siblings| {
                let mut siblings = siblings.into_iter();
                siblings.find(|sibling| online.contains(&OsThread(*sibling)))
            });
            if lowest.is_none() {
                coreless.push(os.0);
            }
            let package = self.number(&format!("{folder}/physical_package_id"));
            if package.is_none() {
                packageless.push(os.0);
            }
            threads.push(ThreadSpec {
                os: *os,
                core: lowest.unwrap_or(os.0),
                package: OsPackage(package.unwrap_or(0)),
                node: OsNode(0),
            });
        }
        if !coreless.is_empty() {
            self.note(
                format!("{CPU}/cpu#/topology/core_cpus_list"),
                format!(
                    "missing for CPUs {}; each is taken as a core of its own",
                    format_list(coreless)
                ),
            );
        }
        if !packageless.is_empty() {
            self.note(
                format!("{CPU}/cpu#/topology/physical_package_id"),
                format!(
                    "missing or negative for CPUs {}; they are taken as in package 0",
                    format_list(packageless)
                ),
            );
        }
        threads
    }

    #[expect(clippy::type_complexity, reason = "two fields of `Parts`, named there")]
    fn nodes(
        &mut self,
        online: &BTreeSet<OsThread>,
    ) -> (
        Vec<(NodeSpec, Vec<OsThread>)>,
        Option<(Vec<OsNode>, Vec<Vec<u32>>)>,
    ) {
        let path = format!("{NODE}/online");
        let Some(numbers) = self.list(&path).filter(|numbers| !numbers.is_empty()) else {
            self.note(path, "missing; all memory is taken as one node");
            let memory = memory(self.capture.file("/proc/meminfo"));
            let spec = NodeSpec {
                os: OsNode(0),
                memory,
            };
            return (vec![(spec, online.iter().copied().collect())], None);
        };
        let mut nodes = Vec::new();
        let mut placed = BTreeSet::new();
        let mut rows = Vec::new();
        for os in &numbers {
            let folder = format!("{NODE}/node{os}");
            let threads = self.list(&format!("{folder}/cpulist"));
            if threads.is_none() {
                self.note(
                    format!("{folder}/cpulist"),
                    "missing; the node is taken as one without threads",
                );
            }
            let threads = threads.unwrap_or_default().into_iter().map(OsThread);
            let threads: Vec<OsThread> = threads
                .filter(|os| online.contains(os) && placed.insert(*os))
                .collect();
            let path = format!("{folder}/meminfo");
            let memory = memory(self.capture.file(&path));
            if memory.is_none() {
                self.note(path.clone(), "missing; the node's memory is not known");
            }
            let spec = NodeSpec {
                os: OsNode(*os),
                memory,
            };
            self.claims.push(Claim {
                fact: Fact::Node {
                    node: spec.os,
                    threads: threads.clone(),
                    memory_bytes: memory,
                },
                path: format!("{folder}/cpulist"),
            });
            nodes.push((spec, threads));
            rows.push(self.distance_row(&folder));
            self.access(&folder, OsNode(*os));
        }
        let homeless: Vec<u32> = online.difference(&placed).map(|os| os.0).collect();
        if !homeless.is_empty() {
            let text = format!(
                "CPUs {} are in no node; they are taken as in node {}",
                format_list(homeless),
                numbers[0]
            );
            self.note(format!("{NODE}/node#/cpulist"), text);
        }
        let order: Vec<OsNode> = numbers.into_iter().map(OsNode).collect();
        (nodes, self.distances(order, rows))
    }

    fn distance_row(&self, folder: &str) -> Option<Vec<u32>> {
        let text = self.capture.file(&format!("{folder}/distance"))?;
        text.split_whitespace().map(|d| d.parse().ok()).collect()
    }

    fn distances(
        &mut self,
        order: Vec<OsNode>,
        rows: Vec<Option<Vec<u32>>>,
    ) -> Option<(Vec<OsNode>, Vec<Vec<u32>>)> {
        let is_row = |row: &Vec<u32>| row.len() == order.len() && row.iter().all(|d| *d > 0);
        let rows: Option<Vec<Vec<u32>>> = rows.into_iter().map(|row| row.filter(is_row)).collect();
        let path = format!("{NODE}/node{}/distance", order[0].0);
        let Some(rows) = rows else {
            self.note(path, "missing or incomplete; no distances are claimed");
            return None;
        };
        self.claims.push(Claim {
            fact: Fact::Distances {
                nodes: order.clone(),
                rows: rows.clone(),
            },
            path,
        });
        Some((order, rows))
    }

    fn access(&mut self, folder: &str, node: OsNode) {
        const FIGURES: [(&str, AccessFigure); 4] = [
            ("read_latency", AccessFigure::ReadLatency),
            ("write_latency", AccessFigure::WriteLatency),
            ("read_bandwidth", AccessFigure::ReadBandwidth),
            ("write_bandwidth", AccessFigure::WriteBandwidth),
        ];
        for (name, what) in FIGURES {
            let path = format!("{folder}/access0/initiators/{name}");
            // The kernel writes 0 for values that firmware leaves out.
            if let Some(value) = self.number(&path).filter(|value| *value > 0) {
                self.claims.push(Claim {
                    fact: Fact::Access {
                        node,
                        what,
                        value: value.into(),
                    },
                    path,
                });
            }
        }
    }

    fn caches(&mut self, online: &BTreeSet<OsThread>) -> Vec<CacheSpec> {
        let mut caches: Vec<CacheSpec> = Vec::new();
        let mut without = Vec::new();
        for os in online {
            let mut any = false;
            let folder = format!("{CPU}/cpu{}/cache", os.0);
            // The kernel numbers them without gaps.
            for index in 0.. {
                let folder = format!("{folder}/index{index}");
                if self.capture.file(&format!("{folder}/level")).is_none() {
                    break;
                }
                match self.cache(&folder, *os) {
                    Some(mut cache) => {
                        any = true;
                        cache.threads.retain(|os| online.contains(os));
                        // Each thread reports it; the first counts.
                        let is_known = caches.iter().any(|known| {
                            (known.level, known.kind) == (cache.level, cache.kind)
                                && known.threads.contains(os)
                        });
                        if !is_known {
                            self.claim_cache(&cache, &folder);
                            caches.push(cache);
                        }
                    }
                    None => self.note(
                        folder,
                        "its level, type or size cannot be read; the cache is left out",
                    ),
                }
            }
            if !any {
                without.push(os.0);
            }
        }
        if !without.is_empty() {
            let text = format!(
                "missing for CPUs {}; their caches are not known",
                format_list(without)
            );
            self.note(format!("{CPU}/cpu#/cache"), text);
        }
        caches
    }

    fn cache(&mut self, folder: &str, os: OsThread) -> Option<CacheSpec> {
        let capture = self.capture;
        let file = |name: &str| capture.file(&format!("{folder}/{name}"));
        let level: u8 = file("level")?.parse().ok().filter(|level| *level > 0)?;
        let kind = match file("type")? {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            _ => return None,
        };
        let size = Bytes::parse(file("size")?).filter(|size| size.0 > 0)?;
        let above_zero = |name: &str| file(name)?.parse().ok().filter(|n: &u32| *n > 0);
        let path = format!("{folder}/shared_cpu_list");
        let mut threads: Vec<OsThread> = match self.list(&path) {
            Some(numbers) => numbers.into_iter().map(OsThread).collect(),
            None => {
                let text = "missing; the cache is taken as the thread's own";
                self.note(path, text);
                Vec::new()
            }
        };
        if !threads.contains(&os) {
            threads.push(os);
        }
        Some(CacheSpec {
            level,
            kind,
            size,
            line: above_zero("coherency_line_size").filter(|line| line.is_power_of_two()),
            ways: above_zero("ways_of_associativity"),
            threads,
        })
    }

    fn claim_cache(&mut self, cache: &CacheSpec, folder: &str) {
        self.claims.push(Claim {
            fact: Fact::Cache {
                level: cache.level,
                kind: cache.kind,
                size_bytes: cache.size,
                threads: cache.threads.clone(),
            },
            path: format!("{folder}/size"),
        });
    }

    fn claim_groups(&mut self, topology: &Topology) {
        let os_of = |threads: &[crate::topology::Thread]| -> Vec<OsThread> {
            threads.iter().map(|t| topology.os_thread(*t)).collect()
        };
        for core in topology.cores() {
            let threads = os_of(&core.threads);
            self.claims.push(Claim {
                path: format!("{CPU}/cpu{}/topology/core_cpus_list", threads[0].0),
                fact: Fact::Core(threads),
            });
        }
        for package in topology.packages() {
            let threads = os_of(&package.threads);
            self.claims.push(Claim {
                path: format!("{CPU}/cpu{}/topology/physical_package_id", threads[0].0),
                fact: Fact::Package(threads),
            });
        }
    }

    /// Builds the topology, removing one contradiction after the other: caches that do not fit,
    /// then cores that lie in two nodes. Each round removes something, so it ends.
    fn settle(&mut self, parts: &mut Parts) -> Result<Topology, CaptureError> {
        loop {
            let error = match parts.build() {
                Ok(topology) => return Ok(topology),
                Err(error) => error,
            };
            match &error {
                TopologyError::CoreInTwoNodes(threads) => {
                    self.note(
                        format!("{CPU}/cpu{}/topology/core_cpus_list", threads[0].0),
                        format!("{error}; its threads are taken as cores of their own"),
                    );
                    let spec = |spec: &&mut ThreadSpec| threads.contains(&spec.os);
                    for thread in parts.threads.iter_mut().filter(spec) {
                        thread.core = thread.os.0;
                    }
                }
                TopologyError::Crossing { .. }
                | TopologyError::CacheTwice { .. }
                | TopologyError::UnknownThread { .. }
                    if !parts.caches.is_empty() =>
                {
                    let culprit = first_misfit(parts);
                    let cache = parts.caches.remove(culprit);
                    self.note(
                        format!("{CPU}/cpu#/cache"),
                        format!("{cache} is left out: {error}"),
                    );
                }
                _ => return Err(CaptureError::Topology(error)),
            }
        }
    }
}

/// The first cache that makes the parts contradict each other.
fn first_misfit(parts: &Parts) -> usize {
    let fits = |count: usize| {
        let some = Parts {
            threads: parts.threads.clone(),
            offline: parts.offline.clone(),
            nodes: parts.nodes.clone(),
            distances: None,
            caches: parts.caches[..count].to_vec(),
        };
        some.build().is_ok()
    };
    let last = parts.caches.len();
    (1..=last).find(|count| !fits(*count)).unwrap_or(last) - 1
}

/// `MemTotal` of a node's or the machine's meminfo.
fn memory(text: Option<&str>) -> Option<Bytes> {
    let mut lines = text?.lines();
    let value = lines.find_map(|line| Some(line.split_once("MemTotal:")?.1))?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024).map(Bytes)
}
