//! The scenario with the worst run.
//!
//! [`search`] tries scenarios, asks its caller after each whether to go on, and ends with the worst
//! one and a [`Verdict`]: whether that is proved, found, or only searched. With the same model,
//! options and number of runs it gives the same answer.

mod genetic;
mod score;

use thiserror::Error;

use crate::genes::{Layout, longest_is_worst};
use crate::model::Model;
use crate::proof::exact::{self, NotExact};
use crate::scenario::Scenario;
use crate::sim::evaluate;

use genetic::Island;
use score::Scored;
pub use score::{Bounded, Objective, bounded};

/// Way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Good scenarios are varied and combined.
    Genetic,
    /// Each scenario is chosen anew: the baseline.
    Random,
    /// The worst lateness with a proof, of small sets.
    Exact,
}

/// Options of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Harm that is looked for.
    pub objective: Objective,
    /// Way to search.
    pub method: Method,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of runs after which it ends; none if only the caller ends it.
    pub evaluations: Option<u64>,
}

/// State of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of runs so far. The exact search counts the questions whether to go on.
    pub evaluations: u64,
    /// The worst score so far; see [`Objective`].
    pub worst: Option<i64>,
}

/// Degree of certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No scenario does harm: none exceeds the bound, in the objective's unit.
    ProvedSafe {
        /// The bound.
        bound: i64,
    },
    /// The worst scenario was found, and none is worse.
    ProvedWorst,
    /// The scenario does harm. A worse one may exist.
    Found,
    /// No harm was found, which proves nothing.
    OnlySearched,
}

impl Verdict {
    /// The verdict in a word or two: `proved`, `found` or `only searched`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::ProvedSafe { .. } | Verdict::ProvedWorst => "proved",
            Verdict::Found => "found",
            Verdict::OnlySearched => "only searched",
        }
    }
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The worst scenario that was tried.
    pub scenario: Scenario,
    /// Its score; see [`Objective`].
    pub score: i64,
    /// Degree of certainty.
    pub verdict: Verdict,
    /// Number of runs.
    pub evaluations: u64,
    /// Number of runs after which the worst one was found.
    pub found_after: u64,
    /// Whether the caller ended it.
    pub was_ended: bool,
}

/// Reason why nothing can be searched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The objective does not occur in the model.
    #[error("{objective} cannot occur: the model has no {lacks}; choose another `--objective`")]
    Nothing {
        /// The objective's name.
        objective: &'static str,
        /// The part that it needs.
        lacks: &'static str,
    },
    /// The exact search knows lateness only.
    #[error("the exact search knows lateness only: choose `--search genetic`")]
    ExactObjective,
    /// The exact search does not suit the model.
    #[error(transparent)]
    Exact(NotExact),
}

/// Searches for the worst scenario. `goes_on` is asked after each run.
///
/// # Errors
///
/// The reason why nothing can be searched.
pub fn search(
    model: &Model,
    options: &Options,
    goes_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, SearchError> {
    if let Some(lacks) = options.objective.lacks(model) {
        return Err(SearchError::Nothing {
            objective: options.objective.name(),
            lacks,
        });
    }
    if options.method == Method::Exact {
        return exactly(model, options, goes_on);
    }
    let mut islands: Vec<Island> = (0..model.modes.len())
        .filter(|mode| model.tasks_in(*mode).next().is_some())
        .map(|mode| {
            let longest = options.objective == Objective::Lateness && longest_is_worst(model, mode);
            let layout = Layout::new(model, mode, longest);
            let seed = options.seed.wrapping_add((mode as u64) << 32);
            Island::new(model, layout, options.objective, seed)
        })
        .collect();
    let mut worst: Option<(Scored, usize, u64)> = None;
    let mut evaluations = 0;
    let mut was_ended = false;
    let most = options
        .evaluations
        .unwrap_or(u64::MAX)
        .max(islands.len() as u64);
    while evaluations < most && !islands.is_empty() {
        let at = (evaluations % islands.len() as u64) as usize;
        let scored = match options.method {
            Method::Random => islands[at].random(model),
            _ => islands[at].step(model),
        };
        evaluations += 1;
        if worst
            .as_ref()
            .is_none_or(|(one, ..)| one.score < scored.score)
        {
            worst = Some((scored, at, evaluations));
        }
        let score = worst.as_ref().map(|(one, ..)| one.score);
        let progress = Progress {
            evaluations,
            worst: score,
        };
        // Every mode has had a turn before anything ends.
        if evaluations < islands.len() as u64 {
            continue;
        }
        was_ended = !goes_on(&progress);
        if was_ended || score.is_some_and(|score| options.objective.is_worst(score)) {
            break;
        }
    }
    let Some((scored, at, found_after)) = worst else {
        return Err(SearchError::Nothing {
            objective: options.objective.name(),
            lacks: "task in any mode",
        });
    };
    Ok(Outcome {
        scenario: islands[at].scenario(model, &scored.genes),
        score: scored.score,
        verdict: verdict(model, options.objective, scored.score),
        evaluations,
        found_after,
        was_ended,
    })
}

/// The verdict on a score that was found.
pub fn verdict(model: &Model, objective: Objective, score: i64) -> Verdict {
    match bounded(model, objective) {
        Bounded::Never => Verdict::ProvedSafe { bound: 0 },
        Bounded::By(bound) if score >= bound => Verdict::ProvedWorst,
        Bounded::By(bound) if !objective.is_harm(bound) => Verdict::ProvedSafe { bound },
        _ if objective.is_harm(score) => Verdict::Found,
        _ => Verdict::OnlySearched,
    }
}

fn exactly(
    model: &Model,
    options: &Options,
    goes_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, SearchError> {
    if options.objective != Objective::Lateness {
        return Err(SearchError::ExactObjective);
    }
    let mut outcome: Option<Outcome> = None;
    let mut evaluations = 0;
    let mut is_complete = true;
    for mode in 0..model.modes.len() {
        let worst = outcome.as_ref().map(|one| one.score);
        let most = options.evaluations.unwrap_or(u64::MAX);
        let mut ask = || {
            evaluations += 1;
            evaluations <= most && goes_on(&Progress { evaluations, worst })
        };
        let (score, scenario) = match exact::worst_lateness(model, mode, &mut ask) {
            Ok(exact) => (exact.lateness_ns, exact.scenario),
            Err(NotExact::NoDeadline) => continue,
            // Ended: the densest scenario is better than none.
            Err(NotExact::Ended) => {
                is_complete = false;
                let scenario = Scenario::fullest(model, mode);
                let late = evaluate(model, &scenario).lateness_ns_max();
                (late.map_or(i64::MIN, |late| late.0), scenario)
            }
            Err(other) => return Err(SearchError::Exact(other)),
        };
        if worst.is_none_or(|worst| worst < score) {
            outcome = Some(Outcome {
                scenario,
                score,
                verdict: Verdict::ProvedWorst,
                evaluations,
                found_after: evaluations,
                was_ended: false,
            });
        }
    }
    let mut outcome = outcome.ok_or(SearchError::Exact(NotExact::NoDeadline))?;
    outcome.evaluations = evaluations;
    if !is_complete {
        outcome.was_ended = true;
        outcome.verdict = verdict(model, options.objective, outcome.score);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests;
