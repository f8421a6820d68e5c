//! Patterns in plain words.

use std::fmt::Write;

use super::{Flow, Group, Part, Pattern};
use crate::graph::{ComponentId, Graph};

/// Components that a sentence names; the others are counted.
const NAMED_MAX: usize = 3;

impl Group {
    /// Describes the group in one sentence. `graph` is the one in which it was recognised.
    ///
    /// # Panics
    /// If a member is not in `graph`.
    #[must_use]
    pub fn sentence(&self, graph: &Graph) -> String {
        match self.parts.as_slice() {
            [] => {
                let verb = plural(self.members.len(), "talks", "talk");
                let who = list(graph, &self.members);
                format!("{who} {verb} to nobody: no communication.")
            }
            [part] => part.sentence(graph),
            parts => format!(
                "{} are mixed: {}.",
                list(graph, &self.members),
                join(&contents(parts))
            ),
        }
    }
}

impl Part {
    /// Describes the part in one sentence. `graph` is the one in which it was recognised.
    ///
    /// # Panics
    /// If a member is not in `graph`.
    #[must_use]
    pub fn sentence(&self, graph: &Graph) -> String {
        let senders = list(graph, &self.senders);
        let receivers = list(graph, &self.receivers);
        let count = self.senders.len();
        let mut said = match self.flow {
            _ if self.senders == self.receivers => {
                let what = match self.flow {
                    Flow::Asked => "ask one another and wait for the answers",
                    _ => "send to one another",
                };
                format!("{senders} {what}")
            }
            Flow::OneWay => format!(
                "{senders} {} to {receivers}",
                plural(count, "sends", "send")
            ),
            Flow::BothWays => {
                let verb = plural(count, "sends", "send");
                let back = plural(self.receivers.len(), "sends", "send");
                format!("{senders} {verb} to {receivers}, which {back} back")
            }
            Flow::Asked => {
                let verb = plural(count, "asks", "ask");
                let wait = plural(count, "waits", "wait");
                format!("{senders} {verb} {receivers} and {wait} for the answers")
            }
        };
        _ = write!(said, ": {}", self.pattern.name());
        if self.pattern != Pattern::SenderReceiver {
            _ = write!(said, ", {}", self.ratio());
        }
        said.push('.');
        said
    }

    fn ratio(&self) -> String {
        format!("{}:{}", self.senders.len(), self.receivers.len())
    }
}

/// Contents of a mixed group: each pattern with its number of parts.
fn contents(parts: &[Part]) -> Vec<String> {
    let patterns = [
        Pattern::SenderReceiver,
        Pattern::DispatchWorker,
        Pattern::ClientServer,
        Pattern::ManyToMany,
    ];
    let mut said = Vec::new();
    for pattern in patterns {
        let of_it: Vec<&Part> = parts.iter().filter(|p| p.pattern == pattern).collect();
        // Of equally large ones, the first.
        let largest = of_it
            .iter()
            .rev()
            .max_by_key(|part| part.senders.len() + part.receivers.len());
        let Some(largest) = largest else { continue };
        let count = of_it.len();
        said.push(match (pattern, count) {
            (Pattern::SenderReceiver, 1) => format!("1 {}", pattern.name()),
            (Pattern::SenderReceiver, _) => format!("{count} {}s", pattern.name()),
            (_, 1) => format!("1 {} ({})", pattern.name(), largest.ratio()),
            _ => format!(
                "{count} {}s (the largest {})",
                pattern.name(),
                largest.ratio()
            ),
        });
    }
    said
}

/// The first few by name.
fn list(graph: &Graph, ids: &[ComponentId]) -> String {
    // "and 1 other" is as long as the name.
    let named = match ids.len() <= NAMED_MAX + 1 {
        true => ids.len(),
        false => NAMED_MAX,
    };
    let mut names: Vec<String> = ids[..named]
        .iter()
        .map(|id| format!("`{}`", graph.component(*id).name.escape_debug()))
        .collect();
    if ids.len() > named {
        names.push(format!("{} others", ids.len() - named));
    }
    join(&names)
}

fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn plural(count: usize, one: &'static str, several: &'static str) -> &'static str {
    match count {
        1 => one,
        _ => several,
    }
}
