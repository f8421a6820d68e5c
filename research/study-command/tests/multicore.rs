//! `hearth study run insense-multicore`, on small loads from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("multicore-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn study(out: &Path, more: &[&str]) -> (i32, String, String) {
    let found = plain_hearth()
        .args([
            "study",
            "run",
            "insense-multicore",
            "--quick",
            "--repeats",
            "1",
            "--out",
        ])
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

#[test]
fn a_small_study_leaves_tables_charts_and_a_page() {
    let out = folder("small");
    let wanted = ["--experiment", "sender-receiver", "--experiment", "memory"];
    let (code, said, complaint) = study(&out, &wanted);
    assert_eq!(code, 0, "{complaint}");
    assert!(
        said.contains("cannot be shown here: not measured"),
        "{said}"
    );
    let times = fs::read_to_string(out.join("sender-receiver.csv")).unwrap();
    for side in [
        "sender-receiver,threads,private,os,real,1,",
        "sender-receiver,workers,shared,together,user,1,",
        "sender-receiver,workers,private,steal,system,1,",
        "sender-receiver,c,malloc,apart,real,1,",
    ] {
        assert!(times.contains(side), "{side} in {times}");
    }
    let json = fs::read_to_string(out.join("results.json")).unwrap();
    // Each program printed the expected text.
    assert!(!json.contains("it printed"), "{json}");
    assert!(
        fs::read_to_string(out.join("sender-receiver.svg"))
            .unwrap()
            .contains("<svg")
    );
    let page = fs::read_to_string(out.join("insense-multicore.html")).unwrap();
    assert!(page.contains("D13") && page.contains("Not measured"));
    let (code, _, complaint) = study(&out, &[]);
    assert_eq!(code, 2);
    assert!(complaint.contains("--resume"), "{complaint}");
}

#[test]
fn the_sources_heaps_are_rebuilt_and_run() {
    let out = folder("list");
    let (code, said, complaint) = study(&out, &["--experiment", "list"]);
    assert_eq!(code, 0, "{complaint}");
    let json = fs::read_to_string(out.join("results.json")).unwrap();
    assert!(
        !json.contains("it printed") && !json.contains("signal"),
        "{json}"
    );
    for way in [
        "private",
        "shared",
        "malloc",
        "locked",
        "listed",
        "searched",
        "source-private",
    ] {
        let line = format!("alloc-4x1000,threads,{way},os,real,1,");
        let table = fs::read_to_string(out.join("list.csv")).unwrap();
        assert!(table.contains(&line), "{line} in {table}");
    }
    assert!(said.contains("The list adds a factor of"), "{said}");
}
