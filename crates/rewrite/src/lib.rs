//! Graphs rewritten by rules, with the same result for every number of threads.
//!
//! - [`schema`]: types of vertices and edges, with attributes. [`graph`]: the store.
//! - [`rule`]: rules in code; [`text`]: rules in a text.
//! - [`engine`]: rules applied until none matches; [`rewrite`] is the way in.
//! - [`forms`]: graphs from other tools' files, and for them.
//!
//! Inside: `compile` looks names up, `plan` chooses in which order to search, `search` finds
//! matches, `words` and `select` choose among those that overlap, `apply` changes the graph.
//!
//! This crate must never know what a graph stands for, and never read or write a file.
//!
//! ```
//! use hearth_rewrite::{Graph, Options, VertexId, read_rules, rewrite};
//!
//! let text = r#"
//!     vertex Video { views: int, popular: bool }
//!     edge related;
//!     rule spread {
//!         match a: Video -[related]-> b: Video;
//!         if a.popular and not b.popular and b.views >= 100;
//!         set b.popular = true;
//!     }
//! "#;
//! let read = read_rules(text)?;
//! let mut graph = Graph::new(read.schema.build()?);
//! let videos: Vec<VertexId> = (0..4).map(|_| graph.add_vertex(0)).collect();
//! for (video, views) in videos.iter().zip([500, 300, 200, 7]) {
//!     assert!(graph.set_value(*video, "views", &hearth_rewrite::Value::Int(views)));
//! }
//! for pair in videos.windows(2) {
//!     graph.add_edge(0, pair[0], pair[1]);
//! }
//! assert!(graph.set_value(videos[0], "popular", &hearth_rewrite::Value::Bool(true)));
//! let outcome = rewrite(&mut graph, &read.rules, &Options::default())?;
//! assert_eq!(outcome.applications(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod schema;

pub mod graph;

pub mod rule;

pub mod text;

mod code;
mod compile;
mod plan;
mod search;

mod apply;
mod select;
mod words;

pub mod engine;

pub mod forms;

pub use code::ELEMENTS_MAX;
pub use engine::{Options, Outcome, RewriteError, Sharing, describe_plans, rewrite};
pub use graph::{EdgeId, Graph, VertexId};
pub use rule::{Expression, Pattern, Rule, RuleError};
pub use schema::{Kind, Schema, SchemaBuilder, Sort, Value};
pub use text::read_rules;
