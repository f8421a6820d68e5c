//! `hearth study run memcached`, short runs from end to end.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memcached-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// The first missing program, in one line.
fn missing() -> Option<&'static str> {
    let cachet = Path::new(env!("CARGO_BIN_EXE_hearth-study")).with_file_name("cachet");
    if !cachet.is_file() {
        return Some("there is no cachet beside hearth; build it: cargo build -p cachet");
    }
    let started = Command::new("memcached").arg("-V").output();
    if started.is_err() {
        return Some("there is no memcached; install it, for example: apt-get install memcached");
    }
    None
}

fn study(out: &Path, more: &[&str]) -> (i32, String, String) {
    let found = plain_hearth()
        .args(["study", "run", "memcached", "--quick", "--repeats", "1"])
        .args(["--threads", "1", "--out"])
        .arg(out)
        .args(more)
        .output()
        .expect("the command starts");
    (
        found.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&found.stdout).into_owned(),
        String::from_utf8_lossy(&found.stderr).into_owned(),
    )
}

/// The processes that this one started and that are alive.
fn children_of(process: u32) -> Vec<u32> {
    let list = format!("/proc/{process}/task/{process}/children");
    let found = fs::read_to_string(list).unwrap_or_default();
    found
        .split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

#[test]
fn a_killed_study_leaves_no_servers() {
    if let Some(why) = missing() {
        eprintln!("skipped: {why}");
        return;
    }
    let wait = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let end = Instant::now() + Duration::from_secs(120);
        while !is_so() {
            assert!(Instant::now() < end, "in vain: {what}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let mut study = plain_hearth()
        .args([
            "study",
            "run",
            "memcached",
            "--quick",
            "--threads",
            "1",
            "--out",
        ])
        .arg(folder("killed"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut servers = Vec::new();
    wait("it starts a server", &mut || {
        servers = children_of(study.id());
        !servers.is_empty()
    });
    study.kill().expect("it runs");
    study.wait().expect("it was killed");
    wait("its servers end", &mut || {
        servers
            .iter()
            .all(|server| !Path::new(&format!("/proc/{server}")).exists())
    });
}

#[test]
fn a_short_study_leaves_tables_charts_and_a_page() {
    if let Some(why) = missing() {
        eprintln!("skipped: {why}");
        return;
    }
    let out = folder("short");
    let wanted = ["--experiment", "optimisations"];
    let (code, said, complaint) = study(&out, &wanted);
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("a queue of pointers is better"), "{said}");
    let runs = fs::read_to_string(out.join("optimisations.runs.csv")).unwrap();
    for row in [
        "70,cachet-load,1,lock,no,rate,1,",
        "70,cachet-load,1,plain,no,section_ticks,1,",
        "70,cachet-load,1,zero+drain,no,server_ns,1,",
        "70,cachet-load,1,message,no,delegated_percent,1,",
        "70,cachet-load,1,lines,no,p99_us,1,",
    ] {
        assert!(runs.contains(row), "{row} in {runs}");
    }
    // A request by message runs on another thread, one under a lock on the asking thread.
    let share = |row: &str| -> f64 {
        let line = runs.lines().find(|line| line.starts_with(row));
        line.and_then(|line| line.rsplit(',').next())
            .and_then(|value| value.parse().ok())
            .unwrap()
    };
    assert!(share("70,cachet-load,1,plain,no,delegated_percent,1,") > 50.0);
    assert!(share("70,cachet-load,1,lock,no,delegated_percent,1,") < 1.0);
    let svg = fs::read_to_string(out.join("optimisations-1.svg")).unwrap();
    assert!(svg.contains("<svg"));
    let page = fs::read_to_string(out.join("memcached.html")).unwrap();
    assert!(page.contains("zero-copy") && page.contains("Not measured"));
    let (code, _, complaint) = study(&out, &[]);
    assert_eq!(code, 2);
    assert!(complaint.contains("--resume"), "{complaint}");
    // Both generators, and the real memcached.
    let more = ["--experiment", "threads", "--resume"];
    let (code, _, complaint) = study(&out, &more);
    assert_eq!(code, 0, "{complaint}");
    let runs = fs::read_to_string(out.join("threads.runs.csv")).unwrap();
    let has_memcaslap = Command::new("memcaslap").arg("-V").output().is_ok();
    for (load, is_there) in [("cachet-load", true), ("memcaslap", has_memcaslap)] {
        for server in ["memcached", "lock", "message", "auto"] {
            let row = format!("70,{load},1,{server},no,rate,1,");
            assert_eq!(runs.contains(&row), is_there, "{row} in {runs}");
        }
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let out = folder("wrong");
    let (code, _, complaint) = study(&out, &["--experiment", "nothing"]);
    assert_eq!(code, 2);
    assert!(complaint.contains("optimisations"), "{complaint}");
    let (code, _, complaint) = study(&out, &["--cachet", "/no/such/file"]);
    assert_eq!(code, 2);
    assert!(
        complaint.contains("cannot start /no/such/file"),
        "{complaint}"
    );
    let (code, _, complaint) = study(&out, &["--seed", "1"]);
    assert_eq!(code, 2);
    assert!(complaint.contains("has no --seed"), "{complaint}");
}
