//! `hearth study …` from the command on: `hearth` hands over, and `hearth-study` answers.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Outcome, empty_folder, golden, outcome, plain_hearth, root};

/// A short description of a machine with every feature.
const MACHINE: &str = "2 packages, 2 cores, 2 threads, memory 4G, l1d 32K per core, l2 1M per core, \
                       l3 16M per package, distances 10 21/21 10";

struct StudyFolder(PathBuf);

impl StudyFolder {
    /// The command in this folder, where no profile is kept.
    fn call(&self, words: &[&str]) -> Outcome {
        let mut command = plain_hearth();
        command
            .args(words)
            .current_dir(&self.0)
            .env("XDG_CONFIG_HOME", self.0.join("kept"))
            .env("HOME", &self.0);
        outcome(&mut command, None).unwrap()
    }

    /// Standard output, if all is well.
    #[track_caller]
    fn answer(&self, words: &[&str]) -> String {
        let found = self.call(words);
        assert_eq!(found.code(), Some(0), "{words:?}: {}", found.stderr);
        found.stdout
    }
}

#[track_caller]
fn is_golden(name: &str, text: &str) {
    let path = root()
        .join("research/study-command/tests/messages")
        .join(name);
    golden(&path.with_extension("txt"), text).unwrap_or_else(|complaint| panic!("{complaint}"));
}

#[track_caller]
fn says(name: &str, place: &StudyFolder, words: &[&str], exit: i32) {
    let found = place.call(words);
    let quoted = words.iter().map(|word| match word.contains(' ') {
        true => format!("'{word}'"),
        false => (*word).to_owned(),
    });
    let text = format!(
        "$ hearth {}\nexit code {}\n\n{}{}",
        quoted.collect::<Vec<_>>().join(" "),
        found.code().unwrap_or(-1),
        found.stdout,
        found.stderr
    );
    is_golden(name, &text);
    assert_eq!(found.code(), Some(exit), "{text}");
}

#[test]
fn studies_are_named_and_run() {
    let place = StudyFolder(empty_folder("study"));
    let square = "10 13 12 14/13 10 14 12/12 14 10 13/14 12 13 10";
    says("zones", &place, &["study", "tool", "zones", square], 0);
    let uneven = ["study", "tool", "zones", "10 20"];
    says("zones-uneven", &place, &uneven, 2);
    says("list", &place, &["study", "list"], 0);
    says("unknown", &place, &["study", "run", "cache"], 2);
    let experiment = ["study", "run", "cache-impact", "--experiment"];
    let unknown = [&experiment[..], &["9"]].concat();
    says("experiment", &place, &unknown, 2);
    let foreign = ["study", "run", "nmart", "--sizes", "powers"];
    says("foreign", &place, &foreign, 2);
    // The shortest experiment; a debug build's figures are of no interest.
    let run = [&experiment[..], &["0", "--quick", "--out", "out"]].concat();
    let said = place.answer(&run);
    assert!(said.contains("out/cache-impact.html"), "{said}");
    let page = fs::read_to_string(place.0.join("out/cache-impact.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    // What is there is not run again.
    let again = place.answer(&[&run[..], &["--resume"]].concat());
    assert!(again.contains("out/cache-impact.html"), "{again}");
}

#[test]
fn hearth_predicts_by_the_sources_equations() {
    let place = StudyFolder(empty_folder("study-predict"));
    place.answer(&["machine", "export", "--hwloc", "made.xml", MACHINE]);
    place.answer(&["machine", "import", "made.xml", "-o", "p.json"]);
    for (size, model) in [("4K", "source"), ("4M", "source-printed")] {
        let words = ["predict", size, "--model", model, "--profile", "p.json"];
        let text = format!("$ hearth {}\n\n{}", words.join(" "), place.answer(&words));
        is_golden(&format!("predict-{model}"), &text);
    }
    let plot = [
        "--plot",
        "time.svg",
        "--model",
        "source",
        "--machine",
        MACHINE,
    ];
    place.answer(&[&["predict", "0"], &plot[..]].concat());
    assert!(
        fs::read_to_string(place.0.join("time.svg"))
            .unwrap()
            .contains("<svg")
    );
}

#[test]
fn both_programs_are_the_same_to_their_callers() {
    let place = StudyFolder(empty_folder("study-both"));
    let alone = std::process::Command::new(env!("CARGO_BIN_EXE_hearth-study"))
        .args(["tool", "--help"])
        .output()
        .unwrap();
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert_eq!(alone, place.answer(&["study", "tool", "--help"]));
    assert!(
        Path::new(env!("CARGO_BIN_EXE_hearth-study"))
            .with_file_name("hearth")
            .is_file()
    );
}
