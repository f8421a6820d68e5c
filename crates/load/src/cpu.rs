//! CPU time of another process.

use std::fs;

/// Counts how often the threads of a process have left their cores to wait, all together. None if
/// there is no such process. Threads that have ended do not count.
pub fn waits(process: u32) -> Option<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        sum += waits_in(&text)?;
    }
    Some(sum)
}

fn waits_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn who_waits_leaves_its_core() {
        // Another process: threads of this one end with the tests that run beside this one.
        let mut waiting = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = waiting.id();
        let (mut to, mut from) = (
            waiting.stdin.take().unwrap(),
            waiting.stdout.take().unwrap(),
        );
        let mut one_wait = || {
            to.write_all(b"a").unwrap();
            from.read_exact(&mut [0]).unwrap();
        };
        one_wait();
        let before = waits(id).unwrap();
        // On a busy machine it may find the next byte without waiting for it.
        let has_waited = |_| {
            one_wait();
            waits(id).unwrap() > before
        };
        assert!((0..10_000).any(has_waited));
        drop(to);
        waiting.wait().unwrap();
        assert_eq!(waits(u32::MAX), None);
        assert_eq!(
            waits_in("Name: x\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"),
            Some(12)
        );
    }
}
