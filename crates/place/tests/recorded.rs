//! The recorded machines of `machines/`: places random graphs and those of the six workloads on
//! each, on hardware threads that it has, no worse than the baselines do.
//!
//! The workloads' graphs are those that the compiler finds in `tests/workloads`:
//! `hearth place NAME.isf --graph NAME.json`.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use hearth_machine::capture::Capture;
use hearth_machine::profile::Profile;
use hearth_model::fitted::Model;
use hearth_place::baselines::Baseline;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::Graph;
use hearth_place::slots::Machine;
use hearth_place::talk::{Effort, talk};

const GRAPHS: u64 = if cfg!(debug_assertions) { 12 } else { 120 };

/// The files in a folder beside this crate's.
fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The measured profile, or else the parts with assumed costs.
fn profile(folder: &Path) -> Profile {
    let name = folder.display();
    if let Some(text) = text(&folder.join("profile.json")) {
        return Profile::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let capture = text(&folder.join("capture.json")).expect("a capture");
    let capture = Capture::from_json(&capture).unwrap_or_else(|error| panic!("{name}: {error}"));
    let reading = capture.read();
    let reading = reading.unwrap_or_else(|error| panic!("{name}: {error}"));
    Profile::assumed(reading.topology)
}

fn graphs() -> Vec<(String, Graph)> {
    let mut graphs: Vec<(String, Graph)> = entries("tests/workloads")
        .into_iter()
        .map(|path| {
            let text = text(&path).expect("a graph");
            let graph = Graph::from_json(&text);
            let graph = graph.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.display().to_string(), graph)
        })
        .collect();
    assert_eq!(graphs.len(), 6);
    graphs.extend((0..GRAPHS).map(|seed| {
        let mut random = fastrand::Rng::with_seed(3000 + seed);
        let count = random.usize(1..=48);
        (format!("seed {seed}"), support::graph(&mut random, count))
    }));
    graphs
}

#[test]
fn recorded_machines_are_placed_on() {
    let options = CostOptions::default();
    let graphs = graphs();
    let folders = entries("../../machines")
        .into_iter()
        .filter(|path| path.is_dir());
    let mut machines = 0;
    for folder in folders {
        let profile = profile(&folder);
        let model = Model::fitted(&profile).expect("a sound profile");
        let machine = Machine::new(&profile, &model, &[]).expect("a machine");
        machines += 1;
        for (name, graph) in &graphs {
            let case = format!("{} and {name}", folder.display());
            let effort = Effort {
                steps: 30_000,
                seed: 1,
            };
            let ours = talk(graph, &machine, &options, effort, None).expect("a placement");
            assert_eq!(ours.placement.0.len(), graph.components.len(), "{case}");
            for (component, slot) in graph.components.iter().zip(&ours.placement.0) {
                let cpu = machine.os(*slot);
                let threads = || profile.topology.all_threads();
                assert!(
                    threads().any(|t| profile.topology.os_thread(t) == cpu),
                    "{case}: {cpu}"
                );
                let pin = component
                    .pinned
                    .filter(|pin| machine.slot_of(*pin).is_some());
                assert!(pin.is_none_or(|pin| pin == cpu), "{case}: {cpu}");
            }
            for baseline in Baseline::ALL {
                let theirs = baseline
                    .place(graph, &machine, &options)
                    .expect("a placement");
                let theirs = evaluate(graph, &machine, &options, &theirs).expect("it fits");
                let ours = &ours.cost;
                assert!(
                    ours.over_bytes < theirs.over_bytes
                        || ours.total_ns <= theirs.total_ns * (1.0 + 1e-9),
                    "{case}: {} and {baseline:?} {}",
                    ours.total_ns,
                    theirs.total_ns
                );
            }
        }
    }
    assert!(machines >= 6, "{machines} machines");
}
