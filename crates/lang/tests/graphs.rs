//! The communication graphs of programs, kept as text: `tests/graphs/NAME.graph` for the programs
//! there, for `tests/workloads` and for `examples`. `HEARTH_BLESS=1` keeps what is there now.

use hearth_lang::analysis::graph::{CommunicationGraph, Direction};
use hearth_lang::compile::{self, CompileOptions};
use hearth_lang::source::Sources;
use std::collections::HashSet;
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
    let checked = compile::check(&text, &CompileOptions::default());
    let graph = compile::graph(&text, "program.isf", &CompileOptions::default());
    let graph = graph.unwrap_or_else(|| panic!("{}: {:#?}", path.display(), checked.diagnostics));
    validate(&graph, path);
    shortened(&graph.text(&Sources::new("program.isf", &text)))
}

/// Nobody reads more than this.
const LINES_KEPT: usize = 300;

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

/// The page about the graph shows a program and what is found in it.
#[test]
fn the_book_shows_what_is_found() {
    let page =
        fs::read_to_string(here("../../docs/internals/graph.md")).expect("the page is there");
    let mut fences = page.split("```").skip(1).step_by(2);
    let mut fence = |kind: &str| {
        let mut found = fences.by_ref().filter_map(|fence| fence.strip_prefix(kind));
        found.next().expect("the page has it").to_owned()
    };
    let program = fence("insense\n");
    let shown = fence("text\n");
    let graph = compile::graph(&program, "program.isf", &CompileOptions::default());
    let graph = graph.expect("the program is correct");
    assert_eq!(shown, graph.text(&Sources::new("program.isf", &program)));
}

/// A program of the corpus, whatever it is, has a graph, and always the same.
#[test]
fn every_program_of_the_corpus_has_one() {
    for case in fs::read_dir(here("../../tests/insense")).expect("there is a corpus") {
        let path = case.expect("it can be read").path().join("program.isf");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for compat_original in [false, true] {
            let options = CompileOptions {
                compat_original,
                ..CompileOptions::default()
            };
            let graph = || compile::graph(&text, "program.isf", &options);
            let (Some(first), Some(second)) = (graph(), graph()) else {
                continue;
            };
            let sources = Sources::new("program.isf", &text);
            assert_eq!(first.text(&sources), second.text(&sources));
            validate(&first, &path);
        }
    }
}

/// Checks the same for every random program.
#[test]
fn random_programs_have_theirs() {
    for seed in 1..=150 {
        let case = hearth_testing::generate::case(seed);
        let graph = compile::graph(&case.text, "program.isf", &CompileOptions::default());
        let graph = graph.unwrap_or_else(|| panic!("seed {seed} is a correct program"));
        validate(&graph, Path::new(&format!("seed {seed}")));
    }
}

/// Checks the properties of every graph.
fn validate(graph: &CommunicationGraph, path: &Path) {
    let path = path.display();
    assert!(!graph.components.is_empty(), "{path}");
    let names: HashSet<&str> = graph.components.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), graph.components.len(), "{path}: names differ");
    for component in &graph.components {
        let counts = component.traffic.iter().map(|t| t.messages.value);
        let numbers = counts.chain([component.work_ns.value, component.passes_per_second]);
        for number in numbers {
            assert!(number.is_finite() && number >= 0.0, "{path}: {component:?}");
        }
    }
    for connection in &graph.connections {
        let directions = [connection.from, connection.to].map(|c| graph.channel(c).direction);
        assert_eq!(directions, [Direction::Out, Direction::In], "{path}");
        assert!(connection.bytes.value >= 0.0, "{path}: {connection:?}");
        let rate = connection.messages_per_second;
        assert!(rate.is_finite() && rate >= 0.0, "{path}: {connection:?}");
    }
    // Between components flows what flows over connections, and nobody sends more than it does.
    let mut sent = vec![0.0; graph.components.len()];
    for flow in &graph.flows {
        sent[flow.from.index()] += flow.messages_per_second;
    }
    for (component, sent) in graph.components.iter().zip(sent) {
        let sends = component
            .traffic
            .iter()
            .filter(|t| t.direction == Direction::Out);
        let messages: f64 = sends.map(|t| t.messages.value).sum();
        let most = component.passes_per_second * messages;
        assert!(
            sent <= most * 1.001 + 1e-9,
            "{path}: {sent} of {component:?}"
        );
    }
}
