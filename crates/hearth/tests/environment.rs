//! `Builder::from_env` reads the environment, and nothing else does. Each case runs in a process of
//! its own, which this test starts with variables.

use std::process::Command;

use hearth::{Builder, Hearth, Placement};

const CASE: &str = "HEARTH_TEST_CASE";

fn run(case: &str, variables: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_case", "--nocapture"])
        .env(CASE, case)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {said}");
}

/// Runs one case, in its own process.
/// The numbers of the workers of three components that nothing places.
fn workers_of_three(hearth: &Hearth) -> Vec<usize> {
    for _ in 0..3 {
        hearth.spawn(std::future::pending::<()>());
    }
    let placements = hearth.placements().into_iter();
    placements
        .map(|placement| placement.worker.unwrap())
        .collect()
}

#[test]
fn a_case() {
    match std::env::var(CASE).as_deref() {
        Ok("read") => {
            let read = Builder::from_env().unwrap().start().unwrap();
            let said = Hearth::builder().workers(3).placement(Placement::Spread);
            assert_eq!(workers_of_three(&read), [0, 1, 2]);
            assert_eq!(workers_of_three(&said.start().unwrap()), [0, 1, 2]);
        }
        Ok("refused") => {
            let error = Builder::from_env().unwrap_err();
            let expected = "HEARTH_WORKERS=\"many\" is not understood";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        Ok("ignored") => {
            assert_eq!(workers_of_three(&Hearth::start().unwrap()), [0, 0, 0]);
        }
        Ok(other) => panic!("there is no case {other}"),
        Err(_) => {}
    }
}

#[test]
fn the_environment_counts_only_where_it_is_asked_for() {
    let variables = [("HEARTH_WORKERS", "3"), ("HEARTH_PLACE", "spread")];
    run("read", &variables);
    run("ignored", &variables);
    run("refused", &[("HEARTH_WORKERS", "many")]);
}
