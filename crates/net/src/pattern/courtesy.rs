//! Threads of one crew on one core: who is never out of work lets the others have their turn.
//!
//! The system's scheduler changes threads every few milliseconds while all of them have something to do, and all that came to the one
//! waits for so long while the other is served again and again. Here the change comes after a fraction of that. It is made only
//! for a thread of the same server: who gave way to a stranger would lose its share of the core.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_sys::affinity;

use super::crew::{Crew, Desk, Post};
use crate::poller::Wake;

/// So long a thread works before it looks whether another waits for its core.
const TURN: Duration = Duration::from_micros(250);

/// A thread's manners.
pub(super) struct Courtesy<T> {
    others: Vec<Arc<dyn Post<T>>>,
    began: Instant,
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
        }
    }

    /// A round is over.
    #[inline]
    pub(super) fn look<P: Wake>(&mut self, own: &Desk<P, T>) {
        if !self.others.is_empty() && self.began.elapsed() >= TURN {
            self.look_at_others(own);
        }
    }

    #[cold]
    fn look_at_others<P: Wake>(&mut self, own: &Desk<P, T>) {
        if let Some(core) = affinity::current() {
            own.is_on(core);
            if self.others.iter().any(|other| other.is_kept_waiting(core)) {
                std::thread::yield_now();
            }
        }
        self.began = Instant::now();
    }
}
