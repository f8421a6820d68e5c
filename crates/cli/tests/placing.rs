//! `hearth place`, and `hearth run --place` with its plans: what is planned is followed, what has
//! changed since is told, and bad input too.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

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
        "Other placements",
        "single",
        "Modelled, not measured",
    ] {
        assert!(stdout.contains(part), "{part} is missing in:\n{stdout}");
    }
    assert!(
        stdout.lines().all(|line| line.chars().count() <= 80),
        "{stdout}"
    );
}

#[test]
fn what_siblings_do_together_is_explained_where_it_is_told() {
    let file = workload("no-communication.isf");
    let picture = empty_folder("placing-siblings").join("siblings.svg");
    let explained = "threads of a core reach 125 % together";
    let told = |machine: &str| {
        let svg = picture.display().to_string();
        let (code, stdout, _) = place(&[&file, "--machine", machine, "--svg", &svg]);
        assert_eq!(code, Some(0));
        // Wherever lines are broken.
        let words: Vec<&str> = stdout.split_whitespace().collect();
        [words.join(" "), fs::read_to_string(&picture).unwrap()]
    };
    let [text, drawn] = told("1 package, 2 cores, 2 threads");
    assert!(
        text.contains(" 125 % ") && text.contains(explained),
        "{text}"
    );
    assert!(drawn.contains("100 % is one hardware"), "{drawn}");
    for told in told("1 package, 4 cores") {
        assert!(!told.contains("100 % is one hardware"), "{told}");
    }
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
    assert!(stderr.contains("the plan of another program"), "{stderr}");
    assert!(
        stderr.contains("plans for the program as it is now"),
        "{stderr}"
    );
    let text = fs::read_to_string(plan).unwrap();
    let mut stored: serde_json::Value = serde_json::from_str(&text).unwrap();
    stored["places"][0]["component"] = "nobody".into();
    fs::write(plan, stored.to_string()).unwrap();
    let (code, _, stderr) = run(&file);
    assert_eq!(code, Some(0));
    assert!(
        stderr.contains("the program has no such components: nobody"),
        "{stderr}"
    );
    assert!(stderr.contains("not in the plan"), "{stderr}");
    assert!(
        stderr.contains("plans for the program as it is now"),
        "{stderr}"
    );
}

#[test]
fn options_that_do_nothing_beside_others_are_told_once() {
    let file = workload("sender-receiver.isf");
    let (code, _, stderr) = call(&["run", &file, "--place", "steal", "--carrier", "threads"]);
    assert_eq!(code, Some(0));
    assert!(stderr.starts_with("hearth: note: --place steal has no effect with --carrier threads"));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
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

/// The files of plans in a cache, by what they are.
fn plans_of(cache: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache.join("hearth/plans"))
        .into_iter()
        .flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == kind))
        .collect();
    found.sort();
    found
}

/// A profile of a machine with as many CPUs as their numbers here want.
fn profile(file: &Path, cores_each: &str) {
    let last = hearth_sys::affinity::allowed().into_iter().max().unwrap();
    let machine = format!("1 package, {} cores{cores_each}", last + 1);
    let topology = hearth_machine::synthetic::parse(&machine).unwrap();
    let profile = hearth_machine::profile::Profile::assumed(topology);
    fs::write(file, profile.to_json().unwrap()).unwrap();
}

#[test]
fn plans_are_made_anew_when_what_they_follow_from_changes() {
    let folder = empty_folder("placing-kept");
    let (cache, kept) = (folder.join("cache"), folder.join("profile.json"));
    profile(&kept, "");
    let file = workload("client-server.isf");
    let expected = fs::read_to_string(workload("client-server.stdout")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = hearth();
        command
            .args([&["run", file.as_str(), "--place", "talk"], arguments].concat())
            .env("XDG_CACHE_HOME", &cache)
            .env("HEARTH_PROFILE", &kept);
        let found = outcome(&mut command, None).unwrap();
        assert_eq!((found.code(), found.stdout.as_str()), (Some(0), &*expected));
        plans_of(&cache, "made")
    };
    let first = run(&[]);
    assert_eq!(first.len(), 1);
    assert_eq!(run(&[]), first, "nothing has changed");
    // What was damaged is made anew.
    let whole = fs::read(&first[0]).unwrap();
    fs::write(&first[0], &whole[..whole.len() / 2]).unwrap();
    for plan in plans_of(&cache, "plan") {
        fs::write(plan, "Server\t1").unwrap();
    }
    assert_eq!(run(&[]), first);
    assert_eq!(fs::read(&first[0]).unwrap(), whole);
    // Another carrier, and another profile.
    assert_eq!(run(&["--carrier", "threads"]).len(), 2);
    profile(&kept, ", l2 4M per package");
    assert_eq!(run(&[]).len(), 3);
    // Fewer CPUs: their children have those of the thread that starts them.
    let allowed = hearth_sys::affinity::allowed();
    if allowed.len() > 1 {
        hearth_sys::affinity::allow_current(&allowed[..1]).unwrap();
        assert_eq!(run(&[]).len(), 4);
        hearth_sys::affinity::allow_current(&allowed).unwrap();
        assert_eq!(run(&[]).len(), 4);
    }
}

#[test]
fn many_runs_at_once_plan_alike() {
    let folder = empty_folder("placing-at-once");
    let cache = folder.join("cache");
    let file = workload("meetings.isf");
    let run = || {
        let mut command = hearth();
        command
            .args(["run", &file, "--place", "talk"])
            .env("XDG_CACHE_HOME", &cache);
        let found = outcome(&mut command, None).unwrap();
        assert_eq!(found.code(), Some(0), "{}", found.stderr);
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..3).for_each(|_| run()));
        }
    });
    assert_eq!(plans_of(&cache, "made").len(), 1);
    assert_eq!(plans_of(&cache, "plan").len(), 1);
    assert!(plans_of(&cache, "new").is_empty());
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
    let (code, stdout, stderr) = place(&[&[program.as_str()], &MACHINE[..]].concat());
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("error[E"), "{stderr}");
    let graph = write("bad.json", "{\"format\": 1");
    let matrix = write("bad.mat", "0 1\n1\n");
    for file in [&graph, &matrix] {
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
    assert!(stderr.contains("ends too early"), "{stderr}");
    let (code, _, stderr) = call(&["run", &file, "--place-log", "log"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("needs --place talk or --servers auto"),
        "{stderr}"
    );
    let plan = write("plan.json", "{\"format\": 1, \"places\": []}");
    let (code, _, stderr) = place(&[&plan]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("a plan, not a graph"), "{stderr}");
    let (code, _, stderr) = place(&[&file, "--machine", "box.xml"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("box.xml: there is no such file"),
        "{stderr}"
    );
}

#[test]
fn where_nobody_is_to_be_placed_that_is_said() {
    let folder = empty_folder("placing-nobody");
    let file = folder.join("hello.isf");
    fs::write(&file, "printString(\"hello\\n\")\n").unwrap();
    let (code, stdout, _) = place(&[&[file.to_str().unwrap(), "--why"], &MACHINE[..]].concat());
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("There is nothing to place"), "{stdout}");
}
