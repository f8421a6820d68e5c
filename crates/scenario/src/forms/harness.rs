//! A scenario as a Rust program.

use std::fmt::Write;

use crate::model::{Arrival, Model, Policy, Step, WhenFull};
use crate::scenario::Scenario;

use super::{Written, quoted};

/// The part of the program that is the same for all scenarios.
const FRAME: &str = include_str!("../../templates/harness.rs");

/// A program of one file, with the standard library only, that runs threads with the arrivals and
/// times of a scenario, and prints each job's response. The scenario must be one of the model's.
pub fn harness(model: &Model, scenario: &Scenario) -> Written {
    let mut left_out = Vec::new();
    match model.scheduler.policy {
        Policy::FixedPriority { preemptive: true } => {}
        _ => left_out.push(
            "The threads run under Linux's SCHED_FIFO by the tasks' priorities: no other policy."
                .to_owned(),
        ),
    }
    if model
        .resources
        .iter()
        .any(|one| one.protocol != crate::model::Protocol::None)
    {
        left_out.push("Locks lend no priorities.".to_owned());
    }
    let mut priorities: Vec<u32> = model.tasks.iter().map(|task| task.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let mut text = String::from(
        "//! Written by `hearth scenario`: threads with the arrivals and times of a found scenario.\n//! Build it with `rustc -O`, and run it as root, so that it gets its priorities.\n",
    );
    text.push('\n');
    text.push_str(FRAME);
    let _ = writeln!(text, "\nconst HORIZON: u64 = {};", model.horizon_ns);
    let _ = writeln!(text, "const GATES: usize = {};", model.resources.len());
    let queues = model.queues.iter().map(|queue| {
        let waits = queue.when_full == WhenFull::Wait;
        format!("({}, {waits})", queue.capacity)
    });
    let queues: Vec<String> = queues.collect();
    let _ = writeln!(
        text,
        "/// Capacity, and whether a push waits when it is full.\nstatic QUEUES: &[(usize, bool)] = &[{}];\n",
        queues.join(", ")
    );
    text.push_str("static TASKS: &[Task] = &[\n");
    for (nth, task) in model.tasks.iter().enumerate() {
        let (after, on_push) = match task.arrival {
            Arrival::After { task, .. } => (Some(task.0), None),
            Arrival::OnPush { queue, .. } => (None, Some(queue.0)),
            _ => (None, None),
        };
        let place = priorities
            .iter()
            .position(|one| *one == task.priority)
            .unwrap_or(0);
        let steps: Vec<String> = task
            .steps
            .iter()
            .map(|step| match step {
                Step::Run(_) => "Step::Run".to_owned(),
                Step::Lock(id) => format!("Step::Lock({})", id.0),
                Step::Unlock(id) => format!("Step::Unlock({})", id.0),
                Step::Push(id) => format!("Step::Push({})", id.0),
                Step::Pop(id) => format!("Step::Pop({})", id.0),
            })
            .collect();
        let cores: Vec<String> = task.cores.iter().map(|core| core.0.to_string()).collect();
        let _ = write!(
            text,
            "    Task {{\n        name: {},\n        after: {after:?},\n        on_push: {on_push:?},\n        deadline: {:?},\n        priority: {},\n        cores: &[{}],\n        steps: &[{}],\n        jobs: &[\n",
            rust_text(&task.name),
            task.deadline_ns,
            1 + place.min(97),
            cores.join(", "),
            steps.join(", ")
        );
        for job in &scenario.tasks[nth].jobs {
            let runs: Vec<String> = job.runs_ns.iter().map(u64::to_string).collect();
            let at_ns = job.due_ns + job.after_ns;
            let _ = writeln!(
                text,
                "            Job({}, {at_ns}, &[{}]),",
                job.due_ns,
                runs.join(", ")
            );
        }
        text.push_str("        ],\n    },\n");
    }
    text.push_str("];\n");
    Written { text, left_out }
}

/// A text in quotes, as Rust has it: JSON's, but for the escapes of other letters.
fn rust_text(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    quoted(&plain)
}
