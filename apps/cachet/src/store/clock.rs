//! The present second. Items tell times in seconds since shortly before the server began.
//!
//! Seconds are counted by a clock that nobody sets, so that a step of the wall clock neither ends items nor keeps them.
//! The wall clock is asked only what a second of ours is called outside: for times that clients give and see as Unix
//! times.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Times given by clients up to this are from now on, in seconds; above it they are those of Unix. 30 days.
const RELATIVE_MAX: i32 = 60 * 60 * 24 * 30;
/// The first second, so that there are some before it.
const FIRST: u32 = 62;
/// So far the wall clock may be from what we take it for, in seconds. The two do not begin their seconds together, so
/// one is no step, and to follow it would change the times that clients are told back and forth.
const STEP: i64 = 1;

/// A clock that somebody advances every second, and that all read with one load.
#[derive(Debug)]
pub struct Clock {
    now: AtomicU32,
    /// The Unix time of second 0.
    origin: AtomicI64,
    /// When the first second began.
    begin: Instant,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

impl Clock {
    /// A clock that shows its first second.
    #[must_use]
    pub fn new() -> Clock {
        Clock {
            now: AtomicU32::new(FIRST),
            origin: AtomicI64::new(unix_seconds() - i64::from(FIRST)),
            begin: Instant::now(),
        }
    }

    /// The present second.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// How long it has run, in seconds.
    #[must_use]
    pub fn uptime(&self) -> u32 {
        self.now() - FIRST
    }

    /// The present second as Unix time.
    #[must_use]
    pub fn unix_now(&self) -> i64 {
        self.unix(self.now())
    }

    /// What a second of this clock is in Unix time.
    #[must_use]
    pub fn unix(&self, second: u32) -> i64 {
        self.origin() + i64::from(second)
    }

    fn origin(&self) -> i64 {
        self.origin.load(Ordering::Relaxed)
    }

    /// Sets it to the system's time. It never goes back.
    pub fn follow(&self) {
        self.follow_to(self.begin.elapsed(), unix_seconds());
    }

    /// So much has passed since it began, and the wall clock shows this.
    fn follow_to(&self, passed: Duration, unix: i64) {
        let now = (u64::from(FIRST) + passed.as_secs()).min(u64::from(u32::MAX)) as u32;
        let now = now.max(self.now.fetch_max(now, Ordering::Relaxed));
        let origin = unix - i64::from(now);
        if (origin - self.origin()).abs() > STEP {
            self.origin.store(origin, Ordering::Relaxed);
        }
    }

    /// Makes it later by so many seconds. For tests.
    pub fn advance(&self, seconds: u32) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// When an item ends for which a client gave this time: 0 if never.
    #[must_use]
    pub fn expiry(&self, given: i32) -> u32 {
        match given {
            0 => 0,
            // The second 1 was before the server began.
            i32::MIN..0 => 1,
            1..=RELATIVE_MAX => self.now() + given as u32,
            _ => (i64::from(given) - self.origin()).clamp(1, i64::from(u32::MAX)) as u32,
        }
    }
}

fn unix_seconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_neither_ends_items_nor_keeps_them() {
        let clock = Clock::new();
        let (begin, unix) = (clock.now(), clock.unix_now());
        let ends = clock.expiry(10);
        for step in [-1_000_000, 1_000_000] {
            clock.follow_to(Duration::from_secs(4), unix + 4 + step);
            assert_eq!(clock.now(), begin + 4, "whatever the wall clock shows");
            // What is told as Unix time is by the wall clock.
            assert_eq!(clock.unix_now(), unix + 4 + step);
            let given = i32::try_from(unix + 4 + step + 100).expect("it is before 2038");
            assert_eq!(clock.expiry(given), begin + 104);
        }
        clock.follow_to(Duration::from_secs(10), unix);
        assert!(ends <= clock.now());
    }

    #[test]
    fn seconds_that_begin_at_other_moments_are_no_step() {
        let clock = Clock::new();
        let unix = clock.unix_now();
        let (second, told) = (clock.now() + 50, clock.unix(clock.now() + 50));
        for (passed, late) in [(1, 0), (2, 1), (3, -1), (4, 0)] {
            clock.follow_to(Duration::from_secs(passed), unix + passed as i64 + late);
            assert_eq!(clock.unix(second), told);
        }
    }
}
