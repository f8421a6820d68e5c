//! Local search: moves, swaps and moves of groups, each kept if the score improves.
//!
//! Tries a component with its peers, beside them, on the least loaded slots, and on a random one;
//! together with its nearest peer; and in exchange with another. Tries all of a slot's components
//! elsewhere together, or in exchange with another slot's. When nothing helps any more, puts a few
//! components elsewhere and searches on from there; the result is kept if it is better.

use crate::baselines::Affinity;
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::search::Score;
pub(crate) use crate::search::Steps;
use crate::slots::{CpuSlot, slot_number};

/// Steps that finding candidate slots counts for.
const CANDIDATES_STEPS: u64 = 20;
/// Most peers examined for a component.
const PEERS_MAX: usize = 8;
/// Largest graph for which more than single moves are tried.
pub(super) const GROUPS_MAX: usize = 4096;

/// State of local search beside the placement.
pub(crate) struct Search<'p, 'a> {
    pub(super) problem: &'p Problem<'a>,
    pub(super) affinity: Affinity,
    /// By slot, a few others that share parts with it, nearest first.
    pub(super) near: Vec<Vec<CpuSlot>>,
    pub(super) random: fastrand::Rng,
    candidates: Vec<CpuSlot>,
}

impl<'p, 'a> Search<'p, 'a> {
    pub(crate) fn new(problem: &'p Problem<'a>, seed: u64) -> Self {
        Self {
            affinity: Affinity::of(problem),
            near: near(problem),
            random: fastrand::Rng::with_seed(seed),
            candidates: Vec::new(),
            problem,
        }
    }

    /// Passes over all components until one changes nothing.
    pub(crate) fn descend(&mut self, state: &mut State<'p, 'a>, steps: &mut Steps) {
        let count = self.problem.count();
        while steps.left() > 0 {
            let before = state.score();
            for component in 0..count {
                if steps.left() == 0 {
                    return;
                }
                self.improve(state, component, steps);
            }
            if count <= GROUPS_MAX {
                self.whole_slots(state, steps);
            }
            state.recount();
            if !state.score().beats(&before) {
                return;
            }
        }
    }

    /// Moves one component to the best of a few slots.
    pub(crate) fn improve(
        &mut self,
        state: &mut State<'p, 'a>,
        component: usize,
        steps: &mut Steps,
    ) {
        if self.problem.pins[component].is_some() {
            return;
        }
        let home = state.slot(component);
        let mut best: (Score, CpuSlot) = (state.score(), home);
        self.collect(state, component);
        let candidates = std::mem::take(&mut self.candidates);
        for slot in &candidates {
            let score = state.weigh(&[(component, *slot)]);
            if score.beats(&best.0) {
                best = (score, *slot);
            }
        }
        state.put(component, best.1);
        steps.spend(state.take_steps() + CANDIDATES_STEPS);
        if best.1 == home && self.problem.count() <= GROUPS_MAX {
            self.pair_or_swap(state, component, &candidates, steps);
        }
        self.candidates = candidates;
    }

    /// Collects promising slots for a component: with peers, beside them, little loaded ones,
    /// random ones.
    fn collect(&mut self, state: &State, component: usize) {
        let home = state.slot(component);
        self.candidates.clear();
        let mut add = |slot: CpuSlot| {
            if slot != home && !self.candidates.contains(&slot) {
                self.candidates.push(slot);
            }
        };
        let peers = self.affinity.peers(component);
        let small = self.problem.count() <= GROUPS_MAX;
        for (peer, _) in peers.iter().take(PEERS_MAX) {
            let there = state.slot(*peer as usize);
            add(there);
            if small {
                let near = self.near[there.index()].iter();
                let least = near.min_by(|a, b| state.load_ns(**a).total_cmp(&state.load_ns(**b)));
                least.copied().into_iter().for_each(&mut add);
            }
        }
        let slots = self.problem.slots();
        let least = (0..slots)
            .map(slot_number)
            .min_by(|a, b| state.load_ns(*a).total_cmp(&state.load_ns(*b)));
        least.into_iter().for_each(&mut add);
        if small {
            let near = self.near[home.index()].iter();
            let least = near.min_by(|a, b| state.load_ns(**a).total_cmp(&state.load_ns(**b)));
            least.copied().into_iter().for_each(&mut add);
            add(slot_number(self.random.usize(..slots)));
        }
    }

    /// Moves a component together with its nearest peer, or exchanges it with another.
    fn pair_or_swap(
        &mut self,
        state: &mut State<'p, 'a>,
        component: usize,
        candidates: &[CpuSlot],
        steps: &mut Steps,
    ) {
        let home = state.slot(component);
        let peers = self.affinity.peers(component).iter();
        let nearest = peers.max_by(|a, b| a.1.total_cmp(&b.1));
        let movable = |c: usize| self.problem.pins[c].is_none();
        if let Some(peer) = nearest
            .map(|(peer, _)| *peer as usize)
            .filter(|p| movable(*p))
        {
            for slot in candidates {
                let moves = [(component, *slot), (peer, *slot)];
                if self.attempt(state, &moves, steps) {
                    return;
                }
            }
        }
        let count = self.problem.count();
        let first = self.random.usize(..count);
        let others = (0..count).map(|at| (first + at) % count);
        for other in others.filter(|c| movable(*c)).take(4) {
            let there = state.slot(other);
            if there != home && self.attempt(state, &[(component, there), (other, home)], steps) {
                return;
            }
        }
    }

    /// Moves all of a slot's components elsewhere, or exchanges them with another slot's.
    fn whole_slots(&mut self, state: &mut State<'p, 'a>, steps: &mut Steps) {
        let slots = self.problem.slots();
        for at in 0..slots {
            let here = slot_number(at);
            let mine = self.on(state, here);
            if mine.is_empty() || steps.left() == 0 {
                continue;
            }
            let mut places: Vec<CpuSlot> = mine
                .iter()
                .flat_map(|c| self.affinity.peers(*c).iter().take(2))
                .flat_map(|(peer, _)| {
                    let there = state.slot(*peer as usize);
                    let near = self.near[there.index()].first().copied();
                    [Some(there), near].into_iter().flatten()
                })
                .take(6)
                .collect();
            places.push(slot_number(self.random.usize(..slots)));
            places.sort_unstable();
            places.dedup();
            for there in places.into_iter().filter(|slot| *slot != here) {
                let together: Vec<(usize, CpuSlot)> = mine.iter().map(|c| (*c, there)).collect();
                if self.attempt(state, &together, steps) {
                    break;
                }
                let theirs = self.on(state, there).into_iter().map(|c| (c, here));
                let exchange: Vec<(usize, CpuSlot)> = together.into_iter().chain(theirs).collect();
                if self.attempt(state, &exchange, steps) {
                    break;
                }
            }
        }
    }

    /// The components of a slot that may be moved.
    fn on(&self, state: &State, slot: CpuSlot) -> Vec<usize> {
        state
            .on(slot)
            .filter(|c| self.problem.pins[*c].is_none())
            .collect()
    }

    /// Makes moves, and undoes them unless the score improves.
    fn attempt(
        &self,
        state: &mut State<'p, 'a>,
        moves: &[(usize, CpuSlot)],
        steps: &mut Steps,
    ) -> bool {
        let before = state.score();
        let is_better = state.weigh(moves).beats(&before);
        if is_better {
            moves
                .iter()
                .for_each(|(component, slot)| state.put(*component, *slot));
        }
        steps.spend(state.take_steps());
        is_better
    }

    /// Continues from the best by small disturbances until the steps are used up.
    pub(crate) fn disturb(&mut self, best: &mut State<'p, 'a>, steps: &mut Steps) {
        let count = self.problem.count();
        if count > GROUPS_MAX {
            return;
        }
        let mut trial = best.clone();
        while steps.left() > 0 {
            let mut touched = Vec::new();
            for _ in 0..self.random.usize(2..=4.min(count).max(2)) {
                let component = self.shaken(&trial);
                if self.problem.pins[component].is_none() {
                    trial.put(component, self.somewhere(&trial, component));
                    touched.push(component);
                }
            }
            steps.spend(1 + trial.take_steps());
            self.settle_around(&mut trial, &touched, steps);
            if trial.score().beats(&best.score()) {
                trial.recount();
                if trial.score().beats(&best.score()) {
                    *best = trial.clone();
                    continue;
                }
            }
            for component in 0..count {
                trial.put(component, best.slot(component));
            }
            steps.spend(count as u64 / 8 + trial.take_steps());
        }
        best.recount();
    }

    /// A component to disturb: from the busiest core every other time.
    fn shaken(&mut self, state: &State) -> usize {
        let count = self.problem.count();
        if self.random.bool() {
            let busiest = state.busiest();
            let first = self.random.usize(..count);
            let there = (0..count).map(|at| (first + at) % count);
            let found = there
                .into_iter()
                .find(|c| busiest.contains(&state.slot(*c)));
            return found.unwrap_or(first);
        }
        self.random.usize(..count)
    }

    /// A slot with a peer, near it, or anywhere.
    fn somewhere(&mut self, state: &State, component: usize) -> CpuSlot {
        let peers = self.affinity.peers(component);
        let any = slot_number(self.random.usize(..self.problem.slots()));
        if peers.is_empty() {
            return any;
        }
        let there = state.slot(peers[self.random.usize(..peers.len())].0 as usize);
        match self.random.u32(..4) {
            0 | 1 => there,
            2 => {
                let near = &self.near[there.index()];
                match near.len() {
                    0 => any,
                    len => near[self.random.usize(..len)],
                }
            }
            _ => any,
        }
    }

    /// Improves disturbed components and their peers, twice.
    fn settle_around(&mut self, state: &mut State<'p, 'a>, touched: &[usize], steps: &mut Steps) {
        for _ in 0..2 {
            let mut around: Vec<usize> = Vec::new();
            for component in touched {
                let peers = self.affinity.peers(*component).iter().take(PEERS_MAX);
                around.extend(peers.map(|(peer, _)| *peer as usize));
            }
            around.extend(touched);
            around.sort_unstable();
            around.dedup();
            for component in around {
                self.improve(state, component, steps);
            }
        }
    }
}

/// For each slot a few others that share most with it: siblings, then slots behind the nearest
/// cache, then one by one further away.
fn near(problem: &Problem) -> Vec<Vec<CpuSlot>> {
    let machine = problem.machine;
    let slots = problem.slots();
    machine
        .all()
        .map(|slot| {
            let mut near: Vec<CpuSlot> = Vec::new();
            for distance in 1..slots.min(9) {
                for at in [
                    slot.index().checked_sub(distance),
                    Some(slot.index() + distance),
                ] {
                    near.extend(at.filter(|at| *at < slots).map(slot_number));
                }
            }
            // Classes are numbered as they are met; relations are ordered nearest first.
            near.sort_by_key(|other| {
                let class = machine.messages().class(slot, *other);
                machine.messages().classes()[class].relation
            });
            near.truncate(8);
            near
        })
        .collect()
}
