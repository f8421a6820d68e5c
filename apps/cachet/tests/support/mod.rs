//! Servers to be tested, and what their clients do.

#![allow(dead_code, reason = "each file of tests uses a part")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cachet::options::{Arguments, Wanted};
use cachet::server::Running;
use clap::Parser;
use hearth_net::Mechanism;

/// Starts a server with these options on this machine.
pub(crate) fn start(line: &str) -> Running {
    let words = ["cachet", "-p", "0", "-l", "127.0.0.1", "-t", "2"];
    let words = words.into_iter().chain(line.split_whitespace());
    match Arguments::parse_from(words).wanted() {
        Ok(Wanted::Server(options)) => Running::start(*options).expect("it starts"),
        other => panic!("{other:?}"),
    }
}

/// Options for every mechanism that this system allows.
pub(crate) fn mechanisms() -> impl Iterator<Item = String> {
    let allowed = |mechanism: &Mechanism| mechanism.check().is_ok();
    let all = Mechanism::all().into_iter().filter(allowed);
    all.map(|mechanism| format!("--mechanism {mechanism}"))
}

pub(crate) fn connect(server: &Running) -> TcpStream {
    let stream = TcpStream::connect(&server.addresses()[0]).expect("it listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time");
    stream
}

/// Sends `sent` and expects exactly this answer.
pub(crate) fn ask(stream: &mut (impl Read + Write), sent: &[u8], expected: &[u8]) {
    stream.write_all(sent).expect("it reads");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("it answers");
    assert!(
        answer == expected,
        "{} to {}",
        answer.escape_ascii(),
        sent.escape_ascii()
    );
}

pub(crate) fn statistic(stream: &mut (impl Read + Write), name: &str) -> u64 {
    stream.write_all(b"stats\r\n").expect("it reads");
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !all.ends_with(b"END\r\n") {
        let count = stream.read(&mut part).expect("it answers");
        all.extend_from_slice(&part[..count]);
    }
    let text = String::from_utf8(all).expect("it is text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Waits until a condition holds.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{what} does not happen"
        );
        std::thread::yield_now();
    }
}

/// Reads until the text ends with this, and returns it.
pub(crate) fn read_to(stream: &mut impl Read, end: &str) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(end) {
        let count = stream.read(&mut part).expect("it answers");
        assert!(count > 0, "it ends after {}", all.escape_ascii());
        all.extend_from_slice(&part[..count]);
    }
    String::from_utf8(all).expect("text")
}

/// True if this comes soon.
pub(crate) fn read_on(stream: &mut impl Read, part: &str) -> bool {
    let mut all = Vec::new();
    let mut some = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut some) {
        all.extend_from_slice(&some[..count]);
        if String::from_utf8_lossy(&all).contains(part) {
            return true;
        }
    }
    false
}
