//! Random programs print the same, whether what is independent runs in order or beside.

mod support;

use std::fs;
use std::path::Path;

use support::{Outcome, empty_folder, hearth, outcome};

/// Programs that are tried; with `HEARTH_TEST_DEEP=1` as many as the second number says.
/// `HEARTH_TEST_SEEDS=1000..1100` tries others.
const PROGRAMS: (u64, u64) = (10, 1000);
const INPUTS: [&str; 2] = ["5", "-1017"];

fn seeds() -> std::ops::Range<u64> {
    if let Ok(seeds) = std::env::var("HEARTH_TEST_SEEDS") {
        let (first, end) = seeds.split_once("..").expect("a range of seeds");
        let number = |text: &str| text.parse().expect("a seed");
        return number(first)..number(end);
    }
    match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 0..PROGRAMS.1,
        None => 0..PROGRAMS.0,
    }
}

/// Options and variables of a run.
type Way = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

/// Other ways to run what is independent.
const WAYS: [Way; 4] = [
    (
        &[],
        &[("HEARTH_FUTURES", "always"), ("HEARTH_WORKERS", "3")],
    ),
    (
        &[],
        &[("HEARTH_FUTURES", "always"), ("HEARTH_CARRIER", "threads")],
    ),
    (&["--simulate", "1"], &[]),
    (&["--simulate", "2"], &[]),
];

fn run(program: &Path, options: &[&str], settings: &[(&str, &str)], input: &str) -> Outcome {
    let mut command = hearth();
    command.envs(settings.iter().copied());
    command.arg("run").args(options).arg(program);
    command.args(["--", input]);
    outcome(&mut command, None).expect("the command starts")
}

#[test]
fn random_programs_print_the_same_with_and_without() {
    let folder = empty_folder("futures-random");
    let program = folder.join("random.isf");
    let mut printed = 0;
    for seed in seeds() {
        let text = hearth_testing::beside::program(seed);
        fs::write(&program, &text).expect("a scratch file can be written");
        for input in INPUTS {
            let alone = run(&program, &[], &[], input);
            let said = |outcome: &Outcome| {
                (
                    outcome.code(),
                    outcome.stdout.clone(),
                    outcome.stderr.clone(),
                )
            };
            assert!(alone.code().is_some(), "seed {seed}\n{}", alone.stderr);
            printed += alone.stdout.len();
            for (options, settings) in WAYS {
                let mut all = vec!["--futures"];
                all.extend(options);
                let beside = run(&program, &all, settings, input);
                // A simulation says on standard error what it is.
                let (mut one, mut other) = (said(&alone), said(&beside));
                if !options.is_empty() {
                    one.2.clear();
                    other.2.clear();
                }
                assert_eq!(
                    one, other,
                    "seed {seed}, input {input}, {options:?} {settings:?}\n{text}"
                );
            }
        }
    }
    assert!(printed > 1000, "only {printed} bytes were printed");
}
