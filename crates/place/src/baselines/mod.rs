//! Published ways to place, in our own versions: to start from, and to compare with.
//!
//! All three know which components talk and how the machine nests. The machine's measured costs
//! enter only as one number for each connection, the saving of being together. Pins hold.

mod bisection;
mod greedy;
mod grouping;

use crate::cost::problem::Problem;
use crate::cost::{CostError, CostOptions};
use crate::graph::Graph;
use crate::slots::{CpuSlot, Machine, Placement};

pub(crate) use bisection::bisection_of;
pub(crate) use greedy::greedy_of;
pub(crate) use grouping::grouping_of;

/// A way to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Baseline {
    /// Bottom-up groups of equal size, level by level of the machine, after TreeMatch's idea.
    Grouping,
    /// Groups grown around the component that talks most until they have their share of the work,
    /// after EagerMap's.
    Greedy,
    /// Components and slots halved again and again, with few messages across.
    Bisection,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Grouping, Self::Greedy, Self::Bisection];

    /// Places the components.
    ///
    /// # Errors
    /// [`CostError::Graph`] if the graph is not sound.
    pub fn place(
        self,
        graph: &Graph,
        machine: &Machine,
        options: &CostOptions,
    ) -> Result<Placement, CostError> {
        graph.check()?;
        let problem = Problem::new(graph, machine, options);
        Ok(Placement(self.of(&problem, &Affinity::of(&problem))))
    }

    pub(crate) fn of(self, problem: &Problem, affinity: &Affinity) -> Vec<CpuSlot> {
        let mut at = match self {
            Self::Grouping => grouping_of(problem, affinity),
            Self::Greedy => greedy_of(problem, affinity),
            Self::Bisection => bisection_of(problem, affinity),
        };
        pin(problem, &mut at);
        at
    }
}

/// Puts pinned components on their slots.
pub(crate) fn pin(problem: &Problem, at: &mut [CpuSlot]) {
    for (slot, pin) in at.iter_mut().zip(&problem.pins) {
        *slot = pin.unwrap_or(*slot);
    }
}

/// Saving of each pair of components by being together, ns a round.
pub(crate) struct Affinity {
    first: Vec<u32>,
    peers: Vec<(u32, f64)>,
}

impl Affinity {
    pub(crate) fn of(problem: &Problem) -> Self {
        let worst = |edge: &crate::cost::problem::Edge| {
            let costs = (0..problem.classes).map(|class| problem.edge_ns(edge, class));
            costs.fold(0.0, f64::max) - problem.edge_ns(edge, 0)
        };
        let saved: Vec<f64> = problem.edges.iter().map(worst).collect();
        let mut first = vec![0];
        let mut peers: Vec<(u32, f64)> = Vec::new();
        for component in 0..problem.count() {
            let start = peers.len();
            let ends = problem.ends(component).iter();
            peers.extend(ends.map(|end| (end.peer, saved[end.edge as usize].max(0.0))));
            peers[start..].sort_by_key(|(peer, _)| *peer);
            let mut kept = start;
            for at in start..peers.len() {
                if kept > start && peers[kept - 1].0 == peers[at].0 {
                    peers[kept - 1].1 += peers[at].1;
                } else {
                    peers[kept] = peers[at];
                    kept += 1;
                }
            }
            peers.truncate(kept);
            first.push(u32::try_from(peers.len()).expect("pairs are fewer than 2³²"));
        }
        Self { first, peers }
    }

    /// Peers of a component, with the saving of being together.
    pub(crate) fn peers(&self, component: usize) -> &[(u32, f64)] {
        &self.peers[self.first[component] as usize..self.first[component + 1] as usize]
    }

    pub(crate) fn total(&self, component: usize) -> f64 {
        self.peers(component).iter().map(|(_, saved)| saved).sum()
    }
}

/// The machine's slots as ever larger sets that share something: cores, caches, nodes, packages.
/// Each level's sets are lengths of runs of slots; slots are in the topology's order, so everything
/// that nests is a run.
pub(crate) fn levels(machine: &Machine) -> Vec<Vec<usize>> {
    let count = machine.slots().len();
    let runs = |same: &dyn Fn(usize, usize) -> bool| {
        let mut runs: Vec<usize> = Vec::new();
        for at in 0..count {
            match runs.last_mut() {
                Some(run) if same(at - 1, at) => *run += 1,
                _ => runs.push(1),
            }
        }
        runs
    };
    let slots = machine.slots();
    let mut levels = vec![runs(&|a, b| slots[a].core == slots[b].core)];
    let mut depths: Vec<u8> = machine.caches().iter().map(|c| c.level).collect();
    depths.dedup();
    for depth in depths {
        let of = |at: usize| {
            let path = machine.path(crate::slots::slot_number(at)).iter();
            path.copied()
                .find(|c| machine.caches()[*c as usize].level == depth)
        };
        levels.push(runs(&|a, b| of(a).is_some() && of(a) == of(b)));
    }
    levels.push(runs(&|a, b| {
        slots[a].node == slots[b].node && slots[a].package == slots[b].package
    }));
    levels.push(runs(&|a, b| slots[a].package == slots[b].package));
    levels.sort_by_key(|runs| std::cmp::Reverse(runs.len()));
    levels.dedup();
    levels.retain(|runs| runs.len() > 1 && runs.len() < count);
    levels
}

/// Divides items into groups of the given sizes. Each grows from the item with most to save, by the
/// item that saves most with the group.
pub(crate) fn grow(
    count: usize,
    sizes: &[usize],
    peers: &dyn Fn(usize) -> Vec<(u32, f64)>,
) -> Vec<Vec<usize>> {
    let totals: Vec<f64> = (0..count)
        .map(|item| peers(item).iter().map(|(_, saved)| saved).sum())
        .collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| totals[*b].total_cmp(&totals[*a]).then(a.cmp(b)));
    let mut is_free = vec![true; count];
    let mut pull = vec![0.0; count];
    let mut groups = Vec::new();
    for size in sizes {
        let mut group: Vec<usize> = Vec::new();
        pull.fill(0.0);
        while group.len() < *size {
            let free = order.iter().copied().filter(|item| is_free[*item]);
            let best = free.reduce(|best, item| if pull[item] > pull[best] { item } else { best });
            let Some(item) = best else { break };
            is_free[item] = false;
            for (peer, saved) in peers(item) {
                pull[peer as usize] += saved;
            }
            group.push(item);
        }
        groups.push(group);
    }
    groups
}
