//! Connections that move from thread to thread lose nothing, whatever they are doing; and the
//! server ends while they do. One test: it counts the process's descriptors.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hearth_net::{Builder, Mechanism, Pattern, Server};
use support::{Lines, ask, connect, descriptors, until};

/// Each mechanism alone, then the one that is measured to be faster.
fn adaptive() -> Vec<Builder> {
    let builder = Server::builder()
        .pattern(Pattern::Adaptive)
        .threads(3)
        .tcp("127.0.0.1:0");
    let mechanisms = Mechanism::all().into_iter();
    let some = mechanisms.filter(|mechanism| mechanism.check().is_ok());
    some.map(|mechanism| builder.clone().mechanism(mechanism))
        .chain([builder.clone()])
        .collect()
}

#[test]
fn moving() {
    for builder in adaptive() {
        let before = descriptors();
        nothing_is_lost(&builder);
        it_ends_meanwhile(&builder);
        assert_eq!(descriptors(), before, "{builder:?}");
    }
}

/// Sends numbered lines and verifies each reply; many are in flight at a time, and some are long.
fn converse(mut client: TcpStream, is_over: &AtomicBool) -> u64 {
    let mut writer = client.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0u64.. {
                let line = match number % 64 {
                    63 => "much\n".to_owned(),
                    7 => "work\n".to_owned(),
                    _ => format!("{number}\n"),
                };
                // In two pieces, so that a connection sometimes moves with half a line.
                let (front, back) = line.split_at(line.len() / 2);
                writer.write_all(front.as_bytes()).unwrap();
                writer.write_all(back.as_bytes()).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    writer.shutdown(Shutdown::Write).unwrap();
                    return;
                }
            }
        });
        let mut reader = std::io::BufReader::new(&mut client);
        for number in 0u64.. {
            let wanted = match number % 64 {
                63 => "x".repeat(100_000) + "hcum\n",
                7 => "krow\n".to_owned(),
                _ => number.to_string().chars().rev().collect::<String>() + "\n",
            };
            let mut found = vec![0; wanted.len()];
            match reader.read_exact(&mut found) {
                Ok(()) => assert!(found == wanted.as_bytes(), "reply {number}"),
                Err(_) if is_over.load(Ordering::Relaxed) => return number,
                Err(error) => panic!("reply {number}: {error}"),
            }
        }
        0
    })
}

fn nothing_is_lost(builder: &Builder) {
    let server = builder.clone().start(Lines::default()).unwrap();
    let is_over = AtomicBool::new(false);
    let idle: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    thread::scope(|scope| {
        let talks: Vec<_> = (0..6)
            .map(|_| {
                let client = connect(&server);
                scope.spawn(|| converse(client, &is_over))
            })
            .collect();
        until("connections have moved", || server.counters().moved > 200);
        is_over.store(true, Ordering::Relaxed);
        for talk in talks {
            assert!(talk.join().unwrap() > 0);
        }
    });
    for mut client in idle {
        ask(&mut client, "still here");
    }
    until("all are gone", || server.connections() == 0);
    let Lines { opened, closed } = server.service();
    assert_eq!(opened.load(Ordering::SeqCst), 26);
    assert_eq!(closed.load(Ordering::SeqCst), 26);
    let adapted = server.adapted().expect("it is adaptive");
    assert!((1..=3).contains(&adapted.threads), "{adapted:?}");
    assert!(adapted.why.contains("calls/s"), "{adapted:?}");
}

fn it_ends_meanwhile(builder: &Builder) {
    for round in 0..10 {
        let server = builder.clone().start(Lines::default()).unwrap();
        let clients: Vec<_> = (0..30).map(|_| connect(&server)).collect();
        thread::scope(|scope| {
            for client in &clients {
                scope.spawn(move || {
                    let mut client = client;
                    let mut replies = [0; 4096];
                    // Until the server closes the connection.
                    while client.write_all(b"work\n").is_ok()
                        && client.read(&mut replies).is_ok_and(|count| count > 0)
                    {
                    }
                });
            }
            let moves = 10 * round;
            until("some have moved", || server.counters().moved >= moves);
            until("all are there", || server.connections() == 30);
            let stopped = server.stop(Duration::from_millis(50));
            assert_eq!(stopped.done + stopped.cut, 30, "{stopped:?}");
        });
    }
}
