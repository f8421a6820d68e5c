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
    let series = peers.alternate(1, Clock::Cpu, 2).expect("both run");
    assert_eq!((series.insense.len(), series.c.len()), (2, 2));
}
