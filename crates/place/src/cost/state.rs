//! A placement and its cost, updated as components move one by one.

use super::crowd::Crowd;
use super::peak::Peak;
use super::problem::Problem;
use super::weigh::Scratch;
use super::{Bottleneck, Breakdown, Load};
use crate::graph::ComponentId;
use crate::search::Score;
use crate::slots::CpuSlot;

/// Cost of moving components away from where they are, for a search that must pay for itself.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) at: Vec<CpuSlot>,
    /// By component, ns a round for being elsewhere.
    pub(crate) away_ns: Vec<f64>,
}

#[derive(Clone)]
pub(crate) struct State<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    pub(super) at: Vec<CpuSlot>,
    crowd: Crowd,
    /// Work and shares of messages, by slot.
    pub(super) busy: Vec<f64>,
    /// Time that a slot's components lose to others in its caches.
    pub(super) lost: Vec<f64>,
    /// Load of each slot by its capacity, as last counted in `squares`.
    pub(super) counted: Vec<f64>,
    pub(super) peaks: Peak,
    pub(super) sums: Sums,
    /// Bytes of working sets behind each cache.
    demand: Vec<f64>,
    /// Lines touched on each slot.
    touched: Vec<f64>,
    /// By slot and cache of its path: lines that its components would miss alone.
    alone: Vec<Vec<f64>>,
    node_heap: Vec<f64>,
    pub(super) cycles: Vec<f64>,
    pub(super) cycle_peaks: Peak,
    pub(super) home: Option<&'p Home>,
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    pub(super) scratch: Option<Box<Scratch>>,
    /// Steps taken since the last query.
    pub(super) steps: u64,
}

/// Sums over all slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) squares: f64,
    pub(super) load: f64,
    pub(super) communication: f64,
    pub(super) sharing: f64,
    pub(super) over: f64,
    pub(super) away: f64,
}

impl<'p, 'a> State<'p, 'a> {
    /// The state of a placement that fits the problem.
    pub(crate) fn new(problem: &'p Problem<'a>, at: &[CpuSlot]) -> Self {
        let machine = problem.machine;
        let slots = problem.slots();
        let mut state = Self {
            problem,
            at: at.to_vec(),
            crowd: Crowd::new(slots, at),
            busy: vec![0.0; slots],
            lost: vec![0.0; slots],
            counted: vec![0.0; slots],
            peaks: Peak::new(machine.cores().len()),
            sums: Sums::default(),
            demand: vec![0.0; machine.caches().len()],
            touched: vec![0.0; slots],
            alone: machine
                .all()
                .map(|s| vec![0.0; machine.path(s).len()])
                .collect(),
            node_heap: vec![0.0; machine.nodes().len()],
            cycles: Vec::new(),
            cycle_peaks: Peak::new(problem.cycles.len()),
            home: None,
            dirty: Vec::new(),
            is_dirty: vec![false; slots],
            scratch: Some(Box::new(Scratch::new(slots, problem.cycles.len()))),
            steps: 0,
        };
        state.recount();
        state
    }

    /// The same with a charge for components away from home.
    pub(crate) fn with_home(mut self, home: &'p Home) -> Self {
        self.home = Some(home);
        self.recount();
        self
    }

    pub(crate) fn placement(&self) -> &[CpuSlot] {
        &self.at
    }

    pub(crate) fn slot(&self, component: usize) -> CpuSlot {
        self.at[component]
    }

    /// The components of a slot, in no particular order.
    pub(crate) fn on(&self, slot: CpuSlot) -> impl Iterator<Item = usize> + '_ {
        self.crowd.on(slot)
    }

    pub(crate) fn load_ns(&self, slot: CpuSlot) -> f64 {
        self.counted[slot.index()]
    }

    /// Takes the number of connections and slots looked at since the last call.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }

    /// The core with the largest load, as its slots.
    pub(crate) fn busiest(&self) -> &[CpuSlot] {
        &self.problem.machine.cores()[self.peaks.position()]
    }

    /// Counts everything anew, which also ends accumulated rounding.
    pub(crate) fn recount(&mut self) {
        let problem = self.problem;
        self.sums = Sums::default();
        for table in [&mut self.busy, &mut self.lost, &mut self.counted] {
            table.fill(0.0);
        }
        for table in [&mut self.demand, &mut self.touched, &mut self.node_heap] {
            table.fill(0.0);
        }
        self.alone.iter_mut().for_each(|alone| alone.fill(0.0));
        for component in 0..problem.count() {
            let slot = self.at[component];
            self.busy[slot.index()] += problem.work[component] + problem.own[component];
            self.sums.communication += problem.own[component];
            self.add_memory(component, slot, 1.0);
            for cache in problem.machine.path(slot) {
                self.demand[*cache as usize] += problem.set[component];
            }
            self.sums.away += self.away_ns(component, slot);
        }
        for edge in problem.edges.iter().filter(|edge| edge.from != edge.to) {
            let (from, to) = (self.at[edge.from as usize], self.at[edge.to as usize]);
            let share = problem.share(edge, problem.class(from, to));
            self.busy[from.index()] += edge.messages * share.send_ns;
            self.busy[to.index()] += edge.messages * share.receive_ns;
            self.sums.communication += edge.messages * share.total_ns();
        }
        self.cycles = (0..problem.cycles.len())
            .map(|c| self.cycle_ns(c))
            .collect();
        for at in 0..self.cycles.len() {
            self.cycle_peaks.set(at, self.cycles[at]);
        }
        self.sums.over = self.over_bytes();
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

    pub(super) fn away_ns(&self, component: usize, slot: CpuSlot) -> f64 {
        match self.home {
            Some(home) if home.at[component] != slot => home.away_ns[component],
            _ => 0.0,
        }
    }

    /// Adds a component's heap, lines and own misses to a slot, or subtracts them.
    pub(super) fn add_memory(&mut self, component: usize, slot: CpuSlot, sign: f64) {
        let problem = self.problem;
        let machine = problem.machine;
        if problem.memory_bounds {
            let node = machine.slots()[slot.index()].node as usize;
            self.node_heap[node] += sign * problem.heap[component];
        }
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

    /// Moves a component and updates all sums.
    pub(crate) fn put(&mut self, component: usize, to: CpuSlot) {
        self.shift(component, to);
        self.settle();
    }

    /// Moves a component; loads are still to be settled.
    fn shift(&mut self, component: usize, to: CpuSlot) {
        let from = self.at[component];
        if from == to {
            return;
        }
        let problem = self.problem;
        self.mark(from);
        self.mark(to);
        let goes = problem.work[component] + problem.own[component];
        let (leaves, arrives) = self.shift_ends(component, from, to);
        self.busy[from.index()] -= goes + leaves;
        self.busy[to.index()] += goes + arrives;
        if self.home.is_some() {
            self.sums.away += self.away_ns(component, to) - self.away_ns(component, from);
        }
        if problem.has_sets || problem.memory_bounds {
            self.add_memory(component, from, -1.0);
            self.add_memory(component, to, 1.0);
        }
        if problem.has_sets && problem.set[component] > 0.0 {
            self.shift_set(problem.set[component], from, to);
        }
        if problem.memory_bounds {
            self.sums.over = self.over_bytes();
        }
        self.crowd.shift(component, from, to);
        self.at[component] = to;
        self.steps += 2 + problem.ends(component).len() as u64;
    }

    /// Updates the cost of messages after a move: of peers, in total, and of the component before
    /// and after.
    fn shift_ends(&mut self, component: usize, from: CpuSlot, to: CpuSlot) -> (f64, f64) {
        let problem = self.problem;
        let messages = problem.machine.messages();
        let (from_classes, to_classes) = (messages.classes_of(from), messages.classes_of(to));
        let (mut leaves, mut arrives) = (0.0, 0.0);
        for end in problem.ends(component) {
            let other = self.at[end.peer as usize];
            let costs = problem.costs(end.row);
            let before = &costs[usize::from(from_classes[other.index()])];
            let after = &costs[usize::from(to_classes[other.index()])];
            let (mine, theirs, mine_after, theirs_after) = if end.sends {
                let (b, a) = (before, after);
                (b.send_ns, b.receive_ns, a.send_ns, a.receive_ns)
            } else {
                let (b, a) = (before, after);
                (b.receive_ns, b.send_ns, a.receive_ns, a.send_ns)
            };
            self.mark(other);
            leaves += end.messages * mine;
            arrives += end.messages * mine_after;
            self.busy[other.index()] += end.messages * (theirs_after - theirs);
            let change = end.messages * (mine_after + theirs_after - mine - theirs);
            self.sums.communication += change;
            if !problem.cycles.is_empty() {
                self.shift_cycles(end.edge, change);
            }
        }
        (leaves, arrives)
    }

    fn shift_cycles(&mut self, edge: u32, change: f64) {
        for (cycle, weight) in self.problem.turns(edge) {
            let at = *cycle as usize;
            self.cycles[at] += weight * change;
            self.cycle_peaks.set(at, self.cycles[at]);
        }
    }

    /// Moves a working set from the caches of one slot to those of another: slots behind a cache
    /// that only one of them has miss more, or less.
    fn shift_set(&mut self, bytes: f64, from: CpuSlot, to: CpuSlot) {
        let machine = self.problem.machine;
        for (old, new, sign) in [(from, to, -1.0), (to, from, 1.0)] {
            let there = machine.path(new);
            for cache in machine.path(old).iter().filter(|c| !there.contains(c)) {
                if self.demand_more(*cache, sign * bytes) {
                    let slots = machine.caches()[*cache as usize].slots.iter();
                    slots.for_each(|slot| self.mark(*slot));
                }
            }
        }
    }

    /// Changes the demand on a cache. Returns whether the slots behind it notice.
    pub(super) fn demand_more(&mut self, cache: u32, bytes: f64) -> bool {
        let holds = self.problem.machine.caches()[cache as usize].bytes;
        let demand = &mut self.demand[cache as usize];
        let before = *demand;
        *demand += bytes;
        before > holds || *demand > holds
    }

    /// Marks a slot as changed.
    fn mark(&mut self, slot: CpuSlot) {
        let at = slot.index();
        if !self.is_dirty[at] {
            self.is_dirty[at] = true;
            self.dirty.push(slot.0);
        }
    }

    /// Brings the sums in line with the slots that changed.
    fn settle(&mut self) {
        let problem = self.problem;
        let mut dirty = std::mem::take(&mut self.dirty);
        self.steps += 2 * dirty.len() as u64;
        for at in &dirty {
            let slot = *at as usize;
            self.is_dirty[slot] = false;
            if problem.has_sets {
                let lost = self.lost_ns(CpuSlot(*at));
                self.sums.sharing += lost - self.lost[slot];
                self.lost[slot] = lost;
            }
            let load = (self.busy[slot] + self.lost[slot]) * problem.by_capacity[slot];
            let before = std::mem::replace(&mut self.counted[slot], load);
            self.sums.squares += load * load - before * before;
            self.sums.load += load - before;
        }
        for at in dirty.drain(..) {
            self.set_peak(at);
        }
        self.dirty = dirty;
    }

    fn set_peak(&mut self, slot: u32) {
        let core = self.problem.core_of[slot as usize] as usize;
        self.peaks.set(core, self.core_ns(core).0);
    }

    /// Time that a slot's components lose to others in its caches.
    pub(super) fn lost_ns(&self, slot: CpuSlot) -> f64 {
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

    /// The load of a core, and whether its siblings together set it.
    fn core_ns(&self, core: usize) -> (f64, bool) {
        let slots = self.problem.machine.cores()[core].iter();
        self.core_of_loads(slots.map(|slot| self.counted[slot.index()]))
    }

    /// The same for given loads.
    pub(super) fn core_of_loads(&self, loads: impl Iterator<Item = f64>) -> (f64, bool) {
        let (mut largest, mut sum) = (0.0_f64, 0.0);
        for load in loads {
            largest = if load > largest { load } else { largest };
            sum += load;
        }
        let together = sum * self.problem.by_siblings;
        if together > largest {
            (together, true)
        } else {
            (largest, false)
        }
    }

    pub(super) fn over_bytes(&self) -> f64 {
        let nodes = self.problem.machine.nodes().iter().zip(&self.node_heap);
        let over = nodes.map(|(node, heap)| (heap - node.bytes.unwrap_or(f64::INFINITY)).max(0.0));
        over.sum()
    }

    fn quota_ns(&self, sums: &Sums) -> f64 {
        let quota = self.problem.machine.quota();
        quota.map_or(0.0, |cpus| sums.load / cpus)
    }

    /// The largest load of a core, and the longest cycle.
    fn peak_ns(&self) -> f64 {
        let peak = self.peaks.largest();
        if self.cycles.is_empty() {
            return peak;
        }
        peak.max(self.cycle_peaks.largest())
    }

    fn bottleneck_ns(&self) -> f64 {
        self.peak_ns().max(self.quota_ns(&self.sums))
    }

    /// J, with the charge for being away from home.
    pub(crate) fn total_ns(&self) -> f64 {
        self.score().total
    }

    pub(crate) fn score(&self) -> Score {
        self.score_of(&self.sums, self.peak_ns())
    }

    pub(super) fn score_of(&self, sums: &Sums, peak: f64) -> Score {
        let quota = self.quota_ns(sums);
        let bottleneck = if quota > peak { quota } else { peak };
        let spread = (sums.communication + sums.sharing) * self.problem.by_divisor;
        Score {
            over: sums.over,
            total: bottleneck + spread + sums.away,
            squares: sums.squares,
        }
    }

    fn bottleneck(&self) -> Bottleneck {
        let (peak, cycle) = (self.peaks.largest(), self.cycle_peaks.largest());
        if self.quota_ns(&self.sums) > peak.max(cycle) {
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

    /// The full breakdown, counted anew.
    pub(crate) fn breakdown(mut self) -> Breakdown {
        self.recount();
        Breakdown {
            total_ns: self.total_ns() - self.sums.away,
            bottleneck_ns: self.bottleneck_ns(),
            bottleneck: self.bottleneck(),
            communication_ns: self.sums.communication,
            sharing_ns: self.sums.sharing,
            divisor: self.problem.divisor,
            loads: self.loads(),
            over_bytes: self.sums.over,
        }
    }

    fn loads(&self) -> Vec<Load> {
        let mut work = vec![0.0; self.busy.len()];
        for (component, slot) in self.at.iter().enumerate() {
            work[slot.index()] += self.problem.work[component];
        }
        let parts = work.iter().zip(&self.busy).zip(&self.lost);
        parts
            .map(|((work, busy), lost)| Load {
                work_ns: *work,
                communication_ns: (busy - work).max(0.0),
                sharing_ns: *lost,
            })
            .collect()
    }
}

/// Share of lines that a cache of this many bytes misses under this demand.
fn miss_share(bytes: f64, wanted: f64) -> f64 {
    if wanted > bytes {
        1.0 - bytes / wanted
    } else {
        0.0
    }
}
