//! The run that follows from a model and a scenario.
//!
//! A simulation of discrete events over whole nanoseconds. Nothing in it depends on a clock, an
//! address or the order of a hash table: the same model and scenario give the same run, bit for
//! bit. What happens at one instant is ordered: steps that end, in the order of cores; arrivals,
//! in the order of ties and tasks; then each core goes to the job that the scheduler prefers, which
//! takes its steps that need no time.

mod assign;
mod engine;
mod locks;
mod peak;
mod state;

use serde::Serialize;

use crate::model::{CoreId, Model, QueueId, ResourceId, TaskId};
use crate::scenario::Scenario;

/// Number of a job in a run, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct JobId(pub usize);

/// A job's course.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct JobRun {
    /// Its task.
    pub task: TaskId,
    /// Its number among the task's jobs, from 0.
    pub number: usize,
    /// Nominal arrival in nanoseconds, from which its response and deadline count.
    pub due_ns: u64,
    /// Arrival in nanoseconds.
    pub arrival_ns: u64,
    /// First time on a core.
    pub start_ns: Option<u64>,
    /// End, unless it waits for ever.
    pub end_ns: Option<u64>,
}

/// Results of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct TaskRun {
    /// Number of its jobs that arrived.
    pub jobs: usize,
    /// Number of its jobs that never ended.
    pub stuck: usize,
    /// Longest time from a nominal arrival to the job's end; none if no job ended.
    pub response_ns_max: Option<u64>,
    /// Largest time from a deadline to the job's end, negative if all met it; a job without an end
    /// counts as if it had ended with the run. None without a deadline or jobs.
    pub lateness_ns_max: Option<i64>,
    /// The job with that lateness.
    pub latest: Option<JobId>,
    /// Number of jobs that missed their deadline.
    pub misses: usize,
    /// Longest time in which it had work and did not run.
    pub starvation_ns: u64,
    /// End of that time.
    pub starved_until_ns: u64,
}

/// Results of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct QueueRun {
    /// Most items in it.
    pub fill_max: u32,
    /// Number of items that were pushed.
    pub pushed: u64,
    /// Number of items that were lost since it was full.
    pub lost: u64,
    /// First loss, in nanoseconds.
    pub first_loss_ns: Option<u64>,
}

/// Something that a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Wait {
    /// A resource that another job has.
    Resource(ResourceId),
    /// Room in a queue.
    Room(QueueId),
    /// An item in a queue.
    Item(QueueId),
}

/// A job in a circle of jobs that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Stuck {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: TaskId,
    /// The thing that it waits for, which the next in the circle has or would give.
    pub wait: Wait,
    /// Start of its wait, in nanoseconds.
    pub since_ns: u64,
    /// Resources that it has, with the time from which it has each.
    pub holds: Vec<(ResourceId, u64)>,
}

/// Jobs of which each waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Deadlock {
    /// Time at which the circle closed.
    pub at_ns: u64,
    /// The jobs.
    pub circle: Vec<Stuck>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Event {
    /// Time in nanoseconds.
    pub at_ns: u64,
    /// Job that it happened to.
    pub job: JobId,
    /// Task of the job.
    pub task: TaskId,
    /// The thing that happened.
    pub what: What,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum What {
    /// It arrived.
    Arrive,
    /// It began to run, or to run again, on a core.
    Run(CoreId),
    /// It left a core to another job, or for another core.
    Preempt(CoreId),
    /// It left a core to wait.
    Wait(CoreId, Wait),
    /// It need not wait any more.
    Ready,
    /// It took a resource.
    Lock(ResourceId),
    /// It gave a resource back.
    Unlock(ResourceId),
    /// It put an item into a queue.
    Push(QueueId),
    /// It took an item out of a queue.
    Pop(QueueId),
    /// It put an item into a full queue, which lost it.
    Lose(QueueId),
    /// It ended.
    End(CoreId),
    /// It closed a circle of jobs that wait for each other.
    Deadlock,
}

/// A run and what is to be known of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Run {
    /// Time of the last event, or the horizon if that is later.
    pub end_ns: u64,
    /// Jobs by [`JobId`].
    pub jobs: Vec<JobRun>,
    /// Results by task.
    pub tasks: Vec<TaskRun>,
    /// Results by queue.
    pub queues: Vec<QueueRun>,
    /// Busy time of each core, in nanoseconds.
    pub busy_ns: Vec<u64>,
    /// Most core time used within a window of the model's length, in nanoseconds.
    pub peak_ns: u64,
    /// Start of that window.
    pub peak_at_ns: u64,
    /// First circle of jobs that wait for each other.
    pub deadlock: Option<Deadlock>,
    /// Number of times that a job waited for a resource while it had another.
    pub nested_waits: u64,
    /// Number of times that a job waited for a resource.
    pub waits: u64,
    /// Whether it was cut off after too many decisions of the scheduler.
    pub is_cut: bool,
    /// Everything that happened, in order; empty from [`evaluate`].
    pub events: Vec<Event>,
}

impl Run {
    /// Largest lateness of any task, with the task.
    pub fn lateness_ns_max(&self) -> Option<(i64, TaskId)> {
        let tasks = self.tasks.iter().enumerate();
        let late = tasks.filter_map(|(nth, task)| Some((task.lateness_ns_max?, nth)));
        // The first of the equal ones.
        late.max_by_key(|(late, nth)| (*late, std::cmp::Reverse(*nth)))
            .map(|(late, nth)| (late, TaskId(nth)))
    }
}

/// The run with everything that happened.
///
/// # Panics
///
/// If the scenario has fewer tasks than the model. [`Scenario::check`] says so in words.
pub fn simulate(model: &Model, scenario: &Scenario) -> Run {
    engine::run(model, scenario, true)
}

/// The run without its events, as a search needs it.
///
/// # Panics
///
/// As [`simulate`].
pub fn evaluate(model: &Model, scenario: &Scenario) -> Run {
    engine::run(model, scenario, false)
}

#[cfg(test)]
mod tests;
