//! The profile file: round trips, defaults, bad input, and the published schema.

mod schema;

use fastrand::Rng;
use hearth_machine::profile::{
    Access, Bandwidth, CacheFinding, Carrier, Claim, ClaimVerdict, CurvePoint, Exchange, FORMAT,
    Figure, Gap, HandOver, Level, LevelCost, LineState, Mode, NodeDistances, Noise, Origin, Pages,
    PairState, PairTransfer, Profile, ProfileError, Provenance, REVISION, SCHEMA, StateTransfer,
};
use hearth_machine::relation::{Closeness, Nodes, Relation};
use hearth_machine::synthetic;
use hearth_machine::topology::{Node, Thread, Topology};
use serde_json::Value;

/// Something in every field of a topology.
const MACHINE: &str = "2 packages, 2 cores, 2 threads, memory 4G, l1d 32K per core ways 8, \
    l2 1M per core, l3 16M per package, offline 7, distances 10 20/20 10";

fn machine(description: &str) -> Topology {
    synthetic::parse(description).expect("a description")
}

fn figure(value: f64) -> Figure {
    Figure::measured(value, value * 0.9, value * 1.1, 64, 3)
}

fn state(one_way_ns: f64, share: f64) -> PairState {
    PairState {
        one_way_ns: figure(one_way_ns),
        time_share: figure(share),
    }
}

/// A profile with something in every field.
fn full() -> Profile {
    let topology = machine(MACHINE);
    let mut profile = Profile::assumed(topology);
    profile.origin = Origin {
        hearth_version: "0.1.0".into(),
        started_unix_s: Some(1_795_000_000),
        duration_s: 59.5,
        mode: Mode::Normal,
        seed: u64::MAX,
        notes: vec!["no counters here".into()],
    };
    let host = &mut profile.host;
    for text in [
        &mut host.name,
        &mut host.kernel,
        &mut host.architecture,
        &mut host.cpu_model,
        &mut host.microcode,
        &mut host.hypervisor,
        &mut host.clock_source,
        &mut host.governor,
    ] {
        *text = Some("text".into());
    }
    host.tsc_ghz = Some(2.5);
    host.quota_cpus = Some(1.5);
    host.allowed = profile.topology.threads().iter().map(|t| t.os).collect();
    profile.caches[2] = CacheFinding {
        level: 3,
        claimed_bytes: Some(480 << 20),
        inferred_bytes: Some(figure(33e6)),
    };
    profile.curve = vec![CurvePoint {
        size_bytes: 4096,
        stride_bytes: 64,
        pages: Pages::Unknown,
        load_ns: figure(1.3),
    }];
    profile.levels[0] = LevelCost {
        level: Level::Cache(1),
        read_ns: figure(1.3),
        write_ns: Some(figure(1.1)),
    };
    let relation = Relation {
        closeness: Closeness::SharedCache(3),
        nodes: Nodes::Same,
    };
    profile.transfers.insert(
        0,
        StateTransfer {
            relation,
            state: LineState::Modified,
            read_ns: figure(60.0),
            write_ns: None,
        },
    );
    profile.pairs = vec![
        PairTransfer::from_round_trip(Thread(0), Thread(1), figure(20.0)),
        PairTransfer::from_round_trip(Thread(2), Thread(0), figure(120.0).inferred()),
        PairTransfer {
            states: vec![state(26.0, 0.3), state(124.0, 0.7)],
            ..PairTransfer::from_round_trip(Thread(2), Thread(3), figure(189.2))
        },
    ];
    profile.bandwidths.push(Bandwidth {
        level: Level::Memory,
        access: Access::Copy,
        threads: 8,
        bytes_per_ns: figure(40.0),
    });
    profile.node_distances = Some(NodeDistances::from_measured(
        vec![
            vec![Some(figure(2.0)), Some(figure(3.1))],
            vec![Some(figure(3.0)), None],
        ],
        Some(vec![vec![10, 20], vec![20, 10]]),
    ));
    profile.noise = vec![Noise {
        thread: Thread(3),
        observed_s: 1.0,
        gaps: vec![
            Gap {
                from_ns: 1000,
                below_ns: Some(2000),
                count: 17,
            },
            Gap {
                from_ns: 2000,
                below_ns: None,
                count: 1,
            },
        ],
        interrupts_per_s: Some(figure(250.0)),
        steal_share: Some(figure(0.001)),
    }];
    profile.hand_overs[0] = HandOver {
        carrier: Carrier::Spin,
        relation,
        one_way_ns: figure(70.0),
    };
    profile.exchanges = vec![Exchange {
        bytes: 4096,
        sender: Thread(0),
        receiver: Thread(2),
        carrier: Carrier::Spin,
        stream_depth: Some(4),
        fresh_buffer: true,
        exchange_ns: figure(900.0),
    }];
    profile.claims = vec![Claim {
        subject: "size of L3".into(),
        source: Some("/sys/devices/system/cpu".into()),
        claimed: "480 MiB".into(),
        found: "31.5 MiB".into(),
        verdict: ClaimVerdict::Contradicted,
        effect_ratio: Some(figure(0.066)),
    }];
    profile
}

#[test]
fn what_is_written_is_read_back() {
    let profile = full();
    let text = profile.to_json().expect("sound");
    assert!(Profile::from_json(&text) == Ok(profile.clone()));
    assert_eq!(profile.contradicted().count(), 1);
}

#[test]
fn written_profiles_follow_the_schema_and_it_describes_every_field() {
    let rules: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    for profile in [
        full(),
        Profile::assumed(machine("1 core")),
        Profile::empty(full().origin, machine("4 cores")),
    ] {
        let text = profile.to_json().expect("sound");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(schema::faults(&rules, &value), Vec::<String>::new());
    }
    // The full profile leaves no field of the schema unused.
    let text = full().to_json().expect("sound");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(schema::unused(&rules, &value), Vec::<String>::new());
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let rules: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let text = full().to_json().expect("sound");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let damages: [(&str, Value); 5] = [
        ("/topology", Value::Null),
        ("/origin/mode", "thorough".into()),
        ("/pairs/0/round_trip_ns/value", "fast".into()),
        ("/levels/0/level", 1.into()),
        ("/noise/0/gaps/0/count", (-1).into()),
    ];
    for (place, wrong) in damages {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(place).expect("the place exists") = wrong;
        assert!(!schema::faults(&rules, &damaged).is_empty(), "{place}");
        let error = Profile::from_json(&damaged.to_string()).expect_err(place);
        assert!(matches!(error, ProfileError::Field { .. }), "{error}");
    }
}

#[test]
fn unknown_fields_are_ignored_and_missing_lists_are_empty() {
    let text = full().to_json().expect("sound");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    for place in [
        "",
        "/origin",
        "/host",
        "/pairs/0",
        "/pairs/0/one_way_ns",
        "/system",
    ] {
        let object = value.pointer_mut(place).and_then(Value::as_object_mut);
        object.expect("an object").insert("later".into(), 7.into());
    }
    assert!(Profile::from_json(&value.to_string()) == Ok(full()));

    let whole = value.as_object_mut().expect("an object");
    whole.retain(|name, _| ["format", "origin", "topology"].contains(&name.as_str()));
    let bare = Profile::from_json(&value.to_string()).expect("what is required is there");
    // As every file before there was one, it has the revision 0.
    let empty = Profile::empty(full().origin, full().topology);
    assert!(
        bare == Profile {
            revision: 0,
            ..empty
        }
    );
}

#[test]
fn later_revisions_are_read_as_far_as_they_are_known() {
    let text = full().to_json().expect("sound");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    let mut add = |list: &str, change: fn(&mut Value)| {
        let entries = value[list].as_array_mut().expect("a list");
        let mut entry = entries[0].clone();
        change(&mut entry);
        entries.insert(0, entry);
    };
    add("hand_overs", |cost| cost["carrier"] = "pigeon".into());
    add("transfers", |cost| cost["state"] = "owned".into());
    add("transfers", |cost| {
        cost["relation"]["closeness"] = "same_board".into()
    });
    add("curve", |point| {
        point["load_ns"]["provenance"] = "simulated".into()
    });
    value["system"]["fsync_ns"] = 7.into();
    value["system"]["mutex_ns"]["provenance"] = "simulated".into();
    // In the revision that this Hearth writes, such words are damage.
    assert!(Profile::from_json(&value.to_string()).is_err());

    value["revision"] = (REVISION + 3).into();
    let read = Profile::from_json(&value.to_string()).expect("a later revision");
    let mut expected = full();
    expected.system.mutex_ns = None;
    expected.origin.notes.extend(
        [
            "1 entry of `curve` left out",
            "2 entries of `transfers` left out",
            "1 entry of `hand_overs` left out",
            "1 entry of `system` left out",
        ]
        .map(|start| format!("{start}: a newer Hearth wrote them and can read them")),
    );
    assert!(read == expected, "{:?}", read.origin.notes);
    // The unknown entries are gone, so the rest is of our revision.
    assert!(Profile::from_json(&read.to_json().expect("sound")) == Ok(read));

    // A part that everything needs is not left out.
    value["topology"] = "elsewhere".into();
    let error = Profile::from_json(&value.to_string()).expect_err("no topology");
    assert!(matches!(error, ProfileError::Field { .. }), "{error}");
}

#[test]
fn truncated_files_say_so_at_every_length() {
    let text = full().to_json().expect("sound");
    let text = text.trim_end();
    for end in (0..text.len())
        .step_by(97)
        .filter(|&e| text.is_char_boundary(e))
    {
        let error = Profile::from_json(&text[..end]).expect_err("a part is no profile");
        assert!(
            matches!(error, ProfileError::Truncated { .. }),
            "{end}: {error}"
        );
        assert!(error.to_string().contains("copy it again"));
    }
}

#[test]
fn damaged_files_are_refused_or_are_other_profiles() {
    let text = full().to_json().expect("sound");
    let mut rng = Rng::with_seed(3);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..300 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u32(..4) {
                0 => bytes[at] = *rng.choice(b"0123456789").expect("digits"),
                1 => bytes[at] = *rng.choice(b"{}[]\",:-e. nul").expect("marks"),
                2 => _ = bytes.drain(at..(at + rng.usize(..40)).min(bytes.len())),
                _ => bytes.insert(at, *rng.choice(b"-0,9").expect("a few")),
            }
        }
        let text = String::from_utf8(bytes).expect("a profile is ASCII");
        match Profile::from_json(&text) {
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("hearth probe"), "{error}");
            }
            // A profile that was read can be written, and read again.
            Ok(profile) => {
                read += 1;
                let again = profile.to_json().expect("it was read");
                assert!(Profile::from_json(&again) == Ok(profile));
            }
        }
    }
    assert!(refused > 50 && read > 5, "{refused} and {read}");
}

#[test]
fn newer_formats_are_refused_with_the_version_that_reads_them() {
    let text = full().to_json().expect("sound");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    value["format"] = (FORMAT + 1).into();
    value["origin"]["hearth_version"] = "3.2.1".into();
    // A newer format may have changed anything else.
    value["topology"] = "elsewhere".into();
    let error = Profile::from_json(&value.to_string()).expect_err("newer");
    assert_eq!(
        error.to_string(),
        "the profile has format 2 and this Hearth reads up to 1: use Hearth 3.2.1, which wrote \
         it, or newer; or write it again with `hearth probe`"
    );
    value["origin"] = Value::Null;
    let error = Profile::from_json(&value.to_string()).expect_err("newer");
    assert!(error.to_string().contains("use a newer Hearth"));
}

#[test]
fn other_texts_are_no_profiles() {
    for text in ["{}", "[]", "7", "{\"format\": \"one\"}", "{\"format\": 0}"] {
        let error = Profile::from_json(text).expect_err("no profile");
        assert_eq!(error, ProfileError::NotAProfile, "{text}");
    }
    let error = Profile::from_json("{\"format\": 1,\n oops}").expect_err("not JSON");
    assert_eq!(error, ProfileError::NotJson { line: 2, column: 2 });
    let error = Profile::from_json("{\"format\": 1}").expect_err("nothing else");
    assert!(error.to_string().contains("missing field"), "{error}");
}

/// A profile that an older Hearth wrote has no states, and a newer one may have more about them.
#[test]
fn pairs_with_states_and_without_are_read() {
    let profile = full();
    let text = profile.to_json().expect("sound");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["pairs"][0].get("states"), None);
    assert_eq!(value["pairs"][2]["states"][1]["one_way_ns"]["value"], 124.0);
    value["pairs"][2]["states"][1]["later"] = 1.into();
    assert_eq!(Profile::from_json(&value.to_string()), Ok(profile.clone()));

    // As revision 0 was.
    value["revision"] = 0.into();
    value["pairs"][2]
        .as_object_mut()
        .expect("a pair")
        .remove("states");
    let older = Profile::from_json(&value.to_string()).expect("an older profile");
    assert_eq!(older.revision, 0);
    assert!(older.pairs.iter().all(|pair| pair.states.is_empty()));
    assert_eq!(older.pairs[2].one_way_ns, profile.pairs[2].one_way_ns);
    assert_eq!(
        Profile::from_json(&older.to_json().expect("sound")),
        Ok(older)
    );
}

#[test]
fn states_that_contradict_each_other_are_refused() {
    let refused = |states: Vec<PairState>| {
        let mut profile = full();
        profile.pairs[2].states = states;
        profile.check().expect_err("no states").to_string()
    };
    assert!(refused(vec![state(26.0, 1.0)]).contains("T2 and T3 has a single state"));
    let parts = refused(vec![state(26.0, 0.3), state(124.0, 0.6)]);
    assert!(parts.contains("do not add up to 1"), "{parts}");
    let none = refused(vec![
        PairState {
            one_way_ns: Figure::claimed(0.0),
            ..state(1.0, 0.3)
        },
        state(124.0, 0.7),
    ]);
    assert!(none.contains("takes no time"), "{none}");
    let unsound = refused(vec![state(f64::NAN, 0.3), state(124.0, 0.7)]);
    assert!(unsound.contains("`pairs.states.one_way_ns`"), "{unsound}");
}

#[test]
fn a_correction_reaches_each_state() {
    let profile = full();
    let relation = profile.topology.relation(Thread(2), Thread(3));
    let corrected = profile.with_transfers_times(relation, 2.0);
    let states = corrected.pairs[2].states.iter();
    let times: Vec<f64> = states.map(|state| state.one_way_ns.value).collect();
    assert_eq!(times, [52.0, 248.0]);
}

#[test]
fn unsound_figures_and_unknown_parts_are_refused_both_ways() {
    let mut profile = full();
    profile.pairs[0].one_way_ns.value = f64::NAN;
    let error = profile.to_json().expect_err("not a number");
    assert!(error.to_string().contains("`pairs.one_way_ns`"), "{error}");

    let mut profile = full();
    profile.system.mutex_ns = Some(Figure::measured(5.0, 6.0, 7.0, 1, 0));
    let error = profile.check().expect_err("outside its interval");
    assert!(error.to_string().contains("`system.mutex_ns`"), "{error}");

    let mut profile = full();
    profile.exchanges[0].exchange_ns = Figure::claimed(0.0);
    let error = profile.check().expect_err("no time at all");
    assert!(error.to_string().contains("took no time"), "{error}");

    let mut profile = full();
    profile.exchanges[0].receiver = Thread(9);
    let error = profile.check().expect_err("no such thread");
    assert!(error.to_string().contains("T9"), "{error}");

    let mut profile = full();
    profile.noise[0].thread = Thread(8);
    let error = profile.check().expect_err("no such thread");
    assert!(error.to_string().contains("T8"), "{error}");

    let mut profile = full();
    if let Some(distances) = &mut profile.node_distances {
        distances.scaled.pop();
    }
    let error = profile.check().expect_err("a row is missing");
    assert!(error.to_string().contains("2 rows"), "{error}");
}

#[test]
fn defaults_fill_gaps_and_leave_measurements_alone() {
    let topology = machine(MACHINE);
    let mut profile = Profile::empty(full().origin, topology);
    profile.system.syscall_ns = Some(figure(77.0));
    profile.system.futex_wake_other_core_ns = Some(figure(4321.0));
    profile.levels.push(LevelCost {
        level: Level::Memory,
        read_ns: figure(101.0),
        write_ns: None,
    });
    let filled = profile.with_defaults();
    assert_eq!(filled.system.syscall_ns, Some(figure(77.0)));
    let memory = filled.level(Level::Memory).expect("there");
    assert_eq!(memory.read_ns, figure(101.0));
    assert_eq!(
        memory.write_ns.map(|figure| figure.provenance),
        Some(Provenance::Assumed)
    );
    assert_eq!(filled.levels.len(), 4);
    assert!(
        filled
            .levels
            .windows(2)
            .all(|pair| pair[0].level < pair[1].level)
    );
    for (relation, _) in filled.topology.representatives() {
        assert!(filled.transfer(relation, LineState::Modified).is_some());
        // A measured wake-up stands for every pair of cores; the one on one core was not measured.
        let wake = filled.hand_over(Carrier::Threads, relation).expect("there");
        if relation.closeness == Closeness::Same {
            assert_eq!(wake.one_way_ns.provenance, Provenance::Assumed);
        } else {
            assert_eq!(wake.one_way_ns, figure(4321.0).inferred());
        }
    }
    let reads: Vec<f64> = filled.levels.iter().map(|c| c.read_ns.value).collect();
    assert!(reads.windows(2).all(|pair| pair[0] < pair[1]), "{reads:?}");
    assert!(filled.clone().with_defaults() == filled);
    assert!(filled.pairs.is_empty() && filled.noise.is_empty());
}

#[test]
fn pairs_are_found_in_either_order() {
    let profile = full();
    let pair = profile.pair(Thread(0), Thread(2)).expect("there");
    assert_eq!(pair.one_way_ns.value, 60.0);
    assert_eq!(pair.one_way_ns.provenance, Provenance::Inferred);
    assert!(profile.pair(Thread(1), Thread(2)).is_none());
}

#[test]
fn fallback_order_follows_what_was_measured() {
    let seconds = [
        [2.321, 3.065, 2.915, 3.330],
        [3.044, 2.268, 3.280, 2.847],
        [2.877, 3.275, 2.266, 3.070],
        [3.287, 2.845, 3.083, 2.271],
    ];
    let measured = seconds
        .map(|row| row.map(|s| Some(figure(s))).to_vec())
        .to_vec();
    let distances = NodeDistances::from_measured(measured, None);
    let order = |node| {
        let nodes = distances.fallback_order(Node(node));
        nodes.into_iter().map(|node| node.0).collect::<Vec<_>>()
    };
    assert_eq!(order(0), [0, 2, 1, 3]);
    assert_eq!(order(1), [1, 3, 0, 2]);
    assert_eq!(order(2), [2, 0, 3, 1]);
    assert_eq!(order(3), [3, 1, 2, 0]);
    let between = distances.between(Node(0), Node(2)).expect("measured");
    assert!((between - 12.559).abs() < 0.001);
    assert_eq!(distances.between(Node(0), Node(4)), None);
}
