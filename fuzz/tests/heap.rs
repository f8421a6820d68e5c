//! A few sequences of operations on heaps in every ordinary test run, and planted faults that must
//! be found. The long search is `./x test --deep`.

use std::path::Path;

use hearth_fuzz::heap::{CANARIES, OPERATIONS, build, examine};

/// Any number: a fixed one makes the tests the same each time.
const SEED: u64 = 7;

/// Cargo's target folder of this test.
fn target() -> &'static Path {
    // Tests have a folder of their own in it.
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a folder is in a folder")
}

#[test]
fn sequences_on_heaps_pass() {
    let program = build(target(), None).expect("it builds");
    for seed in SEED..SEED + 6 {
        if let Some(message) = examine(&program, seed, OPERATIONS) {
            panic!("seed {seed}: {message}");
        }
    }
}

/// Sequences that the long search has found, with their lengths.
#[test]
fn sequences_that_have_failed_pass() {
    let program = build(target(), None).expect("it builds");
    // A page lent by a search that was left over stayed lent, as nobody was told.
    for (seed, operations) in [(1_795_826_391, 38_631)] {
        if let Some(message) = examine(&program, seed, operations) {
            panic!("seed {seed}: {message}");
        }
    }
}

#[test]
fn planted_faults_are_found() {
    for canary in CANARIES {
        let program = build(&target().join("canary"), Some(canary)).expect("it builds");
        let found = (SEED..SEED + 20).find_map(|seed| examine(&program, seed, OPERATIONS));
        let message = found.unwrap_or_else(|| panic!("{canary} is not found"));
        assert!(message.contains("panicked"), "{canary}: {message}");
    }
}
