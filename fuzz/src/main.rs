//! `hearth-fuzz programs …`: see `fuzz/README.md`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to its user"
)]

use hearth_fuzz::programs;
use hearth_testing::toolchain::{SANITIZERS, Toolchain};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let sanitize = args.iter().any(|arg| arg == "--sanitize");
    let mut flags = vec!["-O1"];
    if sanitize {
        flags.extend(SANITIZERS);
    }
    let toolchain = match Toolchain::beside_this_executable(&flags) {
        Ok(toolchain) => toolchain,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let seed = number("--seed", 1);
    let mut bad = 0;
    for seed in seed..seed + number("--count", 10) {
        if let Some((case, fault)) = programs::examine_seed(seed, &toolchain) {
            bad += 1;
            println!("seed {seed}: {}\n", fault.describe());
            let file = format!("/tmp/finding-{seed}.isf");
            let _ = std::fs::write(file, &case.text);
        }
    }
    println!("{bad} faults");
    ExitCode::from(u8::from(bad > 0))
}
