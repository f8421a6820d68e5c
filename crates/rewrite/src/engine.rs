//! Rules applied until none matches, in rounds of two phases.
//!
//! A round:
//!
//! 1. *Search.* For each rule in order, and each vertex in the place of its plan's pivot,
//!    ascending, the matches from there, in the order of the plan. Threads take batches of pivots
//!    from a shared counter and search without locks.
//! 2. *Choice.* Of matches that overlap the first in that order is taken.
//! 3. *Change.* The chosen ones are applied.
//!
//! All three are functions of the graph at the beginning of the round, so the number of threads
//! changes nothing. The first match of a round is always taken, so a match that is left out is
//! found again or gone; the run ends when a round finds none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::apply;
use crate::compile::{self, Compiled};
use crate::graph::{Direction, Graph};
use crate::plan::{self, Plan, Statistics, Try};
use crate::rule::{Rule, RuleError};
use crate::search::Search;
use crate::select::{Found, PlainLocks, SharedLocks};

/// Matches of a round at most, about: so much memory is for them. More are left to later rounds.
const FOUND_MAX: usize = 1 << 20;
/// Matches from one pivot at most in a round.
const FROM_PIVOT_MAX: usize = 1 << 14;
/// Batches for each thread, at least: pivots differ much in what they cost.
const BATCHES: usize = 64;
/// Pivots of a batch at most.
const BATCH_MAX: usize = 64;
/// A search expected to look at fewer vertices and edges than this is left to one thread: at some
/// 10 ns each, threads take longer to start.
const COST_MIN: f64 = 50_000.0;
/// After the first round the time of the last search counts instead.
const SEARCH_MIN: Duration = Duration::from_micros(300);
/// Matches from which the choice is made by several threads.
const CHOICE_MIN: usize = 50_000;

/// Limits and threads of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads at most. One takes no atomic locks.
    pub threads: usize,
    /// Rounds at most.
    pub rounds_max: u64,
    /// Applications at most, looked at after each round.
    pub applications_max: u64,
    /// When several threads work.
    pub sharing: Sharing,
}

/// When several threads work rather than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// If the work is expected to be worth starting them.
    Worthwhile,
    /// Always, and a single thread works as several would: for tests and measurements.
    Always,
}

impl Default for Options {
    /// One thread, 100,000 rounds, 10 million applications.
    fn default() -> Self {
        Options {
            threads: 1,
            rounds_max: 100_000,
            applications_max: 10_000_000,
            sharing: Sharing::Worthwhile,
        }
    }
}

/// Account of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rounds that applied something.
    pub rounds: u64,
    /// Applications of each rule, by its place.
    pub applied: Vec<u64>,
    /// Matches that were found, and left out because they overlap with others of their round.
    pub overlaps: u64,
    /// Searches that several threads shared.
    pub shared: u64,
    /// Time of searches, choices and changes.
    pub times: Times,
}

/// Wall-clock time of the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Compiling and planning.
    pub plan: Duration,
    /// Looking for matches.
    pub search: Duration,
    /// Choosing among them.
    pub choice: Duration,
    /// Applying them.
    pub change: Duration,
}

impl Outcome {
    /// Applications of all rules.
    pub fn applications(&self) -> u64 {
        self.applied.iter().sum()
    }
}

/// Reason why a run has not come to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RewriteError {
    /// A mistake in a rule; the graph is as it was.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A limit was reached; the graph is as the last round left it.
    #[error(
        "the rules still match after {} and {applications} applications, most often `{rule}`: let it delete or change what it looks for, or forbid what it creates by `unless`, or allow more",
        hearth_text::counted(*.rounds as usize, "round")
    )]
    Endless {
        /// Rounds so far.
        rounds: u64,
        /// Applications so far.
        applications: u64,
        /// The rule that was applied most often in the last round.
        rule: String,
    },
}

/// Applies rules until none matches.
///
/// The graph afterwards, numbers of vertices and edges included, does not depend on
/// [`Options::threads`].
pub fn rewrite(
    graph: &mut Graph,
    rules: &[Rule],
    options: &Options,
) -> Result<Outcome, RewriteError> {
    let begin = Instant::now();
    let rules = compile::compile(rules, graph)?;
    let plans = plans(&rules, graph);
    let mut outcome = Outcome {
        applied: vec![0; rules.len()],
        ..Outcome::default()
    };
    outcome.times.plan = begin.elapsed();
    let mut plain = PlainLocks::default();
    let mut shared = SharedLocks::new();
    let always = options.sharing == Sharing::Always;
    let threads = options.threads.max(1);
    let cost: f64 = plans.iter().map(|plan| plan.cost).sum();
    let mut is_worth = cost >= COST_MIN;
    loop {
        let begin = Instant::now();
        let searchers = if always || is_worth { threads } else { 1 };
        let found = search(graph, &rules, &plans, searchers, always);
        let searched = begin.elapsed();
        outcome.times.search += searched;
        outcome.shared += u64::from(searchers > 1);
        is_worth = searched * searchers as u32 >= SEARCH_MIN;
        let matches = found.len(&rules);
        if matches == 0 {
            return Ok(outcome);
        }
        let begin = Instant::now();
        let vertices = graph.vertex_end() as usize;
        let chosen = match always || (threads > 1 && matches >= CHOICE_MIN) {
            true => shared.choose(&found, &rules, vertices, threads),
            false => plain.choose(&found, &rules, vertices),
        };
        outcome.times.choice += begin.elapsed();
        outcome.overlaps += (matches - chosen.len()) as u64;
        let begin = Instant::now();
        let applied = apply::apply(graph, &rules, &plans, &found, &chosen, threads, always);
        outcome.times.change += begin.elapsed();
        outcome.rounds += 1;
        for (all, now) in outcome.applied.iter_mut().zip(&applied) {
            *all += now;
        }
        if outcome.rounds >= options.rounds_max
            || outcome.applications() >= options.applications_max
        {
            return at_limit(graph, &rules, &plans, outcome, &applied);
        }
    }
}

/// A run at its limit is at its end if nothing matches.
fn at_limit(
    graph: &Graph,
    rules: &[Compiled],
    plans: &[Plan],
    outcome: Outcome,
    applied: &[u64],
) -> Result<Outcome, RewriteError> {
    if search(graph, rules, plans, 1, false).len(rules) == 0 {
        return Ok(outcome);
    }
    let most = (0..rules.len()).max_by_key(|rule| (applied[*rule], rules.len() - rule));
    Err(RewriteError::Endless {
        rounds: outcome.rounds,
        applications: outcome.applications(),
        rule: most.map_or_else(String::new, |rule| rules[rule].name.clone()),
    })
}

fn plans(rules: &[Compiled], graph: &Graph) -> Vec<Plan> {
    let statistics = Statistics::of(graph);
    rules
        .iter()
        .map(|rule| plan::plan(rule, graph, &statistics))
        .collect()
}

/// The search plans of rules for a graph, as text.
pub fn describe_plans(graph: &mut Graph, rules: &[Rule]) -> Result<String, RuleError> {
    let rules = compile::compile(rules, graph)?;
    let plans = plans(&rules, graph);
    let both = rules.iter().zip(&plans);
    Ok(both
        .map(|(rule, plan)| plan::describe(rule, plan, graph))
        .collect())
}

/// Pivots of one rule, a batch of them.
struct Batch<'a> {
    rule: usize,
    pivots: &'a [u32],
}

fn search(
    graph: &Graph,
    rules: &[Compiled],
    plans: &[Plan],
    threads: usize,
    always: bool,
) -> Found {
    let pivots: Vec<Vec<u32>> = plans.iter().map(|plan| pivots(graph, plan)).collect();
    let all: usize = pivots.iter().map(Vec::len).sum();
    let limit = (FOUND_MAX / all.max(1)).clamp(1, FROM_PIVOT_MAX);
    let size = (all / (threads * BATCHES)).clamp(1, BATCH_MAX);
    let batches: Vec<Batch<'_>> = pivots
        .iter()
        .enumerate()
        .flat_map(|(rule, pivots)| {
            pivots
                .chunks(size)
                .map(move |pivots| Batch { rule, pivots })
        })
        .collect();
    let mut flat: Vec<Vec<u32>> = vec![Vec::new(); rules.len()];
    let mut search_all = |batch: &Batch<'_>| {
        let rule = batch.rule;
        from_batch(
            graph,
            &rules[rule],
            &plans[rule],
            batch.pivots,
            limit,
            &mut flat[rule],
        );
    };
    if threads == 1 && !always {
        batches.iter().for_each(&mut search_all);
        return Found { flat };
    }
    // The largest first, so that none of them begins when the others end. The order of results is
    // that of the places.
    let mut largest_first: Vec<usize> = (0..batches.len()).collect();
    let sizes: Vec<usize> = batches
        .iter()
        .map(|batch| degrees(graph, &plans[batch.rule], batch.pivots))
        .collect();
    largest_first.sort_by_key(|place| std::cmp::Reverse(sizes[*place]));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done: Vec<(usize, Vec<u32>)> = Vec::new();
        loop {
            let Some(place) = largest_first.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return done;
            };
            let Batch { rule, pivots } = &batches[*place];
            let mut found = Vec::new();
            from_batch(
                graph,
                &rules[*rule],
                &plans[*rule],
                pivots,
                limit,
                &mut found,
            );
            if !found.is_empty() {
                done.push((*place, found));
            }
        }
    };
    let mut done: Vec<(usize, Vec<u32>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = others.into_iter();
        let all = others.flat_map(|one| one.join().expect("a search does not panic"));
        own.into_iter().chain(all).collect()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    for (place, found) in done {
        flat[batches[place].rule].extend(found);
    }
    Found { flat }
}

/// Vertices of the pivot's type that fulfil the conditions on it.
fn pivots(graph: &Graph, plan: &Plan) -> Vec<u32> {
    let step = &plan.steps[0];
    let mut search = Search::new(graph);
    let mut pivots = graph.of_types(step.range);
    if !step.conditions.is_empty() {
        pivots.retain(|pivot| search.may_start_at(step, *pivot));
    }
    pivots
}

/// Edges from pivots that a search begins with: what it costs, about.
fn degrees(graph: &Graph, plan: &Plan, pivots: &[u32]) -> usize {
    let of = |pivot: &u32| match plan.steps.get(1).map(|step| &step.tries) {
        Some(Try::From {
            direction, edges, ..
        }) => graph.halves_of(*pivot, *direction, *edges).len(),
        _ => 1,
    };
    pivots.iter().map(of).sum()
}

/// Adds the matches from some pivots, at most `limit` from each.
fn from_batch(
    graph: &Graph,
    rule: &Compiled,
    plan: &Plan,
    pivots: &[u32],
    limit: usize,
    into: &mut Vec<u32>,
) {
    let (vertices, edges) = (rule.main.vertices.len(), rule.main.edges.len());
    let mut search = Search::new(graph);
    for pivot in pivots {
        let mut count = 0;
        search.start_at(&plan.steps, *pivot, &mut |bound| {
            let is_free = |(vertex, own): &(u8, u32)| {
                let vertex = bound.vertices[usize::from(*vertex)];
                let ends = graph.halves(vertex, Direction::Out).len()
                    + graph.halves(vertex, Direction::In).len();
                ends == *own as usize
            };
            if !rule.strict.iter().all(is_free) {
                return usize::MAX;
            }
            into.extend_from_slice(&bound.vertices[..vertices]);
            into.extend_from_slice(&bound.edges[..edges]);
            count += 1;
            if count == limit { 0 } else { plan.back }
        });
    }
}

/// The order in which the matches of a rule come, for tests that find them in another way.
#[doc(hidden)]
pub struct SearchOrder {
    /// For each step the vertex and the edge of the pattern that it binds, by their places.
    pub steps: Vec<(Option<usize>, Option<usize>)>,
    /// The step that goes on after a match.
    pub back: usize,
    /// Whether each vertex of the pattern is written.
    pub writes: Vec<bool>,
    /// Whether `unless` patterns are looked at again before a match is applied.
    pub deep: bool,
}

/// The orders of rules for a graph.
#[doc(hidden)]
pub fn search_orders(graph: &mut Graph, rules: &[Rule]) -> Result<Vec<SearchOrder>, RuleError> {
    let rules = compile::compile(rules, graph)?;
    let plans = plans(&rules, graph);
    let order = |(rule, plan): (&Compiled, &Plan)| SearchOrder {
        steps: plan.steps.iter().map(plan::Step::binds).collect(),
        back: plan.back,
        writes: rule.writes.clone(),
        deep: rule.is_deep(),
    };
    Ok(rules.iter().zip(&plans).map(order).collect())
}
