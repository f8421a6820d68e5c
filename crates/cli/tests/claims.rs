//! `hearth claim`, `hearth claims` and `hearth cores` as their users call them.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use hearth_testing::library;
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

/// A command that has all cores, until its input ends, and gives none back.
fn holder(folder: &Path) -> Killed {
    let script = "exec \"$0\" claims --json";
    let program = env!("CARGO_BIN_EXE_hearth");
    let arguments = [
        "claim",
        "--cores",
        "1..100000",
        "--",
        "sh",
        "-c",
        script,
        program,
    ];
    let output = hearth(folder, &arguments).output().expect("it starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cores = document["holders"][0]["cores"]
        .as_array()
        .expect("cores")
        .len();
    let arguments = ["claim", "--cores", &cores.to_string(), "--", "cat"];
    let mut command = hearth(folder, &arguments);
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

/// Sizes that a script counts until its input ends, one a line.
const COUNTS: &str =
    "while read -t 0.05 line; [ $? -gt 128 ]; do env -u OMP_NUM_THREADS nproc; done; exit 9";

fn lines(child: &mut Child) -> Receiver<String> {
    let (say, lines) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().expect("its output"));
    thread::spawn(move || {
        output
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| say.send(line))
    });
    lines
}

fn await_line(lines: &Receiver<String>, wanted: &str) {
    while lines.recv_timeout(PATIENCE).expect("it counts") != wanted {}
}

#[test]
fn a_command_gives_cores_back_and_gets_more() {
    let folder = empty_folder("claims-change");
    let all = hearth_sys::affinity::allowed().len();
    let mut command = hearth(
        &folder,
        &["claim", "--cores", "1..100000", "--", "bash", "-c", COUNTS],
    );
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = Killed(child.spawn().expect("it starts"));
    let counts = lines(&mut holder.0);
    await_line(&counts, &all.to_string());
    if holders(&folder)[0]["cores"]
        .as_array()
        .expect("cores")
        .len()
        < 2
    {
        return;
    }
    let mut taker = hearth(
        &folder,
        &["claim", "--cores", "1", "--wait", "300", "--", "cat"],
    );
    let mut taker = Killed(taker.stdin(Stdio::piped()).spawn().expect("it starts"));
    while counts.recv_timeout(PATIENCE).expect("it counts") == all.to_string() {}
    drop(taker.0.stdin.take());
    assert!(taker.0.wait().expect("it ends").success());
    await_line(&counts, &all.to_string());
    // The command's parent, its signals and its exit code are as without a claim.
    drop(holder.0.stdin.take());
    let status = holder.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(9));
    let begin = Instant::now();
    while !holders(&folder).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "the claim stays");
        thread::yield_now();
    }
}

/// A makefile whose jobs tell how many of them run at the same time.
const MAKEFILE: &str = "all: $(foreach n,1 2 3 4 5 6 7 8,job$n)
job%:
\t@mkdir running/$@; ls running | wc -l; sleep 0.1; rmdir running/$@
";

#[test]
fn make_runs_as_many_jobs_as_there_are_cores() {
    let folder = empty_folder("claims-make");
    std::fs::write(folder.join("Makefile"), MAKEFILE).expect("it is written");
    std::fs::create_dir(folder.join("running")).expect("it is made");
    let all = hearth_sys::affinity::allowed().len();
    let most = |cores: &str| {
        let registry = folder.join("registry");
        let _ = std::fs::create_dir(&registry);
        let arguments = ["claim", "--cores", cores, "--jobserver", "--", "make"];
        let mut command = hearth(&registry, &arguments);
        let output = command
            .current_dir(&folder)
            .env_remove("MAKEFLAGS")
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        let counts = text(&output.stdout);
        counts
            .lines()
            .filter_map(|line| line.trim().parse::<usize>().ok())
            .max()
            .expect("jobs")
    };
    // A core may have several CPUs.
    assert!((1..=all).contains(&most("1")));
    if all > 1 {
        assert!((2..=all).contains(&most("1..100000")));
    }
}

#[test]
fn a_preloaded_command_sees_its_claim_as_the_machine() {
    // Into the folder of the command.
    library::build("hearth-claim-c");
    let folder = empty_folder("claims-preload");
    let script = "getconf _NPROCESSORS_ONLN; echo $OMP_NUM_THREADS; \
                  env -u OMP_NUM_THREADS nproc";
    let arguments = [
        "claim",
        "--cores",
        "1..1",
        "--preload",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = hearth(&folder, &arguments)
        .env_remove("OMP_NUM_THREADS")
        .output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.iter().all(|line| *line == lines[2]), "{said}");
}
