//! Shares of time in which CPUs were busy lately, from the system's counts.

use std::collections::HashMap;

use hearth_sys::System;
use hearth_sys::procfs::parse_stat;

const COUNTS: &str = "/proc/stat";
/// Weight of the newest share; the rest is the former ones'.
const NEW: f64 = 0.5;

/// Counts of time since the system began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    busy: u64,
    all: u64,
}

/// Shares, smoothed over some readings.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    last: HashMap<usize, Counts>,
    shares: HashMap<usize, f64>,
}

impl Busy {
    /// Forgets the last reading: the time since then does not count.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
        self.shares.clear();
    }

    /// For each CPU, the share of time since the last reading; `mine` is the caller's CPU and the
    /// share of it that the caller used itself. None at the first reading, or if the system does
    /// not count.
    pub(crate) fn since_last(
        &mut self,
        system: &dyn System,
        mine: Option<(usize, f64)>,
    ) -> Option<&HashMap<usize, f64>> {
        let counts = read(&system.read(COUNTS).ok()?);
        let last = std::mem::replace(&mut self.last, counts);
        if last.is_empty() || self.last.is_empty() {
            return None;
        }
        for (cpu, now) in &self.last {
            let Some(before) = last.get(cpu) else {
                continue;
            };
            let all = now.all.saturating_sub(before.all).max(1);
            let mut share = now.busy.saturating_sub(before.busy) as f64 / all as f64;
            if let Some((own, used)) = mine
                && own == *cpu
            {
                share = (share - used).max(0.0);
            }
            let known = self.shares.entry(*cpu).or_insert(share);
            *known += NEW * (share - *known);
        }
        Some(&self.shares)
    }
}

fn read(text: &str) -> HashMap<usize, Counts> {
    let counts = parse_stat(text).into_iter().map(|times| {
        let (all, busy) = (times.total(), times.total() - times.idle);
        (times.core, Counts { busy, all })
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use hearth_sys::Fake;

    use super::*;

    fn system(first: &str, second: &str) -> Fake {
        let lines = format!("cpu  9 9 9 9\ncpu0 {first}\ncpu1 {second}\nintr 1 2 3\n");
        Fake::with_cores(&[0, 1]).file(COUNTS, lines)
    }

    #[test]
    fn shares_are_those_since_the_last_reading() {
        let mut busy = Busy::default();
        let begin = system("100 0 0 900 0 0 0 0 0 0", "0 0 0 1000 0 0 0 0 0 0");
        assert_eq!(busy.since_last(&begin, None), None);
        // One was busy all the time, the other waited for a disk and was stolen from.
        let end = system("150 20 30 900 0 0 0 0 50 0", "10 0 0 1040 30 0 0 20 0 0");
        let shares = busy.since_last(&end, Some((1, 0.1))).expect("two readings");
        assert!((shares[&0] - 1.0).abs() < 1e-9, "{shares:?}");
        assert!((shares[&1] - 0.2).abs() < 1e-9, "{shares:?}");
        busy.forget();
        assert_eq!(busy.since_last(&end, None), None);
    }

    #[test]
    fn a_system_without_counts_says_nothing() {
        let system = Fake::with_cores(&[0]);
        let mut busy = Busy::default();
        assert_eq!(busy.since_last(&system, None), None);
        let odd = system.file(COUNTS, "cpu\ncpux 1 2\ncpu1\n");
        assert_eq!(busy.since_last(&odd, None), None);
    }
}
