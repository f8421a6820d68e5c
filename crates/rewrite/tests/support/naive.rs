//! The same rewriting in the plainest way: every assignment of vertices and edges to a pattern is
//! tried, over maps. Of the product it uses the order of search steps, by which matches are
//! sorted, and which vertices are written. While it applies a round's matches, one after the
//! other, it looks whether each still is one.

use std::collections::BTreeMap;

use hearth_rewrite::engine::SearchOrder;
use hearth_rewrite::rule::{Binary, Unary};
use hearth_rewrite::{Expression, Graph, Pattern, Rule, Schema, Sort, Value};

#[derive(Clone, Debug, PartialEq)]
struct Vertex {
    of: String,
    values: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
struct Edge {
    of: String,
    source: u32,
    target: u32,
    values: BTreeMap<String, Value>,
}

#[derive(Clone)]
pub struct Naive {
    schema: Schema,
    vertices: BTreeMap<u32, Vertex>,
    edges: BTreeMap<u32, Edge>,
    next_vertex: u32,
    next_edge: u32,
}

/// Names with what they are bound to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    vertices: Vec<(String, u32)>,
    /// By place in the pattern, since edges need no name.
    edges: Vec<(Option<String>, u32)>,
}

/// Place of a match in the order of the search.
type Key = Vec<(u16, u32, u32)>;

impl Naive {
    pub fn of(graph: &Graph) -> Naive {
        let mut naive = Naive {
            schema: graph.schema().clone(),
            vertices: BTreeMap::new(),
            edges: BTreeMap::new(),
            next_vertex: graph.vertex_end(),
            next_edge: graph.edge_end(),
        };
        for vertex in graph.vertices() {
            let of = graph.type_of(vertex);
            let value = |name: &String| (name.clone(), graph.value(vertex, name).unwrap());
            let values = of.attributes.iter().map(|one| value(&one.name)).collect();
            let of = of.name.clone();
            naive.vertices.insert(vertex.0, Vertex { of, values });
        }
        for edge in graph.edges() {
            let of = graph.type_of_edge(edge);
            let value = |name: &String| (name.clone(), graph.edge_value(edge, name).unwrap());
            let values = of.attributes.iter().map(|one| value(&one.name)).collect();
            let (source, target) = graph.ends(edge);
            let new = Edge {
                of: of.name.clone(),
                source: source.0,
                target: target.0,
                values,
            };
            naive.edges.insert(edge.0, new);
        }
        naive
    }

    pub fn vertex_count(&self) -> usize {
        self.vertices.len()
    }

    /// As [`Graph::listing`].
    pub fn listing(&self) -> String {
        let mut text = String::new();
        let values = |of: &hearth_rewrite::schema::Type, values: &BTreeMap<String, Value>| {
            let value = |name: &str| format!(" {name}={}", values[name]);
            of.attributes
                .iter()
                .map(|one| value(&one.name))
                .collect::<String>()
        };
        for (id, vertex) in &self.vertices {
            let of = self.schema.vertices.named(&vertex.of).unwrap();
            text += &format!("v{id}: {}{}\n", vertex.of, values(of, &vertex.values));
        }
        for (id, edge) in &self.edges {
            let of = self.schema.edges.named(&edge.of).unwrap();
            let (source, target) = (edge.source, edge.target);
            let values = values(of, &edge.values);
            text += &format!("e{id}: v{source} -[{}]-> v{target}{values}\n", edge.of);
        }
        text
    }

    fn is_a(&self, sort: Sort, lower: &str, upper: &str) -> bool {
        let types = match sort {
            Sort::Vertex => &self.schema.vertices,
            Sort::Edge => &self.schema.edges,
        };
        let mut at = types.named(lower);
        while let Some(of) = at {
            if of.name == upper {
                return true;
            }
            at = of.parent.map(|parent| types.of(parent));
        }
        false
    }

    fn value(&self, found: &Match, expression: &Expression) -> Value {
        match expression {
            Expression::Literal(value, _) => value.clone(),
            Expression::Attribute(owner, attribute) => {
                let (owner, attribute) = (&owner.text, &attribute.text);
                if let Some((_, id)) = found.vertices.iter().find(|(name, _)| name == owner) {
                    return self.vertices[id].values[attribute].clone();
                }
                let is = |(name, _): &&(Option<String>, u32)| name.as_ref() == Some(owner);
                let (_, id) = found.edges.iter().find(is).unwrap();
                self.edges[id].values[attribute].clone()
            }
            Expression::Unary(operation, inner, _) => match (operation, self.value(found, inner)) {
                (Unary::Not, Value::Bool(value)) => Value::Bool(!value),
                (Unary::Minus, Value::Int(value)) => Value::Int(-value),
                (_, value) => panic!("{value}"),
            },
            Expression::Binary(operation, left, right, _) => {
                let (left, right) = (self.value(found, left), self.value(found, right));
                calculate(*operation, &left, &right)
            }
        }
    }

    fn holds(&self, found: &Match, conditions: &[Expression]) -> bool {
        let is = |condition| self.value(found, condition) == Value::Bool(true);
        conditions.iter().all(is)
    }

    /// All ways to add a pattern's elements to what is found.
    fn extensions(&self, found: &Match, pattern: &Pattern) -> Vec<Match> {
        let mut all = vec![found.clone()];
        for vertex in &pattern.vertices {
            let mut more = Vec::new();
            for one in &all {
                for (id, candidate) in &self.vertices {
                    let is_used = one.vertices.iter().any(|(_, used)| used == id);
                    if !is_used && self.is_a(Sort::Vertex, &candidate.of, &vertex.of.text) {
                        let mut one = one.clone();
                        one.vertices.push((vertex.name.text.clone(), *id));
                        if self.may_become(&one, pattern) {
                            more.push(one);
                        }
                    }
                }
            }
            all = more;
        }
        for edge in &pattern.edges {
            let mut more = Vec::new();
            for one in &all {
                let of = |name: &str| one.vertices.iter().find(|(other, _)| other == name);
                let source = of(&edge.source.text).unwrap().1;
                let target = of(&edge.target.text).unwrap().1;
                for (id, candidate) in &self.edges {
                    let is_used = one.edges.iter().any(|(_, used)| used == id);
                    let fits = (candidate.source, candidate.target) == (source, target);
                    if fits && !is_used && self.is_a(Sort::Edge, &candidate.of, &edge.of.text) {
                        let mut one = one.clone();
                        one.edges
                            .push((edge.name.as_ref().map(|name| name.text.clone()), *id));
                        more.push(one);
                    }
                }
            }
            all = more;
        }
        all.retain(|one| self.holds(one, &pattern.conditions));
        all
    }

    fn is_forbidden(&self, found: &Match, rule: &Rule) -> bool {
        rule.unless
            .iter()
            .any(|pattern| !self.extensions(found, pattern).is_empty())
    }

    fn is_fit(&self, found: &Match, rule: &Rule) -> bool {
        if self.is_forbidden(found, rule) {
            return false;
        }
        let deleted = found
            .vertices
            .iter()
            .filter(|(name, _)| rule.strict && rule.delete.iter().any(|gone| gone.text == *name));
        deleted.into_iter().all(|(_, id)| {
            let mut at = self
                .edges
                .iter()
                .filter(|(_, edge)| [edge.source, edge.target].contains(id));
            at.all(|(edge, _)| found.edges.iter().any(|(_, own)| own == edge))
        })
    }

    /// Whether a match found earlier still is one, apart from `unless`.
    fn is_there(&self, found: &Match, rule: &Rule) -> bool {
        let vertices = found.vertices.iter().zip(&rule.pattern.vertices);
        let mut edges = found.edges.iter().zip(&rule.pattern.edges);
        let of = |name: &str| {
            found
                .vertices
                .iter()
                .find(|(other, _)| other == name)
                .unwrap()
                .1
        };
        let has_vertex = |id: &u32, of: &str| {
            self.vertices
                .get(id)
                .is_some_and(|there| self.is_a(Sort::Vertex, &there.of, of))
        };
        let has_vertices = vertices
            .clone()
            .all(|((_, id), spec)| has_vertex(id, &spec.of.text));
        has_vertices
            && edges.all(|((_, id), spec)| {
                self.edges.get(id).is_some_and(|there| {
                    let ends = (of(&spec.source.text), of(&spec.target.text));
                    (there.source, there.target) == ends
                        && self.is_a(Sort::Edge, &there.of, &spec.of.text)
                })
            })
            && self.holds(found, &rule.pattern.conditions)
    }

    /// Whether all edges of a pattern between vertices that are found exist in some way: nothing
    /// that becomes a match is lost by asking early.
    fn may_become(&self, found: &Match, pattern: &Pattern) -> bool {
        let of = |name: &str| found.vertices.iter().find(|(other, _)| other == name);
        pattern.edges.iter().all(
            |spec| match (of(&spec.source.text), of(&spec.target.text)) {
                (Some((_, source)), Some((_, target))) => {
                    let mut all = self.edges.values();
                    all.any(|edge| (edge.source, edge.target) == (*source, *target))
                }
                _ => true,
            },
        )
    }

    /// All matches of a rule that are found in a round, with the order of the search.
    fn matches(&self, rule: &Rule, order: &SearchOrder) -> Vec<Match> {
        let mut all: Vec<(Key, Match)> = Vec::new();
        for found in self.extensions(&Match::default(), &rule.pattern) {
            if self.is_fit(&found, rule) {
                all.push((self.key(&found, order), found));
            }
        }
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut kept: Vec<(Key, Match)> = Vec::new();
        for (key, found) in all {
            let is_passed = kept.last().is_some_and(|(last, _)| {
                order.back < last.len() && last[..=order.back] == key[..=order.back]
            });
            if !is_passed {
                kept.push((key, found));
            }
        }
        kept.into_iter().map(|(_, found)| found).collect()
    }

    fn key(&self, found: &Match, order: &SearchOrder) -> Key {
        let level = |(vertex, edge): &(Option<usize>, Option<usize>)| {
            let vertex = vertex.map_or(0, |place| found.vertices[place].1);
            match edge {
                None => (0, vertex, 0),
                Some(edge) => {
                    let edge = found.edges[*edge].1;
                    let of = self.schema.edges.named(&self.edges[&edge].of).unwrap();
                    (of.range.first, vertex, edge)
                }
            }
        };
        order.steps.iter().map(level).collect()
    }

    /// One round: how many matches were found, and how many applied. None: too many for this way.
    pub fn round(&mut self, rules: &[Rule], orders: &[SearchOrder]) -> Option<(usize, usize)> {
        let mut taken: Vec<(usize, Match)> = Vec::new();
        let mut count = 0;
        for (place, (rule, order)) in rules.iter().zip(orders).enumerate() {
            for found in self.matches(rule, order) {
                count += 1;
                let overlaps = |(other, there): &(usize, Match)| {
                    let all = there.vertices.iter().zip(&orders[*other].writes);
                    all.into_iter().any(|((_, a), a_writes)| {
                        let own = found.vertices.iter().zip(&order.writes);
                        own.into_iter()
                            .any(|((_, b), writes)| a == b && (*a_writes || *writes))
                    })
                };
                if !taken.iter().any(overlaps) {
                    taken.push((place, found));
                }
            }
        }
        if count > 1500 {
            return None;
        }
        let mut applied = 0;
        for (place, found) in taken {
            let rule = &rules[place];
            assert!(
                self.is_there(&found, rule),
                "another match broke {found:?} of {}",
                rule.name.text
            );
            if !self.is_fit(&found, rule) {
                assert!(
                    orders[place].deep,
                    "another match forbids {found:?} of {}",
                    rule.name.text
                );
                continue;
            }
            self.apply(rule, &found);
            applied += 1;
        }
        Some((count, applied))
    }

    fn zero(&self, sort: Sort, of: &str) -> BTreeMap<String, Value> {
        let types = match sort {
            Sort::Vertex => &self.schema.vertices,
            Sort::Edge => &self.schema.edges,
        };
        let attributes = &types.named(of).unwrap().attributes;
        attributes
            .iter()
            .map(|one| (one.name.clone(), one.kind.zero()))
            .collect()
    }

    fn apply(&mut self, rule: &Rule, found: &Match) {
        let before = self.clone();
        let mut vertices = found.vertices.clone();
        let mut edges = found.edges.clone();
        for vertex in &rule.create.vertices {
            let of = vertex.of.text.clone();
            let values = self.zero(Sort::Vertex, &of);
            self.vertices
                .insert(self.next_vertex, Vertex { of, values });
            vertices.push((vertex.name.text.clone(), self.next_vertex));
            self.next_vertex += 1;
        }
        for edge in &rule.create.edges {
            let end = |name: &str| vertices.iter().find(|(other, _)| other == name).unwrap().1;
            let new = Edge {
                of: edge.of.text.clone(),
                source: end(&edge.source.text),
                target: end(&edge.target.text),
                values: self.zero(Sort::Edge, &edge.of.text),
            };
            self.edges.insert(self.next_edge, new);
            edges.push((
                edge.name.as_ref().map(|name| name.text.clone()),
                self.next_edge,
            ));
            self.next_edge += 1;
        }
        for setting in &rule.set {
            let value = before.value(found, &setting.value);
            let (owner, attribute) = (&setting.owner.text, setting.attribute.text.clone());
            if let Some((_, id)) = vertices.iter().find(|(name, _)| name == owner) {
                self.vertices
                    .get_mut(id)
                    .unwrap()
                    .values
                    .insert(attribute, value);
            } else {
                let is = |(name, _): &&(Option<String>, u32)| name.as_ref() == Some(owner);
                let (_, id) = edges.iter().find(is).unwrap();
                self.edges
                    .get_mut(id)
                    .unwrap()
                    .values
                    .insert(attribute, value);
            }
        }
        for gone in &rule.delete {
            if let Some((_, id)) = vertices.iter().find(|(name, _)| *name == gone.text) {
                self.vertices.remove(id);
                self.edges
                    .retain(|_, edge| edge.source != *id && edge.target != *id);
            } else {
                let is = |(name, _): &&(Option<String>, u32)| name.as_ref() == Some(&gone.text);
                let (_, id) = edges.iter().find(is).unwrap();
                self.edges.remove(id);
            }
        }
    }
}

fn calculate(operation: Binary, left: &Value, right: &Value) -> Value {
    match (operation, left, right) {
        (Binary::And, Value::Bool(a), Value::Bool(b)) => Value::Bool(*a && *b),
        (Binary::Or, Value::Bool(a), Value::Bool(b)) => Value::Bool(*a || *b),
        (Binary::Add, Value::Int(a), Value::Int(b)) => Value::Int(a + b),
        (Binary::Subtract, Value::Int(a), Value::Int(b)) => Value::Int(a - b),
        (Binary::Multiply, Value::Int(a), Value::Int(b)) => Value::Int(a * b),
        (Binary::Remainder, Value::Int(a), Value::Int(b)) => Value::Int(a % b),
        (_, Value::Int(a), Value::Int(b)) => Value::Bool(compare(operation, a, b)),
        (_, Value::Text(a), Value::Text(b)) => Value::Bool(compare(operation, a, b)),
        _ => panic!("{left} {} {right}", operation.sign()),
    }
}

fn compare<T: PartialOrd>(operation: Binary, left: &T, right: &T) -> bool {
    match operation {
        Binary::Equal => left == right,
        Binary::Unequal => left != right,
        Binary::Less => left < right,
        Binary::AtMost => left <= right,
        Binary::More => left > right,
        Binary::AtLeast => left >= right,
        _ => panic!("{}", operation.sign()),
    }
}
