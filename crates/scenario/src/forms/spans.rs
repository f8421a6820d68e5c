//! Stretches of a run.

use crate::model::{CoreId, TaskId};
use crate::sim::{JobId, Run, What};

/// A stretch in which a job runs on a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: TaskId,
    /// The core.
    pub core: CoreId,
    /// Start in nanoseconds.
    pub from_ns: u64,
    /// End in nanoseconds.
    pub to_ns: u64,
    /// Whether the job ended with it.
    pub is_last: bool,
}

/// The stretches of a run with events, by their end.
pub fn spans(run: &Run) -> Vec<Span> {
    let mut since = vec![None; run.jobs.len()];
    let mut spans = Vec::new();
    for event in &run.events {
        let (core, is_last) = match event.what {
            What::Run(_) => {
                since[event.job.0] = Some(event.at_ns);
                continue;
            }
            What::Preempt(core) | What::Wait(core, _) => (core, false),
            What::End(core) => (core, true),
            _ => continue,
        };
        if let Some(from_ns) = since[event.job.0].take() {
            spans.push(Span {
                job: event.job,
                task: event.task,
                core,
                from_ns,
                to_ns: event.at_ns,
                is_last,
            });
        }
    }
    spans
}
