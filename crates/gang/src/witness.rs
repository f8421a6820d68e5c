//! Witnesses: threads that note when they ran, by gaps of a clock that they read all the time; and
//! what their notes say of a set. Pure.
//!
//! The kernel tells how long a thread ran, not when, so that only the threads themselves know
//! whether they ran at the same time.

/// Time during which a thread ran without a gap, in ns of a clock that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// First reading.
    pub begin: u64,
    /// Last reading.
    pub end: u64,
}

/// Notes of one thread, made as it runs.
#[derive(Clone, Debug)]
pub struct Notes {
    ran: Vec<Ran>,
    gap: u64,
}

impl Notes {
    /// Notes that begin now; a pause longer than `gap` ns counts as one in which the thread did not
    /// run.
    #[must_use]
    pub fn begin(now: u64, gap: u64) -> Notes {
        let first = Ran {
            begin: now,
            end: now,
        };
        Notes {
            ran: vec![first],
            gap,
        }
    }

    /// Notes that the thread runs now.
    #[inline]
    pub fn see(&mut self, now: u64) {
        if let Some(last) = self.ran.last_mut()
            && now.saturating_sub(last.end) <= self.gap
        {
            last.end = now;
            return;
        }
        self.ran.push(Ran {
            begin: now,
            end: now,
        });
    }

    /// All times that it ran.
    #[must_use]
    pub fn ran(&self) -> &[Ran] {
        &self.ran
    }

    /// A line of text for each, as `BEGIN END`.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.ran.iter();
        lines
            .map(|ran| format!("{} {}\n", ran.begin, ran.end))
            .collect()
    }
}

/// Reads lines of [`Notes::text`]. Those that make no sense are left out.
#[must_use]
pub fn parse(text: &str) -> Vec<Ran> {
    let parse = |line: &str| {
        let (begin, end) = line.split_once(' ')?;
        Some(Ran {
            begin: begin.parse().ok()?,
            end: end.parse().ok()?,
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Verdict on two sets over the time that all their threads witnessed, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// For each set: time that at least one of its threads ran.
    pub any_ns: Vec<u64>,
    /// For each set: time that all of its threads ran.
    pub all_ns: Vec<u64>,
    /// Time that threads of more than one set ran.
    pub mixed_ns: u64,
    /// Time that any thread ran.
    pub used_ns: u64,
    /// Skews at beginnings of turns, ascending: for each time that a set ran after another one had
    /// run, from its first thread's beginning to its last one's.
    pub skews_ns: Vec<u64>,
}

impl Verdict {
    /// Part of a set's time during which all its threads ran, 0 to 1. None if it never ran.
    #[must_use]
    pub fn together(&self, set: usize) -> Option<f64> {
        let (all, any) = (*self.all_ns.get(set)?, *self.any_ns.get(set)?);
        (any > 0).then(|| all as f64 / any as f64)
    }

    /// Part of the time during which only one set ran, 0 to 1.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        (self.used_ns > 0).then(|| 1.0 - self.mixed_ns as f64 / self.used_ns as f64)
    }

    /// Skew that this part of the turns did not exceed. None without turns.
    #[must_use]
    pub fn skew_ns(&self, part: f64) -> Option<u64> {
        let last = self.skews_ns.len().checked_sub(1)?;
        let at = (part * last as f64).ceil() as usize;
        self.skews_ns.get(at.min(last)).copied()
    }
}

/// Judges the notes of sets' threads.
#[must_use]
pub fn judge(sets: &[Vec<Vec<Ran>>]) -> Verdict {
    let threads = || sets.iter().flatten();
    let begin = threads().filter_map(|ran| ran.first()).map(|ran| ran.begin);
    let end = threads().filter_map(|ran| ran.last()).map(|ran| ran.end);
    let (Some(begin), Some(end)) = (begin.max(), end.min()) else {
        return Verdict::default();
    };
    // (moment, set, +1 or −1), cut to the common time.
    let mut events: Vec<(u64, usize, i32)> = Vec::new();
    for (set, threads) in sets.iter().enumerate() {
        for ran in threads.iter().flatten() {
            let (from, to) = (ran.begin.max(begin), ran.end.min(end));
            if from < to {
                events.push((from, set, 1));
                events.push((to, set, -1));
            }
        }
    }
    // At the same moment ends come first.
    events.sort_unstable_by_key(|(at, set, change)| (*at, *change, *set));
    let mut verdict = Verdict {
        any_ns: vec![0; sets.len()],
        all_ns: vec![0; sets.len()],
        ..Verdict::default()
    };
    let mut running = vec![0i32; sets.len()];
    let mut before = begin;
    let mut skews = Skews::new(sets);
    for (at, set, change) in events {
        let time = at - before;
        before = at;
        let on = running.iter().filter(|count| **count > 0).count();
        for (one, count) in running.iter().enumerate() {
            if *count > 0 {
                verdict.any_ns[one] += time;
            }
            if *count as usize == sets[one].len() {
                verdict.all_ns[one] += time;
            }
        }
        if on > 0 {
            verdict.used_ns += time;
        }
        if on > 1 {
            verdict.mixed_ns += time;
        }
        running[set] += change;
        if change > 0 {
            skews.begins(at, set);
        }
    }
    verdict.skews_ns = skews.found;
    verdict.skews_ns.sort_unstable();
    verdict
}

/// Finds turns: the beginnings of a set's threads after another set's.
struct Skews {
    sizes: Vec<usize>,
    /// The set whose turn it is, when its first thread began, and threads that have begun since.
    turn: Option<(usize, u64, usize)>,
    found: Vec<u64>,
}

impl Skews {
    fn new(sets: &[Vec<Vec<Ran>>]) -> Skews {
        Skews {
            sizes: sets.iter().map(Vec::len).collect(),
            turn: None,
            found: Vec::new(),
        }
    }

    fn begins(&mut self, at: u64, set: usize) {
        let (first, count) = match self.turn {
            Some((current, first, count)) if current == set => (first, count + 1),
            _ => (at, 1),
        };
        // Those beyond are threads that were interrupted and went on in the same turn.
        if count == self.sizes[set] {
            self.found.push(at - first);
        }
        self.turn = Some((set, first, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(pairs: &[(u64, u64)]) -> Vec<Ran> {
        let pairs = pairs.iter();
        pairs.map(|&(begin, end)| Ran { begin, end }).collect()
    }

    #[test]
    fn gaps_are_noted() {
        let mut notes = Notes::begin(100, 10);
        for now in [105, 110, 130, 135] {
            notes.see(now);
        }
        assert_eq!(notes.ran(), ran(&[(100, 110), (130, 135)]));
        assert_eq!(parse(&notes.text()), notes.ran());
        assert_eq!(parse("1\nx y\n3 4\n"), ran(&[(3, 4)]));
    }

    #[test]
    fn two_gangs_in_turns() {
        // ████    ████    ████  first
        //     ████    ████      second, one of its threads 3 late each time
        let turns = [(0, 100), (200, 300), (400, 500)];
        let first = vec![ran(&turns), ran(&turns)];
        let second = vec![
            ran(&[(100, 200), (300, 400)]),
            ran(&[(103, 200), (303, 400)]),
        ];
        let verdict = judge(&[first, second]);
        // The time that all witnessed is from 103 to 400.
        assert_eq!(verdict.any_ns, [100, 197]);
        assert_eq!(verdict.together(0), Some(1.0));
        assert_eq!(verdict.together(1), Some(194.0 / 197.0));
        assert_eq!(verdict.apart(), Some(1.0));
        assert_eq!(verdict.skews_ns, [0, 0, 3]);
        assert_eq!(verdict.skew_ns(1.0), Some(3));
        assert_eq!(verdict.skew_ns(0.0), Some(0));
    }

    #[test]
    fn the_opposite_of_a_gang() {
        let first = vec![ran(&[(0, 100)]), ran(&[(0, 1), (100, 200)])];
        let second = vec![ran(&[(0, 1), (100, 200)]), ran(&[(0, 100)])];
        let verdict = judge(&[first, second]);
        assert!(verdict.together(0) < Some(0.02));
        assert!(verdict.apart() < Some(0.02));
        assert_eq!(judge(&[]), Verdict::default());
        assert_eq!(judge(&[]).skew_ns(0.5), None);
    }
}
