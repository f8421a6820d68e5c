//! `hearth scenario` as its users call it.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{empty_folder, root, text};

/// Two tasks that take two locks in opposite orders.
const DEADLOCK: &str = r#"
format = 1
horizon = "100ms"
[[core]]
name = "left"
[[core]]
name = "right"
[[resource]]
name = "log"
[[resource]]
name = "store"
[[task]]
name = "write"
cores = ["left"]
arrival = { between = "9ms..30ms" }
steps = [{ run = "1ms..3ms" }, { lock = "log" }, { run = "20us" }, { lock = "store" }, { run = "20us" }, { unlock = "store" }, { unlock = "log" }]
[[task]]
name = "clean"
cores = ["right"]
arrival = { period = "40ms", offset = "0ms..40ms" }
steps = [{ run = "1ms..2ms" }, { lock = "store" }, { run = "20us" }, { lock = "log" }, { run = "20us" }, { unlock = "log" }, { unlock = "store" }]
"#;

fn scenario(folder: &Path, arguments: &[&str]) -> Output {
    let mut command: Command = support::hearth();
    command.arg("scenario").args(arguments).current_dir(folder);
    command.output().expect("it starts")
}

#[test]
fn the_pages_model_is_searched_kept_and_replayed() {
    let page = fs::read_to_string(root().join("docs/scenario.md")).expect("the page is there");
    let model = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let folder = empty_folder("scenario-page");
    fs::write(folder.join("car.toml"), model.expect("it has a model")).expect("it can be written");
    let arguments = [
        "car.toml",
        "--evaluations",
        "300",
        "--out",
        "worst",
        "--json",
    ];
    let first = scenario(&folder, &arguments);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(
        first.stdout,
        scenario(&folder, &arguments).stdout,
        "the same seed"
    );
    let found: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert_eq!(found["verdict"], "proved");
    assert_eq!(found["score"], -2_750_000);
    for file in [
        "model.toml",
        "trace.btf",
        "trace.json",
        "run.svg",
        "rt-app.json",
        "harness.rs",
    ] {
        let written = fs::metadata(folder.join("worst").join(file)).expect("it is written");
        assert!(written.len() > 100, "{file}");
    }
    let kept = [
        "worst/model.toml",
        "--replay",
        "worst/scenario.json",
        "--json",
    ];
    let again = scenario(&folder, &kept);
    let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(again["tasks"], found["tasks"]);
    assert_eq!(again["scenario"], found["scenario"]);
}

#[test]
fn a_deadlock_is_a_negative_answer() {
    let folder = empty_folder("scenario-deadlock");
    fs::write(folder.join("locks.toml"), DEADLOCK).expect("it can be written");
    let arguments = [
        "locks.toml",
        "--objective",
        "deadlock",
        "--evaluations",
        "20000",
    ];
    let output = scenario(&folder, &arguments);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("Found: the scenario shows it."), "{told}");
    assert!(told.contains("clean waits for log since "), "{told}");
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let folder = empty_folder("scenario-wrong");
    let wrong = DEADLOCK.replace("between = \"9ms..30ms\"", "between = \"9ms..\"");
    fs::write(folder.join("locks.toml"), wrong).expect("it can be written");
    fs::write(folder.join("car.xml"), "<car/>").expect("it can be written");
    let said = |arguments: &[&str]| {
        let output = scenario(&folder, arguments);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert_eq!(
        said(&["locks.toml"]),
        "hearth: locks.toml: line 15, task `write`, field `arrival`: `9ms..` is neither a time nor a range: write one such as `2ms`, or `1ms..2ms` with the shorter first\n"
    );
    assert_eq!(
        said(&["car.xml"]),
        "hearth: car.xml: its form is not known: name a model *.toml, a workload of rt-app *.json, or a model of AMALTHEA *.amxmi\n"
    );
}
