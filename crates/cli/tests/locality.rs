//! `hearth locality`: traces of which the answer is known, for a machine that is described.

mod support;

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use support::{Outcome, empty_folder, outcome, plain_hearth};

const MACHINE: &str = "1 package, 2 cores, l1d 32K per core, l2 256K per core, l3 4M per package";

fn call(folder: &PathBuf, words: &[&str], trace: &str) -> Outcome {
    let mut command = plain_hearth();
    command
        .args(["locality", "-"])
        .args(words)
        .current_dir(folder);
    command.args(["--machine", MACHINE]);
    outcome(&mut command, Some(trace.as_bytes())).unwrap()
}

/// 300 lines each, alternating: both together exceed the 512 of the first level.
fn two_components() -> String {
    let mut trace = String::from("# two that displace each other\n");
    for _pass in 0..10 {
        for (name, first) in [("walk", 0), ("section", 1000)] {
            let _ = writeln!(trace, "c {name}");
            for line in first..first + 300 {
                let _ = writeln!(trace, "r {} 8", line * 64);
            }
        }
    }
    trace
}

#[test]
fn displacement_is_told_in_words_figures_and_a_picture() {
    let folder = empty_folder("locality-displacement");
    let found = call(&folder, &["--svg", "misses.svg"], &two_components());
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    for words in [
        "6000 references to 600 lines of 64 bytes (37.5 KiB), 1 thread",
        "data displacement in L1d (512 lines): 90.0 % of the references of section",
        "it touches 300 lines each time, and beside it walk 300",
        "100.00 %",
        "512 to 1023",
    ] {
        assert!(found.stdout.contains(words), "{words}\n{}", found.stdout);
    }
    let picture = std::fs::read_to_string(folder.join("misses.svg")).unwrap();
    assert!(picture.contains("<svg"));
    let found = call(&folder, &["--json"], &two_components());
    let document: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(document["references"], 6000);
    assert_eq!(document["displacements"][0]["level"], "L1d");
    assert_eq!(document["levels"][1]["misses"]["share"], 0.1);
}

#[test]
fn invalidation_and_lackeys_form() {
    let folder = empty_folder("locality-invalidation");
    let mut trace = String::new();
    for _pass in 0..4 {
        trace.push_str("t 0\nw 0\nt 1\nw 0\n");
    }
    let found = call(&folder, &[], &trace);
    assert!(
        found.stdout.contains("data invalidation: 75.0 %"),
        "{}",
        found.stdout
    );
    let lackey = "==1== Lackey\nI  0401ab,3\n L 1000,8\n S 1008,8\n M 103f,2\n";
    let found = call(&folder, &["--sample", "64"], lackey);
    assert!(
        found.stdout.contains("4 references to 2 lines"),
        "{}",
        found.stdout
    );
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let folder = empty_folder("locality-refused");
    for (trace, words) in [
        (
            "r 1\nx 2\n",
            "<stdin>:2: no line of a trace begins with `x`",
        ),
        ("r 1\nr 1 0\n", "<stdin>:2: `0` is not the size"),
        ("# nothing\n", "<stdin> has no references"),
    ] {
        let found = call(&folder, &[], trace);
        assert_eq!(found.code(), Some(2));
        assert!(found.stderr.contains(words), "{}", found.stderr);
    }
}

#[test]
fn internal_thrashing_is_told_of_runs_in_a_file() {
    let folder = empty_folder("locality-throughput");
    let judged = |runs: &str, words: &[&str]| {
        let mut command = plain_hearth();
        command
            .args(["locality", "--throughput", "-"])
            .args(words)
            .current_dir(&folder);
        outcome(&mut command, Some(runs.as_bytes())).unwrap()
    };
    let falls = "threads,throughput\n2,100\n2,102\n2,101\n4,150\n4,151\n4,149\n8,90\n8,91\n8,89\n";
    let found = judged(falls, &[]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let words = "internal thrashing: throughput is highest with 4 threads (150.0000) and falls from 8 threads on, to 90.0000";
    assert!(found.stdout.contains(words), "{}", found.stdout);
    let document: Value = serde_json::from_str(&judged(falls, &["--json"]).stdout).unwrap();
    assert_eq!(document["thrashing"]["threads_worst"], 8);

    let found = judged("# none\n1 100\n1 120\n2 110\n2 118\n", &[]);
    let words = "no internal thrashing from 1 to 2 threads";
    assert!(found.stdout.contains(words), "{}", found.stdout);

    for (runs, words) in [
        ("1,100\ntwo,1\n", "<stdin>:2: a number of threads is wanted"),
        ("1,100\n1\n", "<stdin>:2: a throughput is wanted"),
        ("1,100\n1,x\n", "<stdin>:2: `x` is not a throughput"),
        (
            "1,100\n1,101\n",
            "<stdin>: a fall needs runs with at least two",
        ),
        (
            "1,100\n2,101\n",
            "<stdin>: there are fewer than two runs with 1 thread",
        ),
    ] {
        let found = judged(runs, &[]);
        assert_eq!(found.code(), Some(2));
        assert!(found.stderr.contains(words), "{}", found.stderr);
    }
    let found = judged(falls, &["walk.trace"]);
    assert_eq!(found.code(), Some(2));
}
