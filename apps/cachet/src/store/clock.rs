//! The present second. Items tell times in seconds since shortly before the server began.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Times given by clients up to this are from now on, in seconds; above it they are those of Unix. 30 days.
const RELATIVE_MAX: i32 = 60 * 60 * 24 * 30;
/// The first second, so that there are some before it.
const FIRST: u32 = 62;

/// A clock that somebody advances every second, and that all read with one load.
#[derive(Debug)]
pub struct Clock {
    now: AtomicU32,
    /// The Unix time of second 0.
    origin: i64,
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
            origin: unix_seconds() - i64::from(FIRST),
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
        self.origin + i64::from(self.now())
    }

    /// What a second of this clock is in Unix time.
    #[must_use]
    pub fn unix(&self, second: u32) -> i64 {
        self.origin + i64::from(second)
    }

    /// Sets it to the system's time. It never goes back.
    pub fn follow(&self) {
        let now = (unix_seconds() - self.origin).clamp(0, i64::from(u32::MAX)) as u32;
        self.now.fetch_max(now, Ordering::Relaxed);
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
            _ => (i64::from(given) - self.origin).clamp(1, i64::from(u32::MAX)) as u32,
        }
    }
}

fn unix_seconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}
