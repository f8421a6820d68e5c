//! Faults that only rings can have: operations that the kernel still holds when a connection or the
//! server ends.
//! One test: it counts the process's descriptors.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use hearth_net::{Builder, Mechanism, Pattern, Server};
use hearth_sys::descriptor::break_on_close;
use support::{Lines, ask, cell, connect, descriptors, expect, expect_end, until};

/// The length of the reply to `much`.
const MUCH_BYTES: usize = 100_005;

#[test]
fn rings() {
    if let Err(error) = Mechanism::Uring.check() {
        // The other mechanisms are tested in `grid.rs`.
        assert!(error.to_string().contains("use edge"), "{error}");
        return;
    }
    let before = descriptors();
    one_call_a_request();
    more_at_once_than_buffers();
    who_vanishes_while_being_sent_to();
    who_never_reads();
    who_never_reads_and_is_silent();
    who_reads_slowly();
    an_end_in_the_middle_of_a_reply();
    an_end_with_requests_not_served();
    comings_and_goings();
    assert_eq!(descriptors(), before);
}

fn rings_of_one() -> Builder {
    cell(Pattern::Sharded, Mechanism::Uring).threads(1)
}

/// A client that asks for `much` without reading, until the server has to wait for it.
fn stuck(server: &Server<Lines>) -> TcpStream {
    let stalled = server.counters().stalled;
    let mut client = connect(server);
    client.write_all("much\n".repeat(200).as_bytes()).unwrap();
    until("it has to wait", || server.counters().stalled > stalled);
    client
}

/// A reply is submitted by the call that waits for the next request, and does not end that wait.
fn one_call_a_request() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    let mut client = connect(&server);
    ask(&mut client, "first");
    let (before, requests) = (server.counters(), 1000);
    for _ in 0..requests {
        ask(&mut client, "again");
    }
    let calls = server.counters().waits - before.waits;
    // Some more for the timer, once a second.
    assert!(calls < requests + requests / 2, "{calls} calls");
    assert_eq!(server.counters().rearmed, 0);
}

fn more_at_once_than_buffers() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    let mut clients: Vec<_> = (0..600).map(|_| connect(&server)).collect();
    let line = "z".repeat(6000);
    for round in 0..3 {
        // While it is busy, the others are all served.
        clients[round]
            .write_all("work\n".repeat(500).as_bytes())
            .unwrap();
        for client in &mut clients[3..] {
            client.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        for client in &mut clients[3..] {
            expect(client, format!("{line}\n").as_bytes());
        }
    }
    for client in &mut clients[..3] {
        expect(client, "krow\n".repeat(500).as_bytes());
    }
}

fn who_vanishes_while_being_sent_to() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    for round in 0..10 {
        let client = stuck(&server);
        if round % 2 == 0 {
            break_on_close(client.as_fd()).unwrap();
        }
    }
    ask(&mut connect(&server), "still here");
    until("all are gone", || server.connections() == 0);
    let Lines { opened, closed } = server.service();
    assert_eq!(opened.load(Ordering::SeqCst), closed.load(Ordering::SeqCst));
}

/// The server takes little input from a client that does not read.
fn who_never_reads() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    let mut client = stuck(&server);
    client.set_nonblocking(true).unwrap();
    let lines = "much\n".repeat(1000);
    // As much as the system takes, which is more than the server's limit.
    let mut given = 0;
    while given < 64 << 20 {
        match client.write(lines.as_bytes()) {
            Ok(count) => given += count,
            Err(_) => break,
        }
    }
    for _ in 0..100 {
        ask(&mut connect(&server), "quick");
    }
    let taken = server.counters().read_bytes as usize;
    assert!(taken < 1 << 20, "{taken} of {given} bytes");
    drop(client);
    until("it is gone", || server.connections() == 0);
}

fn who_never_reads_and_is_silent() {
    let server = rings_of_one()
        .idle(Duration::from_secs(1))
        .start(Lines::default())
        .unwrap();
    let _client = stuck(&server);
    until("it is gone", || server.connections() == 0);
    assert_eq!(server.counters().idled, 1);
}

/// A reply that takes longer than the idle limit.
fn who_reads_slowly() {
    let server = rings_of_one()
        .output_bytes_max(4 << 20)
        .idle(Duration::from_secs(1))
        .start(Lines::default())
        .unwrap();
    let mut client = stuck(&server);
    let begun = Instant::now();
    let mut part = vec![0; 2 * MUCH_BYTES];
    // The server's clock counts whole seconds, so silence of over a second is noticed after at most
    // two. The bytes read in that time are more than the system buffers and less than the reply.
    while begun.elapsed() < Duration::from_millis(3500) {
        client.read_exact(&mut part).unwrap();
        thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!(server.counters().idled, 0);
    drop(client);
    until("it is gone", || server.connections() == 0);
}

/// Output that could not be sent before the end is still sent, each byte once.
fn an_end_in_the_middle_of_a_reply() {
    let server = rings_of_one()
        .output_bytes_max(4 << 20)
        .start(Lines::default())
        .unwrap();
    let (mut reads, never_reads) = (stuck(&server), stuck(&server));
    let reader = thread::spawn(move || {
        let mut reply = vec![0; MUCH_BYTES];
        for _ in 0..200 {
            reads.read_exact(&mut reply).unwrap();
            let is_whole = reply[..100_000].iter().all(|byte| *byte == b'x');
            assert!(is_whole && reply.ends_with(b"hcum\n"));
        }
        expect_end(&mut reads);
    });
    until("it reads", || {
        server.counters().written_bytes > 40 * MUCH_BYTES as u64
    });
    let stopped = server.stop(Duration::from_secs(2));
    assert_eq!((stopped.done, stopped.cut), (1, 1));
    reader.join().unwrap();
    drop(never_reads);
}

fn an_end_with_requests_not_served() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.write_all("work\n".repeat(200).as_bytes()).unwrap();
    }
    until("all are there", || server.connections() == 20);
    let stopped = server.stop(Duration::from_secs(60));
    assert_eq!((stopped.done, stopped.cut), (20, 0));
    for client in &mut clients {
        expect(client, "krow\n".repeat(200).as_bytes());
        expect_end(client);
    }
}

/// Freed slots are used again.
fn comings_and_goings() {
    let server = rings_of_one().start(Lines::default()).unwrap();
    for round in 0..500 {
        let mut client = connect(&server);
        match round % 4 {
            0 => ask(&mut client, "a"),
            1 => {
                client.write_all(b"abc\nquit\n").unwrap();
                expect(&mut client, b"cba\n");
                expect_end(&mut client);
            }
            2 => client.write_all(b"much\nabc").unwrap(),
            _ => {}
        }
    }
    // The last connections may not be accepted yet, so the count may be zero for a moment.
    until("all have gone", || server.counters().closed == 500);
    until("all are gone", || server.connections() == 0);
}
