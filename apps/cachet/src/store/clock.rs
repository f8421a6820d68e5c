//! The clock: seconds since shortly before the server began.
//!
//! A monotonic clock counts the seconds, so that a step of the wall clock neither ends items nor
//! keeps them. The wall clock only names our seconds outside: for the Unix times that clients give
//! and see.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Largest relative time of clients, in seconds; larger ones are Unix times. 30 days.
const RELATIVE_MAX: i32 = 60 * 60 * 24 * 30;
/// The first second, so that there are some before it.
const FIRST: u32 = 62;
/// Difference from the wall clock that does not count as a step, in seconds. The two do not begin
/// their seconds together, and following it would make the times that clients see jump back and
/// forth.
const STEP: i64 = 1;

/// A clock advanced every second, which all read with one load.
#[derive(Debug)]
pub struct Clock {
    now: AtomicU32,
    /// Unix time of second 0.
    origin: AtomicI64,
    /// Beginning of the first second.
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

    /// Seconds since it began.
    #[must_use]
    pub fn uptime(&self) -> u32 {
        self.now() - FIRST
    }

    /// The present second in Unix time.
    #[must_use]
    pub fn unix_now(&self) -> i64 {
        self.unix(self.now())
    }

    /// Converts a second of this clock to Unix time.
    #[must_use]
    pub fn unix(&self, second: u32) -> i64 {
        self.origin() + i64::from(second)
    }

    fn origin(&self) -> i64 {
        self.origin.load(Ordering::Relaxed)
    }

    /// Advances it to the system's time. It never goes back.
    pub fn follow(&self) {
        self.follow_to(self.begin.elapsed(), unix_seconds());
    }

    /// Advances it, given the time passed since it began and the wall clock.
    fn follow_to(&self, passed: Duration, unix: i64) {
        let now = (u64::from(FIRST) + passed.as_secs()).min(u64::from(u32::MAX)) as u32;
        let now = now.max(self.now.fetch_max(now, Ordering::Relaxed));
        let origin = unix - i64::from(now);
        if (origin - self.origin()).abs() > STEP {
            self.origin.store(origin, Ordering::Relaxed);
        }
    }

    /// Advances it by a number of seconds. For tests.
    pub fn advance(&self, seconds: u32) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Expiry of an item for which a client gave this time: 0 is never.
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
            // Unix times follow the wall clock.
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
