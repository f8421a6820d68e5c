//! `hearth study run monitoring`, on short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("monitoring-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn hearth(arguments: &[&str]) -> Output {
    plain_hearth()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

#[test]
fn a_small_study_leaves_tables_and_a_page() {
    let out = folder("small");
    let path = out.to_str().expect("the folder's name is text");
    let run = |more: &[&str]| {
        let begin = ["study", "run", "monitoring", "--quick", "--out", path];
        let short = ["--milliseconds", "1", "--repeats", "1"];
        let wanted = ["--experiment", "parts", "--experiment", "saturation"];
        let found = hearth(&[&begin[..], &short, &wanted, more].concat());
        (
            found.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&found.stdout).into_owned(),
            String::from_utf8_lossy(&found.stderr).into_owned(),
        )
    };
    let (code, said, complaint) = run(&[]);
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("14.5 instead of 7.3 µs"), "{said}");
    assert!(said.contains("a look, not a result"), "{said}");
    let parts = fs::read_to_string(out.join("parts.csv")).expect("a table");
    for way in ["plain", "off", "nowhere", "file"] {
        let line = format!("hearth,S1,{way},block,500000,1,mean_ns,1,");
        assert!(parts.contains(&line), "{line} in {parts}");
    }
    // Every record of every run is accounted for, by each law.
    let runs = fs::read_to_string(out.join("saturation.runs.csv")).expect("a table");
    for law in ["block", "drop-newest", "drop-oldest", "sample"] {
        let is_counted = |line: &&str| line.contains(law) && line.contains(",unaccounted,");
        let lines: Vec<&str> = runs.lines().filter(is_counted).collect();
        assert!(!lines.is_empty(), "{law} in {runs}");
        assert!(lines.iter().all(|line| line.ends_with(",0")), "{lines:?}");
    }
    let json = fs::read_to_string(out.join("results.json")).expect("results");
    assert!(!json.contains("the monitored program"), "{json}");
    let overhead = fs::read_to_string(out.join("overhead.csv")).expect("a table");
    assert!(
        overhead.contains("parts,hearth,S1,1,writing,"),
        "{overhead}"
    );
    let page = fs::read_to_string(out.join("monitoring.html")).expect("a page");
    assert!(page.contains("published"), "{page}");
    assert!(!out.join("records").exists());
    let (code, _, complaint) = run(&[]);
    assert_eq!(code, 2);
    assert!(complaint.contains("--resume"), "{complaint}");
    let (code, _, complaint) = run(&["--resume"]);
    assert_eq!(code, 0, "{complaint}");
    assert_eq!(
        fs::read_to_string(out.join("saturation.runs.csv")).expect("a table"),
        runs
    );
}

#[test]
fn the_program_says_what_it_cannot_do() {
    let tool = |arguments: &[&str]| {
        let found = hearth(&[&["study", "tool", "monitored"], arguments].concat());
        (
            found.status.code(),
            String::from_utf8_lossy(&found.stdout).into_owned(),
            String::from_utf8_lossy(&found.stderr).into_owned(),
        )
    };
    let (code, _, said) = tool(&["file", "--law", "hope"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("drop-newest"), "{said}");
    let (code, _, said) = tool(&["file", "--calls", "1", "--file", "/nowhere/at/all"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("name another file"), "{said}");
    let (code, said, complaint) = tool(&["plain", "--calls", "100"]);
    assert_eq!(code, Some(0), "{complaint}");
    assert!(said.starts_with("mean_ns "), "{said}");
}
