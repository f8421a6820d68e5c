//! `hearth study run event-patterns`, on short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("events-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn hearth(arguments: &[&str]) -> Output {
    plain_hearth()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn study(out: &Path, more: &[&str]) -> (i32, String, String) {
    let out = out.to_str().expect("the folder's name is text");
    let mut arguments = vec!["study", "run", "event-patterns", "--quick"];
    arguments.extend(["--milliseconds", "100", "--out", out]);
    arguments.extend(more);
    let found = hearth(&arguments);
    (
        found.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&found.stdout).into_owned(),
        String::from_utf8_lossy(&found.stderr).into_owned(),
    )
}

#[test]
fn a_small_study_leaves_tables_charts_and_a_page() {
    let out = folder("small");
    let wanted = ["--experiment", "threads", "--repeats", "1"];
    let (code, said, complaint) = study(&out, &wanted);
    assert_eq!(code, 0, "{complaint}");
    assert!(
        said.contains("edge-triggered epoll gives more than select"),
        "{said}"
    );
    let table = fs::read_to_string(out.join("threads.csv")).unwrap();
    for line in [
        "half-async,select,apart,2,0,true,rate,1,",
        "half-async,level,apart,4,0,true,rate,1,",
        "leader,select,apart,1,0,true,p99_us,1,",
        "leader,edge,apart,2,0,true,rate,1,",
        "sharded,edge,apart,4,0,true,rate,1,",
    ] {
        assert!(table.contains(line), "{line} in {table}");
    }
    // On a busy machine a server may have no time to tell of itself in so short a run, but not
    // always.
    let told = |pattern: &str, mechanism: &str, figure: &str| -> Vec<f64> {
        let lines = table
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        lines
            .filter(|of| of[..2] == [pattern, mechanism] && of[6] == figure)
            .filter_map(|of| of[8].parse().ok())
            .collect()
    };
    for (pattern, mechanism, figure) in [
        ("half-async", "edge", "enqueue_ns"),
        ("half-async", "level", "reactivate_ns"),
        ("leader", "select", "obtain_ns"),
        ("sharded", "edge", "send_ns"),
    ] {
        let values = told(pattern, mechanism, figure);
        assert!(!values.is_empty(), "{pattern} {mechanism} {figure}");
        assert!(values.iter().all(|value| *value > 0.0), "{values:?}");
    }
    // Every request of every cell had its reply.
    let json = fs::read_to_string(out.join("results.json")).unwrap();
    assert!(
        !json.contains("had no reply") && !json.contains("the server:"),
        "{json}"
    );
    // A pattern that shares connections arms them again once a request with level-triggered epoll,
    // and never with edges.
    assert!(
        told("leader", "edge", "reactivate_ns").is_empty(),
        "{table}"
    );
    let armed = told("leader", "level", "rearmed");
    assert!(
        !armed.is_empty() && armed.iter().all(|count| (0.8..1.2).contains(count)),
        "{armed:?}"
    );
    let page = fs::read_to_string(out.join("event-patterns.html")).unwrap();
    assert!(page.contains("Beside the source&#39;s figure 5") || page.contains("figure 5"));
    assert!(out.join("threads-leader.svg").exists());
    let (code, _, complaint) = study(&out, &wanted);
    assert_eq!(code, 2);
    assert!(complaint.contains("--resume"), "{complaint}");
    // What is there already is not run again.
    let before = fs::read_to_string(out.join("threads.runs.csv")).unwrap();
    let (code, _, complaint) = study(
        &out,
        &["--experiment", "threads", "--repeats", "1", "--resume"],
    );
    assert_eq!(code, 0, "{complaint}");
    assert_eq!(
        fs::read_to_string(out.join("threads.runs.csv")).unwrap(),
        before
    );
}

#[test]
fn the_server_says_what_it_cannot_do() {
    let tool = |arguments: &[&str]| {
        let found = hearth(&[&["study", "tool", "events"], arguments].concat());
        (
            found.status.code(),
            String::from_utf8_lossy(&found.stderr).into_owned(),
        )
    };
    let (code, said) = tool(&["half-async", "edge", "--threads", "1"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("needs 2 threads"), "{said}");
    let (code, said) = tool(&["half-sync", "edge"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("half-async, leader"), "{said}");
    // Its input is at its end: it listens and stops.
    let (code, said) = tool(&["sharded", "edge", "--threads", "1"]);
    assert_eq!((code, &*said), (Some(0), ""));
}
