//! Ways to wait for many connections.

mod epoll;
mod select;
mod uring;

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use hearth_sys::bell::Bell;

pub(crate) use epoll::Epoll;
pub(crate) use select::Select;
pub(crate) use uring::Ring;

use crate::connection::{Flags, Waits};
use crate::options::{Mechanism, Pattern};

/// The bell's own key.
const BELL: u64 = u64::MAX;

/// Which threads wait for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiters {
    /// The one that works for all its descriptors.
    Owner,
    /// One; others work.
    One,
    /// Those that work, in turns.
    Turns,
}

impl Waiters {
    pub(crate) fn of(pattern: Pattern) -> Waiters {
        match pattern {
            Pattern::Sharded | Pattern::Adaptive => Waiters::Owner,
            Pattern::HalfAsync => Waiters::One,
            Pattern::Leader => Waiters::Turns,
        }
    }
}

/// What others can wake a thread with.
pub(crate) trait Wake: Send + Sync + 'static {
    /// Ends a wait, or the next.
    fn ring(&self);
}

impl Wake for Bell {
    fn ring(&self) {
        Bell::ring(self);
    }
}

/// A set of descriptors that one thread at a time waits for, while others add, arm and remove.
pub(crate) trait Poller: Wake + Sized {
    /// Where a wait leaves what it sees.
    type Reports;

    /// An empty set. If others work than its owner, who is told of a descriptor has it alone until it is settled; with edges it is
    /// told of it again meanwhile.
    fn new(mechanism: Mechanism, waiters: Waiters) -> io::Result<Self>;

    /// A descriptor of its own that can be read when a wait would end, if it has one.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// For at most so many descriptors a wait.
    fn reports(&self, most: usize) -> Self::Reports;

    /// Waits for a descriptor, too, until it can be read.
    fn add(&self, of: BorrowedFd<'_>, key: u64) -> io::Result<()>;

    /// Who was told of a descriptor is done; it waits for this now, and waited for that before. True if it had to be
    /// armed again. At once the next may be told.
    fn settle(&self, of: BorrowedFd<'_>, key: u64, before: Waits, now: Waits) -> io::Result<bool>;

    /// A descriptor may be told again while somebody works on it.
    fn tells_meanwhile(&self) -> bool;

    /// Takes a descriptor out, before it is closed.
    fn remove(&self, of: BorrowedFd<'_>, key: u64);

    /// Waits until something is ready, the bell rings, or so much time has passed. True if the bell rang.
    fn wait(
        &self,
        reports: &mut Self::Reports,
        time: Option<Duration>,
        each: impl FnMut(u64, Flags),
    ) -> bool;

    /// No thread will wait any more; told by each that has waited.
    fn end(&self) {}
}
