//! A grammar of conversations: commands, right and wrong, and damage done to them.
//!
//! A conversation follows from a seed and its number, so that any one can be repeated alone.

use std::ops::Range;

/// Reproducible random numbers.
pub(super) struct Random {
    state: u64,
    /// Number that the next stored value gets, as both servers have told.
    next_cas: u64,
}

impl Random {
    /// Numbers of conversation `number` of a seed.
    pub(super) fn new(seed: u64, number: u64, next_cas: u64) -> Random {
        let mut of_seed = Random {
            state: seed,
            next_cas: 0,
        };
        let state = of_seed.next() ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        Random { state, next_cas }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
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
        // With a prefix, by which keys may be counted.
        3 | 4 => format!("{letter}:{}", random.below(12)),
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

/// The number of a value, mostly one of those that this conversation's values get.
fn cas(random: &mut Random) -> String {
    match random.below(3) {
        0 => number(random),
        _ => (random.next_cas + random.below(16)).to_string(),
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
        format!(" {}", cas(random))
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
            b'C' => cas(random),
            b'F' => number(random),
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
        18 => match random.below(7) {
            0 => format!("flush_all 0{rest}\r\n"),
            6 => return flush_later(random, sent),
            1 => format!("bget {}\r\n", short_key(random, sort)),
            2 => format!("verbosity {}{rest}\r\n", random.of(&["0", "x", ""])),
            _ => format!("{}\r\n", random.of(CONTROL)),
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

/// Flushes that are to come, and one that takes their place at once: otherwise they would flush
/// what later conversations store. memcached lets a flush that is to come revive what was flushed
/// before, so nothing is asked in between.
fn flush_later(random: &mut Random, sent: &mut Vec<u8>) {
    for _ in 0..1 + random.below(2) {
        let (when, rest) = (number(random), noreply(random));
        let line = match random.below(4) {
            0 => format!("flush_all {}{rest}\r\n", ttl(random)),
            _ => format!("flush_all {when}{rest}\r\n"),
        };
        sent.extend_from_slice(line.as_bytes());
    }
    let now = random.of(&["", " 0", " -1", " noreply", " 0 noreply"]);
    sent.extend_from_slice(format!("flush_all{now}\r\n").as_bytes());
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

/// A command to which memcached answers differently after others of the same packet.
fn alone(random: &mut Random) -> Vec<u8> {
    let one = random.of(&[
        "lru_crawler metadump",
        "lru_crawler metadump 300",
        "lru_crawler metadump 0",
        "lru_crawler metadump x",
        "lru_crawler metadump 1,300",
        "lru_crawler metadump all",
        "lru_crawler metadump all x",
        "lru_crawler metadump hash",
        "lru_crawler metadump 1",
        "watch",
        "watch fetchers",
        "watch fetchers mutations evictions connevents sysevents rawcmds",
        "watch proxyreqs proxyevents proxyuser",
        "watch x",
        "watch fetchers x",
        "watch noreply",
        "watch x noreply",
    ]);
    format!("{one}\r\n").into_bytes()
}

/// Damages a conversation as a faulty client or network might.
fn damage(random: &mut Random, sent: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        if sent.is_empty() {
            return;
        }
        let at = random.below(sent.len() as u64) as usize;
        let end = sent.len().min(at + 1 + random.below(20) as usize);
        let byte = random.of(b" \r\n\0\xff-+9b\tIq");
        match random.below(8) {
            0 => {
                sent.remove(at);
            }
            1 => sent[at] = byte,
            2 => sent.insert(at, byte),
            3 => sent[at] ^= 1 << random.below(8),
            4 => drop(sent.drain(at..end)),
            5 => {
                let twice = sent[at..end].to_vec();
                sent.splice(at..at, twice);
            }
            6 => sent[at..end].reverse(),
            _ => swap_words(sent, at),
        }
    }
}

/// Exchanges the word after a place with the one that follows it.
fn swap_words(sent: &mut Vec<u8>, at: usize) {
    let mut words = sent[at..].split(|&byte| byte == b' ');
    let (Some(before), Some(one), Some(two)) = (words.next(), words.next(), words.next()) else {
        return;
    };
    let swapped = [two, b" ", one].concat();
    let begin = at + before.len() + 1;
    sent.splice(begin..begin + swapped.len(), swapped);
}

/// False if a line asks for several keys of which one is too long: memcached then loses earlier
/// answers. Also false if a line is so long that memcached closes or not, depending on how it
/// arrives; if it asks for figures of the process; and if it flushes later, within another
/// conversation; and if it stores white space alone: where that is to be a number, memcached reads
/// on in the memory behind it.
fn is_comparable(sent: &[u8]) -> bool {
    let lines: Vec<_> = sent.split(|&byte| byte == b'\n').collect();
    let stores_nothing = lines.windows(2).any(|two| {
        let mut words = two[0]
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty());
        let length = match words.next() {
            Some(b"ms") => words.nth(1),
            Some(b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas") => words.nth(3),
            _ => return false,
        };
        let is_empty = length.is_some_and(|length| length.trim_ascii() == b"0");
        !is_empty && two[1].trim_ascii().is_empty()
    });
    if stores_nothing {
        return false;
    }
    sent.split(|&byte| byte == b'\n').all(|line| {
        let line = line.split(|&byte| byte == 0).next().unwrap_or_default();
        let words = || {
            line.split(|&byte| byte == b' ')
                .filter(|word| !word.is_empty())
        };
        let asks = matches!(
            words().next(),
            Some(b"get" | b"gets" | b"bget" | b"gat" | b"gats")
        );
        let second = words().nth(1).map(<[u8]>::trim_ascii_end);
        let tells = line.trim_ascii_start().starts_with(b"stats")
            && !matches!(second, Some(b"detail" | b"cachedump" | b"reset"));
        let flushes = line.trim_ascii_start().starts_with(b"flush_all")
            && !matches!(second, Some(b"0" | b"-1" | b"x" | b"noreply"));
        line.len() < 2000 && !tells && !flushes && (!asks || words().all(|word| word.len() <= 250))
    })
}

/// Makes a conversation.
pub(super) fn session(random: &mut Random) -> Vec<u8> {
    if random.below(30) == 0 {
        return http(random);
    }
    if random.below(400) == 0 {
        return alone(random);
    }
    let mut sent = Vec::new();
    let sort = random.of(&[Sort::Counts, Sort::Asks]);
    for _ in 0..1 + random.below(40) {
        command(random, &mut sent, sort);
    }
    if random.below(3) == 0 {
        let mut damaged = sent.clone();
        damage(random, &mut damaged);
        if is_comparable(&damaged) {
            return damaged;
        }
    }
    sent
}

/// Cuts a conversation as it may arrive.
pub(super) fn pieces(random: &mut Random, sent: &[u8]) -> Vec<Range<usize>> {
    let (mut pieces, mut begin) = (Vec::new(), 0);
    while begin < sent.len() {
        let length = match random.below(4) {
            0 => 1 + random.below(4),
            1 => 1 + random.below(100),
            _ => 1 + random.below(4000),
        };
        let end = sent.len().min(begin + length as usize);
        pieces.push(begin..end);
        begin = end;
    }
    pieces
}

/// Commands that are answered the same whatever is stored.
const CONTROL: &[&str] = &[
    "",
    " ",
    "cache_memlimit",
    "cache_memlimit 1",
    "cache_memlimit 4000000000",
    "cache_memlimit x",
    "decr",
    "delete",
    "extstore",
    "extstore x 1",
    "flush_all",
    "flush_all -1",
    "flush_all 0 1 2",
    "flush_all noreply",
    "flush_all x",
    "gat",
    "gat 0",
    "gats x k1",
    "get",
    "gets",
    "incr n1",
    "lru",
    "lru mode",
    "lru mode flat",
    "lru mode flat noreply",
    "lru noreply",
    "lru mode segmented",
    "lru mode x",
    "lru temp_ttl",
    "lru temp_ttl x",
    "lru tune 10 20",
    "lru tune 10 20 0.2 2.0",
    "lru tune 50 50 0.2 2.0",
    "lru tune x 50 0.2 2.0",
    "lru tune 10 20 x 2.0",
    "lru tune 10 20 0.2 -1",
    "lru_crawler",
    "lru_crawler crawl",
    "lru_crawler crawl x,300",
    "lru_crawler crawl 0",
    "lru_crawler crawl x",
    "lru_crawler sleep",
    "lru_crawler sleep 10",
    "lru_crawler sleep 10000000",
    "lru_crawler sleep x",
    "lru_crawler tocrawl",
    "lru_crawler tocrawl 5",
    "lru_crawler tocrawl x",
    "lru_crawler x",
    "m",
    "me",
    "me k1 b",
    "me k1 x y",
    "mg",
    "mn",
    "mn x",
    "ms k1",
    "mx k1",
    "prepend k1 0 0",
    "quit",
    "refresh_certs",
    "refresh_certs x",
    "set k1",
    "shutdown",
    "shutdown graceful",
    "slabs",
    "slabs automove",
    "slabs automove 1",
    "slabs automove noreply",
    "slabs noreply",
    "slabs reassign 1 70",
    "slabs reassign 1 2",
    "slabs reassign -1 1",
    "slabs automove 3",
    "slabs automove x",
    "slabs reassign 1",
    "slabs reassign 1 1",
    "slabs reassign x 1",
    "stats cachedump",
    "stats cachedump 1",
    "stats cachedump 64 1",
    "stats cachedump 201 1",
    "stats cachedump 5 x",
    "stats detail",
    "stats detail dump",
    "stats detail dump x",
    "stats detail off",
    "stats detail on",
    "stats detail on",
    "stats detail x",
    "stats reset",
    "stats reset x",
    "stats sizes_disable",
    "stats x",
    "touch k1",
    "verbosity 1 2 3",
    "version",
    "version x",
];
