//! Connections that end badly, servers that end well, and limits. One test: it counts the process's
//! descriptors.

mod support;

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use hearth_net::{Builder, Mechanism, Pattern, Server, WhenFull};
use hearth_sys::descriptor::break_on_close;
use std::os::fd::AsFd;
use support::{Lines, ask, cell, connect, descriptors, expect, expect_end, grid, until};

#[test]
fn lives() {
    for (pattern, mechanism) in grid() {
        let before = descriptors();
        vanished_clients(pattern, mechanism);
        slow_clients(pattern, mechanism);
        breaks(pattern, mechanism);
        panics(pattern, mechanism);
        more_than_was_wanted(pattern, mechanism);
        long_goodbyes(pattern, mechanism);
        floods(pattern, mechanism);
        a_flood_and_an_end(pattern, mechanism);
        limits(pattern, mechanism);
        silence(pattern, mechanism);
        stops(pattern, mechanism);
        crowds(pattern, mechanism);
        assert_eq!(descriptors(), before, "{pattern} {mechanism}");
    }
    a_flood_takes_no_more_turns(Mechanism::Edge);
    a_flood_takes_no_more_turns(Mechanism::Level);
    unix_sockets();
}

fn vanished_clients(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    for round in 0..50 {
        let mut client = connect(&server);
        client.write_all(b"whole\nmuch\nhal").unwrap();
        if round % 2 == 0 {
            break_on_close(client.as_fd()).unwrap();
        }
    }
    ask(&mut connect(&server), "still here");
    until("all are gone", || server.connections() == 0);
    let Lines { opened, closed } = server.service();
    assert_eq!(opened.load(Ordering::SeqCst), closed.load(Ordering::SeqCst));
}

/// A client that sends requests and does not read replies is read no further, and delays no other.
fn slow_clients(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let mut slow = connect(&server);
    let mut writer = slow.try_clone().unwrap();
    let requests = 500;
    let writes = thread::spawn(move || {
        for _ in 0..requests {
            writer.write_all(b"much\n").unwrap();
        }
    });
    until("it has to wait", || server.counters().stalled > 0);
    for _ in 0..10 {
        ask(&mut connect(&server), "quick");
    }
    let mut reply = vec![0; 100_005];
    for _ in 0..requests {
        slow.read_exact(&mut reply).unwrap();
        assert!(reply.ends_with(b"xhcum\n"), "{pattern} {mechanism}");
    }
    writes.join().unwrap();
    ask(&mut slow, "after all");
}

/// A server with one working thread.
fn alone(pattern: Pattern, mechanism: Mechanism) -> Builder {
    cell(pattern, mechanism).threads(1 + usize::from(pattern == Pattern::HalfAsync))
}

/// A reply that is dropped with its broken connection is sent to no other client.
fn breaks(pattern: Pattern, mechanism: Mechanism) {
    let server = alone(pattern, mechanism).start(Lines::default()).unwrap();
    for _ in 0..3 {
        let mut client = connect(&server);
        client.write_all(b"secret\nbreak\n").unwrap();
        expect_end(&mut client);
        ask(&mut connect(&server), "another's");
    }
}

/// A panic of the service ends only the connection whose request caused it.
fn panics(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let mut other = connect(&server);
    for _ in 0..6 {
        let mut client = connect(&server);
        client.write_all(b"secret\npanic\n").unwrap();
        expect_end(&mut client);
        ask(&mut other, "goes on");
        ask(&mut connect(&server), "begins");
    }
    assert_eq!(server.counters().panicked, 6, "{pattern} {mechanism}");
    until("the others are gone", || server.connections() == 1);
    drop(other);
    until("all are gone", || server.connections() == 0);
    let Lines { opened, closed } = server.service();
    assert_eq!(opened.load(Ordering::SeqCst), closed.load(Ordering::SeqCst));
}

/// A client that sends more after its last request sees the end of the stream and no reset. Bytes
/// that come after the end are reset nevertheless, so this does not hold each time.
fn more_than_was_wanted(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let asked = "work\nquit\n".to_owned() + &"more\n".repeat(40_000);
    let is_whole = |_| {
        let mut client = connect(&server);
        // It may be reset while it writes.
        let _ = client.write_all(asked.as_bytes());
        let mut found = Vec::new();
        client.read_to_end(&mut found).is_ok() && found == b"krow\n"
    };
    assert!((0..50).any(is_whole), "{pattern} {mechanism}");
    until("all are gone", || server.connections() == 0);
}

/// Output written before the end is sent, even in pieces: a Unix socket takes less than this at
/// once.
fn long_goodbyes(pattern: Pattern, mechanism: Mechanism) {
    let path = std::env::temp_dir().join(format!("hearth-net-long-{}", std::process::id()));
    let server = cell(pattern, mechanism)
        .unix(&path, 0o700)
        .output_bytes_max(64 << 20)
        .start(Lines::default())
        .unwrap();
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let requests = 15;
    let asked = "much\n".repeat(requests) + "quit\n";
    client.write_all(asked.as_bytes()).unwrap();
    until("it has to wait", || server.counters().stalled > 0);
    let mut found = Vec::new();
    client.read_to_end(&mut found).unwrap();
    assert_eq!(found.len(), requests * 100_005, "{pattern} {mechanism}");
    until("it is gone", || server.connections() == 0);
}

/// Checks that endlessly sending clients, as many as there are threads, delay neither other clients
/// nor the server's end.
fn floods(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let floods: Vec<_> = (0..3)
        .map(|_| {
            let mut client = connect(&server);
            let mut writer = client.try_clone().unwrap();
            let asked = "work\n".repeat(2000);
            let writes = thread::spawn(move || {
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_secs(60) {
                    if writer.write_all(asked.as_bytes()).is_err() {
                        return true;
                    }
                }
                false
            });
            let reads = thread::spawn(move || {
                let mut replies = [0; 65536];
                while client.read(&mut replies).is_ok_and(|count| count > 0) {}
            });
            (writes, reads)
        })
        .collect();
    until("they are at it", || {
        server.counters().read_bytes > 3 * 65536
    });
    ask(&mut connect(&server), "one of few words");
    server.stop(Duration::ZERO);
    for (writes, reads) in floods {
        assert!(
            writes.join().unwrap(),
            "{pattern} {mechanism}: the flood ended first"
        );
        reads.join().unwrap();
    }
}

/// A client that sends without end does not take the others' time while the server stops, and no
/// client can connect any more.
fn a_flood_and_an_end(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let address = server.tcp_addresses()[0];
    let mut half = connect(&server);
    half.write_all(b"hal").unwrap();
    until("half a line is there", || server.counters().read_bytes == 3);
    let flood = Flood::begin(&server);
    until("it is at it", || server.counters().read_bytes > 65536);
    let stops = thread::spawn(move || server.stop(Duration::from_secs(1)));
    until("nobody listens", || {
        std::net::TcpStream::connect(address).is_err()
    });
    half.write_all(b"f\n").unwrap();
    expect(&mut half, b"flah\n");
    expect_end(&mut half);
    let stopped = stops.join().unwrap();
    // The connection that only tested whether the server listens may be counted as done.
    assert!(
        stopped.done >= 1 && stopped.cut == 1,
        "{pattern} {mechanism}: {stopped:?}"
    );
    flood.end();
}

/// A client that sends without end gets no more turns than others.
fn a_flood_takes_no_more_turns(mechanism: Mechanism) {
    let server = alone(Pattern::Sharded, mechanism)
        .start(Lines::default())
        .unwrap();
    let flood = Flood::begin(&server);
    until("it is at it", || server.counters().read_bytes > 65536);
    let mut client = connect(&server);
    let written = |_| {
        let before = server.counters().written_bytes;
        ask(&mut client, "one of few words");
        server.counters().written_bytes - before
    };
    let mut last: Vec<_> = (0..40).map(written).skip(30).collect();
    last.sort_unstable();
    // A turn is sixteen times twenty lines of five bytes. A client waits for about two turns.
    assert!(last[5] < 10 * 1600, "{mechanism}: {last:?}");
    server.stop(Duration::ZERO);
    flood.end();
}

/// A client that sends without end.
struct Flood {
    writes: thread::JoinHandle<()>,
    reads: thread::JoinHandle<()>,
}

impl Flood {
    fn begin(server: &Server<Lines>) -> Flood {
        let mut client = connect(server);
        let mut writer = client.try_clone().unwrap();
        let asked = "work\n".repeat(2000);
        Flood {
            writes: thread::spawn(move || while writer.write_all(asked.as_bytes()).is_ok() {}),
            reads: thread::spawn(move || {
                let mut replies = [0; 65536];
                while client.read(&mut replies).is_ok_and(|count| count > 0) {}
            }),
        }
    }

    /// Waits for the client to end, as it does when the server has ended.
    fn end(self) {
        self.writes.join().unwrap();
        self.reads.join().unwrap();
    }
}

fn limits(pattern: Pattern, mechanism: Mechanism) {
    let limited = cell(pattern, mechanism).connections_max(2);
    let server = limited
        .clone()
        .when_full(WhenFull::Refuse)
        .start(Lines::default())
        .unwrap();
    let (mut one, mut two) = (connect(&server), connect(&server));
    ask(&mut one, "a");
    ask(&mut two, "b");
    let mut three = connect(&server);
    expect(&mut three, b"full\n");
    expect_end(&mut three);
    drop(one);
    until("there is room", || server.connections() == 1);
    ask(&mut connect(&server), "c");

    let server = limited
        .when_full(WhenFull::Wait)
        .start(Lines::default())
        .unwrap();
    let (mut one, mut two, mut three) = (connect(&server), connect(&server), connect(&server));
    ask(&mut one, "a");
    ask(&mut two, "b");
    three.write_all(b"abc\n").unwrap();
    assert_eq!(server.connections(), 2);
    drop(two);
    expect(&mut three, b"cba\n");

    let server = cell(pattern, mechanism)
        .input_bytes_max(1000)
        .start(Lines::default())
        .unwrap();
    let mut client = connect(&server);
    ask(&mut client, &"a".repeat(990));
    client.write_all(&[b'b'; 1000]).unwrap();
    expect_end(&mut client);
}

fn silence(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism)
        .idle(Duration::from_secs(1))
        .start(Lines::default())
        .unwrap();
    let mut client = connect(&server);
    ask(&mut client, "a");
    expect_end(&mut client);
    assert_eq!(server.counters().idled, 1);
}

fn stops(pattern: Pattern, mechanism: Mechanism) {
    let server = cell(pattern, mechanism).start(Lines::default()).unwrap();
    let address = server.tcp_addresses()[0];
    let mut idle = connect(&server);
    ask(&mut idle, "a");
    let mut half = connect(&server);
    ask(&mut half, "b");
    half.write_all(b"hal").unwrap();
    let mut asked = connect(&server);
    asked.write_all("work\n".repeat(200).as_bytes()).unwrap();
    until("all are there", || server.connections() == 3);
    until("half a line is there", || server.counters().read_bytes >= 7);
    let stopped = server.stop(Duration::from_millis(300));
    assert_eq!((stopped.done, stopped.cut), (2, 1), "{pattern} {mechanism}");
    expect(&mut asked, "krow\n".repeat(200).as_bytes());
    expect_end(&mut asked);
    expect_end(&mut idle);
    expect_end(&mut half);
    assert!(std::net::TcpStream::connect(address).is_err());
}

fn crowds(pattern: Pattern, mechanism: Mechanism) {
    // Each takes two descriptors of this process, whose limit may be low.
    let _ = hearth_sys::limits::allow_open_files(4200);
    let files = hearth_sys::limits::open_files().soft as usize;
    let most = (files.min(4200) / 2).saturating_sub(60);
    let server = cell(pattern, mechanism)
        .connections_max(most)
        .start(Lines::default())
        .unwrap();
    let mut clients: Vec<_> = (0..most).map(|_| connect(&server)).collect();
    for client in &mut clients {
        ask(client, "one of many");
    }
    assert_eq!(server.connections(), most);
    // Under load each remaining connection is counted as cut or done, and nothing hangs.
    for client in &mut clients {
        client.write_all(b"work\n").unwrap();
    }
    let stopped = server.stop(Duration::from_secs(60));
    assert_eq!(stopped.done + stopped.cut, most);
    for client in &mut clients {
        expect(client, b"krow\n");
    }
}

fn unix_sockets() {
    let path = std::env::temp_dir().join(format!("hearth-net-{}", std::process::id()));
    for _ in 0..2 {
        // The second time one connection remains.
        drop(std::os::unix::net::UnixListener::bind(&path));
        let server = Server::builder()
            .unix(&path, 0o700)
            .start(Lines::default())
            .unwrap();
        let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        client.write_all(b"abc\n").unwrap();
        let mut reply = [0; 4];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"cba\n");
        let taken = Server::builder().unix(&path, 0o700).start(Lines::default());
        assert!(taken.is_err());
        server.stop(Duration::ZERO);
        assert!(!path.exists());
    }
}
