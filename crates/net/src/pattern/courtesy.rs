//! Who is never out of work lets others on its core have their turn.
//!
//! The system's scheduler changes threads every few milliseconds while all of them have something to do, and all that came to the one
//! waits for so long while the other is served again and again. Here the change comes after a fraction of that. It is made for
//! threads of the same server that are kept waiting, and for strangers as long as they are brief: a client on the same machine has soon done what
//! it can do without the server, while who computes without end would have the core for most of the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_sys::affinity;
use hearth_sys::usage::{self, Whose};

use super::crew::{Crew, Desk, Post};
use crate::poller::Wake;

/// So long a thread works before it looks whether another waits for its core.
const TURN: Duration = Duration::from_micros(250);
/// A stranger who keeps the core for so long is not brief. That is paid from what is saved up for it,
const LONG: Duration = Duration::from_millis(1);
/// a hundredth of the time,
const SHARE: f64 = 0.01;
/// at most so many seconds.
const SAVED_MAX: f64 = 0.02;

/// A thread's manners.
pub(super) struct Courtesy<T> {
    others: Vec<Arc<dyn Post<T>>>,
    began: Instant,
    /// How often this thread had slept then.
    slept: u64,
    patience: Patience,
}

impl<T: Send + 'static> Courtesy<T> {
    /// For the thread with this number in the crew.
    pub(super) fn new(crew: &Crew<T>, number: usize) -> Courtesy<T> {
        let others = crew.posts.iter().enumerate();
        Courtesy {
            others: others
                .filter(|(other, _)| *other != number)
                .map(|(_, post)| post.clone())
                .collect(),
            began: Instant::now(),
            slept: 0,
            patience: Patience::new(Instant::now()),
        }
    }

    /// A round is over.
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
        // Who has slept since was not in the way of strangers, and would lose its place before them when it wakes.
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

/// With strangers.
#[derive(Debug)]
struct Patience {
    /// Seconds for those who are not brief, and when they were counted.
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

    /// The core was given away, and came back after so long.
    fn learn(&mut self, away: Duration) {
        if away >= LONG {
            self.saved -= away.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the core away whenever patience lasts, to one who keeps it for so long, for ten seconds. The share that is left.
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
