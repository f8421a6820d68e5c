//! Shared parts of the checker's tests.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod tree;

use hearth_lang::compile::{self, Checked, CompileOptions};
use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::source::SourceId;
use hearth_lang::source::Sources;

pub(crate) fn check(text: &str) -> Checked {
    check_with(text, &CompileOptions::default())
}

/// Also checks that the typed tree keeps its promises.
pub(crate) fn check_with(text: &str, options: &CompileOptions) -> Checked {
    let checked = compile::check(text, options);
    if let Some(program) = &checked.program {
        tree::validate(program);
    }
    checked
}

/// `line code` of each diagnostic, in order.
pub(crate) fn found(text: &str) -> Vec<String> {
    let lines = Sources::new("test", text).lines(SourceId::USER);
    let checked = check(text);
    checked
        .diagnostics
        .iter()
        .map(|d| {
            assert_eq!(d.primary.span.source, SourceId::USER, "{d:#?}");
            format!("{} {}", lines.line(d.primary.span.start), d.code.0)
        })
        .collect()
}

/// Everything a diagnostic says, as one text.
pub(crate) fn prose(d: &Diagnostic) -> String {
    let mut text = format!("{} {} {}", d.code.0, d.title, d.primary.text);
    for label in &d.secondary {
        text.push_str(&format!("\n  {}", label.text));
    }
    for note in d.notes.iter().chain(&d.help) {
        text.push_str(&format!("\n  {note}"));
    }
    text
}

/// The fenced blocks of a Markdown text: info string and content.
pub(crate) fn fences(markdown: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in markdown.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.to_string(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, content)), None) => {
                content.push_str(line);
                content.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}
