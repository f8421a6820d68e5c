//! The machines recorded under `machines/`: each folder's files are read, and give the machine that
//! the folder describes.

mod schema;

use std::fs;
use std::path::{Path, PathBuf};

use hearth_machine::capture::{Capture, Fact};
use hearth_machine::hwloc::{Extras, export, import};
use hearth_machine::profile::{Profile, SCHEMA};
use hearth_machine::synthetic;
use hearth_machine::topology::Topology;
use serde_json::Value;

/// A folder and the machine that its file `expected` describes.
struct Recorded {
    name: String,
    folder: PathBuf,
    expected: Topology,
}

impl Recorded {
    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    fn capture(&self) -> Capture {
        let text = self.file("capture.json");
        let text = text.unwrap_or_else(|| panic!("{}: no capture.json", self.name));
        Capture::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

fn recorded() -> Vec<Recorded> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let entries = fs::read_dir(&machines).expect("machines/ is there");
    let folders = entries.map(|entry| entry.expect("a folder's entry").path());
    let mut all: Vec<Recorded> = folders
        .filter(|folder| folder.is_dir())
        .map(|folder| {
            let name = folder.file_name().expect("it has a name").to_string_lossy();
            let text = fs::read_to_string(folder.join("expected"));
            let text = text.unwrap_or_else(|error| panic!("{name}/expected: {error}"));
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let expected = synthetic::parse(&lines.join(" "));
            Recorded {
                name: name.to_string(),
                expected: expected.unwrap_or_else(|error| panic!("{name}/expected: {error}")),
                folder,
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!all.is_empty(), "no machine is recorded");
    all
}

#[test]
fn captures_say_what_is_expected_of_them() {
    for machine in recorded() {
        let name = &machine.name;
        let capture = machine.capture();
        let reading = capture
            .read()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            reading.topology == machine.expected,
            "{name}: {:#?}",
            reading.topology
        );
        let caches = reading.claims.iter();
        let caches = caches.filter(|claim| matches!(claim.fact, Fact::Cache { .. }));
        assert_eq!(caches.count(), reading.topology.caches().len(), "{name}");
        for claim in &reading.claims {
            assert!(
                capture.files.contains_key(&claim.path),
                "{name}: {}",
                claim.path
            );
        }
        assert!(
            !capture.recorded.is_empty() && !capture.remarks.is_empty(),
            "{name}"
        );
        assert_eq!(
            Capture::from_json(&capture.to_json()).expect("ours"),
            capture,
            "{name}"
        );
    }
}

#[test]
fn nothing_tells_whose_machine_it_was() {
    for machine in recorded() {
        let capture = machine.capture();
        assert!(capture == capture.without_identity(), "{}", machine.name);
        if let Some(text) = machine.file("profile.json") {
            let profile = Profile::from_json(&text).expect("a profile");
            assert_eq!(profile.host.name, None, "{}", machine.name);
        }
    }
}

#[test]
fn topologies_go_through_every_format() {
    for machine in recorded() {
        let name = &machine.name;
        let topology = machine.expected.clone();
        let text = serde_json::to_string(&topology).expect("JSON");
        let read: Topology = serde_json::from_str(&text).expect("ours");
        assert!(read == topology, "{name}");
        let text = export(&topology, &Extras::default()).expect("no extras");
        let read = import(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // hwloc has no matrix of one object: the only node's distance to itself is lost.
        if topology.nodes().len() > 1 {
            assert!(read.topology == topology, "{name}");
        }
        let again = export(&read.topology, &Extras::default()).expect("no extras");
        assert_eq!(again, text, "{name}");
        assert_eq!(read.notes, Vec::<String>::new(), "{name}");
        let assumed = Profile::assumed(topology).to_json().expect("sound");
        assert!(Profile::from_json(&assumed).is_ok(), "{name}");
    }
}

#[test]
fn profiles_follow_the_schema_and_are_of_the_captured_machine() {
    let rules: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    for machine in recorded() {
        let name = &machine.name;
        let Some(text) = machine.file("profile.json") else {
            continue;
        };
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            schema::faults(&rules, &value),
            Vec::<String>::new(),
            "{name}"
        );
        let profile = Profile::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(profile.topology == machine.expected, "{name}");
        let again = profile.to_json().expect("sound");
        assert!(
            Profile::from_json(&again).as_ref() == Ok(&profile),
            "{name}"
        );
        let extras = Extras::of(&profile);
        let text = export(&profile.topology, &extras).expect("its own parts");
        let read = import(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(read.extras.matrices == extras.matrices, "{name}");
    }
}

#[test]
fn every_machine_has_its_history() {
    for machine in recorded() {
        let history = machine.file("history.md").unwrap_or_default();
        let lines = history.lines().filter(|line| line.starts_with("- "));
        let mut count = 0;
        for line in lines {
            let date = line.get(2..12).unwrap_or_default();
            let is_date = date.split('-').map(str::len).eq([4, 2, 2]);
            assert!(is_date, "{}: no date begins `{line}`", machine.name);
            count += 1;
        }
        assert!(count > 0, "{}: history.md says nothing", machine.name);
    }
}
