//! Pollers: ways to wait for many connections.

mod epoll;
mod select;

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use hearth_sys::eventfd::EventFd;

pub(crate) use epoll::Epoll;
pub(crate) use select::Select;

use crate::choices::{Mechanism, Pattern};
use crate::connection::{Flags, Waits};

/// Key of the wake-up descriptor.
const WAKEUP: u64 = u64::MAX;

/// The threads that wait for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiters {
    /// The thread that works for all its descriptors.
    Owner,
    /// One thread at a time; any of them works for a descriptor.
    Several,
}

impl Waiters {
    pub(crate) fn of(pattern: Pattern) -> Waiters {
        match pattern {
            Pattern::Sharded | Pattern::Adaptive => Waiters::Owner,
            Pattern::HalfAsync | Pattern::Leader => Waiters::Several,
        }
    }
}

/// A way for other threads to wake one.
pub(crate) trait Wake: Send + Sync + 'static {
    /// Ends a wait, or the next one.
    fn wake(&self);
}

impl Wake for EventFd {
    fn wake(&self) {
        self.notify();
    }
}

/// A set of descriptors that one thread at a time waits for, while others add, arm and remove.
pub(crate) trait Poller: Wake + Sized {
    /// Buffer for the events of a wait.
    type Reports;

    /// An empty set. If several threads wait, the thread that gets a descriptor's event has the
    /// descriptor alone until it is settled; with edges it may get further events meanwhile.
    fn new(mechanism: Mechanism, waiters: Waiters) -> io::Result<Self>;

    /// The set's own descriptor, which is readable when a wait would end, if it has one.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// A buffer for at most this many events.
    fn reports(&self, most: usize) -> Self::Reports;

    /// Adds a descriptor, to be reported when it is readable.
    fn add(&self, of: BorrowedFd<'_>, key: u64) -> io::Result<()>;

    /// Ends the work on a descriptor, which waits for `now` and waited for `before`. True if it had
    /// to be armed again. Its next event may come at once.
    fn settle(&self, of: BorrowedFd<'_>, key: u64, before: Waits, now: Waits) -> io::Result<bool>;

    /// True if events of a descriptor may be reported while a thread works on it.
    fn tells_meanwhile(&self) -> bool;

    /// Removes a descriptor, before it is closed.
    fn remove(&self, of: BorrowedFd<'_>);

    /// Waits until something is ready, the set is woken, or the time has passed. True if it was
    /// woken.
    fn wait(
        &self,
        reports: &mut Self::Reports,
        time: Option<Duration>,
        each: impl FnMut(u64, Flags),
    ) -> bool;
}
