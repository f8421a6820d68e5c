//! A trace in CTF, read by babeltrace2.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hearth_calls::Recorded;
use hearth_calls::formats::{Unwritten, ctf};

use crate::fixture::{Counts, Temporary, lossy, whole};

/// Events and losses that babeltrace2 prints.
fn read(directory: &Path) -> Option<(String, String)> {
    let output = Command::new("babeltrace2")
        .args(["--clock-seconds", "--no-delta"])
        .arg(directory)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no babeltrace2; install it: apt-get install babeltrace2");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

/// Number behind a word in a line.
fn number_behind<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.split(word).nth(1)?.trim_start_matches([' ', '=']);
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// Counts that babeltrace2 comes to.
pub(crate) fn counted(directory: &Path) -> Option<Counts> {
    let (events, said) = read(directory)?;
    let mut counts = Counts::default();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for line in events.lines() {
        let time = number_behind(line, "[").expect("a time");
        let (seconds, rest) = time.split_once('.').expect("a fraction");
        let time = format!("{seconds:0>12}.{rest}");
        let thread = number_behind(line, "thread =").expect("a thread");
        let before = last.insert(thread.to_owned(), time.clone());
        assert!(before.is_none_or(|before| before <= time), "{line}");
        match () {
            () if line.contains(" call_begin: ") => counts.begins += 1,
            () if line.contains(" call_end: ") => counts.ends += 1,
            () => panic!("no such event: {line}"),
        }
    }
    for line in said.lines().filter(|line| line.contains("discarded")) {
        let lost = number_behind(line, "discarded ").expect("a number");
        counts.gaps += 1;
        counts.lost += lost.parse::<u64>().expect("a number");
    }
    Some(counts)
}

fn check(recorded: &Recorded, directory: &Temporary) {
    let path = directory.path("ctf");
    ctf(recorded, &path).expect("it is written");
    let expected = Counts::of(recorded);
    if let Some(counts) = counted(&path) {
        eprintln!(
            "babeltrace2 reads {} + {} events, and reports {} discarded in {} places",
            counts.begins, counts.ends, counts.lost, counts.gaps
        );
        // It knows of no calls.
        assert_eq!(
            counts,
            Counts {
                calls: 0,
                ..expected
            }
        );
        let (events, _) = read(&path).expect("it was read");
        for name in ["Shop::handle", "say \\\"hi", "größe; 2"] {
            assert!(events.contains(name), "{name} in {events}");
        }
    }
    // Streams of another trace would be read too.
    let again = ctf(recorded, &path).expect_err("it is there");
    assert!(matches!(again, Unwritten::To(_)), "{again}");
}

#[test]
fn babeltrace_reads_whole_recordings() {
    let directory = Temporary::new();
    check(&whole(&directory), &directory);
}

#[test]
fn babeltrace_reports_losses() {
    let directory = Temporary::new();
    check(&lossy(&directory), &directory);
}
