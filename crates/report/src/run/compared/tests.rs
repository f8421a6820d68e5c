//! A run whose figures are known, beside a graph.

use hearth_driver::program_graph::{Instance, ProgramGraph};
use hearth_driver::site::Site;
use hearth_machine::profile::Profile;
use hearth_machine::topology::OsThread;
use hearth_place::cost;
use hearth_place::graph::{self, Connection, Graph, Number, Round};
use hearth_place::slots::CpuSlot;
use hearth_watch::{Port, Worker};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// `senders` components of type `Ask` that send to one of type `Tell`, 100 messages a second each.
fn expected(senders: u32, slots: Vec<Option<CpuSlot>>) -> Expected {
    let machine = hearth_machine::synthetic::parse("1 package, 4 cores").expect("it is one");
    let cpus = [0, 1, 2, 3].map(OsThread);
    let site = Site::described(Profile::assumed(machine), &cpus).expect("it is fit");
    let mut graph = Graph {
        round: Round::Second,
        ..Graph::default()
    };
    let mut instances = Vec::new();
    let mut add = |graph: &mut Graph, of: &str, number: u32, work: f64| {
        instances.push(Some(Instance {
            type_name: of.to_owned(),
            number,
        }));
        let name = format!("{of}{number}");
        graph.add(graph::Component::new(name).work_ns(Number::predicted(work)))
    };
    let tell = add(&mut graph, "Tell", 1, 3e8);
    for number in 1..=senders {
        let ask = add(&mut graph, "Ask", number, 1e8);
        graph.connect(
            Connection::new(ask, tell)
                .messages(Number::predicted(100.0))
                .bytes(Number::predicted(8.0)),
        );
    }
    Expected {
        program: ProgramGraph {
            graph,
            instances,
            notes: Vec::new(),
        },
        site,
        options: cost::CostOptions::default(),
        policy: "the plan of `talk`".to_owned(),
        slots,
    }
}

fn port(is_send: bool, peer: (u64, u16), waits: u64) -> Port {
    Port {
        is_send: Some(is_send),
        peer: Some(peer),
        waits,
        value_bytes: Some(4),
        ..Port::default()
    }
}

fn component(id: u64, of: &str, number: u32, worker: u16, running: u64, port: Port) -> Component {
    Component {
        id,
        name: format!("{of}#{number}"),
        of: of.to_owned(),
        number,
        mostly: Some(worker),
        running,
        ports: vec![port],
        ..Component::default()
    }
}

/// Two seconds of two askers and a teller, who waited 300 times, on cores 1 and 3.
fn recording() -> Recording {
    let worker = |index: u16, core: usize, busy: u64| Worker {
        index,
        core: Some(core),
        busy,
        ..Worker::default()
    };
    Recording {
        ns: 2 * SECOND,
        components: vec![
            component(2, "Tell", 1, 1, SECOND, port(false, (3, 0), 300)),
            component(3, "Ask", 1, 0, SECOND / 4, port(true, (2, 0), 60)),
            component(4, "Ask", 2, 1, SECOND / 4, port(true, (2, 0), 40)),
            component(5, "Other", 1, 1, SECOND, Port::default()),
        ],
        workers: vec![worker(0, 1, SECOND / 4), worker(1, 3, SECOND)],
        ..Recording::default()
    }
}

#[test]
fn shares_places_and_messages_stand_beside_each_other() {
    // The teller on core 3, the askers on core 1; the third asker is not made.
    let slots = [3, 1, 1, 1].map(|slot| Some(CpuSlot(slot)));
    let compared = Compared::of(&recording(), &expected(3, slots.to_vec()));
    let teller = &compared.components[0];
    assert_eq!(teller.name, "Tell#1");
    assert_eq!((teller.planned, teller.ran_on), (Some(3), Some(3)));
    assert!((teller.share.seen - 1.0 / 1.5).abs() < 1e-9, "{teller:?}");
    // 0.3 s of 0.3 + 2 · 0.1, and a little for messages.
    assert!((teller.share.expected - 0.6).abs() < 0.01, "{teller:?}");
    assert!((teller.load.seen - 0.5).abs() < 1e-9);
    assert_eq!(compared.places(), (3, 2));
    assert_eq!(compared.missing, ["Ask3"]);
    assert_eq!(compared.unforeseen, ["Other#1"]);
    // Both askers together: nobody knows for whom the teller waited.
    assert_eq!(compared.talks.len(), 1);
    let talk = &compared.talks[0];
    assert_eq!(talk.name, "Ask#1 and Ask#2 → Tell#1");
    assert_eq!((talk.messages.expected, talk.messages.seen), (200.0, 200.0));
    let bytes = talk.bytes.expect("it was seen");
    assert_eq!((bytes.expected, bytes.seen), (8.0, 4.0));
    let busiest = compared.busiest.expect("there is a plan");
    assert!((busiest.expected - 0.3).abs() < 0.05, "{busiest:?}");
    assert!((busiest.seen - 0.5).abs() < 1e-9);
    let (worst, most, mean) = compared.shares().expect("there are some");
    assert!(worst.name == "Tell#1" && most >= mean, "{worst:?}");
}

#[test]
fn what_no_core_could_do_is_not_expected() {
    // The teller alone would take three times of what a core has.
    let slots = [3, 1, 1].map(|slot| Some(CpuSlot(slot)));
    let mut expected = expected(2, slots.to_vec());
    for component in &mut expected.program.graph.components {
        component.work_ns.value *= 10.0;
    }
    let compared = Compared::of(&recording(), &expected);
    assert!((compared.slower - 3.0).abs() < 0.1, "{}", compared.slower);
    let busiest = compared.busiest.expect("there is a plan");
    assert!((busiest.expected - 1.0).abs() < 0.01, "{busiest:?}");
    let messages = compared.messages();
    assert!((messages.expected * compared.slower - 200.0).abs() < 0.01);
    assert_eq!(messages.seen, 200.0);
    expected.slots.fill(None);
    let unplanned = Compared::of(&recording(), &expected);
    assert!((unplanned.slower - 3.0).abs() < 0.1 && unplanned.busiest.is_none());
}

#[test]
fn without_a_plan_there_are_no_places() {
    let compared = Compared::of(&recording(), &expected(2, vec![None; 3]));
    assert_eq!(compared.places(), (0, 0));
    assert_eq!(compared.busiest, None);
    assert_eq!(compared.components.len(), 3);
    assert_eq!(compared.messages().ratio(), Some(1.0));
}
