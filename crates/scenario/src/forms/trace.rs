//! A run for tools that show traces.

use std::fmt::Write;

use crate::model::Model;
use crate::sim::{Run, What};

use super::quoted;
use super::spans::spans;

/// A name as a cell of BTF: commas and ends of lines would begin a new one.
fn cell(name: &str) -> String {
    name.replace([',', '\n', '\r', '#'], "_")
}

/// A run with events in the Best Trace Format 2.1: who did what to whom, at which nanosecond.
pub fn btf(model: &Model, run: &Run) -> String {
    let mut text = String::from("#version 2.1.5\n#creator hearth scenario\n#timeScale ns\n");
    for event in &run.events {
        let at = event.at_ns;
        let task = cell(&model.task(event.task).name);
        let number = run.jobs[event.job.0].number;
        let core = |id: crate::model::CoreId| cell(&model.cores[id.0]);
        let resource = |id: crate::model::ResourceId| cell(&model.resources[id.0].name);
        let queue = |id: crate::model::QueueId| cell(&model.queues[id.0].name);
        // A job begins once; after that it is resumed.
        let begins = run.jobs[event.job.0].start_ns == Some(at);
        let line = match event.what {
            What::Arrive => {
                format!("{at},arrival_{task},{number},T,{task},{number},activate")
            }
            What::Run(id) => {
                let verb = if begins { "start" } else { "resume" };
                format!("{at},{},0,T,{task},{number},{verb}", core(id))
            }
            What::Preempt(id) => format!("{at},{},0,T,{task},{number},preempt", core(id)),
            What::Wait(id, _) => format!("{at},{},0,T,{task},{number},wait", core(id)),
            What::Ready => format!("{at},{task},{number},T,{task},{number},release"),
            What::End(id) => format!("{at},{},0,T,{task},{number},terminate", core(id)),
            What::Lock(id) => format!("{at},{task},{number},SEM,{},0,lock", resource(id)),
            What::Unlock(id) => format!("{at},{task},{number},SEM,{},0,unlock", resource(id)),
            What::Push(id) => format!("{at},{task},{number},SIG,{},0,write", queue(id)),
            What::Pop(id) => format!("{at},{task},{number},SIG,{},0,read", queue(id)),
            What::Lose(id) => format!("{at},{task},{number},SIG,{},0,write,lost", queue(id)),
            What::Deadlock => continue,
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A time in microseconds with all its nanoseconds.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A run with events as the JSON that `ui.perfetto.dev` and `chrome://tracing` show: a row for each
/// core, and a row for each task with its waits.
pub fn perfetto(model: &Model, run: &Run) -> String {
    let mut events = vec![
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"cores\"}}"
            .to_owned(),
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"tasks\"}}"
            .to_owned(),
    ];
    let mut name = |pid: u32, tid: usize, name: &str| {
        events.push(format!(
            "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        ));
    };
    for (nth, core) in model.cores.iter().enumerate() {
        name(1, nth, core);
    }
    for (nth, task) in model.tasks.iter().enumerate() {
        name(2, nth, &task.name);
    }
    for span in spans(run) {
        let task = &model.task(span.task).name;
        let number = run.jobs[span.job.0].number;
        let (ts, dur) = (micros(span.from_ns), micros(span.to_ns - span.from_ns));
        let core = quoted(&model.cores[span.core.0]);
        events.push(format!(
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{ts},\"dur\":{dur},\"name\":{},\"args\":{{\"job\":{number}}}}}",
            span.core.0,
            quoted(task)
        ));
        events.push(format!(
            "{{\"ph\":\"X\",\"pid\":2,\"tid\":{},\"ts\":{ts},\"dur\":{dur},\"name\":{core},\"args\":{{\"job\":{number}}}}}",
            span.task.0
        ));
    }
    let mut instant = |task: usize, at_ns: u64, name: &str| {
        events.push(format!(
            "{{\"ph\":\"i\",\"s\":\"t\",\"pid\":2,\"tid\":{task},\"ts\":{},\"name\":{}}}",
            micros(at_ns),
            quoted(name)
        ));
    };
    for job in &run.jobs {
        instant(job.task.0, job.arrival_ns, "arrives");
        let deadline_ns = model.task(job.task).deadline_ns.map(|ns| job.due_ns + ns);
        if let Some(deadline_ns) = deadline_ns
            && job.end_ns.is_none_or(|end_ns| end_ns > deadline_ns)
        {
            instant(job.task.0, deadline_ns, "deadline missed");
        }
    }
    for event in &run.events {
        let task = event.task.0;
        match event.what {
            What::Lock(id) => {
                instant(
                    task,
                    event.at_ns,
                    &format!("locks {}", model.resources[id.0].name),
                );
            }
            What::Unlock(id) => {
                instant(
                    task,
                    event.at_ns,
                    &format!("unlocks {}", model.resources[id.0].name),
                );
            }
            What::Lose(id) => {
                instant(
                    task,
                    event.at_ns,
                    &format!("lost by {}", model.queues[id.0].name),
                );
            }
            What::Deadlock => instant(task, event.at_ns, "deadlock"),
            _ => {}
        }
    }
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (nth, event) in events.iter().enumerate() {
        let comma = if nth + 1 < events.len() { "," } else { "" };
        let _ = writeln!(text, "{event}{comma}");
    }
    text.push_str("]}\n");
    text
}
