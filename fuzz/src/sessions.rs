//! Random sessions with cachet's protocol, right and wrong, as bytes that arrive in pieces.
//!
//! Invariants: the answers do not depend on how the bytes are cut; a value is the one stored for
//! its key, while others come, go and are evicted; and when all connections are gone and everything
//! is forgotten, no memory is in use. The answers themselves are compared with memcached elsewhere
//! (`apps/cachet/src/protocol/tests/beside.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use cachet::protocol::{About, Session, Then};
use cachet::store::counters::Counters;
use cachet::store::{AllCounters, Settings, Store, Worker};
use hearth_sys::clock::Clock;
use hearth_testing::random::Random;

/// A session that failed.
#[derive(Debug)]
pub struct Finding {
    pub seed: u64,
    pub message: String,
}

/// Longest line. Whether a longer one without an end closes the connection depends on how the bytes
/// are cut, so sessions have shorter ones.
const LINE_MAX: usize = 1000;
/// Commands of a session.
const COMMANDS: usize = 40;
/// Connections that share a store, for each thread.
const CONNECTIONS: usize = 4;

struct Alone(AllCounters);

impl About for Alone {
    fn counters(&self) -> Counters {
        self.0.sum()
    }
    fn reset_counters(&self) {
        self.0.reset();
    }
}

/// A server without sockets.
struct Server {
    store: Store,
    about: Alone,
}

impl Server {
    /// A server with 2 to this power locks.
    fn new(memory: usize, item_max: usize, lock_power: u32) -> Server {
        let settings = Settings {
            memory,
            item_max,
            hash_power: 4,
            lock_power,
            ..Settings::default()
        };
        Server {
            store: Store::new(settings, Clock::monotonic()).expect("there is memory"),
            about: Alone(AllCounters::default()),
        }
    }

    fn worker(&self) -> Worker {
        Worker::new(self.about.0.one_more())
    }

    /// Forgets everything, as clients and the crawler would, and asserts that nothing is left.
    fn end(&self, worker: &mut Worker) {
        self.store.free_kept(worker);
        self.store.forget(0);
        self.store.set_crawler(true);
        self.store.ask_for_crawl();
        let mut chores = self.store.chores();
        while self.store.work(worker, &mut chores) {}
        self.store.free_kept(worker);
        let held = self.store.holdings();
        assert_eq!(
            (held.items, held.bytes, held.charged),
            ([0; 3], 0, 0),
            "memory is in use though nothing is stored"
        );
    }
}

/// A connection: bytes received but not consumed, and the answers.
#[derive(Default)]
struct Connection {
    session: Session,
    waiting: Vec<u8>,
    answers: Vec<u8>,
    is_closed: bool,
}

impl Connection {
    fn bring(&mut self, server: &Server, worker: &mut Worker, piece: &[u8]) {
        if self.is_closed {
            return;
        }
        self.waiting.extend_from_slice(piece);
        loop {
            let mut out = Vec::new();
            let use_of = (&server.store, &mut *worker, &server.about as &dyn About);
            let served = self.session.serve(use_of, &self.waiting, 3, &mut out);
            self.waiting.drain(..served.consumed);
            self.answers.append(&mut out);
            match served.then {
                Then::More | Then::Watch(_) => return,
                Then::Again => {}
                Then::Close | Then::Stop { .. } => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    fn end(&mut self, worker: &mut Worker) {
        self.session.end(worker);
    }
}

// ---- what is sent -------------------------------------------------------------------------------

/// The byte that all values of a key consist of, by its number.
fn byte_of(key: usize) -> u8 {
    b'A' + key as u8
}

const KEYS: usize = 24;

fn number(random: &mut Random) -> String {
    let odd = [
        "-1",
        "0",
        "1",
        "250",
        "2147483645",
        "2147483646",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "-9223372036854775808",
        "+7",
        "1x",
        "",
        "\t3",
    ];
    (*random.pick(&odd)).to_owned()
}

fn key(random: &mut Random) -> String {
    match random.below(30) {
        0 => "A".repeat(250),
        1 => "A".repeat(251),
        _ => format!("k{}", random.below(KEYS)),
    }
}

/// Flags of meta commands, mostly valid ones.
fn flags(random: &mut Random) -> String {
    let letters = b"bcfhklqstuvCDFIJMNORTxZ0";
    let mut text = String::new();
    for _ in 0..random.below(6) {
        let letter = *random.pick(letters) as char;
        let token = match letter {
            'M' => (*random.pick(&["S", "E", "A", "P", "R", "I", "D", "+", "xy"])).to_owned(),
            'T' | 'N' | 'R' => (*random.pick(&["0", "30", "1000", "-1", "x"])).to_owned(),
            'C' | 'D' | 'F' | 'J' => number(random),
            'O' => "o".repeat(random.below(40)),
            _ => String::new(),
        };
        text += &format!(" {letter}{token}");
    }
    text
}

/// Appends a random command, valid or invalid.
fn command(random: &mut Random, sent: &mut Vec<u8>) {
    let (key, noreply) = (key(random), *random.pick(&["", "", "", " noreply", " x"]));
    let ttl = *random.pick(&["0", "0", "0", "1000", "-1", "x"]);
    let value: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
    let length = match random.chance(10) {
        true => number(random),
        false => value.len().to_string(),
    };
    let line = match random.below(16) {
        0..4 => {
            let name = *random.pick(&["set", "add", "replace", "append", "prepend", "cas"]);
            let cas = if name == "cas" { " 5" } else { "" };
            format!("{name} {key} 3 {ttl} {length}{cas}{noreply}\r\n")
        }
        4..6 => format!("ms {key} {length}{}\r\n", flags(random)),
        6 => {
            let name = *random.pick(&["get", "gets", "gat 0", "gats 1000"]);
            format!("{name} {key} k1 k2{}\r\n", " k3".repeat(random.below(30)))
        }
        7 => format!(
            "{} {key} {}{noreply}\r\n",
            random.pick(&["incr", "decr"]),
            number(random)
        ),
        8..11 => {
            let name = *random.pick(&["mg", "md", "ma", "me", "mn", "mg", "ma"]);
            let key = match random.below(4) {
                0 => "azENClgK".to_owned(),
                1 => "QUI=".to_owned(),
                _ => key,
            };
            format!("{name} {key}{}\r\n", flags(random))
        }
        11 => format!("delete {key}{noreply}\r\ntouch {key} {ttl}{noreply}\r\n"),
        12 => {
            let rare = [
                "flush_all",
                "flush_all 10",
                "stats items",
                "stats sizes",
                "stats cachedump 1 0",
                "lru_crawler metadump all",
                "lru tune 10 20 1.0 2.0",
                "lru_crawler crawl all",
                "verbosity 1",
                "version",
                "slabs reassign 1 2",
                "stats detail dump",
                "",
                "quit",
            ];
            format!("{}\r\n", random.pick(&rare))
        }
        _ => format!("set {key} 0 0 2\r\n{}\r\n", random.below(90) + 10),
    };
    sent.extend_from_slice(line.as_bytes());
    if line.starts_with("ms") || line.ends_with(&format!("{noreply}\r\n")) && line.contains(" 3 ") {
        sent.extend_from_slice(&value);
        sent.extend_from_slice(b"\r\n");
    }
}

/// The session of a seed, as bytes.
pub fn session_of(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut sent = Vec::new();
    for _ in 0..COMMANDS {
        command(&mut random, &mut sent);
    }
    for _ in 0..random.below(12) {
        let at = random.below(sent.len());
        match random.below(4) {
            0 => sent[at] = random.bits() as u8,
            1 => sent.insert(at, *random.pick(b"\r\n 0\0-9m\xff")),
            2 => drop(sent.drain(at..(at + random.below(9)).min(sent.len()))),
            _ => sent[at] ^= 1 << random.below(8),
        }
    }
    let mut since = 0;
    let mut at = 0;
    while at < sent.len() {
        since = if sent[at] == b'\n' { 0 } else { since + 1 };
        if since == LINE_MAX {
            sent.insert(at, b'\n');
            since = 0;
        }
        at += 1;
    }
    sent
}

// ---- what must hold -----------------------------------------------------------------------------

/// The answers to these pieces, except for statistics, some of which count how often something was
/// served, and lists, whose order differs between servers.
fn answers<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let server = Server::new(4 << 20, 1 << 20, 0);
    let (mut worker, mut connection) = (server.worker(), Connection::default());
    pieces.for_each(|piece| connection.bring(&server, &mut worker, piece));
    connection.end(&mut worker);
    server.end(&mut worker);
    let lines = connection.answers.split_inclusive(|&byte| byte == b'\n');
    let differs = |line: &&[u8]| {
        let beginnings = [&b"STAT "[..], b"key=", b"ITEM "];
        beginnings.iter().any(|begin| line.starts_with(begin))
    };
    let told = lines.filter(|line| !differs(line));
    (told.flatten().copied().collect(), connection.is_closed)
}

fn in_pieces<'a>(bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    let longest = 1 + random.below(60);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at((1 + random.below(longest)).min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

fn examine_cuts(seed: u64) {
    let sent = session_of(seed);
    let mut random = Random::new(seed ^ 0x6375_7473);
    let cuts = [
        sent.chunks(1).collect::<Vec<_>>(),
        in_pieces(&sent, &mut random),
    ];
    for pieces in cuts {
        let is_same = || answers([&sent[..]].into_iter()) == answers(pieces.iter().copied());
        // Times given from 1970 on may differ by the second that passed between the starts of two
        // servers.
        if !is_same() && !is_same() {
            let (whole, cut) = (
                answers([&sent[..]].into_iter()),
                answers(pieces.into_iter()),
            );
            panic!(
                "sent {}\nwhole {}\ncut   {}",
                sent.escape_ascii(),
                whole.0.escape_ascii(),
                cut.0.escape_ascii()
            );
        }
    }
}

/// Requests of a connection that shares a store: values tell their key.
fn honest(random: &mut Random) -> Vec<u8> {
    let key = random.below(KEYS);
    let length = match random.below(20) {
        0 => random.below(60_000),
        1..4 => random.below(4000),
        _ => random.below(100),
    };
    let mut sent = match random.below(20) {
        0..6 => format!("set k{key} 0 0 {length}\r\n"),
        6 => format!("append k{key} 0 0 {length}\r\n"),
        7 => format!("prepend k{key} 0 0 {length}\r\n"),
        8 => format!("ms k{key} {length} T1000\r\n"),
        9 => return format!("delete k{key} noreply\r\n").into_bytes(),
        10 => return format!("mg k{key} v k\r\nmd k{key} I\r\n").into_bytes(),
        11 => return format!("lru_crawler metadump all\r\ntouch k{key} 100\r\n").into_bytes(),
        12 if random.chance(3) => return b"flush_all\r\n".to_vec(),
        _ => {
            let others: Vec<String> = (0..random.below(KEYS))
                .map(|_| format!(" k{}", random.below(KEYS)))
                .collect();
            return format!("get k{key}{}\r\n", others.concat()).into_bytes();
        }
    }
    .into_bytes();
    sent.extend(std::iter::repeat_n(byte_of(key), length));
    sent.extend_from_slice(b"\r\n");
    sent
}

/// Asserts that every value belongs to its key.
fn inspect(mut answers: &[u8]) {
    while let Some(end) = answers.iter().position(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(&answers[..end]).into_owned();
        answers = &answers[end + 1..];
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let (key, length) = match words[..] {
            ["VALUE", key, _, length] => (key, length),
            ["VA", length, key, ..] => (&key[1..], length),
            _ => {
                let known = [
                    "STORED",
                    "NOT_STORED",
                    "END",
                    "HD",
                    "EN",
                    "NF",
                    "NS",
                    "OK",
                    "TOUCHED",
                    "NOT_FOUND",
                    "SERVER_ERROR",
                ];
                let is_known = known.contains(&words[0]) || line.starts_with("key=k");
                assert!(is_known, "{line:?} answers nothing");
                continue;
            }
        };
        let key: usize = key[1..].parse().expect("a key is a number");
        let length: usize = length.parse().expect("a length is a number");
        let value = &answers[..length];
        assert!(
            value.iter().all(|&byte| byte == byte_of(key)),
            "k{key} has what is not its own"
        );
        assert_eq!(&answers[length..length + 2], b"\r\n", "k{key}");
        answers = &answers[length + 2..];
    }
    assert!(answers.is_empty(), "half an answer");
}

/// Several connections of two threads, in a store that is much too small; some vanish in the middle
/// of a value.
fn examine_sharing(seed: u64) {
    let server = Server::new(300 << 10, 100 << 10, 2);
    thread::scope(|scope| {
        for thread in 0..2 {
            let server = &server;
            scope.spawn(move || share(server, seed.wrapping_mul(2) + thread));
        }
    });
    server.end(&mut server.worker());
}

fn share(server: &Server, seed: u64) {
    let (mut random, mut worker) = (Random::new(seed), server.worker());
    let mut lines: [(Connection, Vec<u8>); CONNECTIONS] = Default::default();
    for _ in 0..400 {
        let (connection, unsent) = &mut lines[random.below(CONNECTIONS)];
        if unsent.is_empty() {
            *unsent = honest(&mut random);
        }
        let count = (1 + random.below(2 * unsent.len())).min(unsent.len());
        connection.bring(server, &mut worker, &unsent[..count]);
        unsent.drain(..count);
        inspect(&std::mem::take(&mut connection.answers));
        if random.chance(3) {
            connection.end(&mut worker);
            (*connection, *unsent) = Default::default();
        }
    }
    lines.iter_mut().for_each(|line| line.0.end(&mut worker));
    server.store.free_kept(&mut worker);
}

/// Tries the sessions of a seed. Returns the fault, if any.
pub fn examine(seed: u64) -> Result<(), String> {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        examine_cuts(seed);
        examine_sharing(seed);
    }));
    tried.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "a panic, told above".into())
    })
}

/// Tries sessions until the time is over or one fails. Returns how many passed.
pub fn search(seed: u64, time: Duration) -> Result<u64, Finding> {
    let start = Instant::now();
    let mut tried = 0;
    while start.elapsed() < time {
        let seed = seed + tried;
        examine(seed).map_err(|message| Finding { seed, message })?;
        tried += 1;
    }
    Ok(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "k1 has what is not its own")]
    fn another_keys_value_is_seen() {
        inspect(b"VALUE k0 0 2\r\nAA\r\nEND\r\nVALUE k1 0 2\r\nBA\r\nEND\r\n");
    }

    #[test]
    #[should_panic(expected = "memory is in use")]
    fn memory_that_is_not_freed_is_seen() {
        let server = Server::new(4 << 20, 1 << 20, 0);
        let (mut worker, mut connection) = (server.worker(), Connection::default());
        connection.bring(&server, &mut worker, b"set k 0 0 5\r\nha");
        server.end(&mut worker);
    }
}
