//! The commands about machines: probe, predict, advise, machine. Machines that are described or
//! recorded, so that what is said does not depend on this one; nothing here asserts a time.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::{Outcome, empty_folder, golden, outcome, plain_hearth, root};

/// A machine with all that a machine can have, and short.
const MACHINE: &str = "2 packages, 2 cores, 2 threads, memory 4G, l1d 32K per core, l2 1M per core, \
                       l3 16M per package, distances 10 21/21 10";

struct MachineFolder {
    folder: PathBuf,
}

impl MachineFolder {
    fn new(name: &str) -> Self {
        MachineFolder {
            folder: empty_folder(&format!("machines-{name}")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    /// The command in this folder, whose kept profile would be `kept/hearth/profile.json` there.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = plain_hearth();
        command
            .args(words)
            .current_dir(&self.folder)
            .env("XDG_CONFIG_HOME", self.path("kept"))
            .env("HOME", &self.folder);
        command
    }

    fn call(&self, words: &[&str]) -> Outcome {
        outcome(&mut self.command(words), None).unwrap()
    }

    /// Its standard output, if all is well.
    #[track_caller]
    fn answer(&self, words: &[&str]) -> String {
        let found = self.call(words);
        assert_eq!(found.code(), Some(0), "{words:?}: {}", found.stderr);
        found.stdout
    }

    /// A profile with assumed costs of a described machine, made through hwloc's XML.
    fn with_profile(self, name: &str, description: &str) -> Self {
        self.answer(&["machine", "export", "--hwloc", "made.xml", description]);
        self.answer(&["machine", "import", "made.xml", "-o", name]);
        self
    }
}

#[track_caller]
fn says(name: &str, place: &MachineFolder, words: &[&str], exit: i32) {
    let found = place.call(words);
    let shown: Vec<String> = words
        .iter()
        .map(|word| {
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                (*word).to_owned()
            }
        })
        .collect();
    let text = format!(
        "$ hearth {}\nexit code {}\n\n{}{}",
        shown.join(" "),
        found.code().unwrap_or(-1),
        found.stdout,
        found.stderr
    );
    let text = text.replace(&place.folder.display().to_string(), "FOLDER");
    let path = root().join("crates/cli/tests/messages/machines").join(name);
    golden(&path.with_extension("txt"), &text).unwrap_or_else(|complaint| panic!("{complaint}"));
    assert_eq!(found.code(), Some(exit), "{text}");
}

#[test]
fn help_is_good_reading() {
    let place = MachineFolder::new("help");
    for command in ["probe", "predict", "advise", "machine", "locality", "study"] {
        says(&format!("help-{command}"), &place, &[command, "--help"], 0);
    }
}

#[test]
fn studies_are_another_programs() {
    let place = MachineFolder::new("study");
    says("study-help-run", &place, &["study", "run", "--help"], 0);
    says("study-help-tool", &place, &["study", "tool", "--help"], 0);
    // Here is no hearth-study, neither beside the command nor on the PATH.
    let here = Path::new(env!("CARGO_BIN_EXE_hearth"));
    let lonely = place.path("hearth");
    fs::copy(here, &lonely).unwrap();
    let calls: [&[&str]; 2] = [
        &["study", "list"],
        &["predict", "4K", "--model", "source", "--machine", "one-cpu"],
    ];
    for words in calls {
        let mut command = Command::new(&lonely);
        command.args(words).env("PATH", &place.folder);
        let found = outcome(&mut command, None).unwrap();
        assert_eq!(found.code(), Some(3), "{words:?}: {}", found.stderr);
        let advice = "cannot start hearth-study, which runs the studies: there is no such file; \
                      `./x install` installs it beside hearth, and `cargo build --release \
                      --package hearth-study` builds it";
        assert!(found.stderr.contains(advice), "{}", found.stderr);
    }
}

#[test]
fn wrong_command_lines() {
    let place = MachineFolder::new("usage");
    let cases: &[(&str, &[&str])] = &[
        ("size", &["predict", "4Q"]),
        ("size-none", &["predict"]),
        ("sizes", &["predict", "--table", "64-"]),
        ("only-from", &["predict", "64", "--from", "0"]),
        ("cpu", &["predict", "64", "--from", "one", "--to", "0"]),
        (
            "cpu-unknown",
            &[
                "predict",
                "64",
                "--from",
                "0",
                "--to",
                "9",
                "--machine",
                MACHINE,
            ],
        ),
        ("carrier", &["predict", "64", "--carrier", "pigeon"]),
        ("machine", &["predict", "64", "--machine", "nmart8"]),
        ("machine-item", &["predict", "64", "--machine", "2 sockets"]),
        (
            "both-bases",
            &[
                "predict",
                "64",
                "--machine",
                "one-cpu",
                "--profile",
                "p.json",
            ],
        ),
        (
            "spin-on-one",
            &[
                "predict",
                "64",
                "--from",
                "1",
                "--to",
                "1",
                "--carrier",
                "spin",
                "--machine",
                MACHINE,
            ],
        ),
        (
            "source-streams",
            &[
                "predict",
                "64",
                "--model",
                "source",
                "--mode",
                "streaming",
                "--machine",
                MACHINE,
            ],
        ),
        ("rate", &["advise", "64", "--rate", "0"]),
        (
            "advise-spin-one",
            &["advise", "64", "--carrier", "spin", "--machine", "one-cpu"],
        ),
        ("both-modes", &["probe", "--quick", "--deep"]),
        ("cpus", &["probe", "--cpus", "0-x"]),
        ("cpus-unknown", &["probe", "--cpus", "99999"]),
        (
            "capture-and-page",
            &["probe", "--capture", "a", "--html", "b"],
        ),
    ];
    for (name, words) in cases {
        if *name == "cpus-unknown" {
            // Which CPUs there are depends on the machine.
            let found = place.call(words);
            assert_eq!(found.code(), Some(2));
            assert!(
                found
                    .stderr
                    .starts_with("hearth: there is no CPU 99999, or it is offline")
            );
            continue;
        }
        says(&format!("usage-{name}"), &place, words, 2);
    }
}

#[test]
fn files_that_are_no_profiles() {
    let place = MachineFolder::new("files")
        .with_profile("good.json", MACHINE)
        .with("empty.json", "")
        .with("list.json", "[1, 2]")
        .with("other.json", "{\"name\": 1}")
        .with("binary.json", b"\xFF\xFE\0")
        .with(
            "future.json",
            "{\"format\": 99, \"origin\": {\"hearth_version\": \"9.0.0\"}}",
        )
        .with("bad.xml", "<topology></topology>")
        .with("not.xml", "<topology");
    let good = fs::read_to_string(place.path("good.json")).unwrap();
    let place = place
        .with("truncated.json", &good[..good.len() / 2])
        .with("typo.json", good.replacen(':', ";", 1));
    fs::create_dir(place.path("folder")).unwrap();
    for name in [
        "empty",
        "list",
        "other",
        "binary",
        "future",
        "truncated",
        "typo",
        "missing",
    ] {
        let file = format!("{name}.json");
        says(
            &format!("file-{name}"),
            &place,
            &["predict", "64", "--profile", &file],
            2,
        );
    }
    says(
        "file-directory",
        &place,
        &["advise", "64", "--profile", "folder"],
        2,
    );
    says(
        "file-xml-empty",
        &place,
        &["machine", "import", "bad.xml"],
        2,
    );
    says("file-xml-cut", &place, &["machine", "show", "not.xml"], 2);
    says(
        "file-to-draw",
        &place,
        &["probe", "--from", "truncated.json"],
        2,
    );
}

#[test]
fn predictions() {
    let place = MachineFolder::new("predict").with_profile("p.json", MACHINE);
    let on = ["--profile", "p.json"];
    let cases: &[(&str, &[&str])] = &[
        ("relations", &["predict", "4K"]),
        (
            "pair",
            &[
                "predict",
                "1MiB",
                "--from",
                "0",
                "--to",
                "cpu4",
                "--carrier",
                "spin",
            ],
        ),
        (
            "stream",
            &[
                "predict",
                "64K",
                "--mode",
                "streaming",
                "--fresh",
                "--carrier",
                "worker",
            ],
        ),
        (
            "table",
            &["predict", "--table", "64,4K,0", "--from", "0", "--to", "2"],
        ),
    ];
    for (name, words) in cases {
        let words: Vec<&str> = words.iter().copied().chain(on).collect();
        let found = place.call(&words);
        // The machine of the tests is another one than this, and that is said.
        assert!(
            found.stderr.contains("is of another machine"),
            "{}",
            found.stderr
        );
        let path = root().join("crates/cli/tests/messages/machines");
        let path = path.join(format!("predict-{name}.txt"));
        let text = format!("$ hearth {}\n\n{}", words.join(" "), found.stdout);
        golden(&path, &text).unwrap_or_else(|complaint| panic!("{complaint}"));
        assert_eq!(found.code(), Some(0));
    }
}

/// A profile of two CPUs, whose pair has these states: times of a line and shares of time.
fn with_states(place: MachineFolder, name: &str, states: &[(f64, f64)]) -> MachineFolder {
    let place = place.with_profile(
        name,
        "1 package, 2 cores, l1d 32K per core, l3 32M per package",
    );
    let text = fs::read_to_string(place.path(name)).unwrap();
    let mut profile: Value = serde_json::from_str(&text).unwrap();
    let figure = |value: f64, low: f64, high: f64| {
        serde_json::json!({
            "value": value, "low": low, "high": high,
            "samples": 640, "discarded": 12, "provenance": "measured",
        })
    };
    let mean: f64 = states.iter().map(|(ns, share)| ns * share).sum();
    let (low, high) = (0.95 * states[0].0, 1.05 * states[states.len() - 1].0);
    let mut pair = serde_json::json!({
        "a": 0, "b": 1,
        "round_trip_ns": figure(2.0 * mean, 2.0 * low, 2.0 * high),
        "one_way_ns": figure(mean, low, high),
    });
    if states.len() > 1 {
        let state = |&(ns, share): &(f64, f64)| {
            serde_json::json!({
                "one_way_ns": figure(ns, 0.95 * ns, 1.05 * ns),
                "time_share": figure(share, share - 0.2, share + 0.2),
            })
        };
        pair["states"] = states.iter().map(state).collect();
    }
    profile["pairs"] = vec![pair].into();
    profile["origin"]["mode"] = "quick".into();
    place.with(name, profile.to_string())
}

const STATES: [(f64, f64); 2] = [(26.0, 0.3), (124.0, 0.7)];

#[test]
fn states_of_a_pair_are_told() {
    let place = with_states(MachineFolder::new("states"), "p.json", &STATES);
    let messages = root().join("crates/cli/tests/messages/machines");
    let cases: &[(&str, &[&str])] = &[
        ("predict", &["predict", "64", "--carrier", "worker"]),
        (
            "predict-pair",
            &[
                "predict",
                "64",
                "--carrier",
                "spin",
                "--from",
                "0",
                "--to",
                "1",
            ],
        ),
        ("advise", &["advise", "64", "--carrier", "worker"]),
    ];
    for (name, words) in cases {
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain(["--profile", "p.json"])
            .collect();
        let text = format!("$ hearth {}\n\n{}", words.join(" "), place.answer(&words));
        golden(&messages.join(format!("states-{name}.txt")), &text)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
    }
    let shown = place.answer(&["probe", "--from", "p.json", "--html", "page.html"]);
    let pairs = shown
        .split("\n\n")
        .find(|section| section.starts_with("one way between"));
    golden(
        &messages.join("states-probe.txt"),
        &format!("{}\n", pairs.unwrap()),
    )
    .unwrap_or_else(|complaint| panic!("{complaint}"));
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("Pairs with several states") && page.contains("30 % of the time"));
    let kept: Value =
        serde_json::from_str(&place.answer(&["probe", "--from", "p.json", "--json"])).unwrap();
    assert_eq!(kept["pairs"][0]["states"][1]["one_way_ns"]["value"], 124.0);
}

#[test]
fn states_of_a_pair_are_in_documents() {
    let place = with_states(MachineFolder::new("states-json"), "p.json", &STATES);
    let document = |words: &[&str]| -> Value {
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain(["--profile", "p.json", "--json"])
            .collect();
        serde_json::from_str(&place.answer(&words)).unwrap()
    };
    let predicted = document(&[
        "predict",
        "64",
        "--carrier",
        "worker",
        "--from",
        "0",
        "--to",
        "1",
    ]);
    let one = &predicted["predictions"][0];
    let states = one["states"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let mean: f64 = states
        .iter()
        .map(|s| number(&s["time_share"]) * number(&s["time_ns"]))
        .sum();
    assert!((mean / number(&one["time_ns"]) - 1.0).abs() < 1e-9, "{one}");
    let advised = document(&["advise", "64", "--carrier", "worker"]);
    let ranked = advised["ranked"].as_array().unwrap();
    assert_eq!(
        ranked
            .iter()
            .filter(|way| way.get("states").is_some())
            .count(),
        1
    );
    let program = root().join("tests/workloads/no-communication.isf");
    let placed = document(&["place", &program.display().to_string()]);
    let states = placed["states"].as_array().unwrap();
    assert_eq!(states.len(), 2);
    assert!(
        states.iter().all(|state| state["better"].is_null()),
        "{placed}"
    );
}

/// A maker that sends what it has summed up to a taker that sums up as much.
fn maker_and_taker(steps: u32) -> String {
    let sum = format!("for i = 1 .. {steps} do {{ sum := sum + i }}");
    format!(
        "type IMaker is interface(out integer value)
type ITaker is interface(in integer value)
component Maker presents IMaker {{
    constructor() {{ }}
    behaviour {{ sum = 0; {sum}; send sum on value }}
}}
component Taker presents ITaker {{
    constructor() {{ }}
    behaviour {{ receive number from value; sum = number; {sum} }}
}}
m = new Maker()
t = new Taker()
connect m.value to t.value
"
    )
}

#[test]
fn plans_say_which_state_they_depend_on() {
    let place = with_states(MachineFolder::new("states-place"), "p.json", &STATES)
        .with("some.isf", maker_and_taker(1000))
        .with("much.isf", maker_and_taker(5000));
    for (name, program) in [("some", "some.isf"), ("much", "much.isf")] {
        let words = ["place", program, "--why", "--profile", "p.json"];
        let text = format!("$ hearth {}\n\n{}", words.join(" "), place.answer(&words));
        let path = root().join("crates/cli/tests/messages/machines");
        golden(&path.join(format!("states-place-{name}.txt")), &text)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
    }
}

/// On a machine with one state nothing is said of states, in any form.
#[test]
fn one_state_is_not_told() {
    let place = with_states(MachineFolder::new("one-state"), "p.json", &[(94.6, 1.0)]);
    let program = root().join("tests/workloads/sender-receiver.isf");
    let program = program.display().to_string();
    for words in [
        &["predict", "64", "--carrier", "worker"][..],
        &["advise", "64", "--carrier", "worker"],
        &["place", &program, "--why"],
    ] {
        for form in [&[][..], &["--json"]] {
            let words = [words, &["--profile", "p.json"], form].concat();
            // Why and JSON are two forms.
            let words: Vec<&str> = match form.is_empty() {
                true => words,
                false => words.into_iter().filter(|word| *word != "--why").collect(),
            };
            let said = place.answer(&words);
            assert!(
                !said.contains("of the time") && !said.contains("state"),
                "{said}"
            );
        }
    }
    let shown = place.answer(&["probe", "--from", "p.json", "--html", "page.html"]);
    assert!(
        !shown.contains("of the time") && !shown.contains("several states"),
        "{shown}"
    );
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(!page.contains("several states"));
}

#[test]
fn predictions_for_programs_and_eyes() {
    let place = MachineFolder::new("predict-json");
    let words = [
        "predict",
        "--table",
        "64-4M",
        "--machine",
        "nmart-8",
        "--json",
        "--plot",
        "time.svg",
    ];
    let document: Value = serde_json::from_str(&place.answer(&words)).unwrap();
    let predictions = document["predictions"].as_array().unwrap();
    assert_eq!(predictions.len() % 17, 0, "17 sizes");
    for found in predictions {
        let number = |name: &str| found[name].as_f64().unwrap();
        assert!(number("low_ns") <= number("time_ns") && number("time_ns") <= number("high_ns"));
        let parts =
            number("write_ns") + number("faults_ns") + number("hand_over_ns") + number("read_ns")
                - number("hidden_ns");
        assert!((parts / number("time_ns") - 1.0).abs() < 1e-6);
    }
    let plot = fs::read_to_string(place.path("time.svg")).unwrap();
    assert!(plot.starts_with("<?xml") && plot.trim_end().ends_with("</svg>"));
    assert!(plot.contains("prefers-color-scheme"));
    assert!(plot.matches("<path").count() >= 3);
}

#[test]
fn advice() {
    let place = MachineFolder::new("advise");
    for (name, words) in [
        ("all", &["advise", "64", "--carrier", "spin"][..]),
        (
            "sender",
            &["advise", "4K", "--sender", "0", "--rate", "20000"],
        ),
        (
            "receiver",
            &[
                "advise",
                "1M",
                "--receiver",
                "7",
                "--mode",
                "streaming",
                "--all",
            ],
        ),
        (
            "one-choice",
            &["advise", "64", "--sender", "0", "--receiver", "1"],
        ),
    ] {
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain(["--machine", MACHINE])
            .collect();
        says(&format!("advise-{name}"), &place, &words, 0);
    }
    let large = "4 packages, 32 cores, 2 threads, 8 nodes, l2 1M per core, l3 32M per 8 cores";
    says(
        "advise-large",
        &place,
        &["advise", "4K", "--carrier", "spin", "--machine", large],
        0,
    );
    let same = place.answer(&[
        "advise",
        "64",
        "--machine",
        "1 package, 4 cores",
        "--sender",
        "0",
        "--json",
    ]);
    let document: Value = serde_json::from_str(&same).unwrap();
    assert_eq!(document["ranked"].as_array().unwrap().len(), 4);
    assert!(document["matters"].is_boolean());
}

#[test]
fn assumptions_are_told() {
    let place = MachineFolder::new("assumed");
    let program = root().join("tests/workloads/sender-receiver.isf");
    let program = program.display().to_string();
    for words in [["predict", "64"], ["advise", "64"], ["place", &program]] {
        let found = place.call(&words);
        assert_eq!((found.code(), found.stderr.as_str()), (Some(0), ""));
        // Once.
        assert_eq!(found.stdout.matches("stated").count(), 1, "{words:?}");
        assert!(found.stdout.contains("`hearth probe`"), "{}", found.stdout);
    }
    let found = place.call(&["predict", "64", "--json"]);
    let document: Value = serde_json::from_str(&found.stdout).unwrap();
    assert!(document["warning"].as_str().unwrap().contains("assumed"));
}

#[test]
fn machines_are_shown_and_exchanged() {
    let place = MachineFolder::new("show").with_profile("p.json", MACHINE);
    says("show-description", &place, &["machine", "show", MACHINE], 0);
    let offline = "3/1 cores, 2 threads, 1 memory nodes, memory 4G/2G/1G, offline 3";
    says("show-odd", &place, &["machine", "show", offline], 0);
    says("show-unknown", &place, &["machine", "show", "nmart8"], 2);
    says(
        "show-missing",
        &place,
        &["machine", "show", "there/p.json"],
        2,
    );
    says(
        "export",
        &place,
        &["machine", "export", "--hwloc", "out.xml", "p.json"],
        0,
    );
    let shown = place.answer(&["machine", "show", MACHINE]);
    assert_eq!(place.answer(&["machine", "show", "p.json"]), shown);
    assert_eq!(place.answer(&["machine", "show", "out.xml"]), shown);
    let here = place.answer(&["machine", "show"]);
    place.answer(&["probe", "--capture", "capture.json"]);
    let captured = place.answer(&["machine", "show", "capture.json"]);
    let parts = |text: &str| text.split("\nmissing").next().unwrap().to_owned();
    assert_eq!(parts(&captured), parts(&here));
}

#[test]
fn captures_name_nobody() {
    let place = MachineFolder::new("capture");
    let said = place.answer(&["probe", "--capture", "capture.json"]);
    assert!(said.contains("Not in it: host and user names"), "{said}");
    let text = fs::read_to_string(place.path("capture.json")).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    // A short name may be part of a word.
    if host.len() > 6 {
        assert!(!text.contains(host));
    }
    // Some processors have an instruction `serialize`.
    assert!(!text.contains("\\nSerial") && !text.contains("_serial"));
    assert!(!text.contains("Name:"), "the status names the program");
}

#[test]
fn a_page_of_a_profile() {
    let place =
        MachineFolder::new("page").with_profile("p.json", "8 packages, 4 cores, l2 1M per core");
    let said = place.answer(&["probe", "--from", "p.json", "--html", "page.html"]);
    assert!(said.contains("nothing was measured") && said.contains("The page is in page.html."));
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("prefers-color-scheme"));
    assert!(page.contains("Nothing was measured") && page.contains("package 7"));
    let json = place.answer(&["probe", "--from", "p.json", "--json"]);
    assert_eq!(json, fs::read_to_string(place.path("p.json")).unwrap());
}

#[test]
fn places_that_cannot_be_written() {
    let place = MachineFolder::new("unwritable").with("file", "");
    fs::create_dir(place.path("folder")).unwrap();
    says(
        "write-no-directory",
        &place,
        &["probe", "-o", "no/such/p.json"],
        3,
    );
    says("write-directory", &place, &["probe", "-o", "folder"], 3);
    says(
        "write-page",
        &place,
        &["probe", "--html", "no/such/page.html"],
        3,
    );
    let mut below_a_file = place.command(&["probe"]);
    below_a_file.env("HEARTH_PROFILE", place.path("file").join("p.json"));
    let found = outcome(&mut below_a_file, None).unwrap();
    assert_eq!(found.code(), Some(3));
    assert!(
        found.stderr.starts_with("hearth: cannot write "),
        "{}",
        found.stderr
    );
    let mut homeless = place.command(&["probe"]);
    homeless.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    let found = outcome(&mut homeless, None).unwrap();
    assert_eq!(found.code(), Some(3));
    assert!(
        found.stderr.contains("name one with HEARTH_PROFILE"),
        "{}",
        found.stderr
    );
    // Root may write anywhere, so that there is nothing to see.
    fs::set_permissions(place.path("folder"), fs::Permissions::from_mode(0o555)).unwrap();
    let writable = fs::write(place.path("folder/trial"), "").is_ok();
    if !writable {
        let found = place.call(&["probe", "-o", "folder/p.json"]);
        assert_eq!(found.code(), Some(3));
        assert!(
            found.stderr.contains("permission denied"),
            "{}",
            found.stderr
        );
    }
    fs::set_permissions(place.path("folder"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Starts a probe and interrupts it as soon as it measures.
fn interrupted(place: &MachineFolder, signal: &str) -> Outcome {
    let mut command = place.command(&["probe", "--cpus", &first_cpu(), "-o", "p.json"]);
    let mut probe = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has a second thread once it listens for signals; until then one would simply end it.
    let tasks = format!("/proc/{}/task", probe.id());
    while fs::read_dir(&tasks).map_or(0, Iterator::count) < 2 {
        assert!(probe.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = probe.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap()
            .success()
    );
    let output = probe.wait_with_output().unwrap();
    Outcome {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A CPU that this process may use.
fn first_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status
        .lines()
        .filter_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = lines.next().unwrap().trim();
    list.split(['-', ',']).next().unwrap().to_owned()
}

#[test]
fn an_interrupted_probe_leaves_the_older_profile() {
    let place = MachineFolder::new("interrupted").with("p.json", "older");
    let found = interrupted(&place, "-INT");
    assert_eq!(found.code(), Some(130), "{}", found.stderr);
    assert_eq!(found.stderr, "hearth: interrupted; p.json is unchanged\n");
    assert_eq!(fs::read_to_string(place.path("p.json")).unwrap(), "older");
    let names = fs::read_dir(&place.folder).unwrap().count();
    assert_eq!(names, 1, "nothing is left lying about");
    fs::remove_file(place.path("p.json")).unwrap();
    let found = interrupted(&place, "-TERM");
    assert_eq!(found.code(), Some(143), "{}", found.stderr);
    assert_eq!(found.stderr, "hearth: interrupted; nothing was written\n");
}

/// The fences called `console` in the user's page: a command, and what it says. Blessing writes
/// anew what they say.
#[test]
fn the_page_shows_what_the_command_says() {
    let place = MachineFolder::new("document");
    let path = root().join("docs/machine.md");
    let text = fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    let mut lines = text.lines();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        found.push_str(&format!("{line}\n"));
        if line != "```console" {
            continue;
        }
        let command = lines.next().expect("a fence has a command");
        let words = command.strip_prefix("$ hearth ").expect("it calls hearth");
        let words: Vec<&str> = words
            .split(' ')
            .map(|word| word.trim_matches('\''))
            .collect();
        found.push_str(&format!("{command}\n{}```\n", place.answer(&words)));
        lines
            .by_ref()
            .find(|line| *line == "```")
            .expect("a fence ends");
        commands += 1;
    }
    assert!(commands >= 4);
    golden(&path, &found).unwrap_or_else(|complaint| panic!("{complaint}"));
}

#[test]
#[ignore = "deep: measures for ten seconds and more"]
fn a_whole_probe_on_one_cpu() {
    let place = MachineFolder::new("whole");
    let mut command = Command::new("taskset");
    let hearth = place.command(&[]);
    command
        .args(["-c", &first_cpu()])
        .arg(hearth.get_program())
        .args(["probe", "--quick", "--html", "page.html"])
        .current_dir(&place.folder)
        .env("HEARTH_PROFILE", place.path("kept/p.json"));
    let found = outcome(&mut command, None).unwrap();
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    assert!(
        found
            .stdout
            .contains("transfers between cores need two cores"),
        "{}",
        found.stdout
    );
    let profile = fs::read_to_string(place.path("kept/p.json")).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    assert!(profile["pairs"].as_array().unwrap().is_empty());
    assert!(!profile["curve"].as_array().unwrap().is_empty());
    assert!(
        !found.stderr.contains('\r'),
        "no bar where there is no terminal"
    );
    let found = place.call(&["predict", "4K", "--profile", "kept/p.json"]);
    assert_eq!((found.code(), found.stderr.as_str()), (Some(0), ""));
}
