//! METIS's `.graph`: a heading, then a line for each vertex with its weights, its neighbours,
//! counted from 1, and the weights of the edges to them. Weights are whole numbers; edges have no
//! direction. Lines that begin with `%` are comments; ours hold names and units:
//!
//! ```text
//! % vertex weight 1 is 1 ns of work in a round
//! % edge weight 1 is 1 bytes in a round, both ways
//! % vertex 1 is maker
//! % vertex 2 is taker
//! 2 1 011
//! 800 2 64
//! 900 1 64
//! ```
//!
//! The heading has up to four numbers: vertices; edges, each counted once; three digits for the
//! presence of vertex sizes, vertex weights and edge weights; weights of each vertex.

mod read;

use std::fmt::Write;

use super::error::WriteError;
use super::measure::Measure;
use super::text::escape;
use crate::graph::Graph;

pub use read::read_metis;

/// Start of the comments with units. A number and words follow.
const EDGE_UNIT: &str = "% edge weight 1 is ";
const WORK_UNIT: &str = "% vertex weight 1 is ";
const HEAP_UNIT: &str = "% second vertex weight 1 is ";
/// Start of the comments with names. A number, ` is ` and the name follow.
const NAME: &str = "% vertex ";

/// METIS adds weights in 32 bits with a sign, those of edges once for each end; this leaves room
/// for weights that were rounded up.
const SUM_MAX: f64 = (1 << 29) as f64;

/// Largest weight where numbers have to be scaled: no more than six digits are known.
const WEIGHT_MAX: f64 = 1e6;

/// Meaning of vertex weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vertices {
    /// Work, so that parts have equal work.
    #[default]
    Work,
    /// Work, and heaps as a second weight, so that parts have equal work and equal memory.
    WorkAndHeap,
}

/// Writes a graph in METIS's form. Messages between two components become one edge. Numbers that
/// are not whole, or large, are scaled; a comment tells the unit. If all components have the weight
/// 0, the text has no vertex weights.
///
/// # Errors
/// If no components communicate, since METIS refuses such a graph; if a number becomes infinite, or
/// if the graph or the measure is not valid.
pub fn write_metis(
    graph: &Graph,
    measure: Measure,
    vertices: Vertices,
) -> Result<String, WriteError> {
    graph.check().map_err(WriteError::Graph)?;
    measure.check()?;
    let edges = edges(graph, measure)?;
    if edges.is_empty() {
        return Err(WriteError::NoEdges);
    }
    let edge_unit = unit(edges.iter().map(|edge| edge.number));
    let work = || graph.components.iter().map(|c| c.work_ns.value);
    let heap = || graph.components.iter().map(|c| c.heap_bytes.value);
    let has_heap = vertices == Vertices::WorkAndHeap && heap().any(|heap| heap > 0.0);
    let has_weights = has_heap || work().any(|work| work > 0.0);
    let (work_unit, heap_unit) = (unit(work()), unit(heap()));

    let mut text = String::new();
    if has_weights {
        _ = writeln!(text, "{WORK_UNIT}{work_unit} ns of work in a round");
    }
    if has_heap {
        _ = writeln!(text, "{HEAP_UNIT}{heap_unit} bytes of heap");
    }
    _ = writeln!(text, "{EDGE_UNIT}{edge_unit} {}, both ways", measure.unit());
    for (number, component) in (1..).zip(&graph.components) {
        _ = writeln!(text, "{NAME}{number} is {}", escape(&component.name));
    }
    let format = match (has_weights, has_heap) {
        (false, _) => "001",
        (true, false) => "011",
        (true, true) => "011 2",
    };
    _ = writeln!(text, "{} {} {format}", graph.components.len(), edges.len());

    let neighbours = Neighbours::new(graph.components.len(), &edges);
    for (at, component) in graph.components.iter().enumerate() {
        let mut line = String::new();
        if has_weights {
            _ = write!(line, " {}", weight(component.work_ns.value, work_unit));
        }
        if has_heap {
            _ = write!(line, " {}", weight(component.heap_bytes.value, heap_unit));
        }
        for (other, number) in neighbours.of(at) {
            // A METIS edge has a weight of at least 1.
            let weight = weight(*number, edge_unit).max(1);
            _ = write!(line, " {} {weight}", other + 1);
        }
        text.push_str(line.trim_start());
        text.push('\n');
    }
    Ok(text)
}

struct Edge {
    /// The smaller number first.
    ends: (u32, u32),
    number: f64,
}

fn edges(graph: &Graph, measure: Measure) -> Result<Vec<Edge>, WriteError> {
    let mut edges: Vec<Edge> = graph
        .connections
        .iter()
        .map(|connection| {
            let (from, to) = (connection.from.0, connection.to.0);
            Edge {
                ends: (from.min(to), from.max(to)),
                number: measure.of(connection),
            }
        })
        .filter(|edge| edge.ends.0 != edge.ends.1 && edge.number != 0.0)
        .collect();
    edges.sort_by_key(|edge| edge.ends);
    edges.dedup_by(|edge, sum| {
        let is_same = edge.ends == sum.ends;
        if is_same {
            sum.number += edge.number;
        }
        is_same
    });
    match edges.iter().find(|edge| !edge.number.is_finite()) {
        Some(edge) => Err(WriteError::Overflow {
            whose: format!(
                "`{}` and `{}`",
                graph.components[edge.ends.0 as usize].name,
                graph.components[edge.ends.1 as usize].name
            ),
        }),
        None => Ok(edges),
    }
}

/// Edges by vertex, ascending: those of vertex `i` are `first[i]..first[i + 1]`.
struct Neighbours {
    first: Vec<usize>,
    others: Vec<(u32, f64)>,
}

impl Neighbours {
    fn new(count: usize, edges: &[Edge]) -> Self {
        let mut first = vec![0; count + 1];
        for edge in edges {
            first[edge.ends.0 as usize + 1] += 1;
            first[edge.ends.1 as usize + 1] += 1;
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let mut others = vec![(0, 0.0); edges.len() * 2];
        // Edges are sorted by both ends. Placing the smaller neighbours of all vertices first
        // leaves each vertex's neighbours ascending.
        for edge in edges {
            let at = &mut next[edge.ends.1 as usize];
            others[*at] = (edge.ends.0, edge.number);
            *at += 1;
        }
        for edge in edges {
            let at = &mut next[edge.ends.0 as usize];
            others[*at] = (edge.ends.1, edge.number);
            *at += 1;
        }
        Self { first, others }
    }

    fn of(&self, at: usize) -> &[(u32, f64)] {
        &self.others[self.first[at]..self.first[at + 1]]
    }
}

/// The quantity that a weight of 1 stands for: 1 if the numbers can be written as they are.
fn unit(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = numbers.clone().fold(0.0, f64::max);
    let sum: f64 = numbers.clone().sum();
    if max == 0.0 || (sum <= SUM_MAX && numbers.clone().all(|n| n.fract() == 0.0)) {
        return 1.0;
    }
    // The sum of the numbers themselves may be infinite.
    let relative: f64 = numbers.map(|n| n / max).sum();
    let unit = max * (1.0 / WEIGHT_MAX).max(relative / SUM_MAX);
    unit.max(f64::MIN_POSITIVE)
}

fn weight(number: f64, unit: f64) -> u32 {
    // At most `SUM_MAX`: the unit was chosen for it.
    (number / unit).round() as u32
}
