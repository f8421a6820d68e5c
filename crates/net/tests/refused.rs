//! On a system that refuses threads the server does not start and leaves nothing behind.

mod support;

use std::fs;
use std::process::Command;

use hearth_net::{Mechanism, Pattern, StartError};
use support::{Lines, cell, descriptors, until};

const THREADS: usize = 8;
/// The address-space limit leaves room for two stacks, the test's own included, and for much else:
/// the system is to refuse a thread, not the memory that threads work with.
const STACK_BYTES: usize = 256 << 20;
const KIB_MAX: usize = 700 << 10;

#[test]
fn a_server_without_its_threads_does_not_start() {
    let command = format!("ulimit -v {KIB_MAX} && exec \"$0\" --exact --ignored within_limits");
    let output = Command::new("sh")
        .env("RUST_MIN_STACK", STACK_BYTES.to_string())
        .args(["-c", &command])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "the test above runs it, with less memory"]
fn within_limits() {
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let left = || (threads(), descriptors());
    let before = left();
    for pattern in [
        Pattern::HalfAsync,
        Pattern::Leader,
        Pattern::Sharded,
        Pattern::Adaptive,
    ] {
        let builder = cell(pattern, Mechanism::Edge).threads(THREADS);
        match builder.start(Lines::default()) {
            Err(StartError::Refused { what, .. }) => assert_eq!(what, "threads", "{pattern:?}"),
            Err(other) => panic!("{pattern:?}: {other}"),
            Ok(_) => panic!("{pattern:?}: there were threads enough"),
        }
        // The system lists an ended thread for a moment longer.
        until("nothing is left", || left() == before);
    }
}
