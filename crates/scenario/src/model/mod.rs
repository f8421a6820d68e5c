//! Tasks, cores, shared resources, queues, and the scheduler that runs them.
//!
//! A [`Model`] says what can happen; a [`Scenario`](crate::scenario::Scenario) says what does.
//! All times are nanoseconds, all numbers whole. [`Model::from_toml`] reads the documented file
//! form; [`Model::checked`] takes a model made in any other way and says what is wrong with it.

mod check;
mod file;
mod quantity;
mod raw;
mod write;

use serde::Serialize;

pub use check::{LINE_UNKNOWN, ModelError, ModelFault};
pub use quantity::{format_ns, parse_ns};

/// Version of the file form that [`Model::from_toml`] reads.
pub const FORMAT: u32 = 1;
/// Longest time anywhere in a model: an hour, so that sums of times never overflow.
pub const TIME_NS_MAX: u64 = 3_600_000_000_000;
/// Most jobs that the horizon may hold.
pub const JOBS_MAX: u64 = 200_000;

/// Index of a task in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskId(pub usize);

/// Index of a core in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CoreId(pub usize);

/// Index of a shared resource in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ResourceId(pub usize);

/// Index of a queue in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct QueueId(pub usize);

/// A closed range of times in nanoseconds; `from <= to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The shortest time, in nanoseconds.
    pub from_ns: u64,
    /// The longest time, in nanoseconds.
    pub to_ns: u64,
}

impl Range {
    /// The range of one time.
    pub fn exactly(ns: u64) -> Self {
        Range {
            from_ns: ns,
            to_ns: ns,
        }
    }

    /// The range between two times, in either order.
    pub fn between(a_ns: u64, b_ns: u64) -> Self {
        Range {
            from_ns: a_ns.min(b_ns),
            to_ns: a_ns.max(b_ns),
        }
    }

    /// Whether nothing is left open.
    pub fn is_fixed(self) -> bool {
        self.from_ns == self.to_ns
    }
}

/// The reason why a task's jobs arrive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// The clock: job k is due at `offset + k * period`, and arrives up to `jitter` later.
    Periodic {
        /// Distance between two nominal arrivals; above 0.
        period_ns: u64,
        /// Time of the first nominal arrival.
        offset: Range,
        /// Longest delay of an arrival behind its nominal time.
        jitter_ns: u64,
    },
    /// The outside: each job arrives within a range of times after the one before it.
    Sporadic {
        /// Distance between two arrivals; the shortest is above 0.
        between: Range,
        /// Time of the first arrival.
        first: Range,
    },
    /// Another task: each of its jobs that ends makes one of this task arrive.
    After {
        /// The task that is waited for.
        task: TaskId,
        /// Time from the end of that job to the arrival.
        delay: Range,
    },
    /// A queue: each item that is pushed makes a job arrive.
    OnPush {
        /// The queue.
        queue: QueueId,
        /// Time from the push to the arrival.
        delay: Range,
    },
}

/// A step of a job. Steps other than [`Step::Run`] take no time of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Computes for a time from a range.
    Run(Range),
    /// Takes a resource, and waits while another job has it.
    Lock(ResourceId),
    /// Gives a resource back.
    Unlock(ResourceId),
    /// Puts an item into a queue.
    Push(QueueId),
    /// Takes an item out of a queue, and waits while it is empty.
    Pop(QueueId),
}

/// A task: a source of jobs, one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its name, unique in the model.
    pub name: String,
    /// The reason why its jobs arrive.
    pub arrival: Arrival,
    /// The course of each job.
    pub steps: Vec<Step>,
    /// Longest allowed time from a job's nominal arrival to its end, if there is one.
    pub deadline_ns: Option<u64>,
    /// Fixed priority; a larger number goes first.
    pub priority: u32,
    /// Share of the fair scheduler, as Linux has it: 1024 is the usual one.
    pub weight: u32,
    /// Cores that it may run on, in ascending order; never empty.
    pub cores: Vec<CoreId>,
    /// Modes in which it exists; empty means all.
    pub modes: Vec<usize>,
}

impl Task {
    /// Sum of the computing times of one job.
    pub fn duration(&self) -> Range {
        let mut sum = Range::default();
        for step in &self.steps {
            if let Step::Run(range) = step {
                sum.from_ns += range.from_ns;
                sum.to_ns += range.to_ns;
            }
        }
        sum
    }

    /// Whether the clock or the outside makes its jobs arrive, and no other task.
    pub fn arrival_is_clocked(&self) -> bool {
        matches!(
            self.arrival,
            Arrival::Periodic { .. } | Arrival::Sporadic { .. }
        )
    }

    /// Whether the task exists in a mode.
    pub fn is_in(&self, mode: usize) -> bool {
        self.modes.is_empty() || self.modes.contains(&mode)
    }
}

/// Rule about the priority of jobs that hold a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// A holder keeps its own priority.
    #[default]
    None,
    /// A holder has the priority of the most urgent job that waits for it.
    Inheritance,
    /// A holder has the priority of the most urgent task that ever takes the resource, at once.
    Ceiling,
}

/// Something that one job has at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Its name, unique among resources.
    pub name: String,
    /// Rule about its holder's priority.
    pub protocol: Protocol,
}

/// Behaviour of a push into a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The item is lost, which is counted.
    #[default]
    Lose,
    /// The job waits for room.
    Wait,
}

/// A queue of items between tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Its name, unique among queues.
    pub name: String,
    /// Most items in it; above 0.
    pub capacity: u32,
    /// Behaviour of a push when it is full.
    pub when_full: WhenFull,
}

/// Rule that says which ready job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The highest priority first; among equals the one that has been ready longest.
    FixedPriority {
        /// Whether a more urgent job interrupts one that runs.
        preemptive: bool,
    },
    /// The earliest absolute deadline first, with preemption.
    Edf,
    /// The job that has had the least time for its weight, for a slice at a time.
    Fair {
        /// Time after which another job may follow, and the lead that a woken job needs.
        slice_ns: u64,
    },
    /// Hearth's workers: each core runs its own queue in order, each job until it waits or ends.
    Workers {
        /// Whether an idle worker takes the oldest job of the longest queue.
        steal: bool,
    },
}

/// Extent of a queue of ready jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Each task stays on its one core.
    #[default]
    Partitioned,
    /// Jobs go to any of their task's cores, and move when they must.
    Global,
}

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheduler {
    /// Rule that says which ready job runs.
    pub policy: Policy,
    /// Extent of its queues.
    pub scope: Scope,
}

/// A system of tasks, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// Time after which no job arrives; those that have arrived run to their end.
    pub horizon_ns: u64,
    /// Length of the sliding window of CPU peaks.
    pub window_ns: u64,
    /// The scheduler of all cores.
    pub scheduler: Scheduler,
    /// Names of modes; one without a name if the model has none.
    pub modes: Vec<String>,
    /// Names of cores.
    pub cores: Vec<String>,
    /// Shared resources.
    pub resources: Vec<Resource>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Tasks.
    pub tasks: Vec<Task>,
}

impl Model {
    /// A task by its number.
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.0]
    }

    /// Tasks of a mode, with their numbers.
    pub fn tasks_in(&self, mode: usize) -> impl Iterator<Item = (TaskId, &Task)> {
        let all = self.tasks.iter().enumerate();
        all.filter(move |(_, task)| task.is_in(mode))
            .map(|(nth, task)| (TaskId(nth), task))
    }

    /// Largest number of jobs of a task that the clock or the outside makes arrive; none for tasks
    /// that other tasks make arrive.
    pub fn arrivals_max(&self, id: TaskId) -> Option<u64> {
        let count = |first: u64, gap: u64| match self.horizon_ns > first {
            true => (self.horizon_ns - first).div_ceil(gap),
            false => 0,
        };
        match &self.task(id).arrival {
            Arrival::Periodic {
                period_ns, offset, ..
            } => Some(count(offset.from_ns, *period_ns)),
            Arrival::Sporadic { between, first } => Some(count(first.from_ns, between.from_ns)),
            Arrival::After { .. } | Arrival::OnPush { .. } => None,
        }
    }

    /// Priority that a holder of the resource has under [`Protocol::Ceiling`]: that of the most
    /// urgent task that takes it, in any mode.
    pub fn ceiling(&self, resource: ResourceId) -> u32 {
        let takes = |task: &&Task| task.steps.contains(&Step::Lock(resource));
        let users = self.tasks.iter().filter(takes);
        users.map(|task| task.priority).max().unwrap_or(0)
    }

    /// Number that tells this model from others: FNV-1a of its canonical text.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.to_toml().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    }
}

#[cfg(test)]
mod tests;
