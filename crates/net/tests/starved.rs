//! A process without free descriptors serves its connections; new clients wait until one is free.

mod support;

use std::fs::File;
use std::process::Command;
use std::time::Instant;

use hearth_net::{Mechanism, Pattern};
use support::{Lines, ask, cell, connect, grid, until};

#[test]
fn without_descriptors_who_comes_waits() {
    let command = "ulimit -n 200 && exec \"$0\" --exact --ignored with_few_descriptors";
    let output = Command::new("sh")
        .args(["-c", command])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "the test above runs it, with few descriptors"]
fn with_few_descriptors() {
    for (pattern, mechanism) in grid() {
        // Descriptors that are opened once are open by now.
        ask(
            &mut connect(&cell(pattern, mechanism).start(Lines::default()).unwrap()),
            "first",
        );
        starved(pattern, mechanism);
    }
}

fn starved(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let mut one = connect(&server);
    ask(&mut one, "begins");
    let mut all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(all.pop().is_some(), "there was none to begin with");
    // The client has the last descriptor.
    let mut other = connect(&server);
    until("it cannot be accepted", || server.counters().starved > 0);
    let (before, begun) = (server.counters().starved, Instant::now());
    for _ in 0..100 {
        ask(&mut one, "goes on");
    }
    // The acceptor rests for 100 ms between two attempts.
    let more = server.counters().starved - before;
    let rests = begun.elapsed().as_millis() / 100 + 2;
    assert!(
        u128::from(more) <= rests,
        "{more} attempts in {rests} rests"
    );
    drop(all);
    ask(&mut other, "comes in");
    drop(one);
    ask(&mut connect(&server), "comes, too");
}
