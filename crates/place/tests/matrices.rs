//! The communication matrix: writing, reading, and bad texts.

use fastrand::Rng;
use hearth_place::forms::{
    MATRIX_COMPONENTS_MAX, Measure, ReadError, Reading, Ways, WriteError, read_matrix, read_names,
    write_matrix, write_names,
};
use hearth_place::graph::{Basis, Component, ComponentId, Connection, Graph};

fn three() -> Graph {
    let mut graph = Graph::new();
    let ids = ["maker", "relay", "taker"].map(|name| graph.add(Component::new(name)));
    let connect = |from: usize, to: usize, messages: f64, bytes: f64| {
        Connection::new(ids[from], ids[to])
            .messages(messages)
            .bytes(bytes)
    };
    graph.connect(connect(0, 1, 3.0, 64.0));
    graph.connect(connect(0, 1, 1.0, 8.0));
    graph.connect(connect(1, 0, 0.5, 8.0));
    graph.connect(connect(1, 2, 2.0, 1.25));
    graph.connect(connect(2, 2, 7.0, 7.0));
    graph
}

#[test]
fn matrices_as_treematch_reads_them() {
    let write = |measure, ways| write_matrix(&three(), measure, ways).unwrap();
    assert_eq!(
        write(Measure::Bytes, Ways::Apart),
        "0 200 0\n4 0 2.5\n0 0 0\n"
    );
    assert_eq!(
        write(Measure::Bytes, Ways::Together),
        "0 204 0\n204 0 2.5\n0 2.5 0\n"
    );
    assert_eq!(
        write(Measure::Messages, Ways::Together),
        "0 4.5 0\n4.5 0 2\n0 2 0\n"
    );
    let envelope_bytes = 64.0;
    assert_eq!(
        write(Measure::Volume { envelope_bytes }, Ways::Apart),
        "0 456 0\n36 0 130.5\n0 0 0\n"
    );
    assert_eq!(
        write_matrix(&Graph::new(), Measure::Bytes, Ways::Apart),
        Ok(String::new())
    );
}

#[test]
fn what_is_read_has_the_numbers_and_says_who_says_them() {
    let reading = Reading {
        measure: Measure::Bytes,
        message_bytes: 32.0,
        names: ["x", "y"].map(String::from).to_vec(),
    };
    let read = read_matrix("# by hand\n\n 1e1\t64 \r\n 16 0", Ways::Apart, &reading).unwrap();
    assert_eq!(read.graph.components[1].name, "y");
    let [there, back] = read.graph.connections.as_slice() else {
        panic!("{:?}", read.graph.connections);
    };
    assert_eq!((there.from, there.to), (ComponentId(0), ComponentId(1)));
    assert_eq!(
        (there.messages.value, there.messages.basis),
        (2.0, Basis::Declared)
    );
    assert_eq!(
        (there.bytes.value, there.bytes.basis),
        (32.0, Basis::Assumed)
    );
    assert_eq!(back.messages.value, 0.5);
    assert_eq!(
        read.notes,
        [
            "1 number on the diagonal is left out: where a component is placed does not change \
             what it sends to itself"
        ]
    );
    let nameless = Reading {
        names: Vec::new(),
        ..reading
    };
    let read = read_matrix("0 2\n2 0", Ways::Together, &nameless).unwrap();
    assert_eq!(read.graph.components[0].name, "c0");
    // Half of what goes between the two goes each way.
    let sum = |c: &Connection| c.messages.value * c.bytes.value;
    assert_eq!(
        read.graph.connections.iter().map(sum).collect::<Vec<_>>(),
        [1.0, 1.0]
    );
}

#[test]
fn names_go_beside_it() {
    let mut graph = three();
    graph.components[0].name = "a\\b\n".into();
    let names = write_names(&graph);
    assert_eq!(names, "a\\\\b\\u{a}\nrelay\ntaker\n");
    assert_eq!(read_names(&names), ["a\\b\n", "relay", "taker"]);
    assert_eq!(read_names("C:\\dir\n"), ["C:\\dir"]);
}

#[test]
fn random_graphs_come_back() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..200 {
        let count = rng.u32(1..20);
        let mut graph = Graph::new();
        for at in 0..count {
            graph.add(Component::new(format!("component {at}")));
        }
        for _ in 0..rng.u32(0..60) {
            let (from, to) = (rng.u32(0..count), rng.u32(0..count));
            let messages = rng.f64() * 10f64.powi(rng.i32(-9..9));
            let connection = Connection::new(ComponentId(from), ComponentId(to));
            graph.connect(
                connection
                    .messages(messages)
                    .bytes(f64::from(rng.u32(0..5000))),
            );
        }
        let names = read_names(&write_names(&graph));
        for ways in [Ways::Apart, Ways::Together] {
            let text = write_matrix(&graph, Measure::Bytes, ways).unwrap();
            // A power of two, so that nothing is rounded.
            let reading = Reading {
                message_bytes: 64.0,
                names: names.clone(),
                ..Reading::default()
            };
            let read = read_matrix(&text, ways, &reading).unwrap();
            assert_eq!(read.notes, Vec::<String>::new());
            assert_eq!(
                write_matrix(&read.graph, Measure::Bytes, ways).unwrap(),
                text
            );
            let of = |graph: &Graph| graph.components.clone();
            assert_eq!(of(&read.graph), of(&graph));
        }
    }
}

fn complaint(text: &str, ways: Ways) -> String {
    read_matrix(text, ways, &Reading::default())
        .unwrap_err()
        .to_string()
}

#[test]
fn bad_texts_are_told_with_place_and_next_step() {
    let cases = [
        (
            "",
            "line 1, column 1: there is nothing in it: name a file that has components",
        ),
        (
            "0 1\n1 O\n",
            "line 2, column 3: `O` is not a number of at least 0: write one, such as `0` or `1.5`",
        ),
        (
            "0 -1\n1 0\n",
            "line 1, column 3: `-1` is not a number of at least 0: write one, such as `0` or `1.5`",
        ),
        (
            "0 inf\n1 0\n",
            "line 1, column 3: `inf` is not a number of at least 0: write one, such as `0` or `1.5`",
        ),
        (
            "# x\n0 1\n1 0 5\n",
            "line 3, column 6: row 2 has 3 and the first row 2 numbers: give each row one number \
             for each component",
        ),
        (
            "0 1\n",
            "line 1, column 4: the matrix has 1 rows of 2 numbers: write as many rows as columns",
        ),
        (
            "0 1\n1 0\n2 2\n3 3\n",
            "line 3, column 1: the matrix has 3 rows of 2 numbers: write as many rows as columns",
        ),
        (
            "0 5\n4 0\n",
            "line 1, column 3: row 1, column 2 holds 5, and row 2, column 1 4: write the same \
             number, or read the matrix as one in which rows send to columns",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(
            complaint(text, Ways::Together),
            format!("the communication matrix cannot be read at {wanted}")
        );
    }
    assert!(complaint("é 0\n0 ü", Ways::Apart).contains("column 1: `é`"));
    assert!(complaint("0 0\n0é 0", Ways::Apart).contains("line 2, column 1: `0é`"));
    let long = "9".repeat(100) + "x";
    assert!(complaint(&long, Ways::Apart).contains(&format!("`{}…`", "9".repeat(40))));
    assert!(read_matrix("0 5\n4 0\n", Ways::Apart, &Reading::default()).is_ok());
    assert!(read_matrix("0 1.0000000001\n1 0\n", Ways::Together, &Reading::default()).is_ok());
}

#[test]
fn bad_names_sizes_and_graphs_are_told() {
    let named = |names: &[&str]| Reading {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Reading::default()
    };
    let read = |reading: &Reading| read_matrix("0 1\n1 0\n", Ways::Apart, reading);
    assert_eq!(
        read(&named(&["a"])).unwrap_err().to_string(),
        "names are given for 1 components, and the text has 2: give a name for each, in the order of \
         the text"
    );
    assert!(matches!(
        read(&named(&["a", "a"])),
        Err(ReadError::Graph(_))
    ));
    for message_bytes in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let reading = Reading {
            message_bytes,
            ..Reading::default()
        };
        assert_eq!(read(&reading), Err(ReadError::Payload));
    }

    for envelope_bytes in [-1.0, f64::NAN, f64::INFINITY] {
        let measure = Measure::Volume { envelope_bytes };
        let reading = Reading {
            measure,
            ..Reading::default()
        };
        assert_eq!(read(&reading), Err(ReadError::Payload));
        let written = write_matrix(&three(), measure, Ways::Apart);
        assert_eq!(written, Err(WriteError::Envelope));
    }

    let mut large = three();
    large.connections[0].messages = 1e300.into();
    large.connections[0].bytes = 1e300.into();
    let error = write_matrix(&large, Measure::Bytes, Ways::Apart).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the numbers of `maker` and `relay` are too large to be added: give smaller ones, in a \
         larger unit"
    );
    let mut many = Graph::new();
    for at in 0..=MATRIX_COMPONENTS_MAX {
        many.add(Component::new(format!("c{at}")));
    }
    let error = write_matrix(&many, Measure::Bytes, Ways::Apart).unwrap_err();
    assert!(matches!(error, WriteError::TooMany { .. }), "{error}");
    let mut wrong = three();
    wrong.connections[0].to = ComponentId(9);
    let error = write_matrix(&wrong, Measure::Bytes, Ways::Apart).unwrap_err();
    assert!(error.to_string().contains("component 9"), "{error}");
}

#[test]
fn damaged_texts_are_refused_or_are_other_matrices() {
    let text = write_matrix(&three(), Measure::Bytes, Ways::Together).unwrap();
    let mut rng = Rng::with_seed(5);
    let mut refused = 0;
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u32(..3) {
                0 => bytes[at] = *rng.choice(b"0123456789.eE+-naif#% \n\r\t").unwrap(),
                1 => _ = bytes.drain(at..(at + rng.usize(..6)).min(bytes.len())),
                _ => bytes.insert(at, *rng.choice(b"05. \n\xc3").unwrap()),
            }
            if bytes.is_empty() {
                bytes.push(b'0');
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        for ways in [Ways::Apart, Ways::Together] {
            match read_matrix(&text, ways, &Reading::default()) {
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
                Ok(read) => read.graph.check().unwrap(),
            }
        }
    }
    assert!(refused > 500, "{refused}");
}
