//! Store of a typed, attributed, directed graph that rules change.
//!
//! A vertex is a record of 24 bytes, in one array by number. What varies in length is in shards of
//! [`SHARD`] vertices, each with one array of half edges and one of attribute words:
//!
//! ```text
//!   records  │ out: start len cap │ in: start len cap │ attributes │ type │   one a vertex
//!                    │                    │                │
//!   shard    halves  ▼ type,vertex,edge … ▼ …      words   ▼ u64 u64 …       one for 4,096 vertices
//! ```
//!
//! A vertex's list is sorted by type of edge, other vertex, edge. So the edges of a type, with
//! those of all types that extend it, are one slice; whether two vertices are connected is a
//! binary search; and the order in which a search meets neighbours depends on the graph alone, not
//! on how it came to be. A list that is full moves to the end of its shard with twice the room;
//! a shard that is mostly gaps is packed.
//!
//! A shard and its vertices' records can be changed while other threads change others:
//! [`Graph::parts`]. Numbers of vertices and edges are never used again.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use crate::schema::{Schema, Type, TypeNumber, TypeRange, Value};

/// Vertices of a shard.
pub const SHARD: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 12;
/// In place of a type: deleted.
const DEAD: TypeNumber = TypeNumber::MAX;
/// Gaps in a shard, in half edges, up to which it is never packed.
const WASTE_MIN: usize = 4096;
/// Vertices, and edges, that a graph can have in its life.
pub const NUMBERS_MAX: u32 = u32::MAX - 1;

/// A vertex of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(pub u32);

/// An edge of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeId(pub u32);

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// Direction of an edge, seen from a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the vertex.
    Out,
    /// To the vertex.
    In,
}

impl Direction {
    /// The other one.
    pub fn turned(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
        }
    }
}

/// An edge in the list of one of its ends. The order of fields is the order of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Half {
    /// Type of the edge.
    pub number: TypeNumber,
    /// The other end.
    pub vertex: u32,
    /// The edge.
    pub edge: u32,
}

/// Place of a list in its shard's half edges.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    start: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    out: List,
    into: List,
    /// First word in the shard's words.
    words: u32,
    number: TypeNumber,
    /// Room of the two lists: 0, or one more than its logarithm to base 2.
    out_room: u8,
    into_room: u8,
}

impl Record {
    fn list(&self, direction: Direction) -> List {
        match direction {
            Direction::Out => self.out,
            Direction::In => self.into,
        }
    }

    fn list_mut(&mut self, direction: Direction) -> (&mut List, &mut u8) {
        match direction {
            Direction::Out => (&mut self.out, &mut self.out_room),
            Direction::In => (&mut self.into, &mut self.into_room),
        }
    }
}

fn room(logarithm: u8) -> usize {
    if logarithm == 0 {
        0
    } else {
        1 << (logarithm - 1)
    }
}

#[derive(Clone, Debug, Default)]
struct Shard {
    halves: Vec<Half>,
    words: Vec<u64>,
    /// Half edges that no list holds.
    waste: usize,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    source: u32,
    target: u32,
    words: u32,
    number: TypeNumber,
}

/// Texts by number, each once.
#[derive(Clone, Debug, Default)]
struct Texts {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

/// A shard with the records of its vertices, to change.
pub(crate) struct Part<'a> {
    records: &'a mut [Record],
    shard: &'a mut Shard,
}

impl Part<'_> {
    fn local(vertex: u32) -> usize {
        vertex as usize & (SHARD - 1)
    }

    /// Adds an edge to one list. The other end's is changed by whoever changes that.
    pub(crate) fn insert(&mut self, vertex: u32, direction: Direction, half: Half) {
        let (list, logarithm) = self.records[Self::local(vertex)].list_mut(direction);
        let (start, len) = (list.start as usize, list.len as usize);
        let halves = &mut self.shard.halves;
        let at = halves[start..start + len].partition_point(|there| *there < half);
        let has = room(*logarithm);
        if len < has {
            halves.copy_within(start + at..start + len, start + at + 1);
            halves[start + at] = half;
        } else {
            *logarithm += 1;
            list.start = halves.len() as u32;
            halves.extend_from_within(start..start + at);
            halves.push(half);
            halves.extend_from_within(start + at..start + len);
            let end = list.start as usize + room(*logarithm);
            halves.resize(end, Half::default());
            self.shard.waste += has;
        }
        list.len += 1;
        if self.shard.waste > WASTE_MIN && self.shard.waste * 2 > self.shard.halves.len() {
            self.pack();
        }
    }

    /// Takes an edge out of one list, if it is there.
    pub(crate) fn remove(&mut self, vertex: u32, direction: Direction, half: Half) {
        let (list, _) = self.records[Self::local(vertex)].list_mut(direction);
        let (start, len) = (list.start as usize, list.len as usize);
        let halves = &mut self.shard.halves;
        if let Ok(at) = halves[start..start + len].binary_search(&half) {
            halves.copy_within(start + at + 1..start + len, start + at);
            list.len -= 1;
        }
    }

    /// Deletes a vertex, whose edges are deleted by whoever has their other ends.
    pub(crate) fn kill(&mut self, vertex: u32) {
        let record = &mut self.records[Self::local(vertex)];
        self.shard.waste += room(record.out_room) + room(record.into_room);
        *record = Record {
            out: List::default(),
            into: List::default(),
            out_room: 0,
            into_room: 0,
            number: DEAD,
            ..*record
        };
    }

    pub(crate) fn set(&mut self, vertex: u32, slot: usize, word: u64) {
        let first = self.records[Self::local(vertex)].words as usize;
        self.shard.words[first + slot] = word;
    }

    fn pack(&mut self) {
        let old = std::mem::take(&mut self.shard.halves);
        let mut halves = Vec::with_capacity(old.len() / 2 + old.len() / 8);
        for record in self.records.iter_mut() {
            for direction in [Direction::Out, Direction::In] {
                let (list, logarithm) = record.list_mut(direction);
                let start = halves.len();
                let from = list.start as usize;
                halves.extend_from_slice(&old[from..from + list.len as usize]);
                // A list keeps its room: it grew once and will again.
                halves.resize(start + room(*logarithm), Half::default());
                list.start = start as u32;
            }
        }
        self.shard.halves = halves;
        self.shard.waste = 0;
    }
}

/// A graph, with the types of its vertices and edges.
#[derive(Clone, Debug)]
pub struct Graph {
    schema: Schema,
    records: Vec<Record>,
    shards: Vec<Shard>,
    edges: Vec<Edge>,
    edge_words: Vec<u64>,
    /// Vertices of exactly one type, ascending; with some that are deleted.
    by_type: Vec<Vec<u32>>,
    /// Living vertices of exactly one type.
    counts: Vec<usize>,
    edge_count: usize,
    texts: Texts,
}

impl Graph {
    /// A graph without vertices.
    pub fn new(schema: Schema) -> Graph {
        let types = schema.vertices.len();
        Graph {
            schema,
            records: Vec::new(),
            shards: Vec::new(),
            edges: Vec::new(),
            edge_words: Vec::new(),
            by_type: vec![Vec::new(); types],
            counts: vec![0; types],
            edge_count: 0,
            texts: Texts::default(),
        }
    }

    /// The types.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.edge_count
    }

    /// Living vertices of exactly this type.
    pub fn count_of(&self, number: TypeNumber) -> usize {
        self.counts[usize::from(number)]
    }

    /// One more than the highest number that a vertex ever had.
    pub fn vertex_end(&self) -> u32 {
        self.records.len() as u32
    }

    /// One more than the highest number that an edge ever had.
    pub fn edge_end(&self) -> u32 {
        self.edges.len() as u32
    }

    /// All vertices, ascending.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        (0..self.vertex_end())
            .map(VertexId)
            .filter(|vertex| self.is_vertex(*vertex))
    }

    /// All edges, ascending.
    pub fn edges(&self) -> impl Iterator<Item = EdgeId> + '_ {
        (0..self.edge_end())
            .map(EdgeId)
            .filter(|edge| self.is_edge(*edge))
    }

    /// Whether there is this vertex: it may never have been, or be deleted.
    pub fn is_vertex(&self, vertex: VertexId) -> bool {
        let record = self.records.get(vertex.0 as usize);
        record.is_some_and(|record| record.number != DEAD)
    }

    /// Whether there is this edge.
    pub fn is_edge(&self, edge: EdgeId) -> bool {
        let edge = self.edges.get(edge.0 as usize);
        edge.is_some_and(|edge| edge.number != DEAD)
    }

    /// Type of a vertex.
    ///
    /// # Panics
    /// As all that takes a vertex or an edge, where it is not there.
    pub fn type_of(&self, vertex: VertexId) -> &Type {
        self.schema.vertices.of(self.number(vertex.0))
    }

    /// Type of an edge.
    pub fn type_of_edge(&self, edge: EdgeId) -> &Type {
        self.schema.edges.of(self.edges[edge.0 as usize].number)
    }

    /// Source and target of an edge.
    pub fn ends(&self, edge: EdgeId) -> (VertexId, VertexId) {
        let edge = self.edges[edge.0 as usize];
        (VertexId(edge.source), VertexId(edge.target))
    }

    #[inline(always)]
    pub(crate) fn number(&self, vertex: u32) -> TypeNumber {
        self.records[vertex as usize].number
    }

    /// All edges at a vertex in one direction, sorted.
    #[inline(always)]
    pub fn halves(&self, vertex: u32, direction: Direction) -> &[Half] {
        let list = self.records[vertex as usize].list(direction);
        let shard = &self.shards[vertex as usize >> SHARD_BITS];
        &shard.halves[list.start as usize..list.start as usize + list.len as usize]
    }

    /// Those of them whose type is in the range.
    #[inline(always)]
    pub fn halves_of(&self, vertex: u32, direction: Direction, range: TypeRange) -> &[Half] {
        let all = self.halves(vertex, direction);
        match (all.first(), all.last()) {
            (Some(first), Some(last)) if range.has(first.number) && range.has(last.number) => all,
            (None, _) => all,
            _ => {
                let start = all.partition_point(|half| half.number < range.first);
                let rest = &all[start..];
                &rest[..rest.partition_point(|half| half.number <= range.last)]
            }
        }
    }

    /// Living vertices of the types of the range, ascending.
    pub(crate) fn of_types(&self, range: TypeRange) -> Vec<u32> {
        let numbers = range.first..=range.last;
        let total = numbers.clone().map(|number| self.count_of(number)).sum();
        let mut all = Vec::with_capacity(total);
        for number in numbers {
            let there = self.by_type[usize::from(number)].iter().copied();
            all.extend(there.filter(|vertex| self.number(*vertex) == number));
        }
        if range.first != range.last {
            all.sort_unstable();
        }
        all
    }

    #[inline(always)]
    pub(crate) fn word(&self, vertex: u32, slot: usize) -> u64 {
        let first = self.records[vertex as usize].words as usize;
        self.shards[vertex as usize >> SHARD_BITS].words[first + slot]
    }

    #[inline(always)]
    pub(crate) fn edge_word(&self, edge: u32, slot: usize) -> u64 {
        self.edge_words[self.edges[edge as usize].words as usize + slot]
    }

    pub(crate) fn set_edge_word(&mut self, edge: u32, slot: usize, word: u64) {
        let first = self.edges[edge as usize].words as usize;
        self.edge_words[first + slot] = word;
    }

    /// Value of a vertex's attribute. None if its type has no such attribute.
    pub fn value(&self, vertex: VertexId, attribute: &str) -> Option<Value> {
        let (slot, kind) = self.type_of(vertex).slot(attribute)?;
        Some(self.decode(kind, self.word(vertex.0, slot)))
    }

    /// Value of an edge's attribute. None if its type has no such attribute.
    pub fn edge_value(&self, edge: EdgeId, attribute: &str) -> Option<Value> {
        let (slot, kind) = self.type_of_edge(edge).slot(attribute)?;
        Some(self.decode(kind, self.edge_word(edge.0, slot)))
    }

    /// Sets a vertex's attribute. False if its type has no such attribute of the value's kind.
    #[must_use]
    pub fn set_value(&mut self, vertex: VertexId, attribute: &str, value: &Value) -> bool {
        match self.type_of(vertex).slot(attribute) {
            Some((slot, kind)) if kind == value.kind() => {
                let word = self.encode(value);
                self.part_of(vertex.0).set(vertex.0, slot, word);
                true
            }
            _ => false,
        }
    }

    /// Sets an edge's attribute. False if its type has no such attribute of the value's kind.
    #[must_use]
    pub fn set_edge_value(&mut self, edge: EdgeId, attribute: &str, value: &Value) -> bool {
        match self.type_of_edge(edge).slot(attribute) {
            Some((slot, kind)) if kind == value.kind() => {
                let word = self.encode(value);
                self.set_edge_word(edge.0, slot, word);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn encode(&mut self, value: &Value) -> u64 {
        match value {
            Value::Int(value) => *value as u64,
            Value::Float(value) => value.to_bits(),
            Value::Bool(value) => u64::from(*value),
            Value::Text(value) => u64::from(self.texts.number(value)),
        }
    }

    fn decode(&self, kind: crate::schema::Kind, word: u64) -> Value {
        use crate::schema::Kind;
        match kind {
            Kind::Int => Value::Int(word as i64),
            Kind::Float => Value::Float(f64::from_bits(word)),
            Kind::Bool => Value::Bool(word != 0),
            Kind::Text => Value::Text(self.texts.texts[word as usize].to_string()),
        }
    }

    /// Order of two texts by their numbers.
    pub(crate) fn text(&self, word: u64) -> &str {
        &self.texts.texts[word as usize]
    }

    /// Adds a vertex whose attributes are zero, false and empty.
    ///
    /// # Panics
    /// Where the schema has no such type, or [`NUMBERS_MAX`] vertices were made.
    pub fn add_vertex(&mut self, number: TypeNumber) -> VertexId {
        let id = self.vertex_end();
        assert!(id < NUMBERS_MAX, "{id} vertices were made");
        let width = self.schema.vertices.of(number).attributes.len();
        if id as usize >> SHARD_BITS == self.shards.len() {
            self.shards.push(Shard::default());
        }
        let zero = self.zero_words(number, true);
        let words = &mut self.shards[id as usize >> SHARD_BITS].words;
        self.records.push(Record {
            out: List::default(),
            into: List::default(),
            words: words.len() as u32,
            number,
            out_room: 0,
            into_room: 0,
        });
        words.resize(words.len() + width, zero);
        self.by_type[usize::from(number)].push(id);
        self.counts[usize::from(number)] += 1;
        VertexId(id)
    }

    /// The word of zero, false and the empty text, which is the text of number 0.
    fn zero_words(&mut self, number: TypeNumber, is_vertex: bool) -> u64 {
        let types = if is_vertex {
            &self.schema.vertices
        } else {
            &self.schema.edges
        };
        if self.texts.texts.is_empty() && !types.of(number).attributes.is_empty() {
            self.texts.number("");
        }
        0
    }

    /// Adds an edge whose attributes are zero, false and empty.
    ///
    /// # Panics
    /// Where an end is not there, the schema has no such type, or [`NUMBERS_MAX`] edges were made.
    pub fn add_edge(&mut self, number: TypeNumber, source: VertexId, target: VertexId) -> EdgeId {
        assert!(
            self.is_vertex(source) && self.is_vertex(target),
            "an end is not there"
        );
        let edge = self.list_edge(number, source.0, target.0);
        let half = |vertex| Half {
            number,
            vertex,
            edge,
        };
        self.part_of(source.0)
            .insert(source.0, Direction::Out, half(target.0));
        self.part_of(target.0)
            .insert(target.0, Direction::In, half(source.0));
        EdgeId(edge)
    }

    /// The half of adding an edge that is not in the lists of its ends.
    pub(crate) fn list_edge(&mut self, number: TypeNumber, source: u32, target: u32) -> u32 {
        let edge = self.edge_end();
        assert!(edge < NUMBERS_MAX, "{edge} edges were made");
        let width = self.schema.edges.of(number).attributes.len();
        let zero = self.zero_words(number, false);
        let words = self.edge_words.len() as u32;
        self.edges.push(Edge {
            source,
            target,
            words,
            number,
        });
        self.edge_words.resize(words as usize + width, zero);
        self.edge_count += 1;
        edge
    }

    /// Deletes an edge. Nothing happens if it is deleted already.
    pub fn remove_edge(&mut self, edge: EdgeId) {
        if let Some((number, source, target)) = self.unlist_edge(edge.0) {
            let half = |vertex| Half {
                number,
                vertex,
                edge: edge.0,
            };
            self.part_of(source)
                .remove(source, Direction::Out, half(target));
            self.part_of(target)
                .remove(target, Direction::In, half(source));
        }
    }

    /// The half of deleting an edge that is not in the lists of its ends: the edge as it was.
    pub(crate) fn unlist_edge(&mut self, edge: u32) -> Option<(TypeNumber, u32, u32)> {
        let there = &mut self.edges[edge as usize];
        if there.number == DEAD {
            return None;
        }
        let number = std::mem::replace(&mut there.number, DEAD);
        self.edge_count -= 1;
        Some((number, there.source, there.target))
    }

    /// Deletes a vertex with all its edges.
    pub fn remove_vertex(&mut self, vertex: VertexId) {
        for direction in [Direction::Out, Direction::In] {
            while let Some(half) = self.halves(vertex.0, direction).last() {
                self.remove_edge(EdgeId(half.edge));
            }
        }
        self.unlist_vertex(vertex.0);
        self.part_of(vertex.0).kill(vertex.0);
    }

    /// The half of deleting a vertex that is not in its shard.
    pub(crate) fn unlist_vertex(&mut self, vertex: u32) {
        let number = usize::from(self.number(vertex));
        self.counts[number] -= 1;
        let listed = &mut self.by_type[number];
        // The deleted are taken out when they are half of the list: a constant time for each.
        if listed.len() > 64 && listed.len() > self.counts[number] * 2 {
            let records = &self.records;
            listed.retain(|other| {
                *other != vertex && usize::from(records[*other as usize].number) == number
            });
        }
    }

    fn part_of(&mut self, vertex: u32) -> Part<'_> {
        let shard = vertex as usize >> SHARD_BITS;
        let end = self.records.len().min((shard + 1) << SHARD_BITS);
        Part {
            records: &mut self.records[shard << SHARD_BITS..end],
            shard: &mut self.shards[shard],
        }
    }

    pub(crate) fn part_mut(&mut self, vertex: u32) -> Part<'_> {
        self.part_of(vertex)
    }

    /// All shards, each to be changed by one thread.
    pub(crate) fn parts(&mut self) -> impl Iterator<Item = Part<'_>> {
        let records = self.records.chunks_mut(SHARD);
        records
            .zip(&mut self.shards)
            .map(|(records, shard)| Part { records, shard })
    }

    /// The shard of a vertex.
    pub(crate) fn shard_of(vertex: u32) -> usize {
        vertex as usize >> SHARD_BITS
    }

    /// Number of shards.
    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The graph as text, a line for each vertex and edge: equal for equal graphs whose vertices
    /// and edges have the same numbers.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for vertex in self.vertices() {
            let of = self.type_of(vertex);
            let _ = write!(text, "{vertex}: {}", of.name);
            for attribute in &of.attributes {
                let value = self
                    .value(vertex, &attribute.name)
                    .expect("the type has it");
                let _ = write!(text, " {}={value}", attribute.name);
            }
            text.push('\n');
        }
        for edge in self.edges() {
            let of = self.type_of_edge(edge);
            let (source, target) = self.ends(edge);
            let _ = write!(text, "e{}: {source} -[{}]-> {target}", edge.0, of.name);
            for attribute in &of.attributes {
                let value = self
                    .edge_value(edge, &attribute.name)
                    .expect("the type has it");
                let _ = write!(text, " {}={value}", attribute.name);
            }
            text.push('\n');
        }
        text
    }

    /// A fault in the store's own books, for tests: lists that do not fit the edges.
    #[doc(hidden)]
    pub fn fault(&self) -> Option<String> {
        let mut seen = 0;
        for vertex in 0..self.vertex_end() {
            for direction in [Direction::Out, Direction::In] {
                let halves = self.halves(vertex, direction);
                if !halves.is_sorted() {
                    return Some(format!("the list of v{vertex} is not sorted"));
                }
                for half in halves {
                    let edge = self.edges[half.edge as usize];
                    let (here, there) = match direction {
                        Direction::Out => (edge.source, edge.target),
                        Direction::In => (edge.target, edge.source),
                    };
                    let is_right =
                        edge.number == half.number && here == vertex && there == half.vertex;
                    if !is_right || !self.is_vertex(VertexId(there)) {
                        return Some(format!("v{vertex} lists e{} wrongly", half.edge));
                    }
                    seen += 1;
                }
            }
        }
        let listed = self.vertices().count();
        if listed != self.vertex_count() {
            return Some(format!(
                "{listed} vertices, counted {}",
                self.vertex_count()
            ));
        }
        (seen != 2 * self.edge_count)
            .then(|| format!("{seen} halves for {} edges", self.edge_count))
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Kind, SchemaBuilder, Sort};

    fn schema() -> Schema {
        let mut builder = SchemaBuilder::new();
        let attributes = [("n", Kind::Int), ("name", Kind::Text)];
        builder
            .declare(Sort::Vertex, "A", None, &attributes)
            .unwrap();
        builder
            .declare(Sort::Edge, "e", None, &[("w", Kind::Float)])
            .unwrap();
        builder.declare(Sort::Edge, "f", Some("e"), &[]).unwrap();
        builder.build().unwrap()
    }

    #[test]
    fn a_record_is_small() {
        assert_eq!(size_of::<Record>(), 24);
        assert_eq!(size_of::<Half>(), 12);
    }

    /// Against sets of edges, over several shards and packings.
    #[test]
    fn random_changes_keep_the_books() {
        let mut random = fastrand::Rng::with_seed(33);
        let mut graph = Graph::new(schema());
        let mut edges: Vec<EdgeId> = Vec::new();
        for step in 0..60_000 {
            let end = graph.vertex_end();
            match random.u32(0..100) {
                0..30 => {
                    graph.add_vertex(0);
                }
                30..80 if end > 0 => {
                    let mut any = || VertexId(random.u32(0..end.min(900)));
                    let (source, target) = (any(), any());
                    if graph.is_vertex(source) && graph.is_vertex(target) {
                        edges.push(graph.add_edge(random.u16(0..2), source, target));
                    }
                }
                80..99 if !edges.is_empty() => {
                    graph.remove_edge(edges.swap_remove(random.usize(0..edges.len())));
                }
                99 if end > 0 => {
                    let vertex = VertexId(random.u32(0..end));
                    if graph.is_vertex(vertex) {
                        graph.remove_vertex(vertex);
                        edges.retain(|edge| graph.is_edge(*edge));
                    }
                }
                _ => {}
            }
            if step % 10_000 == 0 {
                assert_eq!(graph.fault(), None);
            }
        }
        assert_eq!(graph.fault(), None);
        assert_eq!(graph.edge_count(), edges.len());
        assert!(graph.shard_count() > 1, "one shard shows little");
    }

    #[test]
    fn values_have_their_kinds() {
        let mut graph = Graph::new(schema());
        let vertex = graph.add_vertex(0);
        let edge = graph.add_edge(1, vertex, vertex);
        assert_eq!(
            graph.value(vertex, "name"),
            Some(Value::Text(String::new()))
        );
        assert!(graph.set_value(vertex, "n", &Value::Int(-7)));
        assert!(!graph.set_value(vertex, "n", &Value::Bool(true)));
        assert!(!graph.set_value(vertex, "m", &Value::Int(1)));
        assert!(graph.set_edge_value(edge, "w", &Value::Float(0.5)));
        assert_eq!(graph.value(vertex, "n"), Some(Value::Int(-7)));
        assert_eq!(
            graph.listing(),
            "v0: A n=-7 name=\ne0: v0 -[f]-> v0 w=0.5\n"
        );
    }
}
