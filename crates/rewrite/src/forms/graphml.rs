//! GraphML: the form of yEd, networkx, igraph, Gephi and others.
//!
//! An attribute called `type` names the type of a vertex or edge. Undirected edges become one edge
//! in each direction. Nested graphs and hyperedges are refused, ports are ignored.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::xml::{Item, Items, escaped, local, value};
use super::{FormError, Loose, LooseEdge, LooseValue, LooseValues, Places, TYPE};
use crate::graph::Graph;
use crate::schema::{Kind, Types};

const FORM: &str = "GraphML";

struct Key {
    /// `node`, `edge` or `all`.
    sort: String,
    name: String,
    kind: Kind,
    default: Option<String>,
}

/// Reads a graph.
///
/// # Errors
/// Text that is not GraphML of the kinds above.
pub fn read(text: &str) -> Result<Loose, FormError> {
    let mut items = Items::new(FORM, text);
    let mut reader = GraphmlReader::default();
    let mut has_root = false;
    while let Some(item) = items.next()? {
        match item {
            Item::Open(name, attributes) => {
                has_root |= local(&name) == "graphml";
                if !has_root {
                    let message = format!("it begins with `{name}`, not with `graphml`");
                    return Err(items.fault(message));
                }
                reader.open(&items, local(&name), &attributes)?;
            }
            Item::Close => reader.close(&items)?,
            Item::Text(text) => reader.text += &text,
        }
    }
    if !has_root {
        return Err(items.fault("there is no `graphml` in it"));
    }
    let missing = reader
        .loose
        .vertices
        .iter()
        .find(|one| !reader.declared.contains(&one.name));
    if let Some(vertex) = missing {
        let message = format!("an edge names `{}`, which is no node: add it", vertex.name);
        return Err(items.fault(message));
    }
    Ok(reader.loose)
}

#[derive(Default)]
struct GraphmlReader {
    loose: Loose,
    places: Places,
    declared: HashSet<String>,
    keys: HashMap<String, Key>,
    /// Names of open elements.
    open: Vec<String>,
    is_directed: bool,
    text: String,
    /// Key of the `key` or `data` element that is open.
    key: String,
    values: LooseValues,
    of: Option<String>,
    /// Source, target and direction of the open edge.
    edge: (usize, usize, bool),
    vertex: usize,
}

impl GraphmlReader {
    fn open(
        &mut self,
        items: &Items<'_>,
        name: &str,
        attributes: &[(String, String)],
    ) -> Result<(), FormError> {
        let get = |wanted: &str| {
            value(attributes, wanted)
                .ok_or_else(|| items.fault(format!("`{name}` has no `{wanted}`: add it")))
        };
        match name {
            "key" => {
                let word = value(attributes, "attr.type").unwrap_or("string");
                let kind = Kind::from_word(word).ok_or_else(|| {
                    let known = "int, long, float, double, boolean or string";
                    items.fault(format!("`{word}` is not a kind of values: write {known}"))
                })?;
                self.key = get("id")?.to_owned();
                let key = Key {
                    sort: value(attributes, "for").unwrap_or("all").to_owned(),
                    name: value(attributes, "attr.name")
                        .unwrap_or(&self.key)
                        .to_owned(),
                    kind,
                    default: None,
                };
                self.keys.insert(self.key.clone(), key);
            }
            "graph"
                if self
                    .open
                    .iter()
                    .any(|open| open == "node" || open == "graph") =>
            {
                return Err(items.fault("a graph is inside another: flatten it"));
            }
            "graph" => {
                self.is_directed = value(attributes, "edgedefault") != Some("undirected");
            }
            "node" => {
                let id = get("id")?;
                if !self.declared.insert(id.to_owned()) {
                    return Err(items.fault(format!("the node `{id}` is there twice")));
                }
                self.vertex = self.places.of(&mut self.loose, id);
            }
            "edge" => {
                let source = self.places.of(&mut self.loose, get("source")?);
                let target = self.places.of(&mut self.loose, get("target")?);
                let is_directed = match value(attributes, "directed") {
                    Some(word) => word == "true",
                    None => self.is_directed,
                };
                self.edge = (source, target, is_directed);
            }
            "data" => self.key = get("key")?.to_owned(),
            "hyperedge" => {
                return Err(items.fault("hyperedges are not read: write edges instead"));
            }
            _ => {}
        }
        self.open.push(name.to_owned());
        self.text.clear();
        Ok(())
    }

    fn close(&mut self, items: &Items<'_>) -> Result<(), FormError> {
        let name = self.open.pop().unwrap_or_default();
        let text = std::mem::take(&mut self.text);
        match name.as_str() {
            "default" => {
                if let Some(key) = self.keys.get_mut(&self.key) {
                    key.default = Some(text);
                }
            }
            "data" => {
                let inside = self.open.last().map(String::as_str);
                if !matches!(inside, Some("node" | "edge")) {
                    return Ok(());
                }
                let Some(key) = self.keys.get(&self.key) else {
                    let message = format!("no `key` is called `{}`: declare it", self.key);
                    return Err(items.fault(message));
                };
                if key.name == TYPE {
                    self.of = Some(text);
                } else {
                    let value = LooseValue {
                        kind: Some(key.kind),
                        word: text,
                    };
                    self.values.push((key.name.clone(), value));
                }
            }
            "node" => {
                let (of, values) = self.element("node");
                let vertex = &mut self.loose.vertices[self.vertex];
                (vertex.of, vertex.values) = (of, values);
            }
            "edge" => {
                let (of, values) = self.element("edge");
                let (source, target, is_directed) = self.edge;
                let edge = LooseEdge {
                    of,
                    source,
                    target,
                    values,
                };
                if !is_directed {
                    self.loose.edges.push(LooseEdge {
                        source: target,
                        target: source,
                        ..edge.clone()
                    });
                }
                self.loose.edges.push(edge);
            }
            _ => {}
        }
        Ok(())
    }

    /// Type and values of the element that ends, with defaults.
    fn element(&mut self, sort: &str) -> (Option<String>, LooseValues) {
        let mut values = std::mem::take(&mut self.values);
        let mut of = self.of.take();
        let mut defaults: Vec<&Key> = self
            .keys
            .values()
            .filter(|key| key.default.is_some() && (key.sort == sort || key.sort == "all"))
            .collect();
        defaults.sort_by(|a, b| a.name.cmp(&b.name));
        for key in defaults {
            let word = key.default.clone().unwrap_or_default();
            if key.name == TYPE {
                of = of.or(Some(word));
            } else if !values.iter().any(|(name, _)| *name == key.name) {
                let kind = Some(key.kind);
                values.push((key.name.clone(), LooseValue { kind, word }));
            }
        }
        (of, values)
    }
}

/// Writes a graph. `names` are those of its vertices by number; others are called `v` and their
/// number, or longer where that is taken.
pub fn write(graph: &Graph, names: &[String]) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    let vertex_keys = keys(&mut text, "node", "v", &graph.schema().vertices);
    let edge_keys = keys(&mut text, "edge", "e", &graph.schema().edges);
    text += "  <graph edgedefault=\"directed\">\n";
    let names = all_names(graph, names);
    for vertex in graph.vertices() {
        let of = graph.type_of(vertex);
        let name = escaped(&names[vertex.0 as usize]);
        let _ = writeln!(text, "    <node id=\"{name}\">");
        data(&mut text, "vt", &of.name);
        for attribute in &of.attributes {
            let key = &vertex_keys[&(attribute.name.clone(), attribute.kind)];
            let value = graph
                .value(vertex, &attribute.name)
                .expect("the type has it");
            data(&mut text, key, &value.to_string());
        }
        text += "    </node>\n";
    }
    for edge in graph.edges() {
        let of = graph.type_of_edge(edge);
        let (source, target) = graph.ends(edge);
        let name = |vertex: u32| escaped(&names[vertex as usize]);
        let (source, target) = (name(source.0), name(target.0));
        let _ = writeln!(
            text,
            "    <edge id=\"e{}\" source=\"{source}\" target=\"{target}\">",
            edge.0
        );
        data(&mut text, "et", &of.name);
        for attribute in &of.attributes {
            let key = &edge_keys[&(attribute.name.clone(), attribute.kind)];
            let value = graph
                .edge_value(edge, &attribute.name)
                .expect("the type has it");
            data(&mut text, key, &value.to_string());
        }
        text += "    </edge>\n";
    }
    text += "  </graph>\n</graphml>\n";
    text
}

fn data(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "      <data key=\"{key}\">{}</data>", escaped(value));
}

/// Declares all attributes of one sort; returns their keys.
fn keys(
    text: &mut String,
    sort: &str,
    letter: &str,
    types: &Types,
) -> HashMap<(String, Kind), String> {
    let _ = writeln!(
        text,
        "  <key id=\"{letter}t\" for=\"{sort}\" attr.name=\"{TYPE}\" attr.type=\"string\"/>"
    );
    let mut keys = HashMap::new();
    for attribute in types.iter().flat_map(|of| &of.attributes) {
        let pair = (attribute.name.clone(), attribute.kind);
        if keys.contains_key(&pair) {
            continue;
        }
        let key = format!("{letter}{}", keys.len());
        let word = match attribute.kind {
            Kind::Int => "long",
            Kind::Float => "double",
            Kind::Bool => "boolean",
            Kind::Text => "string",
        };
        let name = escaped(&attribute.name);
        let _ = writeln!(
            text,
            "  <key id=\"{key}\" for=\"{sort}\" attr.name=\"{name}\" attr.type=\"{word}\"/>"
        );
        keys.insert(pair, key);
    }
    keys
}

/// A name for each vertex that ever was, no two the same.
fn all_names(graph: &Graph, names: &[String]) -> Vec<String> {
    let taken: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut all = names.to_vec();
    for number in names.len()..graph.vertex_end() as usize {
        let mut name = format!("v{number}");
        while taken.contains(name.as_str()) {
            name.insert(0, 'v');
        }
        all.push(name);
    }
    all
}
