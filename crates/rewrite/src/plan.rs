//! Search plans: in which order a search binds the elements of a pattern.
//!
//! A plan begins with a *pivot*, a vertex that is tried with every vertex of its type. Each
//! further step binds a vertex and the edge to it, or an edge between vertices that are bound, or
//! tries a vertex that nothing connects with the rest. Conditions and `unless` patterns stand at
//! the first step after which all that they read is bound.
//!
//! The plan is chosen by what it is expected to cost, in vertices and edges looked at:
//!
//! ```text
//!   cost = Σ over steps  partial matches before the step × edges looked at for each
//! ```
//!
//! Numbers come from the graph: vertices of each type, edges between each two types by edge type,
//! and for conditions on one vertex the share of a sample that fulfils them. For each pivot the
//! next step is always the one that leaves the fewest partial matches; the cheapest pivot is
//! taken. So plans, and with them the order of matches, are a function of the graph.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::code::{Bindings, Code};
use crate::compile::{Compiled, Condition, Part};
use crate::graph::{Direction, Graph};
use crate::rule::Binary;
use crate::schema::{TypeNumber, TypeRange};

/// Vertices of a sample for a condition.
const SAMPLE: usize = 256;
/// Share of pairs that are expected to fulfil an `==` on several elements.
const EQUAL_SHARE: f64 = 0.1;
/// The same for other conditions.
const OTHER_SHARE: f64 = 0.4;

/// Numbers of a graph that plans are made from.
pub(crate) struct Statistics {
    counts: Vec<usize>,
    /// Edges by type of source, of the edge, and of the target.
    triples: BTreeMap<(TypeNumber, TypeNumber, TypeNumber), usize>,
}

impl Statistics {
    pub(crate) fn of(graph: &Graph) -> Statistics {
        let types = graph.schema().vertices.len() as TypeNumber;
        let mut triples = BTreeMap::new();
        for vertex in graph.vertices() {
            let source = graph.number(vertex.0);
            for half in graph.halves(vertex.0, Direction::Out) {
                let triple = (source, half.number, graph.number(half.vertex));
                *triples.entry(triple).or_insert(0) += 1;
            }
        }
        Statistics {
            counts: (0..types).map(|number| graph.count_of(number)).collect(),
            triples,
        }
    }

    fn count(&self, range: TypeRange) -> f64 {
        let counts = &self.counts[usize::from(range.first)..=usize::from(range.last)];
        counts.iter().sum::<usize>() as f64
    }

    fn edges(&self, source: TypeRange, edge: TypeRange, target: TypeRange) -> f64 {
        let fits = |(from, by, to): &(TypeNumber, TypeNumber, TypeNumber)| {
            source.has(*from) && edge.has(*by) && target.has(*to)
        };
        let all = self.triples.iter().filter(|(triple, _)| fits(triple));
        all.map(|(_, count)| *count).sum::<usize>() as f64
    }
}

/// Candidates that a step tries.
#[derive(Clone, Debug)]
pub(crate) enum Try {
    /// Every vertex of the type: the pivot, or a vertex that no edge connects with the rest.
    All,
    /// The edges of a vertex that is bound.
    From {
        edge: u8,
        from: u8,
        direction: Direction,
        edges: TypeRange,
    },
    /// The edges between two vertices that are bound.
    Between {
        edge: u8,
        source: u8,
        target: u8,
        edges: TypeRange,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) tries: Try,
    /// The vertex that is bound, unless an edge between bound ones is.
    pub(crate) vertex: u8,
    pub(crate) range: TypeRange,
    /// All vertices are of the range.
    pub(crate) any_type: bool,
    /// Edges bound before that have the same ends in the pattern.
    pub(crate) beside: Vec<u8>,
    pub(crate) conditions: Vec<Code>,
    /// Plans of `unless` patterns.
    pub(crate) unless: Vec<Vec<Step>>,
}

impl Step {
    /// Places of the vertex and the edge that are bound.
    pub(crate) fn binds(&self) -> (Option<usize>, Option<usize>) {
        let vertex = Some(usize::from(self.vertex));
        match self.tries {
            Try::All => (vertex, None),
            Try::From { edge, .. } => (vertex, Some(edge.into())),
            Try::Between { edge, .. } => (None, Some(edge.into())),
        }
    }
}

/// Plan of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The pivot first.
    pub(crate) steps: Vec<Step>,
    /// Plans of the `unless` patterns that are looked at again before a match is applied.
    pub(crate) deep: Vec<Vec<Step>>,
    /// Vertices and edges that it is expected to look at.
    pub(crate) cost: f64,
    /// After a match the search goes on with the next candidate of this step: the first that
    /// binds a vertex which the rule writes, since any other match with it would overlap.
    pub(crate) back: usize,
}

pub(crate) fn plan(rule: &Compiled, graph: &Graph, statistics: &Statistics) -> Plan {
    let shares = shares(rule, graph);
    let planner = Planner {
        rule,
        statistics,
        shares: &shares,
        any: TypeRange {
            first: 0,
            last: graph.schema().vertices.len().saturating_sub(1) as TypeNumber,
        },
    };
    let mut best: Option<(f64, Vec<Step>)> = None;
    for pivot in rule.main.vertices.clone() {
        let (cost, steps) = planner.order(&rule.main, Some(pivot));
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, steps));
        }
    }
    let (cost, mut steps) = best.expect("a pattern has a vertex");
    let binds_written = |step: &Step| {
        !matches!(step.tries, Try::Between { .. }) && rule.writes[usize::from(step.vertex)]
    };
    let back = steps.iter().position(binds_written).unwrap_or(usize::MAX);
    let mut deep = Vec::new();
    for part in &rule.unless {
        let plan = planner.order(part, None).1;
        if part.deep {
            deep.push(plan.clone());
        }
        let at = first_step(&steps, planner.needs(part), rule.main.vertices.len());
        steps[at].unless.push(plan);
    }
    Plan {
        steps,
        deep,
        cost,
        back,
    }
}

/// The first step after which these vertices and edges are bound, of vertices the first `known`.
fn first_step(steps: &[Step], (vertices, edges): (u32, u32), known: usize) -> usize {
    let vertices = vertices & ((1u64 << known) - 1) as u32;
    let mut bound = (0u32, 0u32);
    let is_enough = |step: &Step| {
        match step.tries {
            Try::All => bound.0 |= 1 << step.vertex,
            Try::From { edge, .. } => {
                bound.0 |= 1 << step.vertex;
                bound.1 |= 1 << edge;
            }
            Try::Between { edge, .. } => bound.1 |= 1 << edge,
        }
        vertices & !bound.0 == 0 && edges & !bound.1 == 0
    };
    let found = steps.iter().position(is_enough);
    found.expect("all steps together bind the pattern")
}

/// For each vertex of a rule, the share of its type that fulfils the conditions on it alone.
fn shares(rule: &Compiled, graph: &Graph) -> Vec<f64> {
    let mut shares = vec![1.0; rule.vertices.len()];
    let parts = std::iter::once(&rule.main).chain(&rule.unless);
    for condition in parts.flat_map(|part| &part.conditions) {
        if condition.vertices.count_ones() != 1 || condition.edges != 0 {
            continue;
        }
        let vertex = condition.vertices.trailing_zeros() as usize;
        let all = graph.of_types(rule.vertices[vertex].range);
        let stride = all.len().div_ceil(SAMPLE).max(1);
        let mut bound = Bindings::new();
        let (mut seen, mut fit) = (0.0, 0.0);
        for candidate in all.iter().step_by(stride) {
            bound.vertices[vertex] = *candidate;
            seen += 1.0;
            fit += f64::from(u8::from(condition.code.is_true(graph, &bound)));
        }
        // A sample without any does not show that there is none.
        shares[vertex] *= (fit + 0.5) / (seen + 1.0);
    }
    shares
}

fn bits(places: &std::ops::Range<usize>) -> u32 {
    places.clone().fold(0, |bits, place| bits | 1 << place)
}

struct Planner<'a> {
    rule: &'a Compiled,
    statistics: &'a Statistics,
    shares: &'a [f64],
    any: TypeRange,
}

impl Planner<'_> {
    /// Elements that an `unless` pattern needs bound: ends of its edges, those that its conditions
    /// read, and those that its own elements must differ from.
    fn needs(&self, part: &Part) -> (u32, u32) {
        let rule = self.rule;
        let mut needs = (0, 0);
        for own in &rule.vertices[part.vertices.clone()] {
            for place in rule.main.vertices.clone() {
                if rule.vertices[place].range.meets(own.range) {
                    needs.0 |= 1 << place;
                }
            }
        }
        for own in &rule.edges[part.edges.clone()] {
            needs.0 |= 1 << own.source | 1 << own.target;
            for place in rule.main.edges.clone() {
                let other = &rule.edges[place];
                let has_same_ends = (own.source, own.target) == (other.source, other.target);
                if has_same_ends && other.range.meets(own.range) {
                    needs.1 |= 1 << place;
                }
            }
        }
        for condition in &part.conditions {
            needs.0 |= condition.vertices;
            needs.1 |= condition.edges & !bits(&part.edges);
        }
        needs
    }

    /// Steps for a pattern, and their cost. Without a pivot the rule's own pattern is bound.
    fn order(&self, part: &Part, pivot: Option<usize>) -> (f64, Vec<Step>) {
        let mut order = Order {
            planner: self,
            steps: Vec::new(),
            vertices: 0,
            edges: 0,
            waiting: part.conditions.iter().collect(),
            partial: 1.0,
            cost: 0.0,
        };
        match pivot {
            Some(pivot) => order.all(pivot),
            None => {
                order.vertices = bits(&self.rule.main.vertices);
                order.edges = bits(&self.rule.main.edges);
            }
        }
        loop {
            let open = part
                .edges
                .clone()
                .filter(|edge| order.edges >> edge & 1 == 0);
            let open: Vec<usize> = open.collect();
            if let Some(edge) = open.iter().find(|edge| order.bound_ends(**edge) == 2) {
                order.between(*edge);
                continue;
            }
            let ready = open.into_iter().filter(|edge| order.bound_ends(*edge) == 1);
            if let Some(edge) = ready.min_by(|a, b| order.size(*a).total_cmp(&order.size(*b))) {
                order.from(edge);
                continue;
            }
            let unbound = part
                .vertices
                .clone()
                .filter(|place| order.vertices >> place & 1 == 0);
            let count = |place: &usize| self.candidates(*place);
            match unbound.min_by(|a, b| count(a).total_cmp(&count(b))) {
                Some(vertex) => order.all(vertex),
                None => return (order.cost, order.steps),
            }
        }
    }

    /// Vertices that may be bound to a place, after the conditions on it alone.
    fn candidates(&self, vertex: usize) -> f64 {
        self.statistics.count(self.rule.vertices[vertex].range) * self.shares[vertex]
    }

    /// Edges of the pattern's edge from one of its ends: all of the edge's type, and those whose
    /// other end may be bound.
    fn degree(&self, edge: usize, direction: Direction) -> (f64, f64) {
        let spec = &self.rule.edges[edge];
        let range = |place: u8| self.rule.vertices[usize::from(place)].range;
        let (source, target) = (range(spec.source), range(spec.target));
        let fit = self.statistics.edges(source, spec.range, target);
        let (from, looked) = match direction {
            Direction::Out => (source, self.statistics.edges(source, spec.range, self.any)),
            Direction::In => (target, self.statistics.edges(self.any, spec.range, target)),
        };
        let vertices = self.statistics.count(from).max(1.0);
        (looked / vertices, fit / vertices)
    }
}

struct Order<'a, 'b> {
    planner: &'b Planner<'a>,
    steps: Vec<Step>,
    vertices: u32,
    edges: u32,
    /// Conditions that cannot be looked at yet.
    waiting: Vec<&'b Condition>,
    /// Partial matches that are expected after the steps so far.
    partial: f64,
    cost: f64,
}

impl Order<'_, '_> {
    fn is_bound(&self, vertex: u8) -> bool {
        self.vertices >> vertex & 1 == 1
    }

    fn bound_ends(&self, edge: usize) -> usize {
        let spec = &self.planner.rule.edges[edge];
        usize::from(self.is_bound(spec.source)) + usize::from(self.is_bound(spec.target))
    }

    /// The bound end of an edge, the direction from there, and the other end.
    fn way(&self, edge: usize) -> (u8, Direction, u8) {
        let spec = &self.planner.rule.edges[edge];
        match self.is_bound(spec.source) {
            true => (spec.source, Direction::Out, spec.target),
            false => (spec.target, Direction::In, spec.source),
        }
    }

    /// Partial matches left for each, if this edge is next, with all edges that then close.
    fn size(&self, edge: usize) -> f64 {
        let (_, direction, vertex) = self.way(edge);
        let (looked, fit) = self.planner.degree(edge, direction);
        let mut size = fit * self.planner.shares[usize::from(vertex)];
        for (place, other) in self.planner.rule.edges.iter().enumerate() {
            let ends = [other.source, other.target];
            let is_open = place != edge && self.edges >> place & 1 == 0;
            let is_known = |end: &u8| *end == vertex || self.is_bound(*end);
            if is_open && ends.contains(&vertex) && ends.iter().all(is_known) {
                size *= self.closing(place);
            }
        }
        // Between equals, the one that looks at less.
        size + looked * 1e-6
    }

    /// Share of pairs that an edge connects.
    fn closing(&self, edge: usize) -> f64 {
        let planner = self.planner;
        let target = planner.rule.edges[edge].target;
        let targets = planner
            .statistics
            .count(planner.rule.vertices[usize::from(target)].range);
        (planner.degree(edge, Direction::Out).1 / targets.max(1.0)).min(1.0)
    }

    fn all(&mut self, vertex: usize) {
        let count = self
            .planner
            .statistics
            .count(self.planner.rule.vertices[vertex].range);
        self.vertices |= 1 << vertex;
        self.cost += self.partial * count;
        self.partial *= count * self.planner.shares[vertex];
        self.push(Try::All, vertex as u8, Vec::new());
    }

    fn from(&mut self, edge: usize) {
        let (from, direction, vertex) = self.way(edge);
        let (looked, fit) = self.planner.degree(edge, direction);
        self.vertices |= 1 << vertex;
        self.edges |= 1 << edge;
        self.cost += self.partial * looked.max(1.0);
        self.partial *= fit * self.planner.shares[usize::from(vertex)];
        let tries = Try::From {
            edge: edge as u8,
            from,
            direction,
            edges: self.planner.rule.edges[edge].range,
        };
        // An edge with the same ends is bound after this one, never before.
        self.push(tries, vertex, Vec::new());
    }

    fn between(&mut self, edge: usize) {
        let rule = self.planner.rule;
        let spec = &rule.edges[edge];
        let is_beside = |(place, other): &(usize, &crate::compile::EdgeSpec)| {
            let has_same_ends = (other.source, other.target) == (spec.source, spec.target);
            self.edges >> place & 1 == 1 && has_same_ends && other.range.meets(spec.range)
        };
        let beside = rule.edges.iter().enumerate().filter(is_beside);
        let beside = beside.map(|(place, _)| place as u8).collect();
        self.cost += self.partial;
        self.partial *= self.closing(edge);
        self.edges |= 1 << edge;
        let tries = Try::Between {
            edge: edge as u8,
            source: spec.source,
            target: spec.target,
            edges: spec.range,
        };
        self.push(tries, u8::MAX, beside);
    }

    fn push(&mut self, tries: Try, vertex: u8, beside: Vec<u8>) {
        let range = match tries {
            Try::Between { .. } => self.planner.any,
            _ => self.planner.rule.vertices[usize::from(vertex)].range,
        };
        let (vertices, edges) = (self.vertices, self.edges);
        let is_ready = |one: &&Condition| one.vertices & !vertices == 0 && one.edges & !edges == 0;
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (ready, waiting): (Vec<_>, Vec<_>) = waiting.partition(is_ready);
        self.waiting = waiting;
        let of_several = |one: &&&Condition| one.edges != 0 || one.vertices.count_ones() > 1;
        for condition in ready.iter().filter(of_several) {
            self.partial *= match condition.code {
                Code::Int(Binary::Equal, ..) | Code::Word(Binary::Equal, ..) => EQUAL_SHARE,
                _ => OTHER_SHARE,
            };
        }
        self.steps.push(Step {
            tries,
            vertex,
            range,
            any_type: range == self.planner.any,
            beside,
            conditions: ready.into_iter().map(|one| one.code.clone()).collect(),
            unless: Vec::new(),
        });
    }
}

/// The plan in words, a line for each step.
pub(crate) fn describe(rule: &Compiled, plan: &Plan, graph: &Graph) -> String {
    let schema = graph.schema();
    let name = |vertex: u8| rule.vertices[usize::from(vertex)].name.as_str();
    let edge_type = |range: TypeRange| schema.edges.of(range.first).name.as_str();
    let mut text = format!("rule {}: about {:.0} looked at\n", rule.name, plan.cost);
    for step in &plan.steps {
        let what = match step.tries {
            Try::All => {
                let of = &schema.vertices.of(step.range.first).name;
                format!("each {of} as {}", name(step.vertex))
            }
            Try::From {
                from,
                direction,
                edges,
                ..
            } => {
                let (from, edge, to) = (name(from), edge_type(edges), name(step.vertex));
                match direction {
                    Direction::Out => format!("{from} -[{edge}]-> {to}"),
                    Direction::In => format!("{from} <-[{edge}]- {to}"),
                }
            }
            Try::Between {
                source,
                target,
                edges,
                ..
            } => {
                let (source, edge, target) = (name(source), edge_type(edges), name(target));
                format!("is there {source} -[{edge}]-> {target}")
            }
        };
        let conditions = match step.conditions.len() {
            0 => String::new(),
            count => format!(", {}", hearth_text::counted(count, "condition")),
        };
        let unless = match step.unless.len() {
            0 => String::new(),
            count => format!(", {count} `unless`"),
        };
        let _ = writeln!(text, "  {what}{conditions}{unless}");
    }
    text
}
