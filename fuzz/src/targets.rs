//! Checks of a text. Each target panics when the compiler breaks a promise.

use hearth_lang::compile::{Checked, CompileOptions, check, compile};
use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::format::format;
use hearth_lang::source::SourceId;
use hearth_lang::symbol::Interner;
use hearth_lang::syntax::{Dialect, parse};

/// A target's name and function.
pub type Target = (&'static str, fn(&str));

pub const TARGETS: [Target; 4] = [
    ("parse", parses),
    ("check", checks),
    ("format", formats),
    ("compile", compiles),
];

/// The parser reads anything, and its messages point into the text.
fn parses(text: &str) {
    let mut names = Interner::default();
    for dialect in [Dialect::Program, Dialect::Prelude] {
        let parsed = parse(text, SourceId::USER, &mut names, dialect);
        inspect(&parsed.diagnostics, text);
    }
}

/// The checker returns a program exactly if there is no error.
fn checks(text: &str) {
    let checked = check(text, &CompileOptions::default());
    inspect(&checked.diagnostics, text);
    let errors = checked.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        checked.program.is_some(),
        !errors,
        "a program beside errors"
    );
}

/// The formatter's output is stable and means the same.
fn formats(text: &str) {
    let Ok(formatted) = format(text) else {
        return;
    };
    let again = format(&formatted).expect("formatted text can be formatted");
    assert!(again == formatted, "formatting is not stable");
    let summary = |text: &str| -> Vec<String> {
        let Checked { diagnostics, .. } = check(text, &CompileOptions::default());
        // Warnings about separating line breaks may differ; errors may not.
        let errors = diagnostics.iter().filter(|d| d.is_error());
        errors
            .map(|d| format!("{} {}", d.code.0, d.title))
            .collect()
    };
    assert_eq!(
        summary(text),
        summary(&formatted),
        "formatting changes errors"
    );
    assert!(
        without_places(text) == without_places(&formatted),
        "formatting changes the program"
    );
}

/// Correct programs have C code, the same each time; others have none.
fn compiles(text: &str) {
    let compiled = compile(text, "fuzz.isf", &CompileOptions::default());
    let errors = compiled.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(compiled.c.is_some(), !errors, "C beside errors");
    if compiled.c.is_some() {
        let again = compile(text, "fuzz.isf", &CompileOptions::default());
        assert!(again.c == compiled.c, "two compilations differ");
    }
}

/// Spans lie in the text, on the borders of characters.
fn inspect(diagnostics: &[Diagnostic], text: &str) {
    for diagnostic in diagnostics {
        let labels = std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary);
        for label in labels.filter(|label| label.span.source == SourceId::USER) {
            let range = label.span.start as usize..label.span.end as usize;
            assert!(
                text.get(range.clone()).is_some(),
                "{} points at {range:?}, which is no part of the text",
                diagnostic.code.0
            );
        }
    }
}

/// The C of a program without everything that depends on the layout of its text: `#line`
/// directives, and in the sites of messages the line, the column and the quoted text.
fn without_places(text: &str) -> Option<String> {
    let c = compile(text, "fuzz.isf", &CompileOptions::default()).c?;
    let kept = c
        .lines()
        .filter(|line| !line.trim_start().starts_with("#line"));
    let mut plain = String::with_capacity(c.len());
    for line in kept {
        let mut rest = line;
        while let Some(at) = rest.find(SITE) {
            let (before, site) = rest.split_at(at + SITE.len());
            plain.push_str(before);
            rest = site.find(END_OF_SITE).map_or("", |at| &site[at..]);
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    Some(plain)
}

/// Start of a site, up to its line.
const SITE: &str = "\"fuzz.isf\",";
/// End of a site, from the end of its quoted text.
const END_OF_SITE: &str = "\" };";
