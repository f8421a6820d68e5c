//! Counts the random programs that are fit to be tests, and the reasons why others are not.
#![allow(clippy::print_stdout, reason = "a command prints")]

use hearth_testing::generate::{Shape, program};
use hearth_testing::oracle;
use std::collections::BTreeMap;

fn main() {
    let work = || {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 0..300 {
            let shape = Shape {
                components: seed % 2 == 0,
                size: 6 + seed as usize % 30,
            };
            let found = match oracle::expect(&program(seed, shape)) {
                Ok(expected) => format!("fit, exit code {}", expected.exit_code),
                Err(unfit) => format!("{unfit:?}"),
            };
            let kind = if shape.components {
                "components"
            } else {
                "plain"
            };
            *counts.entry(format!("{kind}: {found}")).or_default() += 1;
        }
        for (kind, count) in counts {
            println!("{count:5} {kind}");
        }
    };
    // Walking trees recurses.
    let thread = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(work);
    thread.expect("a thread starts").join().expect("no panic");
}
