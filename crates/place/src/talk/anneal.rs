//! Annealing: random moves and exchanges, which may make things worse, ever more rarely.
//!
//! Local search ends where no single move helps. Here a move may increase J by about the
//! temperature, which falls as the steps are used up: the rough arrangement settles first, the
//! detail last. Useful temperatures are derived from the cost of moves at the start.

use super::local::{Search, Steps};
use crate::cost::state::State;
use crate::slots::{CpuSlot, slot_number};

/// Stages of the temperature, each colder by [`FALL`]: to about a thirtieth in all.
const STAGES: u64 = 64;
const FALL: f64 = 0.947;
/// Sampled moves, to learn their usual cost.
const SAMPLE: usize = 128;

/// Anneals from a state, and returns the best placement on the way. `hot` is the first temperature
/// relative to the cost of a random move.
pub(super) fn anneal<'p, 'a>(
    search: &mut Search<'p, 'a>,
    state: &mut State<'p, 'a>,
    steps: &mut Steps,
    hot: f64,
) -> Vec<CpuSlot> {
    let mut here = state.score();
    let mut best = (here, state.placement().to_vec());
    let mut moves = Vec::new();
    let stage = steps.left() / STAGES;
    let mut temperature = hot * search.usual_loss(state, steps);
    while steps.left() > 0 {
        let end = steps.left().saturating_sub(stage.max(1));
        while steps.left() > end {
            search.propose(state, &mut moves);
            let there = state.weigh(&moves);
            let loss = there.total - here.total;
            let is_kept = there.over < here.over
                || there.over <= here.over
                    && (loss <= 0.0 || loss < temperature * search.patience());
            if is_kept {
                let put = |(component, slot): &(usize, CpuSlot)| state.put(*component, *slot);
                moves.iter().for_each(put);
                here = there;
                if here.beats(&best.0) {
                    best.0 = here;
                    best.1.copy_from_slice(state.placement());
                }
            }
            steps.spend(state.take_steps());
        }
        temperature *= FALL;
    }
    best.1
}

impl Search<'_, '_> {
    /// Usual increase of J by a random move: the median of some.
    fn usual_loss(&mut self, state: &mut State, steps: &mut Steps) -> f64 {
        let here = state.score().total;
        let mut moves = Vec::new();
        let losses = (0..SAMPLE).map(|_| {
            self.propose(state, &mut moves);
            state.weigh(&moves).total - here
        });
        let mut losses: Vec<f64> = losses.filter(|loss| *loss > 0.0).collect();
        steps.spend(state.take_steps());
        losses.sort_by(f64::total_cmp);
        losses.get(losses.len() / 2).copied().unwrap_or(0.0)
    }

    /// A random move of one component or of its whole slot, or an exchange of two components or
    /// slots; none where a pin forbids it.
    fn propose(&mut self, state: &State, moves: &mut Vec<(usize, CpuSlot)>) {
        moves.clear();
        let count = self.problem.count();
        let component = match self.random.u32(..4) {
            0 => self.busy(state),
            _ => self.random.usize(..count),
        };
        if self.problem.pins[component].is_some() {
            return;
        }
        let home = state.slot(component);
        // Of 16: 9 moves and one of a whole slot; 5 exchanges and one of whole slots.
        let choice = self.random.u32(..16);
        let to = match choice {
            11 | 15 => state.slot(self.random.usize(..count)),
            _ => self.target(state, component, choice % 8),
        };
        if to == home {
            return;
        }
        if matches!(choice, 9 | 14) {
            self.whole(state, home, to, choice == 14, moves);
            return;
        }
        moves.push((component, to));
        if choice >= 10 {
            let there = state.on(to).count();
            if there > 0 {
                let other = state.on(to).nth(self.random.usize(..there));
                let free = other.filter(|c| self.problem.pins[*c].is_none());
                moves.extend(free.map(|other| (other, home)));
            }
        }
    }

    /// Moves all of one slot to another, or exchanges both.
    fn whole(
        &self,
        state: &State,
        home: CpuSlot,
        to: CpuSlot,
        exchanges: bool,
        moves: &mut Vec<(usize, CpuSlot)>,
    ) {
        let is_free = |c: &usize| self.problem.pins[*c].is_none();
        moves.extend(state.on(home).filter(is_free).map(|c| (c, to)));
        if exchanges {
            moves.extend(state.on(to).filter(is_free).map(|c| (c, home)));
        }
    }

    /// A component on the busiest core.
    fn busy(&mut self, state: &State) -> usize {
        let slots = state.busiest();
        let slot = slots[self.random.usize(..slots.len())];
        let there = state.on(slot).count();
        match there {
            0 => self.random.usize(..self.problem.count()),
            _ => state.on(slot).nth(self.random.usize(..there)).unwrap_or(0),
        }
    }

    fn target(&mut self, state: &State, component: usize, choice: u32) -> CpuSlot {
        let peers = self.affinity.peers(component);
        let any = slot_number(self.random.usize(..self.problem.slots()));
        if peers.is_empty() {
            return any;
        }
        let there = state.slot(peers[self.random.usize(..peers.len())].0 as usize);
        let around = match choice {
            0..=3 => return there,
            4 | 5 => there,
            6 => state.slot(component),
            _ => return any,
        };
        let near = &self.near[around.index()];
        match near.len() {
            0 => any,
            len => near[self.random.usize(..len)],
        }
    }

    /// A number of roughly exponential distribution with mean one, made of bits only so that it is
    /// the same on all machines: the zeros before the first one, and the next bits as a fraction.
    fn patience(&mut self) -> f64 {
        let bits = self.random.u64(..);
        let zeros = bits.leading_zeros();
        let rest = bits.checked_shl(zeros + 1).unwrap_or(0) >> 11;
        let part = rest as f64 / (1_u64 << 53) as f64;
        (f64::from(zeros) + 1.0 - part) * std::f64::consts::LN_2
    }
}
