//! Losses as `hearth watch` shows them: a slow disk, a full one, a program that is killed, a clock
//! that is set. Each ends with a readable file and an exact count. The programs are this one again
//! as a child.

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use hearth_monitor::{Monitor, Options, call};
use hearth_watch::stream::{Chunks, Encoding, Law, Said, write_chunk};
use serde_json::Value;

/// Number of a program's outer calls, six records each.
const CALLS: &str = "HEARTH_TEST_CALLS";
/// Blocks of a program: few, so that they are all in use soon.
const BUFFER: &str = "buffer=1M";

fn inner(number: u64) -> u64 {
    call!("Shop.inner");
    std::hint::black_box(number + 1)
}

fn outer(number: u64) -> u64 {
    call!("Shop.outer");
    inner(number) + inner(number + 1)
}

/// The choices, if this process is a child.
fn role() -> Option<Options> {
    Options::of_env().expect("choices")
}

/// A command that runs a role of this program, which records into a file.
fn child(role: &str, file: &Path, choices: &str, calls: u64) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", role, "--nocapture"])
        .env(CALLS, calls.to_string())
        .env(
            "HEARTH_MONITOR",
            format!("file={},{choices}", file.display()),
        )
        .stdout(Stdio::null());
    command
}

/// Answer of `hearth watch` for a file, as text and as figures.
fn watch(file: &Path) -> (String, Value) {
    let output = |more: &[&str]| {
        let mut command = support::hearth();
        let output = command.arg("watch").arg(file).args(more).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let document: Value = serde_json::from_str(&output(&["--json"])).expect("JSON");
    let sum = |key: &str| number(&document, key);
    assert_eq!(sum("emitted"), sum("stored") + sum("lost"));
    (output(&[]), document)
}

fn number(document: &Value, key: &str) -> u64 {
    document[key].as_u64().expect("a number")
}

/// A number as the command shows it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let (head, tail) = digits.split_at(head);
    let groups = tail.as_bytes().chunks(3).map(String::from_utf8_lossy);
    let mut parts: Vec<String> = groups.map(|group| group.into_owned()).collect();
    if !head.is_empty() {
        parts.insert(0, head.to_owned());
    }
    parts.join(" ")
}

/// Asserts that all that the program emitted is in the account, and that a part was lost.
fn assert_lost((shown, document): (String, Value), calls: u64, law: Law, reason: &str) {
    let (emitted, lost) = (number(&document, "emitted"), number(&document, "lost"));
    assert_eq!(emitted, 6 * calls);
    assert!(lost > 0);
    let said = format!(
        "{} of {} records are lost, by the law {law};",
        grouped(lost),
        grouped(emitted)
    );
    assert!(shown.contains(&said), "{said} is not in {shown}");
    let threads = document["threads"].as_array().expect("threads");
    let of_reason: u64 = threads.iter().map(|thread| number(thread, reason)).sum();
    assert!(of_reason > 0, "{reason}: {document}");
}

#[test]
fn calls() {
    let Some(options) = role() else { return };
    let calls = env::var(CALLS).ok().and_then(|calls| calls.parse().ok());
    let calls: u64 = calls.expect("a number");
    let monitor = Monitor::begin(options).expect("it begins");
    (0..calls).map(outer).fold(0, u64::wrapping_add);
    let report = monitor.finish();
    assert_eq!(report.emitted, 6 * calls);
}

#[test]
fn a_slow_disk() {
    let folder = support::empty_folder("losses-slow");
    let (pipe, file) = (folder.join("pipe"), folder.join("slow.calls"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo starts").success());
    let mut child = child("calls", &pipe, BUFFER, 100_000)
        .spawn()
        .expect("it starts");
    let (mut from, mut to) = (
        File::open(&pipe).expect("a pipe"),
        File::create(&file).expect("a file"),
    );
    // The disk takes a little at a time, until the program has ended; then the rest.
    let mut bytes = [0; 512];
    loop {
        let read = from.read(&mut bytes).expect("it can be read");
        to.write_all(&bytes[..read]).expect("it is written");
        if read == 0 {
            break;
        }
        if to.metadata().expect("its length").len() < 60_000 {
            (0..200).for_each(|_| thread::yield_now());
        }
    }
    assert!(child.wait().expect("it ends").success());
    assert_lost(watch(&file), 100_000, Law::DropNewest, "dropped");
}

#[test]
fn a_full_disk() {
    let folder = support::empty_folder("losses-full");
    let file = folder.join("full.calls");
    // A limit on the length of files does as a full disk does: a write fails. It is 4.5 MB, in
    // half kibibytes: the journal, with the fewest blocks, is shorter, and the file would not be.
    let limited = "trap '' XFSZ; ulimit -f 8750; exec \"$@\"";
    let program = child("calls", &file, "buffer=128K,law=block", 400_000);
    let mut command = Command::new("sh");
    command
        .args(["-c", limited, "sh"])
        .arg(program.get_program());
    command.args(program.get_args());
    for (name, value) in program.get_envs() {
        command.env(name, value.expect("a value"));
    }
    let status = command.stdout(Stdio::null()).status();
    assert!(status.expect("it starts").success());
    assert_lost(watch(&file), 400_000, Law::Block, "refused");
}

#[test]
fn calls_for_ever() {
    let Some(options) = role() else { return };
    let _monitor = Monitor::begin(options).expect("it begins");
    loop {
        outer(1);
    }
}

#[test]
fn a_killed_writer() {
    let folder = support::empty_folder("losses-killed");
    let file = folder.join("killed.calls");
    let child = support::Killed(
        child("calls_for_ever", &file, BUFFER, 0)
            .spawn()
            .expect("it starts"),
    );
    let begin = Instant::now();
    while fs::metadata(&file).map_or(0, |data| data.len()) < 100_000 {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it writes nothing"
        );
        thread::yield_now();
    }
    let process = child.0.id();
    drop(child);
    let (shown, document) = watch(&file);
    assert!(shown.contains("did not end in order"), "{shown}");
    assert!(number(&document, "stored") > 10_000 && document["ended"] == false);
    // The same once more, from the file and what is left in memory.
    assert_eq!(watch(&file).1, document);
    for file in fs::read_dir("/dev/shm").expect("a folder").flatten() {
        let name = file.file_name();
        if name
            .to_string_lossy()
            .starts_with(&format!("hearth-{process}-"))
        {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The wall's clock is not set for a test: the file's readings of it are, behind the first.
#[test]
fn a_clock_that_is_set() {
    const HOUR: u64 = 3_600_000_000_000;
    let folder = support::empty_folder("losses-clock");
    let file = folder.join("clock.calls");
    let status = child("calls", &file, BUFFER, 10_000).status();
    assert!(status.expect("it starts").success());
    let before = watch(&file).1;
    let (mut bytes, mut readings) = (Vec::new(), 0);
    for said in Chunks::new(File::open(&file).expect("a file")) {
        let mut said = said.expect("a whole chunk");
        if let Said::Clocks(clocks) = &mut said {
            readings += 1;
            if readings > 1 {
                clocks.wall -= HOUR;
            }
        }
        write_chunk(&said, Encoding::Calls, &mut bytes);
    }
    assert!(readings > 1);
    fs::write(&file, bytes).expect("it is written");
    let (shown, after) = watch(&file);
    assert!(shown.contains("The wall's clock was set by -3"), "{shown}");
    for key in ["emitted", "stored", "lost", "probes"] {
        assert_eq!(before[key], after[key], "{key}");
    }
}
