//! Objectives, and scores of runs.

use crate::model::{Model, Step, TaskId, WhenFull};
use crate::proof::{bounds, locks_in_order, may_wait_for_queues};
use crate::sim::Run;

/// Harm that a search looks for. Each has a score, of which more is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Jobs that end after their deadline. The score is the largest lateness in nanoseconds, below
    /// 0 if all jobs end in time.
    Lateness,
    /// Tasks that have work and do not run. The score is the longest such time in nanoseconds.
    Starvation,
    /// Busy cores. The score is the most core time in a window of the model's length, in
    /// nanoseconds.
    CpuPeak,
    /// Items that full queues lose. The score is a thousand for each, and how full the fullest
    /// queue became, in thousandths.
    Overflow,
    /// Jobs that wait for each other. The score is [`Objective::DEADLOCKED`], or says how near the
    /// run came: a thousand for each time that a job waited for a resource while it had another,
    /// and one for each other wait.
    Deadlock,
}

/// Proved bound of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// It cannot happen at all.
    Never,
    /// No scenario has a higher score.
    By(i64),
    /// Nothing is proved.
    Not,
}

impl Objective {
    /// All of them.
    pub const ALL: [Objective; 5] = [
        Objective::Lateness,
        Objective::Starvation,
        Objective::CpuPeak,
        Objective::Overflow,
        Objective::Deadlock,
    ];
    /// Score of a run with a deadlock.
    pub const DEADLOCKED: i64 = i64::MAX;
    /// Score of a lost item.
    pub const LOST: i64 = 1000;

    /// Its name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Lateness => "lateness",
            Objective::Starvation => "starvation",
            Objective::CpuPeak => "cpu-peak",
            Objective::Overflow => "overflow",
            Objective::Deadlock => "deadlock",
        }
    }

    /// The part of a model without which it cannot occur, if the model lacks it.
    pub(super) fn lacks(self, model: &Model) -> Option<&'static str> {
        let is_there = match self {
            Objective::Lateness => model.tasks.iter().any(|task| task.deadline_ns.is_some()),
            Objective::Starvation | Objective::CpuPeak => true,
            Objective::Overflow => !model.queues.is_empty(),
            Objective::Deadlock => !model.resources.is_empty() || !model.queues.is_empty(),
        };
        let part = match self {
            Objective::Lateness => "deadline",
            Objective::Overflow => "queue",
            _ => "resource and no queue",
        };
        (!is_there).then_some(part)
    }

    /// Whether a score is harm, and not only how near a run came to it. Of starvation and peaks
    /// that is for the reader to say.
    pub fn is_harm(self, score: i64) -> bool {
        match self {
            Objective::Lateness => score > 0,
            Objective::Starvation | Objective::CpuPeak => true,
            Objective::Overflow => score >= Self::LOST,
            Objective::Deadlock => score == Self::DEADLOCKED,
        }
    }

    /// Whether nothing can be worse, in any model.
    pub(super) fn is_worst(self, score: i64) -> bool {
        self == Objective::Deadlock && score == Self::DEADLOCKED
    }

    /// Score of a run.
    pub fn score(self, model: &Model, run: &Run) -> i64 {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        match self {
            Objective::Lateness => run.lateness_ns_max().map_or(i64::MIN, |late| late.0),
            Objective::Starvation => {
                let hungry = run.tasks.iter().map(|task| task.starvation_ns);
                signed(hungry.max().unwrap_or(0))
            }
            Objective::CpuPeak => signed(run.peak_ns),
            Objective::Overflow => {
                let lost: u64 = run.queues.iter().map(|queue| queue.lost).sum();
                let fill = run.queues.iter().zip(&model.queues).map(|(queue, rules)| {
                    u64::from(queue.fill_max) * 999 / u64::from(rules.capacity)
                });
                signed(lost).saturating_mul(Self::LOST) + signed(fill.max().unwrap_or(0))
            }
            Objective::Deadlock => match run.deadlock {
                Some(_) => Self::DEADLOCKED,
                None => signed(run.nested_waits * 999 + run.waits),
            },
        }
    }

    /// Times of a run near which its harm arises, with the task that it is about.
    pub(super) fn moments(self, model: &Model, run: &Run) -> Vec<(Option<TaskId>, u64)> {
        let of_task = |nth: usize| -> Option<u64> {
            let task = &run.tasks[nth];
            match self {
                Objective::Starvation => Some(task.starved_until_ns - task.starvation_ns),
                _ => Some(run.jobs[task.latest?.0].arrival_ns),
            }
        };
        let all = (0..run.tasks.len()).filter_map(|nth| Some((Some(TaskId(nth)), of_task(nth)?)));
        let mut moments: Vec<_> = match self {
            Objective::Lateness | Objective::Starvation => all.collect(),
            Objective::CpuPeak => vec![(None, run.peak_at_ns)],
            Objective::Overflow | Objective::Deadlock => Vec::new(),
        };
        // The worst one first.
        let badness = |moment: &(Option<TaskId>, u64)| match (self, moment.0) {
            (Objective::Starvation, Some(id)) => signed_ns(run.tasks[id.0].starvation_ns),
            (_, Some(id)) => run.tasks[id.0].lateness_ns_max.unwrap_or(i64::MIN),
            _ => 0,
        };
        moments.sort_by_key(|moment| std::cmp::Reverse(badness(moment)));
        if moments.is_empty() {
            let jobs = run.jobs.iter().take(model.tasks.len());
            moments.extend(jobs.map(|job| (Some(job.task), job.arrival_ns)));
        }
        moments
    }
}

fn signed_ns(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A tried scenario.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) genes: Vec<u64>,
    pub(super) score: i64,
    pub(super) moments: Vec<(Option<TaskId>, u64)>,
}

/// Proved bound of an objective, for all modes together.
pub fn bounded(model: &Model, objective: Objective) -> Bounded {
    let steps = || model.tasks.iter().flat_map(|task| &task.steps);
    let modes = 0..model.modes.len();
    match objective {
        Objective::Lateness | Objective::Starvation => {
            let mut most = i64::MIN;
            for bound in modes.flat_map(|mode| bounds(model, mode)).enumerate() {
                let (nth, Some(bound)) = bound else { continue };
                let has_deadline = model.tasks[nth % model.tasks.len()].deadline_ns.is_some();
                if objective == Objective::Lateness && !has_deadline {
                    continue;
                }
                // A job's task is hungry at most while the job is there; jobs that come before it
                // ends do not start anew.
                let value = bound.ok().and_then(|bound| match objective {
                    Objective::Lateness => bound.lateness_ns,
                    _ => bound.response_ns.map(signed_ns),
                });
                let Some(value) = value else {
                    return Bounded::Not;
                };
                most = most.max(value);
            }
            Bounded::By(most)
        }
        Objective::CpuPeak => {
            let cores = model.cores.len() as u64;
            Bounded::By(signed_ns(model.window_ns.saturating_mul(cores)))
        }
        Objective::Overflow => {
            let can_lose = |step: &Step| match step {
                Step::Push(queue) => model.queues[queue.0].when_full == WhenFull::Lose,
                _ => false,
            };
            match steps().any(can_lose) {
                true => Bounded::Not,
                false => Bounded::Never,
            }
        }
        Objective::Deadlock => {
            let cannot = |mode| locks_in_order(model, mode) && !may_wait_for_queues(model, mode);
            match modes.into_iter().all(cannot) {
                true => Bounded::Never,
                false => Bounded::Not,
            }
        }
    }
}
