//! Exhaustive search by branch and bound: all placements that may be better than the best known
//! one.
//!
//! Components are placed one after the other, next the one that talks most with those placed. Of
//! free slots that are [alike](super::alike) one is tried. The cost so far and the least that the
//! rest adds form a bound: all work over all slots, and each connection at its cheapest.

use super::alike::{Alike, Occupied};
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::slots::CpuSlot;

/// The best placement, and whether all others were seen or ruled out within the steps.
pub(super) fn exact(problem: &Problem, best: Vec<CpuSlot>, steps: u64) -> (Vec<CpuSlot>, bool) {
    let alike = Alike::of(problem.machine);
    let mut branch = Branch::new(problem, &alike, best, steps);
    branch.extend(0);
    (branch.best.placement().to_vec(), branch.steps > 0)
}

struct Branch<'p, 'a> {
    problem: &'p Problem<'a>,
    best: State<'p, 'a>,
    trial: State<'p, 'a>,
    order: Vec<usize>,
    /// By component.
    at: Vec<Option<CpuSlot>>,
    occupied: Occupied<'p>,
    /// Load so far, by slot.
    loads: Vec<f64>,
    communication: f64,
    /// Least cost of the connections that are not placed yet.
    rest: f64,
    cheapest: Vec<f64>,
    /// Slots' capacities and the siblings' yield, as a number of whole slots.
    capacity: f64,
    steps: u64,
}

impl<'p, 'a> Branch<'p, 'a> {
    fn new(problem: &'p Problem<'a>, alike: &'p Alike, best: Vec<CpuSlot>, steps: u64) -> Self {
        let cheapest: Vec<f64> = problem
            .edges
            .iter()
            .map(|edge| {
                let costs = (0..problem.classes).map(|class| problem.edge_ns(edge, class));
                costs.fold(f64::INFINITY, f64::min)
            })
            .collect();
        let machine = problem.machine;
        let capacity = machine.cores().iter().map(|slots| {
            let all: f64 = slots
                .iter()
                .map(|s| machine.slots()[s.index()].capacity)
                .sum();
            all.min(problem.options.smt_yield.max(1.0))
        });
        Self {
            best: State::new(problem, &best),
            trial: State::new(problem, &best),
            order: order(problem),
            at: vec![None; problem.count()],
            occupied: Occupied::new(alike),
            loads: vec![0.0; problem.slots()],
            communication: 0.0,
            rest: cheapest.iter().sum(),
            cheapest,
            capacity: capacity.sum(),
            steps,
            problem,
        }
    }

    fn extend(&mut self, depth: usize) {
        let Some(&component) = self.order.get(depth) else {
            self.complete();
            return;
        };
        let mut tries: Vec<(f64, CpuSlot)> = Vec::new();
        for slot in self.candidates(component) {
            self.place(component, slot);
            tries.push((self.bound(), slot));
            self.remove(component);
        }
        self.spend(component, tries.len());
        tries.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (bound, slot) in tries {
            let best = self.best.score();
            // Memory that does not fit is worse than any cost, so nothing is ruled out then.
            if self.steps == 0 || (best.over == 0.0 && bound >= best.total * (1.0 - 1e-9)) {
                return;
            }
            self.place(component, slot);
            self.extend(depth + 1);
            self.remove(component);
        }
    }

    /// Charges steps: a node looks at all slots to tell which are alike, and each try at the
    /// component's connections and all loads.
    fn spend(&mut self, component: usize, tries: usize) {
        let slots = self.problem.slots() as u64;
        let ends = self.problem.ends(component).len() as u64;
        let each = 4 + 2 * ends + slots / 8;
        self.steps = self.steps.saturating_sub(2 * slots + tries as u64 * each);
    }

    /// Used slots, and the first of free ones that are alike. Pinned components come before all
    /// others, so their slots are used.
    fn candidates(&self, component: usize) -> Vec<CpuSlot> {
        if let Some(slot) = self.problem.pins[component] {
            return vec![slot];
        }
        let mut slots = Vec::new();
        self.occupied.different(&mut slots);
        slots
    }

    fn place(&mut self, component: usize, slot: CpuSlot) {
        self.at[component] = Some(slot);
        self.occupied.enter(slot);
        self.add(component, slot, 1.0);
    }

    fn remove(&mut self, component: usize) {
        if let Some(slot) = self.at[component] {
            self.add(component, slot, -1.0);
            self.occupied.leave(slot);
            self.at[component] = None;
        }
    }

    fn add(&mut self, component: usize, slot: CpuSlot, sign: f64) {
        let problem = self.problem;
        self.loads[slot.index()] += sign * (problem.work[component] + problem.own[component]);
        for end in problem.ends(component) {
            let Some(other) = self.at[end.peer as usize] else {
                continue;
            };
            let edge = &problem.edges[end.edge as usize];
            let share = problem.share(edge, problem.class(slot, other));
            let (mine, theirs) = match end.sends {
                true => (share.send_ns, share.receive_ns),
                false => (share.receive_ns, share.send_ns),
            };
            self.loads[slot.index()] += sign * edge.messages * mine;
            self.loads[other.index()] += sign * edge.messages * theirs;
            self.communication += sign * edge.messages * share.total_ns();
            self.rest -= sign * self.cheapest[end.edge as usize];
        }
    }

    /// Lower bound of all completions. Leaves out heaps and caches.
    fn bound(&self) -> f64 {
        let machine = self.problem.machine;
        let peak = machine.cores().iter().map(|slots| {
            let (mut largest, mut sum) = (0.0_f64, 0.0);
            for slot in slots {
                let load = self.loads[slot.index()] / machine.slots()[slot.index()].capacity;
                largest = largest.max(load);
                sum += load;
            }
            largest.max(sum / self.problem.options.smt_yield.max(1.0))
        });
        let peak = peak.fold(0.0, f64::max);
        let messages = self.communication + self.rest.max(0.0);
        let work: f64 = self.problem.work.iter().sum();
        let even = (work + messages) / self.capacity;
        peak.max(even) + messages / self.problem.divisor
    }

    fn complete(&mut self) {
        for (component, slot) in self.at.iter().enumerate() {
            self.trial.put(component, slot.expect("all are placed"));
        }
        if self.trial.score().beats(&self.best.score()) {
            self.trial.recount();
            if self.trial.score().beats(&self.best.score()) {
                self.best = self.trial.clone();
            }
        }
    }
}

/// Order of placing: pinned components, then the most work, then the most communication with those
/// before.
fn order(problem: &Problem) -> Vec<usize> {
    let mut pull: Vec<f64> = (0..problem.count())
        .map(|c| match problem.pins[c] {
            Some(_) => f64::INFINITY,
            None => 1e-6 * problem.work[c],
        })
        .collect();
    let mut order = Vec::new();
    let mut rest: Vec<usize> = (0..problem.count()).collect();
    while !rest.is_empty() {
        let weight = |c: usize| pull[c] + problem.work[c];
        let best = (0..rest.len()).max_by(|a, b| {
            let (a, b) = (rest[*a], rest[*b]);
            weight(a).total_cmp(&weight(b)).then(b.cmp(&a))
        });
        let component = rest.remove(best.expect("some are left"));
        for end in problem.ends(component) {
            let edge = &problem.edges[end.edge as usize];
            let last = problem.classes - 1;
            pull[end.peer as usize] += problem.edge_ns(edge, last);
        }
        order.push(component);
    }
    order
}
