//! The rules of the house that no compiler knows: who may use whom, who may print, what must be
//! told.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use hearth_lang::codes;
use serde_json::Value;
use support::{files, root};

/// From the ground up. A room may use those in groups before its own.
const GROUPS: &[(&str, &[&str])] = &[
    ("contract", &["hearth-abi"]),
    ("ground", &["hearth-machine", "hearth-sys"]),
    ("measure", &["hearth-probe", "hearth-model"]),
    ("memory", &["hearth-heap"]),
    ("watch", &["hearth-watch"]),
    ("plan", &["hearth-place"]),
    ("sync", &["hearth-sync"]),
    ("run", &["hearth-runtime"]),
    ("embed", &["hearth", "hearth-malloc"]),
    ("serve", &["hearth-net"]),
    ("language", &["hearth-lang"]),
    ("show", &["hearth-draw"]),
    ("published", &["hearth-allocators"]),
    ("apps", &["cachet", "cachet-load"]),
    ("studies", &["hearth-studies"]),
    ("rim", &["hearth-cli"]),
];
/// For tests, fuzzers and benchmarks; nobody depends on them but to develop.
const FOR_TESTS: &[&str] = &["hearth-testing", "hearth-benches", "hearth-fuzz"];
/// Data in, data out: no clock, files, environment or global state.
const PURE: &[&str] = &[
    "hearth-abi",
    "hearth-machine",
    "hearth-model",
    "hearth-place",
    "hearth-lang",
    "hearth-draw",
];
/// May contain unsafe code. The allocators as published make blocks out of raw memory, and take
/// the place of `malloc` in other programs; nothing of Hearth runs on them.
const UNSAFE: &[&str] = &[
    "hearth-abi",
    "hearth-sys",
    "hearth-heap",
    "hearth-malloc",
    "hearth-sync",
    "hearth-runtime",
    "hearth-allocators",
    "cachet",
];
/// Programs of their own: they print, and end when they like.
const PROGRAMS: &[&str] = &["hearth-cli", "cachet", "cachet-load"];

/// Longer files are harder to know than two shorter ones.
const LINES_MAX: usize = 800;

struct Crate {
    name: String,
    folder: String,
    /// Those of the workspace, by name; for development only is true.
    uses: Vec<(String, bool)>,
}

fn crates() -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = text(&package["manifest_path"]);
            let folder = Path::new(&manifest)
                .parent()
                .expect("a manifest has a folder");
            let folder = folder
                .strip_prefix(root())
                .expect("a crate is in the repository");
            Crate {
                name: text(&package["name"]),
                folder: folder.display().to_string(),
                uses: list(&package["dependencies"])
                    .iter()
                    .filter(|used| !used["path"].is_null())
                    .map(|used| (text(&used["name"]), used["kind"] == "dev"))
                    .collect(),
            }
        })
        .collect()
}

fn group_of(name: &str) -> Option<usize> {
    GROUPS.iter().position(|(_, rooms)| rooms.contains(&name))
}

/// The lines `- `a` uses `b`: reason` under the heading "Exceptions" of ARCHITECTURE.md.
fn exceptions() -> BTreeSet<(String, String)> {
    let text =
        fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    let section = text.split("Exceptions").nth(1).unwrap_or_default();
    section
        .lines()
        .filter_map(|line| {
            let (user, rest) = line.strip_prefix("- `")?.split_once("` uses `")?;
            let (used, reason) = rest.split_once("`: ")?;
            assert!(reason.len() > 10, "an exception needs its reason: {line}");
            Some((user.to_owned(), used.to_owned()))
        })
        .collect()
}

#[test]
fn dependencies_point_to_the_ground() {
    let exceptions = exceptions();
    let mut used_exceptions = BTreeSet::new();
    let mut complaints = Vec::new();
    for room in crates() {
        let is_for_tests = FOR_TESTS.contains(&room.name.as_str());
        let group = group_of(&room.name);
        if group.is_none() && !is_for_tests {
            complaints.push(format!(
                "{} is in no group of this test and of ARCHITECTURE.md",
                room.name
            ));
        }
        for (used, for_development) in &room.uses {
            if is_for_tests || *for_development {
                continue;
            }
            if group_of(used) < group && group_of(used).is_some() {
                continue;
            }
            let pair = (room.name.clone(), used.clone());
            if exceptions.contains(&pair) {
                used_exceptions.insert(pair);
            } else {
                complaints.push(format!("{} may not use {used}", room.name));
            }
        }
    }
    for (user, used) in exceptions.difference(&used_exceptions) {
        complaints.push(format!(
            "ARCHITECTURE.md excuses {user} for using {used}, which it does not"
        ));
    }
    // The language and the runtime know each other by the C contract only.
    for room in crates() {
        let uses = |other: &str| room.uses.iter().any(|(used, _)| used == other);
        let is_contract = |used: &str| used == "hearth-abi";
        let uses_others = room
            .uses
            .iter()
            .any(|(used, dev)| !dev && !is_contract(used));
        if room.name == "hearth-lang" && uses_others {
            complaints.push("hearth-lang uses a crate of the house besides the contract".into());
        }
        if room.name == "hearth-runtime" && uses("hearth-lang") {
            complaints.push("hearth-runtime uses hearth-lang".into());
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    for room in crates() {
        let source = root().join(&room.folder).join("src");
        let entry = ["lib.rs", "main.rs"]
            .iter()
            .find_map(|name| fs::read_to_string(source.join(name)).ok());
        let Some(entry) = entry else { continue };
        let forbids = entry.contains("#![forbid(unsafe_code)]");
        let may = UNSAFE.contains(&room.name.as_str()) || FOR_TESTS.contains(&room.name.as_str());
        assert!(forbids || may, "{} does not forbid unsafe code", room.name);
    }
}

/// Lines of code of the shipped crates, without comments, with where they are.
fn code(of: impl Fn(&Crate) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for room in crates().iter().filter(|room| of(room)) {
        for path in files(&format!("{}/src", room.folder), &[".rs"]) {
            let name = path
                .strip_prefix(root())
                .expect("it is in the repository")
                .display()
                .to_string();
            let text = fs::read_to_string(&path).expect("a source file is text");
            for (i, line) in text.lines().enumerate() {
                if !line.trim_start().starts_with("//") {
                    found.push((format!("{name}:{}", i + 1), line.to_owned()));
                }
            }
        }
    }
    found
}

#[test]
fn pure_crates_take_data_and_give_data() {
    let impure = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "std::time",
        "std::io",
        "static mut",
        "thread_local!",
    ];
    let complaints: Vec<_> = code(|room| PURE.contains(&room.name.as_str()))
        .into_iter()
        .filter(|(_, line)| impure.iter().any(|word| line.contains(word)))
        .map(|(place, line)| format!("{place}: {}", line.trim()))
        .collect();
    assert!(
        complaints.is_empty(),
        "a pure crate reaches outside:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn only_programs_print() {
    let complaints: Vec<_> = code(|room| {
        !PROGRAMS.contains(&room.name.as_str()) && !FOR_TESTS.contains(&room.name.as_str())
    })
    .into_iter()
    .filter(|(_, line)| {
        ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!("]
            .iter()
            .any(|word| line.contains(word))
    })
    .map(|(place, line)| format!("{place}: {}", line.trim()))
    .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_code_has_its_story() {
    let mut codes_seen = BTreeSet::new();
    let mut titles: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in codes::all() {
        let code = entry.code.0;
        assert!(codes_seen.insert(code), "{code} is there twice");
        assert!(!entry.title.is_empty(), "{code} has no title");
        assert!(entry.story.trim().len() > 100, "{code} has no story");
        if let Some(other) = titles.insert(entry.title, code) {
            panic!("{code} and {other} have the same title");
        }
    }
    for story in files("crates/lang/explain", &[".md"]) {
        let code = story
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        assert!(
            codes_seen.contains(code.as_str()),
            "{code} has a story but does not exist"
        );
    }
}

/// The text files that are ours.
fn texts() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for folder in [
        "crates", "apps", "studies", "docs", "examples", "tests", "benches", "fuzz",
    ] {
        paths.extend(files(
            folder,
            &[".rs", ".md", ".h", ".c", ".toml", ".isf", ".sh"],
        ));
    }
    for name in [
        "x",
        "README.md",
        "ARCHITECTURE.md",
        "STYLE.md",
        "CHANGELOG.md",
        "Cargo.toml",
    ] {
        paths.push(root().join(name));
    }
    paths
        .into_iter()
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let name = path.strip_prefix(root()).expect("it is in the repository");
            Some((name.display().to_string(), text))
        })
        .collect()
}

#[test]
fn nothing_is_left_to_be_done_in_a_comment() {
    // Written apart, so that this file does not find itself.
    let words = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X:"].concat(),
    ];
    for (name, text) in texts() {
        for (i, line) in text.lines().enumerate() {
            for word in &words {
                assert!(!line.contains(word.as_str()), "{name}:{}: {word}", i + 1);
            }
        }
    }
}

#[test]
fn source_files_stay_readable() {
    let mut complaints = Vec::new();
    for (name, text) in texts() {
        let is_source =
            name.ends_with(".rs") && !name.contains("/tests/") && !name.ends_with("tests.rs");
        if is_source && text.lines().count() > LINES_MAX {
            complaints.push(format!(
                "{name} has {} lines; {LINES_MAX} are allowed",
                text.lines().count()
            ));
        }
        if !text.is_empty() && !text.ends_with('\n') && !name.contains("tests/insense/") {
            complaints.push(format!("{name} does not end with a line break"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = Vec::new();
    for (name, text) in texts() {
        if !name.ends_with(".md") {
            continue;
        }
        let folder = root()
            .join(&name)
            .parent()
            .expect("a file is in a folder")
            .to_owned();
        for (i, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1) {
                let target = link.split([')', ' ', '#']).next().unwrap_or_default();
                let is_local = !target.is_empty() && !target.contains("://");
                if is_local && !folder.join(target).exists() {
                    complaints.push(format!("{name}:{}: there is no {target}", i + 1));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn examples_have_the_standard_layout() {
    for path in files("examples", &[".isf"]) {
        let text = fs::read_to_string(&path).expect("an example is text");
        let formatted = hearth_lang::format::format(&text).expect("an example is a program");
        assert!(
            text == formatted,
            "{}: run `hearth fmt` on it",
            path.display()
        );
    }
}
