//! XML for hwloc: read back by us, and by hwloc where it is installed.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use hearth_machine::hwloc::{Extras, Matrix, MatrixOf, Meaning, MemoryFigure, export, import};
use hearth_machine::synthetic::EXAMPLES;
use hearth_machine::topology::{OsNode, OsThread, Topology};
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
    let figures = nodes.iter().map(|node| MemoryFigure {
        node: *node,
        from: threads.clone(),
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
        ("<topology version=\"2.0\"><object", "no XML"),
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
