//! A service for tests: it reverses each line; some words do more.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hearth_net::{Builder, Input, Mechanism, Next, Output, Pattern, Peer, Server, Service};

#[derive(Default)]
pub struct Lines {
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
}

impl Service for Lines {
    type Worker = Vec<u8>;
    type Session = u64;

    fn worker(&self, _: usize) -> Vec<u8> {
        Vec::new()
    }

    fn open(&self, _: &mut Vec<u8>, _: &Peer) -> u64 {
        self.opened.fetch_add(1, Ordering::SeqCst);
        0
    }

    fn serve(
        &self,
        line: &mut Vec<u8>,
        lines: &mut u64,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        let mut turn = 0;
        while let Some(end) = input.bytes().iter().position(|byte| *byte == b'\n') {
            if output.is_full() || turn == 20 {
                return Next::Again;
            }
            turn += 1;
            line.clear();
            line.extend(input.bytes()[..end].iter().rev());
            input.consume(end + 1);
            *lines += 1;
            match line.as_slice() {
                b"tiuq" => return Next::Close,
                b"kaerb" => return Next::Break,
                b"hcum" => output.write(&[b'x'; 100_000]),
                b"cinap" => panic!("as it was asked to"),
                // A call that sleeps.
                b"pan" => std::thread::sleep(Duration::from_secs(4)),
                // A call that computes for a while.
                b"krow" => {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(100) {}
                }
                _ => {}
            }
            output.write(line);
            output.write(b"\n");
        }
        Next::More
    }

    fn close(&self, _: &mut Vec<u8>, _: u64) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }

    fn refusal(&self) -> &[u8] {
        b"full\n"
    }
}

pub fn grid() -> impl Iterator<Item = (Pattern, Mechanism)> {
    // Some systems forbid one of them.
    let mechanisms = Mechanism::all().map(|mechanism| mechanism.check().ok().map(|()| mechanism));
    Pattern::all().into_iter().flat_map(move |pattern| {
        mechanisms
            .into_iter()
            .flatten()
            .filter(move |mechanism| mechanism.goes_with(pattern))
            .map(move |mechanism| (pattern, mechanism))
    })
}

pub fn cell(pattern: Pattern, mechanism: Mechanism) -> Builder {
    Server::builder()
        .pattern(pattern)
        .mechanism(mechanism)
        .threads(3)
        .tcp("127.0.0.1:0")
}

pub fn connect(server: &Server<Lines>) -> TcpStream {
    let client = TcpStream::connect(server.tcp_addresses()[0]).expect("it listens");
    client.set_nodelay(true).expect("it is TCP");
    // A test that waits longer than this has failed.
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("it is a socket");
    client
}

#[track_caller]
pub fn expect(client: &mut TcpStream, wanted: &[u8]) {
    let mut found = vec![0; wanted.len()];
    client.read_exact(&mut found).expect("it answers");
    assert_eq!(
        String::from_utf8_lossy(&found),
        String::from_utf8_lossy(wanted)
    );
}

#[track_caller]
pub fn expect_end(client: &mut TcpStream) {
    let mut rest = Vec::new();
    match client.read_to_end(&mut rest) {
        Ok(_) => assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest)),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

#[track_caller]
pub fn ask(client: &mut TcpStream, line: &str) {
    client
        .write_all(format!("{line}\n").as_bytes())
        .expect("it is there");
    let reversed: String = line.chars().rev().collect();
    expect(client, format!("{reversed}\n").as_bytes());
}

#[track_caller]
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The number of open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("there is /proc")
        .count()
}
