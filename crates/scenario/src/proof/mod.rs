//! Bounds that hold for every scenario.
//!
//! - [`bounds`]: response times of fixed priorities, with and without preemption, and demand of
//!   earliest deadlines; on cores whose tasks stay there.
//! - [`locks_in_order`]: no two jobs can wait for each other's resources, and
//!   [`may_wait_for_queues`]: jobs may wait for queues.
//! - [`exact`]: the worst lateness of small sets, by constraints or by trying everything.
//!
//! Each of them says nothing rather than something that need not hold: [`Reason`] is why.

mod deadlocks;
mod demand;
pub mod exact;
mod response;
mod solver;
mod streams;

use serde::Serialize;
use thiserror::Error;

use crate::model::{Model, Policy, TaskId};

pub use deadlocks::locks_in_order;

/// Reason why nothing is proved of a task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The task may run on several cores.
    #[error("tasks of its core may run on several")]
    Global,
    /// No analysis of the policy is known here.
    #[error("nothing is proved of this scheduler")]
    Policy,
    /// A task of the core can wait for a queue.
    #[error("`{task}`, on its core, may wait for a queue")]
    Queue {
        /// The task that may wait.
        task: String,
    },
    /// A resource of the core is used on another, too.
    #[error("`{resource}` is used on several cores")]
    Remote {
        /// The resource.
        resource: String,
    },
    /// A resource without a protocol makes a task wait for tasks of any priority between.
    #[error("`{resource}` has no protocol against inverted priorities")]
    Inversion {
        /// The resource.
        resource: String,
    },
    /// Arrivals that are not bounded by one task's.
    #[error("the arrivals of `{task}`, on its core, have no bound that is known here")]
    Arrivals {
        /// The task.
        task: String,
    },
    /// The core's tasks want more than it has, or no bound was found within reason.
    #[error("its core is overloaded: no bound was found")]
    Overload,
    /// Locks may be waited for in a circle.
    #[error("its core's locks are not taken in one order")]
    Circle,
}

/// Bound of a task in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// No job takes longer from its nominal arrival to its end, in nanoseconds. None where only the
    /// lateness is bounded.
    pub response_ns: Option<u64>,
    /// No job is later, in nanoseconds; none without a deadline.
    pub lateness_ns: Option<i64>,
}

/// Bounds of all tasks of a mode, or the reason why there is none; none for tasks that have no jobs
/// in the mode.
pub fn bounds(model: &Model, mode: usize) -> Vec<Option<Result<Bound, Reason>>> {
    match model.scheduler.policy {
        Policy::FixedPriority { preemptive } => response::bounds(model, mode, preemptive),
        Policy::Edf => demand::bounds(model, mode),
        Policy::Fair { .. } | Policy::Workers { .. } => {
            let exists = |nth| model.task(TaskId(nth)).is_in(mode);
            let all = 0..model.tasks.len();
            all.map(|nth| exists(nth).then_some(Err(Reason::Policy)))
                .collect()
        }
    }
}

/// Whether a job of the mode may wait for room or an item in a queue.
pub fn may_wait_for_queues(model: &Model, mode: usize) -> bool {
    model
        .tasks_in(mode)
        .any(|(_, task)| streams::waits_for_queue(model, mode, task))
}

#[cfg(test)]
mod tests;
