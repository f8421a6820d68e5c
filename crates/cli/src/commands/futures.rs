//! `hearth futures`: what may run beside what, for people and for editors.

mod diff;
mod sarif;

use std::path::{Component, Path, PathBuf};

use hearth_driver::input::{self, Source};
use hearth_driver::program;
use hearth_lang::analysis::futures::{Beside, Finding, Futures, Pattern, Refusal};
use hearth_lang::diagnostic::{Code, Diagnostic};
use hearth_lang::patch::{self, Patched};
use hearth_lang::source::Sources;
use hearth_terminal::render::Renderer;
use hearth_terminal::{Failure, output};
use hearth_text::counted;
use serde_json::{Value, json};

use super::lines::Lines;
use crate::arguments::futures::FuturesArguments;

pub(crate) fn futures(arguments: &FuturesArguments) -> Result<(), Failure> {
    let options = arguments.compilation.options(None);
    let source = input::read_program(&arguments.file)?;
    let Some(patched) = patch::patched(&source.text, &options) else {
        return program::show(&source, &program::check(&source, &options));
    };
    if let Some(out) = &arguments.patch {
        return write_patch(arguments, out.as_deref(), &source, &patched);
    }
    let mut futures = patched.futures;
    if arguments.found {
        futures.refused.clear();
    }
    if arguments.sarif {
        return output::write_json(&sarif::log(&source, &futures));
    }
    if arguments.json {
        return output::write_json(&document(&source, &futures));
    }
    output::write(text(&source, &futures, !arguments.found))
}

fn write_patch(
    arguments: &FuturesArguments,
    out: Option<&Path>,
    source: &Source,
    patched: &Patched,
) -> Result<(), Failure> {
    if input::is_standard_input(&arguments.file) {
        return Err(Failure::input(
            "a program from standard input has no name that a patch could be applied to",
        ));
    }
    let patch = diff::of(&name_here(&arguments.file), source, patched);
    if patch.is_empty() {
        output::tell(format_args!("note: there is no place for the word"));
    }
    match out {
        Some(out) => output::replace(out, patch.as_bytes()),
        None => output::write(patch),
    }
}

/// The name of a file as seen from the current folder, if it is inside, else as given.
fn name_here(file: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here
        .as_deref()
        .and_then(|here| file.strip_prefix(here).ok());
    let name = inside.unwrap_or(file);
    let parts = name
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let parts: PathBuf = parts.collect();
    parts.to_string_lossy().into_owned()
}

/// Everything in the order of the text, and a line that counts it.
fn text(source: &Source, futures: &Futures, with_refused: bool) -> String {
    let renderer = Renderer::for_stream(&std::io::stdout());
    let sources = Sources::new(&source.name, &source.text);
    let found = futures
        .found
        .iter()
        .map(|found| ("found", remark_of_finding(found)));
    let refused = futures
        .refused
        .iter()
        .map(|refused| ("refused", remark_of_refusal(refused)));
    let mut remarks: Vec<(&str, Diagnostic)> = found.chain(refused).collect();
    remarks.sort_by_key(|(_, remark)| remark.primary.span.start);
    let mut text = String::new();
    for (kind, remark) in remarks {
        text.push_str(&renderer.render_remarks(sources, kind, &[remark]));
    }
    let mut counts = vec![format!("{} found", counted(futures.found.len(), "place"))];
    if with_refused {
        counts.push(format!("{} refused", futures.refused.len()));
    }
    text.push_str(&counts.join(", "));
    text.push('\n');
    text
}

fn title(found: &Finding) -> String {
    match &found.callee {
        Some(_) if found.pattern == Pattern::Extracted => {
            "these statements may run beside what follows them".into()
        }
        Some(callee) => format!("`{callee}` may run beside what follows it"),
        None => "the rounds of this loop may run beside each other".into(),
    }
}

fn remark_of_finding(found: &Finding) -> Diagnostic {
    let code = Code(found.pattern.id());
    let mut remark = Diagnostic::warning(code, title(found), found.span, found.pattern.name());
    if found.callee.is_some() {
        remark = remark.with_label(found.beside, "this may run meanwhile");
    }
    remark = match found.waits {
        Beside::UntilUse(span) => remark.with_label(span, "the result is needed here"),
        Beside::Until(span) => remark.with_label(span, "this waits for the call"),
        Beside::UntilEnd if found.callee.is_some() => {
            remark.with_note("The end of the block waits for the call.")
        }
        Beside::UntilEnd => remark,
    };
    for note in &found.notes {
        remark = remark.with_note(note);
    }
    if found.is_asked {
        remark = remark.with_note("The text says so.");
    }
    remark
}

fn remark_of_refusal(refused: &Refusal) -> Diagnostic {
    let code = Code(refused.reason.id());
    let mut remark = Diagnostic::warning(code, &refused.title, refused.span, "");
    for label in &refused.labels {
        remark = remark.with_label(label.span, &label.text);
    }
    for note in &refused.notes {
        remark = remark.with_note(note);
    }
    remark
}

fn document(source: &Source, futures: &Futures) -> Value {
    let mut lines = Lines::new(Sources::new(&source.name, &source.text));
    let mut found = Vec::new();
    for finding in &futures.found {
        let (at, span) = match finding.waits {
            Beside::UntilUse(span) => ("use", Some(span)),
            Beside::Until(span) => ("conflict", Some(span)),
            Beside::UntilEnd => ("end", None),
        };
        found.push(json!({
            "pattern": finding.pattern.id(),
            "callee": finding.callee,
            "span": lines.span(finding.span),
            "beside": lines.span(finding.beside),
            "waits": { "at": at, "span": span.map(|span| lines.span(span)) },
            "notes": finding.notes,
            "marked": finding.is_asked,
        }));
    }
    let mut refused = Vec::new();
    for refusal in &futures.refused {
        let mut labels = Vec::new();
        for label in &refusal.labels {
            labels.push(json!({ "text": label.text, "span": lines.span(label.span) }));
        }
        refused.push(json!({
            "reason": refusal.reason.id(),
            "title": refusal.title,
            "span": lines.span(refusal.span),
            "labels": labels,
            "notes": refusal.notes,
        }));
    }
    json!({ "file": source.name, "found": found, "refused": refused })
}
