//! `hearth gang` and `hearth gangs` as their users call them.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{empty_folder, text};

fn hearth(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = support::hearth();
    command.args(arguments).env("HEARTH_GANGS", folder);
    command
}

#[test]
fn exit_codes_and_signals_are_passed_on() {
    let folder = empty_folder("gangs-ends");
    let code = |script: &str| {
        let arguments = ["gang", "--back-end", "stop", "--", "sh", "-c", script];
        let output = hearth(&folder, &arguments).output().expect("it starts");
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(code("exit 7").0, Some(7));
    // The signal comes as soon as there is a command to pass it on to.
    for _ in 0..10 {
        assert_eq!(code("kill -TERM $PPID; exec sleep 300").0, Some(128 + 15));
    }
    let (status, said) =
        code("trap 'echo told; exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.01; done");
    assert_eq!((status, said.as_str()), (Some(9), "told\n"));
    let output = hearth(&folder, &["gangs", "--json"])
        .output()
        .expect("it starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["gangs"].as_array().map(Vec::len), Some(0));
    let output = hearth(&folder, &["gangs"]).output().expect("it starts");
    assert_eq!(text(&output.stdout), "There are no gangs.\n");
}

#[test]
fn mistakes_are_told() {
    let folder = empty_folder("gangs-mistakes");
    let file = folder.join("file");
    std::fs::write(&file, "").expect("it is written");
    for (place, arguments, code, message) in [
        (&folder, &["gang"][..], 2, "COMMAND"),
        (
            &folder,
            &["gang", "--cores", "0", "--", "true"],
            2,
            "--cores",
        ),
        (
            &folder,
            &["gang", "--slice", "0", "--", "true"],
            2,
            "--slice",
        ),
        (
            &folder,
            &["gang", "--within", "nobody", "--", "true"],
            2,
            "nobody",
        ),
        (
            &folder,
            &["gang", "--", "no-such-command"],
            2,
            "no-such-command",
        ),
        (&file, &["gang", "--", "true"], 2, "HEARTH_GANGS"),
    ] {
        let output = hearth(place, arguments).output().expect("it starts");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}
