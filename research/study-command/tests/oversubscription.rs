//! `hearth study run oversubscription`, in short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use support::plain_hearth;

#[test]
fn a_small_study_leaves_tables_charts_and_a_page() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oversubscription-small");
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&out);
    let found = plain_hearth()
        .args(["study", "run", "oversubscription", "--quick", "--out"])
        .arg(&out)
        .args(["--repeats", "1", "--milliseconds", "5"])
        .args(["--experiment", "impact", "--experiment", "simulated"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&found.stdout);
    let complaint = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(0), "{complaint}");
    assert!(said.contains("more than 30 %"), "{said}");
    let table = fs::read_to_string(out.join("impact.csv")).unwrap();
    for part in ["stealing,1,0,rate,", ",victim_seconds,", "nobody,0,"] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let simulated = fs::read_to_string(out.join("simulated.csv")).unwrap();
    assert!(
        simulated.contains("static-pinned,9,0,time,1,"),
        "{simulated}"
    );
    let page = fs::read_to_string(out.join("oversubscription.html")).unwrap();
    assert!(page.contains("What A's threads cost B") && page.contains("Not measured."));
    assert!(out.join("impact.svg").exists() && out.join("simulated.svg").exists());
}

#[test]
fn a_program_of_it_runs_alone() {
    let mut command = plain_hearth();
    command.args([
        "study",
        "tool",
        "oversubscribed",
        "static",
        "--threads",
        "2",
    ]);
    command.args(["--rows", "16", "--milliseconds", "2"]);
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
    let record: serde_json::Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    assert_eq!(record["threads"], 2);
    let unknown = plain_hearth()
        .args(["study", "tool", "oversubscribed", "nonsense"])
        .output()
        .expect("the command starts");
    assert_eq!(unknown.status.code(), Some(2));
}
