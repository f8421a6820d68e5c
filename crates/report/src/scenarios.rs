//! A found scenario and its run, as text, as JSON and as a picture.

use std::fmt::Write;

use hearth_draw::scale::Unit;
use hearth_draw::spans::{Kind, Mark, Span, SpanChart, SpanRow};
use hearth_draw::{Look, Picture};
use hearth_scenario::forms::spans::spans;
use hearth_scenario::model::Model;
use hearth_scenario::search::{Objective, Verdict};
use hearth_scenario::sim::{Run, Wait, What};
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;
use serde_json::{Value, json};

/// Most time that a picture shows around what it is about, in nanoseconds, as jobs of the task.
const PERIODS_SHOWN: u64 = 4;

fn time(ns: i64) -> String {
    Unit::Nanoseconds.show(ns as f64)
}

fn unsigned(ns: u64) -> String {
    Unit::Nanoseconds.show(ns as f64)
}

/// A moment with all its nanoseconds, in milliseconds: moments of a run are compared.
fn moment(ns: u64) -> String {
    let (whole, part) = (ns / 1_000_000, ns % 1_000_000);
    let part = format!("{part:06}");
    match part.trim_end_matches('0') {
        "" => format!("{whole} ms"),
        digits => format!("{whole}.{digits} ms"),
    }
}

/// The name of an objective, at the beginning of a line.
pub fn name(objective: Objective) -> &'static str {
    match objective {
        Objective::Lateness => "Lateness",
        Objective::Starvation => "Starvation",
        Objective::CpuPeak => "CPU peak",
        Objective::Overflow => "Overflow",
        Objective::Deadlock => "Deadlock",
    }
}

/// Meaning of a score, in words.
pub fn score(model: &Model, objective: Objective, score: i64) -> String {
    match objective {
        Objective::Lateness if score > 0 => format!("a job is {} late", time(score)),
        Objective::Lateness => format!(
            "every job ends {} or more before its deadline",
            time(-score)
        ),
        Objective::Starvation => format!("a task has work and does not run for {}", time(score)),
        Objective::CpuPeak => format!(
            "{} of core time within {}",
            time(score),
            unsigned(model.window_ns)
        ),
        Objective::Overflow if score >= Objective::LOST => {
            let lost = usize::try_from(score / Objective::LOST).unwrap_or(usize::MAX);
            let verb = if lost == 1 { "is" } else { "are" };
            format!("{} {verb} lost", counted(lost, "item"))
        }
        Objective::Overflow => format!(
            "no item is lost; a queue is up to {} % full",
            (score * 100 + 500).div_euclid(999)
        ),
        Objective::Deadlock if score == Objective::DEADLOCKED => "jobs wait for each other".into(),
        Objective::Deadlock => "no jobs wait for each other".into(),
    }
}

/// A verdict with what it rests on.
pub fn verdict(model: &Model, objective: Objective, found: Verdict) -> String {
    match found {
        Verdict::ProvedWorst => "proved: no scenario is worse".into(),
        Verdict::ProvedSafe { bound } => match objective {
            Objective::Overflow => "proved: no scenario loses an item".into(),
            Objective::Deadlock => "proved: no scenario has a deadlock".into(),
            _ => format!(
                "proved for every scenario: {}",
                score(model, objective, bound)
            ),
        },
        Verdict::Found if objective == Objective::Deadlock => "found: the scenario shows it".into(),
        Verdict::Found => "found: the scenario shows it, and a worse one may exist".into(),
        Verdict::OnlySearched => "only searched: nothing is proved".into(),
    }
}

fn waits_for(model: &Model, wait: Wait) -> String {
    match wait {
        Wait::Resource(id) => model.resources[id.0].name.clone(),
        Wait::Room(id) => format!("room in {}", model.queues[id.0].name),
        Wait::Item(id) => format!("an item in {}", model.queues[id.0].name),
    }
}

/// The run as a table of tasks and queues, and its deadlock.
pub fn text(model: &Model, run: &Run) -> String {
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    let head = [
        "task",
        "jobs",
        "response",
        "lateness",
        "misses",
        "starvation",
    ];
    columns.row(head.map(str::to_owned));
    for (task, result) in model.tasks.iter().zip(&run.tasks) {
        if result.jobs == 0 {
            continue;
        }
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        columns.row([
            task.name.clone(),
            result.jobs.to_string(),
            or_dash(result.response_ns_max.map(unsigned)),
            or_dash(result.lateness_ns_max.map(time)),
            result.misses.to_string(),
            unsigned(result.starvation_ns),
        ]);
    }
    let mut text = columns.lines(2);
    let _ = write!(
        text,
        "\n{} of core time within {}, from {} on.\n",
        unsigned(run.peak_ns),
        unsigned(model.window_ns),
        moment(run.peak_at_ns)
    );
    for (queue, result) in model.queues.iter().zip(&run.queues) {
        let _ = write!(
            text,
            "Queue {}: {} of {} at most, {} lost",
            queue.name, result.fill_max, queue.capacity, result.lost
        );
        match result.first_loss_ns {
            Some(ns) => {
                let _ = writeln!(text, ", the first at {}.", moment(ns));
            }
            None => text.push_str(".\n"),
        }
    }
    if let Some(deadlock) = &run.deadlock {
        let _ = writeln!(text, "Deadlock at {}:", moment(deadlock.at_ns));
        for one in &deadlock.circle {
            let holds = one.holds.iter().map(|(id, since_ns)| {
                let name = &model.resources[id.0].name;
                format!("{name} since {}", moment(*since_ns))
            });
            let holds: Vec<String> = holds.collect();
            let holds = match holds.is_empty() {
                true => String::new(),
                false => format!(", and has {}", holds.join(", ")),
            };
            let _ = writeln!(
                text,
                "  {} waits for {} since {}{holds}",
                model.task(one.task).name,
                waits_for(model, one.wait),
                moment(one.since_ns)
            );
        }
    }
    text
}

/// The run's results as parts of a document.
pub fn document(model: &Model, run: &Run) -> Value {
    let tasks: Vec<Value> = (model.tasks.iter().zip(&run.tasks))
        .map(|(task, result)| {
            json!({
                "name": task.name,
                "jobs": result.jobs,
                "stuck": result.stuck,
                "misses": result.misses,
                "response_ns": result.response_ns_max,
                "lateness_ns": result.lateness_ns_max,
                "starvation_ns": result.starvation_ns,
            })
        })
        .collect();
    let queues: Vec<Value> = (model.queues.iter().zip(&run.queues))
        .map(|(queue, result)| {
            json!({
                "name": queue.name,
                "fill": result.fill_max,
                "pushed": result.pushed,
                "lost": result.lost,
            })
        })
        .collect();
    let deadlock = run.deadlock.as_ref().map(|deadlock| {
        let circle = deadlock.circle.iter().map(|one| {
            let holds = one.holds.iter().map(|(id, since_ns)| {
                json!({ "resource": model.resources[id.0].name, "since_ns": since_ns })
            });
            json!({
                "task": model.task(one.task).name,
                "waits_for": waits_for(model, one.wait),
                "since_ns": one.since_ns,
                "holds": holds.collect::<Vec<_>>(),
            })
        });
        json!({ "at_ns": deadlock.at_ns, "circle": circle.collect::<Vec<_>>() })
    });
    json!({
        "end_ns": run.end_ns,
        "peak_ns": run.peak_ns,
        "peak_at_ns": run.peak_at_ns,
        "tasks": tasks,
        "queues": queues,
        "deadlock": deadlock,
    })
}

/// The stretch of time that a picture of the run shows: around the latest job, the deadlock or the
/// first loss.
fn window(model: &Model, run: &Run) -> (u64, u64) {
    let (at_ns, task) = match (&run.deadlock, run.lateness_ns_max()) {
        (Some(deadlock), _) => (deadlock.at_ns, deadlock.circle.first().map(|one| one.task)),
        (None, Some((_, task))) => {
            let latest = run.tasks[task.0].latest;
            (latest.map_or(0, |job| run.jobs[job.0].due_ns), Some(task))
        }
        (None, None) => (run.peak_at_ns, None),
    };
    let response_ns = task
        .and_then(|task| run.tasks[task.0].response_ns_max)
        .unwrap_or(0);
    let deadline_ns = task
        .and_then(|task| model.task(task).deadline_ns)
        .unwrap_or(0);
    let width_ns = response_ns
        .max(deadline_ns)
        .max(model.window_ns)
        .saturating_mul(PERIODS_SHOWN);
    let from_ns = at_ns.saturating_sub(width_ns / 4);
    (
        from_ns,
        (from_ns + width_ns).min(run.end_ns).max(from_ns + 1),
    )
}

/// The run with its events as a picture: a row for each task, coloured by core, with arrivals and
/// missed deadlines.
pub fn picture(model: &Model, run: &Run, title: &str) -> Picture {
    let (from_ns, to_ns) = window(model, run);
    let is_shown = |ns: u64| (from_ns..=to_ns).contains(&ns);
    let mut rows: Vec<SpanRow> = (model.tasks.iter())
        .map(|task| SpanRow {
            label: task.name.clone(),
            spans: Vec::new(),
        })
        .collect();
    for span in spans(run) {
        if span.to_ns < from_ns || span.from_ns > to_ns {
            continue;
        }
        rows[span.task.0].spans.push(Span {
            from: span.from_ns.max(from_ns) as f64,
            to: span.to_ns.min(to_ns) as f64,
            kind: span.core.0,
            tip: format!(
                "{}, job {}, on {}: {} to {}",
                model.task(span.task).name,
                run.jobs[span.job.0].number,
                model.cores[span.core.0],
                unsigned(span.from_ns),
                unsigned(span.to_ns)
            ),
        });
    }
    let mut marks = Vec::new();
    for job in &run.jobs {
        let deadline_ns = model.task(job.task).deadline_ns.map(|ns| job.due_ns + ns);
        if let Some(deadline_ns) = deadline_ns
            && job.end_ns.is_none_or(|end_ns| end_ns > deadline_ns)
            && is_shown(deadline_ns)
        {
            marks.push(Mark {
                at: deadline_ns as f64,
                row: Some(job.task.0),
                tip: format!("{} misses its deadline", model.task(job.task).name),
            });
        }
    }
    for event in &run.events {
        if event.what == What::Deadlock && is_shown(event.at_ns) {
            marks.push(Mark {
                at: event.at_ns as f64,
                row: None,
                tip: "deadlock".into(),
            });
        }
    }
    let kinds = (model.cores.iter().enumerate()).map(|(nth, core)| Kind {
        name: core.clone(),
        look: Look::series(nth),
    });
    SpanChart {
        title: title.to_owned(),
        window: (from_ns as f64, to_ns as f64),
        kinds: kinds.collect(),
        rows,
        marks,
        width: 960.0,
    }
    .draw()
}
