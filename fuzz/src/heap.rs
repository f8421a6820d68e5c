//! Random sequences of operations on heaps: runs each in a process of its own, and shortens failing
//! ones. The operations and invariants are in the example `heap-sequence` of `hearth-heap`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hearth_testing::toolchain::{End, run};

/// Operations of a sequence.
pub const OPERATIONS: usize = 40_000;
/// Time after which a sequence counts as hanging. Busy machines have been seen thirty times slower.
const PATIENCE: Duration = Duration::from_secs(120);

/// Faults that may be planted: features of `hearth-heap`.
pub const CANARIES: [&str; 3] = ["canary-short-cut", "canary-lost-mark", "canary-low-grade"];

/// A sequence that failed.
#[derive(Clone, Debug)]
pub struct Finding {
    pub seed: u64,
    pub operations: usize,
    pub message: String,
}

/// Builds the program that runs a sequence, in a target folder of cargo's, optionally with a
/// planted fault.
pub fn build(target: &Path, canary: Option<&str>) -> Result<PathBuf, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--quiet", "--package", "hearth-heap"])
        .args(["--example", "heap-sequence", "--target-dir"])
        .arg(target)
        .args(canary.map(|canary| format!("--features={canary}")))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(target.join("debug/examples/heap-sequence"))
}

/// Runs one sequence; returns its message if it fails.
pub fn examine(program: &Path, seed: u64, operations: usize) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args([seed.to_string(), operations.to_string()])
        .env("RUST_BACKTRACE", "0");
    match run(&mut command, PATIENCE) {
        Ok(ran) if ran.end == End::Exit(0) => None,
        Ok(ran) => Some(format!("{:?}: {}", ran.end, ran.stderr.trim())),
        Err(error) => Some(error),
    }
}

/// Tries sequences until the time is over or one fails. Returns how many passed.
pub fn search(program: &Path, seed: u64, time: Duration) -> Result<u64, Finding> {
    let start = Instant::now();
    let mut tried = 0;
    while start.elapsed() < time {
        let seed = seed + tried;
        if let Some(message) = examine(program, seed, OPERATIONS) {
            return Err(shorter(program, seed, message));
        }
        tried += 1;
    }
    Ok(tried)
}

/// The shortest failing beginning of a sequence, found by bisection. A failure that depends on the
/// helper's timing may need a few tries.
fn shorter(program: &Path, seed: u64, message: String) -> Finding {
    let mut best = Finding {
        seed,
        operations: OPERATIONS,
        message,
    };
    let mut passes = 0;
    while best.operations - passes > 1 {
        let middle = passes + (best.operations - passes) / 2;
        match (0..3).find_map(|_| examine(program, seed, middle)) {
            Some(message) => {
                best = Finding {
                    seed,
                    operations: middle,
                    message,
                };
            }
            None => passes = middle,
        }
    }
    best
}
