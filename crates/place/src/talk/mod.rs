//! The optimiser: finds the placement of least predicted cost within a bounded number of steps.
//!
//! For up to [`EXACT_MAX`] components it examines all placements that may be better, except for
//! those that differ by equal cores only; the result is then proved optimal. Larger graphs are
//! placed from several starts, the [baselines](crate::baselines) among them, each improved by
//! [local search](local); very large ones are [made smaller](levels) first. The result is never
//! worse than a start, and the same for the same arguments.

mod alike;
mod anneal;
mod exact;
mod levels;
mod local;

use crate::baselines::{Affinity, Baseline, pin};
use crate::cost::problem::Problem;
use crate::cost::state::State;
use crate::cost::{Breakdown, CostError, CostOptions};
use crate::graph::Graph;
use crate::slots::{CpuSlot, Machine, Placement, slot_number};

pub(crate) use local::{Search, Steps};

/// Largest graph that is searched exhaustively.
pub const EXACT_MAX: usize = 12;
/// Largest graph for which every baseline is a start; their time grows with the square.
const BASELINES_MAX: usize = 1024;
/// The exhaustive search gets one in this many of the steps asked for: bounds take longer than
/// moves.
const EXACT_PART: u64 = 3;
/// Number of starts that are improved.
const IMPROVED: usize = 3;
/// Relative temperatures at which annealing begins, each time.
const ANNEALED: [f64; 2] = [0.4, 0.1];
/// Largest graph that is cooled fast and annealed again instead.
const FEW: usize = 16;
const ANNEALED_FEW: [f64; 8] = [1.0, 0.4, 0.1, 1.0, 0.4, 0.1, 1.0, 0.4];
/// Least steps for each component to anneal at all: with fewer it would end before it is cold.
const ANNEAL_MIN: u64 = 1_000;
/// Steps for each component beyond those asked for, so that large graphs are examined as a whole.
const STEPS_EACH: u64 = 100;

/// Effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Steps: a connection or slot looked at again because a component moved. About 15 ns each.
    pub steps: u64,
    /// Seed of random choices.
    pub seed: u64,
}

impl Default for Effort {
    /// About six milliseconds for graphs of up to a hundred components.
    fn default() -> Self {
        Self {
            steps: 400_000,
            seed: 1,
        }
    }
}

/// A placement and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The slots.
    pub placement: Placement,
    /// Its cost.
    pub cost: Breakdown,
    /// Whether the search proved that nothing is better.
    pub proved: bool,
}

/// Places components so that J is small. Pins hold; a pin to a hardware thread that may not be used
/// counts as none. The result is no worse than `start`.
///
/// # Errors
/// [`CostError`] if the graph is not sound, or `start` is not of this graph and machine.
pub fn talk(
    graph: &Graph,
    machine: &Machine,
    options: &CostOptions,
    effort: Effort,
    start: Option<&Placement>,
) -> Result<Placed, CostError> {
    graph.check()?;
    if let Some(start) = start {
        crate::cost::fits(graph, machine, start)?;
    }
    let problem = Problem::new(graph, machine, options);
    let (at, proved) = solve(&problem, effort, start.map(|start| start.0.as_slice()));
    Ok(Placed {
        cost: State::new(&problem, &at).breakdown(),
        placement: Placement(at),
        proved,
    })
}

pub(crate) fn solve(
    problem: &Problem,
    effort: Effort,
    start: Option<&[CpuSlot]>,
) -> (Vec<CpuSlot>, bool) {
    if problem.count() == 0 || problem.slots() == 1 {
        return (vec![CpuSlot(0); problem.count()], true);
    }
    let mut steps = Steps::new(effort.steps + STEPS_EACH * problem.count() as u64);
    let mut starts = starts(problem);
    if let Some(start) = start {
        let mut start = start.to_vec();
        pin(problem, &mut start);
        starts.push(start);
    }
    if problem.count() > levels::SMALL_MAX {
        starts.push(levels::multilevel(problem, effort.seed));
    }
    let best = improve(problem, starts, &mut steps, effort.seed);
    if problem.count() <= EXACT_MAX {
        return exact::exact(problem, best, effort.steps / EXACT_PART);
    }
    (best, false)
}

/// Starting placements: all together, round robin, runs of equal work, and the baselines.
pub(crate) fn starts(problem: &Problem) -> Vec<Vec<CpuSlot>> {
    let (count, slots) = (problem.count(), problem.slots());
    let mut starts = vec![
        vec![CpuSlot(0); count],
        (0..count).map(|c| slot_number(c % slots)).collect(),
        runs(problem),
    ];
    if count <= BASELINES_MAX {
        let affinity = Affinity::of(problem);
        starts.extend(Baseline::ALL.map(|baseline| baseline.of(problem, &affinity)));
    }
    starts.iter_mut().for_each(|start| pin(problem, start));
    starts
}

/// Runs of components in the order of creation, each slot with its share of the work.
fn runs(problem: &Problem) -> Vec<CpuSlot> {
    let slots = problem.slots();
    let each = |component: usize| problem.work[component].max(f64::MIN_POSITIVE);
    let total: f64 = (0..problem.count()).map(each).sum();
    let mut before = 0.0;
    (0..problem.count())
        .map(|component| {
            let middle = before + each(component) / 2.0;
            before += each(component);
            let slot = (middle / total * slots as f64) as usize;
            slot_number(slot.min(slots - 1))
        })
        .collect()
}

/// Improves the best starts, then continues from the best result by small disturbances.
fn improve(
    problem: &Problem,
    starts: Vec<Vec<CpuSlot>>,
    steps: &mut Steps,
    seed: u64,
) -> Vec<CpuSlot> {
    let mut states: Vec<State> = starts.iter().map(|at| State::new(problem, at)).collect();
    states.sort_by(|a, b| {
        let (a, b) = (a.score(), b.score());
        a.over.total_cmp(&b.over).then(a.total.total_cmp(&b.total))
    });
    let mut search = Search::new(problem, seed);
    let share = steps.left() / (2 * IMPROVED as u64);
    let mut best: Option<State> = None;
    let improved = match problem.count() > local::GROUPS_MAX {
        true => 1,
        false => IMPROVED,
    };
    for mut state in states.into_iter().take(improved) {
        let mut part = steps.part(share.max(STEPS_EACH * problem.count() as u64 / 4));
        search.descend(&mut state, &mut part);
        steps.spend(part.spent());
        if best
            .as_ref()
            .is_none_or(|best| state.score().beats(&best.score()))
        {
            best = Some(state);
        }
    }
    let mut best = best.expect("there are starts");
    if problem.count() <= local::GROUPS_MAX && steps.left() > ANNEAL_MIN * problem.count() as u64 {
        let rounds: &[f64] = match problem.count() {
            ..=FEW => &ANNEALED_FEW,
            _ => &ANNEALED,
        };
        let each = steps.left() * 4 / 5 / rounds.len() as u64;
        for &hot in rounds {
            let mut part = steps.part(each);
            let found = anneal::anneal(&mut search, &mut best.clone(), &mut part, hot);
            steps.spend(part.spent());
            let mut found = State::new(problem, &found);
            search.descend(&mut found, steps);
            if found.score().beats(&best.score()) {
                best = found;
            }
        }
    }
    search.disturb(&mut best, steps);
    best.placement().to_vec()
}
