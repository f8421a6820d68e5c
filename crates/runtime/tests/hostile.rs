//! Sends programs what no well-behaved peer would: they refuse it and continue.

mod hand;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hand::{build, command, finish, outcome_of};

/// Returns the program, built once.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("hostile"))
}

/// The carriers.
const CARRIERS: [(&str, &str); 2] = [("HEARTH_CARRIER", "threads"), ("HEARTH_WORKERS", "1")];

struct Node {
    /// Absent once it was waited for.
    child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    network: PathBuf,
    port: u16,
}

impl Drop for Node {
    /// Cleans up after a failed test.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.network);
    }
}

impl Node {
    /// Starts a case as node 1 of a network of its own.
    fn start(case: &str, carrier: (&str, &str)) -> Node {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hostile-{}-{number}", std::process::id());
        let network = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&network);
        // A free port.
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = command(program(), &[case])
            .env(carrier.0, carrier.1)
            .env("HEARTH_NODE", "1")
            .env("HEARTH_NETWORK", &network)
            .env("HEARTH_DEVICE_RADIO", (port - 1).to_string())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Node {
            child: Some(child),
            stdout,
            network,
            port,
        }
    }

    fn visit(&self) -> UnixStream {
        let stream = UnixStream::connect(self.network.join("nodes/1.socket")).unwrap();
        // Longer than any answer takes; a program that has died closes it at once.
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    /// Opens a link to its channel.
    fn link(&self) -> UnixStream {
        let mut stream = self.visit();
        stream.write_all(&connect()).unwrap();
        assert_eq!(message_of(&mut stream), [3, 0], "it is answered well");
        stream
    }

    /// Counts its threads.
    fn threads(&self) -> usize {
        let id = self.child.as_ref().unwrap().id();
        std::fs::read_dir(format!("/proc/{id}/task"))
            .unwrap()
            .count()
    }

    /// Checks that it ends well, having printed this since it was ready.
    fn ends(mut self, printed: &str) {
        let (code, _, told) = outcome_of(&finish(self.child.take().unwrap()));
        let mut found = String::new();
        self.stdout.read_to_string(&mut found).unwrap();
        assert_eq!((code, &*told, &*found), (Some(0), "", printed));
    }
}

struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    /// Returns the bytes with a few changes.
    fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.draw(3) {
            let place = self.draw(bytes.len());
            match self.draw(4) {
                0 => bytes[place] ^= 1 << self.draw(8),
                1 => bytes[place] = [0, 0x7F, 0x80, 0xFF][self.draw(4)],
                2 => bytes.truncate(place + 1),
                _ => bytes.insert(place, self.draw(256) as u8),
            }
        }
        bytes
    }
}

// ---- what nodes say; see `remote/wire.rs` and `portable/mod.rs` -------------------------------

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    bytes
}

fn text(text: &[u8]) -> Vec<u8> {
    framed(text)
}

/// A request to connect an out half-channel of boxes.
fn connect() -> Vec<u8> {
    framed(&[&[0, 1][..], &text(b"a"), &text(b"boxes")].concat())
}

fn value(of: &[u8]) -> Vec<u8> {
    framed(&[&[4], of].concat())
}

/// A box of an integer.
fn number(number: u32) -> Vec<u8> {
    [&[1, b'i'][..], &number.to_le_bytes()].concat()
}

/// Boxes in boxes.
fn nested(depth: usize) -> Vec<u8> {
    [[1, b'a'].repeat(depth - 1), number(7)].concat()
}

/// The deepest possible value: an array of structs of boxes of the same.
fn deepest() -> Vec<u8> {
    let code = b"ASax__";
    let level = [&[code.len() as u8][..], code, &[1]].concat();
    [level.repeat(333), number(7)].concat()
}

/// Reads one message without its length.
fn message_of(stream: &mut UnixStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("the program lives");
    let mut body = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut body).unwrap();
    body
}

/// Sends a value and waits until it is taken.
fn give(stream: &mut UnixStream, of: &[u8]) {
    stream.write_all(&value(of)).unwrap();
    assert_eq!(message_of(stream), [5, 1], "it is taken");
}

/// Checks that the other side ends the conversation.
fn assert_hung_up(mut stream: UnixStream) {
    let mut rest = Vec::new();
    // It may be reset, as the data sent was not read.
    let _ = stream.read_to_end(&mut rest);
}

// ---- a peer ----------------------------------------------------------------------------------

#[test]
fn a_peer_may_send_anything() {
    for carrier in CARRIERS {
        let node = Node::start("publishing", carrier);
        let mut dice = Dice(1);
        // Requests that make no sense, or almost make some.
        for _ in 0..200 {
            let mut stream = node.visit();
            let request = dice.damage(&connect());
            // The peer may hang up before it has read all.
            let _ = stream.write_all(&request);
            let _ = stream.shutdown(Shutdown::Write);
            assert_hung_up(stream);
        }
        // Values, and other messages on a link.
        let good = [&[6][..], b"Sixay_", &[1, 0, 0, 0], &number(5)].concat();
        for _ in 0..200 {
            let mut stream = node.link();
            let message = match dice.draw(8) {
                0 => framed(&[5, 1]),
                1 => framed(&[3, 0]),
                2 => connect(),
                _ => dice.damage(&value(&good)),
            };
            let _ = stream.write_all(&message);
            let _ = stream.shutdown(Shutdown::Write);
            assert_hung_up(stream);
        }
        // Two values at once: the protocol has one.
        let mut stream = node.link();
        let _ = stream.write_all(&value(&number(1)).repeat(5));
        drop(stream);
        give(&mut node.link(), &number(42));
        node.ends("done\n");
    }
}

/// A thread serves each visitor; a program has only so many, and would end if it could not start
/// another.
#[test]
fn many_may_come_and_say_nothing() {
    let node = Node::start("publishing", CARRIERS[1]);
    let few = node.threads() + 80;
    let silent: Vec<_> = (0..150).map(|_| node.visit()).collect();
    for _ in 0..100 {
        assert!(node.threads() < few, "150 visitors have a thread each");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    // A length alone is no reason to allocate memory, nor to wait forever.
    for mut stream in silent {
        let _ = stream.write_all(&[0, 0, 0, 0x0F]);
    }
    give(&mut node.link(), &number(42));
    node.ends("done\n");
}

/// A value that the stream does not take at once does not disturb other components.
#[test]
fn a_peer_may_read_nothing() {
    for carrier in CARRIERS {
        let mut node = Node::start("giving", carrier);
        let mut stream = node.visit();
        // An in half-channel.
        let request = [&[0, 0][..], &text(b"a"), &text(b"boxes")].concat();
        stream.write_all(&framed(&request)).unwrap();
        assert_eq!(message_of(&mut stream), [3, 0]);
        // The value has begun to come, and is larger than any buffer.
        stream.read_exact(&mut [0; 5]).unwrap();
        let stdin = node.child.as_mut().unwrap().stdin.as_mut().unwrap();
        stdin.write_all(b"go on\n").unwrap();
        node.ends("done\n");
    }
}

/// Bytes that the stream did not take at once come later, complete and in order.
#[test]
fn a_peer_may_read_late() {
    const LARGE: usize = 8 << 20;
    for carrier in CARRIERS {
        let mut node = Node::start("giving", carrier);
        let mut stream = node.visit();
        let request = [&[0, 0][..], &text(b"a"), &text(b"boxes")].concat();
        stream.write_all(&framed(&request)).unwrap();
        assert_eq!(message_of(&mut stream), [3, 0]);
        let body = message_of(&mut stream);
        let (head, given) = body.split_at(body.len() - LARGE);
        assert_eq!(head[..3], [4, 1, b's']);
        assert!((0..LARGE).all(|nth| given[nth] == (nth % 251) as u8));
        stream.write_all(&framed(&[5, 1])).unwrap();
        let stdin = node.child.as_mut().unwrap().stdin.as_mut().unwrap();
        stdin.write_all(b"go on\n").unwrap();
        node.ends("done\n");
    }
}

/// A descriptor's handler runs on whichever thread waits for them.
#[test]
fn values_may_be_as_deep_as_any() {
    for carrier in CARRIERS {
        let node = Node::start("publishing", carrier);
        let mut stream = node.link();
        give(&mut stream, &nested(1000));
        give(&mut stream, &deepest());
        let mut other = node.link();
        other.write_all(&value(&nested(1002))).unwrap();
        assert_hung_up(other);
        give(&mut stream, &number(42));
        node.ends("done\n");
    }
}

// ---- the radio -------------------------------------------------------------------------------

fn packet(kind: u8, sender: u32, number: u32, payload: &[u8]) -> Vec<u8> {
    let head = [b'H', b'R', 1, kind];
    [
        &head[..],
        &sender.to_le_bytes(),
        &number.to_le_bytes(),
        payload,
    ]
    .concat()
}

#[test]
fn a_radio_hears_anything() {
    for carrier in CARRIERS {
        let node = Node::start("hearing", carrier);
        let air = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = ("127.0.0.1", node.port);
        let mut dice = Dice(2);
        // The box holds few packets: some may be lost, so several of each are sent.
        for round in 0..300 {
            let good = match round % 3 {
                0 => packet(1, 2, 1, &nested(1000)),
                1 => packet(1, 2, 1, &deepest()),
                _ => packet(2, round, 1, &number(5)),
            };
            let _ = air.send_to(&good, to);
            let _ = air.send_to(&dice.damage(&good), to);
        }
        // From an address that no radio can have.
        let _ = air.send_to(&packet(2, 70_000, 76, &number(5)), to);
        // Until it is answered: then it has arrived.
        air.set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let last = packet(2, 3, 77, &number(42));
        let is_answered = (0..1000).any(|_| {
            let mut answer = [0; 64];
            let _ = air.send_to(&last, to);
            let is_any = air.recv(&mut answer).is_ok();
            assert_ne!(answer[..12], packet(3, 1, 76, &[]));
            is_any && answer[..12] == packet(3, 1, 77, &[])
        });
        assert!(is_answered, "the program lives");
        node.ends("done\n");
    }
}
