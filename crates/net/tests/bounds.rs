//! Bounds on the work that a client can cause with little effort.

mod support;

use std::io::Write;
use std::net::TcpStream;

use hearth_net::{Input, Mechanism, Next, Operation, Output, Pattern, Peer, Server, Service};
use support::{Lines, ask, cell, connect, grid, until};

/// A service that always waits for more input.
struct Waits;

impl Service for Waits {
    type Worker = ();
    type Session = ();
    fn worker(&self, _: usize) {}
    fn open(&self, (): &mut (), _: &Peer) {}
    fn serve(&self, (): &mut (), (): &mut (), _: &mut Input<'_>, _: &mut Output) -> Next {
        Next::More
    }
}

/// One client and a server that times its reads.
struct Dribble {
    server: Server<Waits>,
    client: TcpStream,
    sent: u64,
}

impl Dribble {
    fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).expect("it reads");
        self.sent += bytes.len() as u64;
        until("it has come", || {
            self.server.counters().read_bytes == self.sent
        });
    }

    /// The mean time of a read of a single byte, in ticks.
    fn read_of_a_byte(&mut self) -> u64 {
        let sum = |server: &Server<Waits>| {
            let times = server.times(Operation::Receive);
            times.iter().fold((0, 0), |(count, ticks), one| {
                (count + one.count, ticks + one.ticks)
            })
        };
        let before = sum(&self.server);
        for _ in 0..500 {
            self.send(b"k");
        }
        let after = sum(&self.server);
        (after.1 - before.1) / (after.0 - before.0)
    }
}

/// Otherwise a client that sends a line byte by byte makes the server do the work of the whole line
/// for each byte.
#[test]
fn a_byte_costs_as_much_however_many_wait() {
    for mechanism in [Mechanism::Level, Mechanism::Edge, Mechanism::Select] {
        let server = Server::builder()
            .pattern(Pattern::Sharded)
            .mechanism(mechanism)
            .threads(1)
            .input_bytes_max(8 << 20)
            .timed()
            .tcp("127.0.0.1:0")
            .start(Waits)
            .expect("there are descriptors");
        let client = TcpStream::connect(server.tcp_addresses()[0]).expect("it listens");
        client.set_nodelay(true).expect("it is TCP");
        let mut dribble = Dribble {
            server,
            client,
            sent: 0,
        };
        dribble.send(b"begin");
        let few = dribble.read_of_a_byte();
        dribble.send(&vec![b'k'; 6 << 20]);
        let many = dribble.read_of_a_byte();
        // It would be more than a hundred times as long if each read did work for all the bytes
        // that wait. A busy machine may interrupt some reads.
        assert!(
            many < 20 * few,
            "{mechanism}: {few} ticks where few wait, {many} where many do"
        );
    }
}

#[test]
fn a_limit_of_connections_that_means_none_is_one_too() {
    for (pattern, mechanism) in grid() {
        let server = cell(pattern, mechanism)
            .connections_max(usize::MAX)
            .start(Lines::default())
            .expect("there are descriptors");
        ask(&mut connect(&server), "unlimited");
    }
}
