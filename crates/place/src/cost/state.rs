//! A placement and its cost, kept up to date while components move one by one.

use super::peak::Peak;
use super::problem::Problem;
use super::{Bottleneck, Breakdown, Load};
use crate::graph::ComponentId;
use crate::machine::Slot;

/// What local search compares: first memory, then J, then how even loads are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    pub(crate) over: f64,
    pub(crate) total: f64,
    pub(crate) squares: f64,
}

impl Score {
    /// Whether this is better than `other` by more than rounding.
    pub(crate) fn beats(&self, other: &Self) -> bool {
        let less = |a: f64, b: f64, part: f64| a < b - part * b.abs();
        if less(self.over, other.over, 1e-9) {
            return true;
        }
        if less(other.over, self.over, 1e-9) {
            return false;
        }
        less(self.total, other.total, 1e-9)
            || (!less(other.total, self.total, 1e-9) && less(self.squares, other.squares, 1e-6))
    }
}

/// What moving components away from where they are costs: a search that must pay for itself.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) at: Vec<Slot>,
    /// By component, ns a round for being elsewhere.
    pub(crate) away_ns: Vec<f64>,
}

#[derive(Clone)]
pub(crate) struct State<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    at: Vec<Slot>,
    loads: Vec<Load>,
    /// By slot: load by capacity, as last counted in `squares`.
    counted: Vec<f64>,
    peaks: Peak,
    squares: f64,
    load_sum: f64,
    communication: f64,
    sharing: f64,
    /// By cache: bytes of working sets behind it.
    demand: Vec<f64>,
    /// By slot: lines gone through.
    touched: Vec<f64>,
    /// By slot and cache of its path: lines that its components would miss alone.
    alone: Vec<Vec<f64>>,
    node_heap: Vec<f64>,
    over: f64,
    cycles: Vec<f64>,
    cycle_peaks: Peak,
    home: Option<&'p Home>,
    away: f64,
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    /// What moving took since someone asked.
    steps: u64,
}

impl<'p, 'a> State<'p, 'a> {
    /// Of a placement that fits the problem.
    pub(crate) fn new(problem: &'p Problem<'a>, at: &[Slot]) -> Self {
        let machine = problem.machine;
        let slots = problem.slots();
        let mut state = Self {
            problem,
            at: at.to_vec(),
            loads: vec![Load::default(); slots],
            counted: vec![0.0; slots],
            peaks: Peak::new(machine.cores().len()),
            squares: 0.0,
            load_sum: 0.0,
            communication: 0.0,
            sharing: 0.0,
            demand: vec![0.0; machine.caches().len()],
            touched: vec![0.0; slots],
            alone: machine
                .all()
                .map(|s| vec![0.0; machine.path(s).len()])
                .collect(),
            node_heap: vec![0.0; machine.nodes().len()],
            over: 0.0,
            cycles: Vec::new(),
            cycle_peaks: Peak::new(problem.cycles.len()),
            home: None,
            away: 0.0,
            dirty: Vec::new(),
            is_dirty: vec![false; slots],
            steps: 0,
        };
        state.recount();
        state
    }

    /// The same, paying for components that are away from home.
    pub(crate) fn with_home(mut self, home: &'p Home) -> Self {
        self.home = Some(home);
        self.recount();
        self
    }

    pub(crate) fn placement(&self) -> &[Slot] {
        &self.at
    }

    pub(crate) fn slot(&self, component: usize) -> Slot {
        self.at[component]
    }

    pub(crate) fn load_ns(&self, slot: Slot) -> f64 {
        self.counted[slot.index()]
    }

    /// How many connections and slots were looked at again since the last time this was asked.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }

    /// The core with the largest load, by its slots.
    pub(crate) fn busiest(&self) -> &[Slot] {
        &self.problem.machine.cores()[self.peaks.position()]
    }

    /// All from the beginning, which also ends what rounding adds up.
    pub(crate) fn recount(&mut self) {
        let problem = self.problem;
        self.loads.fill(Load::default());
        self.counted.fill(0.0);
        (self.squares, self.load_sum, self.communication) = (0.0, 0.0, 0.0);
        (self.sharing, self.away) = (0.0, 0.0);
        self.demand.fill(0.0);
        self.touched.fill(0.0);
        self.alone.iter_mut().for_each(|alone| alone.fill(0.0));
        self.node_heap.fill(0.0);
        for component in 0..problem.count() {
            let slot = self.at[component];
            self.loads[slot.index()].work_ns += problem.work[component];
            self.loads[slot.index()].communication_ns += problem.own[component];
            self.communication += problem.own[component];
            self.add_memory(component, slot, 1.0);
            for cache in problem.machine.path(slot) {
                self.demand[*cache as usize] += problem.set[component];
            }
            self.away += self.away_ns(component, slot);
        }
        for edge in problem.edges.iter().filter(|edge| edge.from != edge.to) {
            let (from, to) = (self.at[edge.from as usize], self.at[edge.to as usize]);
            let share = problem.share(edge, problem.class(from, to));
            self.loads[from.index()].communication_ns += edge.messages * share.send_ns;
            self.loads[to.index()].communication_ns += edge.messages * share.receive_ns;
            self.communication += edge.messages * share.total_ns();
        }
        self.cycles = (0..problem.cycles.len())
            .map(|c| self.cycle_ns(c))
            .collect();
        for at in 0..self.cycles.len() {
            self.cycle_peaks.set(at, self.cycles[at]);
        }
        self.over = self.over_bytes();
        self.dirty = (0..).take(problem.slots()).collect();
        self.settle();
    }

    fn cycle_ns(&self, cycle: usize) -> f64 {
        let cycle = &self.problem.cycles[cycle];
        let terms = cycle.terms.iter().map(|(edge, weight)| {
            let edge = &self.problem.edges[*edge as usize];
            let (from, to) = (self.at[edge.from as usize], self.at[edge.to as usize]);
            weight * self.problem.edge_ns(edge, self.problem.class(from, to))
        });
        cycle.constant_ns + terms.sum::<f64>()
    }

    fn away_ns(&self, component: usize, slot: Slot) -> f64 {
        match self.home {
            Some(home) if home.at[component] != slot => home.away_ns[component],
            _ => 0.0,
        }
    }

    /// Heap, lines and own misses of a component, added to a slot or taken away.
    fn add_memory(&mut self, component: usize, slot: Slot, sign: f64) {
        let problem = self.problem;
        let machine = problem.machine;
        let node = machine.slots()[slot.index()].node as usize;
        self.node_heap[node] += sign * problem.heap[component];
        if !problem.has_sets {
            return;
        }
        let lines = problem.touched[component];
        self.touched[slot.index()] += sign * lines;
        for (cache, alone) in machine.path(slot).iter().zip(&mut self.alone[slot.index()]) {
            let bytes = machine.caches()[*cache as usize].bytes;
            *alone += sign * lines * miss_share(bytes, problem.set[component]);
        }
    }

    /// Moves a component, and keeps everything right.
    pub(crate) fn put(&mut self, component: usize, to: Slot) {
        let from = self.at[component];
        if from == to {
            return;
        }
        let problem = self.problem;
        self.loads[from.index()].work_ns -= problem.work[component];
        self.loads[to.index()].work_ns += problem.work[component];
        self.loads[from.index()].communication_ns -= problem.own[component];
        self.loads[to.index()].communication_ns += problem.own[component];
        self.mark(from);
        self.mark(to);
        for end in problem.ends(component) {
            self.put_end(end, from, to);
        }
        self.away += self.away_ns(component, to) - self.away_ns(component, from);
        self.add_memory(component, from, -1.0);
        self.add_memory(component, to, 1.0);
        if problem.has_sets && problem.set[component] > 0.0 {
            self.put_set(problem.set[component], from, to);
        }
        if problem.memory_bounds {
            self.over = self.over_bytes();
        }
        self.at[component] = to;
        self.steps += 2 + (problem.ends(component).len() + 2 * self.dirty.len()) as u64;
        self.settle();
    }

    fn put_end(&mut self, end: &super::problem::End, from: Slot, to: Slot) {
        let problem = self.problem;
        let edge = &problem.edges[end.edge as usize];
        let other = self.at[end.peer as usize];
        let before = problem.share(edge, problem.class(from, other));
        let after = problem.share(edge, problem.class(to, other));
        let rate = edge.messages;
        let (mine_before, theirs_before, mine_after, theirs_after) = if end.sends {
            (
                before.send_ns,
                before.receive_ns,
                after.send_ns,
                after.receive_ns,
            )
        } else {
            (
                before.receive_ns,
                before.send_ns,
                after.receive_ns,
                after.send_ns,
            )
        };
        self.loads[from.index()].communication_ns -= rate * mine_before;
        self.loads[to.index()].communication_ns += rate * mine_after;
        self.loads[other.index()].communication_ns += rate * (theirs_after - theirs_before);
        self.mark(other);
        let change = rate * (after.total_ns() - before.total_ns());
        self.communication += change;
        for (cycle, weight) in problem.turns(end.edge) {
            let cycle = *cycle as usize;
            self.cycles[cycle] += weight * change;
            self.cycle_peaks.set(cycle, self.cycles[cycle]);
        }
    }

    /// A working set leaves the caches of one slot for those of another: all behind caches that
    /// only one of them has miss more, or less.
    fn put_set(&mut self, bytes: f64, from: Slot, to: Slot) {
        let machine = self.problem.machine;
        for (old, new, sign) in [(from, to, -1.0), (to, from, 1.0)] {
            let there = machine.path(new);
            for cache in machine.path(old).iter().filter(|c| !there.contains(c)) {
                let parts = &machine.caches()[*cache as usize];
                let before = self.demand[*cache as usize];
                let after = before + sign * bytes;
                self.demand[*cache as usize] = after;
                if before > parts.bytes || after > parts.bytes {
                    parts.slots.iter().for_each(|slot| self.mark(*slot));
                }
            }
        }
    }

    fn mark(&mut self, slot: Slot) {
        if !self.is_dirty[slot.index()] {
            self.is_dirty[slot.index()] = true;
            self.dirty.push(slot.0);
        }
    }

    /// Brings the sums in line with the slots that changed.
    fn settle(&mut self) {
        let machine = self.problem.machine;
        let mut dirty = std::mem::take(&mut self.dirty);
        for at in &dirty {
            let slot = Slot(*at);
            self.is_dirty[slot.index()] = false;
            if self.problem.has_sets {
                let lost = self.lost_ns(slot);
                self.sharing += lost - self.loads[slot.index()].sharing_ns;
                self.loads[slot.index()].sharing_ns = lost;
            }
            let load = self.loads[slot.index()].total_ns();
            let load = load / machine.slots()[slot.index()].capacity;
            let before = std::mem::replace(&mut self.counted[slot.index()], load);
            self.squares += load * load - before * before;
            self.load_sum += load - before;
        }
        for at in &dirty {
            let core = machine.slots()[*at as usize].core as usize;
            self.peaks.set(core, self.core_ns(core).0);
        }
        dirty.clear();
        self.dirty = dirty;
    }

    /// What the components of a slot lose to others in its caches.
    fn lost_ns(&self, slot: Slot) -> f64 {
        let machine = self.problem.machine;
        let lines = self.touched[slot.index()];
        let levels = machine.path(slot).iter().zip(&self.alone[slot.index()]);
        let lost = levels.map(|(cache, alone)| {
            let parts = &machine.caches()[*cache as usize];
            let missed = lines * miss_share(parts.bytes, self.demand[*cache as usize]);
            parts.miss_ns * (missed - alone).max(0.0)
        });
        lost.sum()
    }

    /// The load of a core, and whether all siblings together make it.
    fn core_ns(&self, core: usize) -> (f64, bool) {
        let slots = &self.problem.machine.cores()[core];
        let (mut largest, mut sum) = (0.0_f64, 0.0);
        for slot in slots {
            largest = largest.max(self.counted[slot.index()]);
            sum += self.counted[slot.index()];
        }
        let together = sum / self.problem.options.smt_yield.max(1.0);
        (largest.max(together), together > largest)
    }

    fn over_bytes(&self) -> f64 {
        let nodes = self.problem.machine.nodes().iter().zip(&self.node_heap);
        let over = nodes.map(|(node, heap)| (heap - node.bytes.unwrap_or(f64::INFINITY)).max(0.0));
        over.sum()
    }

    fn quota_ns(&self) -> f64 {
        let quota = self.problem.machine.quota();
        quota.map_or(0.0, |cpus| self.load_sum / cpus)
    }

    fn bottleneck_ns(&self) -> f64 {
        let peak = self.peaks.largest().max(self.cycle_peaks.largest());
        peak.max(self.quota_ns())
    }

    /// J, with what being away from home costs.
    pub(crate) fn total_ns(&self) -> f64 {
        let spread = (self.communication + self.sharing) / self.problem.divisor;
        self.bottleneck_ns() + spread + self.away
    }

    pub(crate) fn score(&self) -> Score {
        Score {
            over: self.over,
            total: self.total_ns(),
            squares: self.squares,
        }
    }

    fn bottleneck(&self) -> Bottleneck {
        let (peak, cycle) = (self.peaks.largest(), self.cycle_peaks.largest());
        if self.quota_ns() > peak.max(cycle) {
            return Bottleneck::Quota;
        }
        if cycle > peak {
            let cycle = &self.problem.cycles[self.cycle_peaks.position()];
            return Bottleneck::Cycle(ComponentId(cycle.component));
        }
        let core = self.peaks.position();
        let slots = &self.problem.machine.cores()[core];
        if self.core_ns(core).1 {
            return Bottleneck::Core(slots[0]);
        }
        let busiest = slots
            .iter()
            .max_by(|a, b| self.load_ns(**a).total_cmp(&self.load_ns(**b)));
        Bottleneck::Slot(*busiest.unwrap_or(&slots[0]))
    }

    /// The cost in full, counted anew.
    pub(crate) fn breakdown(mut self) -> Breakdown {
        self.recount();
        Breakdown {
            total_ns: self.total_ns() - self.away,
            bottleneck_ns: self.bottleneck_ns(),
            bottleneck: self.bottleneck(),
            communication_ns: self.communication,
            sharing_ns: self.sharing,
            divisor: self.problem.divisor,
            loads: self.loads,
            over_bytes: self.over,
        }
    }
}

/// The share of lines that a cache of so many bytes misses when so many are wanted.
fn miss_share(bytes: f64, wanted: f64) -> f64 {
    if wanted > bytes {
        1.0 - bytes / wanted
    } else {
        0.0
    }
}
