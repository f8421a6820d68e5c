//! `hearth claim`, `hearth claims` and `hearth cores` as their users call them.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use support::{Killed, PATIENCE, empty_folder, text};

fn hearth(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = support::hearth();
    command.args(arguments).env("HEARTH_CLAIMS", folder);
    command
}

fn holders(folder: &Path) -> Vec<Value> {
    let output = hearth(folder, &["claims", "--json"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["holders"].as_array().expect("holders").clone()
}

/// A command that has all cores, until its input ends.
fn holder(folder: &Path) -> Killed {
    let mut command = hearth(folder, &["claim", "--cores", "1..100000", "--", "cat"]);
    let child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let holder = Killed(child);
    let begin = Instant::now();
    while holders(folder).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "it claims nothing");
        std::thread::yield_now();
    }
    holder
}

#[test]
fn a_claim_ends_with_its_program() {
    let folder = empty_folder("claims-end");
    let holder = holder(&folder);
    let held = holders(&folder);
    assert_eq!(held.len(), 1);
    assert_eq!(held[0]["process"], holder.0.id());
    assert_eq!(held[0]["name"], "cat");
    // Whoever does not wait is told who has them.
    let output = hearth(&folder, &["claim", "--cores", "1", "--", "true"]).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(3));
    let error = text(&output.stderr);
    assert!(
        error.contains("1 core is more than can be had now; wait"),
        "{error}"
    );
    assert!(error.contains("cat"), "{error}");
    let mut waits = hearth(
        &folder,
        &["claim", "--cores", "1", "--wait", "300", "--", "true"],
    );
    let mut waits = Killed(waits.spawn().expect("it starts"));
    while holders(&folder).len() < 2 {
        std::thread::yield_now();
    }
    drop(holder);
    assert!(waits.0.wait().expect("it ends").success());
    let output = hearth(&folder, &["claims"]).output().expect("it starts");
    assert_eq!(text(&output.stdout), "No program has claimed cores.\n");
}

#[test]
fn a_command_has_its_cpus_and_its_exit_code() {
    let folder = empty_folder("claims-command");
    let script = "nproc; echo $OMP_NUM_THREADS $RAYON_NUM_THREADS; exit 7";
    let arguments = ["claim", "--cores", "1", "--", "sh", "-c", script];
    let mut command = hearth(&folder, &arguments);
    command
        .env_remove("OMP_NUM_THREADS")
        .env("RAYON_NUM_THREADS", "99");
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    // A core may have several CPUs.
    assert_eq!(lines[1], format!("{} 99", lines[0]));
}

#[test]
fn mistakes_are_told() {
    let folder = empty_folder("claims-mistakes");
    let file = folder.join("file");
    std::fs::write(&file, "").expect("it is written");
    for (place, arguments, code, message) in [
        (
            &folder,
            &["claim", "--cores", "0", "--", "true"][..],
            2,
            "the first is 1 at least",
        ),
        (&folder, &["claim", "--cores", "1"], 2, "COMMAND"),
        (
            &folder,
            &["claim", "--cores", "1", "--", "no-such-command"],
            2,
            "cannot start",
        ),
        (
            &folder,
            &["claim", "--cores", "1", "--node", "99", "--", "true"],
            3,
            "1 core is more",
        ),
        (
            &file,
            &["claim", "--cores", "1", "--", "true"],
            2,
            "is no folder; remove it, or name",
        ),
        (&file, &["claims"], 2, "is no folder"),
    ] {
        let output = hearth(place, arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn cores_are_told_with_their_reasons() {
    let folder = empty_folder("cores");
    let output = hearth(&folder, &["cores", "--milliseconds", "20", "--json"]).output();
    let document: Value = serde_json::from_slice(&output.expect("it starts").stdout).expect("JSON");
    let allowed = document["allowed"].as_array().expect("CPUs").len() as u64;
    let threads = document["threads"].as_u64().expect("a number");
    assert!((1..=allowed).contains(&threads), "{document}");
    assert!(
        document["obtainable"]
            .as_f64()
            .is_some_and(|cpus| cpus <= allowed as f64)
    );
    assert_eq!(document["measured"], true);
    let output = hearth(&folder, &["cores", "--limits"])
        .output()
        .expect("it starts");
    let shown = text(&output.stdout);
    assert!(
        shown.contains("online") && shown.contains("nobody else was looked at"),
        "{shown}"
    );
    // What a claim gives is what its command has.
    let arguments = ["claim", "--cores", "1", "--"];
    let program = env!("CARGO_BIN_EXE_hearth");
    let arguments = [&arguments[..], &[program, "cores", "--limits", "--json"]].concat();
    let output = hearth(&folder, &arguments).output().expect("it starts");
    let claimed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let claimed = claimed["allowed"].as_array().expect("CPUs").len() as u64;
    assert!(claimed <= allowed && claimed >= 1);
}
