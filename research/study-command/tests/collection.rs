//! `hearth study run collection`, in short runs from end to end.

#[path = "../../../crates/cli/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

use support::plain_hearth;

#[test]
fn a_small_study_leaves_tables_and_a_page_and_goes_on() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("collection-small");
    // Left by an earlier run, if there was one.
    let _ = fs::remove_dir_all(&out);
    let study = |more: &[&str]| {
        let found = plain_hearth()
            .args(["study", "run", "collection", "--quick", "--out"])
            .arg(&out)
            .args(more)
            .output()
            .expect("the command starts");
        let complaint = String::from_utf8_lossy(&found.stderr).into_owned();
        assert_eq!(found.status.code(), Some(0), "{complaint}");
        String::from_utf8_lossy(&found.stdout).into_owned()
    };
    let said = study(&["--repeats", "1", "--experiment", "dead"]);
    assert!(said.contains("6 to 12 %"), "{said}");
    let table = fs::read_to_string(out.join("dead.csv")).unwrap();
    for part in [
        "trees,12,100,objects,",
        "trees,8,100,as-object,",
        ",dead_processors,1,50,",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let page = fs::read_to_string(out.join("collection.html")).unwrap();
    assert!(page.contains("Every second processor dead") && page.contains("Not measured."));
    study(&["--repeats", "2", "--experiment", "dead", "--resume"]);
    let table = fs::read_to_string(out.join("dead.csv")).unwrap();
    assert!(table.contains(",dead_processors,2,50,"), "{table}");
}
