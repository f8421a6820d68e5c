//! Random models and scenarios, for tests.

use crate::genes::Layout;
use crate::model::{
    Arrival, CoreId, Model, Policy, Protocol, Queue, QueueId, Range, Resource, ResourceId,
    Scheduler, Scope, Step, Task, TaskId, WhenFull,
};
use crate::scenario::Scenario;

/// A range of short times.
fn range(random: &mut fastrand::Rng, from: u64, to: u64, width: u64) -> Range {
    let from_ns = random.u64(from..=to);
    Range {
        from_ns,
        to_ns: from_ns + random.u64(0..=width),
    }
}

/// Tasks of the clock and the outside that stay on a core, wait for nothing, and have priorities of
/// their own; times are a few nanoseconds.
pub(crate) fn plain(random: &mut fastrand::Rng, tasks: usize, horizon_ns: u64) -> Model {
    let cores = random.usize(1..=2);
    let mut priorities: Vec<u32> = (1..).take(tasks).collect();
    random.shuffle(&mut priorities);
    let tasks = (0..tasks).map(|nth| Task {
        name: format!("t{nth}"),
        arrival: match random.bool() {
            true => Arrival::Periodic {
                period_ns: random.u64(6..24),
                offset: range(random, 0, 4, 3),
                jitter_ns: random.u64(0..3),
            },
            false => Arrival::Sporadic {
                between: range(random, 8, 24, 4),
                first: range(random, 0, 4, 5),
            },
        },
        steps: vec![Step::Run(range(random, 1, 4, 2))],
        deadline_ns: Some(random.u64(4..24)),
        priority: priorities[nth],
        weight: 1024,
        cores: vec![CoreId(random.usize(0..cores))],
        modes: Vec::new(),
    });
    Model {
        horizon_ns,
        window_ns: 10,
        tasks: tasks.collect(),
        scheduler: Scheduler {
            policy: Policy::FixedPriority { preemptive: true },
            scope: Scope::Partitioned,
        },
        modes: vec![String::new()],
        cores: (0..cores).map(|nth| format!("core{nth}")).collect(),
        resources: Vec::new(),
        queues: Vec::new(),
    }
}

/// Tasks of all kinds, under any scheduler.
pub(crate) fn rich(random: &mut fastrand::Rng) -> Model {
    let count = random.usize(2..=6);
    let mut model = plain(random, count, 150);
    let policies = [
        Policy::FixedPriority { preemptive: true },
        Policy::FixedPriority { preemptive: false },
        Policy::Edf,
        Policy::Fair { slice_ns: 3 },
        Policy::Workers { steal: true },
    ];
    // Half of them under fixed priorities, of which the most is known.
    model.scheduler.policy = policies[random.usize(0..8).min(9) % 5];
    if random.u8(0..4) == 0 {
        model.scheduler.scope = Scope::Global;
        for task in &mut model.tasks {
            task.cores = (0..model.cores.len()).map(CoreId).collect();
        }
    }
    for nth in 0..random.usize(0..3) {
        let protocol = match model.scheduler.policy {
            Policy::FixedPriority { .. } => {
                [Protocol::None, Protocol::Inheritance, Protocol::Ceiling][random.usize(0..3)]
            }
            Policy::Edf => [Protocol::None, Protocol::Inheritance][random.usize(0..2)],
            _ => Protocol::None,
        };
        let name = format!("r{nth}");
        model.resources.push(Resource { name, protocol });
    }
    if random.bool() {
        model.queues.push(Queue {
            name: "q".into(),
            capacity: random.u32(1..3),
            when_full: [WhenFull::Lose, WhenFull::Wait][random.usize(0..2)],
        });
    }
    if random.bool() {
        model.modes = vec!["day".into(), "night".into()];
    }
    for nth in 0..count {
        if random.u8(0..3) == 0 {
            model.tasks[nth].priority = random.u32(0..4);
        }
        if model.modes.len() == 2 && random.u8(0..3) == 0 {
            model.tasks[nth].modes = vec![random.usize(0..2)];
        }
        if nth > 0 && random.u8(0..4) == 0 {
            let delay = range(random, 0, 2, 2);
            model.tasks[nth].arrival = match model.queues.is_empty() || random.bool() {
                true => Arrival::After {
                    task: TaskId(random.usize(0..nth)),
                    delay,
                },
                false => Arrival::OnPush {
                    queue: QueueId(0),
                    delay,
                },
            };
        }
        let steps = steps(random, &model, nth);
        model.tasks[nth].steps = steps;
    }
    model
}

fn steps(random: &mut fastrand::Rng, model: &Model, nth: usize) -> Vec<Step> {
    let mut steps = vec![Step::Run(range(random, 1, 2, 1))];
    let run = |random: &mut fastrand::Rng| Step::Run(range(random, 0, 2, 1));
    let mut order: Vec<usize> = (0..model.resources.len()).collect();
    if random.u8(0..4) == 0 {
        random.shuffle(&mut order);
    }
    let mut held = Vec::new();
    for id in order {
        if random.bool() {
            steps.push(Step::Lock(ResourceId(id)));
            steps.push(run(random));
            held.push(id);
        }
    }
    for id in held {
        steps.push(Step::Unlock(ResourceId(id)));
        steps.push(run(random));
    }
    if !model.queues.is_empty() {
        let is_woken = matches!(model.tasks[nth].arrival, Arrival::OnPush { .. });
        // Those that are woken by pushes push nothing, so there is no circle.
        match (is_woken, random.u8(0..3)) {
            (true, 0 | 1) | (false, 0) => steps.push(Step::Pop(QueueId(0))),
            (false, 1) if nth == 0 => steps.push(Step::Push(QueueId(0))),
            _ => {}
        }
        steps.push(run(random));
    }
    steps
}

/// A scenario of the mode: each choice anywhere in its range, and often at an end of it.
pub(crate) fn scenario(random: &mut fastrand::Rng, model: &Model, mode: usize) -> Scenario {
    let layout = Layout::new(model, mode, false);
    let extreme = random.u8(0..4);
    let genes: Vec<u64> = (layout.ranges.iter())
        .map(|range| match random.u8(0..4) {
            part if part < extreme => [range.from_ns, range.to_ns][random.usize(0..2)],
            _ => random.u64(range.from_ns..=range.to_ns),
        })
        .collect();
    layout.scenario(model, &Scenario::empty(model, mode), &genes)
}
