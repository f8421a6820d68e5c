//! Threads of a program and of the programs that it starts, moved onto the CPUs of its claim.

use std::collections::HashSet;
use std::fs;

use hearth_sys::affinity;

/// Passes over all threads: one that starts while a pass goes on has its maker's old CPUs.
const PASSES: usize = 5;

/// Moves all threads of a process and of its descendants from a claim's former CPUs to its present
/// ones. A thread that keeps to fewer CPUs of its own choice keeps to those of them that are left,
/// if any are. Number of threads that were moved.
///
/// Descendants of descendants that have ended are not found: they are other processes' children.
pub fn move_threads(process: u32, from: &[usize], to: &[usize]) -> usize {
    move_listed(|| family(process), from, to)
}

/// As [`move_threads`], for the calling process alone: programs that it started may have claims of
/// their own.
pub fn move_own_threads(from: &[usize], to: &[usize]) -> usize {
    move_listed(|| threads_of("self").collect(), from, to)
}

fn move_listed(list: impl Fn() -> Vec<u32>, from: &[usize], to: &[usize]) -> usize {
    if to.is_empty() {
        return 0;
    }
    let mut seen = HashSet::new();
    let mut moved = 0;
    for _ in 0..PASSES {
        let before = seen.len();
        for thread in list() {
            if seen.insert(thread) && move_thread(thread, from, to) {
                moved += 1;
            }
        }
        if seen.len() == before {
            break;
        }
    }
    moved
}

fn move_thread(thread: u32, from: &[usize], to: &[usize]) -> bool {
    let Ok(has) = affinity::allowed_of(thread) else {
        return false;
    };
    let wanted = wanted(&has, from, to);
    wanted != has && affinity::allow_thread(thread, &wanted).is_ok()
}

/// The CPUs of a thread that has some, once the claim's have changed.
fn wanted(has: &[usize], from: &[usize], to: &[usize]) -> Vec<usize> {
    let chose_itself = has != from && has.iter().all(|cpu| from.contains(cpu));
    let left: Vec<usize> = has.iter().copied().filter(|cpu| to.contains(cpu)).collect();
    match chose_itself && !left.is_empty() {
        true => left,
        false => to.to_vec(),
    }
}

/// Threads of a process and of all its descendants.
pub(crate) fn family(process: u32) -> Vec<u32> {
    descend(process).1
}

/// A process and all its descendants.
pub(crate) fn processes(process: u32) -> Vec<u32> {
    descend(process).0
}

/// A process and its descendants, and the threads of all.
fn descend(process: u32) -> (Vec<u32>, Vec<u32>) {
    let (mut found, mut family) = (Vec::new(), Vec::new());
    let mut processes = vec![process];
    while let Some(process) = processes.pop() {
        found.push(process);
        for thread in threads_of(&process.to_string()) {
            family.push(thread);
            let children = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
            let children = children.unwrap_or_default();
            processes.extend(
                children
                    .split_whitespace()
                    .filter_map(|it| it.parse::<u32>().ok()),
            );
        }
    }
    (found, family)
}

/// The threads of a process, by its name in `/proc`.
fn threads_of(process: &str) -> impl Iterator<Item = u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_thread_keeps_its_own_choice() {
        assert_eq!(wanted(&[0, 1], &[0, 1], &[0]), [0]);
        assert_eq!(wanted(&[0], &[0, 1], &[0, 1, 2]), [0], "its choice");
        assert_eq!(
            wanted(&[0], &[0, 1], &[2, 3]),
            [2, 3],
            "nothing is left of it"
        );
        assert_eq!(
            wanted(&[0, 1, 2, 3], &[0, 1], &[0]),
            [0],
            "it had more than the claim"
        );
        assert_eq!(wanted(&[2], &[0, 1], &[0, 2]), [0, 2], "it was outside");
    }

    #[test]
    fn descendants_are_found() {
        let mut command = Command::new("sh");
        let command = command.args(["-c", "sleep 1000 & read line; kill $!"]);
        let mut shell = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let begin = std::time::Instant::now();
        while family(shell.id()).len() < 2 {
            assert!(begin.elapsed().as_secs() < 60, "the shell starts nothing");
            std::thread::yield_now();
        }
        let own = affinity::allowed();
        let one = [own[0]];
        let moved = move_threads(shell.id(), &own, &one);
        assert_eq!(moved, if own.len() > 1 { 2 } else { 0 });
        for thread in family(shell.id()) {
            assert_eq!(affinity::allowed_of(thread).expect("it is there"), one);
        }
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
        assert!(family(shell.id()).is_empty());
    }
}
