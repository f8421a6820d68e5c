//! Adapts a placement to a running program: new components get a place, and others move only where
//! moving pays.
//!
//! Moving a component costs [`Patience::move_ns`] and its heap's bytes. [`replan`] searches for a
//! placement with those costs, spread over the rounds to come, as part of J. Nothing moves unless J
//! drops by more than twice the cost of the moves and by more than [`Patience::margin`]. Moving
//! back then never gains anything, so components do not go to and fro.

use crate::cost::problem::Problem;
use crate::cost::state::{Home, State};
use crate::cost::{Breakdown, CostError, CostOptions};
use crate::graph::{ComponentId, Graph};
use crate::slots::{CpuSlot, Machine, Placement, slot_number};
use crate::talk::{Effort, Search, Steps};

/// Cost of a move, and the gain that a move must promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Rounds for which a placement is expected to be of use.
    pub rounds: f64,
    /// Cost of moving one component without its heap, ns.
    pub move_ns: f64,
    /// Cost of each byte of its heap, ns: copied, or used from afar until it is.
    pub byte_ns: f64,
    /// Least share of J that must be gained.
    pub margin: f64,
}

impl Default for Patience {
    /// A thousand rounds; two wake-ups of a sleeping thread for a move; the speed of memory copies
    /// for a byte; and a twentieth as the margin, the model's error at best.
    fn default() -> Self {
        Self {
            rounds: 1_000.0,
            move_ns: 12_000.0,
            byte_ns: 0.2,
            margin: 0.05,
        }
    }
}

/// A move of one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The component.
    pub component: ComponentId,
    /// Its slot before.
    pub from: CpuSlot,
    /// Its slot afterwards.
    pub to: CpuSlot,
}

/// A proposal to change a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Replan {
    /// The moves; empty if none pays.
    pub moves: Vec<Move>,
    /// The placement after them.
    pub placement: Placement,
    /// Its cost.
    pub cost: Breakdown,
    /// J before them, ns a round.
    pub before_ns: f64,
    /// Cost of all moves together, ns.
    pub moving_ns: f64,
}

/// Decides whether to move components. A component that stays, or is pinned where it is, does not
/// move; one that is pinned elsewhere does.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn replan(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    current: &Placement,
    patience: &Patience,
    effort: Effort,
) -> Result<Replan, CostError> {
    graph.check()?;
    crate::cost::fits(graph, machine, current)?;
    let mut problem = Problem::new(graph, machine, options);
    let mut start = current.0.clone();
    crate::baselines::pin(&problem, &mut start);
    hold(&mut problem, graph, &start);
    let price = |c: usize| patience.move_ns + patience.byte_ns * problem.heap[c];
    let rounds = patience.rounds.max(1.0);
    let home = Home {
        at: start.clone(),
        // Twice: once for the cost itself, and once as the margin against moving to and fro.
        away_ns: (0..problem.count())
            .map(|c| 2.0 * price(c) / rounds)
            .collect(),
    };
    let before = State::new(&problem, &start);
    let mut found = before.clone().with_home(&home);
    let mut steps = Steps::new(effort.steps + 100 * problem.count() as u64);
    let mut search = Search::new(&problem, effort.seed);
    search.descend(&mut found, &mut steps);
    search.disturb(&mut found, &mut steps);
    send_home(&mut found, &start);
    let gain = before.total_ns() - found.total_ns();
    let pays = found.score().over < before.score().over
        || gain > patience.margin.max(0.0) * before.total_ns();
    let at = if pays {
        found.placement().to_vec()
    } else {
        start
    };
    Ok(result(&problem, current, at, before.total_ns(), &price))
}

/// Pins components that must stay.
fn hold(problem: &mut Problem, graph: &Graph, at: &[CpuSlot]) {
    for (component, parts) in graph.components.iter().enumerate() {
        if parts.stays && problem.pins[component].is_none() {
            problem.pins[component] = Some(at[component]);
        }
    }
}

/// Takes back moves that do not help on their own.
fn send_home(state: &mut State, home: &[CpuSlot]) {
    for (component, home) in home.iter().enumerate() {
        let there = state.slot(component);
        if there != *home {
            let before = state.score();
            state.put(component, *home);
            if before.beats(&state.score()) {
                state.put(component, there);
            }
        }
    }
    state.recount();
}

fn result(
    problem: &Problem,
    current: &Placement,
    at: Vec<CpuSlot>,
    before_ns: f64,
    price: &dyn Fn(usize) -> f64,
) -> Replan {
    let changed = current.0.iter().zip(&at).enumerate();
    let moves: Vec<Move> = changed
        .filter(|(_, (from, to))| from != to)
        .map(|(component, (from, to))| Move {
            component: ComponentId(u32::try_from(component).expect("ids are of 32 bits")),
            from: *from,
            to: *to,
        })
        .collect();
    Replan {
        moving_ns: moves.iter().map(|m| price(m.component.index())).sum(),
        moves,
        cost: State::new(problem, &at).breakdown(),
        placement: Placement(at),
        before_ns,
    }
}

/// Places components that have no slot yet; all others stay. `current` has a slot for each
/// component that already runs. Takes time in proportion to the new components and their peers,
/// after one pass over the graph.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn follow(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    current: &[Option<CpuSlot>],
) -> Result<Placement, CostError> {
    graph.check()?;
    let (components, placed) = (graph.components.len(), current.len());
    if components != placed {
        return Err(CostError::Length { components, placed });
    }
    let count = machine.slots().len();
    if let Some(&slot) = current.iter().flatten().find(|s| s.index() >= count) {
        return Err(CostError::NoSuchSlot { slot, count });
    }
    let mut problem = Problem::new(graph, machine, options);
    let at = first_places(&problem, current);
    for (component, place) in current.iter().enumerate() {
        problem.pins[component] = problem.pins[component].or(*place);
    }
    let mut state = State::new(&problem, &at);
    let mut search = Search::new(&problem, 1);
    let new: Vec<usize> = (0..components).filter(|c| current[*c].is_none()).collect();
    let mut steps = Steps::new(4_000 * new.len() as u64);
    for _ in 0..2 {
        for component in &new {
            search.improve(&mut state, *component, &mut steps);
        }
    }
    Ok(Placement(state.placement().to_vec()))
}

/// Initial slots of new components: each starts on the least populated slot, so that they do not
/// all count as one crowd.
fn first_places(problem: &Problem, current: &[Option<CpuSlot>]) -> Vec<CpuSlot> {
    let mut crowd = vec![0_usize; problem.slots()];
    current.iter().flatten().for_each(|s| crowd[s.index()] += 1);
    let mut at = Vec::with_capacity(current.len());
    for (component, place) in current.iter().enumerate() {
        let known = problem.pins[component].or(*place);
        at.push(known.unwrap_or_else(|| {
            let least = (0..crowd.len()).min_by_key(|slot| crowd[*slot]);
            let least = least.unwrap_or(0);
            crowd[least] += 1;
            slot_number(least)
        }));
    }
    at
}
