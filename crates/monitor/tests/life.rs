//! Monitors in processes of their own: each test runs this program again as a child.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use hearth_monitor::{Destination, Mode, Monitor, Options, Outside, Rule, call};
use hearth_watch::stream::{Law, Log};

const FILE: &str = "HEARTH_TEST_FILE";
const LAW: &str = "HEARTH_TEST_LAW";

/// A file that is deleted at the end of the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let name = format!("hearth-monitor-{}-{name}.calls", process::id());
        Temporary(env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A child that does not outlive its test.
struct Role(Child);

impl Role {
    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a role of this program as a child.
fn child(role: &str, file: &Temporary, law: Law) -> Role {
    let child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", role, "--nocapture"])
        .env(FILE, &file.0)
        .env(LAW, law.name())
        .stdout(Stdio::null())
        .spawn();
    Role(child.expect("it starts"))
}

/// The file and the law, if this process is a child.
fn role() -> Option<(PathBuf, Law)> {
    let file = env::var_os(FILE)?;
    let law = env::var(LAW).ok()?.parse().ok()?;
    Some((file.into(), law))
}

/// Calls of each of three threads: six records each. Deep tests make 10⁸ records.
fn calls() -> u64 {
    match env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 5_600_000,
        None => 50_000,
    }
}

fn inner(number: u64) -> u64 {
    call!("Server.inner");
    std::hint::black_box(number + 1)
}

fn outer(number: u64) -> u64 {
    call!("Server.outer");
    inner(number) + inner(number + 1)
}

/// Reads a file, and checks its law; returns the records emitted and lost.
fn account(file: &Temporary) -> (u64, u64, bool) {
    let mut log = Log::open(&file.0).expect("a stream");
    while log.next_chunk().is_some() {}
    let (mut emitted, mut lost) = (0, 0);
    for (total, stored) in log.accounts() {
        assert_eq!(total.emitted, stored + total.lost(), "{total:?}");
        emitted += total.emitted;
        lost += total.lost();
    }
    // A program that is killed while it writes leaves the start of a chunk; the journal has it.
    let is_torn = |damage: &String| !log.has_ended && damage.ends_with("the start of a chunk");
    let damages: Vec<_> = log.damages.iter().filter(|one| !is_torn(one)).collect();
    assert_eq!(damages, Vec::<&String>::new());
    (emitted, lost, log.has_ended)
}

fn remove_journal(file: &Temporary) {
    if let Ok(log) = Log::open(&file.0) {
        let _ = fs::remove_file(&log.head().journal);
    }
}

#[test]
fn threads_call() {
    let Some((file, law)) = role() else { return };
    let options = Options::to_file(&file)
        .on("Server.*")
        .law(law)
        .buffer(1 << 20);
    let monitor = Monitor::begin(options).expect("it begins");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope
                .spawn(|| (0..calls()).fold(0, |sum: u64, number| sum.wrapping_add(outer(number))));
        }
    });
    let report = monitor.finish();
    assert_eq!(report.emitted, 3 * calls() * 6);
    assert!(report.failure.is_none() && report.journal.is_none());
}

#[test]
fn every_call_is_stored_or_counted_by_every_law() {
    for law in Law::ALL {
        let file = Temporary::new(law.name());
        let status = child("threads_call", &file, law).0.wait().expect("it ends");
        assert!(status.success(), "{law}");
        let (emitted, lost, has_ended) = account(&file);
        assert_eq!(emitted, 3 * calls() * 6, "{law}");
        assert!(has_ended, "{law}");
        assert!(law != Law::Block || lost == 0, "{law}: {lost} lost");
    }
}

#[test]
fn calls_for_ever() {
    let Some((file, law)) = role() else { return };
    let options = Options::to_file(&file).on("*").law(law).buffer(1 << 20);
    let _monitor = Monitor::begin(options).expect("it begins");
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
fn a_killed_program_leaves_a_right_account() {
    let rounds = if env::var_os("HEARTH_TEST_DEEP").is_some() {
        1_000
    } else {
        12
    };
    for round in 0..rounds {
        let law = Law::ALL[round % 4];
        let file = Temporary::new(&format!("killed-{round}"));
        let child = child("calls_for_ever", &file, law);
        let begin = Instant::now();
        // Until it has written something, and then for a while that differs.
        while fs::metadata(&file.0).map_or(0, |data| data.len()) < 100_000 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it writes nothing"
            );
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(137 * (round as u64 % 100)));
        child.kill();
        let (emitted, _, has_ended) = account(&file);
        assert!(emitted > 10_000 && !has_ended);
        remove_journal(&file);
    }
}

#[test]
fn probes_are_switched_from_outside() {
    let file = Temporary::new("switched");
    let child = child("calls_for_ever", &file, Law::DropNewest);
    let begin = Instant::now();
    let outside = loop {
        match Outside::of_process(child.0.id()) {
            Ok(outside) => break outside,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(60), "{error}"),
        }
        thread::yield_now();
    };
    // Until both were passed.
    while outside.rule("+Server.*").expect("it answers") < 2 {}
    assert_eq!(outside.rule("-Server.inner").expect("it answers"), 1);
    assert_eq!(outside.rule("-*").expect("it answers"), 0);
    assert_eq!(outside.rule("Server.inner").expect("it answers"), 1);
    child.kill();
    remove_journal(&file);
    let error = Outside::of_process(process::id()).err().expect("none");
    assert!(error.to_string().contains("has no monitor"));
}

/// One test, as a process has one monitor at a time.
#[test]
fn monitors_begin_and_end() {
    let memory = || Options::to(Destination::Memory);
    assert_eq!(outer(1), 5, "a probe without a monitor");
    let monitor = Monitor::begin(memory().on("Server.*").rule(Rule::off("*.inner")));
    let monitor = monitor.expect("it begins");
    assert!(Monitor::begin(memory()).is_err(), "a second one");
    outer(1);
    assert_eq!(monitor.rule(Rule::on("Server.inner")), 2);
    outer(1);
    let report = monitor.finish();
    assert_eq!((report.emitted, report.lost), (2 + 6, 0));
    assert!(!report.chunks.is_empty());

    // Off again, and on in the next one; a call that began before belongs to none.
    outer(1);
    let next = {
        call!("Server.across");
        Monitor::begin(memory().on("*").mode(Mode::Synchronous)).expect("it begins")
    };
    for number in 0..10_000 {
        outer(number);
    }
    let report = next.finish();
    assert_eq!((report.emitted, report.lost), (60_000, 0));
    let nowhere = env::temp_dir().join("no such directory/x.calls");
    let error = Monitor::begin(Options::to_file(&nowhere))
        .err()
        .expect("no file");
    assert!(error.to_string().contains("name another file"), "{error}");
}
