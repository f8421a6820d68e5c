//! Every benchmark once at its smallest, for its answer.

use hearth_benches::catalogue::{BENCHMARKS, Clock};
use hearth_benches::peers::build;
use hearth_benches::runtime::{rows::ROWS, session};

#[test]
#[ignore = "deep: `./x test --deep` does the same with release builds"]
fn small_runs_give_the_expected_answers() {
    for benchmark in &BENCHMARKS {
        let peers = build(benchmark).expect(benchmark.name);
        peers.check(benchmark).expect(benchmark.name);
    }
    for row in &ROWS {
        session::check(row).expect(row.name);
    }
}

#[test]
fn a_row_of_the_runtime_runs_without_peers() {
    session::check(&ROWS[0]).expect(ROWS[0].name);
}

#[test]
fn peers_run_in_turn() {
    let benchmark = &BENCHMARKS[0];
    let peers = build(benchmark).expect(benchmark.name);
    // Disturbance is not checked: tests need not run on a quiet machine.
    let ((insense, c), _) = peers.turn(1, Clock::Cpu).expect("both run");
    assert!(insense > 0.0 && c > 0.0, "{insense} s, {c} s");
}
