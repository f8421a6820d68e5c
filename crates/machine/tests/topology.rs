//! Parts, relations, descriptions and the stored form.

mod support;

use std::collections::BTreeSet;

use fastrand::Rng;
use hearth_machine::relation::{Closeness, Nodes, SourceType};
use hearth_machine::synthetic::{Description, EXAMPLES, example, parse};
use hearth_machine::topology::{
    Builder, Bytes, CacheKind, CacheSpec, NodeSpec, OsNode, OsPackage, OsThread, Thread,
    ThreadSpec, Topology, TopologyError, format_list, parse_list,
};
use support::{MACHINES, machine};

fn thread(os: u32, core: u32, package: u32, node: u32) -> ThreadSpec {
    ThreadSpec {
        os: OsThread(os),
        core,
        package: OsPackage(package),
        node: OsNode(node),
    }
}

fn cache(level: u8, threads: &[u32]) -> CacheSpec {
    CacheSpec {
        level,
        kind: CacheKind::Unified,
        size: Bytes::mib(1),
        line: Some(64),
        ways: None,
        threads: threads.iter().copied().map(OsThread).collect(),
    }
}

/// A random machine, by a random description.
fn random_description(rng: &mut Rng) -> String {
    let packages = rng.u32(1..=4);
    let cores: Vec<u32> = (0..packages).map(|_| rng.u32(2..=6)).collect();
    let threads = rng.u32(1..=3);
    let nodes = [packages, packages * 2, 1][rng.usize(..3)];
    let total = cores.iter().sum::<u32>() * threads;
    let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
    let numbering = ["adjacent", "spread", "dealt"][rng.usize(..3)];
    let mut text = format!(
        "{packages} packages, {} cores, {threads} threads, {nodes} nodes, numbering {numbering}, \
         l1d 32K per core ways 8, l2 1M per 2 cores line 128",
        cores.join("/")
    );
    if rng.bool() {
        text += ", l3 12M per package";
    }
    if rng.bool() {
        text += ", 1 memory node, memory 1G";
    }
    // The first thread stays, so that the machine has one.
    if rng.bool() {
        text += &format!(", offline {}", rng.u32(1..total));
    }
    text
}

#[test]
fn logical_numbers_follow_packages_nodes_cores_and_siblings() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..200 {
        let text = random_description(&mut rng);
        let machine = machine(&text);
        let keys: Vec<_> = machine
            .threads()
            .iter()
            .map(|t| (t.package, t.node, t.core, t.smt))
            .collect();
        assert!(keys.is_sorted(), "{text}");
        for (at, thread) in machine.threads().iter().enumerate() {
            let number = Thread(u32::try_from(at).unwrap());
            assert_eq!(machine.thread_of(thread.os), Some(number));
            let core = &machine.cores()[thread.core.index()];
            assert_eq!(core.threads[thread.smt as usize], number);
            assert!(
                machine.packages()[thread.package.index()]
                    .threads
                    .contains(&number)
            );
            assert!(
                machine.nodes()[thread.node.index()]
                    .threads
                    .contains(&number)
            );
        }
        let parts = machine.cores().iter().flat_map(|core| core.threads.clone());
        assert!(
            parts.eq(machine.all_threads()),
            "cores take threads in order"
        );
    }
}

#[test]
fn a_topology_survives_json_and_unknown_members() {
    let mut rng = Rng::with_seed(4);
    let random: Vec<String> = (0..50).map(|_| random_description(&mut rng)).collect();
    let known = EXAMPLES.iter().map(|(_, text)| (*text).to_owned());
    for text in known.chain(random) {
        let machine = machine(&text);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), machine);
        let later = json.replacen('{', "{\"later\":[1],", 1);
        assert_eq!(serde_json::from_str::<Topology>(&later).unwrap(), machine);
    }
}

#[test]
fn a_stored_topology_is_checked() {
    let read = |text: &str| {
        serde_json::from_str::<Topology>(text)
            .unwrap_err()
            .to_string()
    };
    let file = |packages: &str, threads: &str| {
        format!("{{\"packages\":{packages},\"nodes\":[{{\"os\":0}}],\"threads\":{threads}}}")
    };
    let one = |os: u32, core: u32, package: u32| {
        format!("{{\"os\":{os},\"core\":{core},\"package\":{package},\"node\":0}}")
    };
    let swapped = format!("[{},{}]", one(1, 0, 0), one(0, 1, 0));
    assert!(read(&file("[{\"os\":0}]", &swapped)).contains("canonical order"));
    let outside = format!("[{}]", one(0, 0, 7));
    assert!(read(&file("[{\"os\":0}]", &outside)).contains("no package 7"));
    assert!(read(&file("[{\"os\":0}]", "[]")).contains("no hardware thread"));
    assert!(read(&file("[]", "3")).contains("invalid type"));
}

#[test]
fn contradictions_are_refused() {
    let two = || {
        let mut builder = Builder::new();
        builder
            .thread(thread(0, 0, 0, 0))
            .thread(thread(1, 1, 0, 0));
        builder
    };
    assert_eq!(Builder::new().build(), Err(TopologyError::NoThreads));
    let twice = two().offline(OsThread(1)).build();
    assert_eq!(twice, Err(TopologyError::ThreadTwice(OsThread(1))));
    let node = NodeSpec {
        os: OsNode(0),
        memory: None,
    };
    let twice = two().node(node).node(node).build();
    assert_eq!(twice, Err(TopologyError::NodeTwice(OsNode(0))));
    let apart = Builder::new()
        .thread(thread(0, 0, 0, 0))
        .thread(thread(1, 0, 0, 1))
        .build();
    assert!(matches!(apart, Err(TopologyError::CoreInTwoNodes(_))));
    let unknown = two().cache(cache(2, &[0, 9])).build();
    assert!(matches!(unknown, Err(TopologyError::UnknownThread { .. })));
    let overlapping = two().cache(cache(2, &[0])).cache(cache(2, &[0, 1])).build();
    assert!(matches!(overlapping, Err(TopologyError::CacheTwice { .. })));
    let mut three = two();
    three.thread(thread(2, 2, 0, 0));
    let crossing = three
        .cache(cache(2, &[0, 1]))
        .cache(cache(3, &[1, 2]))
        .build();
    let Err(error @ TopologyError::Crossing { .. }) = crossing else {
        panic!("{crossing:?}");
    };
    assert_eq!(
        error.to_string(),
        "the L3 of CPUs 1-2 and the L2 of CPUs 0-1 overlap and neither holds the other; \
         mend or drop one"
    );
    for rows in [vec![], vec![vec![10, 20]], vec![vec![0]]] {
        let wrong = two().distances(vec![OsNode(0)], rows).build();
        assert_eq!(wrong, Err(TopologyError::BadDistances { nodes: 1 }));
    }
}

#[test]
fn nodes_without_threads_or_memory_and_offline_threads_work() {
    let machine =
        machine("2 packages, 2 cores, 1 memory node, memory 0/2G/8G, offline 0, l2 1M per package");
    let memory: Vec<Option<Bytes>> = machine.nodes().iter().map(|node| node.memory).collect();
    assert_eq!(
        memory,
        [Some(Bytes(0)), Some(Bytes::gib(2)), Some(Bytes::gib(8))]
    );
    assert!(machine.nodes()[2].threads.is_empty());
    assert_eq!(machine.offline(), [OsThread(0)]);
    assert_eq!(machine.os_thread(Thread(0)), OsThread(1));
    assert_eq!(machine.caches()[0].threads, [Thread(0)]);
}

#[test]
fn relations_are_symmetric_and_each_has_its_first_pair() {
    for (name, text, _) in MACHINES {
        let machine = machine(text);
        let mut seen = BTreeSet::new();
        for a in machine.all_threads() {
            assert_eq!(machine.relation(a, a).closeness, Closeness::Same);
            for b in machine.all_threads() {
                assert_eq!(machine.relation(a, b), machine.relation(b, a), "{name}");
                seen.insert(machine.relation(a, b));
            }
        }
        let pairs = machine.representatives();
        let relations: Vec<_> = pairs.iter().map(|(relation, _)| *relation).collect();
        assert_eq!(relations, seen.into_iter().collect::<Vec<_>>());
        for (relation, (a, b)) in pairs {
            assert_eq!(machine.relation(a, b), relation);
        }
    }
}

#[test]
fn the_sources_machines_have_the_sources_three_types() {
    let types = |name: &str| -> Vec<(String, SourceType)> {
        let pairs = machine(example(name).unwrap()).representatives();
        let types = pairs.iter().map(|(r, _)| (r.to_string(), r.source_type()));
        types.collect()
    };
    let row = |text: &str, kind| (text.to_owned(), kind);
    use SourceType::{OtherChip, SameChip, SameCore};
    assert_eq!(
        types("xeon-5130"),
        [
            row("same thread", SameCore),
            row("shared L2, same node", SameChip),
            row("other package, same node", OtherChip),
        ]
    );
    assert_eq!(
        types("e5-2695-v2"),
        [
            row("same thread", SameCore),
            row("shared L3, same node", SameChip),
            row("other package, other node", OtherChip),
        ]
    );
    assert_eq!(
        [SameCore, SameChip, OtherChip].map(SourceType::number),
        [1, 2, 3]
    );
    let siblings = types("nmart-8");
    assert!(siblings.contains(&row("shared L3, other node", SameChip)));
    let server = machine(example("server-smt").unwrap());
    let sibling = server.thread_of(OsThread(32)).unwrap();
    assert_eq!(
        server.relation(Thread(0), sibling).closeness,
        Closeness::SmtSibling
    );
}

#[test]
fn a_cache_across_packages_brings_nobody_nearer() {
    let mut builder = Builder::new();
    builder
        .thread(thread(0, 0, 0, 0))
        .thread(thread(1, 0, 1, 0));
    let machine = builder.cache(cache(3, &[0, 1])).build().unwrap();
    let relation = machine.relation(Thread(0), Thread(1));
    assert_eq!(
        (relation.closeness, relation.nodes),
        (Closeness::OtherPackage, Nodes::Same)
    );
}

#[test]
fn descriptions_have_one_canonical_form() {
    let cases = [
        (
            " 2 PACKAGES,4 cores , 2 threads, L3 16m per package, l2 1024K per core, 2 nodes",
            "2 packages, 4 cores, 2 threads, l2 1M per core, l3 16M per package",
        ),
        ("1 package", "1 package"),
        (
            "8/4 cores, memory 2G/2G",
            "2 packages, 8/4 cores, memory 2G",
        ),
        ("4 cores, offline 3, 1-2", "4 cores, offline 1-3"),
        (
            "2 packages, 1 node, numbering adjacent",
            "2 packages, 1 node",
        ),
        (
            "2 nodes, 2 cores, distances 10  20 / 20 10, l2 3K per 1 core line 64 ways 3",
            "2 cores, 2 nodes, l2 3K per core ways 3, distances 10 20/20 10",
        ),
    ];
    for (text, canonical) in cases {
        let description: Description = text.parse().unwrap();
        assert_eq!(description.to_string(), canonical);
        assert_eq!(canonical.parse::<Description>().unwrap(), description);
    }
    let mut rng = Rng::with_seed(5);
    for _ in 0..300 {
        let text = random_description(&mut rng);
        let description: Description = text.parse().unwrap();
        let again: Description = description.to_string().parse().unwrap();
        assert_eq!(again, description, "{text}");
        assert_eq!(again.topology(), description.topology());
    }
}

#[test]
fn bad_descriptions_say_what_to_write() {
    let cases = [
        ("", "cannot read ``; write an item like"),
        ("2 sockets", "cannot read `2 sockets`; write an item like"),
        ("0 cores", "write numbers of cores"),
        ("2 cores, 3 cores", "`3 cores` says again"),
        (
            "3 packages, 1/2 cores",
            "2 numbers of cores are given where 3 are needed",
        ),
        ("3 packages, 2 nodes", "take a multiple or a divisor"),
        ("2 cores, 4 nodes", "too few for its share"),
        ("2 cores, offline 7", "cannot read `offline 7`"),
        ("offline 0", "no hardware thread is online"),
        ("l2 1M per socket", "write a cache"),
        ("l2 1M per core line 48", "write a cache"),
        ("l2 1M per core, l2 2M per core", "says again"),
        (
            "2 packages, memory 1G/1G/1G",
            "3 memory sizes are given where 2 are needed",
        ),
        (
            "2 nodes, 2 cores, distances 10 20",
            "1 rows of distances are given where 2 are needed",
        ),
        (
            "32768 packages, 32768 cores",
            "more than 32768 hardware threads",
        ),
        (
            "3 cores, l2 1M per 2 cores, l3 1M per core",
            "overlap and neither",
        ),
    ];
    for (text, expected) in cases {
        match parse(text) {
            Ok(_) => assert_eq!(text, "3 cores, l2 1M per 2 cores, l3 1M per core"),
            Err(error) => assert!(error.to_string().contains(expected), "{text}: {error}"),
        }
    }
    // Whatever comes, no panic.
    let mut rng = Rng::with_seed(6);
    for _ in 0..3000 {
        let mut bytes = random_description(&mut rng).into_bytes();
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(..bytes.len());
            bytes[at] = b"0123456789,/-: lpcdknm"[rng.usize(..22)];
        }
        _ = parse(&String::from_utf8(bytes).unwrap());
    }
}

#[test]
fn lists_are_read_as_linux_writes_them() {
    assert_eq!(parse_list("").unwrap(), Vec::<u32>::new());
    assert_eq!(parse_list("3,1-2,2\n").unwrap(), [1, 2, 3]);
    assert_eq!(parse_list("0-15:2/8").unwrap(), [0, 1, 8, 9]);
    for wrong in [
        "a",
        "1-",
        "-1",
        "3-1",
        "1,,2",
        "0-7:0/2",
        "0-7:3/2",
        "0-4294967295",
        "+1",
    ] {
        assert!(parse_list(wrong).is_err(), "{wrong}");
    }
    assert_eq!(format_list([5, 0, 1, 2, 9, 8]), "0-2,5,8-9");
    assert_eq!(format_list([u32::MAX]), u32::MAX.to_string());
    assert_eq!(format_list([]), "");
    let sizes = ["48K", "2048K", "16M", "1T", "512", "0"].map(|text| Bytes::parse(text).unwrap());
    assert_eq!(
        sizes.map(Bytes::compact),
        ["48K", "2M", "16M", "1T", "512", "0"]
    );
    assert_eq!(Bytes(1536 << 10).to_string(), "1.5 MiB");
    for wrong in ["", "K", "-1", "1.5M", "99999999999T", "1P"] {
        assert_eq!(Bytes::parse(wrong), None, "{wrong}");
    }
}
