//! The graph as text, a line a thing: for people, and for tests that keep it.

use super::{Amount, ChannelId, CommunicationGraph, Component, Direction, Kind, UnknownKind};
use crate::source::{LineIndex, SourceId, Sources, Span};
use std::fmt::Write;

impl CommunicationGraph {
    /// All of it. Estimates begin with `~`.
    pub fn text(&self, sources: &Sources<'_>) -> String {
        let mut out = String::new();
        let lines = Lines::new(sources);
        for component in &self.components {
            self.component_text(component, &lines, &mut out);
        }
        for connection in &self.connections {
            let kind = match connection.is_temporary {
                true => "temporary",
                false => "connection",
            };
            let _ = write!(
                out,
                "{kind} {} -> {}, {} bytes, {} a second, {}",
                self.channel_name(connection.from),
                self.channel_name(connection.to),
                connection.bytes,
                Rate(connection.messages_per_second),
                lines.at(connection.span),
            );
            if connection.is_moved {
                out.push_str(", moved");
            }
            if let Some(turn) = connection.alternates {
                let answer = self.channel_name(self.connections[turn.answer].from);
                let _ = write!(
                    out,
                    ", waits for {answer}: {:.1} ns of work there, {:.1} ns meanwhile",
                    turn.serving_ns, turn.meanwhile_ns
                );
            }
            out.push('\n');
        }
        for (index, channel) in self.channels.iter().enumerate() {
            if let Some(seconds) = channel.timer_seconds {
                let name = self.channel_name(ChannelId(index as u32));
                let _ = writeln!(out, "timer {name}, each {seconds} s");
            }
        }
        for channel in &self.unbalanced {
            let name = self.channel_name(*channel);
            let _ = writeln!(
                out,
                "unbalanced {name}: not all that is sent here is received"
            );
        }
        for unknown in &self.unknowns {
            let _ = write!(
                out,
                "unknown {}, {}: {}",
                lines.at(unknown.span),
                unknown.kind.words(),
                unknown.reason
            );
            match &unknown.components[..] {
                [one] => {
                    let _ = writeln!(out, " ({})", self.component(*one).name);
                }
                several => {
                    let first = &self.component(several[0]).name;
                    let _ = writeln!(out, " ({first} and {} more)", several.len() - 1);
                }
            }
        }
        out
    }

    fn component_text(&self, component: &Component, lines: &Lines, out: &mut String) {
        let kind = match component.kind {
            Kind::Main => "main".to_owned(),
            Kind::User => format!("component {}: {}", component.name, component.type_name),
            Kind::Service => format!("service {}: {}", component.name, component.type_name),
        };
        let _ = write!(out, "{kind}, {}", lines.at(component.span));
        if let Some(core) = component.core {
            let _ = write!(out, ", on core {core}");
        }
        let _ = write!(out, "\n    work {} ns", component.work_ns);
        if component.outside_ns > 0.0 {
            out.push_str(", waits outside");
        }
        if component.passes_per_second > 0.0 {
            let _ = write!(
                out,
                ", {} passes a second",
                Rate(component.passes_per_second)
            );
        }
        if let Some(passes) = component.stops_after {
            let _ = write!(out, ", stops after {passes}");
        }
        if component.working_set_bytes > 0 {
            let _ = write!(out, ", touches {} bytes", component.working_set_bytes);
        }
        let _ = match component.heap_bytes {
            Some(bytes) => writeln!(out, ", heap at most {bytes} bytes"),
            None => writeln!(out, ", heap without bound"),
        };
        for (traffic, once) in [(&component.traffic, ""), (&component.start, "once ")] {
            for used in traffic {
                let name = self.channel_name(used.channel);
                let _ = match used.direction {
                    Direction::Out => writeln!(
                        out,
                        "    {once}sends {} on {name}, {} bytes",
                        used.messages, used.bytes
                    ),
                    Direction::In => {
                        writeln!(out, "    {once}receives {} from {name}", used.messages)
                    }
                };
            }
        }
    }

    /// `owner.port`, or the variable alone if the main sequence made it.
    pub fn channel_name(&self, id: ChannelId) -> String {
        let channel = self.channel(id);
        let owner = self.component(channel.owner);
        let name = match channel.name.as_str() {
            name if name.is_empty() || name.starts_with('#') => format!("channel{name}"),
            name => name.to_owned(),
        };
        match owner.kind {
            Kind::Main => name,
            _ => format!("{}.{name}", owner.name),
        }
    }
}

impl std::fmt::Display for Amount {
    /// `~` before estimates, and no more digits than such numbers deserve.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.is_exact {
            f.write_str("~")?;
        }
        let text = match self.value {
            value if value.abs() >= 100.0 || value == value.trunc() => format!("{value:.0}"),
            value if value.abs() >= 1.0 => format!("{value:.1}"),
            value => format!("{value:.3}"),
        };
        f.write_str(&text)
    }
}

/// A rate, to three digits.
struct Rate(f64);

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (value, unit) = match self.0 {
            x if x >= 999.5e6 => (x / 1e9, "G"),
            x if x >= 999.5e3 => (x / 1e6, "M"),
            x if x >= 999.5 => (x / 1e3, "k"),
            x => (x, ""),
        };
        match value {
            x if x >= 99.95 || x == 0.0 => write!(f, "{x:.0}{unit}"),
            x if x >= 9.995 => write!(f, "{x:.1}{unit}"),
            x => write!(f, "{x:.2}{unit}"),
        }
    }
}

impl UnknownKind {
    /// The kind of an unknown in words.
    pub fn words(self) -> &'static str {
        match self {
            UnknownKind::Creation => "makes a component",
            UnknownKind::Connection => "connects",
            UnknownKind::Disconnection => "disconnects",
            UnknownKind::Send => "sends",
            UnknownKind::Receive => "receives",
            UnknownKind::Core => "sets a core",
            UnknownKind::Work => "computes",
        }
    }
}

/// The lines of the user's text and of the preludes, by source.
struct Lines(Vec<LineIndex>);

impl Lines {
    fn new(sources: &Sources<'_>) -> Lines {
        Lines(
            (0..5)
                .map(|source| sources.lines(SourceId(source)))
                .collect(),
        )
    }

    fn at(&self, span: Span) -> String {
        let source = usize::from(span.source.0);
        let line = self.0.get(source).map_or(0, |lines| lines.line(span.start));
        match source {
            0 => format!("line {line}"),
            _ => format!("prelude line {line}"),
        }
    }
}
