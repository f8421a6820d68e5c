//! Random sessions, valid and invalid, sent to memcached and to cachet: the answers must be the
//! same, byte for byte. Only elapsed times may differ by a few seconds, and figures about memory
//! are not compared.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::grammar::{Random, pieces, session};
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

    /// Holds a conversation, which begins with [`PRELUDE`] and goes on as `make` says, given the
    /// number of the last value. Returns the answer to all but the prelude.
    fn talk<'a>(&self, make: impl FnOnce(u64) -> Vec<&'a [u8]>) -> Vec<u8> {
        let mut stream = UnixStream::connect(&self.socket).expect("memcached listens");
        stream.write_all(PRELUDE).expect("memcached reads");
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") || line.len() < PRELUDE_ANSWER {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("memcached answers");
            line.push(byte[0]);
        }
        let pieces = make(cas_of(&line));
        // memcached never looks at a watcher's end.
        let is_watcher = pieces.iter().copied().flatten().take(5).eq(b"watch");
        stream.set_read_timeout(Some(ANSWER)).expect("a time");
        let mut reader = stream.try_clone().expect("a descriptor more");
        let mut read = move || {
            let mut answers = Vec::new();
            if is_watcher {
                let mut some = [0; 100];
                let count = reader.read(&mut some).unwrap_or(0);
                answers.extend_from_slice(&some[..count]);
                reader
                    .set_read_timeout(Some(WATCHERS_ANSWER))
                    .expect("a time");
            }
            // An error is an end, too: memcached may close with input unread.
            let _ = reader.read_to_end(&mut answers);
            if is_watcher && let Some(end) = memchr::memchr(b'\n', &answers) {
                // What a watcher is told comes when it happens.
                answers.truncate(end + 1);
            }
            answers
        };
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let write = || {
            for piece in pieces {
                if stream.write_all(piece).is_err() {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Write);
        };
        if bytes <= SHORT {
            write();
            return read();
        }
        std::thread::scope(|scope| {
            scope.spawn(write);
            read()
        })
    }
}

/// Longest time for an answer, and for more of one that nothing ends.
const ANSWER: Duration = Duration::from_secs(60);
const WATCHERS_ANSWER: Duration = Duration::from_millis(50);
/// Bytes that a socket holds, however slowly its other end reads.
const SHORT: usize = 64 << 10;
/// The beginning of each conversation: nothing is stored before it, and it tells the number of the
/// last value.
const PRELUDE: &[u8] = b"flush_all\r\nstats detail off\r\nstats reset\r\nms first 0 c\r\n\r\n";
/// Its answer, but for the number.
const PRELUDE_BEGIN: &str = "OK\r\nOK\r\nRESET\r\nHD c";
/// Least length of its answer.
const PRELUDE_ANSWER: usize = PRELUDE_BEGIN.len() + "1\r\n".len();

/// The number in the prelude's answer.
fn cas_of(answer: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(answer);
    let number = text.trim_end().strip_prefix(PRELUDE_BEGIN);
    number
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("the prelude is answered with {text:?}"))
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
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
    if theirs == b"1.6.18" && ours.starts_with(b"1.6.18-cachet-") {
        return true;
    }
    if is_both("size=") || is_both("cls=") {
        return true;
    }
    ["t", "l", "exp=", "la="].iter().any(|prefix| {
        let both = (number(theirs, prefix), number(ours, prefix));
        matches!(both, (Some(a), Some(b)) if (a - b).abs() <= 5)
    })
}

/// Sorts the lines of counts by prefix, which each server has in an order of its own.
fn in_order(answers: &[u8]) -> Vec<u8> {
    let mut lines: Vec<_> = answers.split_inclusive(|&byte| byte == b'\n').collect();
    let is_count = |line: &[u8]| line.starts_with(b"PREFIX ");
    lines
        .chunk_by_mut(|one, other| is_count(one) && is_count(other))
        .for_each(<[&[u8]]>::sort_unstable);
    lines.concat()
}

/// The first place where they differ.
fn difference(theirs: &[u8], ours: &[u8]) -> Option<(usize, usize)> {
    let words = |bytes: &[u8]| -> Vec<(usize, usize)> {
        let mut words = Vec::new();
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if b" \r\n".contains(byte) {
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

/// A number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Conversations that a plain `cargo test` has.
const FEW: u64 = 1500;

/// `CACHET_SESSIONS` says how many, `CACHET_SEED` which; `CACHET_SESSION` repeats one of them.
#[test]
fn random_sessions_are_answered_as_memcached_answers_them() {
    let Some(theirs) = Memcached::start() else {
        return;
    };
    let seed = variable("CACHET_SEED").unwrap_or(1);
    let numbers = match variable("CACHET_SESSION") {
        Some(number) => number..number + 1,
        None => 0..variable("CACHET_SESSIONS").unwrap_or(FEW),
    };
    let most = variable("CACHET_DIFFERENCES").unwrap_or(1);
    let (mut ours, mut differences) = (Bench::new(), 0);
    for number in numbers {
        if number > 0 && number % 100_000 == 0 {
            eprintln!("{number} conversations of seed {seed}");
        }
        if let Some(text) = compare(&theirs, &mut ours, (seed, number)) {
            eprintln!(
                "{text}\nto repeat it: CACHET_SEED={seed} CACHET_SESSION={number} cargo test -p \
                 cachet random_sessions"
            );
            differences += 1;
            assert!(differences < most, "{differences} conversations differ");
        }
    }
    assert!(differences == 0, "{differences} conversations differ");
}

/// The line that has this place.
fn line_at(text: &[u8], at: usize) -> &[u8] {
    let at = at.min(text.len());
    let begin = text[..at].iter().rposition(|&byte| byte == b'\n');
    let line = &text[begin.map_or(0, |end| end + 1)..];
    line.split(|&byte| byte == b'\r').next().unwrap_or_default()
}

fn has_word(line: &[u8], word: &[u8]) -> bool {
    line.split(|&byte| byte == b' ').any(|one| one == word)
}

/// Holds one conversation with both, and tells where they differ.
fn compare(theirs: &Memcached, ours: &mut Bench, (seed, number): (u64, u64)) -> Option<String> {
    ours.store.clock().follow();
    let ours_last = cas_of(&ours.talk([PRELUDE]).0);
    let mut sent = Vec::new();
    let mut cuts = Vec::new();
    let expected = theirs.talk(|last| {
        // Each counts its values, and after a difference they may count differently.
        if last < ours_last {
            *ours = Bench::new();
        }
        ours.store.count_from(last);
        let mut random = Random::new(seed, number, last + 1);
        sent = session(&mut random);
        cuts = pieces(&mut random, &sent);
        cuts.iter().map(|cut| &sent[cut.clone()]).collect()
    });
    let (answers, end) = ours.talk(cuts.iter().map(|cut| &sent[cut.clone()]));
    let (expected, answers) = (in_order(&expected), in_order(&answers));
    let (a, b) = difference(&expected, &answers)?;
    let (their_line, our_line) = (line_at(&expected, a), line_at(&answers, b));
    if [b"STAT ", b"ITEM "]
        .iter()
        .any(|word| their_line.starts_with(*word))
    {
        // A damaged command that became `stats` or `stats cachedump`: figures of the process, and
        // items of a class.
        return None;
    }
    if has_word(our_line, b"b") && !has_word(their_line, b"b") {
        // A key that no text can hold: memcached has forgotten that it was given in base64.
        return None;
    }
    let is_of_other_class = |one: &[u8], other: &[u8]| {
        one.starts_with(b"OK\r\n") && other.starts_with(b"NOTSTARTED no items to crawl\r\n")
    };
    let (one, other) = (&expected[a..], &answers[b..]);
    if is_of_other_class(one, other) || is_of_other_class(other, one) {
        // A crawl of one class: cachet has all items in class 1.
        return None;
    }
    if expected.starts_with(b"BUSY ") {
        // memcached's crawler passes at times of its own, and refuses lists meanwhile.
        return None;
    }
    if end == End::Amid && a + 1 >= expected.len() {
        // memcached drops pending answers when the connection ends in the middle of a value.
        return None;
    }
    let around = |bytes: &[u8], at: usize| {
        let (from, to) = (at.saturating_sub(300), bytes.len().min(at + 200));
        let (before, after) = (&bytes[from..at], &bytes[at..to]);
        format!("{} >>> {}", before.escape_ascii(), after.escape_ascii())
    };
    Some(format!(
        "seed {seed}, conversation {number}\nsent      {}\nmemcached {}\ncachet    {}",
        sent.escape_ascii(),
        around(&expected, a),
        around(&answers, b),
    ))
}
