//! XML for hwloc: read back by us, and by hwloc where it is installed.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use fastrand::Rng;
use hearth_machine::hwloc::{Extras, Matrix, MatrixOf, Meaning, MemoryFigure, export, import};
use hearth_machine::profile::{Figure, Level, LevelCost, NodeDistances, PairTransfer, Profile};
use hearth_machine::synthetic::EXAMPLES;
use hearth_machine::topology::{OsNode, OsThread, Thread, Topology};
use support::{MACHINES, machine};

fn machines() -> Vec<(&'static str, Topology)> {
    let ours = MACHINES
        .iter()
        .map(|(name, text, _)| (*name, machine(text)));
    ours.chain(EXAMPLES.iter().map(|(name, text)| (*name, machine(text))))
        .collect()
}

fn extras(machine: &Topology) -> Extras {
    let threads: Vec<OsThread> = machine.threads().iter().map(|thread| thread.os).collect();
    let row = |i: usize| (0..threads.len()).map(move |j| 10.25 * (i as f64 - j as f64).abs());
    let rows: Vec<Vec<f64>> = (0..threads.len()).map(|i| row(i).collect()).collect();
    let latencies = Matrix::latencies_ns("HearthPair", MatrixOf::Threads(threads.clone()), &rows);
    let nodes: Vec<OsNode> = machine.nodes().iter().map(|node| node.os).collect();
    let mut all = threads.clone();
    all.sort_unstable();
    let figures = nodes.iter().map(|node| MemoryFigure {
        node: *node,
        from: all.clone(),
        meaning: Meaning::Latency,
        value: 90 + u64::from(node.0),
    });
    Extras {
        matrices: vec![latencies.unwrap()],
        memory: figures.collect(),
        about: vec![("Note".into(), "a \"<quoted>\" & told".into())],
    }
}

#[test]
fn what_is_written_is_read_back() {
    for (name, machine) in machines() {
        let extras = extras(&machine);
        let read = import(&export(&machine, &extras).unwrap()).unwrap();
        assert_eq!(read.topology, machine, "{name}");
        assert_eq!(read.notes, Vec::<String>::new(), "{name}");
        assert_eq!(read.extras.memory, extras.memory, "{name}");
        assert_eq!(read.extras.about, extras.about, "{name}");
        // hwloc has no matrix of one object.
        if machine.threads().len() > 1 {
            assert_eq!(read.extras.matrices, extras.matrices, "{name}");
        }
    }
}

/// A profile of two nodes with one pair not measured.
fn profile() -> Profile {
    let machine = machine("2 packages, 2 cores, memory 4G, distances 10 20/20 10");
    let mut profile = Profile::assumed(machine);
    let figure = |ns: f64| Figure::measured(ns, ns * 0.9, ns * 1.1, 50, 0);
    for (a, b, ns) in [
        (0, 1, 40.0),
        (0, 2, 120.5),
        (1, 2, 120.0),
        (0, 3, 121.0),
        (2, 3, 41.0),
    ] {
        let (a, b) = (Thread(a), Thread(b));
        let pair = PairTransfer::from_round_trip(a, b, figure(2.0 * ns));
        profile.pairs.push(pair);
    }
    let seconds = |rows: [[f64; 2]; 2]| rows.map(|row| row.map(|s| Some(figure(s))).to_vec());
    let seconds = seconds([[2.0, 3.0], [3.5, 2.5]]).to_vec();
    profile.node_distances = Some(NodeDistances::from_measured(seconds, None));
    profile.levels.retain(|cost| cost.level != Level::Memory);
    profile.levels.push(LevelCost {
        level: Level::Memory,
        read_ns: figure(90.0),
        write_ns: None,
    });
    profile.host.cpu_model = Some("Some Processor".into());
    profile
}

#[test]
fn a_profiles_measurements_go_along() {
    let profile = profile();
    let extras = Extras::of(&profile);
    let [pairs, nodes] = &extras.matrices[..] else {
        panic!("two matrices: {:?}", extras.matrices);
    };
    // The pair 1, 3 is missing: one of the two cannot be in the matrix.
    assert_eq!(pairs.name, "HearthOneWay_ps");
    let threads = [0, 1, 2].map(OsThread).to_vec();
    assert_eq!(pairs.of, MatrixOf::Threads(threads));
    assert_eq!(
        pairs.rows,
        [
            [0, 40_000, 120_500],
            [40_000, 0, 120_000],
            [120_500, 120_000, 0]
        ]
    );
    assert_eq!(nodes.rows, [[10_000, 15_000], [14_000, 10_000]]);
    // Memory's bandwidth was only assumed.
    let latencies: Vec<u64> = extras.memory.iter().map(|figure| figure.value).collect();
    assert_eq!(latencies, [90, 135, 126, 90]);
    assert!(
        extras
            .about
            .contains(&("CPUModel".into(), "Some Processor".into()))
    );

    let text = export(&profile.topology, &extras).unwrap();
    let read = import(&text).unwrap();
    assert_eq!(
        (read.topology, read.extras),
        (profile.topology, extras.clone())
    );
    if let Some(theirs) = lstopo(&text) {
        let read = import(&theirs).unwrap();
        assert_eq!(read.extras.matrices, extras.matrices);
        assert_eq!(read.extras.memory, extras.memory);
    }

    let nothing = Extras::of(&Profile::assumed(machine("2 cores")));
    assert!(nothing.matrices.is_empty() && nothing.memory.is_empty());
}

/// Runs lstopo on XML and returns its XML; nothing if it is not installed.
fn lstopo(text: &str) -> Option<String> {
    let child = Command::new("lstopo-no-graphics")
        .args(["--if", "xml", "-i", "-", "--of", "xml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    let mut input = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "lstopo: {complaints}"
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn lstopo_reads_ours_and_we_read_its() {
    for (name, machine) in machines() {
        let extras = extras(&machine);
        let Some(theirs) = lstopo(&export(&machine, &extras).unwrap()) else {
            // A line in the test's output is all that a test can say.
            assert!(
                writeln!(
                    std::io::stderr(),
                    "skipped: no lstopo; apt-get install hwloc-nox"
                )
                .is_ok()
            );
            return;
        };
        let read = import(&theirs).unwrap_or_else(|error| panic!("{name}: {error}\n{theirs}"));
        assert_eq!(read.topology, machine, "{name}\n{theirs}");
        if machine.threads().len() > 1 {
            assert_eq!(read.extras.matrices, extras.matrices, "{name}");
        }
        assert_eq!(read.extras.memory, extras.memory, "{name}");
    }
}

#[test]
fn other_texts_are_refused_with_the_next_step() {
    let cases = [
        ("", "without `topology`"),
        ("<html/>", "not what hwloc 2 writes"),
        (
            "<topology version=\"3.0\"></topology>",
            "export-xml-flags v2",
        ),
        ("<topology version=\"2.0\"><object", "not XML"),
        (
            "<topology version=\"2.0\"><object type=\"Machine\">",
            "ends too early",
        ),
        (
            "<topology version=\"2.0\"><object type=\"PU\"/></topology>",
            "no readable `os_index`",
        ),
        (
            "<topology version=\"2.0\"></topology>",
            "no hardware thread",
        ),
    ];
    for (text, expected) in cases {
        let error = import(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let machine = machine("2 cores");
    let text = export(&machine, &extras(&machine)).unwrap();
    for end in 0..text.len() {
        // Shortened anywhere: an error or, when only the last blank is gone, the same.
        if text.is_char_boundary(end) && import(&text[..end]).is_ok() {
            assert!(end + 1 >= text.len(), "cut at {end}");
        }
    }
    let wrong = Extras {
        matrices: vec![Matrix {
            name: "short".into(),
            of: MatrixOf::Nodes(vec![OsNode(0), OsNode(5)]),
            meaning: Meaning::Latency,
            rows: vec![vec![1, 2], vec![2, 1]],
        }],
        ..Extras::default()
    };
    assert!(
        export(&machine, &wrong)
            .unwrap_err()
            .to_string()
            .contains("`short` must be square")
    );
}

#[test]
fn damaged_texts_are_refused_or_are_other_machines() {
    let machine = machine("2 packages, 2 cores, 2 threads, memory 4G, l3 8M per package");
    let text = export(&machine, &extras(&machine)).unwrap();
    let mut rng = Rng::with_seed(5);
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u32(..3) {
                0 => bytes[at] = *rng.choice(b"0123456789abcdef<>/\"= ").unwrap(),
                1 => _ = bytes.drain(at..(at + rng.usize(..60)).min(bytes.len())),
                _ => bytes.insert(at, *rng.choice(b"0f<>\"").unwrap()),
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        match import(&text) {
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
            Ok(read) => {
                // A node that lies across a package is more than hwloc's tree can say.
                let again = import(&export(&read.topology, &Extras::default()).unwrap()).unwrap();
                let count = read.topology.threads().len();
                assert_eq!(again.topology.threads().len(), count);
            }
        }
    }
    assert!(refused > 50, "{refused}");
}
