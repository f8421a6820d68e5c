//! The partitioner: fewest units, then fewest cores, then the goals by their weights.
//!
//! - [`problem`]: the system as tables; [`state`]: seats with all loads and sums.
//! - [`bound`]: numbers that nothing undercuts.
//! - [`pack`]: a first mapping, and closing units and cores.
//! - [`exact`]: everything that may be better, for small systems.
//! - [`goals`]: moves for annealing, which is `hearth-place`'s.
//!
//! A search takes no time from a clock: a hook tells how much of the allowed time has passed. With
//! a hook that never says so, the result depends on the system, the goals and the seed only.

mod bound;
mod exact;
mod goals;
mod nowhere;
mod pack;
mod problem;
mod state;

use std::cmp::Ordering;

use hearth_place::search::{Steps, anneal};
use thiserror::Error;

use crate::mapping::{Mapping, Seat};
use crate::model::System;
use pack::{Mask, Packer};
use problem::Problem;
use state::State;

/// Largest system that is searched exhaustively, as far as the nodes go.
pub const EXACT_MAX: usize = 60;
/// Nodes of the exhaustive searches: for units and cores, and for the goals.
const NODES: u64 = 400_000;
const NODES_GOAL: u64 = 1_500_000;
/// Random orders of a first packing.
const ORDERS: usize = 12;
/// Attempts to close a unit or a core without success before the search gives up.
const ATTEMPTS: usize = 60;
/// Steps of the first round of annealing, and for each component.
const ROUND_STEPS: u64 = 100_000;
const ROUND_STEPS_EACH: u64 = 2_000;
/// Rounds without gain that end the search; each is longer than the one before.
const ROUNDS_IDLE: usize = 4;
/// Gain that counts, as a share of the goal.
const GAIN_MIN: f64 = 1e-3;
/// Shares of the time after which closing units and closing cores end.
const UNITS_SHARE: f64 = 0.5;
const CORES_SHARE: f64 = 0.7;

/// Weights of the goals. Each goal counts as a share of its worst: 1 is all messages on buses, on
/// the slowest; a cable of its own for each component and point; all units awake; each component
/// four steps below its core's level; all units bought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goals {
    /// Traffic on buses.
    pub traffic: f64,
    /// Times of messages on the way.
    pub latency: f64,
    /// Cables.
    pub cabling: f64,
    /// Power, the mean over time.
    pub energy: f64,
    /// Components below their core's level.
    pub mixing: f64,
    /// Cost of the units.
    pub cost: f64,
}

impl Default for Goals {
    /// All alike.
    fn default() -> Self {
        Self {
            traffic: 1.0,
            latency: 1.0,
            cabling: 1.0,
            energy: 1.0,
            mixing: 1.0,
            cost: 1.0,
        }
    }
}

impl Goals {
    /// Reads weights such as `cabling=3,energy=1`; a name alone weighs 1, and goals that are not
    /// named nothing.
    ///
    /// # Errors
    /// A sentence with the valid names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut goals = Self {
            traffic: 0.0,
            latency: 0.0,
            cabling: 0.0,
            energy: 0.0,
            mixing: 0.0,
            cost: 0.0,
        };
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let weight = weight.trim().parse::<f64>().ok();
            let weight = weight.filter(|weight| (0.0..=1e6).contains(weight));
            let weight = weight.ok_or_else(|| {
                format!("`{part}` has no weight from 0 to 1000000: write one, as in energy=2")
            })?;
            let goal = match name.trim() {
                "traffic" => &mut goals.traffic,
                "latency" => &mut goals.latency,
                "cabling" => &mut goals.cabling,
                "energy" => &mut goals.energy,
                "mixing" => &mut goals.mixing,
                "cost" => &mut goals.cost,
                other => {
                    return Err(format!(
                        "`{other}` is no goal: write traffic, latency, cabling, energy, mixing or cost"
                    ));
                }
            };
            *goal = weight;
        }
        Ok(goals)
    }
}

/// Work of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looks for a first mapping.
    Packing,
    /// Looks for one with fewer units.
    Units,
    /// Looks for one with fewer cores.
    Cores,
    /// Tries everything that may be better.
    Proving,
    /// Improves the goals.
    Goals,
}

/// State of a search, for who waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Its work.
    pub phase: Phase,
    /// The best so far.
    pub best: Option<Value>,
}

/// Worth of a mapping; units come before cores, and cores before the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Units.
    pub units: usize,
    /// Cores.
    pub cores: usize,
    /// The goals by their weights.
    pub goal: f64,
}

impl Value {
    /// Order of worth, better ones first.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = (self.units, self.cores).cmp(&(other.units, other.cores));
        numbers.then(self.goal.total_cmp(&other.goal))
    }

    /// Whether this is better by more than rounding.
    fn beats(&self, other: &Self, with_goal: bool) -> bool {
        match (self.units, self.cores).cmp(&(other.units, other.cores)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                with_goal && self.goal < other.goal - 1e-9 * other.goal.abs().max(1e-9)
            }
        }
    }
}

/// A mapping with what is known of its distance from the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The mapping.
    pub mapping: Mapping,
    /// Its worth.
    pub value: Value,
    /// Numbers that no valid mapping undercuts. Under the least units and cores no less goal is
    /// possible; it is a bound of its own.
    pub least: Value,
    /// Whether the search ended because the time was over or it was told to.
    pub is_cut_short: bool,
}

impl Found {
    /// Units above the least, as a share of it; 0 if they are proved to be the fewest.
    #[must_use]
    pub fn gap_units(&self) -> f64 {
        gap(self.value.units as f64, self.least.units as f64)
    }

    /// Cores above the least, as a share of it.
    #[must_use]
    pub fn gap_cores(&self) -> f64 {
        gap(self.value.cores as f64, self.least.cores as f64)
    }

    /// The goal above the least, as a share of it; none if the least is 0 and the goal is not.
    #[must_use]
    pub fn gap_goal(&self) -> Option<f64> {
        let gap = gap(self.value.goal, self.least.goal);
        gap.is_finite().then_some(gap)
    }
}

fn gap(value: f64, least: f64) -> f64 {
    let more = (value - least).max(0.0);
    match more <= 1e-9 * value.abs() {
        true => 0.0,
        false => more / least,
    }
}

/// Reason why there is no mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// A component fits on no unit, even alone.
    #[error("no unit can take `{component}`: {reason}")]
    Nowhere {
        /// The component.
        component: String,
        /// The reason, with the next step.
        reason: String,
    },
    /// There is no valid mapping.
    #[error(
        "no mapping keeps all rules, which was proved: add units, or relax messages' bounds and the rules"
    )]
    Impossible,
    /// The search found none.
    #[error(
        "no mapping was found; {left} without a seat at the best, such as `{component}`: add units or memory, relax the rules, or search longer"
    )]
    NotFound {
        /// Components without a seat.
        left: usize,
        /// One of them.
        component: String,
    },
}

/// Searches for the best mapping. `hook` is told the progress and returns the share of the allowed
/// time that has passed; from 1 on the search ends with the best so far.
///
/// # Errors
/// [`SearchError`] if there is no valid mapping, or none was found.
pub fn search(
    system: &System,
    goals: &Goals,
    seed: u64,
    hook: &mut dyn FnMut(Progress) -> f64,
) -> Result<Found, SearchError> {
    let mut problem = Problem::new(system, goals);
    if let Some(component) = problem.candidates.iter().position(Vec::is_empty) {
        return Err(SearchError::Nowhere {
            component: system.components[component].name.clone(),
            reason: nowhere::reason(system, component),
        });
    }
    let least = bound::least(&problem, system.units.len());
    problem.prices = bound::prices(&problem, least.units);
    let mut search = Search {
        packer: Packer::new(problem.count(), seed),
        least,
        problem: &problem,
        hook,
        phase: Phase::Packing,
        best: None,
        proved: Proved::default(),
        seed,
    };
    search.pack()?;
    search.close(Phase::Units);
    search.prove(false);
    search.bound_cores();
    search.close(Phase::Cores);
    search.prove(false);
    search.improve();
    search.prove(true);
    search.found()
}

/// Levels of worth that cannot be better.
#[derive(Clone, Copy, Debug, Default)]
struct Proved {
    numbers: bool,
    goal: bool,
}

struct Search<'s, 'a> {
    problem: &'s Problem<'a>,
    packer: Packer,
    least: bound::Least,
    hook: &'s mut dyn FnMut(Progress) -> f64,
    phase: Phase,
    best: Option<(Value, State<'s, 'a>)>,
    proved: Proved,
    seed: u64,
}

impl<'s, 'a> Search<'s, 'a> {
    fn passed(&mut self) -> f64 {
        (self.hook)(Progress {
            phase: self.phase,
            best: self.best.as_ref().map(|(value, _)| *value),
        })
    }

    fn value(&self) -> Option<Value> {
        self.best.as_ref().map(|(value, _)| *value)
    }

    /// Takes a full state if it is better.
    fn offer(&mut self, state: &State<'s, 'a>) -> bool {
        let value = Value {
            units: state.units,
            cores: state.cores,
            goal: state.goal(),
        };
        let is_better = self.value().is_none_or(|best| value.beats(&best, true));
        if is_better {
            self.best = Some((value, state.clone()));
        }
        is_better
    }

    /// A first mapping: the best of some orders, or one by ejections.
    fn pack(&mut self) -> Result<(), SearchError> {
        let everywhere: Mask = vec![true; self.problem.system.cores.len()];
        let mut fullest: Option<(Vec<usize>, State)> = None;
        for nth in 0..ORDERS {
            let mut state = State::new(self.problem);
            let noise = if nth == 0 { 0.0 } else { 0.3 };
            let order = self.packer.order(&state, noise);
            let left = self.packer.fill(&mut state, &order, &everywhere);
            if left.is_empty() {
                self.offer(&state);
            } else if fullest
                .as_ref()
                .is_none_or(|(least, _)| left.len() < least.len())
            {
                fullest = Some((left, state));
            }
            if self.is_least_units() || (self.passed() >= 1.0 && self.best.is_some()) {
                break;
            }
        }
        let Some((left, mut state)) = fullest.filter(|_| self.best.is_none()) else {
            return Ok(());
        };
        let (count, first) = (left.len(), left[0]);
        let tries = 200 * self.problem.count();
        if self.squeeze(&mut state, left, &everywhere, tries, 1.0) {
            self.offer(&state);
            return Ok(());
        }
        if self.problem.count() <= EXACT_MAX {
            let worst = Value {
                units: usize::MAX,
                cores: usize::MAX,
                goal: f64::INFINITY,
            };
            let searched = self.exact(worst, false, NODES);
            if let Some((_, mapping)) = searched.found {
                self.offer(&self.state_of(&mapping));
                return Ok(());
            }
            if searched.is_complete {
                return Err(SearchError::Impossible);
            }
        }
        Err(SearchError::NotFound {
            left: count,
            component: self.problem.system.components[first].name.clone(),
        })
    }

    fn is_least_units(&self) -> bool {
        self.value()
            .is_some_and(|best| best.units <= self.least.units)
    }

    fn squeeze(
        &mut self,
        state: &mut State<'s, 'a>,
        pool: Vec<usize>,
        mask: &Mask,
        tries: usize,
        until: f64,
    ) -> bool {
        let best = self.value();
        let (hook, phase) = (&mut *self.hook, self.phase);
        let mut stop = || hook(Progress { phase, best }) >= until;
        self.packer.squeeze(state, pool, mask, tries, &mut stop)
    }

    /// Empties units or cores as long as that succeeds.
    fn close(&mut self, phase: Phase) {
        self.phase = phase;
        let until = match phase {
            Phase::Units => UNITS_SHARE,
            _ => CORES_SHARE,
        };
        let mut failures = 0;
        while failures < ATTEMPTS && self.passed() < until {
            let Some((value, state)) = self.best.clone() else {
                return;
            };
            let is_least = match phase {
                Phase::Units => value.units <= self.least.units,
                _ => value.cores <= self.least.cores,
            };
            if is_least || self.proved.numbers {
                return;
            }
            let is_closed = match phase {
                Phase::Units => self.close_unit(state, failures),
                _ => self.close_core(state, failures),
            };
            failures = if is_closed { 0 } else { failures + 1 };
        }
    }

    /// Empties one of the least loaded units; sometimes two, and opens another one.
    fn close_unit(&mut self, mut state: State<'s, 'a>, failures: usize) -> bool {
        let system = self.problem.system;
        let load = |unit: usize| -> u64 {
            let cores = system.units[unit].cores.iter();
            cores.map(|core| state.peak(*core)).sum()
        };
        let all = 0..system.units.len();
        let (mut used, free): (Vec<usize>, Vec<usize>) =
            all.partition(|unit| state.unit_count[*unit] > 0);
        used.sort_by_key(|unit| load(*unit));
        let mut closed = vec![used[self.pick(used.len(), failures)]];
        let mut open: Vec<usize> = used
            .iter()
            .copied()
            .filter(|unit| *unit != closed[0])
            .collect();
        let is_exchange = !free.is_empty() && open.len() > 1 && failures % 3 == 2;
        if is_exchange {
            let second = open.remove(self.packer.random.usize(..open.len()));
            closed.push(second);
            open.push(free[self.packer.random.usize(..free.len())]);
        }
        let mut mask: Mask = vec![false; system.cores.len()];
        for unit in &open {
            system.units[*unit]
                .cores
                .iter()
                .for_each(|core| mask[*core] = true);
        }
        let pool: Vec<usize> = (0..self.problem.count())
            .filter(|at| state.unit(*at).is_some_and(|unit| closed.contains(&unit)))
            .collect();
        pool.iter().for_each(|at| state.remove(*at));
        let tries = 60 + 30 * pool.len() + 4 * self.problem.count();
        self.squeeze(&mut state, pool, &mask, tries, UNITS_SHARE) && self.offer(&state)
    }

    fn close_core(&mut self, mut state: State<'s, 'a>, failures: usize) -> bool {
        let system = self.problem.system;
        let mut used: Vec<usize> = (0..system.cores.len())
            .filter(|core| state.is_used(*core))
            .collect();
        used.sort_by_key(|core| state.peak(*core));
        let closed = used[self.pick(used.len(), failures)];
        let mut mask: Mask = vec![false; system.cores.len()];
        used.iter().for_each(|core| mask[*core] = *core != closed);
        let pool: Vec<usize> = state.on(closed).iter().map(|at| *at as usize).collect();
        pool.iter().for_each(|at| state.remove(*at));
        let tries = 60 + 30 * pool.len() + 2 * self.problem.count();
        self.squeeze(&mut state, pool, &mask, tries, CORES_SHARE) && self.offer(&state)
    }

    /// One of the first few, of more the more attempts have failed.
    fn pick(&mut self, count: usize, failures: usize) -> usize {
        self.packer.random.usize(..count.min(1 + failures / 2))
    }

    /// Bounds the cores anew: a mapping of more units than the best is worse in any case.
    fn bound_cores(&mut self) {
        if let Some(best) = self.value() {
            let least = bound::least(self.problem, best.units);
            self.least.cores = self.least.cores.max(least.cores);
        }
    }

    fn exact(&mut self, best: Value, with_goal: bool, nodes: u64) -> exact::Searched {
        let empty = State::new(self.problem);
        let order = self.packer.order(&empty, 0.0);
        let phase = self.phase;
        let value = self.value();
        let hook = &mut *self.hook;
        let mut stop = || hook(Progress { phase, best: value }) >= 1.0;
        exact::exact(empty, order, best, with_goal, nodes, &mut stop)
    }

    /// Looks for something better everywhere, in small systems.
    fn prove(&mut self, with_goal: bool) {
        let Some(best) = self.value() else { return };
        let is_least = best.units <= self.least.units && best.cores <= self.least.cores;
        self.proved.numbers |= is_least;
        self.proved.goal |= is_least && best.goal <= self.least.goal * (1.0 + 1e-9);
        let is_done = if with_goal {
            self.proved.goal
        } else {
            self.proved.numbers
        };
        if is_done || self.problem.count() > EXACT_MAX {
            return;
        }
        self.phase = Phase::Proving;
        let nodes = if with_goal { NODES_GOAL } else { NODES };
        let searched = self.exact(best, with_goal, nodes);
        if let Some((_, mapping)) = &searched.found {
            let state = self.state_of(mapping);
            self.offer(&state);
        }
        if searched.is_complete {
            self.proved.numbers = true;
            self.proved.goal |= with_goal;
        }
    }

    fn state_of(&self, mapping: &Mapping) -> State<'s, 'a> {
        let mut state = State::new(self.problem);
        for (component, seat) in mapping.0.iter().enumerate() {
            state.place(component, *seat);
        }
        state
    }

    /// Anneals the goals in rounds that grow.
    fn improve(&mut self) {
        self.phase = Phase::Goals;
        let weights = self.problem.weights;
        let sum = weights.traffic + weights.latency + weights.cabling;
        if sum + weights.energy + weights.mixing + weights.cost == 0.0 {
            return;
        }
        let mut idle = 0;
        let mut steps = ROUND_STEPS + ROUND_STEPS_EACH * self.problem.count() as u64;
        for round in 0_u64.. {
            if idle >= ROUNDS_IDLE || self.passed() >= 1.0 {
                return;
            }
            let Some((before, state)) = self.best.clone() else {
                return;
            };
            let hot = [1.0, 0.3, 0.1][round as usize % 3];
            let mut seats = goals::Seats::new(state, self.seed.wrapping_add(round));
            // In parts, to notice when the time is over.
            let mut budget = Steps::new(steps);
            let best = self.value();
            let phase = self.phase;
            let hook = &mut *self.hook;
            let mut watched = Watched {
                seats: &mut seats,
                asked: 0,
                is_over: &mut || hook(Progress { phase, best }) >= 1.0,
            };
            anneal(&mut watched, &mut budget, hot);
            let seats: Option<Vec<Seat>> = seats.best.into_iter().collect();
            if let Some(seats) = seats {
                let state = self.state_of(&Mapping(seats));
                self.offer(&state);
            }
            let after = self.value().unwrap_or(before);
            let is_gain = (after.units, after.cores) < (before.units, before.cores)
                || after.goal < before.goal * (1.0 - GAIN_MIN);
            idle = if is_gain { 0 } else { idle + 1 };
            if !is_gain {
                steps = steps.saturating_mul(2);
            }
        }
    }

    fn found(mut self) -> Result<Found, SearchError> {
        let is_cut_short = self.passed() >= 1.0;
        let Some((mut value, state)) = self.best else {
            return Err(SearchError::Impossible);
        };
        let mapping = state.mapping().ok_or(SearchError::Impossible)?;
        // Sums that were updated a million times carry rounding; these do not.
        let mut fresh = State::new(self.problem);
        for (component, seat) in mapping.0.iter().enumerate() {
            fresh.place(component, *seat);
        }
        value.goal = fresh.goal();
        let least = match (self.proved.numbers, self.proved.goal) {
            (_, true) => value,
            (true, false) => Value {
                goal: self.least.goal.min(value.goal),
                ..value
            },
            (false, false) => Value {
                units: self.least.units,
                cores: self.least.cores,
                goal: self.least.goal.min(value.goal),
            },
        };
        Ok(Found {
            mapping,
            value,
            least,
            is_cut_short: is_cut_short && !self.proved.goal,
        })
    }
}

/// Seats whose annealing ends when the time is over.
struct Watched<'w, 'p, 'a> {
    seats: &'w mut goals::Seats<'p, 'a>,
    asked: u32,
    is_over: &'w mut dyn FnMut() -> bool,
}

impl hearth_place::search::Landscape for Watched<'_, '_, '_> {
    fn score(&mut self) -> hearth_place::search::Score {
        self.seats.score()
    }

    fn propose(&mut self) {
        self.asked += 1;
        if self.asked.is_multiple_of(256) && (self.is_over)() {
            self.seats.is_stopped = true;
        }
        self.seats.propose();
    }

    fn weigh(&mut self) -> hearth_place::search::Score {
        self.seats.weigh()
    }

    fn accept(&mut self) {
        self.seats.accept();
    }

    fn keep(&mut self) {
        self.seats.keep();
    }

    fn take_steps(&mut self) -> u64 {
        self.seats.take_steps()
    }

    fn bits(&mut self) -> u64 {
        self.seats.bits()
    }
}
