//! What another process has used of the cores.

use std::fs;

/// A tick of the times in `stat`, as Linux tells them to programs on every machine.
const TICK_NS: u64 = 10_000_000;

/// For how long a process, all its threads together, has been on a core, in nanoseconds. None if there
/// is no such process.
pub fn used_ns(process: u32) -> Option<u64> {
    exact(process).or_else(|| {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some(ticks(&text)? * TICK_NS)
    })
}

/// By what the scheduler counts, where the kernel tells it. Threads that ended do not count.
fn exact(process: u32) -> Option<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// How often its threads left their cores because they waited for something, all together. None if there is
/// no such process. Threads that ended do not count.
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

/// The time in its own code and in the kernel for it. The name before it may have spaces in it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_more() {
        let this = std::process::id();
        let before = used_ns(this).unwrap();
        let mut sum = 0u64;
        while used_ns(this).unwrap() == before {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(used_ns(this).unwrap() > before);
        assert_eq!(used_ns(u32::MAX), None);
    }

    #[test]
    fn who_waits_leaves_its_core() {
        let this = std::process::id();
        let before = waits(this).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(waits(this).unwrap() > before);
        assert_eq!(waits(u32::MAX), None);
        assert_eq!(
            waits_in("Name: x\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"),
            Some(12)
        );
    }

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 21 34 0 0";
        assert_eq!(ticks(stat), Some(55));
        assert_eq!(ticks("nothing"), None);
    }
}
