//! `hearth study run coscheduling`, in short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use support::plain_hearth;

#[test]
fn a_small_study_leaves_tables_and_a_page() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coscheduling-small");
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&out);
    let found = plain_hearth()
        .args(["study", "run", "coscheduling", "--quick", "--out"])
        .arg(&out)
        .args(["--repeats", "1", "--milliseconds", "50"])
        .args(["--experiment", "barriers", "--experiment", "half"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&found.stdout);
    let complaint = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(0), "{complaint}");
    assert!(said.contains("99.98 %"), "{said}");
    let table = fs::read_to_string(out.join("barriers.csv")).unwrap();
    for part in [
        "free,barrier,1,",
        "stop,barrier,2,",
        ",conductor_cores,",
        ",together,",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let half = fs::read_to_string(out.join("half.csv")).unwrap();
    assert!(half.contains("stop-isolated,moving,4,"), "{half}");
    let page = fs::read_to_string(out.join("coscheduling.html")).unwrap();
    assert!(page.contains("One program and two") && page.contains("Not measured."));
}

#[test]
fn a_program_of_it_runs_alone_and_as_a_gang() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coscheduling-gangs");
    for (way, lines) in [("free", 2), ("stop", 3)] {
        let mut command = plain_hearth();
        command.args(["study", "tool", "coscheduled", way, "--work", "half"]);
        command.args(["--milliseconds", "5"]);
        command.env("HEARTH_GANGS", &folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        let found = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&found.stdout);
        assert!(
            found.status.success() && said.starts_with("ready\n"),
            "{said}"
        );
        assert_eq!(said.lines().count(), lines, "{said}");
        let record: serde_json::Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
        assert!(record["rounds"].as_u64() > Some(0));
    }
    let unknown = plain_hearth()
        .args(["study", "tool", "coscheduled", "nonsense"])
        .output()
        .expect("the command starts");
    assert_eq!(unknown.status.code(), Some(2));
}
