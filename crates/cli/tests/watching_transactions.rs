//! `hearth watch` of traced transactions, also of a program that was killed.

mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hearth_stm::trace::{Options, Recorder, Session};
use hearth_stm::{Lsa, Stm, Traced, Var, with_tracer};
use hearth_watch::stream::FileSink;
use support::{run_in, text};

type Memory = Traced<Lsa, Recorder<true>>;

/// Set for the process that is killed: the folder of its files.
const KILLED: &str = "HEARTH_TEST_KILLED";

fn session(folder: &Path) -> Session<FileSink> {
    let file = File::create(folder.join("bank.stm")).expect("a file");
    let options = Options {
        program: "bank".to_owned(),
        journal: Some(folder.join("bank.journal")),
        buffer_bytes: 1 << 20,
        ..Options::default()
    };
    Session::begin(FileSink::new(file), options).expect("memory is there")
}

fn transfer(stm: &Stm<Memory>, accounts: &[Var<i64>]) {
    stm.atomically_at("transfer", |tx| {
        tx.update(&accounts[0], |sum| sum - 1)?;
        tx.update(&accounts[1], |sum| sum + 1)
    });
}

#[test]
fn transactions_are_shown_by_name_and_converted() {
    let folder = support::empty_folder("watching-transactions");
    let session = session(&folder);
    let stm = Stm::<Memory>::with_algorithm().traces(session.target());
    let accounts = [Var::new(0), Var::new(0)];
    for _ in 0..100 {
        transfer(&stm, &accounts);
    }
    let sum = stm.atomically(|tx| tx.fold(&accounts, 0, |sum, one| sum + one));
    assert_eq!(sum, 0);
    with_tracer::<Memory, _>(Recorder::close);
    let account = session.end();
    // A transfer is a start, two reads, two writes and a commit; each kind names its origin once.
    assert_eq!((account.emitted, account.lost), (100 * 6 + 3 + 2, 0));

    let output = run_in(&folder, &["watch", "bank.stm"]);
    let shown = text(&output.stdout);
    for words in [
        "605 records, 605 stored, 0 lost",
        "Where transactions begin",
        "watching_transactions.rs:",
        "Words written in an attempt",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    let row = shown.lines().find(|line| line.starts_with("transfer "));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words.get(1..3), Some(&["100", "0"][..]), "{shown}");
    let output = run_in(&folder, &["watch", "bank.stm", "--page", "bank.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(folder.join("bank.html")).expect("a page");
    assert!(page.contains("Victims by killer") && page.contains("transfer"));
    let output = run_in(&folder, &["watch", "bank.stm", "--as", "perfetto"]);
    let trace = hearth_watch::trace::read(&output.stdout).expect("a trace");
    let names = trace.packet.iter().filter_map(|packet| {
        let event = packet.track_event.as_ref()?;
        event.name.clone()
    });
    assert_eq!(names.filter(|name| name == "transfer").count(), 100);
    let output = run_in(&folder, &["watch", "bank.stm", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["threads"][0]["commits"], 101);
    let output = run_in(&folder, &["watch", "bank.stm", "--as", "csv"]);
    assert_eq!(output.status.code(), Some(2));
}

/// The part of the next test that is killed; alone it does nothing.
#[test]
fn the_killed() {
    let Some(folder) = std::env::var_os(KILLED) else {
        return;
    };
    let folder = Path::new(&folder);
    let session = session(folder);
    let stm = Stm::<Memory>::with_algorithm().traces(session.target());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let accounts = [Var::new(0), Var::new(0)];
                for _ in 0..20_000 {
                    transfer(&stm, &accounts);
                }
                File::create(folder.join(format!("{:?}", std::thread::current().id())))
                    .expect("a file");
                // Its last block is open when the process is killed.
                loop {
                    std::thread::park();
                }
            });
        }
    });
}

/// All that threads had recorded is in the file or the journal, and the count is exact.
#[test]
fn a_killed_programs_trace_is_readable_and_exact() {
    let folder = support::empty_folder("watching-killed-transactions");
    let program = std::env::current_exe().expect("this test has a file");
    let mut killed = Command::new(program)
        .args(["--exact", "the_killed", "--nocapture"])
        .env(KILLED, &folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let done = || {
        let entries = fs::read_dir(&folder)
            .expect("the folder is there")
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("ThreadId")).count()
    };
    while done() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(120), "it is stuck");
        assert!(matches!(killed.try_wait(), Ok(None)), "it ended by itself");
        std::thread::yield_now();
    }
    killed.kill().expect("it can be killed");
    killed.wait().expect("it ends");

    let output = run_in(&folder, &["watch", "bank.stm", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let lost = document["lost"].as_u64().expect("a count");
    let number = |name: &str| document[name].as_u64().expect("a count");
    assert_eq!(number("emitted"), number("stored") + lost);
    assert_eq!(lost, 0, "{document}");
    assert_eq!(document["has_ended"], false);
    let threads = document["threads"].as_array().expect("threads").iter();
    let commits: Vec<_> = threads.filter_map(|it| it["commits"].as_u64()).collect();
    assert_eq!(commits, [20_000, 20_000], "{document}");
    let shown = text(&run_in(&folder, &["watch", "bank.stm"]).stdout);
    assert!(shown.contains("did not end in order"), "{shown}");
}
