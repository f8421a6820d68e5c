//! State shared by all threads of a server.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use hearth_sys::eventfd::EventFd;

use crate::choices::Mechanism;
use crate::counters::Desk;
use crate::options::Builder;

/// State shared by all threads of a server.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `is_stopping` | the stopping thread, once, before it wakes all | all, after waking |
/// | `connections` | the acceptor: up; a thread that closes: down | the acceptor |
/// | `wants_room` | acceptor: true before rereading `connections` | who closes, after counting |
/// | `second` | the acceptor | all, roughly |
/// | `is_accepting` | the acceptor | who asks, roughly |
///
/// `connections` and `wants_room` are sequentially consistent: either the acceptor sees that a
/// connection has closed, or the closing thread sees that the acceptor waits.
pub(crate) struct Common<S> {
    pub(crate) service: S,
    pub(crate) options: Builder,
    /// Mechanisms that its threads may use: one, except in an adaptive server.
    pub(crate) mechanisms: Vec<Mechanism>,
    /// Number of threads that serve, over all mechanisms.
    pub(crate) workers: usize,
    /// One for each thread, then the acceptor's, then that of the thread that stops the server.
    pub(crate) desks: Vec<Desk>,
    pub(crate) second: AtomicU32,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) connections: AtomicUsize,
    pub(crate) wants_room: AtomicBool,
    pub(crate) is_accepting: AtomicBool,
    pub(crate) acceptor_wakeup: EventFd,
}

impl<S> Common<S> {
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Sets the flag; the caller then wakes all threads.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    pub(crate) fn second(&self) -> u32 {
        self.second.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_seconds(&self) -> Option<u32> {
        let idle = self.options.idle?;
        Some(u32::try_from(idle.as_secs()).unwrap_or(u32::MAX))
    }

    pub(crate) fn acceptors_desk(&self) -> &Desk {
        &self.desks[self.workers]
    }

    /// Counts a closed connection.
    pub(crate) fn gone(&self) {
        self.connections.fetch_sub(1, Ordering::SeqCst);
        if self.wants_room.load(Ordering::SeqCst) {
            self.acceptor_wakeup.notify();
        }
    }
}
