//! Reader of hwloc's XML.

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::bitmap;
use super::{Extras, HwlocError, Imported, Matrix, MatrixOf, Meaning, MemoryFigure};
use crate::topology::{
    Builder, Bytes, CacheKind, CacheSpec, NodeSpec, OsNode, OsPackage, OsThread, ThreadSpec,
};

/// Reads the XML of hwloc 2 or of [`export`](super::export()).
///
/// # Errors
/// Text that is not XML, XML of another kind or version, objects without required attributes, and
/// machines that contradict themselves.
pub fn import(text: &str) -> Result<Imported, HwlocError> {
    let mut reader = Reader::from_str(text);
    let mut document = Document::default();
    let mut depth = 0usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                depth += 1;
                document.open(&element)?;
            }
            Ok(Event::Empty(element)) => {
                let name = document.open(&element)?;
                document.close(&name)?;
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                document.close(element.name().into_inner())?;
            }
            Ok(Event::Text(text)) => document.text(&text.xml10_content()),
            Ok(Event::Eof) if depth > 0 => {
                return Err(HwlocError::Xml("the text ends too early".into()));
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => return Err(HwlocError::Xml(error.to_string())),
        }
    }
    document.finish()
}

type Attributes = BTreeMap<String, String>;

#[derive(Default)]
struct Document {
    is_hwloc: bool,
    /// The open objects, by type and attributes.
    open: Vec<(String, Attributes)>,
    threads: Vec<Thread>,
    nodes: Vec<Node>,
    caches: Vec<Cache>,
    complete: BTreeSet<u32>,
    cores: u32,
    packages: u32,
    about: Vec<(String, String)>,
    matrix: Option<RawMatrix>,
    matrices: Vec<RawMatrix>,
    attribute: Option<String>,
    figures: Vec<(String, Attributes)>,
    inside: String,
    by_index: BTreeMap<String, (String, u32)>,
    notes: Vec<String>,
}

struct Thread {
    os: u32,
    core: Option<u32>,
    package: Option<u32>,
}

struct Node {
    spec: NodeSpec,
    threads: BTreeSet<u32>,
}

struct Cache {
    spec: CacheSpec,
    threads: BTreeSet<u32>,
}

#[derive(Default)]
struct RawMatrix {
    of: String,
    name: String,
    kind: u32,
    by_index: bool,
    numbers: Vec<String>,
    values: Vec<u64>,
}

impl Document {
    /// Takes an element and returns its name.
    fn open(&mut self, element: &BytesStart) -> Result<String, HwlocError> {
        let name = element.name().into_inner().to_owned();
        let mut attributes = Attributes::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| HwlocError::Xml(error.to_string()))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| HwlocError::Xml(error.to_string()))?;
            attributes.insert(attribute.key.into_inner().to_owned(), value.into_owned());
        }
        self.inside.clone_from(&name);
        if !self.is_hwloc {
            let version = attributes.get("version").map(String::as_str);
            if name != "topology" || !version.is_some_and(|v| v.starts_with("2.")) {
                let version = version.unwrap_or("none");
                return Err(HwlocError::NotHwloc(format!(
                    "`{name}` of version {version}"
                )));
            }
            self.is_hwloc = true;
            return Ok(name);
        }
        match name.as_str() {
            "object" => self.object(attributes)?,
            "info" if self.open.len() == 1 => {
                if let (Some(name), Some(value)) = (attributes.get("name"), attributes.get("value"))
                {
                    self.about.push((name.clone(), value.clone()));
                }
            }
            "distances2" => {
                let text = |key: &str| attributes.get(key).cloned().unwrap_or_default();
                self.matrix = Some(RawMatrix {
                    of: text("type"),
                    name: text("name"),
                    kind: text("kind").parse().unwrap_or(0),
                    by_index: text("indexing") == "gp",
                    ..RawMatrix::default()
                });
            }
            "distances2hetero" => {
                let name = attributes
                    .get("name")
                    .map_or("without name", String::as_str);
                let note = format!("the matrix `{name}` is of objects of several types; left out");
                self.notes.push(note);
            }
            "memattr" => self.attribute = attributes.get("name").cloned(),
            "memattr_value" => {
                if let Some(name) = &self.attribute {
                    self.figures.push((name.clone(), attributes));
                }
            }
            _ => {}
        }
        Ok(name)
    }

    fn object(&mut self, attributes: Attributes) -> Result<(), HwlocError> {
        let kind = attributes.get("type").cloned().unwrap_or_default();
        if let (Some(index), Ok(os)) = (
            attributes.get("gp_index"),
            number::<u32>(&attributes, &kind, "os_index"),
        ) {
            self.by_index.insert(index.clone(), (kind.clone(), os));
        }
        match kind.as_str() {
            "Machine" => self.complete = set(&attributes, "complete_cpuset").unwrap_or_default(),
            "Package" => self.packages += 1,
            "Core" => self.cores += 1,
            "PU" => self.threads.push(Thread {
                os: number(&attributes, &kind, "os_index")?,
                core: self.around("Core").map(|_| self.cores),
                package: match self.around("Package") {
                    Some(package) => {
                        // A package without a number is numbered by its turn.
                        Some(number(package, "Package", "os_index").unwrap_or(self.packages))
                    }
                    None => None,
                },
            }),
            "NUMANode" => self.nodes.push(Node {
                spec: NodeSpec {
                    os: OsNode(number(&attributes, &kind, "os_index")?),
                    memory: number(&attributes, &kind, "local_memory").ok().map(Bytes),
                },
                threads: set(&attributes, "cpuset").unwrap_or_default(),
            }),
            _ if kind.starts_with('L') && kind.ends_with("Cache") => {
                self.cache(&kind, &attributes)?;
            }
            _ => {}
        }
        self.open.push((kind, attributes));
        Ok(())
    }

    fn cache(&mut self, kind: &str, attributes: &Attributes) -> Result<(), HwlocError> {
        let known = |n: &u32| *n > 0;
        let spec = CacheSpec {
            level: number(attributes, kind, "depth")?,
            kind: match number(attributes, kind, "cache_type").unwrap_or(0u32) {
                1 => CacheKind::Data,
                2 => CacheKind::Instruction,
                _ => CacheKind::Unified,
            },
            size: Bytes(number(attributes, kind, "cache_size")?),
            line: number(attributes, kind, "cache_linesize")
                .ok()
                .filter(known),
            // −1, fully associative, is not a number here: unknown.
            ways: number(attributes, kind, "cache_associativity")
                .ok()
                .filter(known),
            threads: Vec::new(),
        };
        if spec.size.0 == 0 {
            self.notes
                .push(format!("an {kind} without a size is left out"));
            return Ok(());
        }
        let threads = set(attributes, "cpuset").ok_or(HwlocError::Attribute {
            element: kind.to_owned(),
            attribute: "cpuset",
        })?;
        self.caches.push(Cache { spec, threads });
        Ok(())
    }

    /// The attributes of the enclosing object of that type.
    fn around(&self, kind: &str) -> Option<&Attributes> {
        let mut open = self.open.iter().rev();
        open.find(|(open, _)| open == kind)
            .map(|(_, attributes)| attributes)
    }

    fn text(&mut self, text: &str) {
        let Some(matrix) = &mut self.matrix else {
            return;
        };
        match self.inside.as_str() {
            "indexes" => matrix
                .numbers
                .extend(text.split_whitespace().map(str::to_owned)),
            "u64values" => {
                // A word that is not a number leaves the matrix short, which its end notices.
                let values = text
                    .split_whitespace()
                    .filter_map(|value| value.parse::<u64>().ok());
                matrix.values.extend(values);
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) -> Result<(), HwlocError> {
        self.inside.clear();
        match name {
            "object" => _ = self.open.pop(),
            "memattr" => self.attribute = None,
            "distances2" => {
                if let Some(matrix) = self.matrix.take() {
                    let count = matrix.numbers.len();
                    if count.checked_mul(count) != Some(matrix.values.len()) {
                        return Err(HwlocError::BadMatrix(matrix.name));
                    }
                    self.matrices.push(matrix);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Imported, HwlocError> {
        if !self.is_hwloc {
            return Err(HwlocError::NotHwloc("a text without `topology`".into()));
        }
        let mut builder = Builder::new();
        let online: BTreeSet<u32> = self.threads.iter().map(|thread| thread.os).collect();
        // Of the nodes around a thread, the smallest is its own.
        let home = |os: u32| {
            let nodes = self.nodes.iter().filter(|node| node.threads.contains(&os));
            let home = nodes.min_by_key(|node| node.threads.len());
            home.or(self.nodes.first())
                .map_or(OsNode(0), |node| node.spec.os)
        };
        let cores = self.cores;
        for thread in &self.threads {
            builder.thread(ThreadSpec {
                os: OsThread(thread.os),
                // Threads outside cores become cores of their own, numbered after the others.
                core: thread.core.unwrap_or(cores + 1 + thread.os),
                package: OsPackage(thread.package.unwrap_or(0)),
                node: home(thread.os),
            });
        }
        // hwloc leaves out zeros: nodes without a size have none, unless no node has a size.
        let any_memory = self.nodes.iter().any(|node| node.spec.memory.is_some());
        for node in &self.nodes {
            builder.node(NodeSpec {
                os: node.spec.os,
                memory: node.spec.memory.or(any_memory.then_some(Bytes(0))),
            });
        }
        for os in self.complete.difference(&online) {
            builder.offline(OsThread(*os));
        }
        for cache in &self.caches {
            let threads = cache.threads.intersection(&online);
            let threads = threads.map(|os| OsThread(*os)).collect();
            builder.cache(CacheSpec {
                threads,
                ..cache.spec.clone()
            });
        }
        let mut extras = Extras {
            about: std::mem::take(&mut self.about),
            ..Extras::default()
        };
        for raw in std::mem::take(&mut self.matrices) {
            self.take_matrix(raw, &mut builder, &mut extras);
        }
        for (name, attributes) in std::mem::take(&mut self.figures) {
            match self.figure(&name, &attributes) {
                Some(figure) => extras.memory.push(figure),
                None => {
                    let note = format!("a value of the memory attribute `{name}` is left out");
                    self.notes.push(note);
                }
            }
        }
        Ok(Imported {
            topology: builder.build().map_err(HwlocError::Topology)?,
            extras,
            notes: self.notes,
        })
    }

    fn take_matrix(&mut self, raw: RawMatrix, builder: &mut Builder, extras: &mut Extras) {
        let numbers: Option<Vec<u32>> = raw
            .numbers
            .iter()
            .map(|number| match raw.by_index {
                true => Some(self.by_index.get(number)?.1),
                false => number.parse().ok(),
            })
            .collect();
        let count = raw.numbers.len();
        let rows: Vec<Vec<u64>> = raw
            .values
            .chunks(count.max(1))
            .map(<[u64]>::to_vec)
            .collect();
        let of = numbers.and_then(|numbers| match raw.of.as_str() {
            "PU" => Some(MatrixOf::Threads(
                numbers.into_iter().map(OsThread).collect(),
            )),
            "NUMANode" => Some(MatrixOf::Nodes(numbers.into_iter().map(OsNode).collect())),
            _ => None,
        });
        let small = |d: &u64| u32::try_from(*d).ok().filter(|d| *d > 0);
        match of {
            // Bit 0: from the operating system, which means the firmware.
            Some(MatrixOf::Nodes(nodes)) if raw.kind & 1 != 0 && raw.kind & 4 != 0 => {
                let rows: Option<Vec<Vec<u32>>> = rows
                    .iter()
                    .map(|row| row.iter().map(small).collect())
                    .collect();
                match rows {
                    Some(rows) if nodes.len() == self.nodes.len() => {
                        builder.distances(nodes, rows);
                    }
                    _ => self
                        .notes
                        .push("the firmware's distances are left out".into()),
                }
            }
            Some(of) => extras.matrices.push(Matrix {
                name: raw.name,
                of,
                meaning: if raw.kind & 8 != 0 {
                    Meaning::Bandwidth
                } else {
                    Meaning::Latency
                },
                rows,
            }),
            None => {
                let note = format!("the matrix `{}` of {} is left out", raw.name, raw.of);
                self.notes.push(note);
            }
        }
    }

    fn figure(&self, name: &str, attributes: &Attributes) -> Option<MemoryFigure> {
        let meaning = match name {
            "Latency" => Meaning::Latency,
            "Bandwidth" => Meaning::Bandwidth,
            _ => return None,
        };
        let target = attributes.get("target_obj_gp_index")?;
        let (kind, node) = self.by_index.get(target)?;
        let from = set(attributes, "initiator_cpuset").filter(|from| !from.is_empty())?;
        (kind == "NUMANode").then_some(MemoryFigure {
            node: OsNode(*node),
            from: from.into_iter().map(OsThread).collect(),
            meaning,
            value: attributes.get("value")?.parse().ok()?,
        })
    }
}

fn set(attributes: &Attributes, name: &str) -> Option<BTreeSet<u32>> {
    bitmap::read(attributes.get(name)?)
}

fn number<T: std::str::FromStr>(
    attributes: &Attributes,
    element: &str,
    attribute: &'static str,
) -> Result<T, HwlocError> {
    let value = attributes
        .get(attribute)
        .and_then(|value| value.parse().ok());
    value.ok_or(HwlocError::Attribute {
        element: element.to_owned(),
        attribute,
    })
}
