//! Compares the usual effort with ten and a hundred times as much:
//! `cargo run --release -p hearth-place --example effort`. Prints a line for each machine and size;
//! the times are the thread's on a processor, costs are modelled.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/support/mod.rs"]
mod support;

use hearth_place::cost::CostOptions;
use hearth_place::graph::Graph;
use hearth_place::slots::Machine;
use hearth_place::talk::{Effort, Placed, talk};

/// Time that a thread has run so far, ns, as exactly as the scheduler's clock ticks; means are
/// good.
fn ran_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

fn placed(graph: &Graph, machine: &Machine, times: u64, seed: u64) -> Placed {
    let effort = Effort {
        steps: times * Effort::default().steps,
        seed,
    };
    talk(graph, machine, &CostOptions::default(), effort, None).expect("it can be placed")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments
        .next()
        .map_or(24, |runs| runs.parse().expect("how many graphs"));
    let sizes: Vec<usize> = arguments
        .map(|size| size.parse().expect("a size"))
        .collect();
    let sizes = if sizes.is_empty() {
        vec![8, 12, 16, 32, 64, 256]
    } else {
        sizes
    };
    for at in [3, 4, 5, 6] {
        let machine = support::machine(support::MACHINES[at]);
        for &count in &sizes {
            let (mut took, mut proved) = (0.0, 0);
            let mut gaps = Vec::new();
            for seed in 0..runs {
                let mut random = fastrand::Rng::with_seed(seed);
                let graph = support::graph(&mut random, count);
                let before = ran_ns();
                let usual = placed(&graph, &machine, 1, 1);
                took += (ran_ns() - before) / 1e6 / runs as f64;
                proved += u32::from(usual.proved);
                let more = [(10, 7), (10, 8), (100, 9)].map(|(times, seed)| {
                    let more = placed(&graph, &machine, times, seed);
                    more.cost.total_ns
                });
                let best = more.into_iter().fold(usual.cost.total_ns, f64::min);
                gaps.push((100.0 * (usual.cost.total_ns / best - 1.0), seed));
            }
            gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mean = gaps.iter().map(|(gap, _)| gap).sum::<f64>() / runs as f64;
            let above = gaps.iter().filter(|(gap, _)| *gap > 1.0).count();
            println!(
                "{} slots, {count} components: {took:.2} ms in the mean; \
                 {proved} of {runs} proved; beside far more effort {mean:.2} % too much in the mean, \
                 {above} above 1 %, the worst {:?}",
                machine.slots().len(),
                &gaps[..gaps.len().min(3)]
            );
        }
    }
}
