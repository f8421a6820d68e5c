//! A placement that follows a running program: newcomers find a place, and others move only if
//! that pays.
//!
//! To move a component costs [`Patience::move_ns`] and its heap's bytes. [`replan`] looks for a
//! placement with those costs, spread over the rounds to come, as part of J; nobody moves unless J
//! gets less by more than twice what moving costs and by more than [`Patience::margin`]. What is
//! left then gains nothing by moving back, so that nothing goes to and fro.

use crate::cost::problem::Problem;
use crate::cost::state::{Home, State};
use crate::cost::{Breakdown, CostError, Options};
use crate::graph::{ComponentId, Graph};
use crate::machine::{Machine, Placement, Slot, slot_number};
use crate::talk::{Effort, Search, Steps};

/// What moving costs, and how sure one has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// For how many rounds a placement is expected to be of use.
    pub rounds: f64,
    /// What one component's move costs, ns, without its heap.
    pub move_ns: f64,
    /// What a byte of heap costs, ns: copied, or used from afar until it is.
    pub byte_ns: f64,
    /// The share of J that must be gained at least.
    pub margin: f64,
}

impl Default for Patience {
    /// A thousand rounds; a move as two wake-ups of a sleeping thread; a byte as memory copies it;
    /// a twentieth, which is what models miss at best.
    fn default() -> Self {
        Self {
            rounds: 1_000.0,
            move_ns: 12_000.0,
            byte_ns: 0.2,
            margin: 0.05,
        }
    }
}

/// A component that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who.
    pub component: ComponentId,
    /// From where.
    pub from: Slot,
    /// Where to.
    pub to: Slot,
}

/// What to do about a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Replan {
    /// The moves: none if none pays.
    pub moves: Vec<Move>,
    /// Where everyone is after them.
    pub placement: Placement,
    /// What that costs.
    pub cost: Breakdown,
    /// What J was, ns a round.
    pub before_ns: f64,
    /// What all moves together cost, ns.
    pub moving_ns: f64,
}

/// Whether to move anyone. Those that stay, or are pinned where they are, are not moved; one that
/// is pinned elsewhere is.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn replan(
    graph: &Graph,
    machine: &Machine,
    options: &Options,
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
        // Twice: once is what it costs, and once the margin against going to and fro.
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

/// Whoever stays is pinned where it is.
fn hold(problem: &mut Problem, graph: &Graph, at: &[Slot]) {
    for (component, parts) in graph.components.iter().enumerate() {
        if parts.stays && problem.pins[component].is_none() {
            problem.pins[component] = Some(at[component]);
        }
    }
}

/// Takes back moves that do not help by themselves.
fn send_home(state: &mut State, home: &[Slot]) {
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
    at: Vec<Slot>,
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

/// A place for those that have none yet; all others stay. `current` has a slot for each component
/// that runs already. Takes time by the newcomers and their peers, after a look at the graph.
///
/// # Errors
/// [`CostError`] if graph, machine and placement do not fit together.
pub fn follow(
    graph: &Graph,
    machine: &Machine,
    options: &Options,
    current: &[Option<Slot>],
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

/// Where newcomers begin: each where the fewest are, so that they do not all count as one crowd.
fn first_places(problem: &Problem, current: &[Option<Slot>]) -> Vec<Slot> {
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
