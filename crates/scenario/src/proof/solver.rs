//! The worst busy period as constraints.
//!
//! Take a job `k` of a task on a core with fixed priorities and preemption, and the jobs that go
//! before it: those of more urgent tasks, and earlier ones of its own. Their times are the longest,
//! which is worst. Variables are the arrivals `a`, the start `s` of a busy period, and for each of
//! those jobs whether it is `in` it.
//!
//! ```text
//! in(k)
//! in(x)            →  a(x) >= s
//! before(y, x)     →  in(y) and a(y) < a(x)
//! in(x)            →  a(x) = s  or  Σ_y C(y) before(y, x) >= a(x) - s + 1
//! z                =  s + Σ_x C(x) in(x) - due(k)
//! ```
//!
//! The fourth line says that the core has some of this work left whenever more of it arrives. So
//! if `k` ended before `s + Σ C in`, all of this work that had arrived by then would be done,
//! though it is more than the time since `s`: `z` is never more than the response in a simulation
//! of the same arrivals. And the true worst case fulfils all lines with the true busy period. So
//! the largest `z` is the worst response exactly. It is found by halving what is between the best
//! known one and the bound of the response-time analysis, each question answered by the solver.

use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_solver::Solver;
use pumpkin_solver::core::predicate;
use pumpkin_solver::core::proof::ConstraintTag;
use pumpkin_solver::core::results::{
    ProblemSolution, SatisfactionResultUnderAssumptions as Answer,
};
use pumpkin_solver::core::termination::TerminationCondition;
use pumpkin_solver::core::variables::{AffineView, DomainId, Literal, TransformableVariable};

use crate::model::{Arrival, Model, Range, TaskId};
use crate::scenario::{JobChoices, Scenario};
use crate::sim::evaluate;

use super::exact::{Exact, NotExact, Way};
use super::{Bound, bounds};

/// Largest number for the solver, so that sums stay within its 32 bits.
const NUMBER_MAX: u64 = 1 << 27;
/// Most jobs in a busy period: the constraints grow with the square.
const JOBS_MAX: usize = 80;

type View = AffineView<DomainId>;

/// Ends the solver when the caller wants.
struct Ending<'a> {
    goes_on: &'a mut dyn FnMut() -> bool,
    is_over: bool,
}

impl TerminationCondition for Ending<'_> {
    fn should_stop(&mut self) -> bool {
        self.is_over = self.is_over || !(self.goes_on)();
        self.is_over
    }
}

pub(super) fn worst_lateness(
    model: &Model,
    mode: usize,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Exact, NotExact> {
    let scenario = Scenario::fullest(model, mode);
    let (lateness_ns, _) = evaluate(model, &scenario)
        .lateness_ns_max()
        .ok_or(NotExact::NoDeadline)?;
    let mut worst = Exact {
        lateness_ns,
        scenario,
        way: Way::Constraints,
    };
    let bounds = bounds(model, mode);
    for (id, task) in model.tasks_in(mode) {
        let Some(deadline_ns) = task.deadline_ns else {
            continue;
        };
        let bound = match &bounds[id.0] {
            Some(Ok(Bound {
                lateness_ns: Some(bound),
                ..
            })) => Some(*bound),
            _ => None,
        };
        if bound.is_some_and(|bound| bound <= worst.lateness_ns) {
            continue;
        }
        let problem = Problem::new(model, mode, id)?;
        // Later jobs are more likely to have had a worse past.
        for job in (0..problem.own_jobs()).rev() {
            let most_ns =
                bound.map(|bound| bound.saturating_add_unsigned(deadline_ns).max(0) as u64);
            let least_ns = worst.lateness_ns.saturating_add_unsigned(deadline_ns) + 1;
            let least_ns = least_ns.max(0) as u64;
            if let Some(scenario) = problem.worse(job, least_ns, most_ns, goes_on)? {
                let late = evaluate(model, &scenario).lateness_ns_max();
                let (lateness_ns, _) = late.ok_or(NotExact::NoDeadline)?;
                assert!(
                    lateness_ns > worst.lateness_ns,
                    "the solver's scenario is no worse: {lateness_ns} after {}",
                    worst.lateness_ns
                );
                worst.lateness_ns = lateness_ns;
                worst.scenario = scenario;
            }
            if bound.is_some_and(|bound| bound <= worst.lateness_ns) {
                break;
            }
        }
    }
    Ok(worst)
}

/// A task that takes part.
struct Part {
    id: TaskId,
    arrival: Arrival,
    duration_ns: u64,
    jobs: usize,
}

/// A target and the tasks that go before it. The target is the last part.
struct Problem<'a> {
    model: &'a Model,
    mode: usize,
    parts: Vec<Part>,
    /// The unit of all numbers: a divisor of all times.
    unit_ns: u64,
    /// Longest busy period.
    busy_ns: u64,
}

/// Variables of a job.
struct JobVariables {
    part: usize,
    number: usize,
    arrival: View,
    due: View,
    due_lower_ns: u64,
    due_upper_ns: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

impl<'a> Problem<'a> {
    fn new(model: &'a Model, mode: usize, target: TaskId) -> Result<Problem<'a>, NotExact> {
        let own = model.task(target);
        let mut parts = Vec::new();
        for (id, task) in model.tasks_in(mode) {
            let goes_before = task.priority > own.priority && task.cores == own.cores;
            if goes_before || id == target {
                parts.push(Part {
                    id,
                    arrival: task.arrival.clone(),
                    duration_ns: task.duration().to_ns,
                    jobs: usize::try_from(model.arrivals_max(id).unwrap_or(0))
                        .unwrap_or(usize::MAX),
                });
            }
        }
        parts.sort_by_key(|part| part.id == target);
        let unit_ns = parts.iter().fold(model.horizon_ns, |unit, part| {
            let times = match &part.arrival {
                Arrival::Periodic {
                    period_ns,
                    offset,
                    jitter_ns,
                } => [*period_ns, offset.from_ns, offset.to_ns, *jitter_ns],
                Arrival::Sporadic { between, first } => {
                    [between.from_ns, between.to_ns, first.from_ns, first.to_ns]
                }
                _ => [0; 4],
            };
            times.into_iter().fold(gcd(unit, part.duration_ns), gcd)
        });
        let busy_ns = busy_ns(&parts, model.horizon_ns);
        Ok(Problem {
            model,
            mode,
            parts,
            unit_ns,
            busy_ns,
        })
    }

    fn own_jobs(&self) -> usize {
        self.parts.last().map_or(0, |part| part.jobs)
    }

    fn number(&self, ns: u64) -> Result<i32, NotExact> {
        let number = ns / self.unit_ns;
        match number <= NUMBER_MAX {
            true => i32::try_from(number).map_err(|_| NotExact::Numbers),
            false => Err(NotExact::Numbers),
        }
    }

    /// Arrivals of all parts, with the constraints of their distances.
    fn arrivals(
        &self,
        solver: &mut Solver,
        tag: ConstraintTag,
    ) -> Result<Vec<JobVariables>, NotExact> {
        let mut all = Vec::new();
        for (part_number, part) in self.parts.iter().enumerate() {
            let mut variables = |arrival, due, number, due_of: Range| {
                all.push(JobVariables {
                    part: part_number,
                    number,
                    arrival,
                    due,
                    due_lower_ns: due_of.from_ns,
                    due_upper_ns: due_of.to_ns,
                });
            };
            match &part.arrival {
                Arrival::Periodic {
                    period_ns,
                    offset,
                    jitter_ns,
                } => {
                    let (from, to) = (self.number(offset.from_ns)?, self.number(offset.to_ns)?);
                    let first = solver.new_bounded_integer(from, to);
                    for number in 0..part.jobs {
                        let ahead_ns = number as u64 * period_ns;
                        let due = first.offset(self.number(ahead_ns)?);
                        let jitter = self.number(*jitter_ns)?;
                        let arrival = match jitter {
                            0 => due,
                            jitter => {
                                let from = self.number(offset.from_ns + ahead_ns)?;
                                let to = self.number(offset.to_ns + ahead_ns)? + jitter;
                                let arrival = solver.new_bounded_integer(from, to).scaled(1);
                                at_most(solver, tag, [due, arrival.scaled(-1)], 0);
                                at_most(solver, tag, [arrival, due.scaled(-1)], jitter);
                                arrival
                            }
                        };
                        let due_of = Range {
                            from_ns: offset.from_ns + ahead_ns,
                            to_ns: offset.to_ns + ahead_ns,
                        };
                        variables(arrival, due, number, due_of);
                    }
                }
                Arrival::Sporadic { between, first } => {
                    let mut before: Option<View> = None;
                    for number in 0..part.jobs {
                        let times = number as u64;
                        let due_of = Range {
                            from_ns: first.from_ns + times * between.from_ns,
                            to_ns: first.to_ns + times * between.to_ns,
                        };
                        let from = self.number(due_of.from_ns)?;
                        let to = self.number(due_of.to_ns)?;
                        let arrival = solver.new_bounded_integer(from, to).scaled(1);
                        if let Some(before) = before {
                            let least = self.number(between.from_ns)?;
                            let most = self.number(between.to_ns)?;
                            at_most(solver, tag, [before, arrival.scaled(-1)], -least);
                            at_most(solver, tag, [arrival, before.scaled(-1)], most);
                        }
                        before = Some(arrival);
                        variables(arrival, arrival, number, due_of);
                    }
                }
                Arrival::After { .. } | Arrival::OnPush { .. } => return Err(NotExact::Unsuited),
            }
        }
        Ok(all)
    }

    /// The scenario in which a job of the target takes longest, if it takes `least_ns` or more;
    /// none takes more than `most_ns`.
    fn worse(
        &self,
        job: usize,
        least_ns: u64,
        most_ns: Option<u64>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Scenario>, NotExact> {
        let mut solver = Solver::default();
        let tag = solver.new_constraint_tag();
        let last_part = self.parts.len() - 1;
        let all = self.arrivals(&mut solver, tag)?;
        let Some(target) = all
            .iter()
            .find(|one| one.part == last_part && one.number == job)
        else {
            return Ok(None);
        };
        // Jobs that can be in a busy period with the target, and are not behind it.
        let jitter_ns = |one: &JobVariables| match self.parts[one.part].arrival {
            Arrival::Periodic { jitter_ns, .. } => jitter_ns,
            _ => 0,
        };
        let latest_ns = target.due_upper_ns + jitter_ns(target) + self.busy_ns;
        let earliest_ns = target.due_lower_ns.saturating_sub(self.busy_ns);
        let near: Vec<&JobVariables> = (all.iter())
            .filter(|one| {
                let is_behind = one.part == last_part && one.number > job;
                let is_near = one.due_lower_ns <= latest_ns
                    && one.due_upper_ns + jitter_ns(one) >= earliest_ns;
                !is_behind && is_near
            })
            .collect();
        if near.len() > JOBS_MAX {
            return Err(NotExact::Large {
                task: self.model.task(self.parts[last_part].id).name.clone(),
                found: near.len(),
                max: JOBS_MAX,
            });
        }
        let horizon = self.number(self.model.horizon_ns)?;
        let total: u64 = near
            .iter()
            .map(|one| self.parts[one.part].duration_ns)
            .sum();
        let end_max = self.number(latest_ns + total)?;
        let start = solver.new_bounded_integer(0, end_max).scaled(1);
        let mut included: Vec<Literal> = Vec::new();
        for one in &near {
            let literal = solver.new_literal();
            at_most_if(
                &mut solver,
                tag,
                &[start, one.arrival.scaled(-1)],
                0,
                literal,
            );
            // A job that is due after the horizon does not exist.
            at_most_if(&mut solver, tag, &[one.due], horizon - 1, literal);
            if std::ptr::eq(*one, target) {
                solver.add_clause([literal.get_true_predicate()], tag);
            }
            included.push(literal);
        }
        for (x, one) in near.iter().enumerate() {
            // a(x) - s + 1 - Σ C before <= 0
            let mut terms = vec![one.arrival, start.scaled(-1)];
            for (y, other) in near.iter().enumerate() {
                if x == y {
                    continue;
                }
                let before = solver.new_literal();
                let is_in = [
                    before.get_false_predicate(),
                    included[y].get_true_predicate(),
                ];
                solver.add_clause(is_in, tag);
                let order = &[other.arrival, one.arrival.scaled(-1)];
                at_most_if(&mut solver, tag, order, -1, before);
                let duration = self.number(self.parts[other.part].duration_ns)?;
                terms.push(view(before).scaled(-duration));
            }
            let (begins, busy) = (solver.new_literal(), solver.new_literal());
            let one_of = [
                included[x].get_false_predicate(),
                begins.get_true_predicate(),
                busy.get_true_predicate(),
            ];
            solver.add_clause(one_of, tag);
            at_most_if(
                &mut solver,
                tag,
                &[one.arrival, start.scaled(-1)],
                0,
                begins,
            );
            let constraint = pumpkin_solver::less_than_or_equals(terms, -1, tag);
            solver.add_constraint(constraint).implied_by(busy);
        }
        // z - s - Σ C in + due <= 0
        let z_max = self.number(most_ns.unwrap_or(latest_ns + total))?;
        let z = solver.new_bounded_integer(0, z_max);
        let mut terms = vec![z.scaled(1), start.scaled(-1), target.due];
        for (one, literal) in near.iter().zip(&included) {
            let duration = self.number(self.parts[one.part].duration_ns)?;
            terms.push(view(*literal).scaled(-duration));
        }
        let constraint = pumpkin_solver::less_than_or_equals(terms, 0, tag);
        solver.add_constraint(constraint).post();
        self.halve(&mut solver, z, (least_ns, z_max), &all, goes_on)
    }

    /// The largest possible value of `z` from a least one on, as a scenario.
    fn halve(
        &self,
        solver: &mut Solver,
        z: DomainId,
        (least_ns, most): (u64, i32),
        all: &[JobVariables],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Scenario>, NotExact> {
        let mut ending = Ending {
            goes_on,
            is_over: false,
        };
        // The least number that is at least so long.
        let mut low = self.number(least_ns.div_ceil(self.unit_ns) * self.unit_ns)?;
        let (mut high, mut ask) = (most, most);
        let mut found = None;
        let mut resolver = ResolutionResolver::default();
        let mut brancher = solver.default_brancher();
        while low <= high {
            let assumption = [predicate![z >= ask]];
            let answer = solver.satisfy_under_assumptions(
                &mut brancher,
                &mut ending,
                &mut resolver,
                &assumption,
            );
            match answer {
                Answer::Satisfiable(satisfiable) => {
                    let solution = satisfiable.solution();
                    low = solution.get_integer_value(z).max(ask) + 1;
                    let values: Vec<(u64, u64)> = (all.iter())
                        .map(|one| {
                            let ns = |view| {
                                u64::try_from(solution.get_integer_value(view)).unwrap_or(0)
                                    * self.unit_ns
                            };
                            (ns(one.due), ns(one.arrival))
                        })
                        .collect();
                    found = Some(self.scenario(all, &values));
                }
                Answer::UnsatisfiableUnderAssumptions(_) | Answer::Unsatisfiable(_) => {
                    high = ask - 1
                }
                Answer::Unknown(_) => return Err(NotExact::Ended),
            }
            ask = low + (high - low) / 2;
        }
        Ok(found)
    }

    fn scenario(&self, all: &[JobVariables], values: &[(u64, u64)]) -> Scenario {
        let mut scenario = Scenario::fullest(self.model, self.mode);
        for part in &self.parts {
            scenario.tasks[part.id.0].jobs.clear();
        }
        for (one, (due_ns, arrival_ns)) in all.iter().zip(values) {
            let part = &self.parts[one.part];
            if *due_ns < self.model.horizon_ns {
                let runs = crate::scenario::runs(self.model, part.id);
                scenario.tasks[part.id.0].jobs.push(JobChoices {
                    due_ns: *due_ns,
                    after_ns: arrival_ns - due_ns,
                    runs_ns: runs.iter().map(|range| range.to_ns).collect(),
                    tie: 0,
                });
            }
        }
        scenario
    }
}

/// Longest time in which the parts keep a core busy, or all their work if they never let it go.
fn busy_ns(parts: &[Part], horizon_ns: u64) -> u64 {
    let mut busy_ns: u64 = parts.iter().map(|part| part.duration_ns).sum();
    loop {
        let work = |part: &Part| {
            let (period_ns, jitter_ns) = match &part.arrival {
                Arrival::Periodic {
                    period_ns,
                    jitter_ns,
                    ..
                } => (*period_ns, *jitter_ns),
                Arrival::Sporadic { between, .. } => (between.from_ns, 0),
                _ => (horizon_ns, 0),
            };
            let jobs = (busy_ns + jitter_ns)
                .div_ceil(period_ns)
                .min(part.jobs as u64);
            jobs * part.duration_ns
        };
        let next_ns: u64 = parts.iter().map(work).sum();
        if next_ns <= busy_ns {
            return busy_ns;
        }
        busy_ns = next_ns;
    }
}

fn view(literal: Literal) -> View {
    literal.get_integer_variable()
}

fn at_most(solver: &mut Solver, tag: ConstraintTag, terms: [View; 2], most: i32) {
    let constraint = pumpkin_solver::less_than_or_equals(terms.to_vec(), most, tag);
    solver.add_constraint(constraint).post();
}

fn at_most_if(
    solver: &mut Solver,
    tag: ConstraintTag,
    terms: &[View],
    most: i32,
    condition: Literal,
) {
    let constraint = pumpkin_solver::less_than_or_equals(terms.to_vec(), most, tag);
    solver.add_constraint(constraint).implied_by(condition);
}
