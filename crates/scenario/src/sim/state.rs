//! State of a simulation.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::model::{CoreId, Model, ResourceId, TaskId};
use crate::scenario::Scenario;

use super::{Event, JobId, JobRun, QueueRun, Run, TaskRun, Wait, What};

/// Place of a job between its arrival and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Behind an earlier job of its task.
    Behind,
    Ready,
    Running(CoreId),
    Waiting(Wait),
    Ended,
}

pub(super) struct Job {
    pub(super) task: TaskId,
    pub(super) number: usize,
    pub(super) status: Status,
    /// Index of the current step.
    pub(super) step: usize,
    /// Number of steps that computed so far: the place in `runs_ns`.
    pub(super) runs: usize,
    /// Rest of the current step, if it computes.
    pub(super) left_ns: u64,
    /// Absolute deadline; the maximum if it has none.
    pub(super) deadline_ns: u64,
    /// Priority or deadline with those lent to it.
    pub(super) priority: u32,
    pub(super) lent_deadline_ns: u64,
    pub(super) ready_since_ns: u64,
    /// Order in which jobs became ready.
    pub(super) sequence: u64,
    pub(super) tie: u32,
    pub(super) waits_since_ns: u64,
    pub(super) held: Vec<(ResourceId, u64)>,
}

/// State of a task.
#[derive(Default)]
pub(super) struct TaskState {
    /// The job that is not behind another.
    pub(super) active: Option<JobId>,
    pub(super) behind: VecDeque<JobId>,
    /// Jobs that arrived or are on their way.
    pub(super) announced: usize,
    /// Time since which it has work and does not run.
    pub(super) hungry_since_ns: Option<u64>,
    pub(super) last_core: Option<CoreId>,
    /// Time used, scaled by weight: the fair scheduler's measure.
    pub(super) used: u64,
}

#[derive(Default)]
pub(super) struct ResourceState {
    pub(super) owner: Option<JobId>,
    pub(super) waiting: Vec<JobId>,
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) fill: u32,
    pub(super) wait_for_room: VecDeque<JobId>,
    pub(super) wait_for_item: VecDeque<JobId>,
}

#[derive(Default)]
pub(super) struct CoreState {
    pub(super) running: Option<JobId>,
    pub(super) slice_end_ns: u64,
    /// Queue of a worker.
    pub(super) queue: VecDeque<JobId>,
}

/// An arrival on its way: time, tie, task, number of the job.
pub(super) type Coming = Reverse<(u64, u32, TaskId, usize)>;

pub(super) struct Engine<'a> {
    pub(super) model: &'a Model,
    pub(super) scenario: &'a Scenario,
    pub(super) mode: usize,
    pub(super) now_ns: u64,
    pub(super) jobs: Vec<Job>,
    pub(super) tasks: Vec<TaskState>,
    pub(super) resources: Vec<ResourceState>,
    pub(super) queues: Vec<QueueState>,
    pub(super) cores: Vec<CoreState>,
    pub(super) coming: BinaryHeap<Coming>,
    /// Jobs that run or could.
    pub(super) able: Vec<JobId>,
    pub(super) sequence: u64,
    /// Whether cores may have to change hands.
    pub(super) is_unsettled: bool,
    /// Least use among jobs that ran last; it never falls.
    pub(super) used_floor: u64,
    /// Number of busy cores from each time on.
    pub(super) load: Vec<(u64, u32)>,
    pub(super) keeps_events: bool,
    pub(super) run: Run,
}

impl<'a> Engine<'a> {
    pub(super) fn new(model: &'a Model, scenario: &'a Scenario, keeps_events: bool) -> Self {
        let many = |count: usize| 0..count;
        Engine {
            model,
            scenario,
            mode: scenario.mode_in(model).unwrap_or(0),
            now_ns: 0,
            jobs: Vec::new(),
            tasks: many(model.tasks.len())
                .map(|_| TaskState::default())
                .collect(),
            resources: many(model.resources.len())
                .map(|_| ResourceState::default())
                .collect(),
            queues: many(model.queues.len())
                .map(|_| QueueState::default())
                .collect(),
            cores: many(model.cores.len())
                .map(|_| CoreState::default())
                .collect(),
            coming: BinaryHeap::new(),
            able: Vec::new(),
            sequence: 0,
            is_unsettled: false,
            used_floor: 0,
            load: vec![(0, 0)],
            keeps_events,
            run: Run {
                end_ns: 0,
                jobs: Vec::new(),
                tasks: vec![TaskRun::default(); model.tasks.len()],
                queues: vec![QueueRun::default(); model.queues.len()],
                busy_ns: vec![0; model.cores.len()],
                peak_ns: 0,
                peak_at_ns: 0,
                deadlock: None,
                nested_waits: 0,
                waits: 0,
                is_cut: false,
                events: Vec::new(),
            },
        }
    }

    pub(super) fn job(&self, id: JobId) -> &Job {
        &self.jobs[id.0]
    }

    pub(super) fn job_mut(&mut self, id: JobId) -> &mut Job {
        &mut self.jobs[id.0]
    }

    /// Course of a job that is reported.
    pub(super) fn course(&mut self, id: JobId) -> &mut JobRun {
        &mut self.run.jobs[id.0]
    }

    pub(super) fn note(&mut self, job: JobId, what: What) {
        if self.keeps_events {
            self.run.events.push(Event {
                at_ns: self.now_ns,
                job,
                task: self.jobs[job.0].task,
                what,
            });
        }
    }

    /// Makes a job able to run. `waker` is the core whose job caused it.
    pub(super) fn ready(&mut self, id: JobId, waker: Option<CoreId>) {
        self.sequence += 1;
        let (now_ns, sequence) = (self.now_ns, self.sequence);
        let job = self.job_mut(id);
        job.status = Status::Ready;
        job.ready_since_ns = now_ns;
        job.sequence = sequence;
        self.able.push(id);
        self.is_unsettled = true;
        self.queue_at_worker(id, waker);
    }

    /// Takes a job off its core, into the given status.
    pub(super) fn leave(&mut self, id: JobId, status: Status) {
        if let Status::Running(core) = self.job(id).status {
            self.cores[core.0].running = None;
            let task = self.job(id).task;
            self.tasks[task.0].last_core = Some(core);
            let now_ns = self.now_ns;
            self.tasks[task.0].hungry_since_ns = Some(now_ns);
        }
        if status != Status::Ready {
            self.able.retain(|one| *one != id);
        }
        self.job_mut(id).status = status;
        self.is_unsettled = true;
    }

    /// Ends the time without running of a task.
    pub(super) fn fed(&mut self, task: TaskId) {
        let Some(since_ns) = self.tasks[task.0].hungry_since_ns.take() else {
            return;
        };
        let result = &mut self.run.tasks[task.0];
        let hungry_ns = self.now_ns - since_ns;
        if hungry_ns > result.starvation_ns {
            result.starvation_ns = hungry_ns;
            result.starved_until_ns = self.now_ns;
        }
    }
}
