//! Counters, kept by each thread for itself, and the costs of operations if asked for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use hearth_sys::Linux;
use hearth_sys::affinity::thread_id;
use hearth_sys::clock::{Stamps, other_thread_ns};

use crate::choices::Pattern;

/// An operation on an event, as the source times it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A call that waits for events, including the time without any: under full load this is the
    /// cost of the call.
    Obtain,
    /// Half-Sync/Half-Async: queueing an event.
    Enqueue,
    /// Half-Sync/Half-Async: taking an event from the queue, without the time in which it was
    /// empty.
    Dequeue,
    /// A read.
    Receive,
    /// The service's own work.
    Serve,
    /// Arming a connection again.
    Reactivate,
    /// A write.
    Send,
}

impl Operation {
    /// All operations.
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

/// Number and total time of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of times it was done.
    pub count: u64,
    /// Total time, in ticks of [`Stamps`].
    pub ticks: u64,
}

macro_rules! counters {
    ($($(#[$about:meta])* $name:ident),* $(,)?) => {
        /// A server's counters since it began.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$about])* pub $name: u64,)* }

        /// The counters of one thread, which alone writes them.
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
    /// Connections accepted.
    accepted,
    /// Connections refused because of the limit.
    refused,
    /// Times that there was no descriptor for a connection.
    starved,
    /// Times that accepting was paused, for want of descriptors or because of the limit.
    pauses,
    /// Length of the pauses that are over, in microseconds.
    paused_us,
    /// Connections closed.
    closed,
    /// Connections closed after too long a silence.
    idled,
    /// Calls of the service that panicked, each ending its connection.
    panicked,
    /// Bytes received.
    read_bytes,
    /// Bytes sent.
    written_bytes,
    /// Calls that read.
    reads,
    /// Calls that wrote.
    writes,
    /// Calls that waited for events.
    waits,
    /// Events of connections.
    events,
    /// Connections armed again.
    rearmed,
    /// Times that a waiting thread was woken by another.
    rung,
    /// Connections moved between threads.
    moved,
    /// Times that a connection had to wait for room to write.
    stalled,
}

/// Adds to a counter that one thread alone writes: no atomic operation is needed but the store.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}

/// A thread's counters, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Desk {
    pub(crate) counts: Counts,
    times: [(AtomicU64, AtomicU64); Operation::ALL.len()],
    /// Beginning of the present wait; 0 if the thread does not wait.
    waits_since: AtomicU64,
    /// The system's number of the thread; 0 before it begins.
    thread: AtomicU32,
}

impl Desk {
    /// Time that the thread has waited until now, in ticks, if waits are measured. A wait that ends
    /// this moment may count not at all or twice.
    pub(crate) fn waited(&self, now: u64) -> u64 {
        let since = match self.waits_since.load(Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        };
        self.times(Operation::Obtain).ticks + since
    }

    /// CPU time of the thread, in nanoseconds: a system call. The system's work for a ring counts
    /// here, and is done while the thread waits.
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

/// The measurements of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    Nothing,
    /// Its waits, and its work for each connection.
    Shares,
    /// Those, and every operation.
    Everything,
}

impl Watching {
    pub(crate) fn of(pattern: Pattern, is_timed: bool) -> Watching {
        match pattern {
            _ if is_timed => Watching::Everything,
            Pattern::Adaptive => Watching::Shares,
            _ => Watching::Nothing,
        }
    }
}

/// A thread's counters, and its clocks if something is measured.
pub(crate) struct Meter<'a> {
    pub(crate) desk: &'a Desk,
    watch: Option<Stamps>,
    shares: Option<Stamps>,
}

impl<'a> Meter<'a> {
    /// The meter of the calling thread.
    pub(crate) fn new(desk: &'a Desk, watching: Watching) -> Meter<'a> {
        desk.thread.store(thread_id(), Relaxed);
        let here = || Stamps::here(&Linux);
        Meter {
            desk,
            watch: (watching == Watching::Everything).then(here),
            shares: (watching != Watching::Nothing).then(here),
        }
    }

    /// Now, if shares of time are measured.
    #[inline]
    pub(crate) fn share(&self) -> u64 {
        self.shares.map_or(0, Stamps::ticks)
    }

    /// Begins a wait.
    #[inline]
    pub(crate) fn begin_wait(&self) -> u64 {
        let now = self.share();
        self.desk.waits_since.store(now, Relaxed);
        now
    }

    /// Ends a wait.
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

    /// Now, if operations are measured.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.watch.map_or(0, Stamps::ticks)
    }

    /// Ends an operation.
    #[inline]
    pub(crate) fn end(&self, of: Operation, begun: u64) {
        if let Some(watch) = self.watch {
            let (count, ticks) = &self.desk.times[of as usize];
            add(count, 1);
            add(ticks, watch.ticks().saturating_sub(begun));
        }
    }
}
