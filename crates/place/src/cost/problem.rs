//! Tables made of a graph and a machine, for evaluating many placements.

use std::collections::{BTreeMap, HashMap};

use hearth_machine::profile::Carrier;

use super::CostOptions;
use super::cycles::{Cycle, cycles};
use crate::graph::{Graph, Kind};
use crate::slots::{CpuSlot, Machine, Message, Share};

/// One end of an edge as its component sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The component at the other end.
    pub(crate) peer: u32,
    /// The edge.
    pub(crate) edge: u32,
    /// The edge's row of [`Problem::shares`].
    pub(crate) row: u32,
    /// Whether this component sends.
    pub(crate) sends: bool,
    /// The edge's messages.
    pub(crate) messages: f64,
}

/// Messages from one component to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) messages: f64,
    /// The row of [`Problem::shares`].
    pub(crate) row: u32,
}

/// Everything that does not depend on the placement.
pub(crate) struct Problem<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) options: CostOptions,
    pub(crate) work: Vec<f64>,
    pub(crate) heap: Vec<f64>,
    /// Bytes of working set.
    pub(crate) set: Vec<f64>,
    /// Lines touched in a round.
    pub(crate) touched: Vec<f64>,
    /// By component, ns in a round for messages to itself, which move with it.
    pub(crate) own: Vec<f64>,
    pub(crate) pins: Vec<Option<CpuSlot>>,
    pub(crate) edges: Vec<Edge>,
    first_end: Vec<u32>,
    ends: Vec<End>,
    /// Cost of one message, by row and class of pair.
    shares: Vec<Share>,
    /// The number of classes.
    pub(crate) classes: usize,
    pub(crate) cycles: Vec<Cycle>,
    first_turn: Vec<u32>,
    /// Cycles of each edge, with the edge's weight.
    turns: Vec<(u32, f64)>,
    /// n of the equation.
    pub(crate) divisor: f64,
    pub(crate) by_divisor: f64,
    /// Reciprocal of each slot's capacity.
    pub(crate) by_capacity: Vec<f64>,
    /// Core of each slot.
    pub(crate) core_of: Vec<u32>,
    /// Reciprocal of the siblings' yield.
    pub(crate) by_siblings: f64,
    /// Whether any component has a working set.
    pub(crate) has_sets: bool,
    /// Whether heaps could exceed a node's memory.
    pub(crate) memory_bounds: bool,
}

impl<'a> Problem<'a> {
    /// Builds the tables of a graph that was [checked](Graph::check).
    pub(crate) fn new(graph: &Graph, machine: &'a Machine, options: &CostOptions) -> Self {
        let components = &graph.components;
        let column = |of: fn(&crate::graph::Component) -> f64| -> Vec<f64> {
            components.iter().map(of).collect()
        };
        let line = machine.line_bytes();
        let touched = components
            .iter()
            .map(|c| c.working_set_bytes.value / line * c.passes.value)
            .collect();
        let heap = column(|c| c.heap_bytes.value);
        let set = column(|c| c.working_set_bytes.value);
        let (edges, shares) = edges(graph, machine, options);
        let classes = machine.messages().classes().len();
        let (first_end, ends) = ends(components.len(), &edges);
        let mut own = vec![0.0; components.len()];
        for edge in edges.iter().filter(|edge| edge.from == edge.to) {
            let share = shares[edge.row as usize * classes];
            own[edge.from as usize] += edge.messages * share.total_ns();
        }
        let cycles = cycles(graph);
        let (first_turn, turns) = turns(edges.len(), &cycles);
        let total: f64 = heap.iter().sum();
        let smallest = machine.nodes().iter().filter_map(|node| node.bytes);
        let smallest = smallest.fold(f64::INFINITY, f64::min);
        let divisor = machine.slots().len().min(components.len()).max(1) as f64;
        Self {
            machine,
            options: *options,
            work: column(|c| c.work_ns.value),
            heap,
            has_sets: set.iter().any(|set| *set > 0.0),
            set,
            touched,
            pins: components
                .iter()
                .map(|c| c.pinned.and_then(|cpu| machine.slot_of(cpu)))
                .collect(),
            own,
            edges,
            first_end,
            ends,
            shares,
            classes,
            cycles,
            first_turn,
            turns,
            by_capacity: machine.slots().iter().map(|s| 1.0 / s.capacity).collect(),
            core_of: machine.slots().iter().map(|s| s.core).collect(),
            by_siblings: 1.0 / options.smt_yield.max(1.0),
            divisor,
            by_divisor: 1.0 / divisor,
            memory_bounds: total > smallest,
        }
    }

    /// Merges components: `groups` names each one's group, of `count`. Messages inside a group stay
    /// inside; equal ones between groups are added up, unless cycles need to tell them apart.
    pub(crate) fn coarsen(&self, groups: &[u32], count: usize) -> Self {
        let gather = |of: &[f64]| {
            let mut sums = vec![0.0; count];
            for (group, value) in groups.iter().zip(of) {
                sums[*group as usize] += value;
            }
            sums
        };
        let mut own = gather(&self.own);
        let mut edges: Vec<Edge> = self
            .edges
            .iter()
            .map(|edge| Edge {
                from: groups[edge.from as usize],
                to: groups[edge.to as usize],
                ..*edge
            })
            .collect();
        for (edge, before) in edges.iter().zip(&self.edges) {
            if edge.from == edge.to && before.from != before.to {
                own[edge.from as usize] += self.edge_ns(edge, 0);
            }
        }
        if self.cycles.is_empty() {
            edges.retain(|edge| edge.from != edge.to);
            edges.sort_by_key(|edge| (edge.from, edge.to, edge.row));
            edges.dedup_by(|next, kept| {
                let same = (next.from, next.to, next.row) == (kept.from, kept.to, kept.row);
                kept.messages += if same { next.messages } else { 0.0 };
                same
            });
        }
        let (first_end, ends) = ends(count, &edges);
        let mut pins = vec![None; count];
        for (group, pin) in groups.iter().zip(&self.pins) {
            pins[*group as usize] = pins[*group as usize].or(*pin);
        }
        let cycles = self.cycles.clone();
        let (first_turn, turns) = turns(edges.len(), &cycles);
        Self {
            machine: self.machine,
            options: self.options,
            work: gather(&self.work),
            heap: gather(&self.heap),
            set: gather(&self.set),
            touched: gather(&self.touched),
            own,
            pins,
            edges,
            first_end,
            ends,
            shares: self.shares.clone(),
            classes: self.classes,
            cycles,
            first_turn,
            turns,
            by_capacity: self.by_capacity.clone(),
            core_of: self.core_of.clone(),
            by_siblings: self.by_siblings,
            divisor: self.divisor,
            by_divisor: self.by_divisor,
            has_sets: self.has_sets,
            memory_bounds: self.memory_bounds,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.work.len()
    }

    pub(crate) fn slots(&self) -> usize {
        self.machine.slots().len()
    }

    pub(crate) fn ends(&self, component: usize) -> &[End] {
        &self.ends[self.first_end[component] as usize..self.first_end[component + 1] as usize]
    }

    /// Cycles of an edge, with its weight in each.
    pub(crate) fn turns(&self, edge: u32) -> &[(u32, f64)] {
        let edge = edge as usize;
        &self.turns[self.first_turn[edge] as usize..self.first_turn[edge + 1] as usize]
    }

    /// Cost of one message of an edge between slots of a class.
    pub(crate) fn share(&self, edge: &Edge, class: usize) -> Share {
        self.shares[edge.row as usize * self.classes + class]
    }

    /// Cost of one message of a row, by class.
    pub(crate) fn costs(&self, row: u32) -> &[Share] {
        &self.shares[row as usize * self.classes..][..self.classes]
    }

    pub(crate) fn class(&self, a: CpuSlot, b: CpuSlot) -> usize {
        self.machine.messages().class(a, b)
    }

    /// Cost of an edge in a round between slots of a class.
    pub(crate) fn edge_ns(&self, edge: &Edge, class: usize) -> f64 {
        edge.messages * self.share(edge, class).total_ns()
    }
}

/// Most users of an end that are compared pair by pair; of more, only those are that talk with each
/// other.
const CONTENDERS_MAX: usize = 32;

/// The edges: one for each connection in order, then those between components that contend for
/// locks; and the cost of one message of each sort.
fn edges(graph: &Graph, machine: &Machine, options: &CostOptions) -> (Vec<Edge>, Vec<Share>) {
    let classes = machine.messages().classes().len();
    let mut rows: HashMap<(u64, Carrier, Kind, bool), u32> = HashMap::new();
    let mut shares = Vec::new();
    let mut next = 0;
    let edges = graph.connections.iter().map(|connection| {
        let message = Message {
            bytes: connection.bytes.value,
            carrier: connection.carrier.unwrap_or(options.carrier),
            kind: connection.kind,
        };
        let is_shared = connection.is_shared;
        let key = (
            message.bytes.to_bits(),
            message.carrier,
            message.kind,
            is_shared,
        );
        let row = *rows.entry(key).or_insert_with(|| {
            shares.extend(
                (0..classes).map(|class| machine.messages().share_of(class, &message, is_shared)),
            );
            next += 1;
            next - 1
        });
        Edge {
            from: connection.from.0,
            to: connection.to.0,
            messages: connection.messages.value,
            row,
        }
    });
    let mut edges: Vec<Edge> = edges.collect();
    shares.extend((0..classes).map(|class| machine.messages().contention_in(class)));
    edges.extend(contenders(graph, options, next));
    (edges, shares)
}

/// Contention for locks. A component that uses a shared end of a channel between workers takes its
/// lock after one of the other users. Yields pairs of users and how often; they pay where they are
/// apart, wherever their peers are.
fn contenders(graph: &Graph, options: &CostOptions, row: u32) -> Vec<Edge> {
    // By peer, and whether the peer receives.
    let mut hubs: BTreeMap<(u32, bool), Vec<(u32, f64)>> = BTreeMap::new();
    for connection in graph.connections.iter().filter(|c| c.is_shared) {
        let (from, to) = (connection.from.0, connection.to.0);
        if connection.carrier.unwrap_or(options.carrier) == Carrier::Worker && from != to {
            let messages = connection.messages.value;
            hubs.entry((from, false)).or_default().push((to, messages));
            hubs.entry((to, true)).or_default().push((from, messages));
        }
    }
    let mut edges = Vec::new();
    for members in hubs.values().filter(|all| all.len() <= CONTENDERS_MAX) {
        let all: f64 = members.iter().map(|(_, messages)| messages).sum();
        for (at, (from, mine)) in members.iter().enumerate() {
            for (to, theirs) in &members[at + 1..] {
                let messages = 2.0 * mine * theirs / all;
                if from != to && messages > 0.0 {
                    let (from, to) = (*from, *to);
                    edges.push(Edge {
                        from,
                        to,
                        messages,
                        row,
                    });
                }
            }
        }
    }
    edges
}

/// Both ends of each edge by component. An edge from a component to itself has none, since no
/// placement changes it.
fn ends(count: usize, edges: &[Edge]) -> (Vec<u32>, Vec<End>) {
    let mut first = vec![0_u32; count + 1];
    let real = || (0_u32..).zip(edges).filter(|(_, e)| e.from != e.to);
    for (_, edge) in real() {
        first[edge.from as usize + 1] += 1;
        first[edge.to as usize + 1] += 1;
    }
    for at in 0..count {
        first[at + 1] += first[at];
    }
    let none = End {
        peer: 0,
        edge: 0,
        row: 0,
        sends: false,
        messages: 0.0,
    };
    let mut ends = vec![none; first[count] as usize];
    let mut next = first.clone();
    for (at, edge) in real() {
        for (mine, peer, sends) in [(edge.from, edge.to, true), (edge.to, edge.from, false)] {
            let place = &mut next[mine as usize];
            ends[*place as usize] = End {
                peer,
                edge: at,
                row: edge.row,
                sends,
                messages: edge.messages,
            };
            *place += 1;
        }
    }
    (first, ends)
}

fn turns(edges: usize, cycles: &[Cycle]) -> (Vec<u32>, Vec<(u32, f64)>) {
    let mut first = vec![0_u32; edges + 1];
    for cycle in cycles {
        for (edge, _) in &cycle.terms {
            first[*edge as usize + 1] += 1;
        }
    }
    for at in 0..edges {
        first[at + 1] += first[at];
    }
    let mut turns = vec![(0, 0.0); first[edges] as usize];
    let mut next = first.clone();
    for (number, cycle) in (0..).zip(cycles) {
        for (edge, weight) in &cycle.terms {
            let place = &mut next[*edge as usize];
            turns[*place as usize] = (number, *weight);
            *place += 1;
        }
    }
    (first, turns)
}
