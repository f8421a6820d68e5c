//! The rules of the house that no compiler knows: which crate may use which, who may print, how
//! comments read, what must be explained.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use hearth_lang::codes;
use support::workspace::{Crate, crates};
use support::{files, root};

/// The last group of the table: for tests, fuzzers and benchmarks. Nobody depends on them but to
/// develop.
const FOR_TESTS: &str = "tests";
/// The last group but one, and the folder of its rooms: what exists only to be compared with.
const RESEARCH: &str = "research";
/// Data in, data out: no clock, files, environment or global state.
const PURE: &[&str] = &[
    "hearth-abi",
    "hearth-machine",
    "hearth-stats",
    "hearth-model",
    "hearth-place",
    "hearth-scenario",
    "hearth-lang",
    "hearth-draw",
    "hearth-published",
];
/// May contain unsafe code. The allocators as published make blocks out of raw memory, and take
/// the place of `malloc` in other programs; nothing of Hearth runs on them.
const UNSAFE: &[&str] = &[
    "hearth-abi",
    "hearth-atomics",
    "hearth-sys",
    "hearth-heap",
    "hearth-malloc",
    "hearth-monitor-c",
    "hearth-claim-c",
    "hearth-sync",
    "hearth-stm",
    "hearth-runtime",
    "hearth-allocators",
    "cachet",
];
/// Programs of their own, and what prints for them and for build scripts: they print, and end when
/// they like.
const PROGRAMS: &[&str] = &[
    "hearth-terminal",
    "hearth-cli",
    "hearth-build",
    "cachet",
    "cachet-load",
    "hearth-study",
    "hearth-benches",
];

/// Longer files are harder to know than two shorter ones.
const LINES_MAX: usize = 800;

/// Longer comments are not read in a review of two columns.
const COMMENT_COLUMNS_MAX: usize = 100;
/// Folders whose comments have been read through so far: all that have sources or scripts.
const COMMENTS_READ: &[&str] = &["apps", "crates", "fuzz", "research", "tests"];
/// Scripts outside of those folders.
const SCRIPTS: &[&str] = &["x", ".ci/run"];
/// Crates that a compiled program's runtime may be built from, beside those of the workspace:
/// system calls, errors, the profile as JSON, the optimiser's random numbers, and a monitor's
/// checksums, patterns and messages, which the linker leaves out of programs without probes.
const RUNTIME_MAY_CARRY: &[&str] = &[
    "bitflags",
    "cfg-if",
    "crc32fast",
    "fastrand",
    "io-uring",
    "itoa",
    "libc",
    "linux-raw-sys",
    "memchr",
    "rustix",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "strsim",
    "thiserror",
    "thiserror-impl",
    "wildmatch",
    "zmij",
];

/// A row of the table "Who may use whom" in ARCHITECTURE.md.
struct Group {
    name: String,
    rooms: Vec<String>,
    /// Uses among the group's own rooms, `(user, used)`.
    inside: Vec<(String, String)>,
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there")
}

/// The groups from the ground up.
fn groups() -> Vec<Group> {
    let text = architecture();
    let section = text.split("## Who may use whom").nth(1).unwrap_or_default();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    rows.skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, rooms, inside] = cells[..] else {
                panic!("a row of the table has three cells: {line}");
            };
            let names: Vec<String> = quoted(inside);
            Group {
                name: name.to_owned(),
                rooms: quoted(rooms),
                inside: names
                    .chunks(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone()))
                    .collect(),
            }
        })
        .collect()
}

/// Words in backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn rooms_of(group: &str) -> Vec<String> {
    let found = groups().into_iter().find(|one| one.name == group);
    found
        .unwrap_or_else(|| panic!("ARCHITECTURE.md has no group {group}"))
        .rooms
}

fn is_for_tests(name: &str) -> bool {
    rooms_of(FOR_TESTS).iter().any(|room| room == name)
}

/// The lines `- `a` uses `b`: reason` under the heading "Exceptions" of ARCHITECTURE.md.
fn exceptions() -> BTreeSet<(String, String)> {
    let text = architecture();
    let section = text.split("### Exceptions").nth(1).unwrap_or_default();
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
    let groups = groups();
    let group_of = |name: &str| {
        groups
            .iter()
            .position(|g| g.rooms.iter().any(|r| r == name))
    };
    let exceptions = exceptions();
    let mut used_inside = BTreeSet::new();
    let mut used_exceptions = BTreeSet::new();
    let mut complaints = Vec::new();
    for room in crates() {
        let Some(group) = group_of(&room.name) else {
            complaints.push(format!("{} is in no group of ARCHITECTURE.md", room.name));
            continue;
        };
        if groups[group].name == FOR_TESTS {
            continue;
        }
        for used in room.uses.iter().filter(|used| !used.only_for_development) {
            let pair = (room.name.clone(), used.name.clone());
            if group_of(&used.name).is_some_and(|other| other < group) {
                continue;
            }
            if groups[group].name == RESEARCH && is_for_tests(&used.name) {
                continue;
            }
            if groups[group].inside.contains(&pair) {
                used_inside.insert(pair);
            } else if exceptions.contains(&pair) {
                used_exceptions.insert(pair);
            } else {
                complaints.push(format!("{} may not use {}", pair.0, pair.1));
            }
        }
    }
    let unused = exceptions.difference(&used_exceptions);
    let inside: BTreeSet<_> = groups
        .iter()
        .flat_map(|group| group.inside.clone())
        .collect();
    for (user, used) in unused.chain(inside.difference(&used_inside)) {
        complaints.push(format!(
            "ARCHITECTURE.md allows {user} to use {used}, which it does not"
        ));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The compiler and the runtime know each other by the C contract only.
#[test]
fn language_and_runtime_meet_in_the_contract() {
    let groups = groups();
    let contract = &groups[0];
    assert!(
        contract.name == "contract",
        "the first group is the contract"
    );
    for room in crates() {
        let shipped = room.uses.iter().filter(|used| !used.only_for_development);
        let mut used = shipped.map(|used| used.name.as_str());
        match room.name.as_str() {
            "hearth-lang" => {
                let may = |name: &str| {
                    name == "hearth-text" || contract.rooms.iter().any(|room| room == name)
                };
                let other = used.find(|name| !may(name));
                assert!(
                    other.is_none(),
                    "hearth-lang uses {}",
                    other.unwrap_or_default()
                );
            }
            "hearth-runtime" => assert!(
                room.uses.iter().all(|used| used.name != "hearth-lang"),
                "hearth-runtime uses hearth-lang"
            ),
            _ => {}
        }
    }
}

/// A compiled program links the runtime: no parser of XML, no command line, no pictures.
#[test]
fn compiled_programs_carry_no_tools() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "hearth-runtime", "--edges", "normal"])
        .args(["--prefix", "none", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8_lossy(&output.stdout);
    let ours: BTreeSet<String> = crates().into_iter().map(|room| room.name).collect();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let tools: BTreeSet<&str> = names
        .filter(|name| !name.is_empty() && !ours.contains(*name))
        .filter(|name| !RUNTIME_MAY_CARRY.contains(name))
        // Build scripts and macros of derives are gone when the program is linked.
        .filter(|name| !["proc-macro2", "quote", "syn", "unicode-ident"].contains(name))
        .collect();
    assert!(tools.is_empty(), "hearth-runtime carries {tools:?}");
}

#[test]
fn the_picture_shows_every_room() {
    let text = architecture();
    let picture = text.split("```mermaid").nth(1).unwrap_or_default();
    let picture = picture.split("```").next().unwrap_or_default();
    let mut shown = BTreeSet::new();
    for part in picture.split("    subgraph ").skip(1) {
        let (group, rooms) = part.split_once('\n').unwrap_or_default();
        let rooms = rooms.split("    end").next().unwrap_or_default();
        let rooms = rooms.lines().map(str::trim);
        let rooms = rooms.filter(|room| !room.is_empty() && !room.contains('"'));
        shown.extend(rooms.map(|room| (group.to_owned(), room.to_owned())));
    }
    let groups = groups();
    let there: BTreeSet<_> = groups
        .iter()
        .flat_map(|group| {
            group
                .rooms
                .iter()
                .map(|room| (group.name.clone(), room.clone()))
        })
        .collect();
    assert_eq!(shown, there, "ARCHITECTURE.md's picture, and its table");
    for room in crates() {
        let row = format!("\n| `{}` | `{}` |", room.name, room.folder.display());
        assert!(text.contains(&row), "ARCHITECTURE.md lacks a row like{row}");
    }
}

#[test]
fn the_product_needs_no_research() {
    let research = rooms_of(RESEARCH);
    let mut complaints = Vec::new();
    for room in crates() {
        let is_there = room.folder.starts_with(RESEARCH);
        if is_there != research.contains(&room.name) {
            let folder = room.folder.display();
            complaints.push(format!(
                "ARCHITECTURE.md has {} elsewhere than {folder}",
                room.name
            ));
        }
        if is_there {
            continue;
        }
        for used in room
            .uses
            .iter()
            .filter(|used| research.contains(&used.name))
        {
            complaints.push(format!("{} uses {}", room.name, used.name));
        }
        // A source file that includes or opens something there, without a dependency that says so.
        for path in files(&room.folder.display().to_string(), &[".rs"]) {
            let text = fs::read_to_string(&path).expect("a source file is text");
            let there = format!("{RESEARCH}/");
            let reaches =
                |line: &&str| line.contains(&there) && !line.trim_start().starts_with("//");
            for line in text.lines().filter(reaches) {
                complaints.push(format!("{}: {}", path.display(), line.trim()));
            }
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
        let may = UNSAFE.contains(&room.name.as_str()) || is_for_tests(&room.name);
        assert!(forbids || may, "{} does not forbid unsafe code", room.name);
    }
}

/// Lines of code of the shipped crates, without comments, with where they are.
fn code(of: impl Fn(&Crate) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for room in crates().iter().filter(|room| of(room)) {
        for path in files(&format!("{}/src", room.folder.display()), &[".rs"]) {
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
    let complaints: Vec<_> =
        code(|room| !PROGRAMS.contains(&room.name.as_str()) && !is_for_tests(&room.name))
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
        "crates", "apps", "docs", "examples", "tests", "fuzz", RESEARCH,
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
    read_all(paths.into_iter())
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

/// Sources in the folders whose comments have been read.
fn sources_read() -> Vec<(String, String)> {
    let folders = COMMENTS_READ.iter();
    read_all(folders.flat_map(|folder| files(folder, &[".rs", ".c", ".cc", ".h", ".go"])))
}

/// Scripts, with comments that begin with `#`.
fn scripts() -> Vec<(String, String)> {
    let folders = COMMENTS_READ.iter();
    let inside = folders.flat_map(|folder| files(folder, &[""]));
    let all = inside.chain(SCRIPTS.iter().map(|name| root().join(name)));
    let mut found = read_all(all.filter(|path| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        matches!(kind, None | Some("sh" | "py"))
    }));
    found.retain(|(name, text)| {
        text.starts_with("#!") || name.ends_with(".sh") || name.ends_with(".py")
    });
    found
}

/// The texts among these files, by their names in the repository.
fn read_all(paths: impl Iterator<Item = PathBuf>) -> Vec<(String, String)> {
    paths
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let name = path.strip_prefix(root()).expect("it is in the repository");
            Some((name.display().to_string(), text))
        })
        .collect()
}

#[test]
fn comments_wrap() {
    let mut complaints = Vec::new();
    for (name, text) in sources_read() {
        let mut in_block = false;
        let mut in_fence = false;
        for (i, line) in text.lines().enumerate() {
            let start = line.trim_start();
            let opens = start.starts_with("/*");
            let is_comment = start.starts_with("//") || opens || in_block;
            in_block = (in_block || opens) && !line.contains("*/");
            let words = start.trim_start_matches(['/', '!', '*']).trim_start();
            if is_comment && words.starts_with("```") {
                in_fence = !in_fence;
            }
            in_fence &= is_comment;
            let may_be_long = in_fence || words.starts_with('|') || words.contains("://");
            if is_comment && !may_be_long && line.chars().count() > COMMENT_COLUMNS_MAX {
                complaints.push(format!("{name}:{}: {start}", i + 1));
            }
        }
    }
    for (name, text) in scripts() {
        for (i, line) in text.lines().enumerate() {
            let start = line.trim_start();
            let is_wide = line.chars().count() > COMMENT_COLUMNS_MAX && !start.contains("://");
            if start.starts_with("# ") && is_wide {
                complaints.push(format!("{name}:{}: {start}", i + 1));
            }
        }
    }
    assert!(
        complaints.is_empty(),
        "comments wider than {COMMENT_COLUMNS_MAX} columns:\n{}",
        complaints.join("\n")
    );
}

/// A reader wants to know first what a thing is or does.
#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let relative = [
        "what", "who", "whom", "whose", "where", "of", "whoever", "whatever",
    ];
    // Options of commands may ask so in their help; a module says what it has.
    let asks = ["how", "which", "why", "when", "whether", "as", "that", "so"];
    let mut complaints = Vec::new();
    for (name, text) in sources_read() {
        let mut before = "";
        for (i, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let sign = ["///", "//!"]
                .into_iter()
                .find(|sign| line.starts_with(sign));
            let begins = sign.is_some() && sign != Some(before);
            before = sign.unwrap_or_default();
            let sentence = line.get(3..).filter(|_| begins).unwrap_or_default().trim();
            let mut words = sentence.split([' ', ',']).map(str::to_lowercase);
            let first = words.next().unwrap_or_default();
            let is_quantity = first == "so" && words.next().is_some_and(|word| word == "many");
            let is_module = sign == Some("//!") && asks.contains(&first.as_str());
            if relative.contains(&first.as_str()) || is_quantity || is_module {
                complaints.push(format!("{name}:{}: {sentence}", i + 1));
            }
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
