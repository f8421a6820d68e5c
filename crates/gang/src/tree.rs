//! Processes by what `/proc` tells: their descendants, threads and times.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// State of a process in one letter, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `T` is one that was stopped, `Z` one that has ended.
    pub(crate) state: u8,
    /// The low half of the time when it began, in ticks: with its number, it names the process.
    pub(crate) began: u32,
}

pub(crate) fn stat(process: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The name, in brackets, may contain blanks. The state behind it is the third field.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let began: u64 = fields.nth(22 - 4)?.parse().ok()?;
    Some(Stat {
        state,
        began: began as u32,
    })
}

fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.collect()
}

/// The threads of a process; none if it has ended.
pub(crate) fn threads(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// All processes that a process has started, and those that these have, but none of `others` and
/// what is below them.
pub(crate) fn descendants(root: u32, others: &BTreeSet<u32>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut ahead = vec![root];
    while let Some(process) = ahead.pop() {
        for thread in threads(process) {
            let path = format!("/proc/{process}/task/{thread}/children");
            let text = fs::read_to_string(path).unwrap_or_default();
            let children = text.split_whitespace().filter_map(|word| word.parse().ok());
            ahead.extend(children.filter(|child| !others.contains(child)));
        }
        if process != root {
            found.push(process);
        }
    }
    found
}

/// Whether the kernel tells of children.
pub(crate) fn tells_of_children() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Time that a thread ran, and time that it was ready and did not run, in ns since it began.
pub(crate) fn times(process: u32, thread: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// The number that was given last to a process or thread, as `/proc/loadavg` has it at its end.
/// While it stays the same nobody is born, so that one short read saves looking through all
/// members.
#[derive(Debug)]
pub(crate) struct Births(Option<File>);

impl Births {
    pub(crate) fn open() -> Births {
        Births(File::open("/proc/loadavg").ok())
    }

    /// None where it cannot be known.
    pub(crate) fn newest(&self) -> Option<u32> {
        let mut text = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_whitespace().last()?.parse().ok()
    }
}

/// The process that a thread belongs to.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn names_may_contain_anything() {
        let text = "12 (a) b) c) T 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4294967303 1 1";
        let found = parse(text).expect("it is whole");
        assert_eq!((found.state, found.began), (b'T', 7));
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn births_are_seen() {
        let births = Births::open();
        let before = births.newest().expect("the kernel tells");
        std::thread::spawn(|| {}).join().expect("it ends");
        assert_ne!(births.newest(), Some(before));
    }

    #[test]
    fn descendants_are_found_but_those_of_others() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'cat; :'; :"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let own = std::process::id();
        let below = |others: &BTreeSet<u32>| descendants(own, others);
        while below(&BTreeSet::new()).len() < 3 {
            std::thread::yield_now();
        }
        let found = below(&BTreeSet::new());
        assert!(found.contains(&child.id()) && !found.contains(&own));
        assert!(!below(&BTreeSet::from([child.id()])).contains(&child.id()));
        assert!(times(own, own).is_some() && process_of(own) == Some(own));
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }
}
