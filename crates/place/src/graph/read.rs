//! JSON form of a graph, and its errors.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Basis, Component, Connection, FORMAT, Graph, Number, Round};

/// A number as files have it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum NumberForm {
    Bare(f64),
    Full {
        value: f64,
        #[serde(default)]
        basis: Basis,
    },
}

impl From<NumberForm> for Number {
    fn from(form: NumberForm) -> Self {
        match form {
            NumberForm::Bare(value) => Self::declared(value),
            NumberForm::Full { value, basis } => Self { value, basis },
        }
    }
}

/// Reason why a text or a graph cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// The text is not JSON, or a field is not as it must be.
    #[error(
        "the graph cannot be read at line {line}, column {column}: {reason}; mend that place, or write the graph again"
    )]
    Text {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The parser's explanation.
        reason: String,
    },
    /// JSON without a graph's `format`.
    #[error(
        "this JSON is not a graph, since it has no number `format`: name a file that holds a communication graph"
    )]
    NotAGraph,
    /// A format that this Hearth does not know.
    #[error("the graph has format {format} and this Hearth reads up to {format}: use a newer Hearth, or write the graph again with this one", format = FORMAT)]
    Newer {
        /// The file's format.
        format: u32,
    },
    /// A number that is negative or not finite.
    #[error("`{field}` of {whose} is negative or not finite: write a number of at least 0")]
    Number {
        /// The component or connection.
        whose: String,
        /// The field.
        field: &'static str,
    },
    /// Two components with the same name.
    #[error("two components have the name `{name}`: give each its own")]
    Twice {
        /// The name.
        name: String,
    },
    /// A component without a name.
    #[error("component {component} has no name: give it one")]
    Nameless {
        /// Its number.
        component: usize,
    },
    /// A connection to a component that does not exist.
    #[error(
        "connection {connection} names component {component}, and the graph has {count}: count components from 0 in the order of the file"
    )]
    NoSuchComponent {
        /// The connection's number.
        connection: usize,
        /// The component's number.
        component: u32,
        /// Number of components.
        count: usize,
    },
}

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(flatten)]
    graph: &'a Graph,
}

#[derive(Deserialize)]
struct Header {
    format: Option<u32>,
}

/// Required fields of a component are checked afterwards, with better messages.
#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    round: Round,
    #[serde(default)]
    components: Vec<Component>,
    #[serde(default)]
    connections: Vec<Connection>,
}

fn text(error: &serde_json::Error) -> GraphError {
    GraphError::Text {
        line: error.line(),
        column: error.column(),
        reason: reason(error),
    }
}

/// The fault of a JSON text without its place.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the file ends too early".to_owned();
    }
    let full = error.to_string();
    // The parser's message ends with the place; ours says it elsewhere.
    full.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

impl Graph {
    /// Reads a graph's file:
    ///
    /// ```json
    /// {
    ///   "format": 1,
    ///   "round": "pass",
    ///   "components": [
    ///     {"name": "maker", "type_name": "Maker", "work_ns": 800,
    ///      "passes": {"value": 1, "basis": "assumed"}, "heap_bytes": 4096,
    ///      "working_set_bytes": {"value": 65536, "basis": "predicted"}, "pinned": 2},
    ///     {"name": "taker", "work_ns": {"value": 900, "basis": "seen"}}
    ///   ],
    ///   "connections": [
    ///     {"from": 0, "to": 1, "messages": 1, "bytes": 64, "kind": "moved", "turn": "free"}
    ///   ]
    /// }
    /// ```
    ///
    /// `round` is `pass`, `second` or `run`. A bare number is declared; others have their basis:
    /// `assumed`, `predicted`, `declared`, `seen`. `kind` is `copied` or `moved`, `turn` is `free`,
    /// `request` or `answer`, `carrier` is `threads`, `spin` or `worker`. Only `format`, `name`,
    /// `from` and `to` are required. Unknown fields are ignored; changes that a reader could
    /// misunderstand increase the format, and newer formats are refused.
    ///
    /// # Errors
    /// The reason why the text is not a usable graph, and what to do.
    ///
    /// ```
    /// use hearth_place::graph::Graph;
    ///
    /// let text = r#"{"format": 1, "components": [{"name": "a", "work_ns": 5}, {"name": "b"}],
    ///     "connections": [{"from": 0, "to": 1, "messages": 10, "bytes": 64}]}"#;
    /// let graph = Graph::from_json(text)?;
    /// assert_eq!(Graph::from_json(&graph.to_json())?, graph);
    /// # Ok::<(), hearth_place::graph::GraphError>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Self, GraphError> {
        let header: Header = serde_json::from_str(json).map_err(|error| text(&error))?;
        match header.format {
            None => return Err(GraphError::NotAGraph),
            Some(format) if format > FORMAT => return Err(GraphError::Newer { format }),
            Some(_) => {}
        }
        let read: Read = serde_json::from_str(json).map_err(|error| text(&error))?;
        let graph = Self {
            round: read.round,
            components: read.components,
            connections: read.connections,
        };
        graph.check()?;
        Ok(graph)
    }

    /// The graph as a file, with a component or connection a line.
    ///
    /// # Panics
    /// Never: all parts of a graph have a form in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let line = |value: Result<String, serde_json::Error>| value.expect("a part has a form");
        let all = Written {
            format: FORMAT,
            graph: &Graph {
                round: self.round,
                ..Graph::default()
            },
        };
        let head = line(serde_json::to_string(&all));
        let list = |parts: Vec<String>| match parts.is_empty() {
            true => "[]".to_owned(),
            false => format!("[\n{}\n]", parts.join(",\n")),
        };
        let components = self.components.iter();
        let components = components.map(|c| line(serde_json::to_string(c))).collect();
        let connections = self.connections.iter();
        let connections = connections
            .map(|c| line(serde_json::to_string(c)))
            .collect();
        let (before, _) = head.split_once("\"components\"").expect("it is a field");
        format!(
            "{before}\n\"components\":{},\n\"connections\":{}}}\n",
            list(components),
            list(connections)
        )
    }

    /// Checks that names are given and unique, numbers finite and not negative, and connections
    /// between existing components.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), GraphError> {
        let mut names = HashMap::with_capacity(self.components.len());
        for (at, component) in self.components.iter().enumerate() {
            if component.name.is_empty() {
                return Err(GraphError::Nameless { component: at });
            }
            if names.insert(component.name.as_str(), at).is_some() {
                let name = component.name.clone();
                return Err(GraphError::Twice { name });
            }
            check_component(component)?;
        }
        let count = self.components.len();
        for (at, connection) in self.connections.iter().enumerate() {
            for end in [connection.from, connection.to] {
                if end.index() >= count {
                    return Err(GraphError::NoSuchComponent {
                        connection: at,
                        component: end.0,
                        count,
                    });
                }
            }
            for (field, number) in [
                ("messages", connection.messages),
                ("bytes", connection.bytes),
            ] {
                if !is_sound(number) {
                    let whose = format!("connection {at}");
                    return Err(GraphError::Number { whose, field });
                }
            }
        }
        Ok(())
    }
}

fn check_component(component: &Component) -> Result<(), GraphError> {
    for (field, number) in [
        ("work_ns", component.work_ns),
        ("passes", component.passes),
        ("heap_bytes", component.heap_bytes),
        ("working_set_bytes", component.working_set_bytes),
    ] {
        if !is_sound(number) {
            let whose = format!("component `{}`", component.name);
            return Err(GraphError::Number { whose, field });
        }
    }
    Ok(())
}

fn is_sound(number: Number) -> bool {
    number.value.is_finite() && number.value >= 0.0
}
