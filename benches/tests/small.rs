//! Every benchmark once at its smallest, for its answer.

use hearth_benches::catalogue::{BENCHMARKS, Clock};
use hearth_benches::peers::build;

#[test]
fn small_runs_give_the_expected_answers() {
    for benchmark in &BENCHMARKS {
        let (input, expected) = benchmark.small;
        let peers = build(benchmark).expect(benchmark.name);
        let insense = peers.run_insense(input).expect(benchmark.name);
        assert_eq!(insense.stdout, expected, "{} in Insense", benchmark.name);
        let c = peers.run_c(input).expect(benchmark.name);
        assert_eq!(c.stdout, expected, "{} in C", benchmark.name);
    }
}

#[test]
fn peers_run_in_turn() {
    let benchmark = &BENCHMARKS[0];
    let peers = build(benchmark).expect(benchmark.name);
    let series = peers.alternate(1, Clock::Cpu, 2).expect("both run");
    assert_eq!((series.insense.len(), series.c.len()), (2, 2));
}
