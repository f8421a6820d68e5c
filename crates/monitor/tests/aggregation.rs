//! Calls that are added up in the program. Each test runs this program again as a child, as a
//! process has one monitor at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use hearth_calls::{Recorded, Tree};
use hearth_monitor::{Monitor, Options, call};

const FILE: &str = "HEARTH_TEST_FILE";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("hearth-aggregation-{}-{name}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("sums.calls")
    }

    fn child(&self, role: &str) -> Child {
        Command::new(env::current_exe().expect("this program"))
            .args(["--exact", role, "--nocapture"])
            .env(FILE, self.file())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn role() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

fn inner(turns: u64) -> u64 {
    call!("Server.inner");
    (0..turns).fold(1, |sum: u64, turn| {
        std::hint::black_box(sum.wrapping_mul(turn | 1))
    })
}

fn outer(turns: u64) -> u64 {
    call!("Server.outer");
    inner(turns).wrapping_add(inner(turns))
}

/// Number of calls and of those without a length, by names.
type Counts = BTreeMap<String, (u64, u64)>;

fn counts(recorded: &Recorded) -> Counts {
    let tree = Tree::of(recorded).expect("it can be read");
    let mut counts = Counts::new();
    for node in &tree.nodes {
        if let Some(name) = node.name {
            let lengths = tree.lengths(name).map_or(0, |lengths| lengths.len());
            assert_eq!(lengths, node.calls - node.unknown);
            assert!(node.own <= node.total);
            counts.insert(recorded.name(name).to_owned(), (node.calls, node.unknown));
        }
    }
    counts
}

fn expected(outer: u64) -> Counts {
    let of = |name: &str, calls| (name.to_owned(), (calls, 0));
    Counts::from([of("Server.outer", outer), of("Server.inner", 2 * outer)])
}

#[test]
fn threads_come_and_go() {
    let Some(file) = role() else { return };
    let monitor = Monitor::begin(Options::aggregate_to(&file).on("*")).expect("it begins");
    for _ in 0..5 {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..1_000).map(outer).fold(0, u64::wrapping_add));
            }
        });
    }
    let report = monitor.finish();
    assert_eq!((report.emitted, report.lost), (15_000 * 6, 0));
    assert!(report.failure.is_none() && report.journal.is_none());
}

#[test]
fn calls_are_counted_and_measured() {
    let folder = Folder::new("counted");
    let status = folder.child("threads_come_and_go").wait();
    assert!(status.expect("it ends").success());
    let recorded = Recorded::open(&folder.file()).expect("sums");
    assert!(recorded.has_ended() && recorded.damages().is_empty());
    assert_eq!(counts(&recorded), expected(15_000));
    let accounts = recorded.accounts();
    assert_eq!(accounts.len(), 15);
    assert!(
        accounts
            .iter()
            .all(|one| one.emitted == 6_000 && one.stored == 6_000)
    );
    // An outer call is longer than both inner ones in it, and none of its time is theirs.
    let tree = Tree::of(&recorded).expect("it can be read");
    let node = |name: &str| {
        let is_it = |node: &&hearth_calls::Node| {
            node.name
                .is_some_and(|number| recorded.name(number) == name)
        };
        tree.nodes.iter().find(is_it).expect("it was called")
    };
    let (outer, inner) = (node("Server.outer"), node("Server.inner"));
    assert!(outer.total > inner.total && inner.total == inner.own);
    assert!(
        outer.own.abs_diff(outer.total - inner.total) < 10,
        "{outer:?} {inner:?}"
    );
    // Only the file is left.
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1);
}

#[test]
fn calls_stay_open() {
    let Some(file) = role() else { return };
    let monitor = Monitor::begin(Options::aggregate_to(&file).on("*")).expect("it begins");
    thread::scope(|scope| {
        scope.spawn(|| {
            call!("Server.thread");
            outer(1);
            // Without a guard's end; the thread ends before the call does.
            std::mem::forget(guard());
        });
    });
    call!("Server.main");
    outer(1);
    // Deeper than open calls have places.
    nested(1_500);
    let report = monitor.finish();
    assert_eq!(report.lost, 0);
}

fn guard() -> hearth_monitor::Call {
    static PROBE: hearth_monitor::Probe = hearth_monitor::Probe::new("Server.forgotten");
    PROBE.call()
}

fn nested(depth: u32) {
    call!("Server.nested");
    if depth > 1 {
        nested(depth - 1);
    }
}

#[test]
fn open_calls_are_counted() {
    let folder = Folder::new("open");
    let status = folder.child("calls_stay_open").wait();
    assert!(status.expect("it ends").success());
    let recorded = Recorded::open(&folder.file()).expect("sums");
    let counts = counts(&recorded);
    assert_eq!(counts["Server.outer"], (2, 0));
    assert_eq!(counts["Server.main"], (1, 1));
    // The forgotten one ended with the call around it.
    assert_eq!(counts["Server.forgotten"], (1, 1));
    assert_eq!(counts["Server.thread"], (1, 0));
    let (nested, unknown) = counts["Server.nested"];
    assert_eq!(nested, 1_500);
    assert!(unknown > 0 && unknown < 600, "{unknown}");
}

#[test]
fn few_blocks() {
    let Some(file) = role() else { return };
    // A root, a directory and one table.
    let options = Options::aggregate_to(&file).on("*").buffer(3 * (24 << 10));
    let monitor = Monitor::begin(options).expect("it begins");
    (0..100).for_each(|_| {
        outer(1);
    });
    let report = monitor.finish();
    assert_eq!((report.emitted, report.lost), (600, 200));
}

#[test]
fn calls_without_a_table_are_counted_as_lost() {
    let folder = Folder::new("few");
    let status = folder.child("few_blocks").wait();
    assert!(status.expect("it ends").success());
    let recorded = Recorded::open(&folder.file()).expect("sums");
    let of = ("Server.inner".to_owned(), (200, 0));
    assert_eq!(counts(&recorded), Counts::from([of]));
    let account = &recorded.accounts()[0];
    assert_eq!(
        (account.emitted, account.stored, account.dropped),
        (600, 400, 200)
    );
}

#[test]
fn calls_for_ever() {
    let Some(file) = role() else { return };
    let _monitor = Monitor::begin(Options::aggregate_to(&file).on("*")).expect("it begins");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    outer(1);
                }
            });
        }
    });
}

#[test]
fn a_killed_program_leaves_its_sums() {
    let folder = Folder::new("killed");
    let mut child = folder.child("calls_for_ever");
    let begin = Instant::now();
    let before = loop {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it counts nothing"
        );
        if let Ok(recorded) = Recorded::open(&folder.file()) {
            let counts = counts(&recorded);
            if counts
                .get("Server.outer")
                .is_some_and(|&(calls, _)| calls > 10_000)
            {
                break counts["Server.outer"].0;
            }
        }
        thread::yield_now();
    };
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let recorded = Recorded::open(&folder.file()).expect("sums");
    assert!(!recorded.has_ended());
    let counts = counts(&recorded);
    let ((outer, _), (inner, _)) = (counts["Server.outer"], counts["Server.inner"]);
    assert!(outer >= before);
    // For each of two threads one call may be open, and one more be counted twice.
    assert!(inner.abs_diff(2 * outer) <= 2 * 3, "{outer} {inner}");
    let emitted: u64 = recorded.accounts().iter().map(|one| one.stored).sum();
    assert!(emitted.abs_diff(2 * (outer + inner)) <= 2 * 6, "{emitted}");
    let journal = fs::read_dir("/dev/shm").expect("a folder");
    let name = format!("hearth-{}-", child.id());
    for file in journal.flatten() {
        if file.file_name().to_string_lossy().starts_with(&name) {
            let _ = fs::remove_file(file.path());
        }
    }
}
