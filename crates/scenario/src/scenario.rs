//! One choice of everything that a model leaves open.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Arrival, Model, Range, Step, TaskId, format_ns};

/// Version of the serialised form.
pub const FORMAT: u32 = 1;

/// Choices for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobChoices {
    /// Nominal arrival in nanoseconds; 0 for a job that another task makes arrive.
    #[serde(default)]
    pub due_ns: u64,
    /// Time from the nominal arrival, or from what makes it arrive, to the arrival.
    #[serde(default)]
    pub after_ns: u64,
    /// Times of its steps that compute, in their order, in nanoseconds.
    pub runs_ns: Vec<u64>,
    /// Rank among jobs that are equal to the scheduler: the smallest goes first.
    #[serde(default)]
    pub tie: u32,
}

/// Choices for the jobs of a task, in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskChoices {
    /// Name of the task.
    pub task: String,
    /// Its jobs. Further jobs that other tasks make arrive take the longest times.
    pub jobs: Vec<JobChoices>,
}

/// A choice of everything that a model leaves open: a value to keep, compare and replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of this form: [`FORMAT`].
    pub format: u32,
    /// [Fingerprint](Model::fingerprint) of the model, in hexadecimal.
    pub model: String,
    /// Name of the mode; empty for a model without modes.
    #[serde(default)]
    pub mode: String,
    /// Choices for each task of the model, in its order.
    pub tasks: Vec<TaskChoices>,
}

/// Reason why a scenario does not belong to a model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not a scenario.
    #[error("line {line}: {reason}: give a file that `hearth scenario --out` wrote")]
    Form {
        /// Line, from 1.
        line: usize,
        /// The parser's reason.
        reason: String,
    },
    /// A format of another version.
    #[error("field `format`: this is format {found}, and {FORMAT} is read here: search again")]
    Format {
        /// Version in the file.
        found: u32,
    },
    /// The model has changed since.
    #[error(
        "field `model`: the scenario was found for a model with the fingerprint {found}, and this one has {wanted}: search again, or take the model that it was found for"
    )]
    OtherModel {
        /// Fingerprint in the scenario.
        found: String,
        /// The model's.
        wanted: String,
    },
    /// A mode that the model lacks.
    #[error("field `mode`: the model has no mode `{mode}`: search again")]
    Mode {
        /// The name.
        mode: String,
    },
    /// The tasks differ.
    #[error("field `tasks`: they are not the model's, in its order: search again")]
    Tasks,
    /// A value that the model does not allow.
    #[error(
        "task `{task}`, job {job}, field `{field}`: {found} is not from {} to {}: write a time in that range", format_ns(range.from_ns), format_ns(range.to_ns)
    )]
    Outside {
        /// The task.
        task: String,
        /// The job, from 0.
        job: usize,
        /// The field.
        field: &'static str,
        /// The value in nanoseconds.
        found: u64,
        /// The allowed range.
        range: Range,
    },
    /// A job that must be there, or must not.
    #[error(
        "task `{task}`: {found} jobs do not fill the horizon as its arrival says: search again"
    )]
    Jobs {
        /// The task.
        task: String,
        /// Number of jobs.
        found: usize,
    },
}

/// The ranges of a task's steps that compute.
pub(crate) fn runs(model: &Model, id: TaskId) -> Vec<Range> {
    let steps = model.task(id).steps.iter();
    steps
        .filter_map(|step| match step {
            Step::Run(range) => Some(*range),
            _ => None,
        })
        .collect()
}

impl Scenario {
    /// A scenario without jobs.
    pub(crate) fn empty(model: &Model, mode: usize) -> Scenario {
        let tasks = model.tasks.iter().map(|task| TaskChoices {
            task: task.name.clone(),
            jobs: Vec::new(),
        });
        Scenario {
            format: FORMAT,
            model: format!("{:016x}", model.fingerprint()),
            mode: model.modes[mode].clone(),
            tasks: tasks.collect(),
        }
    }

    /// The scenario with every arrival of the clock and the outside as early, and every other delay
    /// and every job as long, as the model allows.
    ///
    /// # Panics
    ///
    /// If the model has no such mode.
    pub fn fullest(model: &Model, mode: usize) -> Scenario {
        let mut scenario = Scenario::empty(model, mode);
        let jobs_max = model.jobs_max(mode);
        for (id, task) in model.tasks_in(mode) {
            let runs_ns: Vec<u64> = runs(model, id).iter().map(|range| range.to_ns).collect();
            let jobs = &mut scenario.tasks[id.0].jobs;
            let (first, gap_ns) = match &task.arrival {
                Arrival::Periodic {
                    period_ns, offset, ..
                } => (offset.from_ns, *period_ns),
                Arrival::Sporadic { between, first } => (first.from_ns, between.from_ns),
                Arrival::After { delay, .. } | Arrival::OnPush { delay, .. } => {
                    let job = JobChoices {
                        after_ns: delay.to_ns,
                        runs_ns,
                        ..JobChoices::default()
                    };
                    let count = usize::try_from(jobs_max[id.0]).unwrap_or(0);
                    *jobs = vec![job; count];
                    continue;
                }
            };
            let mut due_ns = first;
            while due_ns < model.horizon_ns {
                jobs.push(JobChoices {
                    due_ns,
                    runs_ns: runs_ns.clone(),
                    ..JobChoices::default()
                });
                due_ns += gap_ns;
            }
        }
        scenario
    }

    /// Reads a scenario from JSON, and checks that it belongs to the model.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn from_json(text: &str, model: &Model) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario =
            serde_json::from_str(text).map_err(|error| ScenarioError::Form {
                line: error.line(),
                reason: error.to_string(),
            })?;
        scenario.check(model)?;
        Ok(scenario)
    }

    /// The scenario as JSON, with an end of line.
    pub fn to_json(&self) -> String {
        // Plain numbers and texts always become JSON.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Number of its mode in the model.
    pub fn mode_in(&self, model: &Model) -> Option<usize> {
        model.modes.iter().position(|mode| *mode == self.mode)
    }

    /// Checks that each choice is one that the model leaves open.
    ///
    /// # Errors
    ///
    /// The first choice that is not.
    pub fn check(&self, model: &Model) -> Result<(), ScenarioError> {
        if self.format != FORMAT {
            return Err(ScenarioError::Format { found: self.format });
        }
        let wanted = format!("{:016x}", model.fingerprint());
        if self.model != wanted {
            let found = self.model.clone();
            return Err(ScenarioError::OtherModel { found, wanted });
        }
        let Some(mode) = self.mode_in(model) else {
            let mode = self.mode.clone();
            return Err(ScenarioError::Mode { mode });
        };
        let names = self.tasks.iter().map(|one| &one.task);
        if !names.eq(model.tasks.iter().map(|one| &one.name)) {
            return Err(ScenarioError::Tasks);
        }
        for nth in 0..model.tasks.len() {
            self.check_task(model, mode, TaskId(nth))?;
        }
        Ok(())
    }

    fn check_task(&self, model: &Model, mode: usize, id: TaskId) -> Result<(), ScenarioError> {
        let task = model.task(id);
        let jobs = &self.tasks[id.0].jobs;
        let wrong = || ScenarioError::Jobs {
            task: task.name.clone(),
            found: jobs.len(),
        };
        if !task.is_in(mode) {
            return match jobs.is_empty() {
                true => Ok(()),
                false => Err(wrong()),
            };
        }
        let runs = runs(model, id);
        let within = |nth: usize, field, found: u64, range: Range| match found {
            found if (range.from_ns..=range.to_ns).contains(&found) => Ok(()),
            found => Err(ScenarioError::Outside {
                task: task.name.clone(),
                job: nth,
                field,
                found,
                range,
            }),
        };
        let mut before: Option<u64> = None;
        for (nth, job) in jobs.iter().enumerate() {
            if job.runs_ns.len() != runs.len() {
                return Err(wrong());
            }
            for (run, range) in job.runs_ns.iter().zip(&runs) {
                within(nth, "runs_ns", *run, *range)?;
            }
            let (due, after) = match &task.arrival {
                Arrival::Periodic {
                    period_ns,
                    offset,
                    jitter_ns,
                } => (
                    before.map_or(*offset, |ns| Range::exactly(ns + period_ns)),
                    Range::between(0, *jitter_ns),
                ),
                Arrival::Sporadic { between, first } => (
                    before.map_or(*first, |ns| Range {
                        from_ns: ns + between.from_ns,
                        to_ns: ns + between.to_ns,
                    }),
                    Range::default(),
                ),
                Arrival::After { delay, .. } | Arrival::OnPush { delay, .. } => {
                    (Range::default(), *delay)
                }
            };
            within(nth, "due_ns", job.due_ns, due)?;
            within(nth, "after_ns", job.after_ns, after)?;
            before = Some(job.due_ns);
        }
        // The clock and the outside go on until the horizon, and no further.
        let latest_next_ns = match &task.arrival {
            Arrival::Periodic {
                period_ns, offset, ..
            } => before.map_or(offset.to_ns, |ns| ns + period_ns),
            Arrival::Sporadic { between, first } => {
                before.map_or(first.to_ns, |ns| ns + between.to_ns)
            }
            Arrival::After { .. } | Arrival::OnPush { .. } => return Ok(()),
        };
        let is_beyond = before.is_some_and(|ns| ns >= model.horizon_ns);
        match is_beyond || latest_next_ns < model.horizon_ns {
            true => Err(wrong()),
            false => Ok(()),
        }
    }
}
