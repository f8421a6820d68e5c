//! Every program under `tests/insense` is checked: marked lines are reported, others are not.
//!
//! `//~ error word` or `//~ warning word` marks its own line, `//~@N error word` line N.

mod support;

use hearth_lang::compile::{CompileOptions, Prelude};
use hearth_lang::diagnostic::Severity;
use hearth_lang::source::SourceId;
use hearth_lang::source::Sources;
use std::path::Path;
use support::{check_with, prose};

struct Mark {
    line: u32,
    severity: Severity,
    word: String,
}

fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some((_, mark)) = line.split_once("//~") else {
            continue;
        };
        let (line, rest) = match mark.strip_prefix('@') {
            Some(numbered) => {
                let (number, rest) = numbered.split_once(' ').expect("a line number");
                (number.parse().expect("a line number"), rest)
            }
            None => (i as u32 + 1, mark),
        };
        let (severity, word) = match rest.trim().split_once(' ') {
            Some((severity, word)) => (severity, word.trim()),
            None => (rest.trim(), ""),
        };
        let severity = match severity {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            other => panic!("neither error nor warning: {other}"),
        };
        marks.push(Mark {
            line,
            severity,
            word: word.to_string(),
        });
    }
    marks
}

/// The folder's `options` for the checker; the others are for the run.
fn settings(words: &str) -> CompileOptions {
    let mut options = CompileOptions::default();
    for word in words.split_whitespace() {
        if let Some(name) = word.strip_prefix("--prelude=") {
            options.prelude = Prelude::from_name(name).expect("a prelude");
        }
        options.compat_original |= word == "--compat=original";
    }
    options
}

/// Mistakes in the reports on one program.
fn disagreements(text: &str, options: &CompileOptions) -> Vec<String> {
    let lines = Sources::new("program.isf", text).lines(SourceId::USER);
    let marks = marks(text);
    let mut met = vec![false; marks.len()];
    let mut wrong = Vec::new();
    for d in &check_with(text, options).diagnostics {
        let line = lines.line(d.primary.span.start);
        let said = prose(d);
        let mut expected = false;
        for (mark, met) in marks.iter().zip(&mut met) {
            if mark.line == line && mark.severity == d.severity {
                expected = true;
                *met |= said.to_lowercase().contains(&mark.word.to_lowercase());
            }
        }
        if !expected {
            wrong.push(format!("line {line}: unexpected: {said}"));
        }
    }
    for (mark, met) in marks.iter().zip(met) {
        if !met {
            let Mark {
                line,
                severity,
                word,
            } = mark;
            wrong.push(format!("line {line}: no {severity:?} with `{word}`"));
        }
    }
    wrong
}

#[test]
fn programs_are_judged_as_marked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/insense");
    let folder = std::env::var_os("INSENSE_TESTS").map_or(folder, Into::into);
    let Ok(cases) = std::fs::read_dir(&folder) else {
        panic!("{} cannot be read", folder.display());
    };
    let mut report = String::new();
    for case in cases {
        let path = case.expect("a folder entry").path().join("program.isf");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let options = std::fs::read_to_string(path.with_file_name("options")).unwrap_or_default();
        for wrong in disagreements(&text, &settings(&options)) {
            report.push_str(&format!("{}: {wrong}\n", path.display()));
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
