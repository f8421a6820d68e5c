//! Measures the time and gain of placing: `cargo run --release -p hearth-place --example times`.
//! Prints a line for each size; times are of this machine, costs are modelled.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use hearth_place::baselines::Baseline;
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::talk::{Effort, talk};

fn main() {
    let options = CostOptions::default();
    let started = Instant::now();
    let machine = support::machine(support::MACHINES[6]);
    println!(
        "machine of {} slots: {:.1} ms",
        machine.slots().len(),
        started.elapsed().as_secs_f64() * 1e3
    );
    for count in [8, 12, 16, 64, 256, 1024, 10_000, 100_000] {
        let runs = if count <= 64 { 24 } else { 6 };
        // The result of ten times the effort shows where the usual one is poor.
        let mut better: f64 = 0.0;
        let (mut worst, mut total, mut proved) = (0.0_f64, 0.0, 0);
        let mut ratio = [0.0; 3];
        for seed in 0..runs {
            let mut random = fastrand::Rng::with_seed(seed);
            let graph = support::graph(&mut random, count);
            let started = Instant::now();
            let placed = talk(&graph, &machine, &options, Effort::default(), None);
            let took = started.elapsed().as_secs_f64() * 1e3;
            let placed = placed.expect("it can be placed");
            worst = worst.max(took);
            total += took;
            proved += u32::from(placed.proved);
            if count <= 256 {
                let usual = Effort::default();
                let more = Effort {
                    steps: 10 * usual.steps,
                    seed: 7,
                };
                let more = talk(&graph, &machine, &options, more, None).expect("a placement");
                better = better.max(placed.cost.total_ns / more.cost.total_ns - 1.0);
            }
            if count <= 1024 {
                for (at, baseline) in Baseline::ALL.into_iter().enumerate() {
                    let theirs = baseline
                        .place(&graph, &machine, &options)
                        .expect("a placement");
                    let cost = evaluate(&graph, &machine, &options, &theirs).expect("it fits");
                    ratio[at] += (cost.total_ns / placed.cost.total_ns).ln() / runs as f64;
                }
            }
        }
        print!(
            "{count} components: {:.2} ms in the mean, {worst:.2} at most; {proved} of {runs} \
             proved",
            total / f64::from(u32::try_from(runs).expect("few"))
        );
        if count <= 256 {
            print!(
                "; ten times the effort gains {:.1} % at most",
                100.0 * better
            );
        }
        if count <= 1024 {
            let [grouping, greedy, bisection] = ratio.map(f64::exp);
            print!("; baselines cost {grouping:.2}, {greedy:.2}, {bisection:.2} times as much");
        }
        println!();
    }
}
