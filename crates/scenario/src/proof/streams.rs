//! Arrivals of a core's tasks as an analysis sees them.

use crate::model::{Arrival, CoreId, Model, QueueId, ResourceId, Step, Task, TaskId, WhenFull};

use super::Reason;

/// Arrivals of a task: at most `ceil((w + jitter) / period)` within any `w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) period_ns: u64,
    pub(super) jitter_ns: u64,
    /// Earliest arrival behind the nominal one of what begins its chain.
    pub(super) early_ns: u64,
    /// Whether the clock or the outside makes it arrive: its jitter then delays its response.
    pub(super) is_clocked: bool,
}

/// The task that makes one arrive, with the least computing time before it does.
pub(super) fn parent(
    model: &Model,
    mode: usize,
    id: TaskId,
) -> Result<Option<(TaskId, u64)>, Reason> {
    let task = model.task(id);
    match task.arrival {
        Arrival::Periodic { .. } | Arrival::Sporadic { .. } => Ok(None),
        Arrival::After { task, .. } => Ok(Some((task, model.task(task).duration().from_ns))),
        Arrival::OnPush { queue, .. } => {
            let unknown = || Reason::Arrivals {
                task: task.name.clone(),
            };
            let is_push = |step: &Step| *step == Step::Push(queue);
            let mut givers = model
                .tasks_in(mode)
                .filter(|(_, one)| one.steps.iter().any(is_push));
            let Some((giver, rules)) = givers.next() else {
                // Nobody pushes, so it never arrives, like a task outside of the mode.
                let nobody = model.tasks.iter().position(|one| !one.is_in(mode));
                return nobody.map(|nth| Some((TaskId(nth), 0))).ok_or_else(unknown);
            };
            let pushes = rules.steps.iter().filter(|step| is_push(step)).count();
            if givers.next().is_some() || pushes != 1 {
                return Err(unknown());
            }
            let before = rules.steps.iter().take_while(|step| !is_push(step));
            let least = before.map(|step| match step {
                Step::Run(range) => range.from_ns,
                _ => 0,
            });
            Ok(Some((giver, least.sum())))
        }
    }
}

/// Whether a job of the task may wait for a queue.
pub(super) fn waits_for_queue(model: &Model, mode: usize, task: &Task) -> bool {
    // A job that arrives with each item finds one, if nobody else takes any.
    let has_own = |queue: QueueId| {
        let arrives = matches!(task.arrival, Arrival::OnPush { queue: one, .. } if one == queue);
        let all = model.tasks_in(mode).flat_map(|(_, one)| &one.steps);
        arrives && all.filter(|step| **step == Step::Pop(queue)).count() == 1
    };
    task.steps.iter().any(|step| match step {
        Step::Push(queue) => model.queues[queue.0].when_full == WhenFull::Wait,
        Step::Pop(queue) => !has_own(*queue),
        _ => false,
    })
}

/// The core of each task of the mode, or the reason why its core cannot be analysed.
pub(super) fn cores(model: &Model, mode: usize) -> Vec<Result<CoreId, Reason>> {
    let mut wrong: Vec<Option<Reason>> = vec![None; model.cores.len()];
    for (_, task) in model.tasks_in(mode) {
        let reason = match &task.cores[..] {
            [_] if waits_for_queue(model, mode, task) => Reason::Queue {
                task: task.name.clone(),
            },
            [_] => continue,
            _ => Reason::Global,
        };
        for core in &task.cores {
            wrong[core.0].get_or_insert_with(|| reason.clone());
        }
    }
    for (nth, resource) in model.resources.iter().enumerate() {
        let lock = Step::Lock(ResourceId(nth));
        let users = model
            .tasks_in(mode)
            .filter(|(_, task)| task.steps.contains(&lock));
        let mut used: Vec<CoreId> = users.map(|(_, task)| task.cores[0]).collect();
        used.sort();
        used.dedup();
        if used.len() > 1 {
            for core in used {
                wrong[core.0].get_or_insert_with(|| Reason::Remote {
                    resource: resource.name.clone(),
                });
            }
        }
    }
    let core = |task: &Task| match &wrong[task.cores[0].0] {
        None => Ok(task.cores[0]),
        Some(reason) => Err(reason.clone()),
    };
    model.tasks.iter().map(core).collect()
}

/// The stream of a task that the clock or the outside makes arrive.
pub(super) fn clocked(task: &Task) -> Option<Stream> {
    let (period_ns, jitter_ns) = match &task.arrival {
        Arrival::Periodic {
            period_ns,
            jitter_ns,
            ..
        } => (*period_ns, *jitter_ns),
        Arrival::Sporadic { between, .. } => (between.from_ns, 0),
        Arrival::After { .. } | Arrival::OnPush { .. } => return None,
    };
    Some(Stream {
        period_ns,
        jitter_ns,
        early_ns: 0,
        is_clocked: true,
    })
}

/// Sections in which a task has any resource: the resources and the longest time, for each stretch
/// from the first lock to the moment at which it has none.
pub(super) fn sections(task: &Task) -> Vec<(Vec<ResourceId>, u64)> {
    let mut sections = Vec::new();
    let mut held = 0_usize;
    let (mut taken, mut length_ns) = (Vec::new(), 0);
    for step in &task.steps {
        match step {
            Step::Lock(resource) => {
                held += 1;
                taken.push(*resource);
            }
            Step::Run(range) if held > 0 => length_ns += range.to_ns,
            Step::Unlock(_) => {
                held = held.saturating_sub(1);
                if held == 0 {
                    sections.push((std::mem::take(&mut taken), std::mem::take(&mut length_ns)));
                }
            }
            _ => {}
        }
    }
    sections
}
