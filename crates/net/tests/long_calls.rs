//! Calls of the service that last for seconds: clients that wait meanwhile are not closed as idle,
//! and other connections go on.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use hearth_net::{Mechanism, Pattern};
use support::{Lines, ask, cell, connect, expect, until};

#[test]
fn who_is_kept_waiting_is_not_silent() {
    let cells = [
        (Pattern::Sharded, Mechanism::Edge, 1),
        (Pattern::Sharded, Mechanism::Select, 1),
        (Pattern::HalfAsync, Mechanism::Level, 2),
        (Pattern::Leader, Mechanism::Edge, 1),
        (Pattern::Sharded, Mechanism::Uring, 1),
    ];
    // Some systems forbid the last mechanism.
    let cells = cells
        .into_iter()
        .filter(|(_, mechanism, _)| mechanism.check().is_ok());
    thread::scope(|scope| {
        for (pattern, mechanism, threads) in cells {
            scope.spawn(move || {
                let server = cell(pattern, mechanism)
                    .threads(threads)
                    .idle(Duration::from_secs(1))
                    .start(Lines::default())
                    .unwrap();
                let (mut first, mut second) = (connect(&server), connect(&server));
                ask(&mut first, "a");
                ask(&mut second, "b");
                first.write_all(b"nap\n").unwrap();
                // The thread that is to serve it is at work, or will be.
                second.write_all(b"abc\n").unwrap();
                expect(&mut first, b"pan\n");
                expect(&mut second, b"cba\n");
                assert_eq!(server.counters().idled, 0, "{pattern} {mechanism}");
            });
        }
    });
}

/// With Leader/Followers a connection that waits for its next turn gets it, whichever connection
/// had the last.
#[test]
fn a_turn_waits_for_nobody() {
    let server = cell(Pattern::Leader, Mechanism::Edge)
        .threads(2)
        .start(Lines::default())
        .unwrap();
    let (mut many, mut long) = (connect(&server), connect(&server));
    ask(&mut many, "a");
    ask(&mut long, "b");
    many.write_all("work\n".repeat(3000).as_bytes()).unwrap();
    until("it is at it", || server.counters().read_bytes > 100);
    long.write_all(b"nap\n").unwrap();
    expect(&mut many, "krow\n".repeat(3000).as_bytes());
    long.set_nonblocking(true).unwrap();
    let answer = long.read(&mut [0; 8]).map_err(|error| error.kind());
    assert_eq!(answer, Err(ErrorKind::WouldBlock));
}
