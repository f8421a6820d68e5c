//! Profiles that are out of date: what is wrong in them by far is noticed, said once, and not
//! planned with.

mod support;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hearth_machine::profile::{Carrier, Figure, PairTransfer, Profile};
use hearth_machine::topology::OsThread;
use hearth_probe::description;
use hearth_sys::{Linux, affinity};
use support::{Outcome, empty_folder, hearth, outcome, root};

/// A millisecond for a line: no machine is so slow, nor is any so disturbed that it seems to be.
const TRANSFER_NS: f64 = 1e6;
/// Nothing is said of CPUs that are busy. Some time both of them are free for as long as it takes.
const ATTEMPTS: usize = 200;

/// Held by the one test that has the CPUs: the other's checks would keep them busy.
fn alone() -> MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a profile of this machine in which lines between two of the CPUs that may be used take
/// far too long. None where there are no two.
fn falsified(path: &Path) -> Option<()> {
    let &[first, second] = affinity::allowed().first_chunk::<2>()?;
    let here = description::capture(&Linux).read().unwrap();
    let mut profile = Profile::assumed(here.topology);
    let thread = |cpu: usize| profile.topology.thread_of(OsThread(cpu as u32)).unwrap();
    let (a, b) = (thread(first), thread(second));
    let figure = |ns: f64| Figure::measured(ns, ns, ns, 100, 0);
    let pair = PairTransfer::from_round_trip(a, b, figure(2.0 * TRANSFER_NS));
    profile.pairs.push(pair);
    let relation = profile.topology.relation(a, b);
    for hand_over in &mut profile.hand_overs {
        if hand_over.relation == relation && hand_over.carrier != Carrier::Threads {
            hand_over.one_way_ns = figure(TRANSFER_NS);
        }
    }
    fs::write(path, profile.to_json().unwrap()).unwrap();
    Some(())
}

fn call(words: &[&str], check: &str, profile: &Path, cache: &Path) -> Outcome {
    let mut command = hearth();
    command
        .args(words)
        .env("HEARTH_PROFILE", profile)
        .env("HEARTH_PROFILE_CHECK", check)
        .env("XDG_CACHE_HOME", cache);
    let found = outcome(&mut command, None).unwrap();
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    found
}

#[test]
fn a_plan_takes_what_is_measured_now() {
    let _alone = alone();
    let folder = empty_folder("corrections-place");
    let profile = folder.join("profile.json");
    if falsified(&profile).is_none() {
        return;
    }
    let graph = folder.join("graph.json");
    let text = r#"{"format": 1, "components": [
            {"name": "one", "work_ns": {"value": 1e5, "basis": "predicted"}},
            {"name": "other", "work_ns": {"value": 1e5, "basis": "predicted"}}],
        "connections": [{"from": 0, "to": 1, "messages": {"value": 1, "basis": "predicted"}}]}"#;
    fs::write(&graph, text).unwrap();
    let graph = graph.display().to_string();
    let cpus: Vec<String> = affinity::allowed()[..2]
        .iter()
        .map(usize::to_string)
        .collect();
    let cpus = cpus.join(",");
    let place = |check: &str| {
        let words = ["place", &graph, "--json", "--cpus", &cpus];
        let found = call(&words, check, &profile, &folder);
        let document: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
        let cpu = |one: usize| document["components"][one]["cpu"].clone();
        let said = document["warning"].as_str().unwrap_or("").to_owned();
        (said, cpu(0) == cpu(1))
    };
    // By the profile nothing is worth a message from one CPU to another.
    let (said, is_together) = place("off");
    assert_eq!((said.as_str(), is_together), ("", true));
    let mut found = (0..ATTEMPTS).map(|_| place("on"));
    let (said, is_together) = found.find(|(said, _)| !said.is_empty()).unwrap();
    assert!(said.contains("out of date") && said.contains("`hearth probe`"));
    assert!(!is_together, "{said}");
}

#[test]
fn a_run_says_it_once() {
    let _alone = alone();
    let folder = empty_folder("corrections-run");
    let profile = folder.join("profile.json");
    if falsified(&profile).is_none() {
        return;
    }
    let file = root().join("tests/workloads/client-server.isf");
    let file = file.display().to_string();
    let run = |cache: &Path| {
        let found = call(&["run", &file, "--place", "talk"], "on", &profile, cache);
        found.stderr.clone()
    };
    // What a check could not tell counts for a while, too: each attempt has a cache of its own.
    let caches = (0..ATTEMPTS).map(|attempt| folder.join(attempt.to_string()));
    let mut told = caches.map(|cache| (run(&cache), cache));
    let (said, cache) = told.find(|(said, _)| !said.is_empty()).unwrap();
    assert!(
        said.starts_with("hearth: the profile ") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(run(&cache), "", "the check before counts");
    fs::remove_dir_all(folder).unwrap();
}
