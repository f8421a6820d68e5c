//! Findings as a SARIF log, version 2.1.0: the form that editors and code hosts read.

use std::fmt::Write as _;

use hearth_driver::input::Source;
use hearth_lang::analysis::futures::{Beside, Futures};
use hearth_lang::source::{Sources, Span};
use hearth_text::prose::capitalised;
use serde_json::{Value, json};

use super::super::lines::Lines;

pub(super) fn log(source: &Source, futures: &Futures) -> Value {
    let mut lines = Lines::new(Sources::new(&source.name, &source.text));
    let mut rules: Vec<(String, String)> = Vec::new();
    let mut results = Vec::new();
    for found in &futures.found {
        let rule = rule_of(
            &mut rules,
            format!("futures/found/{}", found.pattern.id()),
            format!("Found: {}", found.pattern.name()),
        );
        let mut related = Vec::new();
        if found.callee.is_some() {
            related.push(("This may run meanwhile.".to_owned(), found.beside));
        }
        match found.waits {
            Beside::UntilUse(span) => related.push(("The result is needed here.".into(), span)),
            Beside::Until(span) => related.push(("This waits for the call.".into(), span)),
            Beside::UntilEnd => {}
        }
        let title = super::title(found);
        results.push(result(
            &mut lines,
            rule,
            &title,
            &found.notes,
            found.span,
            &related,
        ));
    }
    for refused in &futures.refused {
        let id = refused.reason.id();
        let rule = rule_of(
            &mut rules,
            format!("futures/refused/{id}"),
            format!("Refused: {}", id.replace('-', " ")),
        );
        let related: Vec<(String, Span)> = refused
            .labels
            .iter()
            .map(|label| (format!("{}.", capitalised(&label.text)), label.span))
            .collect();
        let title = &refused.title;
        results.push(result(
            &mut lines,
            rule,
            title,
            &refused.notes,
            refused.span,
            &related,
        ));
    }
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "hearth",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The number of a rule and its id; a new rule joins the others.
fn rule_of(rules: &mut Vec<(String, String)>, id: String, text: String) -> (usize, String) {
    let known = rules.iter().position(|(known, _)| *known == id);
    let number = known.unwrap_or_else(|| {
        rules.push((id.clone(), text));
        rules.len() - 1
    });
    (number, id)
}

fn result(
    lines: &mut Lines<'_>,
    (number, rule): (usize, String),
    title: &str,
    notes: &[String],
    span: Span,
    related: &[(String, Span)],
) -> Value {
    let mut text = format!("{}.", capitalised(title));
    for note in notes {
        let _ = write!(text, " {note}");
    }
    let related: Vec<Value> = (1..)
        .zip(related)
        .map(|(id, (text, span))| {
            json!({
                "id": id,
                "message": { "text": text },
                "physicalLocation": location(lines, *span),
            })
        })
        .collect();
    json!({
        "ruleId": rule,
        "ruleIndex": number,
        "level": "note",
        "message": { "text": text },
        "locations": [{ "physicalLocation": location(lines, span) }],
        "relatedLocations": related,
    })
}

fn location(lines: &mut Lines<'_>, span: Span) -> Value {
    let (file, (start_line, start_column), (end_line, end_column)) = lines.ends(span);
    json!({
        "artifactLocation": { "uri": uri(file) },
        "region": {
            "startLine": start_line,
            "startColumn": start_column,
            "endLine": end_line,
            "endColumn": end_column,
        },
    })
}

/// A path as a reference that URIs allow.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}
