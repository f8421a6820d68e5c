//! Reader of METIS's `.graph`.

use super::{EDGE_UNIT, HEAP_UNIT, NAME, WORK_UNIT};
use crate::forms::error::{Fault, ReadError};
use crate::forms::measure::{Read, Reading};
use crate::forms::text::{self, Text, TextPosition, unescape, words};
use crate::graph::{Graph, Number};

/// The name of the form in messages.
const FORM: &str = "METIS graph";

/// Largest weight: METIS uses 32 bits with a sign.
const WEIGHT_MAX: u32 = i32::MAX as u32;

/// Reads METIS's form. A vertex's first weight is its work, the second its heap, in the units that
/// comments name, or else in ns and bytes. Half of an edge goes each way.
///
/// # Errors
/// The place of the fault, and what to do.
///
/// ```
/// use hearth_place::forms::{Reading, read_metis};
///
/// let path = "% three in a row\n3 2 001\n2 64\n1 64 3 128\n2 128\n";
/// let graph = read_metis(path, &Reading::default())?.graph;
/// assert_eq!(graph.connections.len(), 4);
/// assert_eq!(graph.connections[3].messages.value, 1.0);
/// # Ok::<(), hearth_place::forms::ReadError>(())
/// ```
pub fn read_metis(text: &str, reading: &Reading) -> Result<Read, ReadError> {
    if !reading.is_sound() {
        return Err(ReadError::Payload);
    }
    let text = Text { form: FORM, text };
    let mut lines = text
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('%'));
    let heading = lines.find(|(_, line)| !line.trim().is_empty());
    let Some((line, words)) = heading else {
        return Err(text.error(text.end(), Fault::Empty));
    };
    let heading = Heading::read(text, line, words)?;
    let body = Body::read(text, &heading, lines)?;
    body.check(text, &heading)?;
    let comments = Comments::read(text.text, body.vertices.len());

    let mut notes = Vec::new();
    let count = body.vertices.len();
    let mut graph = text::components(count, reading, comments.names, &mut notes)?;
    for (component, weights) in graph.components.iter_mut().zip(&body.vertices) {
        if let Some(work) = weights[0] {
            component.work_ns = Number::declared(f64::from(work) * comments.work_unit);
        }
        if let Some(heap) = weights[1] {
            component.heap_bytes = Number::declared(f64::from(heap) * comments.heap_unit);
        }
    }
    connect(&mut graph, &body, reading, comments.edge_unit);
    if heading.has_sizes {
        notes.push("the sizes of vertices are left out: nothing in a graph is like them".into());
    }
    if heading.weights > 2 {
        notes.push(format!(
            "of {} weights of each vertex the first two are read, as work and heap",
            heading.weights
        ));
    }
    graph.check().map_err(ReadError::Graph)?;
    Ok(Read { graph, notes })
}

fn connect(graph: &mut Graph, body: &Body, reading: &Reading, unit: f64) {
    for end in &body.ends {
        // Each edge appears twice, once for each way.
        let number = f64::from(end.weight) * unit / 2.0;
        graph.connect(reading.connection(end.vertex, end.other, number));
    }
}

struct Heading {
    vertices: usize,
    edges: usize,
    has_sizes: bool,
    has_edge_weights: bool,
    /// Weights of each vertex.
    weights: usize,
}

impl Heading {
    fn read(text: Text<'_>, line: usize, heading: &str) -> Result<Self, ReadError> {
        let words: Vec<(TextPosition, &str)> = words(line, heading).collect();
        let start = TextPosition { line, byte: 0 };
        if !(2..=4).contains(&words.len()) {
            let found = words.len();
            return Err(text.error(start, Fault::Heading { found }));
        }
        let vertices = text.whole_number(words[0], "number of vertices", (1, WEIGHT_MAX))?;
        let edges = text.whole_number(words[1], "number of edges", (0, WEIGHT_MAX))?;
        let [has_sizes, has_weights, has_edge_weights] = match words.get(2) {
            None => [false; 3],
            Some((place, word)) => format(word).ok_or_else(|| {
                let word = text::shown(word);
                text.error(*place, Fault::Format { word })
            })?,
        };
        let weights = match words.get(3) {
            None => u32::from(has_weights),
            Some(word) => text.whole_number(*word, "number of weights", (0, WEIGHT_MAX))?,
        };
        if weights > 0 && !has_weights {
            return Err(text.error(words[3].0, Fault::Unweighted));
        }
        Ok(Self {
            vertices: vertices as usize,
            edges: edges as usize,
            has_sizes,
            has_edge_weights,
            weights: weights as usize,
        })
    }
}

/// Up to three digits 0 or 1; leading ones may be missing.
fn format(word: &str) -> Option<[bool; 3]> {
    let digits = word.as_bytes();
    if digits.len() > 3 || digits.iter().any(|digit| !b"01".contains(digit)) {
        return None;
    }
    let mut format = [false; 3];
    for (is_set, digit) in format[3 - digits.len()..].iter_mut().zip(digits) {
        *is_set = *digit == b'1';
    }
    Some(format)
}

/// An edge as one of its ends names it.
#[derive(Clone, Copy)]
struct End {
    /// The vertex of the line, from 0.
    vertex: u32,
    /// The neighbour, from 0.
    other: u32,
    weight: u32,
    place: TextPosition,
}

struct Body {
    /// The first two weights of each vertex.
    vertices: Vec<[Option<u32>; 2]>,
    ends: Vec<End>,
}

impl Body {
    fn read<'a>(
        text: Text<'a>,
        heading: &Heading,
        lines: impl Iterator<Item = (usize, &'a str)>,
    ) -> Result<Self, ReadError> {
        let mut body = Self {
            vertices: Vec::new(),
            ends: Vec::new(),
        };
        for (line, vertex) in lines {
            if body.vertices.len() < heading.vertices {
                body.vertex(text, heading, line, vertex)?;
            } else if !vertex.trim().is_empty() {
                let (found, wanted) = (heading.vertices + 1, heading.vertices);
                let start = TextPosition { line, byte: 0 };
                return Err(text.error(start, Fault::Vertices { found, wanted }));
            }
        }
        if body.vertices.len() < heading.vertices {
            let (found, wanted) = (body.vertices.len(), heading.vertices);
            return Err(text.error(text.end(), Fault::Vertices { found, wanted }));
        }
        Ok(body)
    }

    fn vertex(
        &mut self,
        text: Text<'_>,
        heading: &Heading,
        line: usize,
        vertex: &str,
    ) -> Result<(), ReadError> {
        let end = TextPosition {
            line,
            byte: vertex.len(),
        };
        let short = |what| text.error(end, Fault::Short { what });
        let mut words = words(line, vertex);
        if heading.has_sizes {
            let word = words.next().ok_or_else(|| short("the vertex's size"))?;
            text.whole_number(word, "size of a vertex", (0, WEIGHT_MAX))?;
        }
        let mut weights = [None; 2];
        for at in 0..heading.weights {
            let word = words.next().ok_or_else(|| short("a vertex's weight"))?;
            let weight = text.whole_number(word, "weight of a vertex", (0, WEIGHT_MAX))?;
            if let Some(kept) = weights.get_mut(at) {
                *kept = Some(weight);
            }
        }
        let number = text::small(self.vertices.len());
        let last = text::small(heading.vertices);
        while let Some(word) = words.next() {
            let other = text.whole_number(word, "vertex of this graph", (1, last))? - 1;
            let weight = match heading.has_edge_weights {
                false => 1,
                true => {
                    let word = words.next().ok_or_else(|| short("an edge's weight"))?;
                    text.whole_number(word, "weight of an edge", (1, WEIGHT_MAX))?
                }
            };
            self.ends.push(End {
                vertex: number,
                other,
                weight,
                place: word.0,
            });
        }
        self.vertices.push(weights);
        Ok(())
    }

    /// Checks that both ends name each edge, once, and that the heading's count is right.
    fn check(&self, text: Text<'_>, heading: &Heading) -> Result<(), ReadError> {
        let mut sorted = self.ends.clone();
        sorted.sort_by_key(|end| (end.vertex.min(end.other), end.vertex.max(end.other)));
        // Stable: of the two ends of an edge, the one of the smaller vertex comes first.
        let edges = sorted.chunk_by(|a, b| {
            (a.vertex == b.vertex && a.other == b.other)
                || (a.vertex == b.other && a.other == b.vertex)
        });
        let mut found = 0;
        for edge in edges {
            let wrong = |end: &End, fault: fn(u32, u32) -> Fault| {
                Err(text.error(end.place, fault(end.vertex + 1, end.other + 1)))
            };
            match edge {
                [end, ..] if end.vertex == end.other => {
                    return wrong(end, |vertex, _| Fault::Loop { vertex });
                }
                [a, b, ..] if a.vertex == b.vertex => {
                    return wrong(b, |vertex, other| Fault::Twice { vertex, other });
                }
                [_, a, b, ..] if a.vertex == b.vertex => {
                    return wrong(b, |vertex, other| Fault::Twice { vertex, other });
                }
                [a, b] if a.weight == b.weight => found += 1,
                [a, ..] => return wrong(a, |vertex, other| Fault::OneSided { vertex, other }),
                [] => {}
            }
        }
        if found != heading.edges {
            let wanted = heading.edges;
            return Err(text.error(text.end(), Fault::Edges { found, wanted }));
        }
        Ok(())
    }
}

/// Names and units from our comments.
struct Comments {
    edge_unit: f64,
    work_unit: f64,
    heap_unit: f64,
    names: Vec<Option<String>>,
}

impl Comments {
    /// Other comments are skipped: they are for people.
    fn read(text: &str, vertices: usize) -> Self {
        let mut comments = Self {
            edge_unit: 1.0,
            work_unit: 1.0,
            heap_unit: 1.0,
            names: vec![None; vertices],
        };
        for line in text.lines().filter(|line| line.starts_with('%')) {
            if let Some(unit) = unit(line, EDGE_UNIT) {
                comments.edge_unit = unit;
            } else if let Some(unit) = unit(line, WORK_UNIT) {
                comments.work_unit = unit;
            } else if let Some(unit) = unit(line, HEAP_UNIT) {
                comments.heap_unit = unit;
            } else if let Some((vertex, name)) = name(line)
                && let Some(known) = comments.names.get_mut(vertex)
            {
                *known = Some(name);
            }
        }
        comments
    }
}

fn unit(line: &str, start: &str) -> Option<f64> {
    let word = line.strip_prefix(start)?.split_whitespace().next()?;
    let unit: f64 = word.parse().ok()?;
    (unit.is_finite() && unit > 0.0).then_some(unit)
}

/// A vertex, from 0, and its name.
fn name(line: &str) -> Option<(usize, String)> {
    let (number, name) = line.strip_prefix(NAME)?.split_once(" is ")?;
    let number: usize = number.parse().ok()?;
    Some((number.checked_sub(1)?, unescape(name)?))
}
