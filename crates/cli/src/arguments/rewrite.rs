//! The command that rewrites graphs by rules.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

/// Apply rules to a graph until none matches.
///
/// The result is the same for every number of threads.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth rewrite videos.graphml spread.rules --out after.graphml
  hearth rewrite edges.csv merge.rules --vertices vertices.csv --threads 2
  hearth rewrite model.xmi refactor.rules --plan           how rules would be searched for

A text of rules:
  vertex Video { views: int, popular: bool }
  edge related;
  rule spread {
      match a: Video -[related]-> b: Video;
      if a.popular and not b.popular and b.views >= 100;
      set b.popular = true;
  }")]
pub(crate) struct RewriteArguments {
    /// The graph: GraphML, DOT, CSV (source,target,…) or XMI
    #[arg(value_name = "GRAPH")]
    pub(crate) graph: PathBuf,

    /// The rules
    #[arg(value_name = "RULES")]
    pub(crate) rules: PathBuf,

    /// The form of the graph; otherwise the ending of its name says it
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) form: Option<GraphForm>,

    /// Vertices of a graph in CSV (id,…)
    #[arg(long, value_name = "FILE")]
    pub(crate) vertices: Option<PathBuf>,

    /// Threads at most; otherwise as many as there are CPUs that may be used
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Fail if rules still match after N rounds
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,

    /// Fail if rules still match after N applications
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) applications: u64,

    /// Write the graph afterwards to FILE, as GraphML
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Show in which order rules are searched for, and change nothing
    #[arg(long, conflicts_with_all = ["out", "json"])]
    pub(crate) plan: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphForm {
    /// GraphML: .graphml, .xml
    Graphml,
    /// Graphviz: .dot, .gv
    Dot,
    /// A list of edges: .csv
    Csv,
    /// Models of the Eclipse Modeling Framework: .xmi, .amxmi, .ecore
    Xmi,
}
