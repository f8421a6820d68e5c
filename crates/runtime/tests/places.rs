//! `HEARTH_PLACE=steal`: what computes is shared with idle workers, and nothing else ever moves.

mod hand;

use std::path::PathBuf;
use std::sync::OnceLock;

use hand::{build, command, finish, outcome_of};

fn cases() -> &'static PathBuf {
    static CASES: OnceLock<PathBuf> = OnceLock::new();
    CASES.get_or_init(|| build("places"))
}

/// On how many threads the components of a case ran. No component is detached: that would be a
/// thread more.
fn threads(case: &str, place: &str, workers: &str) -> u32 {
    let mut command = command(cases(), &[case]);
    command
        .env("HEARTH_PLACE", place)
        .env("HEARTH_WORKERS", workers)
        .env("HEARTH_SLICE", "1000000000");
    let (code, stdout, stderr) = outcome_of(&finish(command.spawn().unwrap()));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{case} {place}");
    stdout.trim().parse().unwrap()
}

#[test]
fn idle_workers_get_what_computes() {
    for case in ["computing", "once"] {
        assert_eq!(threads(case, "steal", "2"), 2, "{case}");
        let of_four = threads(case, "steal", "4");
        assert!((2..=4).contains(&of_four), "{case}: {of_four}");
        assert_eq!(threads(case, "steal", "1"), 1, "{case}");
    }
}

#[test]
fn nothing_moves_by_another_policy() {
    for case in ["computing", "once", "talking"] {
        assert_eq!(threads(case, "os", "2"), 1, "{case}");
        assert_eq!(threads(case, "single", "2"), 1, "{case}");
    }
}

#[test]
fn what_was_placed_stays() {
    assert_eq!(threads("pinned", "steal", "2"), 1);
    assert_eq!(threads("placed", "steal", "2"), 1);
}

#[test]
fn those_that_only_talk_stay_together() {
    assert_eq!(threads("talking", "steal", "2"), 1);
}
