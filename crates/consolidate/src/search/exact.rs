//! Branch and bound: every mapping that may be better than the best known one.
//!
//! Components are placed one after the other, those of the highest level and large ones first. Of
//! free units and free cores that can be taken for each other one is tried. The bound counts units
//! and cores so far, those that the rest needs beyond what is free, and the goal so far with the
//! least power of the rest; all terms of the goal only grow.

use super::Value;
use super::bound::beyond;
use super::state::State;
use crate::mapping::{Mapping, Seat};

/// How an exhaustive search ended.
pub(crate) struct Searched {
    /// A better mapping, if there was one.
    pub(crate) found: Option<(Value, Mapping)>,
    /// Whether everything was seen or ruled out.
    pub(crate) is_complete: bool,
}

struct Branch<'s, 'p, 'a> {
    state: State<'p, 'a>,
    order: Vec<usize>,
    /// By depth and mode: least parts of the components from there on.
    rest: Vec<Vec<u64>>,
    /// By depth: least power of the components from there on, weighted.
    rest_goal: Vec<f64>,
    best: Value,
    found: Option<Mapping>,
    /// Whether the goal matters, or units and cores only.
    with_goal: bool,
    nodes: u64,
    stop: &'s mut dyn FnMut() -> bool,
    is_stopped: bool,
    cores_of_unit_max: usize,
}

/// Searches for a mapping that is better than `best`.
pub(crate) fn exact<'p, 'a>(
    empty: State<'p, 'a>,
    order: Vec<usize>,
    best: Value,
    with_goal: bool,
    nodes: u64,
    stop: &mut dyn FnMut() -> bool,
) -> Searched {
    let problem = empty.problem;
    let mut rest = vec![vec![0; problem.modes]];
    let mut rest_goal = vec![0.0];
    for component in order.iter().rev() {
        let mut sums = rest[rest.len() - 1].clone();
        for (mode, sum) in sums.iter_mut().enumerate() {
            if problem.is_active(*component, mode) {
                *sum += problem.least[*component];
            }
        }
        rest.push(sums);
        let goal = rest_goal[rest_goal.len() - 1];
        rest_goal.push(goal + problem.weights.energy * problem.least_w[*component]);
    }
    rest.reverse();
    rest_goal.reverse();
    let widest = problem
        .system
        .units
        .iter()
        .map(|unit| unit.cores.len())
        .max();
    let mut branch = Branch {
        order,
        rest,
        rest_goal,
        best,
        found: None,
        with_goal,
        nodes,
        stop,
        is_stopped: false,
        cores_of_unit_max: widest.unwrap_or(1).max(1),
        state: empty,
    };
    branch.extend(0);
    Searched {
        found: branch.found.map(|mapping| (branch.best, mapping)),
        is_complete: !branch.is_stopped,
    }
}

impl Branch<'_, '_, '_> {
    fn extend(&mut self, depth: usize) {
        if self.is_stopped {
            return;
        }
        let Some(&component) = self.order.get(depth) else {
            let value = self.value();
            if value.beats(&self.best, self.with_goal) {
                self.best = value;
                self.found = self.state.mapping();
            }
            return;
        };
        let mut tries: Vec<(Value, u64, Seat)> = Vec::new();
        for seat in self.seats(component) {
            if !self.state.fits(component, seat) {
                continue;
            }
            let before = self.state.peak(seat.core);
            self.state.place(component, seat);
            let bound = self.bound(depth + 1);
            let rise = self.state.peak(seat.core) - before;
            self.state.remove(component);
            if bound.beats(&self.best, self.with_goal) {
                tries.push((bound, rise, seat));
            }
            self.nodes = self.nodes.saturating_sub(1);
        }
        if self.nodes == 0 || (self.nodes.is_multiple_of(64) && (self.stop)()) {
            self.is_stopped = true;
            return;
        }
        tries.sort_by(|a, b| a.0.compare(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        for (bound, _, seat) in tries {
            if !bound.beats(&self.best, self.with_goal) {
                return;
            }
            self.state.place(component, seat);
            self.extend(depth + 1);
            self.state.remove(component);
        }
    }

    /// Seats to try: on used units, and on the first of free ones that are alike.
    fn seats(&self, component: usize) -> Vec<Seat> {
        let state = &self.state;
        let problem = state.problem;
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let mut fresh: Vec<(u32, usize)> = Vec::new();
        let mut seats = Vec::new();
        for core in &problem.candidates[component] {
            let core = *core as usize;
            let unit = problem.system.cores[core].unit;
            if state.unit_count[unit] == 0 {
                let class = problem.unit_class[unit];
                let first = fresh.iter().find(|(other, _)| *other == class);
                match first {
                    Some((_, other)) if *other != unit => continue,
                    Some(_) => {}
                    None => fresh.push((class, unit)),
                }
            }
            // A free core, whose partner in a pair is free too, is like another one.
            if self.is_free(core) {
                let look = (unit as u32, problem.core_class[core]);
                if seen.contains(&look) {
                    continue;
                }
                seen.push(look);
            }
            let memories = problem.system.units[unit].memories.iter();
            seats.extend(memories.map(|memory| Seat {
                core,
                memory: *memory,
            }));
        }
        seats
    }

    fn is_free(&self, core: usize) -> bool {
        let place = &self.state.problem.system.cores[core];
        let partner = match place.lockstep {
            crate::model::LockStep::With(partner) => Some(partner),
            _ => place.checks,
        };
        !self.state.is_used(core) && partner.is_none_or(|partner| !self.state.is_used(partner))
    }

    fn value(&self) -> Value {
        Value {
            units: self.state.units,
            cores: self.state.cores,
            goal: self.state.goal(),
        }
    }

    /// A value that no completion beats.
    fn bound(&self, depth: usize) -> Value {
        let state = &self.state;
        let problem = state.problem;
        let mut value = self.value();
        let (mut cores, mut units) = (0, 0);
        for mode in 0..problem.modes {
            let needed = self.rest[depth][mode];
            let (mut in_cores, mut in_units) = (0, 0);
            for core in 0..problem.system.cores.len() {
                let unit = problem.system.cores[core].unit;
                if state.unit_count[unit] == 0 || state.is_checker(core) {
                    continue;
                }
                let free = problem.core_max.saturating_sub(state.used(core, mode));
                in_units += free;
                if state.is_used(core) {
                    in_cores += free;
                }
            }
            cores = cores.max(beyond(needed, in_cores, problem.core_max));
            units = units.max(beyond(needed, in_units, problem.core_max));
        }
        value.cores += cores;
        value.units += units.div_ceil(self.cores_of_unit_max);
        value.goal += self.rest_goal[depth];
        value
    }
}
