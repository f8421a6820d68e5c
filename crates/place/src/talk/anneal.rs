//! Moves of [annealing](crate::search::anneal): single components, whole slots, and exchanges.
//!
//! Local search ends where no single move helps; annealing goes on from there.

use super::local::{Search, Steps};
use crate::cost::state::State;
use crate::search::{self, Landscape, Score};
use crate::slots::{CpuSlot, slot_number};

/// Anneals from a state, and returns the best placement on the way. `hot` is the first temperature
/// relative to the cost of a random move.
pub(super) fn anneal<'p, 'a>(
    search: &mut Search<'p, 'a>,
    state: &mut State<'p, 'a>,
    steps: &mut Steps,
    hot: f64,
) -> Vec<CpuSlot> {
    let mut placements = Placements {
        best: state.placement().to_vec(),
        moves: Vec::new(),
        search,
        state,
    };
    search::anneal(&mut placements, steps, hot);
    placements.best
}

/// Placements as annealing sees them.
struct Placements<'s, 'p, 'a> {
    search: &'s mut Search<'p, 'a>,
    state: &'s mut State<'p, 'a>,
    moves: Vec<(usize, CpuSlot)>,
    best: Vec<CpuSlot>,
}

impl Landscape for Placements<'_, '_, '_> {
    fn score(&mut self) -> Score {
        self.state.score()
    }

    fn propose(&mut self) {
        self.search.propose(self.state, &mut self.moves);
    }

    fn weigh(&mut self) -> Score {
        self.state.weigh(&self.moves)
    }

    fn accept(&mut self) {
        for (component, slot) in &self.moves {
            self.state.put(*component, *slot);
        }
    }

    fn keep(&mut self) {
        self.best.copy_from_slice(self.state.placement());
    }

    fn take_steps(&mut self) -> u64 {
        self.state.take_steps()
    }

    fn bits(&mut self) -> u64 {
        self.search.random.u64(..)
    }
}

impl Search<'_, '_> {
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
}
