//! METIS's `.graph`: writing, reading, and bad texts.

use fastrand::Rng;
use hearth_place::forms::{
    Measure, Reading, Vertices, Ways, WriteError, read_matrix, read_metis, write_metis,
};
use hearth_place::graph::{Component, ComponentId, Connection, Graph};

fn three() -> Graph {
    let mut graph = Graph::new();
    let ids = [("maker", 800.0), ("relay", 0.0), ("taker", 900.0)]
        .map(|(name, work)| graph.add(Component::new(name).work_ns(work)));
    graph.components[1].heap_bytes = 4096.0.into();
    let connect = |from: usize, to: usize, messages: f64| {
        Connection::new(ids[from], ids[to])
            .messages(messages)
            .bytes(64.0)
    };
    graph.connect(connect(2, 1, 2.0));
    graph.connect(connect(0, 1, 3.0));
    graph.connect(connect(1, 0, 1.0));
    graph.connect(connect(0, 2, 0.0));
    graph.connect(connect(1, 1, 5.0));
    graph
}

#[test]
fn graphs_as_metis_reads_them() {
    assert_eq!(
        write_metis(&three(), Measure::Bytes, Vertices::Work).unwrap(),
        "% vertex weight 1 is 1 ns of work in a round\n\
         % edge weight 1 is 1 bytes in a round, both ways\n\
         % vertex 1 is maker\n\
         % vertex 2 is relay\n\
         % vertex 3 is taker\n\
         3 2 011\n\
         800 2 256\n\
         0 1 256 3 128\n\
         900 2 128\n"
    );
    assert_eq!(
        write_metis(&three(), Measure::Messages, Vertices::WorkAndHeap).unwrap(),
        "% vertex weight 1 is 1 ns of work in a round\n\
         % second vertex weight 1 is 1 bytes of heap\n\
         % edge weight 1 is 1 messages in a round, both ways\n\
         % vertex 1 is maker\n\
         % vertex 2 is relay\n\
         % vertex 3 is taker\n\
         3 2 011 2\n\
         800 0 2 4\n\
         0 4096 1 4 3 2\n\
         900 0 2 2\n"
    );
    let mut idle = three();
    idle.components.push(Component::new("lone"));
    for component in &mut idle.components {
        component.work_ns = 0.0.into();
    }
    let text = write_metis(&idle, Measure::Messages, Vertices::Work).unwrap();
    assert!(text.ends_with("4 2 001\n2 4\n1 4 3 2\n2 2\n\n"), "{text}");
    let read = read_metis(&text, &Reading::default()).unwrap();
    let names: Vec<&str> = read.graph.components.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["maker", "relay", "taker", "lone"]);
}

#[test]
fn numbers_that_are_not_whole_or_large_are_scaled() {
    let mut graph = three();
    graph.connections[0].messages = 0.001.into();
    let text = write_metis(&graph, Measure::Messages, Vertices::Work).unwrap();
    assert!(
        text.contains("% edge weight 1 is 0.000004 messages in a round"),
        "{text}"
    );
    assert!(
        text.contains("\n800 2 1000000\n0 1 1000000 3 250\n"),
        "{text}"
    );
    // An almost empty connection is still an edge.
    graph.connections[0].messages = 1e-300.into();
    let text = write_metis(&graph, Measure::Messages, Vertices::Work).unwrap();
    assert!(text.ends_with("900 2 1\n"), "{text}");
    // METIS adds in 32 bits.
    for large in [1e15, 1e300, f64::MIN_POSITIVE / 8.0] {
        for connection in &mut graph.connections {
            connection.messages = large.into();
        }
        for component in &mut graph.components {
            component.work_ns = large.into();
        }
        let text = write_metis(&graph, Measure::Messages, Vertices::Work).unwrap();
        let body = text.lines().filter(|line| !line.starts_with('%')).skip(1);
        let numbers = body
            .flat_map(str::split_whitespace)
            .map(|word| word.parse::<i32>().unwrap());
        assert!(
            numbers.map(i64::from).sum::<i64>() < i64::from(i32::MAX),
            "{text}"
        );
        assert!(read_metis(&text, &Reading::default()).is_ok(), "{text}");
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let mut quiet = three();
    quiet.connections.clear();
    let error = write_metis(&quiet, Measure::Bytes, Vertices::Work).unwrap_err();
    assert_eq!(error, WriteError::NoEdges);
    assert!(error.to_string().contains("deal the components out evenly"));
    let mut large = three();
    large.connections[0].bytes = f64::MAX.into();
    let error = write_metis(&large, Measure::Bytes, Vertices::Work).unwrap_err();
    assert!(error.to_string().contains("`relay` and `taker`"), "{error}");
}

/// The page shows one graph in both forms.
#[test]
fn what_the_page_shows_is_read() {
    let page = include_str!("../../../docs/place.md");
    let mut fences = page.split("```text\n").skip(1).map(|fence| {
        let (text, _) = fence.split_once("```").expect("a fence ends");
        text
    });
    let (matrix, metis) = (fences.next().unwrap(), fences.next().unwrap());
    let from_matrix = read_matrix(matrix, Ways::Together, &Reading::default()).unwrap();
    let from_metis = read_metis(metis, &Reading::default()).unwrap();
    assert_eq!(from_matrix.graph.connections, from_metis.graph.connections);
    let again = write_metis(&from_metis.graph, Measure::Bytes, Vertices::Work);
    assert_eq!(again.unwrap(), metis);
}

#[test]
fn what_others_write_is_read() {
    // Sizes, three weights, an empty line of comments that only we allow, no names.
    let text = "%\n% of somebody\n2 1 111 3\n7 10 20 30 2 6\n% in between\n8 11 21 31 1 6\n\n";
    let reading = Reading {
        measure: Measure::Messages,
        ..Reading::default()
    };
    let read = read_metis(text, &reading).unwrap();
    let [a, b] = read.graph.components.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("c0", "c1"));
    assert_eq!((a.work_ns.value, b.heap_bytes.value), (10.0, 21.0));
    let messages: Vec<f64> = read
        .graph
        .connections
        .iter()
        .map(|c| c.messages.value)
        .collect();
    assert_eq!(messages, [3.0, 3.0]);
    assert_eq!(
        read.notes,
        [
            "the sizes of vertices are left out: nothing in a graph is like them",
            "of 3 weights of each vertex the first two are read, as work and heap",
        ]
    );
    // No weights at all; names of which one is missing.
    let text = "% vertex 1 is a\n2 1\n2\n1\n";
    let read = read_metis(text, &reading).unwrap();
    assert_eq!(read.graph.components[0].name, "c0");
    assert_eq!(read.notes.len(), 1);
    assert_eq!(read.graph.connections[0].messages.value, 0.5);
}

#[test]
fn random_graphs_come_back() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..300 {
        let count = rng.u32(2..20);
        let mut graph = Graph::new();
        for at in 0..count {
            let name = format!(
                "{at}: {}",
                *rng.choice(&["a b", "\\", "%\n", "é", " is "]).unwrap()
            );
            let component = Component::new(name).work_ns(f64::from(rng.u32(0..9)));
            graph.add(component.heap_bytes(f64::from(rng.u32(0..9))));
        }
        graph.connect(Connection::new(ComponentId(0), ComponentId(1)));
        for _ in 0..rng.u32(0..60) {
            let (from, to) = (rng.u32(0..count), rng.u32(0..count));
            let connection = Connection::new(ComponentId(from), ComponentId(to));
            let messages = f64::from(rng.u32(0..1000));
            graph.connect(
                connection
                    .messages(messages)
                    .bytes(f64::from(rng.u32(0..50))),
            );
        }
        for vertices in [Vertices::Work, Vertices::WorkAndHeap] {
            let text = write_metis(&graph, Measure::Bytes, vertices).unwrap();
            let read = read_metis(&text, &Reading::default()).unwrap();
            assert_eq!(read.notes, Vec::<String>::new());
            assert_eq!(
                write_metis(&read.graph, Measure::Bytes, vertices).unwrap(),
                text
            );
            let names = |graph: &Graph| -> Vec<String> {
                graph.components.iter().map(|c| c.name.clone()).collect()
            };
            assert_eq!(names(&read.graph), names(&graph));
        }
        // Scaled: the values read back differ by less than half a unit each.
        for connection in &mut graph.connections {
            connection.messages.value += 0.125;
            connection.bytes.value += 0.125;
        }
        let text = write_metis(&graph, Measure::Bytes, Vertices::Work).unwrap();
        let read = read_metis(&text, &Reading::default()).unwrap();
        let total = |graph: &Graph| -> f64 {
            let links = graph.connections.iter().filter(|c| c.from != c.to);
            links.map(|c| Measure::Bytes.of(c)).sum()
        };
        let (before, after) = (total(&graph), total(&read.graph));
        assert!((before - after).abs() <= 1e-3 * before, "{before} {after}");
    }
}

#[test]
fn bad_texts_are_told_with_place_and_next_step() {
    let cases = [
        (
            "% x\n\n",
            "line 2, column 1: there is nothing in it: name a file that has components",
        ),
        (
            "3\n",
            "line 1, column 1: a heading has two to four numbers and this one 1: write vertices, \
             edges, and if there are weights the format and how many a vertex has",
        ),
        (
            "0 0\n",
            "line 1, column 1: `0` is not a valid number of vertices: write a whole number from 1 to 2147483647",
        ),
        (
            "2 1 012\n2 1\n1 1\n",
            "line 1, column 5: `012` is not a format: write up to three digits 0 or 1, for sizes and \
             weights of vertices and weights of edges",
        ),
        (
            "2 1 001 1\n2 1\n1 1\n",
            "line 1, column 9: a number of weights is given, and the format says that vertices have \
             none: write a format such as `011`, or leave the number out",
        ),
        (
            "2 1\n2\n",
            "line 2, column 2: the heading says 2 vertices, and 1 have a line: write a line for \
             each, an empty one for a vertex without edges and weights",
        ),
        (
            "2 1\n2\n1\n1\n",
            "line 4, column 1: the heading says 2 vertices, and 3 have a line: write a line for \
             each, an empty one for a vertex without edges and weights",
        ),
        (
            "2 1\n3\n1\n",
            "line 2, column 1: `3` is not a valid vertex of this graph: write a whole number from 1 to 2",
        ),
        (
            "2 1 001\n2 +5\n1 5\n",
            "line 2, column 3: `+5` is not a valid weight of an edge: write a whole number from 1 to 2147483647",
        ),
        (
            "2 1 001\n2 5\n1\n",
            "line 3, column 2: the line ends without an edge's weight: add it, or mend the heading",
        ),
        (
            "2 1 010\n\n5 1\n",
            "line 2, column 1: the line ends without a vertex's weight: add it, or mend the heading",
        ),
        (
            "2 1\n1\n\n",
            "line 2, column 1: vertex 1 has an edge to itself, which the form does not allow: \
             leave it out",
        ),
        (
            "2 1\n2 2\n1\n",
            "line 2, column 3: vertex 1 names 2 twice: write one edge with the sum of the weights",
        ),
        (
            "2 1\n2\n1 1\n",
            "line 3, column 3: vertex 2 names 1 twice: write one edge with the sum of the weights",
        ),
        (
            "2 1\n2\n\n",
            "line 2, column 1: vertex 1 names 2, and 2 does not name 1 with the same weight: \
             write each edge at both ends",
        ),
        (
            "2 1 1\n2 5\n1 6\n",
            "line 2, column 1: vertex 1 names 2, and 2 does not name 1 with the same weight: \
             write each edge at both ends",
        ),
        (
            "3 1\n2\n1 3\n2\n",
            "line 4, column 2: the heading says 1 edges, and there are 2: mend the heading; an \
             edge counts once, though both ends name it",
        ),
    ];
    for (text, wanted) in cases {
        let error = read_metis(text, &Reading::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the METIS graph cannot be read at {wanted}"),
            "{text}"
        );
    }
}

#[test]
fn damaged_texts_are_refused_or_are_other_graphs() {
    let text = write_metis(&three(), Measure::Bytes, Vertices::WorkAndHeap).unwrap();
    let mut rng = Rng::with_seed(5);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..5000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u32(..3) {
                0 => bytes[at] = *rng.choice(b"0123456789.-% \\\n\r\t").unwrap(),
                1 => _ = bytes.drain(at..(at + rng.usize(..6)).min(bytes.len())),
                _ => bytes.insert(at, *rng.choice(b"0123 \n\xc3").unwrap()),
            }
        }
        match read_metis(&String::from_utf8_lossy(&bytes), &Reading::default()) {
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
            Ok(done) => {
                read += 1;
                done.graph.check().unwrap();
            }
        }
    }
    assert!(refused > 500 && read > 100, "{refused} {read}");
}

#[test]
fn a_hundred_thousand_components_are_written_and_read() {
    let count = 100_000;
    let mut graph = Graph::new();
    for at in 0..count {
        graph.add(Component::new(format!("c{at}")).work_ns(100.0));
        if at > 0 {
            graph.connect(Connection::new(ComponentId(0), ComponentId(at)));
        }
    }
    let text = write_metis(&graph, Measure::Messages, Vertices::Work).unwrap();
    let reading = Reading {
        measure: Measure::Messages,
        ..Reading::default()
    };
    let read = read_metis(&text, &reading).unwrap();
    assert_eq!(read.graph.components, graph.components);
    // The mistake is at the end of a line of half a million characters.
    let broken = text.replacen(" 100000 1\n", " 100000 x\n", 1);
    let error = read_metis(&broken, &reading).unwrap_err().to_string();
    assert!(
        error.contains("`x` is not a valid weight of an edge"),
        "{error}"
    );
}
