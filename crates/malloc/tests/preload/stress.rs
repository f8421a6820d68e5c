//! Threads that grow, measure and free each other's blocks while their neighbours are allocated and
//! freed (`stress.c`): in all modes; with a shadow bitmap of all live blocks; and under sanitizers,
//! which show that the program itself is correct.

use std::time::Duration;

use hearth_testing::toolchain::{End, Ran, run};

use crate::support::{Profile, built_with, command, is_deep};

/// Variables to set.
type Mode = &'static [(&'static str, &'static str)];

/// The modes of hardening.
const MODES: [Mode; 4] = [
    &[],
    &[("HEARTH_HARDEN", "check")],
    &[("HEARTH_HARDEN", "zero")],
    &[("HEARTH_REAL_TIME", "96M")],
];

/// Turns of each of four threads; two turns are some seven calls. In deep runs, all modes together
/// make a thousand million calls.
const TURNS: u64 = 15_000;
const TURNS_DEEP: u64 = 18_000_000;

/// Turns under sanitizers or with the shadow, where a turn takes several times as long.
const TURNS_SLOW: u64 = 8_000;
const TURNS_SLOW_DEEP: u64 = 1_000_000;

/// Limit for a run, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// `HEARTH_TEST_SEED` replays a run's turns.
fn seed() -> String {
    std::env::var("HEARTH_TEST_SEED").unwrap_or_else(|_| "1".to_owned())
}

/// Runs a program to its end, which must be a success; returns its report of turns.
fn turns(mut program: std::process::Command, mode: Mode) -> Ran {
    program
        .env("SEED", seed())
        .env_remove("HEARTH_HARDEN")
        .envs(mode.iter().copied());
    let ran = run(&mut program, PATIENCE).unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let passed = ran.end == End::Exit(0) && ran.stdout.ends_with("passed\n");
    assert!(passed, "seed {}, {program:?}\n{ran:?}", seed());
    ran
}

fn stress(turns: u64, with: Option<Profile>) -> std::process::Command {
    command("stress.c", &turns.to_string(), with)
}

#[test]
fn other_threads_blocks_grow_during_churn() {
    let count = if is_deep() { TURNS_DEEP } else { TURNS };
    let mut said = Vec::new();
    for mode in MODES {
        said.push(turns(stress(count, Some(Profile::Release)), mode).stdout);
    }
    for mode in MODES {
        said.push(turns(stress(count / 10, Some(Profile::Development)), mode).stdout);
    }
    // All modes make the same turns.
    assert!(said[..4].iter().all(|text| *text == said[0]), "{said:?}");
    assert!(said[4..].iter().all(|text| *text == said[4]), "{said:?}");
}

#[test]
fn live_blocks_never_overlap_and_sanitizers_accept_the_test() {
    const SHADOW: Mode = &[("ORACLE", "1")];
    const SHADOW_CHECK: Mode = &[("ORACLE", "1"), ("HEARTH_HARDEN", "check")];
    const SHADOW_ZERO: Mode = &[("ORACLE", "1"), ("HEARTH_HARDEN", "zero,guard=50")];
    let count = if is_deep() {
        TURNS_SLOW_DEEP
    } else {
        TURNS_SLOW
    };
    let mut said = Vec::new();
    for mode in [SHADOW, SHADOW_CHECK, SHADOW_ZERO] {
        said.push(turns(stress(count, Some(Profile::Release)), mode).stdout);
    }
    said.push(turns(stress(count, None), SHADOW).stdout);
    let flags = [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    ];
    let mut sanitized = std::process::Command::new(built_with("stress.c", &flags));
    sanitized.arg(count.to_string()).env_remove("LD_PRELOAD");
    said.push(turns(sanitized, SHADOW).stdout);
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
}
