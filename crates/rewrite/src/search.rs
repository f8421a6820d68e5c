//! The search for matches of one rule from one pivot, by its plan. It locks nothing and changes
//! nothing: any number of threads search in one graph.
//!
//! The time goes where [`Search::extend`] walks the edges of a vertex. For each it reads the half
//! edge, which is beside the one before, and unless all vertices are of one type the other
//! vertex's record, which is anywhere: about one miss of the cache for each edge in a large graph.
//! Conditions read one word more. So the order of tests is type, injectivity, conditions, `unless`.

use crate::code::{Bindings, ELEMENTS_MAX};
use crate::graph::{Direction, Graph};
use crate::plan::{Step, Try};
use crate::schema::TypeRange;

/// Returned by a search that is at its end rather than to go back.
const ON: usize = usize::MAX;

pub(crate) struct Search<'a> {
    graph: &'a Graph,
    pub(crate) bound: Bindings,
    /// The vertices that are bound, in the order of the steps: no two are the same.
    used: [u32; ELEMENTS_MAX],
    used_len: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Search<'a> {
        Search {
            graph,
            bound: Bindings::new(),
            used: [u32::MAX; ELEMENTS_MAX],
            used_len: 0,
        }
    }

    /// Whether a vertex fulfils the conditions on a pivot.
    pub(crate) fn may_start_at(&mut self, step: &Step, pivot: u32) -> bool {
        self.bound.vertices[usize::from(step.vertex)] = pivot;
        step.conditions
            .iter()
            .all(|one| one.is_true(self.graph, &self.bound))
    }

    /// Calls `found` for each match from a pivot, in the order of the plan. It returns the step to
    /// go on with, 0 for none, or a number above all steps.
    pub(crate) fn start_at(
        &mut self,
        steps: &[Step],
        pivot: u32,
        found: &mut impl FnMut(&Bindings) -> usize,
    ) {
        let step = &steps[0];
        self.bound.vertices[usize::from(step.vertex)] = pivot;
        self.used[0] = pivot;
        self.used_len = 1;
        if self.fits(step) {
            self.extend(&steps[1..], 1, found);
        }
    }

    /// Whether some `unless` pattern is there beside a stored match, whose first numbers are
    /// vertices.
    pub(crate) fn is_forbidden(
        &mut self,
        plans: &[Vec<Step>],
        stored: &[u32],
        vertices: usize,
    ) -> bool {
        self.bound.vertices[..vertices].copy_from_slice(&stored[..vertices]);
        self.bound.edges[..stored.len() - vertices].copy_from_slice(&stored[vertices..]);
        self.used[..vertices].copy_from_slice(&stored[..vertices]);
        self.used_len = vertices;
        plans.iter().any(|plan| self.exists(plan))
    }

    fn exists(&mut self, plan: &[Step]) -> bool {
        let used_len = self.used_len;
        let is = self.extend(plan, 1, &mut found_one) == 0;
        self.used_len = used_len;
        is
    }

    /// Whether the conditions of a step are fulfilled, and its `unless` patterns absent.
    #[inline(always)]
    fn fits(&mut self, step: &Step) -> bool {
        step.conditions
            .iter()
            .all(|one| one.is_true(self.graph, &self.bound))
            && (step.unless.is_empty() || !step.unless.iter().any(|plan| self.exists(plan)))
    }

    /// Binds a vertex of a step and goes on. None: it cannot be bound.
    #[inline(always)]
    fn with_vertex(
        &mut self,
        steps: &[Step],
        level: usize,
        vertex: u32,
        found: &mut impl FnMut(&Bindings) -> usize,
    ) -> usize {
        let step = &steps[0];
        if !step.any_type && !step.range.has(self.graph.number(vertex)) {
            return ON;
        }
        let len = self.used_len;
        if self.used[..len].contains(&vertex) {
            return ON;
        }
        self.bound.vertices[usize::from(step.vertex)] = vertex;
        self.used[len] = vertex;
        self.used_len = len + 1;
        let mut to = ON;
        if self.fits(step) {
            to = self.extend(&steps[1..], level + 1, found);
        }
        self.used_len = len;
        to
    }

    /// Tries all ways to bind the remaining steps, of which the first has this number.
    fn extend(
        &mut self,
        steps: &[Step],
        level: usize,
        found: &mut impl FnMut(&Bindings) -> usize,
    ) -> usize {
        let Some(step) = steps.first() else {
            return found(&self.bound);
        };
        match step.tries {
            Try::From {
                edge,
                from,
                direction,
                edges,
            } => {
                let from = self.bound.vertices[usize::from(from)];
                let graph = self.graph;
                for half in graph.halves_of(from, direction, edges) {
                    self.bound.edges[usize::from(edge)] = half.edge;
                    let to = self.with_vertex(steps, level, half.vertex, found);
                    if to < level {
                        return to;
                    }
                }
            }
            Try::Between {
                edge,
                source,
                target,
                edges,
            } => {
                let source = self.bound.vertices[usize::from(source)];
                let target = self.bound.vertices[usize::from(target)];
                // By the shorter of the two lists; both have the edges in the same order.
                let graph = self.graph;
                let out = graph.halves(source, Direction::Out);
                let into = graph.halves(target, Direction::In);
                let (list, other) = match out.len() <= into.len() {
                    true => (out, target),
                    false => (into, source),
                };
                let mut at = 0;
                for number in edges.first..=edges.last {
                    let key = (number, other);
                    at += list[at..].partition_point(|half| (half.number, half.vertex) < key);
                    for half in &list[at..] {
                        if (half.number, half.vertex) != key {
                            break;
                        }
                        let is_bound =
                            |other: &u8| self.bound.edges[usize::from(*other)] == half.edge;
                        if step.beside.iter().any(is_bound) {
                            continue;
                        }
                        self.bound.edges[usize::from(edge)] = half.edge;
                        if self.fits(step) {
                            let to = self.extend(&steps[1..], level + 1, found);
                            if to < level {
                                return to;
                            }
                        }
                    }
                    if at == list.len() {
                        break;
                    }
                }
            }
            Try::All => {
                for vertex in self.of_types(step.range) {
                    let to = self.with_vertex(steps, level, vertex, found);
                    if to < level {
                        return to;
                    }
                }
            }
        }
        ON
    }

    #[cold]
    fn of_types(&self, range: TypeRange) -> Vec<u32> {
        self.graph.of_types(range)
    }
}

/// Ends the search for an `unless` pattern: one is enough.
fn found_one(_: &Bindings) -> usize {
    0
}
