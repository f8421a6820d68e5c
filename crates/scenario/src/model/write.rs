//! A model as the file form writes it.

use std::fmt::Write;

use super::quantity::format_range;
use super::{
    Arrival, FORMAT, Model, Policy, Protocol, Range, Scope, Step, Task, WhenFull, format_ns,
};

/// A text in quotes, as TOML reads it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if u32::from(letter) < 0x20 || u32::from(letter) == 0x7f => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn list(names: impl Iterator<Item = String>) -> String {
    format!("[{}]", names.collect::<Vec<_>>().join(", "))
}

impl Model {
    /// The model as a file that [`Model::from_toml`] reads as an equal one.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "format = {FORMAT}\nhorizon = \"{}\"\nwindow = \"{}\"\n",
            format_ns(self.horizon_ns),
            format_ns(self.window_ns)
        );
        let mut add = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        if self.modes.iter().any(|mode| !mode.is_empty()) {
            add(format!(
                "modes = {}",
                list(self.modes.iter().map(|mode| quoted(mode)))
            ));
        }
        add("\n[scheduler]".into());
        match self.scheduler.policy {
            Policy::FixedPriority { preemptive } => {
                add("policy = \"fixed-priority\"".into());
                add(format!("preemptive = {preemptive}"));
            }
            Policy::Edf => add("policy = \"edf\"".into()),
            Policy::Fair { slice_ns } => {
                add("policy = \"fair\"".into());
                add(format!("slice = \"{}\"", format_ns(slice_ns)));
            }
            Policy::Workers { steal } => {
                add("policy = \"workers\"".into());
                add(format!("steal = {steal}"));
            }
        }
        add(format!(
            "scope = \"{}\"",
            match self.scheduler.scope {
                Scope::Partitioned => "partitioned",
                Scope::Global => "global",
            }
        ));
        for core in &self.cores {
            add(format!("\n[[core]]\nname = {}", quoted(core)));
        }
        for resource in &self.resources {
            let protocol = match resource.protocol {
                Protocol::None => "none",
                Protocol::Inheritance => "inheritance",
                Protocol::Ceiling => "ceiling",
            };
            let name = quoted(&resource.name);
            add(format!(
                "\n[[resource]]\nname = {name}\nprotocol = \"{protocol}\""
            ));
        }
        for queue in &self.queues {
            let when_full = match queue.when_full {
                WhenFull::Lose => "lose",
                WhenFull::Wait => "wait",
            };
            let (name, capacity) = (quoted(&queue.name), queue.capacity);
            add(format!(
                "\n[[queue]]\nname = {name}\ncapacity = {capacity}\nwhen-full = \"{when_full}\""
            ));
        }
        for task in &self.tasks {
            add(self.task_lines(task));
        }
        text
    }

    fn task_lines(&self, task: &Task) -> String {
        let mut lines = vec![
            "\n[[task]]".into(),
            format!("name = {}", quoted(&task.name)),
            format!("arrival = {{ {} }}", self.arrival_fields(&task.arrival)),
        ];
        match task.steps[..] {
            [Step::Run(range)] => lines.push(format!("duration = \"{}\"", format_range(range))),
            _ => {
                lines.push("steps = [".into());
                for step in &task.steps {
                    let (word, value) = match *step {
                        Step::Run(range) => ("run", format!("\"{}\"", format_range(range))),
                        Step::Lock(id) => ("lock", quoted(&self.resources[id.0].name)),
                        Step::Unlock(id) => ("unlock", quoted(&self.resources[id.0].name)),
                        Step::Push(id) => ("push", quoted(&self.queues[id.0].name)),
                        Step::Pop(id) => ("pop", quoted(&self.queues[id.0].name)),
                    };
                    lines.push(format!("    {{ {word} = {value} }},"));
                }
                lines.push("]".into());
            }
        }
        if let Some(ns) = task.deadline_ns {
            lines.push(format!("deadline = \"{}\"", format_ns(ns)));
        }
        lines.push(format!("priority = {}", task.priority));
        lines.push(format!("weight = {}", task.weight));
        let cores = task.cores.iter().map(|core| quoted(&self.cores[core.0]));
        lines.push(format!("cores = {}", list(cores)));
        if !task.modes.is_empty() {
            let modes = task.modes.iter().map(|mode| quoted(&self.modes[*mode]));
            lines.push(format!("modes = {}", list(modes)));
        }
        lines.join("\n")
    }

    fn arrival_fields(&self, arrival: &Arrival) -> String {
        let range = |range: Range| format!("\"{}\"", format_range(range));
        match arrival {
            Arrival::Periodic {
                period_ns,
                offset,
                jitter_ns,
            } => format!(
                "period = \"{}\", offset = {}, jitter = \"{}\"",
                format_ns(*period_ns),
                range(*offset),
                format_ns(*jitter_ns)
            ),
            Arrival::Sporadic { between, first } => {
                format!("between = {}, first = {}", range(*between), range(*first))
            }
            Arrival::After { task, delay } => {
                let name = quoted(&self.task(*task).name);
                format!("after = {name}, delay = {}", range(*delay))
            }
            Arrival::OnPush { queue, delay } => {
                let name = quoted(&self.queues[queue.0].name);
                format!("push = {name}, delay = {}", range(*delay))
            }
        }
    }
}
