//! `hearth check`: every mistake of every file, for people or for editors.

use std::fmt::Write as _;

use hearth_driver::input::{self, Source};
use hearth_driver::program;
use hearth_lang::analysis::heap_bound::{HeapBound, Reason};
use hearth_lang::analysis::size::ComponentSize;
use hearth_lang::compile::CompileOptions;
use hearth_lang::diagnostic::{Diagnostic, Label};
use hearth_lang::layout::Part;
use hearth_lang::source::LineIndex;
use hearth_lang::source::Sources;
use hearth_terminal::{DiagnosticPrinter, Failure, output};
use serde_json::{Value, json};

use super::lines::Lines;
use crate::arguments::Check;

pub(crate) fn check(arguments: &Check) -> Result<(), Failure> {
    let options = arguments.compilation.options(None);
    let mut report = DiagnosticPrinter::for_terminal();
    let mut unreadable = None;
    for file in &arguments.files {
        // The other files are checked even if one cannot be read.
        let source = match input::read(file) {
            Ok(source) => source,
            Err(failure) => {
                if let Some(earlier) = unreadable.replace(failure) {
                    earlier.report();
                }
                continue;
            }
        };
        if arguments.json {
            let diagnostics = program::check(&source, &options);
            output::write(lines_of_json(&source, &diagnostics))?;
            report.count(&diagnostics);
        } else if arguments.sizes {
            check_and_show_sizes(&source, &options, &mut report)?;
        } else {
            let diagnostics = program::check(&source, &options);
            report.add(Sources::new(&source.name, &source.text), &diagnostics);
        }
    }
    let verdict = if arguments.json {
        report.verdict()
    } else {
        report.finish()
    };
    unreadable.map_or(verdict, Err)
}

fn check_and_show_sizes(
    source: &Source,
    options: &CompileOptions,
    report: &mut DiagnosticPrinter,
) -> Result<(), Failure> {
    let diagnostics = program::check(source, options);
    report.add(Sources::new(&source.name, &source.text), &diagnostics);
    let lines = LineIndex::new(&source.text);
    let mut text = String::new();
    for component in program::sizes(source, options) {
        let line = lines.line(component.span.start);
        let ComponentSize { name, bytes, .. } = &component;
        let _ = writeln!(text, "{}:{line}: {name}, {bytes} bytes", source.name);
        let _ = writeln!(text, "{:>8} {:>7}", "offset", "bytes");
        add_parts(&mut text, &component.parts, 0);
        let _ = writeln!(text, "    heap: {}", heap_text(source, &component.heap));
    }
    output::write(text)
}

/// The bound of a component's heap, or the reason why there is none.
fn heap_text(source: &Source, heap: &HeapBound) -> String {
    match heap {
        HeapBound::Bounded(room) if room.bytes == 0 => "nothing".to_owned(),
        HeapBound::Bounded(room) => format!("at most {} bytes", room.bytes),
        HeapBound::Unbounded(Reason { text, span }) => {
            let sources = Sources::new(&source.name, &source.text);
            let (file, _) = sources.get(span.source);
            let line = sources.lines(span.source).line(span.start);
            format!("not bounded: {text} ({file}:{line})")
        }
    }
}

/// The parts of a component, or of a frame in it.
fn add_parts(text: &mut String, parts: &[Part], depth: usize) {
    let indent = "  ".repeat(depth);
    let width = parts.iter().map(|part| part.name.chars().count()).max();
    let width = width.unwrap_or(0);
    for part in parts {
        let Part {
            name,
            what,
            offset,
            bytes,
            ..
        } = part;
        let _ = writeln!(
            text,
            "{offset:>8} {bytes:>7}  {indent}{name:<width$}  {what}"
        );
        add_parts(text, &part.parts, depth + 1);
    }
}

fn lines_of_json(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let sources = Sources::new(&source.name, &source.text);
    let mut lines = Lines::new(sources);
    diagnostics
        .iter()
        .map(|diagnostic| json_of(&source.name, diagnostic, &mut lines).to_string() + "\n")
        .collect()
}

fn json_of(file: &str, diagnostic: &Diagnostic, lines: &mut Lines<'_>) -> Value {
    let mut secondary = Vec::new();
    for Label { span, text } in &diagnostic.secondary {
        secondary.push(json!({ "label": text, "span": lines.span(*span) }));
    }
    json!({
        "file": file,
        "severity": if diagnostic.is_error() { "error" } else { "warning" },
        "code": diagnostic.code.0,
        "title": diagnostic.title,
        "label": diagnostic.primary.text,
        "span": lines.span(diagnostic.primary.span),
        "secondary": secondary,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}
