//! The communication graphs of programs, kept as text: `tests/graphs/NAME.graph` for the programs there,
//! for `tests/workloads` and for `examples`. `HEARTH_BLESS=1` keeps what is there now.

use hearth_lang::compile::{self, Options, Sources};
use std::fs;
use std::path::{Path, PathBuf};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(here(folder)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut programs: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "isf"))
        .collect();
    programs.sort();
    assert!(!programs.is_empty(), "{folder} has programs");
    programs
}

fn graph_text(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("it can be read");
    let checked = compile::check(&text, &Options::default());
    let graph = compile::graph(&text, "program.isf", &Options::default());
    let graph = graph.unwrap_or_else(|| panic!("{}: {:#?}", path.display(), checked.diagnostics));
    shortened(&graph.text(&Sources::new("program.isf", &text)))
}

/// Nobody reads more than this.
const LINES_KEPT: usize = 150;

fn shortened(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let rest = lines.len().saturating_sub(LINES_KEPT);
    lines.truncate(LINES_KEPT);
    let mut kept = lines.join("\n");
    kept.push('\n');
    if rest > 0 {
        kept.push_str(&format!("and {rest} lines more\n"));
    }
    kept
}

/// The programs of a folder against the graphs that are kept of them.
fn compare(folder: &str) {
    let bless = std::env::var_os("HEARTH_BLESS").is_some();
    let mut report = String::new();
    for program in programs(folder) {
        let found = graph_text(&program);
        let name = program.file_stem().expect("a name").to_string_lossy();
        let kept = here("tests/graphs").join(format!("{name}.graph"));
        if bless {
            fs::write(&kept, &found).expect("it can be written");
        }
        let expected = fs::read_to_string(&kept).unwrap_or_default();
        if found != expected {
            let path = program.display();
            report.push_str(&format!("{path}\n--- kept\n{expected}--- found\n{found}\n"));
        }
    }
    assert!(report.is_empty(), "./x bless accepts this:\n{report}");
}

#[test]
fn cases_have_their_graphs() {
    compare("tests/graphs");
}

#[test]
fn workloads_have_their_graphs() {
    compare("../../tests/workloads");
}

#[test]
fn examples_have_their_graphs() {
    compare("../../examples");
}

/// A program of the corpus, whatever it is, has a graph, and always the same.
#[test]
fn every_program_of_the_corpus_has_one() {
    for case in fs::read_dir(here("../../tests/insense")).expect("there is a corpus") {
        let path = case.expect("it can be read").path().join("program.isf");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let graph = || compile::graph(&text, "program.isf", &Options::default());
        let (Some(first), Some(second)) = (graph(), graph()) else {
            continue;
        };
        let sources = Sources::new("program.isf", &text);
        assert_eq!(first.text(&sources), second.text(&sources));
        assert!(!first.components.is_empty(), "{}", path.display());
    }
}
