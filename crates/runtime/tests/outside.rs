//! Timers and descriptors: served in time, without a thread of their own, and at no cost while
//! nothing comes.

mod hand;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command};
use std::sync::OnceLock;
use std::time::Duration;

use hand::{build, command, finish, outcome_of};

/// Returns the program with the cases, built once.
fn cases() -> &'static PathBuf {
    static CASES: OnceLock<PathBuf> = OnceLock::new();
    CASES.get_or_init(|| build("outside"))
}

/// A carrier's environment: names and values.
type Carrier = [(&'static str, &'static str)];

const CARRIERS: [&Carrier; 4] = [
    &[("HEARTH_WORKERS", "1")],
    &[("HEARTH_WORKERS", "2")],
    &[("HEARTH_WORKERS", "4"), ("HEARTH_PLACE", "spread")],
    &[("HEARTH_CARRIER", "threads")],
];

fn case(name: &str, carrier: &Carrier) -> Command {
    let mut command = command(cases(), &[name]);
    command.envs(carrier.iter().copied());
    command
}

fn check(name: &str, carrier: &Carrier, expected: &str) {
    let found = outcome_of(&finish(case(name, carrier).spawn().unwrap()));
    let expected = (Some(0), expected.to_owned(), String::new());
    assert_eq!(found, expected, "{name} with {carrier:?}");
}

/// Starts a case and waits for its first line.
fn start(command: &mut Command, line: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut found = String::new();
    stdout.read_line(&mut found).unwrap();
    assert_eq!(found, line);
    (child, stdout)
}

/// The names of a program's threads.
fn threads(child: &Child) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.flatten().filter_map(name);
    let mut names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
    names.sort();
    names
}

/// Returns its threads' processor time, in clock ticks.
fn used(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // After the name, which may contain spaces; user and system time are fields 14 and 15.
    let (_, behind) = stat.rsplit_once(')').unwrap();
    let fields = behind.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Counts how often its threads have gone to sleep, together.
fn sleeps(child: &Child) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let of_task = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.map_or(0, |count| count.trim().parse::<u64>().unwrap())
    };
    tasks.flatten().map(of_task).sum()
}

#[test]
fn nothing_ticks_while_nothing_comes() {
    for carrier in &CARRIERS[..3] {
        let (child, _stdout) = start(&mut case("idle", carrier), "idle\n");
        // It may take some slices until the last thread finds nothing to do.
        let is_quiet = (0..30).any(|_| {
            let before = (sleeps(&child), used(&child));
            std::thread::sleep(Duration::from_secs(1));
            (sleeps(&child), used(&child)) == before
        });
        let names = threads(&child);
        kill(child);
        assert!(is_quiet, "it never rests with {carrier:?}");
        assert!(
            !names
                .iter()
                .any(|name| name == "timers" || name == "poller"),
            "{names:?}"
        );
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn with_a_thread_each_one_waits_for_all() {
    let (child, _stdout) = start(&mut case("idle threads", CARRIERS[3]), "idle\n");
    let names = threads(&child);
    kill(child);
    let pollers = names.iter().filter(|&name| name == "poller").count();
    assert!(
        pollers == 1 && !names.contains(&"timers".to_owned()),
        "{names:?}"
    );
}

#[test]
fn timers_tick_while_all_compute() {
    for carrier in CARRIERS {
        check("computing", carrier, "in time\n");
    }
}

/// Between two components that run again and again a worker looks itself: no monitor intervenes.
#[test]
fn timers_tick_while_all_are_busy() {
    for workers in ["1", "2"] {
        let carrier = [("HEARTH_WORKERS", workers), ("HEARTH_SLICE", "1000000000")];
        check("chatting", &carrier, "in time\n");
    }
    for carrier in CARRIERS {
        check("chatting", carrier, "in time\n");
    }
}

#[test]
fn many_timers_are_set_and_set_anew_and_unset() {
    for carrier in CARRIERS {
        check("crowd", carrier, "500\n");
    }
}

/// Makes a FIFO without a peer at its other end.
fn fifo(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

fn rest_of(child: Child, mut stdout: BufReader<ChildStdout>) -> (Option<i32>, String) {
    let output = finish(child);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code(), rest)
}

#[test]
fn a_button_is_pressed_by_fifo_by_signal_and_by_times() {
    for carrier in CARRIERS {
        let expected = (Some(0), "pressed\n".repeat(3));
        let path = fifo("button");
        let mut by_fifo = case("pressing", carrier);
        by_fifo.env("HEARTH_DEVICE_BUTTON", format!("fifo:{}", path.display()));
        let (child, stdout) = start(&mut by_fifo, "ready\n");
        let mut button = OpenOptions::new().write(true).open(path).unwrap();
        for part in ["\n", "a\nb", "\n"] {
            button.write_all(part.as_bytes()).unwrap();
        }
        assert!(!threads(&child).contains(&"button".to_owned()));
        assert_eq!(rest_of(child, stdout), expected, "by FIFO with {carrier:?}");

        let (child, mut stdout) = start(&mut case("pressing", carrier), "ready\n");
        // It prints when it is idle, so now it waits for the button.
        let mut lines = String::new();
        for _ in 0..3 {
            let id = child.id().to_string();
            let sent = Command::new("kill").args(["-USR1", &id]).status().unwrap();
            assert!(sent.success());
            stdout.read_line(&mut lines).unwrap();
        }
        assert_eq!(rest_of(child, stdout), (Some(0), String::new()));
        assert_eq!(lines, expected.1, "by signal with {carrier:?}");

        let mut by_times = case("pressing", carrier);
        by_times.env("HEARTH_DEVICE_BUTTON", "times:0,0.005,0.01,0.02");
        let (child, stdout) = start(&mut by_times, "ready\n");
        assert_eq!(
            rest_of(child, stdout),
            expected,
            "by times with {carrier:?}"
        );
    }
}

#[test]
fn a_serial_line_comes_in_pieces() {
    for carrier in CARRIERS {
        let path = fifo("serial");
        let mut command = case("listening", carrier);
        command.env("HEARTH_DEVICE_SERIAL", &path);
        let (child, mut stdout) = start(&mut command, "ready\n");
        let mut line = OpenOptions::new().write(true).open(path).unwrap();
        let mut found = String::new();
        // Each line is printed before the next is written: several at once, halves, and line ends.
        for (part, lines) in [("one\ntwo\r\n", 2), ("thr", 0), ("ee\nfo", 1), ("ur\r", 0)] {
            line.write_all(part.as_bytes()).unwrap();
            for _ in 0..lines {
                stdout.read_line(&mut found).unwrap();
            }
        }
        line.write_all(b"\nend\n").unwrap();
        assert!(!threads(&child).contains(&"serial".to_owned()));
        let (code, rest) = rest_of(child, stdout);
        assert_eq!(
            (code, found + &rest),
            (Some(0), "one.\ntwo.\nthree.\nfour.\nend.\n".to_owned()),
            "with {carrier:?}"
        );
    }
}

/// A thread reads a source that cannot be polled, to its end.
#[test]
fn a_file_can_be_a_serial_line() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serial-file");
    fs::write(&path, "one\ntwo\nend").unwrap();
    for carrier in CARRIERS {
        let mut command = case("listening", carrier);
        command.env("HEARTH_DEVICE_SERIAL", &path);
        let (child, stdout) = start(&mut command, "ready\n");
        let expected = (Some(0), "one.\ntwo.\nend.\n".to_owned());
        assert_eq!(rest_of(child, stdout), expected, "with {carrier:?}");
    }
}
