//! Writer of hwloc's XML.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::bitmap;
use super::{Extras, HwlocError, Matrix, MatrixOf, Meaning};
use crate::topology::{Cache, CacheKind, Node, OsNode, OsThread, Thread, Topology};

/// Writes a topology for hwloc 2.
///
/// # Errors
/// A matrix that is not square, or a matrix or memory figure that names threads or nodes outside
/// the topology.
pub fn export(topology: &Topology, extras: &Extras) -> Result<String, HwlocError> {
    let mut writer = Writer {
        topology,
        text: String::new(),
        next_index: 1,
        node_index: vec![0; topology.nodes().len()],
    };
    writer.text.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n",
    );
    let objects = arrange(topology);
    writer.object(&objects, 0, extras, 1);
    if let Some(rows) = topology.distances() {
        let nodes = topology
            .nodes()
            .iter()
            .map(|node| node.os.0)
            .collect::<Vec<_>>();
        let rows: Vec<Vec<u64>> = rows
            .iter()
            .map(|row| row.iter().map(|d| u64::from(*d)).collect())
            .collect();
        // Kind 5: from the operating system (1), latencies (4).
        writer.distances("NUMALatency", "NUMANode", 5, &nodes, &rows);
    }
    for matrix in &extras.matrices {
        writer.matrix(matrix)?;
    }
    writer.memory(extras)?;
    writer.text.push_str("</topology>\n");
    Ok(writer.text)
}

/// An object of hwloc's tree.
struct Object {
    what: What,
    threads: Vec<Thread>,
    children: Vec<usize>,
    /// Nodes whose local threads these are.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    // In hwloc's order, from the outside, for objects of the same threads.
    Machine,
    Package(u32),
    Group,
    /// By its position; caches farther from the core come first in the order built below.
    Cache(usize),
    Core(u32),
    Thread(Thread),
}

/// The tree, the machine first. Sets of threads nest, as a topology's do. A group stands for a node
/// that equals no other object, unless its threads straddle another object.
fn arrange(topology: &Topology) -> Vec<Object> {
    let mut sets: Vec<(What, Vec<Thread>)> = Vec::new();
    for (number, package) in topology.packages().iter().enumerate() {
        sets.push((What::Package(small(number)), package.threads.clone()));
    }
    for (at, cache) in topology.caches().iter().enumerate().rev() {
        if type_name(cache).is_some() {
            sets.push((What::Cache(at), cache.threads.clone()));
        }
    }
    for (number, core) in topology.cores().iter().enumerate() {
        sets.push((What::Core(small(number)), core.threads.clone()));
    }
    for thread in topology.all_threads() {
        sets.push((What::Thread(thread), vec![thread]));
    }
    let all: Vec<Thread> = topology.all_threads().collect();
    for node in topology
        .nodes()
        .iter()
        .filter(|node| !node.threads.is_empty())
    {
        let is_known = node.threads == all || sets.iter().any(|(_, set)| *set == node.threads);
        if !is_known && sets.iter().all(|(_, set)| nests(set, &node.threads)) {
            sets.push((What::Group, node.threads.clone()));
        }
    }
    sets.push((What::Machine, all));
    // Larger sets hold smaller ones. Equal ones follow the order of `What`; of equal caches the
    // outer one, with the higher position, comes first, and data before instructions.
    let cache_order = |what: &What| match what {
        What::Cache(at) => {
            let cache = &topology.caches()[*at];
            (u8::MAX - cache.level, cache.kind == CacheKind::Instruction)
        }
        _ => (0, false),
    };
    let rank = |what: &What| match what {
        What::Machine => 0,
        What::Package(_) => 1,
        What::Group => 2,
        What::Cache(_) => 3,
        What::Core(_) => 4,
        What::Thread(_) => 5,
    };
    sets.sort_by_key(|(what, set)| {
        (
            std::cmp::Reverse(set.len()),
            rank(what),
            cache_order(what),
            set[0],
        )
    });
    link(topology, sets)
}

fn link(topology: &Topology, sets: Vec<(What, Vec<Thread>)>) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // The innermost object so far around each thread.
    let mut around: Vec<usize> = vec![0; topology.threads().len()];
    for (what, threads) in sets {
        let at = objects.len();
        if what != What::Machine {
            objects[around[threads[0].index()]].children.push(at);
        }
        for thread in &threads {
            around[thread.index()] = at;
        }
        objects.push(Object {
            what,
            threads,
            children: Vec::new(),
            nodes: Vec::new(),
        });
    }
    for at in 0..objects.len() {
        let mut children = std::mem::take(&mut objects[at].children);
        children.sort_by_key(|child| lowest(topology, &objects[*child].threads));
        objects[at].children = children;
    }
    for (number, node) in topology.nodes().iter().enumerate() {
        // The outermost of the smallest objects that hold all of the node's threads.
        let holders = objects.iter().enumerate().filter(|(_, object)| {
            !node.threads.is_empty() && node.threads.iter().all(|t| object.threads.contains(t))
        });
        let holder = holders.min_by_key(|(at, object)| (object.threads.len(), *at));
        let at = holder.map_or(0, |(at, _)| at);
        objects[at].nodes.push(Node(small(number)));
    }
    objects
}

fn nests(a: &[Thread], b: &[Thread]) -> bool {
    let common = a.iter().filter(|thread| b.contains(thread)).count();
    common == 0 || common == a.len() || common == b.len()
}

fn lowest(topology: &Topology, threads: &[Thread]) -> OsThread {
    let os = threads.iter().map(|thread| topology.os_thread(*thread));
    os.min().unwrap_or(OsThread(0))
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("parts are fewer than their numbers")
}

fn type_name(cache: &Cache) -> Option<String> {
    match (cache.kind, cache.level) {
        (CacheKind::Instruction, level @ 1..=3) => Some(format!("L{level}iCache")),
        (CacheKind::Data | CacheKind::Unified, level @ 1..=5) => Some(format!("L{level}Cache")),
        _ => None,
    }
}

struct Writer<'a> {
    topology: &'a Topology,
    text: String,
    /// hwloc's `gp_index`, unique for each object.
    next_index: u32,
    node_index: Vec<u32>,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        _ = writeln!(self.text, "{:1$}{text}", "", depth * 2);
    }

    fn index(&mut self) -> u32 {
        self.next_index += 1;
        self.next_index - 1
    }

    fn object(&mut self, objects: &[Object], at: usize, extras: &Extras, depth: usize) {
        let object = &objects[at];
        let cpus: Vec<u32> = self.os(&object.threads);
        let mut complete = cpus.clone();
        let nodes = self.nodes_of(object);
        let mut head = match object.what {
            What::Machine => "type=\"Machine\" os_index=\"0\"".to_owned(),
            What::Package(number) => {
                let os = self.topology.packages()[number as usize].os;
                format!("type=\"Package\" os_index=\"{}\"", os.0)
            }
            What::Group => "type=\"Group\"".to_owned(),
            What::Cache(number) => {
                let name = type_name(&self.topology.caches()[number]).unwrap_or_default();
                format!("type=\"{name}\"")
            }
            What::Core(number) => format!("type=\"Core\" os_index=\"{number}\""),
            What::Thread(thread) => {
                format!(
                    "type=\"PU\" os_index=\"{}\"",
                    self.topology.os_thread(thread).0
                )
            }
        };
        if object.what == What::Machine {
            complete.extend(self.topology.offline().iter().map(|os| os.0));
        }
        head.push_str(&self.sets(&cpus, &complete, &nodes, object.what == What::Machine));
        match object.what {
            What::Cache(number) => {
                head.push_str(&cache_attributes(&self.topology.caches()[number]))
            }
            What::Group => head.push_str(" kind=\"0\" subkind=\"0\""),
            _ => {}
        }
        if object.children.is_empty() && object.nodes.is_empty() {
            self.line(depth, &format!("<object {head}/>"));
            return;
        }
        self.line(depth, &format!("<object {head}>"));
        if object.what == What::Machine {
            for (name, value) in &extras.about {
                let (name, value) = (escape(name), escape(value));
                let info = format!("<info name=\"{name}\" value=\"{value}\"/>");
                self.line(depth + 1, &info);
            }
        }
        for node in &object.nodes {
            self.node(*node, depth + 1);
        }
        for child in &object.children {
            self.object(objects, *child, extras, depth + 1);
        }
        self.line(depth, "</object>");
    }

    fn sets(&mut self, cpus: &[u32], complete: &[u32], nodes: &[u32], is_root: bool) -> String {
        let cpus_text = bitmap::write(cpus.iter().copied());
        let complete = bitmap::write(complete.iter().copied());
        let nodes = bitmap::write(nodes.iter().copied());
        let (allowed_cpus, allowed_nodes) = if is_root {
            (
                format!(" allowed_cpuset=\"{cpus_text}\""),
                format!(" allowed_nodeset=\"{nodes}\""),
            )
        } else {
            (String::new(), String::new())
        };
        let index = self.index();
        format!(
            " cpuset=\"{cpus_text}\" complete_cpuset=\"{complete}\"{allowed_cpus} \
             nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\"{allowed_nodes} gp_index=\"{index}\""
        )
    }

    /// The nodes near an object: those of its threads, and for the machine all.
    fn nodes_of(&self, object: &Object) -> Vec<u32> {
        if object.what == What::Machine {
            return self.topology.nodes().iter().map(|node| node.os.0).collect();
        }
        let nodes: BTreeSet<Node> = object
            .threads
            .iter()
            .map(|thread| self.topology.thread(*thread).node)
            .collect();
        nodes
            .iter()
            .map(|node| self.topology.nodes()[node.index()].os.0)
            .collect()
    }

    fn os(&self, threads: &[Thread]) -> Vec<u32> {
        let os = threads
            .iter()
            .map(|thread| self.topology.os_thread(*thread).0);
        os.collect()
    }

    fn node(&mut self, node: Node, depth: usize) {
        let parts = &self.topology.nodes()[node.index()];
        let cpus = self.os(&parts.threads);
        self.node_index[node.index()] = self.next_index;
        let sets = self.sets(&cpus, &cpus, &[parts.os.0], false);
        let memory = parts.memory.filter(|memory| memory.0 > 0);
        let memory = memory.map_or(String::new(), |m| format!(" local_memory=\"{}\"", m.0));
        let os = parts.os.0;
        let object = format!("<object type=\"NUMANode\" os_index=\"{os}\"{sets}{memory}/>");
        self.line(depth, &object);
    }

    fn matrix(&mut self, matrix: &Matrix) -> Result<(), HwlocError> {
        let error = || HwlocError::BadMatrix(matrix.name.clone());
        let (kind, numbers): (&str, Vec<u32>) = match &matrix.of {
            MatrixOf::Threads(threads) => {
                let known = |os: &&OsThread| self.topology.thread_of(**os).is_some();
                ("PU", threads.iter().filter(known).map(|os| os.0).collect())
            }
            MatrixOf::Nodes(nodes) => {
                let known = |os: &&OsNode| self.topology.node_of(**os).is_some();
                (
                    "NUMANode",
                    nodes.iter().filter(known).map(|os| os.0).collect(),
                )
            }
        };
        let count = matrix.rows.len();
        let unique: BTreeSet<&u32> = numbers.iter().collect();
        let is_square = matrix.rows.iter().all(|row| row.len() == count);
        if !is_square || unique.len() != count || numbers.len() != count {
            return Err(error());
        }
        // hwloc refuses matrices of fewer than two objects.
        if count > 1 {
            // From the user (2); latencies (4) or bandwidths (8).
            let meaning = match matrix.meaning {
                Meaning::Latency => 2 + 4,
                Meaning::Bandwidth => 2 + 8,
            };
            self.distances(&matrix.name, kind, meaning, &numbers, &matrix.rows);
        }
        Ok(())
    }

    fn distances(&mut self, name: &str, of: &str, kind: u32, numbers: &[u32], rows: &[Vec<u64>]) {
        let count = numbers.len();
        if count < 2 {
            return;
        }
        let name = escape(name);
        let head = format!(
            "<distances2 type=\"{of}\" nbobjs=\"{count}\" kind=\"{kind}\" name=\"{name}\" \
             indexing=\"os\">"
        );
        self.line(1, &head);
        let numbers: String = numbers.iter().map(|number| format!("{number} ")).collect();
        let length = numbers.len();
        self.line(
            2,
            &format!("<indexes length=\"{length}\">{numbers}</indexes>"),
        );
        for row in rows {
            let values: String = row.iter().map(|value| format!("{value} ")).collect();
            let length = values.len();
            self.line(
                2,
                &format!("<u64values length=\"{length}\">{values}</u64values>"),
            );
        }
        self.line(1, "</distances2>");
    }

    /// Lower latency is better, higher bandwidth is better; both are seen from an initiator.
    fn memory(&mut self, extras: &Extras) -> Result<(), HwlocError> {
        for (meaning, name, flags) in [
            (Meaning::Latency, "Latency", 6),
            (Meaning::Bandwidth, "Bandwidth", 5),
        ] {
            let figures = extras
                .memory
                .iter()
                .filter(|figure| figure.meaning == meaning);
            let mut lines = Vec::new();
            for figure in figures {
                let error = HwlocError::BadMemoryFigure(figure.node);
                let Some(node) = self.topology.node_of(figure.node) else {
                    return Err(error);
                };
                let known = |os: &OsThread| self.topology.thread_of(*os).is_some();
                if figure.from.is_empty() || !figure.from.iter().all(known) {
                    return Err(error);
                }
                lines.push(format!(
                    "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{}\" \
                     value=\"{}\" initiator_cpuset=\"{}\"/>",
                    self.node_index[node.index()],
                    figure.value,
                    bitmap::write(figure.from.iter().map(|os| os.0)),
                ));
            }
            if !lines.is_empty() {
                self.line(1, &format!("<memattr name=\"{name}\" flags=\"{flags}\">"));
                for line in lines {
                    self.line(2, &line);
                }
                self.line(1, "</memattr>");
            }
        }
        Ok(())
    }
}

fn cache_attributes(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Unified => 0,
        CacheKind::Data => 1,
        CacheKind::Instruction => 2,
    };
    // hwloc writes 0 for unknown, and −1 for fully associative.
    format!(
        " cache_size=\"{}\" depth=\"{}\" cache_linesize=\"{}\" cache_associativity=\"{}\" \
         cache_type=\"{kind}\"",
        cache.size.0,
        cache.level,
        cache.line.unwrap_or(0),
        cache.ways.unwrap_or(0),
    )
}

/// Escapes attributes. Characters that XML cannot hold become question marks.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            c if c.is_control() => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
