//! Each pattern with each mechanism sends the same bytes.

mod support;

use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use hearth_net::{Mechanism, Operation, Pattern, Server, StartError};
use support::{Lines, ask, cell, connect, expect, expect_end, grid, until};

#[test]
fn requests_in_pieces_and_in_heaps() {
    for (pattern, mechanism) in grid() {
        let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
        let mut client = connect(&server);
        ask(&mut client, "hello");
        for byte in b"piece by piece\n" {
            client.write_all(&[*byte]).unwrap();
            thread::sleep(Duration::from_micros(200));
        }
        expect(&mut client, b"eceip yb eceip\n");
        // More than one turn serves and one read takes.
        let many = 20_000;
        let mut asked = Vec::new();
        let mut wanted = Vec::new();
        for i in 0..many {
            asked.extend(format!("{i:08}\n").bytes());
            wanted.extend(format!("{i:08}").bytes().rev().chain([b'\n']));
        }
        let mut writer = client.try_clone().unwrap();
        let writes = thread::spawn(move || writer.write_all(&asked).unwrap());
        let mut found = vec![0; wanted.len()];
        std::io::Read::read_exact(&mut client, &mut found).unwrap();
        assert!(found == wanted, "{pattern} {mechanism}");
        writes.join().unwrap();
        client.write_all(b"last\nquit\nnever\n").unwrap();
        expect(&mut client, b"tsal\n");
        expect_end(&mut client);
        drop(client);
        until("its session is closed", || {
            server.service().closed.load(Ordering::SeqCst) == 1
        });
    }
}

#[test]
fn many_clients_at_once() {
    for (pattern, mechanism) in grid() {
        let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
        thread::scope(|scope| {
            for part in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    let mut clients: Vec<_> = (0..50).map(|_| connect(server)).collect();
                    for turn in 0..20 {
                        for (i, client) in clients.iter_mut().enumerate() {
                            client
                                .write_all(format!("{part}-{i}-{turn}\n").as_bytes())
                                .unwrap();
                        }
                        for (i, client) in clients.iter_mut().enumerate() {
                            let wanted: String =
                                format!("{part}-{i}-{turn}").chars().rev().collect();
                            expect(client, format!("{wanted}\n").as_bytes());
                        }
                    }
                });
            }
        });
        assert_eq!(server.counters().accepted, 200, "{pattern} {mechanism}");
        until("all are gone", || server.connections() == 0);
    }
}

/// A thread that spins before it sleeps gets the same events, whether they come while it spins or
/// while it sleeps.
#[test]
fn threads_that_spin() {
    for mechanism in Mechanism::all() {
        if mechanism.check().is_err() {
            continue;
        }
        let builder = cell(Pattern::Sharded, mechanism).spin(Duration::from_millis(2));
        let server = builder.start(Lines::default()).unwrap();
        let mut client = connect(&server);
        for round in 0..100 {
            client
                .write_all(format!("{round:04}\n").as_bytes())
                .unwrap();
            let wanted: String = format!("{round:04}").chars().rev().collect();
            expect(&mut client, format!("{wanted}\n").as_bytes());
            if round % 25 == 0 {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

#[test]
fn words_that_end_connections() {
    for (pattern, mechanism) in grid() {
        let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
        let mut client = connect(&server);
        client.write_all(b"quit\n").unwrap();
        expect_end(&mut client);
        let mut client = connect(&server);
        client.write_all(b"break\nmore\n").unwrap();
        expect_end(&mut client);
        // A client that has closed its writing half is still answered.
        let mut client = connect(&server);
        client.write_all(b"abc\nde").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        expect(&mut client, b"cba\n");
        expect_end(&mut client);
    }
}

#[test]
fn operations_are_timed_if_asked_for() {
    for (pattern, mechanism) in grid() {
        let server = cell(pattern, mechanism)
            .timed()
            .start(Lines::default())
            .unwrap();
        let mut client = connect(&server);
        for _ in 0..10 {
            ask(&mut client, "abc");
        }
        let count = |of| {
            server
                .times(of)
                .iter()
                .map(|times| times.count)
                .sum::<u64>()
        };
        until("ten were sent", || count(Operation::Send) == 10);
        assert!(count(Operation::Receive) >= 10);
        assert_eq!(count(Operation::Serve), 10);
    }
}

#[test]
fn mistakes_are_told() {
    let too_few = Server::builder()
        .pattern(hearth_net::Pattern::HalfAsync)
        .threads(1)
        .tcp("127.0.0.1:0")
        .start(Lines::default());
    assert!(matches!(too_few, Err(StartError::TooFewThreads { .. })));
    for pattern in [Pattern::HalfAsync, Pattern::Leader] {
        let mismatch = cell(pattern, Mechanism::Uring).start(Lines::default());
        let told = mismatch.err().expect("they do not go together").to_string();
        assert_eq!(
            told,
            format!(
                "io_uring goes with the patterns sharded and adaptive; use edge with {pattern}"
            )
        );
    }
    let nowhere = Server::builder().start(Lines::default());
    assert!(matches!(nowhere, Err(StartError::NoListener)));
    let first = Server::builder()
        .tcp("127.0.0.1:0")
        .start(Lines::default())
        .unwrap();
    let second = Server::builder()
        .tcp(first.tcp_addresses()[0].to_string())
        .start(Lines::default());
    let told = second.err().expect("it is taken").to_string();
    assert!(told.contains("another program listens there"), "{told}");
    assert!(
        "epol"
            .parse::<hearth_net::Mechanism>()
            .unwrap_err()
            .to_string()
            .contains("edge")
    );
    // The error of a kernel that allows io_uring to nobody.
    let forbidden = StartError::NoMechanism {
        mechanism: hearth_net::Mechanism::Uring,
        error: std::io::Error::from_raw_os_error(1),
    };
    assert_eq!(
        forbidden.to_string(),
        "this process cannot use io_uring: Operation not permitted (os error 1) (kernel.io_uring_disabled or a filter of \
         system calls forbids it); use edge instead"
    );
}
