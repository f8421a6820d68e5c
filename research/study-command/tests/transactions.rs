//! `hearth study run transactions`, in short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::plain_hearth;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("transactions-{name}"));
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn study(out: &Path, more: &[&str]) -> (i32, String, String) {
    let found = plain_hearth()
        .args(["study", "run", "transactions", "--quick", "--out"])
        .arg(out)
        .args(["--repeats", "1", "--milliseconds", "5"])
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
    let wanted = ["--experiment", "bank", "--experiment", "outside"];
    let (code, said, complaint) = study(&out, &wanted);
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("4,607 MB to 156 MB"), "{said}");
    let table = fs::read_to_string(out.join("bank.csv")).unwrap();
    for way in ["bank,untraced,", "bank,hearth-full,", "bank,full-lz4-3ct,"] {
        assert!(table.contains(way), "{way} in {table}");
    }
    let page = fs::read_to_string(out.join("transactions.html")).unwrap();
    assert!(page.contains("Published figures beside ours"));
    assert!(out.join("bank.svg").exists());
    // Where the kernel has no probes, or not for this user, it is said what to do.
    let outside = fs::read_to_string(out.join("outside.csv")).unwrap();
    let is_there = outside.contains("bank,outside-reduced,");
    assert!(is_there || said.contains("prob"), "{said}");
}

#[test]
fn a_tool_makes_one_run() {
    let tool = |words: &[&str]| {
        let found = plain_hearth()
            .args(["study", "tool", "transactions"])
            .args(words)
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&found.stdout).into_owned();
        (found.status.code().unwrap_or(-1), said)
    };
    let out = folder("tool");
    fs::create_dir_all(&out).unwrap();
    let to = out.display().to_string();
    let (code, said) = tool(&["full-bin10k", "genome", "--small", "--folder", &to]);
    assert_eq!(code, 0);
    let figures: serde_json::Value = serde_json::from_str(&said).unwrap();
    let files = fs::read_dir(&out).unwrap().flatten();
    let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(figures["bytes"].as_f64(), Some(bytes as f64), "{said}");
    assert_eq!(tool(&["full-bin10k", "nonsense"]).0, 2);
}
