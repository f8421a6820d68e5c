//! Yielding: busy threads yield so that others on the core can run.
//!
//! The scheduler switches between busy threads only every few milliseconds, and everything that
//! came to the waiting thread waits that long while the running one is served again and again. Here
//! the switch comes after a fraction of that. A thread yields to threads of the same server that
//! are kept waiting, and to strangers as long as they are brief: a client on the same machine soon
//! has done what it can do without the server, while a program that computes without end would take
//! the core most of the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_sys::affinity;
use hearth_sys::usage::{self, Whose};

use super::crew::{Crew, Desk, Post};
use crate::poller::Wake;

/// Time that a thread works before it looks whether another waits for its core.
const TURN: Duration = Duration::from_micros(250);
/// A stranger that keeps the core this long is not brief; its time is paid from an allowance.
const LONG: Duration = Duration::from_millis(1);
/// Share of the time by which the allowance for strangers that are not brief grows.
const SHARE: f64 = 0.01;
/// Upper bound of that allowance, in seconds.
const SAVED_MAX: f64 = 0.02;

/// A thread's yielding.
pub(super) struct Yielding<T> {
    others: Vec<Arc<dyn Post<T>>>,
    began: Instant,
    /// The thread's voluntary switches at `began`.
    slept: u64,
    patience: Patience,
}

impl<T: Send + 'static> Yielding<T> {
    /// For the thread with this number in the crew.
    pub(super) fn new(crew: &Crew<T>, number: usize) -> Yielding<T> {
        let others = crew.posts.iter().enumerate();
        Yielding {
            others: others
                .filter(|(other, _)| *other != number)
                .map(|(_, post)| post.clone())
                .collect(),
            began: Instant::now(),
            slept: 0,
            patience: Patience::new(Instant::now()),
        }
    }

    /// Ends a round: yields if the turn is over.
    #[inline]
    pub(super) fn look<P: Wake>(&mut self, own: &Desk<P, T>) {
        if self.began.elapsed() >= TURN {
            self.give_way(own);
        }
    }

    #[cold]
    fn give_way<P: Wake>(&mut self, own: &Desk<P, T>) {
        let now = Instant::now();
        let is_for_own = !self.others.is_empty()
            && affinity::current().is_some_and(|core| {
                own.is_on(core);
                self.others.iter().any(|other| other.is_kept_waiting(core))
            });
        // A thread that has slept since then was not in the strangers' way, and would lose its
        // place before them when it wakes.
        let slept = usage::read(Whose::Thread).switches_voluntary;
        let is_rested = std::mem::replace(&mut self.slept, slept) != slept;
        if is_for_own {
            std::thread::yield_now();
        } else if !is_rested && self.patience.lasts(now) {
            std::thread::yield_now();
            self.patience.learn(now.elapsed());
        }
        self.began = Instant::now();
    }
}

/// The allowance for strangers.
#[derive(Debug)]
struct Patience {
    /// Seconds for strangers that are not brief, as of `at`.
    saved: f64,
    at: Instant,
}

impl Patience {
    fn new(now: Instant) -> Patience {
        Patience {
            saved: SAVED_MAX,
            at: now,
        }
    }

    fn lasts(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.saved = (self.saved + SHARE * since).min(SAVED_MAX);
        self.at = now;
        self.saved > 0.0
    }

    /// Charges the time for which the core was away.
    fn learn(&mut self, away: Duration) {
        if away >= LONG {
            self.saved -= away.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields whenever patience lasts, to a stranger that keeps the core `away`, for ten seconds.
    /// Returns the share of the time that is left.
    fn left(away: Duration) -> f64 {
        let began = Instant::now();
        let (mut now, mut patience, mut own) = (began, Patience::new(began), Duration::ZERO);
        while now < began + Duration::from_secs(10) {
            own += TURN;
            now += TURN;
            if patience.lasts(now) {
                patience.learn(away);
                now += away;
            }
        }
        own.as_secs_f64() / (now - began).as_secs_f64()
    }

    #[test]
    fn who_computes_without_end_gets_next_to_nothing() {
        let left = left(Duration::from_millis(3));
        assert!(left > 0.985, "{left}");
    }

    #[test]
    fn the_brief_are_always_let_in() {
        let half = left(TURN);
        assert!((0.49..0.51).contains(&half), "{half}");
    }

    #[test]
    fn patience_comes_back() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        for _ in 0..10 {
            patience.learn(3 * LONG);
        }
        assert!(!patience.lasts(now + LONG));
        assert!(patience.lasts(now + Duration::from_secs(2)));
    }
}
