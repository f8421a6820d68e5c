//! Runs random components for hours: they are made, connected, disconnected, stopped and moved,
//! under each carrier, and every message is accounted for. Afterwards nothing is left behind.
//!
//! A compiled program has one runtime in its process, so each way of running is a process of its
//! own. In some, runtimes of the Rust API come and go beside the program's.
//! `HEARTH_SOAK_SECONDS` sets how long all of them together take, `HEARTH_SOAK_SEED` their random
//! choices.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without a harness tells how it goes"
)]

mod actors;
mod child;
mod ledger;
#[path = "../stress/machine.rs"]
#[allow(dead_code, reason = "the stress tests use the rest")]
mod machine;
mod neighbours;
mod remains;

use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

/// Short enough for the whole test suite.
const SECONDS: u64 = 28;
/// Marks this process as one of the children.
const ROLE: &str = "HEARTH_SOAK_ROLE";
/// The most runtimes beside the program's, in a round.
const NEIGHBOURS: &str = "HEARTH_SOAK_NEIGHBOURS";

/// A way of running: its name and options.
type Way = (&'static str, &'static [(&'static str, &'static str)]);

const WAYS: [Way; 14] = [
    ("one worker", &[("HEARTH_WORKERS", "1")]),
    (
        "two workers",
        &[("HEARTH_WORKERS", "2"), ("HEARTH_PLACE", "spread")],
    ),
    (
        "two workers, short slices",
        &[
            ("HEARTH_WORKERS", "2"),
            ("HEARTH_PLACE", "spread"),
            ("HEARTH_SLICE", "50"),
        ],
    ),
    (
        "four workers",
        &[("HEARTH_WORKERS", "4"), ("HEARTH_PLACE", "random")],
    ),
    (
        "four workers, short slices",
        &[
            ("HEARTH_WORKERS", "4"),
            ("HEARTH_PLACE", "random"),
            ("HEARTH_SLICE", "50"),
        ],
    ),
    (
        "two workers that share, short slices",
        &[
            ("HEARTH_WORKERS", "2"),
            ("HEARTH_PLACE", "steal"),
            ("HEARTH_SLICE", "50"),
        ],
    ),
    (
        "four workers whose components move to whom they talk with, short slices",
        &[
            ("HEARTH_WORKERS", "4"),
            ("HEARTH_PLACE", "talk"),
            ("HEARTH_SLICE", "50"),
        ],
    ),
    (
        "servers that come, detached",
        &[
            ("HEARTH_WORKERS", "4"),
            ("HEARTH_PLACE", "random"),
            ("HEARTH_SERVERS", "synchronous"),
            ("HEARTH_SLICE", "50"),
        ],
    ),
    (
        "servers that come",
        &[
            ("HEARTH_WORKERS", "2"),
            ("HEARTH_PLACE", "spread"),
            ("HEARTH_SERVERS", "synchronous"),
        ],
    ),
    (
        "servers whose ways are compared",
        &[
            ("HEARTH_WORKERS", "2"),
            ("HEARTH_PLACE", "spread"),
            ("HEARTH_SERVERS", "auto"),
        ],
    ),
    (
        "two workers, beside other runtimes, short slices",
        &[
            ("HEARTH_WORKERS", "2"),
            ("HEARTH_PLACE", "spread"),
            ("HEARTH_SLICE", "50"),
            (NEIGHBOURS, "3"),
        ],
    ),
    ("threads", &[("HEARTH_CARRIER", "threads")]),
    (
        "threads, beside other runtimes",
        &[("HEARTH_CARRIER", "threads"), (NEIGHBOURS, "3")],
    ),
    (
        "threads that move to whom they talk with",
        &[("HEARTH_CARRIER", "threads"), ("HEARTH_PLACE", "talk")],
    ),
];

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable}={text:?} is no number"),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    if arguments.iter().any(|argument| argument == "--list")
        || (filters.clone().count() > 0 && !filters.clone().any(|filter| "soak".contains(filter)))
    {
        return ExitCode::SUCCESS;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = number("HEARTH_SOAK_SEED").unwrap_or_else(|| now.map_or(1, |now| now.as_secs()));
    if std::env::var_os(ROLE).is_some() {
        let seconds = number("HEARTH_SOAK_SECONDS").unwrap_or(1);
        child::run(seed, seconds, number(NEIGHBOURS).unwrap_or(0) as usize);
    }
    let seconds = number("HEARTH_SOAK_SECONDS").unwrap_or(SECONDS);
    let each = (seconds / WAYS.len() as u64).max(1);
    println!("soak: seed {seed}, {} ways, {each} s each", WAYS.len());
    let mut has_failed = false;
    for (name, options) in WAYS {
        println!("soak: {name}");
        has_failed |= !run(seed, each, options);
    }
    if has_failed {
        println!("soak: FAILED; HEARTH_SOAK_SEED={seed} makes the same decisions again");
        return ExitCode::FAILURE;
    }
    println!("soak: nothing lost, doubled, or left behind");
    ExitCode::SUCCESS
}

/// Runs one process. True if it succeeds.
fn run(seed: u64, seconds: u64, options: &[(&str, &str)]) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    let all = [
        "HEARTH_CARRIER",
        "HEARTH_WORKERS",
        "HEARTH_PLACE",
        "HEARTH_SLICE",
        "HEARTH_SERVERS",
        "HEARTH_PASSES",
        "HEARTH_SEED",
        NEIGHBOURS,
    ];
    for option in all {
        command.env_remove(option);
    }
    command
        .envs(options.iter().copied())
        .env(ROLE, "1")
        .env("HEARTH_SOAK_SEED", seed.to_string())
        .env("HEARTH_SOAK_SECONDS", seconds.to_string())
        // A thread's private cache would count as in use.
        .env(
            "GLIBC_TUNABLES",
            "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=2",
        );
    let status = command.status().expect("this test can be run again");
    if !status.success() {
        println!("soak: ended with {status}");
    }
    status.success()
}
