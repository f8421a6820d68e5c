//! What was done, counted by each thread for itself, and what it cost if that was asked for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use hearth_sys::Linux;
use hearth_sys::affinity::thread_id;
use hearth_sys::clock::{Stamps, other_thread_ns};

use crate::options::{Builder, Pattern};

/// What a thread does with an event, as the source times it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A call that waits for events, with the time in which there is none: what the call itself costs shows under full load.
    Obtain,
    /// Half-Sync/Half-Async: an event to the queue.
    Enqueue,
    /// Half-Sync/Half-Async: an event from the queue, without the time in which it was empty.
    Dequeue,
    /// A read.
    Receive,
    /// The service's own work.
    Serve,
    /// A connection is armed again.
    Reactivate,
    /// A write.
    Send,
}

impl Operation {
    /// Every one.
    pub const ALL: [Operation; 7] = [
        Operation::Obtain,
        Operation::Enqueue,
        Operation::Dequeue,
        Operation::Receive,
        Operation::Serve,
        Operation::Reactivate,
        Operation::Send,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Obtain => "obtain",
            Operation::Enqueue => "enqueue",
            Operation::Dequeue => "dequeue",
            Operation::Receive => "receive",
            Operation::Serve => "serve",
            Operation::Reactivate => "reactivate",
            Operation::Send => "send",
        }
    }
}

/// How often an operation was done, and the ticks it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// In all, in ticks of [`Stamps`].
    pub ticks: u64,
}

macro_rules! counters {
    ($($(#[$about:meta])* $name:ident),* $(,)?) => {
        /// What a server has done since it began.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$about])* pub $name: u64,)* }

        /// Those of one thread, which alone writes them.
        #[derive(Debug, Default)]
        pub(crate) struct Counts { $(pub(crate) $name: AtomicU64,)* }

        impl Counts {
            pub(crate) fn add_to(&self, sum: &mut Counters) {
                $(sum.$name += self.$name.load(Relaxed);)*
            }
        }
    };
}

counters! {
    /// Connections that were accepted.
    accepted,
    /// Connections beyond the limit that were refused.
    refused,
    /// Times that there was no descriptor for a connection.
    starved,
    /// Connections that are gone.
    closed,
    /// Of them: those that had nothing to say for too long.
    idled,
    /// Calls of the service that panicked; each has ended its connection.
    panicked,
    /// Bytes that came.
    read_bytes,
    /// Bytes that went.
    written_bytes,
    /// Calls that read.
    reads,
    /// Calls that wrote.
    writes,
    /// Calls that waited for events.
    waits,
    /// Events of connections.
    events,
    /// Connections that were armed again.
    rearmed,
    /// Times that a thread that waits was woken by another.
    rung,
    /// Connections that went from one thread to another.
    moved,
    /// Times that a connection had to wait until it could be written to.
    stalled,
}

/// A number that one thread alone adds to: no atomic operation is needed but the store.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}

/// What one thread writes; on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Desk {
    pub(crate) counts: Counts,
    times: [(AtomicU64, AtomicU64); Operation::ALL.len()],
    /// When the wait began that has not ended; 0 if the thread does not wait.
    waits_since: AtomicU64,
    /// The system's number of the thread; 0 before it begins.
    thread: AtomicU32,
}

impl Desk {
    /// For how long the thread has waited until now, in ticks, if waits are watched. Of a wait that ends this moment nothing or
    /// twice as much may be told.
    pub(crate) fn waited(&self, now: u64) -> u64 {
        let since = match self.waits_since.load(Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        };
        self.times(Operation::Obtain).ticks + since
    }

    /// For how long the thread has had a core, in nanoseconds: a system call. What the system does for a ring counts here, and is
    /// done while the thread waits.
    pub(crate) fn ran_ns(&self) -> u64 {
        match self.thread.load(Relaxed) {
            0 => 0,
            thread => other_thread_ns(thread),
        }
    }

    pub(crate) fn times(&self, of: Operation) -> Times {
        let (count, ticks) = &self.times[of as usize];
        Times {
            count: count.load(Relaxed),
            ticks: ticks.load(Relaxed),
        }
    }
}

/// What a thread times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    Nothing,
    /// Its waits, and how long it works for each connection.
    Shares,
    /// Those, and every operation.
    Everything,
}

impl Watching {
    pub(crate) fn of(options: &Builder) -> Watching {
        match options.pattern {
            _ if options.is_timed => Watching::Everything,
            Pattern::Adaptive => Watching::Shares,
            _ => Watching::Nothing,
        }
    }
}

/// A thread's desk, and its watches if something is timed.
pub(crate) struct Meter<'a> {
    pub(crate) desk: &'a Desk,
    watch: Option<Stamps>,
    shares: Option<Stamps>,
}

impl<'a> Meter<'a> {
    /// For the calling thread.
    pub(crate) fn new(desk: &'a Desk, watching: Watching) -> Meter<'a> {
        desk.thread.store(thread_id(), Relaxed);
        let here = || Stamps::here(&Linux);
        Meter {
            desk,
            watch: (watching == Watching::Everything).then(here),
            shares: (watching != Watching::Nothing).then(here),
        }
    }

    /// Now, if shares are of interest.
    #[inline]
    pub(crate) fn share(&self) -> u64 {
        self.shares.map_or(0, Stamps::ticks)
    }

    /// A wait begins.
    #[inline]
    pub(crate) fn begin_wait(&self) -> u64 {
        let now = self.share();
        self.desk.waits_since.store(now, Relaxed);
        now
    }

    /// It is over.
    #[inline]
    pub(crate) fn end_wait(&self, begun: u64) {
        if let Some(shares) = self.shares {
            let (count, ticks) = &self.desk.times[Operation::Obtain as usize];
            add(count, 1);
            add(ticks, shares.ticks().saturating_sub(begun));
            self.desk.waits_since.store(0, Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> &'a Counts {
        &self.desk.counts
    }

    /// Now, if that is of interest.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.watch.map_or(0, Stamps::ticks)
    }

    /// An operation that began then is done.
    #[inline]
    pub(crate) fn end(&self, of: Operation, begun: u64) {
        if let Some(watch) = self.watch {
            let (count, ticks) = &self.desk.times[of as usize];
            add(count, 1);
            add(ticks, watch.ticks().saturating_sub(begun));
        }
    }
}
