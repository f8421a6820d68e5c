//! From probes to calls and other tools' forms.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, process, thread};

use hearth_calls::formats::{Kieker, csv, folded, kieker};
use hearth_calls::{Call, Recorded, Step, Tree};
use hearth_monitor::{Monitor, Options, call};
use hearth_watch::stream::{Encoding, Head, Journal, Law, Said, Shape, Tape, Writer, write_chunk};

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let name = format!("hearth-calls-{}-{name}.calls", process::id());
        Temporary(env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A process has one monitor at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn leaf() {
    call!("Shop::leaf");
}

fn branch(leaves: u32) {
    call!("Shop::branch");
    for _ in 0..leaves {
        leaf();
    }
}

fn recorded(file: &Temporary, action: impl Fn() + Sync) -> Recorded {
    let _alone = alone();
    let monitor = Monitor::begin(Options::to_file(&file.0).on("Shop::*").law(Law::Block));
    let monitor = monitor.expect("it begins");
    thread::scope(|scope| {
        scope.spawn(&action);
    });
    action();
    let report = monitor.finish();
    assert_eq!(report.lost, 0);
    Recorded::open(&file.0).expect("a file of calls")
}

#[test]
fn calls_form_a_tree() {
    let file = Temporary::new("tree");
    let recorded = recorded(&file, || {
        branch(3);
        branch(2);
        leaf();
    });
    assert!(recorded.has_ended());
    let stored: Vec<u64> = recorded
        .accounts()
        .iter()
        .map(|account| account.stored)
        .collect();
    assert_eq!(stored, [16, 16]);
    let tree = Tree::of(&recorded).expect("it is read");
    let mut seen = Vec::new();
    tree.walk(|node, depth| {
        let name = node.name.map_or("?", |name| recorded.name(name));
        seen.push((depth, name.to_owned(), node.calls));
        assert!(node.own <= node.total && node.unknown == 0);
    });
    let expected = [
        (0, "Shop::branch", 4),
        (1, "Shop::leaf", 10),
        (0, "Shop::leaf", 2),
    ];
    seen.sort();
    let mut expected = expected.map(|(depth, name, calls)| (depth, name.to_owned(), calls));
    expected.sort();
    assert_eq!(seen, expected);
    assert_eq!(tree.gaps, (0, 0));
    assert_eq!(tree.edges().values().sum::<u64>(), 16);
    let names = recorded.names().keys();
    let lengths = names
        .filter_map(|&name| tree.lengths(name))
        .map(|lengths| lengths.len());
    assert_eq!(lengths.sum::<u64>(), 16);
}

#[test]
fn other_forms_have_the_same_calls() {
    let file = Temporary::new("forms");
    let recorded = recorded(&file, || branch(4));
    let tree = Tree::of(&recorded).expect("it is read");

    let mut text = Vec::new();
    csv(&recorded, &mut text).expect("it is written");
    let text = String::from_utf8(text).expect("text");
    assert_eq!(text.lines().count(), 1 + 10);
    assert!(text.starts_with("thread,depth,begin_ns,length_ns,name,missing\n"));

    let mut text = Vec::new();
    folded(&recorded, &tree, &mut text).expect("it is written");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("Shop::branch;Shop::leaf "), "{text}");
    for line in text.lines() {
        let (_, ns) = line.rsplit_once(' ').expect("a weight");
        assert!(ns.parse::<u64>().is_ok_and(|ns| ns > 0), "{line}");
    }

    let (mut map, mut log) = (Vec::new(), Vec::new());
    let counts = kieker(&recorded, &mut map, &mut log).expect("it is written");
    let expected = Kieker {
        traces: 2,
        records: 10,
        left_out: 0,
        calls_left_out: 0,
    };
    assert_eq!(counts, expected);
    let log = String::from_utf8(log).expect("text");
    for line in log.lines().filter(|line| line.starts_with("$1")) {
        let fields: Vec<&str> = line.split(';').collect();
        assert_eq!(fields.len(), 10, "{line}");
        assert!(fields[5] <= fields[6], "{line}: it ends after it began");
        let is_branch = fields[2] == "public void Shop.branch()";
        assert_eq!(
            fields[8] == "0",
            is_branch,
            "{line}: the first of its trace"
        );
        assert_eq!(fields[9] == "0", is_branch, "{line}: nothing around it");
    }
}

const END: u64 = 1 << 56;

/// A file with a thread of three blocks, the second of which was lost.
fn with_a_gap() -> Vec<u8> {
    let file = hearth_sys::shared::memory_file("a test", 1 << 20).expect("memory");
    let shape = Shape {
        blocks: 8,
        records: 4,
    };
    let journal = Journal::begin(&file, shape, Law::Block).expect("a journal");
    let name = |name| u64::from(journal.name(name).expect("room"));
    let (a, b, c) = (name("a"), name("b"), name("c"));
    let records = [
        [10, a],
        [20, b],
        [30, c],
        [END | 40, c],
        // Lost from here,
        [END | 50, b],
        [60, b],
        [70, c],
        [END | 80, c],
        // to here, where two calls are open again.
        [END | 90, b],
        [END | 100, a],
        [110, c],
    ];
    let (tape, mut depth) = (Tape::new(), 0_u32);
    for [first, second] in records {
        if !tape.write(first, second) {
            assert!(tape.turn(journal, depth) && tape.write(first, second));
        }
        depth = if first >= END { depth - 1 } else { depth + 1 };
    }
    tape.close();
    let head = Head {
        process: process::id(),
        law: Law::Block,
        program: "a test".into(),
        journal: String::new(),
    };
    let mut writer = Writer::new(journal, Vec::new(), head, Encoding::Calls);
    let (first, lost) = (journal.try_next(), journal.try_next());
    writer.store(first.expect("three blocks"));
    lost.expect("three blocks").refuse();
    journal.close();
    assert!(writer.finish());
    let mut bytes = std::mem::take(writer.sink());
    // Something behind the end does no harm.
    write_chunk(&Said::End(0), Encoding::Raw, &mut bytes);
    bytes
}

#[test]
fn gaps_stay_gaps() {
    let file = Temporary::new("gaps");
    fs::write(&file.0, with_a_gap()).expect("it is written");
    let recorded = Recorded::open(&file.0).expect("a file of calls");
    let account = &recorded.accounts()[0];
    assert_eq!(
        (account.emitted, account.stored, account.refused),
        (11, 7, 4)
    );

    let (mut ended, mut gaps) = (Vec::new(), Vec::new());
    let visit = |step: Step<'_>| match step {
        Step::Ends { call, .. } => {
            let Call {
                name,
                begin,
                end,
                has_gap,
                ..
            } = call;
            let name = name.map_or("?", |name| recorded.name(name));
            ended.push((name.to_owned(), begin.is_some(), end.is_some(), has_gap));
        }
        Step::Gap { records, .. } => gaps.push(records),
        Step::Begins { .. } | Step::Appears { .. } => {}
    };
    recorded.visit(visit).expect("it is read");
    assert_eq!(gaps, [4]);
    let expected = [
        // Whole.
        ("c", true, true, false),
        // Four records may have ended both that were open.
        ("b", true, false, false),
        ("a", true, false, false),
        // Two calls were open behind the gap; their names come with their ends.
        ("b", false, true, true),
        ("a", false, true, true),
        // Without an end.
        ("c", true, false, false),
    ];
    let expected = expected.map(|(name, begin, end, gap)| (name.to_owned(), begin, end, gap));
    assert_eq!(ended, expected);

    let (mut map, mut log) = (Vec::new(), Vec::new());
    let counts = kieker(&recorded, &mut map, &mut log).expect("it is written");
    assert_eq!((counts.traces, counts.left_out), (0, 3));
    assert_eq!((counts.records, counts.calls_left_out), (0, 6));
}

#[test]
fn what_is_no_recording_is_refused() {
    let file = Temporary::new("none");
    fs::write(&file.0, "thread,depth\n").expect("it is written");
    let error = Recorded::open(&file.0).err().expect("refused");
    assert!(
        error.to_string().contains("name a file that a monitor"),
        "{error}"
    );
    let missing = file.0.with_extension("no");
    let error = Recorded::open(&missing).err().expect("refused");
    assert!(error.to_string().contains("cannot read"), "{error}");
}
