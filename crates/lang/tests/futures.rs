//! Programs with calls and loops that may run beside others, and with ones that must not.
//!
//! In `tests/futures` a comment at the end of a line says what is found or refused in that line,
//! `// found: PATTERN` or `// refused: REASON`; several are separated by commas. No other call may
//! be found; loops without a comment are helpers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hearth_lang::compile::{self, CompileOptions};
use hearth_lang::source::LineIndex;

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/futures")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the programs are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    files
}

/// By line: what its comment says.
fn expected(text: &str) -> BTreeMap<u32, Vec<String>> {
    let mut expected = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        if let Some((_, comment)) = text.split_once("// ") {
            let mut said: Vec<String> = comment.split(", ").map(|s| s.trim().to_owned()).collect();
            said.sort();
            expected.insert(line, said);
        }
    }
    expected
}

/// The differences between the comments of a program and what is found in it.
fn differences(path: &Path) -> Vec<String> {
    let name = path
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let text = fs::read_to_string(path).expect("the program can be read");
    let options = CompileOptions::default();
    let checked = compile::check(&text, &options);
    let errors: Vec<_> = checked
        .diagnostics
        .iter()
        .filter(|d| d.is_error())
        .collect();
    if let Some(error) = errors.first() {
        let line = LineIndex::new(&text).line(error.primary.span.start);
        return vec![format!("{name}:{line}: {}", error.title)];
    }
    let futures = compile::futures(&text, &options).expect("it has no errors");
    let lines = LineIndex::new(&text);
    let mut seen: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut calls_found = Vec::new();
    for found in &futures.found {
        let line = lines.line(found.span.start);
        let entry = seen.entry(line).or_default();
        entry.push(format!("found: {}", found.pattern.id()));
        if found.callee.is_some() {
            calls_found.push(line);
        }
    }
    for refused in &futures.refused {
        let line = lines.line(refused.span.start);
        let entry = seen.entry(line).or_default();
        entry.push(format!("refused: {}", refused.reason.id()));
    }
    let expected = expected(&text);
    let mut differences = Vec::new();
    for (line, said) in &expected {
        let mut is = seen.remove(line).unwrap_or_default();
        is.sort();
        if is != *said {
            differences.push(format!("{name}:{line}: expected {said:?}, is {is:?}"));
        }
    }
    for line in calls_found {
        if !expected.contains_key(&line) {
            differences.push(format!("{name}:{line}: a call is found"));
        }
    }
    differences
}

fn check(folder: &str, least: usize) {
    let programs = programs(folder);
    assert!(programs.len() >= least, "only {} programs", programs.len());
    let differences: Vec<String> = programs.iter().flat_map(|path| differences(path)).collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

#[test]
fn unsafe_cases_are_refused_with_the_right_reason() {
    check("refused", 50);
}

#[test]
fn independent_ones_are_found() {
    check("found", 15);
}

/// Nothing in the corpus makes the analysis fail, and no deed of a component is taken for a call
/// that may run beside.
#[test]
fn every_program_of_the_corpus_can_be_looked_at() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = Vec::new();
    for folder in ["tests/insense", "tests/workloads", "examples"] {
        collect(&root.join(folder), &mut programs);
    }
    assert!(programs.len() > 100);
    for program in programs {
        let Ok(text) = fs::read_to_string(&program) else {
            continue;
        };
        compile::futures(&text, &CompileOptions::default());
    }
}

#[test]
fn random_programs_can_be_looked_at() {
    for seed in 0..12 {
        let text = hearth_testing::generate::case(seed).text;
        let futures = compile::futures(&text, &CompileOptions::default());
        assert!(futures.is_some(), "seed {seed}");
    }
}

/// The programs that are run with and without hold what is found and what is refused, of most
/// kinds.
#[test]
fn random_programs_of_calls_and_loops_have_both() {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    let mut refused: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..24 {
        let text = hearth_testing::beside::program(seed);
        let options = CompileOptions::default();
        let checked = compile::check(&text, &options).diagnostics;
        assert!(
            !checked.iter().any(|d| d.is_error()),
            "seed {seed}\n{checked:#?}\n{text}"
        );
        let futures = compile::futures(&text, &options).expect("it has no errors");
        for finding in futures.found {
            *found.entry(finding.pattern.id()).or_default() += 1;
        }
        for refusal in futures.refused {
            *refused.entry(refusal.reason.id()).or_default() += 1;
        }
    }
    assert!(
        found.len() >= 4 && found.values().sum::<u32>() > 60,
        "{found:?}"
    );
    assert!(refused.len() >= 7, "{refused:?}");
}

fn collect(folder: &Path, programs: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of programs") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, programs);
        } else if path.extension().is_some_and(|ending| ending == "isf") {
            programs.push(path);
        }
    }
}
