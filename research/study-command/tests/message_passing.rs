//! `hearth study run message-passing`, in short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("message-passing-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn study(out: &Path, more: &[&str]) -> (i32, String, String) {
    let found = plain_hearth()
        .args(["study", "run", "message-passing", "--quick", "--out"])
        .arg(out)
        .args(["--repeats", "1", "--seconds", "0.01"])
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
    let wanted = [
        "--experiment",
        "displacement",
        "--experiment",
        "listing",
        "--experiment",
        "distances",
    ];
    let (code, said, complaint) = study(&out, &wanted);
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("cannot be shown here"), "{said}");
    let table = fs::read_to_string(out.join("displacement.csv")).unwrap();
    for side in ["machine,lock,", "machine,message,"] {
        assert!(table.contains(side), "{side} in {table}");
    }
    // What the listing's mask does does not depend on the machine: half of 128, whatever was asked;
    // but for one line, where the mask is as large as the count of moves becomes.
    let listing = fs::read_to_string(out.join("listing.csv")).unwrap();
    let masked = listing
        .lines()
        .filter(|line| line.contains(",power-of-two-mask,modified,"))
        .filter(|line| !line.contains(",128,1,64,"));
    let masked: Vec<&str> = masked.collect();
    assert_eq!(masked.len(), 5, "{listing}");
    for line in masked {
        let median: f64 = line.split(',').nth(11).unwrap().parse().unwrap();
        assert!((median - 64.0).abs() <= 1.0, "{line}");
    }
    assert!(
        fs::read_to_string(out.join("3.5a-machine.svg"))
            .unwrap()
            .contains("<svg")
    );
    let page = fs::read_to_string(out.join("message-passing.html")).unwrap();
    assert!(page.contains("Figure 3.5a") && page.contains("Data displacement in L1d"));
    let (code, _, complaint) = study(&out, &[]);
    assert_eq!(code, 2);
    assert!(complaint.contains("--resume"), "{complaint}");
    // What is there is not run again.
    let before = fs::read_to_string(out.join("displacement.runs.csv")).unwrap();
    let (code, _, complaint) = study(&out, &["--resume", "--experiment", "displacement"]);
    assert_eq!(code, 0, "{complaint}");
    let after = fs::read_to_string(out.join("displacement.runs.csv")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn what_makes_no_sense_is_said() {
    let out = folder("nonsense");
    for (options, words) in [
        (["--defect", "cliff"], "choose from power-of-two-mask"),
        (["--threads", "1"], "of which one serves"),
        (["--experiment", "4"], "choose from displacement"),
        (["--sizes", "dense"], "has no --sizes"),
    ] {
        let (code, _, complaint) = study(&out, &options);
        assert_eq!(code, 2, "{complaint}");
        assert!(complaint.contains(words), "{complaint}");
    }
}
