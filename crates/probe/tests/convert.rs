//! Conversion of findings into a profile: measured, inferred and contradicted figures.

use hearth_machine::profile::{ClaimVerdict, PairTransfer, Provenance};
use hearth_machine::synthetic;
use hearth_machine::topology::{OsThread, Topology};
use hearth_probe::convert::{About, profile};
use hearth_probe::curve::{Curve, Order, Point};
use hearth_probe::distances::{Distances, fine};
use hearth_probe::pairs::PairLatency;
use hearth_probe::statistics::Measured;
use hearth_probe::{Findings, Missing, Part, ProbeOptions};
use hearth_sys::clock::Clock;

fn measured(value: f64) -> Measured {
    Measured {
        value,
        low: value * 0.98,
        high: value * 1.02,
        samples: 100,
        discarded: 3,
    }
}

fn findings(cores: usize) -> Findings {
    Findings {
        options: ProbeOptions::default(),
        seconds: 1.0,
        cores: (0..cores).collect(),
        quota: Some(1.5),
        clock: Clock::monotonic(),
        offsets: Vec::new(),
        curves: Vec::new(),
        states: Vec::new(),
        pairs: Vec::new(),
        pairs_all: cores * (cores - 1) / 2,
        bandwidths: Vec::new(),
        distances: None,
        costs: Vec::new(),
        messages: Vec::new(),
        noise: Vec::new(),
        discards: hearth_probe::Discards::default(),
        disturbed: 0,
        missing: vec![Missing {
            part: Part::States,
            why: "a reason".to_owned(),
        }],
    }
}

/// Clusters of four: 40 ns inside, 120 ns between. Pairs that `left_out` names are not measured.
fn clustered(cores: usize, left_out: impl Fn(usize, usize) -> bool) -> Findings {
    let mut found = findings(cores);
    for b in 0..cores {
        for a in 0..b {
            if left_out(a, b) {
                continue;
            }
            let ns = if a / 4 == b / 4 { 40.0 } else { 120.0 };
            // A little apart, so that spreads are not zero.
            let ns = ns * (1.0 + 0.002 * ((a * 7 + b * 3) % 5) as f64);
            found.pairs.push(PairLatency {
                cores: [a, b],
                one_way_ns: measured(ns),
                states: Vec::new(),
            });
        }
    }
    found
}

fn made(found: &Findings, topology: Topology) -> hearth_machine::profile::Profile {
    let profile = profile(found, topology, Default::default(), &About::default());
    profile.check().unwrap();
    profile
}

fn machine(text: &str) -> Topology {
    synthetic::parse(text).unwrap()
}

#[test]
fn pairs_that_were_not_measured_are_inferred_and_marked() {
    let found = clustered(16, |a, b| (a + b) % 3 == 0);
    let topology = machine("4 packages, 4 cores, 1 node, l3 8M per package");
    let profile = made(&found, topology);
    assert_eq!(profile.pairs.len(), 120);
    let (measured, inferred): (Vec<&PairTransfer>, Vec<&PairTransfer>) = profile
        .pairs
        .iter()
        .partition(|pair| pair.one_way_ns.provenance == Provenance::Measured);
    assert_eq!(measured.len(), found.pairs.len());
    assert!(inferred.len() > 30);
    for pair in inferred {
        assert_eq!(pair.round_trip_ns.provenance, Provenance::Inferred);
        let os = |thread| profile.topology.os_thread(thread).0;
        let expected = if os(pair.a) / 4 == os(pair.b) / 4 {
            40.0
        } else {
            120.0
        };
        assert!((pair.one_way_ns.value / expected - 1.0).abs() < 0.02);
        assert!(pair.one_way_ns.is_sound());
    }
}

#[test]
fn nothing_is_concluded_of_a_core_that_went_away() {
    let found = clustered(8, |_, b| b == 7);
    let profile = made(&found, machine("2 packages, 4 cores, 1 node"));
    assert_eq!(profile.pairs.len(), 21);
    let gone = profile.topology.thread_of(OsThread(7)).unwrap();
    assert!(profile.pairs.iter().all(|p| p.a != gone && p.b != gone));
}

#[test]
fn true_groups_are_confirmed_and_false_ones_contradicted_with_the_effect() {
    let found = clustered(8, |_, _| false);
    let honest = made(
        &found,
        machine("2 packages, 4 cores, 1 node, l3 8M per package"),
    );
    let of = |profile: &hearth_machine::profile::Profile, subject: &str| {
        let claims = profile.claims.iter();
        let mut found = claims.filter(|claim| claim.subject.contains(subject));
        found
            .next()
            .cloned()
            .unwrap_or_else(|| panic!("{subject}: {:?}", profile.claims))
    };
    let cache = of(&honest, "shared L3");
    assert_eq!(
        (cache.verdict, cache.claimed.as_str()),
        (ClaimVerdict::Confirmed, "0-3 | 4-7")
    );
    let effect = cache.effect_ratio.unwrap();
    assert!(
        effect.low < 3.0 && 3.0 < effect.high && effect.low > 2.5,
        "{effect:?}"
    );
    assert_eq!(honest.contradicted().count(), 0);

    // One last-level cache for everything, as hypervisors often claim.
    let lying = made(
        &found,
        machine("1 package, 8 cores, 1 node, l3 480M per package"),
    );
    let cache = of(&lying, "shared L3");
    assert_eq!(cache.verdict, ClaimVerdict::Contradicted);
    assert!((cache.effect_ratio.unwrap().value / 3.0 - 1.0).abs() < 0.1);
    let group = of(&lying, "threads 4-7");
    assert_eq!(group.verdict, ClaimVerdict::Contradicted);
    assert!((group.effect_ratio.unwrap().value / 3.0 - 1.0).abs() < 0.1);
}

/// nMART evaluation, section 6.2: the published means, beside firmware that says 20 everywhere.
#[test]
fn node_distances_stand_beside_the_firmwares() {
    let means = [
        [2.321, 3.065, 2.915, 3.330],
        [3.044, 2.268, 3.280, 2.847],
        [2.877, 3.275, 2.266, 3.070],
        [3.287, 2.845, 3.083, 2.271],
    ];
    let rows: Vec<Vec<f64>> = means.iter().map(|row| row.to_vec()).collect();
    let mut found = findings(16);
    found.distances = Some(Distances {
        memory_nodes: vec![0, 1, 2, 3],
        cpu_nodes: vec![0, 1, 2, 3],
        seconds: rows
            .iter()
            .map(|row| row.iter().map(|&mean| measured(mean)).collect())
            .collect(),
        fine: fine(&rows),
    });
    let topology = machine(synthetic::example("nmart-4").unwrap());
    let profile = made(&found, topology.clone());
    let distances = profile.node_distances.clone().unwrap();
    let floors: Vec<Vec<u32>> = distances
        .scaled
        .iter()
        .map(|row| row.iter().map(|d| d.unwrap().floor() as u32).collect())
        .collect();
    let printed = [
        [10, 13, 12, 14],
        [13, 10, 14, 12],
        [12, 14, 10, 13],
        [14, 12, 13, 10],
    ];
    assert_eq!(floors, printed);
    assert_eq!(distances.firmware.unwrap()[0], [10, 20, 20, 20]);
    let orders: Vec<Vec<usize>> = topology
        .nodes()
        .iter()
        .enumerate()
        .map(|(node, _)| {
            let node = hearth_machine::topology::Node(node as u32);
            let order = profile
                .node_distances
                .as_ref()
                .unwrap()
                .fallback_order(node);
            order.iter().map(|node| node.index()).collect()
        })
        .collect();
    assert_eq!(
        orders,
        [[0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1], [3, 1, 2, 0]]
    );
    let claims: Vec<_> = profile.contradicted().collect();
    assert_eq!(claims.len(), 4, "{:?}", profile.claims);
    assert_eq!(claims[0].claimed, "10 20 20 20");
    assert_eq!(claims[0].found, "10.0 13.2 12.6 14.3");
    let effect = claims[0].effect_ratio.unwrap();
    assert!(
        (effect.value - 0.628).abs() < 0.001 && effect.high < 0.65,
        "{effect:?}"
    );
}

/// Loads take 1 ns up to 32 KiB, 4 ns up to 1 MiB, 90 ns beyond; firmware speaks of 480 MiB.
#[test]
fn caches_that_are_not_there_are_contradicted() {
    let points: Vec<Point> = hearth_probe::curve::sizes(1 << 30, 64)
        .into_iter()
        .map(|bytes| Point {
            bytes,
            load_ns: measured(match bytes {
                0..=32_768 => 1.0,
                32_769..=1_048_576 => 4.0,
                _ => 90.0,
            }),
        })
        .collect();
    let plain: Vec<_> = points.iter().map(Point::plain).collect();
    let mut found = findings(2);
    found.curves.push(Curve {
        core: 0,
        stride: 64,
        order: Order::Random,
        levels: hearth_probe::staircase::levels(&plain),
        points,
        huge_refused: None,
    });
    let topology = machine("2 cores, l1d 32K per core, l2 1M per core, l3 480M per package");
    let profile = made(&found, topology);
    let sizes: Vec<_> = profile
        .claims
        .iter()
        .filter(|claim| claim.subject.starts_with("size of L"))
        .map(|claim| (claim.claimed.as_str(), claim.verdict))
        .collect();
    assert_eq!(
        sizes,
        [
            ("32768 bytes", ClaimVerdict::Confirmed),
            ("1048576 bytes", ClaimVerdict::Confirmed),
            ("503316480 bytes", ClaimVerdict::Contradicted),
        ]
    );
    let lie = profile.contradicted().next().unwrap();
    assert!(lie.effect_ratio.unwrap().value < 0.01);
    assert!(lie.found.contains("times slower"), "{}", lie.found);
    let notes = &profile.origin.notes;
    assert_eq!(notes[0], "lines in other caches: a reason");
    assert!(
        notes[1].starts_with("a quota of 1.5 cores for the 2"),
        "{notes:?}"
    );
}
