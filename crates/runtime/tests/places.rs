//! The places of components. `HEARTH_PLACE=steal`: idle workers steal components that compute, and
//! nothing else ever moves. And in any place, each of many senders to one costs as much as each of
//! few.

mod hand;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hand::{build, command, finish, outcome_of};

fn cases() -> &'static PathBuf {
    static CASES: OnceLock<PathBuf> = OnceLock::new();
    CASES.get_or_init(|| build("places"))
}

/// Counts the threads on which the components of a case ran. No component is detached: that would
/// add a thread.
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
    for case in ["computing", "dealt", "once"] {
        assert_eq!(threads(case, "steal", "2"), 2, "{case}");
        let of_four = threads(case, "steal", "4");
        assert!((2..=4).contains(&of_four), "{case}: {of_four}");
        assert_eq!(threads(case, "steal", "1"), 1, "{case}");
    }
}

#[test]
fn nothing_moves_by_another_policy() {
    for case in ["computing", "dealt", "once", "talking"] {
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
    // Ten long runs in a row look like computing, and may be the system's: then again.
    let stay = |_| threads("talking", "steal", "2") == 1;
    assert!((0..3).any(stay));
}

/// The best time of this many senders to one.
fn takes(senders: &str, place: &str, slice: &str) -> Duration {
    let takes = || {
        let mut command = command(cases(), &["many to one", senders]);
        command
            .env("HEARTH_PLACE", place)
            .env("HEARTH_WORKERS", "2")
            .env("HEARTH_SLICE", slice);
        let start = Instant::now();
        let (code, stdout, stderr) = outcome_of(&finish(command.spawn().unwrap()));
        assert_eq!(
            (code, stdout.trim(), stderr.as_str()),
            (Some(0), senders, ""),
            "{place}"
        );
        start.elapsed()
    };
    (0..3).map(|_| takes()).min().unwrap()
}

#[test]
fn many_to_one_take_as_long_as_they_are_many() {
    for (place, slice) in [("os", "10000"), ("spread", "10000")] {
        let (few, many) = (takes("2000", place, slice), takes("32000", place, slice));
        // 16 times as long, plus the start; if each sender looked at all others, it would be 256
        // times.
        assert!(
            many < few * 75,
            "{few:?} and {many:?} with {place}, {slice}"
        );
    }
}
