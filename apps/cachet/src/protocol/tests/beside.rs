//! Random sessions, valid and invalid, sent to memcached and to cachet: the answers must be the
//! same, byte for byte. Only elapsed times may differ by a few seconds, and figures about memory
//! are not compared.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, End};

struct Memcached {
    child: Child,
    socket: PathBuf,
}

impl Memcached {
    /// None where memcached is not installed.
    fn start() -> Option<Memcached> {
        let name = format!(
            "cachet-beside-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let socket = std::env::temp_dir().join(name);
        let child = Command::new("memcached")
            .args(["-U", "0", "-t", "1", "-B", "ascii", "-u", "root", "-s"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            eprintln!("memcached is not installed: nothing is compared with it");
            return None;
        };
        let server = Memcached { child, socket };
        let begin = Instant::now();
        while UnixStream::connect(&server.socket).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "memcached does not begin to listen"
            );
            std::thread::yield_now();
        }
        Some(server)
    }

    fn talk(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut stream = UnixStream::connect(&self.socket).expect("memcached listens");
        let mut reader = stream.try_clone().expect("a descriptor more");
        let read = std::thread::spawn(move || {
            let mut answers = Vec::new();
            // An error is an end, too: memcached may close with input unread.
            let _ = reader.read_to_end(&mut answers);
            answers
        });
        for piece in pieces {
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
        read.join().expect("reading does not panic")
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }
}

/// The commands that a session may use. A counting session uses keys of its own and asks neither
/// for values nor for their metadata: when a number changes, memcached sometimes stores it anew and
/// loses the metadata, depending on its threads.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Counts,
    Asks,
}

fn key(random: &mut Random, sort: Sort) -> String {
    let letter = if sort == Sort::Counts { "n" } else { "k" };
    match random.below(40) {
        0 => letter.repeat(250),
        1 => letter.repeat(251),
        2 => format!("{letter}\tt"),
        _ => format!("{letter}{}", random.below(12)),
    }
}

/// Not too long: if one key of many is too long, memcached loses the earlier answers.
fn short_key(random: &mut Random, sort: Sort) -> String {
    loop {
        let key = key(random, sort);
        if key.len() <= 250 {
            return key;
        }
    }
}

fn number(random: &mut Random) -> String {
    let odd = [
        "-1",
        "x",
        "1x",
        "",
        "4294967296",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "+7",
        "2147483648",
        "-5",
        "007",
        "1\t",
    ];
    match random.below(12) {
        0 => random.of(&odd).into(),
        1..6 => random.below(10).to_string(),
        _ => random.below(1000).to_string(),
    }
}

/// The amounts by which numbers change. They do not become shorter: in memcached it depends on its
/// threads whether a shorter number leaves spaces. `examples` covers that.
fn step(random: &mut Random) -> String {
    match random.below(8) {
        0 => random
            .of(&["x", "-1", "", "007", "1x", "18446744073709551616"])
            .into(),
        _ => random.below(1000).to_string(),
    }
}

fn ttl(random: &mut Random) -> String {
    let some = [
        "0",
        "0",
        "0",
        "0",
        "1000",
        "50000",
        "2592000",
        "-1",
        "2592001",
        "x",
        "4000000000",
    ];
    random.of(&some).into()
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0..3 => random.below(2000).to_string().into_bytes(),
        3 => Vec::new(),
        4 => b"1844674407370955161".to_vec(),
        5 => (0..random.of(&[5, 20, 20, 20, 1500]))
            .map(|_| random.next() as u8)
            .collect(),
        _ => (0..random.below(30))
            .map(|_| b'a' + random.below(26) as u8)
            .collect(),
    }
}

fn noreply(random: &mut Random) -> &'static str {
    random.of(&["", "", "", "", "", "", " noreply", " x", " noreply x", " 0"])
}

/// The value with its end, mostly of the announced length.
fn append_value(random: &mut Random, sent: &mut Vec<u8>, value: &[u8]) {
    sent.extend_from_slice(value);
    match random.below(30) {
        0 => sent.extend_from_slice(b"x\r\n"),
        1 => sent.extend_from_slice(b"\n"),
        _ => sent.extend_from_slice(b"\r\n"),
    }
}

fn classic_store(random: &mut Random, sent: &mut Vec<u8>, sort: Sort) {
    let name = random.of(&[
        "set", "set", "set", "add", "replace", "append", "prepend", "cas",
    ]);
    let value = value(random);
    let length = match random.below(25) {
        0 => number(random),
        1 => (value.len() + 1).to_string(),
        _ => value.len().to_string(),
    };
    let flags = if random.below(4) == 0 {
        number(random)
    } else {
        "0".into()
    };
    let cas = if name == "cas" {
        format!(" {}", number(random))
    } else {
        String::new()
    };
    let (key, ttl, rest) = (key(random, sort), ttl(random), noreply(random));
    let line = format!("{name} {key} {flags} {ttl} {length}{cas}{rest}\r\n");
    sent.extend_from_slice(line.as_bytes());
    append_value(random, sent, &value);
}

fn meta_flags(random: &mut Random, letters: &[u8]) -> String {
    let mut flags = String::new();
    let mut left = letters.to_vec();
    for _ in 0..random.below(7) {
        if left.is_empty() {
            break;
        }
        let at = random.below(left.len() as u64) as usize;
        let letter = if random.below(60) == 0 {
            b'!' + random.below(94) as u8
        } else {
            left[at]
        };
        if random.below(40) != 0 {
            left.remove(at);
        }
        let token = match letter {
            b'O' if random.below(30) == 0 => "o".repeat(random.of(&[30, 31, 32, 33])),
            b'O' => number(random),
            b'T' | b'N' => ttl(random),
            b'R' => random
                .of(&["5", "10", "40000", "-1", "x", "2000000000"])
                .into(),
            b'M' => random
                .of(&["S", "E", "A", "P", "R", "I", "D", "+", "-", "x", "", "SE"])
                .into(),
            b'D' | b'J' => step(random),
            b'C' | b'F' => number(random),
            _ => String::new(),
        };
        flags.push(' ');
        flags.push(letter as char);
        flags.push_str(&token);
    }
    flags
}

fn meta_key(random: &mut Random, flags: &str, sort: Sort) -> String {
    let is_binary = flags.split(' ').any(|flag| flag.starts_with('b'));
    match is_binary && random.below(10) != 0 {
        true if sort == Sort::Counts => random.of(&["bjE=", "bjI=", "AQI="]).into(),
        true => random
            .of(&["azE=", "azI=", "AQI=", "azN4", "YQ==", "YQ", "YR=="])
            .into(),
        false => key(random, sort),
    }
}

fn meta(random: &mut Random, sent: &mut Vec<u8>, sort: Sort) {
    let name = match sort {
        Sort::Counts => random.of(&["mg", "ms", "md", "ma", "ma", "mn"]),
        Sort::Asks => random.of(&["mg", "mg", "mg", "ms", "ms", "md", "me", "mn"]),
    };
    let letters: &[u8] = match name {
        "mg" if sort == Sort::Counts => b"bcfklOqstuTT",
        "mg" => b"bcfhklOqstuvNRTTv",
        "ms" if sort == Sort::Counts => b"cCFkOqTMM",
        "md" if sort == Sort::Counts => b"bCkOqT",
        "ms" => b"bcCFIkOqTMM",
        "md" => b"bCIkOqT",
        // Without T, which memcached loses when the number grows longer.
        "ma" => b"bCNJDqtcvkO",
        _ => b"b",
    };
    let flags = meta_flags(random, letters);
    let key = meta_key(random, &flags, sort);
    if name != "ms" {
        sent.extend_from_slice(format!("{name} {key}{flags}\r\n").as_bytes());
        return;
    }
    let value = value(random);
    let length = if random.below(25) == 0 {
        number(random)
    } else {
        value.len().to_string()
    };
    sent.extend_from_slice(format!("ms {key} {length}{flags}\r\n").as_bytes());
    append_value(random, sent, &value);
}

fn command(random: &mut Random, sent: &mut Vec<u8>, sort: Sort) {
    let (name, rest) = (key(random, sort), noreply(random));
    let line = match random.below(20) {
        0..5 => return classic_store(random, sent, sort),
        5..11 => return meta(random, sent, sort),
        11..17 if sort == Sort::Counts => {
            if random.below(4) == 0 {
                format!("decr {name} 0{rest}\r\n")
            } else {
                format!("incr {name} {}{rest}\r\n", step(random))
            }
        }
        11..14 => {
            let keys: Vec<String> = (0..random.below(6))
                .map(|_| short_key(random, sort))
                .collect();
            format!("{} {}\r\n", random.of(&["get", "gets"]), keys.join(" "))
        }
        14 => {
            let keys = format!("{} {}", short_key(random, sort), short_key(random, sort));
            format!("{} {} {keys}\r\n", random.of(&["gat", "gats"]), ttl(random))
        }
        15 | 16 => {
            let rest = match random.below(10) {
                0 => " 0 noreply",
                1 => " 5 noreply",
                2 => " noreply noreply",
                _ => rest,
            };
            format!("delete {name}{rest}\r\n")
        }
        17 => format!("touch {name} {}{rest}\r\n", ttl(random)),
        18 => match random.below(13) {
            11 => format!("bget {}\r\n", short_key(random, sort)),
            0 => "flush_all\r\n".into(),
            1 => format!("flush_all 0{rest}\r\n"),
            2 => format!("verbosity {}{rest}\r\n", random.of(&["0", "x", ""])),
            3 => "stats reset\r\n".into(),
            4 => "cache_memlimit x\r\n".into(),
            5 => "slabs automove 1\r\n".into(),
            6 => "lru tune 50 50\r\n".into(),
            7 => "stats detail\r\n".into(),
            8 => "shutdown\r\n".into(),
            9 => "refresh_certs\r\n".into(),
            10 => "stats sizes_disable\r\n".into(),
            _ => "\r\n".into(),
        },
        _ => {
            let mut noise: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
            noise.push(b'\n');
            sent.extend_from_slice(&noise);
            return;
        }
    };
    sent.extend_from_slice(line.as_bytes());
}

/// A request of HTTP, or nearly one, and a command in its body. A session of its own: memcached
/// also drops the answers that it owes when it closes such a connection.
fn http(random: &mut Random) -> Vec<u8> {
    let first = random.of(&[
        "GET",
        "POST",
        " HEAD ",
        "foo",
        "get",
        "set",
        "flush_all",
        "",
    ]);
    let path = random.of(&["", "/", "/ x"]);
    let last = random.of(&["HTTP/1.1", "HTTP/", "HTTP", "HTTP/1.0 x", "http/1.1"]);
    format!("{first} {path} {last}\r\nset n0 0 0 1\r\n1\r\n").into_bytes()
}

fn session(random: &mut Random) -> Vec<u8> {
    if random.below(30) == 0 {
        return http(random);
    }
    let mut sent = Vec::new();
    let sort = random.of(&[Sort::Counts, Sort::Asks]);
    for _ in 0..1 + random.below(40) {
        command(random, &mut sent, sort);
    }
    sent
}

fn pieces<'a>(random: &mut Random, sent: &'a [u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = sent;
    while !rest.is_empty() {
        let length = match random.below(4) {
            0 => 1 + random.below(4),
            1 => 1 + random.below(100),
            _ => 1 + random.below(4000),
        };
        let (piece, more) = rest.split_at((length as usize).min(rest.len()));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// Whether two words are the same apart from elapsed time and the memory of an item.
fn is_same(theirs: &[u8], ours: &[u8]) -> bool {
    if theirs == ours {
        return true;
    }
    let number = |word: &[u8], prefix: &str| {
        let text = std::str::from_utf8(word).ok()?.strip_prefix(prefix)?;
        text.trim_end().parse::<i64>().ok()
    };
    let is_both = |prefix| number(theirs, prefix).is_some() && number(ours, prefix).is_some();
    if is_both("size=") || is_both("cls=") {
        return true;
    }
    ["t", "l", "exp=", "la="].iter().any(|prefix| {
        let both = (number(theirs, prefix), number(ours, prefix));
        matches!(both, (Some(a), Some(b)) if (a - b).abs() <= 5)
    })
}

/// The first place where they differ.
fn difference(theirs: &[u8], ours: &[u8]) -> Option<(usize, usize)> {
    let words = |bytes: &[u8]| -> Vec<(usize, usize)> {
        let mut words = Vec::new();
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if b" \r".contains(byte) {
                words.push((begin, at));
                begin = at + 1;
            }
        }
        words.push((begin, bytes.len()));
        words
    };
    let both = [words(theirs), words(ours)];
    for i in 0..both[0].len().max(both[1].len()) {
        match (both[0].get(i), both[1].get(i)) {
            (Some(&a), Some(&b)) if is_same(&theirs[a.0..a.1], &ours[b.0..b.1]) => {}
            (a, b) => {
                let begin = |word: Option<&(usize, usize)>, end| word.map_or(end, |word| word.0);
                return Some((begin(a, theirs.len()), begin(b, ours.len())));
            }
        }
    }
    None
}

#[test]
fn random_sessions_are_answered_as_memcached_answers_them() {
    let Some(theirs) = Memcached::start() else {
        return;
    };
    let count = std::env::var("CACHET_SESSIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = std::env::var("CACHET_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let mut ours = Bench::new();
    let mut random = Random(seed);
    for i in 0..count.unwrap_or(1500) {
        let sent = session(&mut random);
        let pieces = pieces(&mut random, &sent);
        let expected = theirs.talk(&pieces);
        ours.store.clock().follow();
        let (answers, end) = ours.talk(pieces.iter().copied());
        let Some((a, b)) = difference(&expected, &answers) else {
            continue;
        };
        if end == End::Amid && a + 1 >= expected.len() {
            // memcached drops pending answers when the connection ends in the middle of a value.
            continue;
        }
        let around = |bytes: &[u8], at: usize| {
            let (from, to) = (at.saturating_sub(300), bytes.len().min(at + 200));
            let (before, after) = (&bytes[from..at], &bytes[at..to]);
            format!("{} >>> {}", before.escape_ascii(), after.escape_ascii())
        };
        panic!(
            "seed {seed}, session {i}\nsent      {}\nmemcached {}\ncachet    {}",
            sent.escape_ascii(),
            around(&expected, a),
            around(&answers, b),
        );
    }
}
