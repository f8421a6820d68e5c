//! Calls of components, which go from thread to thread and lose records anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs, process};

use hearth_calls::{Caller, Recorded, Step};
use hearth_watch::stream::components::{self, BEGINS, ENDS, KIND, NTH, Word};
use hearth_watch::stream::{Encoding, Head, Journal, Law, Shape, Tape, Writer};

/// Numbers that look random, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Component {
    records: u16,
    /// Names of the open calls, and their times.
    open: Vec<(u32, u64)>,
}

/// A call as it was: component, name, depth, times of its beginning and its end.
type Was = (u32, u32, usize, u64, u64);

struct Recording {
    path: PathBuf,
    calls: BTreeSet<Was>,
    emitted: u64,
    refused: u64,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

const KINDS: [&str; 2] = ["Server", "Client"];
const COMPONENTS: u32 = 7;

/// Components that call at random, on one of three threads at each step. One block in so many is
/// refused.
fn recording(seed: u64, steps: u64, refuse_one_in: Option<u64>) -> Recording {
    let mut random = Random(seed);
    let shape = Shape {
        blocks: steps as usize,
        records: 4,
    };
    let file = hearth_sys::shared::memory_file("a test", shape.bytes()).expect("memory");
    let journal = Journal::begin(&file, shape, Law::Block).expect("a journal");
    let mut name = |text: &str| journal.name(text).expect("room");
    let kinds = KINDS.map(&mut name);
    let names = ["one", "two", "three"].map(&mut name);
    let tapes = [(); 3].map(|()| Tape::new());
    let (mut time, mut emitted) = (0, 0);
    let mut record = |tape: &Tape, kind: u8, depth: usize, second: u64| {
        time = journal.now().max(time + 1);
        let first = components::first(kind, depth as u32, time);
        assert!(tape.write(first, second) || tape.turn(journal, 0) && tape.write(first, second));
        emitted += 1;
        time
    };
    let mut components: BTreeMap<u32, Component> = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for _ in 0..steps {
        let number = 1 + random.below(u64::from(COMPONENTS)) as u32;
        let tape = &tapes[random.below(3) as usize];
        let component = components.entry(number).or_insert_with(|| {
            let word = Word {
                name: Some(kinds[number as usize % 2]),
                number: 0,
                component: number,
            };
            record(tape, KIND, 0, word.pack());
            record(tape, NTH, 0, Word::nth(number, number.div_ceil(2)));
            Component {
                records: 1,
                open: Vec::new(),
            }
        });
        let deep = component.open.len() as u64;
        let begins = deep == 0 || random.below(5) > deep;
        let name = match begins {
            true => names[random.below(3) as usize],
            false => component.open[deep as usize - 1].0,
        };
        let word = Word {
            // Its probe may have been switched off.
            name: (begins || random.below(9) > 0).then_some(name),
            number: component.records,
            component: number,
        };
        component.records = component.records.wrapping_add(1);
        let deep = component.open.len();
        let at = match begins {
            true => record(tape, BEGINS, deep, word.pack()),
            false => record(tape, ENDS, deep - 1, word.pack()),
        };
        if begins {
            component.open.push((name, at));
        } else if let Some((name, begin)) = component.open.pop() {
            calls.insert((number, name, component.open.len(), begin, at));
        }
    }
    tapes.iter().for_each(Tape::close);
    let head = Head {
        process: process::id(),
        ..Head::default()
    };
    let mut writer = Writer::new(journal, Vec::new(), head, Encoding::Components);
    let mut refused = 0;
    while let Some(full) = journal.try_next() {
        match refuse_one_in.is_some_and(|one_in| random.below(one_in) == 0) {
            true => {
                refused += full.records().count() as u64;
                full.refuse();
            }
            false => writer.store(full),
        }
    }
    journal.close();
    assert!(writer.finish());
    let refuses = if refuse_one_in.is_some() {
        "lossy"
    } else {
        "whole"
    };
    let name = format!("hearth-components-{}-{refuses}-{seed}.calls", process::id());
    let path = env::temp_dir().join(name);
    fs::write(&path, writer.sink()).expect("it is written");
    Recording {
        path,
        calls,
        emitted,
        refused,
    }
}

/// Whole calls as they are read, the number of the others, and of records in gaps.
fn read(recorded: &Recorded) -> (BTreeSet<Was>, u64, u64) {
    let (mut whole, mut others, mut missing) = (BTreeSet::new(), 0, 0);
    let mut last = 0;
    let visited = recorded.visit(|step| match step {
        Step::Begins { ns, around, .. } => {
            assert!(ns >= last, "out of order");
            assert!(around.len() < 8);
            last = ns;
        }
        Step::Ends { call, .. } => match (call.name, call.begin, call.end) {
            (Some(name), Some(begin), Some(end)) => {
                whole.insert((call.thread, name, call.depth as usize, begin, end));
            }
            _ => others += 1,
        },
        Step::Gap { records, .. } => missing += records,
        Step::Appears { ns, .. } => last = last.max(ns),
    });
    visited.expect("it is read");
    (whole, others, missing)
}

/// Calls as they were, with the times that a reader makes of ticks.
fn in_ns(recording: &Recording, recorded: &Recorded) -> BTreeSet<Was> {
    let calls = recording.calls.iter();
    calls
        .map(|&(component, name, depth, begin, end)| {
            let (begin, end) = (recorded.ns(begin), recorded.ns(end));
            (component, name, depth, begin, end)
        })
        .collect()
}

#[test]
fn calls_are_found_on_all_threads() {
    for seed in 1..20 {
        let recording = recording(seed, 2_000, None);
        let recorded = Recorded::open(&recording.path).expect("a recording");
        assert!(recorded.is_of_components());
        assert_eq!(recorded.accounts().len(), 3);
        let (whole, _, missing) = read(&recorded);
        assert_eq!(whole, in_ns(&recording, &recorded), "seed {seed}");
        assert_eq!(missing, 0);
        let callers = recorded.callers();
        let names: Vec<String> = callers
            .iter()
            .map(|&number| recorded.caller(number).to_string())
            .collect();
        let expected = [
            "Client#1", "Server#1", "Client#2", "Server#2", "Client#3", "Server#3", "Client#4",
        ];
        assert_eq!(names, expected);
    }
}

#[test]
fn calls_around_losses_are_never_guessed() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 1..60 {
        let recording = recording(seed, 1_000, Some(2 + seed % 17));
        let recorded = Recorded::open(&recording.path).expect("a recording");
        let (whole, _, missing) = read(&recorded);
        let were = in_ns(&recording, &recorded);
        // Behind a gap, calls around may be unknown.
        let without_depth = |calls: &BTreeSet<Was>| -> BTreeSet<_> {
            let calls = calls.iter();
            calls
                .map(|&(component, name, _, begin, end)| (component, name, begin, end))
                .collect()
        };
        let (known, were) = (without_depth(&whole), without_depth(&were));
        let invented: Vec<_> = known.difference(&were).collect();
        assert!(invented.is_empty(), "seed {seed}: {invented:?}");
        let accounts = recorded.accounts().iter();
        let emitted: u64 = accounts.map(|account| account.emitted).sum();
        assert_eq!(emitted, recording.emitted, "seed {seed}");
        assert_eq!(missing, recording.refused, "seed {seed}");
        lost += recording.refused;
        kept += whole.len();
        for number in recorded.callers() {
            assert!(matches!(recorded.caller(number), Caller::Component(_)));
        }
    }
    assert!(lost > 1_000 && kept > 5_000, "{lost} lost, {kept} kept");
}
