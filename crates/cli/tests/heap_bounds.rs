//! The compiler's bounds against the contents of heaps: every allocation and free of the corpus,
//! the workloads, the examples and random programs, as the log has them.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_lang::analysis::heap_bound::{HeapBound, block_bytes};
use hearth_lang::compile::{CompileOptions, Prelude, heap_bounds};
use support::{empty_folder, files, hearth, outcome, root};

/// A program, and how it is run.
struct Case {
    program: PathBuf,
    folder: PathBuf,
    options: Vec<String>,
    stdin: String,
}

fn beside(program: &Path, what: &str) -> Option<String> {
    let of_folder = program
        .file_name()
        .is_some_and(|name| name == "program.isf");
    let path = if of_folder {
        program.with_file_name(what)
    } else {
        program.with_extension(what)
    };
    fs::read_to_string(path).ok()
}

fn cases() -> Vec<Case> {
    let mut programs = files("examples", &[".isf"]);
    programs.extend(files("tests/workloads", &[".isf"]));
    let folders = fs::read_dir(root().join("tests/insense")).expect("there is a corpus");
    let folders = folders.map(|folder| folder.expect("it can be read").path());
    programs.extend(folders.map(|folder| folder.join("program.isf")));
    programs.retain(|program| beside(program, "stdout").is_some());
    programs.sort();
    let cases = programs.into_iter().map(|program| Case {
        folder: program.parent().expect("a folder").to_owned(),
        options: beside(&program, "options")
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect(),
        stdin: beside(&program, "stdin").unwrap_or_default(),
        program,
    });
    cases.collect()
}

impl Case {
    fn bounds(&self) -> BTreeMap<String, HeapBound> {
        let value = |name: &str| {
            let mut options = self.options.iter();
            options.find(|option| *option == name)?;
            options.next().cloned()
        };
        let options = CompileOptions {
            prelude: value("--prelude")
                .and_then(|name| Prelude::from_name(&name))
                .unwrap_or_default(),
            hosted: false,
            futures: false,
            compat_original: value("--compat").is_some()
                || self
                    .options
                    .iter()
                    .any(|option| option == "--compat=original"),
        };
        let text = fs::read_to_string(&self.program).expect("a program can be read");
        heap_bounds(&text, "program.isf", &options)
            .into_iter()
            .collect()
    }
}

/// The value of a field of a line of the log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = line.split_once(&format!("\"{name}\":"))?;
    let end = behind.find([',', '}'])?;
    Some(behind[..end].trim_matches('"'))
}

/// The most that was alive at once in each heap, in blocks as heaps make them.
fn peaks(log: &str) -> BTreeMap<String, u64> {
    let (mut blocks, mut live) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    let mut peaks = BTreeMap::new();
    for line in log.lines() {
        let of = |name| field(line, name).unwrap_or_else(|| panic!("no {name} in {line}"));
        if of("event") == "allocate" {
            let bytes = block_bytes(of("bytes").parse().expect("a number"));
            let component = of("component").to_owned();
            let now = live.entry(component.clone()).or_default();
            *now += bytes;
            let peak: &mut u64 = peaks.entry(component.clone()).or_default();
            *peak = (*peak).max(*now);
            blocks.insert(of("block").to_owned(), (component, bytes));
        } else if let Some((maker, bytes)) = blocks.remove(of("block")) {
            // Whoever frees it: it was in the heap of the one that made it.
            *live.entry(maker).or_default() -= bytes;
        }
    }
    peaks
}

/// The heaps of which a bound above nothing is known.
fn bounded(bounds: &BTreeMap<String, HeapBound>) -> usize {
    let some = |bound: &&HeapBound| matches!(bound, HeapBound::Bounded(room) if room.bytes > 0);
    bounds.values().filter(some).count()
}

/// Heaps that allocated something and have a bound; and those that went up to it, for which a lower
/// one would not do.
#[derive(Default)]
struct Seen {
    bounded: usize,
    filled: usize,
}

/// Holds the heaps of a run to their bounds.
fn check(program: &str, bounds: &BTreeMap<String, HeapBound>, log: &str, seen: &mut Seen) {
    for (component, peak) in peaks(log) {
        let kind = match component.as_str() {
            "the main sequence" => "main",
            other => other.split('#').next().unwrap_or_default(),
        };
        let bound = bounds.get(kind);
        let bound = bound.unwrap_or_else(|| panic!("{program}: nothing is known of {component}"));
        if let HeapBound::Bounded(room) = bound {
            assert!(
                peak <= room.bytes,
                "{program}: {component} had {peak} bytes at once, and {} were told",
                room.bytes
            );
            seen.bounded += 1;
            seen.filled += usize::from(peak == room.bytes);
        }
    }
}

/// The log of a run.
fn log_of(mut command: Command, stdin: &str, log: &Path) -> String {
    command.arg("--heap-log").arg(log);
    outcome(&mut command, Some(stdin.as_bytes())).expect("it ends");
    let text = fs::read_to_string(log).unwrap_or_default();
    let _ = fs::remove_file(log);
    text
}

/// Those of the corpus whose components have heaps with a bound, and a few of the others, of which
/// there are many: they are told to have nothing. One in three, or all with `HEARTH_TEST_DEEP=1`,
/// which `./x test --deep` sets.
#[test]
fn no_heap_outgrows_its_bound() {
    let log = empty_folder("heap-bounds").join("log");
    let is_deep = std::env::var_os("HEARTH_TEST_DEEP").is_some();
    let (every, least) = if is_deep { (1, 50) } else { (3, 10) };
    let mut seen = Seen::default();
    for (number, case) in cases().into_iter().step_by(every).enumerate() {
        // Its log has seven hundred megabytes.
        if case.program.ends_with("workloads/alloc.isf") && !is_deep {
            continue;
        }
        let bounds = case.bounds();
        if bounded(&bounds) == 0 && number % 16 != 0 {
            continue;
        }
        let mut command = hearth();
        // Called as the tests of the corpus call it, so that it is built once for both.
        let name = case.program.file_name().expect("a program has a name");
        command.arg("run").arg(name).args(&case.options);
        command.current_dir(&case.folder);
        let text = log_of(command, &case.stdin, &log);
        let program = case.program.display().to_string();
        check(&program, &bounds, &text, &mut seen);
    }
    assert!(seen.bounded > least, "only {} heaps", seen.bounded);
    assert!(seen.filled > least / 5, "only {} are full", seen.filled);
}

/// `HEARTH_TEST_SEEDS=1000..1100` tries others. Many of them have boxes in boxes, and no bounds.
#[test]
fn nor_does_one_of_a_random_program() {
    let folder = empty_folder("heap-bounds-random");
    let seeds = std::env::var("HEARTH_TEST_SEEDS").unwrap_or("40..48".into());
    let (first, end) = seeds.split_once("..").expect("a range of seeds");
    let number = |text: &str| text.parse::<u64>().expect("a seed");
    let mut seen = Seen::default();
    for seed in number(first)..number(end) {
        let text = hearth_testing::generate::case(seed).text;
        let bounds = heap_bounds(&text, "random.isf", &CompileOptions::default());
        let program = folder.join("random.isf");
        fs::write(&program, &text).expect("a scratch file can be written");
        let mut command = hearth();
        command.arg("run").arg(&program);
        let log = log_of(command, "", &folder.join("log"));
        let bounds = bounds.into_iter().collect();
        check(&format!("seed {seed}"), &bounds, &log, &mut seen);
    }
    assert!(seen.bounded > 2, "only {} heaps", seen.bounded);
}

/// The compiler has its own notion of how large a block becomes.
#[test]
fn blocks_are_as_large_as_the_compiler_thinks() {
    for size in (1..5000).chain((5000..=256 << 10).step_by(997)) {
        let heap = hearth_heap::PrivateHeap::new().expect("there is memory");
        let before = heap.figures().used;
        assert!(!heap.allocate(size).is_null());
        let used = heap.figures().used - before;
        assert_eq!(block_bytes(size as u64), used as u64, "{size}");
    }
}
