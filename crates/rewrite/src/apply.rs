//! The second phase of a round: the chosen matches change the graph.
//!
//! One thread applies them by rank. Several threads do it in four steps, and the graph is the same
//! afterwards, numbers of created vertices and edges included:
//!
//! 1. one thread numbers what is created, by rank;
//! 2. all threads turn their shares of the matches into operations on lists and attributes of
//!    single vertices, sorted by shard; nothing is changed;
//! 3. one thread strikes deleted vertices and edges from the books, and sets attributes of edges;
//! 4. all threads carry out operations, each those of whole shards.
//!
//! No vertex is locked: a shard has one thread. The order of operations on a list does not matter,
//! since lists are sorted and a match that takes from a list what another adds would overlap.
//!
//! A match whose rule has an `unless` pattern that reaches further than one edge is looked at
//! again first, since nobody locks what is there: a round with such matches has one thread here.

use std::sync::Mutex;

use crate::code::{Bindings, ELEMENTS_MAX};
use crate::compile::{Compiled, End, Owner};
use crate::graph::{Direction, EdgeId, Graph, Half, Part, VertexId};
use crate::plan::Plan;
use crate::search::Search;
use crate::select::{Chosen, Found};

/// Fewer matches are applied by one thread: starting others takes as long.
const TOGETHER_MIN: usize = 2048;

/// Applies matches; counts those of each rule.
pub(crate) fn apply(
    graph: &mut Graph,
    rules: &[Compiled],
    plans: &[Plan],
    found: &Found,
    chosen: &[Chosen],
    threads: usize,
    always: bool,
) -> Vec<u64> {
    let mut applied = vec![0; rules.len()];
    let is_deep = chosen.iter().any(|one| rules[one.rule as usize].is_deep());
    if !is_deep && (always || (threads > 1 && chosen.len() >= TOGETHER_MIN)) {
        together(graph, rules, found, chosen, threads);
        chosen
            .iter()
            .for_each(|one| applied[one.rule as usize] += 1);
        return applied;
    }
    for one in chosen {
        let rule = &rules[one.rule as usize];
        let stored = stored(rule, found, *one);
        let deep = &plans[one.rule as usize].deep;
        let vertices = rule.main.vertices.len();
        if !deep.is_empty() && Search::new(graph).is_forbidden(deep, stored, vertices) {
            continue;
        }
        apply_one(graph, rule, stored);
        applied[one.rule as usize] += 1;
    }
    applied
}

fn stored<'a>(rule: &Compiled, found: &'a Found, chosen: Chosen) -> &'a [u32] {
    &found.flat[chosen.rule as usize][chosen.start..chosen.start + rule.stride()]
}

/// Vertices and edges of one match, and those that are created for it.
struct Elements {
    bound: Bindings,
    new_vertices: [u32; ELEMENTS_MAX],
    new_edges: [u32; ELEMENTS_MAX],
}

impl Elements {
    fn of(rule: &Compiled, stored: &[u32]) -> Elements {
        let mut bound = Bindings::new();
        let vertices = rule.main.vertices.len();
        bound.vertices[..vertices].copy_from_slice(&stored[..vertices]);
        bound.edges[..rule.main.edges.len()].copy_from_slice(&stored[vertices..]);
        Elements {
            bound,
            new_vertices: [u32::MAX; ELEMENTS_MAX],
            new_edges: [u32::MAX; ELEMENTS_MAX],
        }
    }

    fn end(&self, end: End) -> u32 {
        match end {
            End::Found(place) => self.bound.vertices[usize::from(place)],
            End::Created(place) => self.new_vertices[usize::from(place)],
        }
    }
}

fn apply_one(graph: &mut Graph, rule: &Compiled, stored: &[u32]) {
    let mut elements = Elements::of(rule, stored);
    // All values are those of the graph before.
    let values: Vec<u64> = rule
        .set
        .iter()
        .map(|one| one.code.evaluate(graph, &elements.bound))
        .collect();
    for (place, number) in rule.create_vertices.iter().enumerate() {
        elements.new_vertices[place] = graph.add_vertex(*number).0;
    }
    for (place, (number, source, target)) in rule.create_edges.iter().enumerate() {
        let (source, target) = (elements.end(*source), elements.end(*target));
        let edge = graph.add_edge(*number, VertexId(source), VertexId(target));
        elements.new_edges[place] = edge.0;
    }
    for (setting, word) in rule.set.iter().zip(values) {
        let slot = usize::from(setting.slot);
        match owner(&elements, setting.owner) {
            Ok(vertex) => graph.part_mut(vertex).set(vertex, slot, word),
            Err(edge) => graph.set_edge_word(edge, slot, word),
        }
    }
    for place in &rule.delete_edges {
        graph.remove_edge(EdgeId(elements.bound.edges[usize::from(*place)]));
    }
    for place in &rule.delete_vertices {
        graph.remove_vertex(VertexId(elements.bound.vertices[usize::from(*place)]));
    }
}

/// The vertex or else the edge whose attribute is set.
fn owner(elements: &Elements, owner: Owner) -> Result<u32, u32> {
    match owner {
        Owner::Vertex(place) => Ok(elements.bound.vertices[usize::from(place)]),
        Owner::NewVertex(place) => Ok(elements.new_vertices[usize::from(place)]),
        Owner::Edge(place) => Err(elements.bound.edges[usize::from(place)]),
        Owner::NewEdge(place) => Err(elements.new_edges[usize::from(place)]),
    }
}

/// A change of one vertex.
#[derive(Clone, Copy)]
enum Operation {
    Insert(u32, Direction, Half),
    Remove(u32, Direction, Half),
    Set(u32, u16, u64),
    Kill(u32),
}

impl Operation {
    fn vertex(&self) -> u32 {
        match self {
            Operation::Insert(vertex, ..)
            | Operation::Remove(vertex, ..)
            | Operation::Set(vertex, ..)
            | Operation::Kill(vertex) => *vertex,
        }
    }

    fn carry_out(self, part: &mut Part<'_>) {
        match self {
            Operation::Insert(vertex, direction, half) => part.insert(vertex, direction, half),
            Operation::Remove(vertex, direction, half) => part.remove(vertex, direction, half),
            Operation::Set(vertex, slot, word) => part.set(vertex, slot.into(), word),
            Operation::Kill(vertex) => part.kill(vertex),
        }
    }
}

/// Operations that one thread makes of its share of the matches.
struct Orders {
    /// By shard.
    operations: Vec<Vec<Operation>>,
    edge_values: Vec<(u32, u16, u64)>,
    edges: Vec<u32>,
    vertices: Vec<u32>,
}

impl Orders {
    fn add(&mut self, operation: Operation) {
        self.operations[Graph::shard_of(operation.vertex())].push(operation);
    }

    /// Both lists' halves of an edge.
    fn both(
        &mut self,
        (number, edge, source, target): (u16, u32, u32, u32),
        make: fn(u32, Direction, Half) -> Operation,
    ) {
        let half = |vertex| Half {
            number,
            vertex,
            edge,
        };
        self.add(make(source, Direction::Out, half(target)));
        self.add(make(target, Direction::In, half(source)));
    }
}

fn together(
    graph: &mut Graph,
    rules: &[Compiled],
    found: &Found,
    chosen: &[Chosen],
    threads: usize,
) {
    let numbered = number(graph, rules, found, chosen);
    let share = chosen.len().div_ceil(threads).max(1);
    let reader: &Graph = graph;
    let orders: Vec<Orders> = std::thread::scope(|scope| {
        let shares = chosen.chunks(share).zip(numbered.chunks(share));
        let workers: Vec<_> = shares
            .map(|(chosen, numbered)| scope.spawn(|| order(reader, rules, found, chosen, numbered)))
            .collect();
        let workers = workers.into_iter();
        workers
            .map(|one| one.join().expect("orders are given without a panic"))
            .collect()
    });
    for one in &orders {
        for (edge, slot, word) in &one.edge_values {
            graph.set_edge_word(*edge, usize::from(*slot), *word);
        }
        for edge in &one.edges {
            graph.unlist_edge(*edge);
        }
        for vertex in &one.vertices {
            graph.unlist_vertex(*vertex);
        }
    }
    let parts = Mutex::new(graph.parts().enumerate());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = parts.lock().expect("nobody panics with the lock").next();
                    let Some((shard, mut part)) = next else { break };
                    for operation in orders.iter().flat_map(|one| &one.operations[shard]) {
                        operation.carry_out(&mut part);
                    }
                }
            });
        }
    });
}

/// Numbers of what each match creates: its first new vertex and edge.
fn number(
    graph: &mut Graph,
    rules: &[Compiled],
    found: &Found,
    chosen: &[Chosen],
) -> Vec<(u32, u32)> {
    let mut numbered = Vec::with_capacity(chosen.len());
    for one in chosen {
        let rule = &rules[one.rule as usize];
        numbered.push((graph.vertex_end(), graph.edge_end()));
        if rule.create_vertices.is_empty() && rule.create_edges.is_empty() {
            continue;
        }
        let mut elements = Elements::of(rule, stored(rule, found, *one));
        for (place, number) in rule.create_vertices.iter().enumerate() {
            elements.new_vertices[place] = graph.add_vertex(*number).0;
        }
        for (number, source, target) in &rule.create_edges {
            graph.list_edge(*number, elements.end(*source), elements.end(*target));
        }
    }
    numbered
}

fn order(
    graph: &Graph,
    rules: &[Compiled],
    found: &Found,
    chosen: &[Chosen],
    numbered: &[(u32, u32)],
) -> Orders {
    let mut orders = Orders {
        operations: vec![Vec::new(); graph.shard_count()],
        edge_values: Vec::new(),
        edges: Vec::new(),
        vertices: Vec::new(),
    };
    for (one, (first_vertex, first_edge)) in chosen.iter().zip(numbered) {
        let rule = &rules[one.rule as usize];
        let mut elements = Elements::of(rule, stored(rule, found, *one));
        for (place, vertex) in (0..rule.create_vertices.len()).zip(*first_vertex..) {
            elements.new_vertices[place] = vertex;
        }
        for ((place, (number, source, target)), edge) in
            rule.create_edges.iter().enumerate().zip(*first_edge..)
        {
            elements.new_edges[place] = edge;
            let ends = (elements.end(*source), elements.end(*target));
            orders.both((*number, edge, ends.0, ends.1), Operation::Insert);
        }
        for setting in &rule.set {
            let word = setting.code.evaluate(graph, &elements.bound);
            match owner(&elements, setting.owner) {
                Ok(vertex) => orders.add(Operation::Set(vertex, setting.slot, word)),
                Err(edge) => orders.edge_values.push((edge, setting.slot, word)),
            }
        }
        for place in &rule.delete_edges {
            let edge = elements.bound.edges[usize::from(*place)];
            let (source, target) = graph.ends(EdgeId(edge));
            let number = graph.type_of_edge(EdgeId(edge)).range.first;
            orders.both((number, edge, source.0, target.0), Operation::Remove);
            orders.edges.push(edge);
        }
        for place in &rule.delete_vertices {
            let vertex = elements.bound.vertices[usize::from(*place)];
            for direction in [Direction::Out, Direction::In] {
                for half in graph.halves(vertex, direction) {
                    let mine = Half { vertex, ..*half };
                    orders.add(Operation::Remove(half.vertex, direction.turned(), mine));
                    orders.edges.push(half.edge);
                }
            }
            orders.vertices.push(vertex);
            orders.add(Operation::Kill(vertex));
        }
    }
    orders
}
