//! Mistakes in a model, and the check that finds them.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{
    Arrival, JOBS_MAX, Model, Policy, Protocol, Range, Scope, Step, TIME_NS_MAX, Task, TaskId,
    format_ns,
};

/// Line of a mistake that no line of a file caused.
pub const LINE_UNKNOWN: usize = 0;

/// A mistake in a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{place}: {fault}", at(*line))]
pub struct ModelError {
    /// Line in the file, from 1, or [`LINE_UNKNOWN`].
    pub line: usize,
    /// The wrong part, such as "task `log`, field `deadline`".
    pub place: String,
    /// The mistake, and what to do.
    pub fault: ModelFault,
}

fn at(line: usize) -> String {
    match line {
        LINE_UNKNOWN => String::new(),
        line => format!("line {line}, "),
    }
}

/// The mistake at a place of a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelFault {
    /// The text is not of the form.
    #[error("{reason}: write it as `docs/scenario.md` describes")]
    Form {
        /// The parser's reason.
        reason: String,
    },
    /// A format of another version.
    #[error("this is format {found}, and {wanted} is read here: write `format = {wanted}`")]
    Format {
        /// Version in the file.
        found: u32,
        /// Version that is read.
        wanted: u32,
    },
    /// A text that is no time.
    #[error(
        "`{text}` is not a time: write a number with ns, us, ms or s, such as `250us`, of at most {}",
        format_ns(TIME_NS_MAX)
    )]
    Time {
        /// The text.
        text: String,
    },
    /// A text that is neither a time nor a range.
    #[error(
        "`{text}` is neither a time nor a range: write one such as `2ms`, or `1ms..2ms` with the shorter first"
    )]
    Range {
        /// The text.
        text: String,
    },
    /// A time that must be above 0.
    #[error("it is 0: write a time above 0")]
    Zero,
    /// A time or number beyond what is computed with.
    #[error("it is too long: write at most {}", format_ns(TIME_NS_MAX))]
    TooLong,
    /// A number that must be above 0.
    #[error("it is 0: write a number above 0")]
    None,
    /// A word that is not one of a few.
    #[error("`{word}` is not known here: write {expected}")]
    Word {
        /// The word.
        word: String,
        /// Those that are.
        expected: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{name}`{}: name one of the file's", hint(near))]
    Unknown {
        /// Kind of thing.
        what: &'static str,
        /// The name.
        name: String,
        /// A name that may be meant.
        near: Option<String>,
    },
    /// A name that two things have.
    #[error("two {what} are called `{name}`: give each a name of its own")]
    Twice {
        /// Kind of thing, in the plural.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A part that must be there.
    #[error("it is missing: add {what}")]
    Missing {
        /// The missing part.
        what: &'static str,
    },
    /// Parts that do not go together.
    #[error("{both} do not go together: leave one out")]
    Both {
        /// The parts.
        both: &'static str,
    },
    /// A task of a partitioned scheduler that has no single core.
    #[error(
        "a partitioned scheduler needs one core, and the task has {found}: name one, or write `scope = \"global\"`"
    )]
    OneCore {
        /// Number of the task's cores.
        found: usize,
    },
    /// A resource that is locked while it is held.
    #[error("`{name}` is locked where the job has it already: unlock it first")]
    LockedTwice {
        /// The resource.
        name: String,
    },
    /// A resource that is unlocked while it is not held.
    #[error("`{name}` is unlocked where the job does not have it: lock it first")]
    NotLocked {
        /// The resource.
        name: String,
    },
    /// A resource that a job still has when it ends.
    #[error("`{name}` is still locked at the end: add `{{ unlock = \"{name}\" }}`")]
    StillLocked {
        /// The resource.
        name: String,
    },
    /// A protocol that the scheduler does not have.
    #[error("this protocol needs {needs}: choose that policy, or write `protocol = \"none\"`")]
    Protocol {
        /// Policies that have it.
        needs: &'static str,
    },
    /// Tasks that make each other arrive for ever.
    #[error("the task makes itself arrive, through {path}: break the circle")]
    Circle {
        /// Names on the way.
        path: String,
    },
    /// More jobs than can be simulated.
    #[error("the horizon holds {found} jobs, and {JOBS_MAX} are the most: shorten `horizon`")]
    Jobs {
        /// Number of jobs.
        found: u64,
    },
}

fn hint(near: &Option<String>) -> String {
    near.as_ref()
        .map(|name| format!(", but `{name}`"))
        .unwrap_or_default()
}

/// Part of a model that a mistake is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Model,
    Scheduler,
    Core(usize),
    Resource(usize),
    Queue(usize),
    Task(usize),
    /// A step of a task.
    Step(usize, usize),
}

pub(super) type Found = (Part, &'static str, ModelFault);

impl Model {
    /// The model itself if nothing is wrong with it.
    ///
    /// # Errors
    ///
    /// The first mistake, without a line.
    pub fn checked(self) -> Result<Model, ModelError> {
        match self.mistake() {
            None => Ok(self),
            Some((part, field, fault)) => Err(ModelError {
                line: LINE_UNKNOWN,
                place: self.place(part, field),
                fault,
            }),
        }
    }

    pub(super) fn place(&self, part: Part, field: &str) -> String {
        let named = |kind: &str, name: Option<&String>, nth: usize| match name {
            Some(name) => format!("{kind} `{name}`, field `{field}`"),
            None => format!("{kind} {}, field `{field}`", nth + 1),
        };
        match part {
            Part::Model => format!("field `{field}`"),
            Part::Scheduler => format!("scheduler, field `{field}`"),
            Part::Core(nth) => named("core", self.cores.get(nth), nth),
            Part::Resource(nth) => named(
                "resource",
                self.resources.get(nth).map(|one| &one.name),
                nth,
            ),
            Part::Queue(nth) => named("queue", self.queues.get(nth).map(|one| &one.name), nth),
            Part::Task(nth) => named("task", self.tasks.get(nth).map(|one| &one.name), nth),
            Part::Step(nth, step) => {
                let name = self.tasks.get(nth).map(|one| one.name.as_str());
                format!("task `{}`, step {}", name.unwrap_or_default(), step + 1)
            }
        }
    }

    /// The first mistake.
    pub(super) fn mistake(&self) -> Option<Found> {
        self.whole()
            .or_else(|| self.names())
            .or_else(|| {
                let mut tasks = self.tasks.iter().enumerate();
                tasks.find_map(|(nth, task)| self.in_task(nth, task))
            })
            .or_else(|| self.circle())
            .or_else(|| self.jobs())
    }

    fn whole(&self) -> Option<Found> {
        let model = |field, fault| Some((Part::Model, field, fault));
        let scheduler = |field, fault| Some((Part::Scheduler, field, fault));
        for (field, ns) in [("horizon", self.horizon_ns), ("window", self.window_ns)] {
            match ns {
                0 => return model(field, ModelFault::Zero),
                _ if ns > TIME_NS_MAX => return model(field, ModelFault::TooLong),
                _ => {}
            }
        }
        if self.tasks.is_empty() {
            return model("task", ModelFault::Missing { what: "a task" });
        }
        if self.cores.is_empty() {
            return model("core", ModelFault::Missing { what: "a core" });
        }
        if self.modes.is_empty() {
            return model("modes", ModelFault::Missing { what: "a mode" });
        }
        if let Policy::Fair { slice_ns } = self.scheduler.policy {
            match slice_ns {
                0 => return scheduler("slice", ModelFault::Zero),
                _ if slice_ns > TIME_NS_MAX => return scheduler("slice", ModelFault::TooLong),
                _ => {}
            }
        }
        None
    }

    fn names(&self) -> Option<Found> {
        let twice = |what, names: Vec<&String>| {
            let mut seen = BTreeSet::new();
            let nth = names.iter().position(|name| !seen.insert(*name))?;
            let name = names[nth].clone();
            Some((nth, ModelFault::Twice { what, name }))
        };
        if let Some((_, fault)) = twice("modes", self.modes.iter().collect()) {
            return Some((Part::Model, "modes", fault));
        }
        if let Some((nth, fault)) = twice("cores", self.cores.iter().collect()) {
            return Some((Part::Core(nth), "name", fault));
        }
        let resources = self.resources.iter().map(|one| &one.name).collect();
        if let Some((nth, fault)) = twice("resources", resources) {
            return Some((Part::Resource(nth), "name", fault));
        }
        let queues = self.queues.iter().map(|one| &one.name).collect();
        if let Some((nth, fault)) = twice("queues", queues) {
            return Some((Part::Queue(nth), "name", fault));
        }
        let tasks = self.tasks.iter().map(|one| &one.name).collect();
        if let Some((nth, fault)) = twice("tasks", tasks) {
            return Some((Part::Task(nth), "name", fault));
        }
        for (nth, queue) in self.queues.iter().enumerate() {
            if queue.capacity == 0 {
                return Some((Part::Queue(nth), "capacity", ModelFault::None));
            }
        }
        for (nth, resource) in self.resources.iter().enumerate() {
            let needs = match (resource.protocol, self.scheduler.policy) {
                (Protocol::None, _) | (_, Policy::FixedPriority { .. }) => continue,
                (Protocol::Inheritance, Policy::Edf) => continue,
                (Protocol::Inheritance, _) => "`fixed-priority` or `edf`",
                (Protocol::Ceiling, _) => "`fixed-priority`",
            };
            let fault = ModelFault::Protocol { needs };
            return Some((Part::Resource(nth), "protocol", fault));
        }
        None
    }

    fn in_task(&self, nth: usize, task: &Task) -> Option<Found> {
        let of = |field, fault| Some((Part::Task(nth), field, fault));
        let range = |field, range: Range, least: u64| {
            if range.to_ns > TIME_NS_MAX {
                return Some((Part::Task(nth), field, ModelFault::TooLong));
            }
            let text = super::quantity::format_range(range);
            match range.from_ns {
                from if from > range.to_ns => {
                    Some((Part::Task(nth), field, ModelFault::Range { text }))
                }
                from if from < least => Some((Part::Task(nth), field, ModelFault::Zero)),
                _ => None,
            }
        };
        let arrival = match &task.arrival {
            Arrival::Periodic {
                period_ns,
                offset,
                jitter_ns,
            } => range("arrival", Range::exactly(*period_ns), 1)
                .or_else(|| range("arrival", *offset, 0))
                .or_else(|| range("arrival", Range::exactly(*jitter_ns), 0)),
            Arrival::Sporadic { between, first } => {
                range("arrival", *between, 1).or_else(|| range("arrival", *first, 0))
            }
            Arrival::After { task, delay } => match task.0 < self.tasks.len() {
                true => range("arrival", *delay, 0),
                false => of("arrival", unknown("task", task.0)),
            },
            Arrival::OnPush { queue, delay } => match queue.0 < self.queues.len() {
                true => range("arrival", *delay, 0),
                false => of("arrival", unknown("queue", queue.0)),
            },
        };
        if arrival.is_some() {
            return arrival;
        }
        match task.deadline_ns {
            Some(0) => return of("deadline", ModelFault::Zero),
            Some(ns) if ns > TIME_NS_MAX => return of("deadline", ModelFault::TooLong),
            None if self.scheduler.policy == Policy::Edf => {
                let what = "a deadline, by which `edf` decides";
                return of("deadline", ModelFault::Missing { what });
            }
            _ => {}
        }
        if task.weight == 0 {
            return of("weight", ModelFault::None);
        }
        if task.cores.is_empty() {
            return of("cores", ModelFault::Missing { what: "a core" });
        }
        if let Some(core) = task.cores.iter().find(|core| core.0 >= self.cores.len()) {
            return of("cores", unknown("core", core.0));
        }
        if self.scheduler.scope == Scope::Partitioned && task.cores.len() != 1 {
            let found = task.cores.len();
            return of("cores", ModelFault::OneCore { found });
        }
        if let Some(mode) = task.modes.iter().find(|mode| **mode >= self.modes.len()) {
            return of("modes", unknown("mode", *mode));
        }
        self.in_steps(nth, task)
    }

    /// Locks are taken once, given back once, and none is left.
    fn in_steps(&self, nth: usize, task: &Task) -> Option<Found> {
        let mut held = Vec::new();
        let mut total = 0_u64;
        for (at, step) in task.steps.iter().enumerate() {
            let fault = match *step {
                Step::Run(range) if range.from_ns > range.to_ns => Some(ModelFault::Range {
                    text: super::quantity::format_range(range),
                }),
                Step::Run(range) => {
                    total = total.saturating_add(range.to_ns);
                    (total > TIME_NS_MAX).then_some(ModelFault::TooLong)
                }
                Step::Lock(id) | Step::Unlock(id) if id.0 >= self.resources.len() => {
                    Some(unknown("resource", id.0))
                }
                Step::Push(id) | Step::Pop(id) if id.0 >= self.queues.len() => {
                    Some(unknown("queue", id.0))
                }
                Step::Lock(id) if held.contains(&id) => Some(ModelFault::LockedTwice {
                    name: self.resources[id.0].name.clone(),
                }),
                Step::Lock(id) => {
                    held.push(id);
                    None
                }
                Step::Unlock(id) => match held.iter().position(|one| *one == id) {
                    Some(place) => {
                        held.remove(place);
                        None
                    }
                    None => Some(ModelFault::NotLocked {
                        name: self.resources[id.0].name.clone(),
                    }),
                },
                Step::Push(_) | Step::Pop(_) => None,
            };
            if let Some(fault) = fault {
                return Some((Part::Step(nth, at), "steps", fault));
            }
        }
        if let Some(id) = held.first() {
            let name = self.resources[id.0].name.clone();
            return Some((Part::Task(nth), "steps", ModelFault::StillLocked { name }));
        }
        (total == 0).then_some((
            Part::Task(nth),
            "duration",
            ModelFault::Missing {
                what: "a time above 0 that a job computes, as `duration` or as a step `run`",
            },
        ))
    }

    /// Tasks that a job of this one makes arrive.
    fn woken_by(&self, id: TaskId) -> Vec<TaskId> {
        let steps = &self.task(id).steps;
        let is_woken = |task: &Task| match task.arrival {
            Arrival::After { task, .. } => task == id,
            Arrival::OnPush { queue, .. } => steps.contains(&Step::Push(queue)),
            _ => false,
        };
        let tasks = self.tasks.iter().enumerate();
        tasks
            .filter(|(_, task)| is_woken(task))
            .map(|(nth, _)| TaskId(nth))
            .collect()
    }

    fn circle(&self) -> Option<Found> {
        // Each task in turn: the way back to it, if there is one, depth first.
        for start in (0..self.tasks.len()).map(TaskId) {
            let mut seen = vec![false; self.tasks.len()];
            let mut way = vec![(start, self.woken_by(start))];
            while let Some((_, rest)) = way.last_mut() {
                let Some(next) = rest.pop() else {
                    way.pop();
                    continue;
                };
                if next == start {
                    let names = way
                        .iter()
                        .map(|(id, _)| format!("`{}`", self.task(*id).name));
                    let path = names.collect::<Vec<_>>().join(" and ");
                    return Some((Part::Task(start.0), "arrival", ModelFault::Circle { path }));
                }
                if !std::mem::replace(&mut seen[next.0], true) {
                    way.push((next, self.woken_by(next)));
                }
            }
        }
        None
    }

    /// Largest number of jobs of each task in a mode, with those that others make arrive; numbers
    /// saturate.
    pub fn jobs_max(&self, mode: usize) -> Vec<u64> {
        let exists = |nth: usize| self.tasks[nth].is_in(mode);
        let mut jobs: Vec<u64> = (0..self.tasks.len())
            .map(|nth| match exists(nth) {
                true => self.arrivals_max(TaskId(nth)).unwrap_or(0),
                false => 0,
            })
            .collect();
        // Arrivals form no circle, so a task's number is final after as many rounds as there are
        // tasks.
        for _ in 0..self.tasks.len() {
            let before = jobs.clone();
            for (nth, task) in self.tasks.iter().enumerate() {
                match task.arrival {
                    _ if !exists(nth) => {}
                    Arrival::After { task, .. } => jobs[nth] = before[task.0],
                    Arrival::OnPush { queue, .. } => {
                        jobs[nth] = self.tasks.iter().zip(&before).fold(0, |sum, (one, count)| {
                            let is_push = |step: &&Step| **step == Step::Push(queue);
                            let pushes = one.steps.iter().filter(is_push).count() as u64;
                            u64::saturating_add(sum, count.saturating_mul(pushes))
                        });
                    }
                    _ => {}
                }
            }
            if before == jobs {
                break;
            }
        }
        jobs
    }

    /// The horizon's jobs are few enough, in each mode.
    fn jobs(&self) -> Option<Found> {
        let total = |mode| self.jobs_max(mode).into_iter().fold(0, u64::saturating_add);
        let found = (0..self.modes.len()).map(total).max()?;
        (found > JOBS_MAX).then_some((Part::Model, "horizon", ModelFault::Jobs { found }))
    }
}

fn unknown(what: &'static str, nth: usize) -> ModelFault {
    ModelFault::Unknown {
        what,
        name: format!("number {nth}"),
        near: None,
    }
}
