//! Graphs from other tools' files, and for them. Texts in, texts out: nothing opens a file.
//!
//! | form | in | out |
//! |---|---|---|
//! | GraphML | [`graphml::read`] | [`graphml::write`] |
//! | DOT | [`dot::read`] | |
//! | CSV: edges, and vertices | [`csv::read`] | |
//! | XMI | [`xmi::read`] | |
//!
//! Each reader makes a [`Loose`] graph, in which types and attributes are names and values may be
//! words; [`Loose::load`] makes a graph of it, with the types that rules declare and those it
//! meets. A value's kind is the declared one, or the form's own, or else the narrowest of int,
//! float, bool and string that all values of that attribute and type have.

use std::collections::HashMap;

use thiserror::Error;

use crate::graph::{Graph, VertexId};
use crate::schema::{Kind, SchemaBuilder, SchemaError, Sort, Value};

pub mod csv;
pub mod dot;
pub mod graphml;
pub mod xmi;
mod xml;

/// The attribute that names a type in GraphML, DOT and CSV.
pub const TYPE: &str = "type";
/// Type of vertices that have none, unless exactly one is declared.
pub const VERTEX: &str = "Vertex";
/// Type of edges that have none, unless exactly one is declared.
pub const EDGE: &str = "edge";

/// A text that cannot be read as a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormError {
    /// A place in the text is wrong.
    #[error("the {form} cannot be read at line {line}: {message}")]
    Text {
        /// The expected form.
        form: &'static str,
        /// From 1.
        line: usize,
        /// The fault and how to mend it.
        message: String,
    },
    /// The types do not go together.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A value that is not of the kind of its attribute.
    #[error(
        "`{attribute}` of `{of}` is of kind {kind}, and `{word}` is not: mend the value, or declare another kind"
    )]
    Value {
        /// The type.
        of: String,
        /// Its attribute.
        attribute: String,
        /// The kind.
        kind: &'static str,
        /// The word.
        word: String,
    },
}

/// A value as a form has it.
#[derive(Clone, Debug, PartialEq)]
pub struct LooseValue {
    /// The kind that the form says; none if it knows only words.
    pub kind: Option<Kind>,
    /// The value as a word.
    pub word: String,
}

impl LooseValue {
    fn word(word: impl Into<String>) -> LooseValue {
        LooseValue {
            kind: None,
            word: word.into(),
        }
    }
}

/// Attributes by name.
pub type LooseValues = Vec<(String, LooseValue)>;

/// A vertex as a form has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LooseVertex {
    /// Its name in the file.
    pub name: String,
    /// Its type, if the file says one.
    pub of: Option<String>,
    /// Its attributes.
    pub values: LooseValues,
}

/// An edge as a form has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LooseEdge {
    /// Its type, if the file says one.
    pub of: Option<String>,
    /// Place of its source among the vertices.
    pub source: usize,
    /// Place of its target among the vertices.
    pub target: usize,
    /// Its attributes.
    pub values: LooseValues,
}

/// A graph whose types and kinds are not settled yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loose {
    /// Vertices in the order of the file.
    pub vertices: Vec<LooseVertex>,
    /// Edges in the order of the file.
    pub edges: Vec<LooseEdge>,
    /// Things left out, as sentences.
    pub notes: Vec<String>,
}

/// A graph with the names that its file has for vertices.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The graph. Its vertices have numbers in the order of the file.
    pub graph: Graph,
    /// Names of vertices by number.
    pub names: Vec<String>,
    /// Things left out, as sentences.
    pub notes: Vec<String>,
}

/// Names of places for a form's vertices, made as they are met.
#[derive(Default)]
struct Places {
    places: HashMap<String, usize>,
}

impl Places {
    /// The place of a name; a new vertex if it is new.
    fn of(&mut self, loose: &mut Loose, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = loose.vertices.len();
        self.places.insert(name.to_owned(), place);
        loose.vertices.push(LooseVertex {
            name: name.to_owned(),
            ..LooseVertex::default()
        });
        place
    }
}

/// An element of either sort, while kinds are found.
struct Element<'a> {
    sort: Sort,
    of: &'a str,
    values: &'a LooseValues,
}

impl Loose {
    /// The graph, with declared types and those that are met in it.
    ///
    /// # Errors
    /// Where types or kinds contradict each other or what is declared.
    pub fn load(self, mut schema: SchemaBuilder) -> Result<Loaded, FormError> {
        let default_vertex = schema.only(Sort::Vertex).unwrap_or(VERTEX.into());
        let default_edge = schema.only(Sort::Edge).unwrap_or(EDGE.into());
        let of_vertex =
            |vertex: &LooseVertex| vertex.of.clone().unwrap_or_else(|| default_vertex.clone());
        let of_edge = |edge: &LooseEdge| edge.of.clone().unwrap_or_else(|| default_edge.clone());
        let vertex_types: Vec<String> = self.vertices.iter().map(of_vertex).collect();
        let edge_types: Vec<String> = self.edges.iter().map(of_edge).collect();
        let vertices = self
            .vertices
            .iter()
            .zip(&vertex_types)
            .map(|(vertex, of)| Element {
                sort: Sort::Vertex,
                of,
                values: &vertex.values,
            });
        let edges = self
            .edges
            .iter()
            .zip(&edge_types)
            .map(|(edge, of)| Element {
                sort: Sort::Edge,
                of,
                values: &edge.values,
            });
        settle(&mut schema, vertices.chain(edges))?;
        let mut graph = Graph::new(schema.build()?);
        for (vertex, of) in self.vertices.iter().zip(&vertex_types) {
            let number = graph.schema().vertices.named(of).expect("met").range.first;
            let id = graph.add_vertex(number);
            for (attribute, value) in &vertex.values {
                let value = parse(&schema, Sort::Vertex, of, attribute, value)?;
                assert!(graph.set_value(id, attribute, &value), "{of}.{attribute}");
            }
        }
        for (edge, of) in self.edges.iter().zip(&edge_types) {
            let number = graph.schema().edges.named(of).expect("met").range.first;
            let ends = (VertexId(edge.source as u32), VertexId(edge.target as u32));
            let id = graph.add_edge(number, ends.0, ends.1);
            for (attribute, value) in &edge.values {
                let value = parse(&schema, Sort::Edge, of, attribute, value)?;
                assert!(
                    graph.set_edge_value(id, attribute, &value),
                    "{of}.{attribute}"
                );
            }
        }
        Ok(Loaded {
            graph,
            names: self
                .vertices
                .into_iter()
                .map(|vertex| vertex.name)
                .collect(),
            notes: self.notes,
        })
    }
}

/// Adds the types and attributes that are met, with kinds that go with all values.
fn settle<'a>(
    schema: &mut SchemaBuilder,
    elements: impl Iterator<Item = Element<'a>>,
) -> Result<(), FormError> {
    // In the order of the file, for equal files to make equal schemas.
    let mut order: Vec<(Sort, &str, &str)> = Vec::new();
    let mut kinds: HashMap<(Sort, &str, &str), Kind> = HashMap::new();
    for element in elements {
        schema.meet(element.sort, element.of);
        for (attribute, value) in element.values {
            let key = (element.sort, element.of, attribute.as_str());
            if schema.kind(element.sort, element.of, attribute).is_some() {
                continue;
            }
            let kind = value.kind.unwrap_or_else(|| narrowest(&value.word));
            kinds
                .entry(key)
                .and_modify(|there| *there = common(*there, kind))
                .or_insert_with(|| {
                    order.push(key);
                    kind
                });
        }
    }
    for key in order {
        schema.attribute(key.0, key.1, key.2, kinds[&key])?;
    }
    Ok(())
}

fn narrowest(word: &str) -> Kind {
    let kinds = [Kind::Int, Kind::Float];
    let found = kinds.into_iter().find(|kind| kind.parse(word).is_some());
    match found {
        Some(kind) => kind,
        None if ["true", "false"].contains(&word.trim()) => Kind::Bool,
        None => Kind::Text,
    }
}

fn common(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        _ if a == b => a,
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => Kind::Float,
        _ => Kind::Text,
    }
}

fn parse(
    schema: &SchemaBuilder,
    sort: Sort,
    of: &str,
    attribute: &str,
    value: &LooseValue,
) -> Result<Value, FormError> {
    let kind = schema.kind(sort, of, attribute).expect("settled");
    kind.parse(&value.word).ok_or_else(|| FormError::Value {
        of: of.to_owned(),
        attribute: attribute.to_owned(),
        kind: kind.word(),
        word: value.word.clone(),
    })
}
