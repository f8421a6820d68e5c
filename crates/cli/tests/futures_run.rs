//! Programs with calls and loops beside others say the same, whoever runs them: in order, where it
//! pays, wherever they may, with one worker, with threads, under a short slice, and in simulations.

mod support;

use std::path::Path;

use support::{files, hearth, outcome};

/// Ways to run; each name and value is a variable.
const WAYS: [&[(&str, &str)]; 6] = [
    &[],
    &[("HEARTH_FUTURES", "always")],
    &[("HEARTH_FUTURES", "always"), ("HEARTH_WORKERS", "4")],
    &[("HEARTH_FUTURES", "always"), ("HEARTH_SLICE", "20")],
    &[("HEARTH_FUTURES", "always"), ("HEARTH_CARRIER", "threads")],
    &[("HEARTH_WORKERS", "1")],
];

/// Runs in a row, as threads may meet differently each time, and seeds of simulations; one in so
/// many of the programs that are found. With `HEARTH_TEST_DEEP=1` the second numbers.
const REPEATS: [usize; 2] = [1, 8];
const SEEDS: [usize; 2] = [2, 20];
const FOUND: [usize; 2] = [5, 1];

fn number(of: [usize; 2]) -> usize {
    of[usize::from(std::env::var_os("HEARTH_TEST_DEEP").is_some())]
}

/// The exit code and all that is said.
fn run(
    program: &Path,
    options: &[&str],
    settings: &[(&str, &str)],
) -> (Option<i32>, String, String) {
    let mut command = hearth();
    command.arg("run").args(options).arg(program);
    command.envs(settings.iter().copied());
    let found = outcome(&mut command, None).expect("the command starts");
    (found.code(), found.stdout.clone(), found.stderr)
}

fn programs() -> Vec<std::path::PathBuf> {
    let mut programs = files("tests/futures/run", &[".isf"]);
    let found = files("tests/futures/found", &[".isf"]);
    assert!(found.len() > 30);
    programs.extend(found.into_iter().step_by(number(FOUND)));
    programs
}

#[test]
fn all_ways_say_the_same() {
    for program in programs() {
        let expected = run(&program, &[], &[]);
        for way in WAYS {
            for _ in 0..number(REPEATS) {
                let found = run(&program, &["--futures"], way);
                assert_eq!(found, expected, "{} {way:?}", program.display());
            }
        }
    }
}

#[test]
fn schedules_say_the_same() {
    for program in programs() {
        let expected = run(&program, &[], &[]);
        for seed in 1..=number(SEEDS) {
            let found = run(
                &program,
                &["--futures", "--simulate", &seed.to_string()],
                &[],
            );
            assert_eq!(found.0, expected.0, "{} seed {seed}", program.display());
            assert_eq!(found.1, expected.1, "{} seed {seed}", program.display());
        }
    }
}
