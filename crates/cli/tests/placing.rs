//! `hearth place`, and `hearth run --place` with its plans: what is planned is followed, what has changed
//! since is told, and bad input too.

mod support;

use std::fs;
use support::{Outcome, empty_folder, hearth, outcome, root};

const MACHINE: [&str; 2] = ["--machine", "1 package, 4 cores"];

fn workload(name: &str) -> String {
    root()
        .join("tests/workloads")
        .join(name)
        .display()
        .to_string()
}

fn call(words: &[&str]) -> (Option<i32>, String, String) {
    let found: Outcome = outcome(hearth().args(words), None).unwrap();
    (found.code(), found.stdout.clone(), found.stderr.clone())
}

fn place(arguments: &[&str]) -> (Option<i32>, String, String) {
    call(&[&["place"], arguments].concat())
}

/// Type, number and CPU of each component.
fn lines(text: &str) -> Vec<(String, u32, u32)> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse().unwrap();
        (fields[0].to_owned(), number(1), number(2))
    };
    text.lines().map(line).collect()
}

#[test]
fn pairs_that_talk_are_together() {
    let file = workload("sender-receiver.isf");
    let arguments = [&[file.as_str(), "--export", "hearth"], &MACHINE[..]].concat();
    let (code, stdout, stderr) = place(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let found = lines(&stdout);
    assert_eq!(found.len(), 4);
    let cpu = |kind: &str, number| {
        let one = found.iter().find(|(k, n, _)| k == kind && *n == number);
        one.unwrap().2
    };
    for number in [1, 2] {
        assert_eq!(cpu("Sender", number), cpu("Receiver", number));
    }
    assert_ne!(cpu("Sender", 1), cpu("Sender", 2), "each pair has a core");
}

#[test]
fn those_that_compute_alone_have_a_core_each() {
    let file = workload("no-communication.isf");
    let arguments = [&[file.as_str(), "--export", "hearth"], &MACHINE[..]].concat();
    let (_, stdout, _) = place(&arguments);
    let mut cpus: Vec<u32> = lines(&stdout).into_iter().map(|(.., cpu)| cpu).collect();
    cpus.sort_unstable();
    assert_eq!(cpus, [0, 1, 2, 3]);
}

#[test]
fn reasons_other_ways_and_patterns_are_told() {
    let file = workload("client-server.isf");
    let (code, stdout, _) = place(&[&[file.as_str(), "--why"], &MACHINE[..]].concat());
    assert_eq!(code, Some(0));
    for part in [
        "15 components on 4 CPUs, by `talk`",
        "client-server, 4:1",
        "Other ways",
        "single",
        "Modelled, not measured",
    ] {
        assert!(stdout.contains(part), "{part} is missing in:\n{stdout}");
    }
    assert!(
        stdout.lines().all(|line| line.chars().count() <= 160),
        "{stdout}"
    );
}

#[test]
fn json_tells_all() {
    let file = workload("client-server.isf");
    let (code, stdout, _) = place(&[&[file.as_str(), "--json"], &MACHINE[..]].concat());
    assert_eq!(code, Some(0));
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(found["components"].as_array().unwrap().len(), 15);
    assert!(found["cost"]["total_ns"].as_f64().unwrap() > 0.0);
}

#[test]
fn plans_are_followed_and_what_has_changed_is_told() {
    let folder = empty_folder("placing");
    let plan = folder.join("plan.json");
    let plan = plan.to_str().unwrap();
    let file = workload("sender-receiver.isf");
    let (code, _, stderr) = place(&[&file, "--plan", plan, "--machine", "1 package, 1 core"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let run = |file: &str| call(&["run", file, "--place", plan]);
    let expected = fs::read_to_string(workload("sender-receiver.stdout")).unwrap();
    assert_eq!(run(&file), (Some(0), expected, String::new()));
    let (code, _, stderr) = run(&workload("no-communication.isf"));
    assert_eq!(code, Some(0));
    assert!(
        stderr.contains("the program has no such components"),
        "{stderr}"
    );
    assert!(stderr.contains("not in the plan"), "{stderr}");
}

#[test]
fn programs_run_by_talk() {
    for name in ["client-server", "dispatch-worker", "meetings"] {
        let file = workload(&format!("{name}.isf"));
        for carrier in ["workers", "threads"] {
            let (code, stdout, _) = call(&["run", &file, "--place", "talk", "--carrier", carrier]);
            assert_eq!(code, Some(0), "{name} {carrier}");
            assert!(stdout.contains("100 %") || name == "meetings", "{stdout}");
        }
    }
}

#[test]
fn other_programs_are_placed_by_their_traffic() {
    let folder = empty_folder("placing-matrix");
    let matrix = folder.join("traffic.mat");
    fs::write(&matrix, "0 9000 0 0\n9000 0 0 0\n0 0 0 9000\n0 0 9000 0\n").unwrap();
    let matrix = matrix.to_str().unwrap();
    let (code, stdout, _) = place(&[&[matrix, "--export", "taskset"], &MACHINE[..]].concat());
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("taskset --cpu-list "), "{stdout}");
    let (code, stdout, _) = place(&[&[matrix, "--export", "matrix"], &MACHINE[..]].concat());
    assert_eq!((code, stdout.lines().count()), (Some(0), 4));
}

#[test]
fn bad_input_is_told() {
    let folder = empty_folder("placing-bad");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let program = write("bad.isf", "component\n");
    let graph = write("bad.json", "{\"format\": 1");
    let matrix = write("bad.mat", "0 1\n1\n");
    for file in [&program, &graph, &matrix] {
        let (code, stdout, stderr) = place(&[&[file.as_str()], &MACHINE[..]].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{file}");
        assert!(stderr.contains(file.as_str()), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    let file = workload("alloc.isf");
    let (code, _, stderr) = call(&["run", &file, "--place", "nowhere"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("talk, or the file of a plan"), "{stderr}");
    let (code, _, stderr) = call(&["run", &file, "--place", &graph]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("bad.json"), "{stderr}");
}
