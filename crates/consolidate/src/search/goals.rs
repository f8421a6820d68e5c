//! The goals: seats by annealing, without more units or cores.
//!
//! Annealing itself is `hearth-place`'s; moves and their cost are here. A move that breaks a rule
//! is none.

use hearth_place::search::{Landscape, Score};

use super::Value;
use super::pack::seat_on;
use super::state::State;
use crate::mapping::Seat;

/// A score in which a unit outweighs all cores.
const UNIT: f64 = 1e6;

pub(crate) struct Seats<'p, 'a> {
    pub(crate) state: State<'p, 'a>,
    /// Seats of the best arrangement.
    pub(crate) best: Vec<Option<Seat>>,
    /// Former seats of the components that the trial has moved.
    undo: Vec<(usize, Seat)>,
    random: fastrand::Rng,
    /// Ends the search early, by moves that are none.
    pub(crate) is_stopped: bool,
}

impl<'p, 'a> Seats<'p, 'a> {
    /// Begins with a state in which all components have seats.
    pub(crate) fn new(mut state: State<'p, 'a>, seed: u64) -> Self {
        // Steps of earlier searches are not this one's.
        state.steps = 0;
        Self {
            best: vec![None; state.problem.count()],
            state,
            undo: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
            is_stopped: false,
        }
    }

    fn take_back(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        undo.iter()
            .for_each(|(component, _)| self.state.remove(*component));
        for (component, seat) in undo {
            self.state.place(component, seat);
        }
    }

    /// Takes components off and gives them seats on other cores; takes everything back if one fits
    /// nowhere there.
    fn attempt(&mut self, moves: &[(usize, usize)]) {
        // Who makes room may be tied to its unit.
        let candidates = &self.state.problem.candidates;
        let is_possible = |(component, core): &(usize, usize)| {
            candidates[*component]
                .binary_search(&(*core as u32))
                .is_ok()
        };
        if !moves.iter().all(is_possible) {
            return;
        }
        for (component, _) in moves {
            if let Some(seat) = self.state.seat(*component) {
                self.undo.push((*component, seat));
                self.state.remove(*component);
            }
        }
        for (component, core) in moves {
            match seat_on(&mut self.state, *component, *core) {
                Some(seat) => self.state.place(*component, seat),
                None => {
                    self.take_back();
                    return;
                }
            }
        }
    }

    /// A used core: of a peer or its unit, or any.
    fn target(&mut self, component: usize) -> Option<usize> {
        let problem = self.state.problem;
        let candidates = &problem.candidates[component];
        let edges = &problem.edges[component];
        if !edges.is_empty() && self.random.u32(..4) > 0 {
            let edge = edges[self.random.usize(..edges.len())];
            let there = self.state.seat(edge.peer as usize)?.core;
            if self.random.bool() {
                return candidates.contains(&(there as u32)).then_some(there);
            }
            let unit = &problem.system.units[problem.system.cores[there].unit];
            let core = unit.cores[self.random.usize(..unit.cores.len())];
            return candidates.contains(&(core as u32)).then_some(core);
        }
        Some(candidates[self.random.usize(..candidates.len())] as usize)
    }
}

impl Landscape for Seats<'_, '_> {
    fn score(&mut self) -> Score {
        self.take_back();
        Value::of(&self.state).score()
    }

    fn propose(&mut self) {
        self.take_back();
        self.state.steps += 1;
        if self.is_stopped {
            self.state.steps += 1 << 40;
            return;
        }
        let problem = self.state.problem;
        let component = self.random.usize(..problem.count());
        let Some(core) = self.target(component) else {
            return;
        };
        let Some(home) = self.state.seat(component) else {
            return;
        };
        if core == home.core {
            return;
        }
        let there = self.state.on(core);
        if there.is_empty() {
            // Another free core changes nothing for the better unless its unit does.
            if self.random.u32(..8) == 0 {
                self.attempt(&[(component, core)]);
            }
            return;
        }
        match self.random.u32(..16) {
            0..=8 => self.attempt(&[(component, core)]),
            9..=14 => {
                let other = there[self.random.usize(..there.len())] as usize;
                self.attempt(&[(component, core), (other, home.core)]);
            }
            _ => {
                // All of both cores.
                let mine = self.state.on(home.core).iter();
                let mine = mine.map(|at| (*at as usize, core));
                let theirs = there.iter().map(|at| (*at as usize, home.core));
                let moves: Vec<(usize, usize)> = mine.chain(theirs).collect();
                self.attempt(&moves);
            }
        }
    }

    fn weigh(&mut self) -> Score {
        Value::of(&self.state).score()
    }

    fn accept(&mut self) {
        self.undo.clear();
    }

    fn keep(&mut self) {
        for (component, best) in self.best.iter_mut().enumerate() {
            *best = self.state.seat(component);
        }
    }

    fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.state.steps)
    }

    fn bits(&mut self) -> u64 {
        self.random.u64(..)
    }
}

impl Value {
    fn of(state: &State) -> Self {
        Self {
            units: state.units,
            cores: state.cores,
            goal: state.goal(),
        }
    }

    fn score(self) -> Score {
        Score {
            over: self.units as f64 * UNIT + self.cores as f64,
            total: self.goal,
            squares: 0.0,
        }
    }
}
