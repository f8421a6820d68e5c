//! The seam for traces: calls from inside the transaction's own functions.
//!
//! A build chooses the events: none, starts and ends (feature `trace-reduced`), or reads and
//! writes as well (`trace-full`). With neither feature the thread's tracer is empty, its calls are
//! empty, and nothing of them is left in the code. An event is reported once it is certain: a
//! commit after the last check of what was read, a read after the check of its value.

/// The cause of an attempt's end without a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Another transaction holds the lock of a word to be read.
    ReadLocked,
    /// Another transaction holds the lock of a word to be written.
    WriteLocked,
    /// A word that was read has changed before the snapshot could move on.
    Changed,
    /// A word that was read has changed before the commit.
    CommitChanged,
    /// The body waits for a change.
    Retry,
    /// The body gave up, with a value.
    User,
    /// The body panicked.
    Panic,
}

/// The end of an attempt without a commit: why, where, and who was in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aborted {
    /// The cause.
    pub reason: Reason,
    /// The address of the conflict: of the word if it is known, of its stripe otherwise, zero if
    /// there is none.
    pub site: usize,
    /// The descriptor of the thread that held the lock; zero if it is unknown.
    pub owner: usize,
}

/// A thread's tracer, kept in its descriptor.
///
/// `counter` is the instance's clock or sequence number. A descriptor is named by its address.
pub trait Tracer {
    /// An attempt begins.
    fn start(&mut self, descriptor: usize, counter: u64);

    /// The transaction has read a word.
    fn read(&mut self, address: usize);

    /// The transaction has written a word; it becomes visible at the commit.
    fn write(&mut self, address: usize, value: u64);

    /// The attempt is valid and takes effect.
    fn commit(&mut self, descriptor: usize, counter: u64);

    /// The attempt ends without effect.
    fn abort(&mut self, descriptor: usize, counter: u64, aborted: Aborted);
}

/// The tracer of a build without traces.
#[cfg(not(feature = "trace-reduced"))]
#[derive(Default)]
pub(crate) struct ThreadTracer;

#[cfg(not(feature = "trace-reduced"))]
impl Tracer for ThreadTracer {
    #[inline(always)]
    fn start(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn read(&mut self, _: usize) {}

    #[inline(always)]
    fn write(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn commit(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn abort(&mut self, _: usize, _: u64, _: Aborted) {}
}

#[cfg(feature = "trace-reduced")]
pub use events::Event;
#[cfg(feature = "trace-reduced")]
pub(crate) use events::ThreadTracer;

#[cfg(feature = "trace-reduced")]
mod events {
    use super::{Aborted, Tracer};

    /// An event of a thread.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Event {
        /// An attempt began.
        Start {
            /// The thread's descriptor.
            descriptor: usize,
            /// The instance's counter.
            counter: u64,
        },
        /// A word was read.
        Read {
            /// Its address.
            address: usize,
        },
        /// A word was written.
        Write {
            /// Its address.
            address: usize,
            /// Its new value.
            value: u64,
        },
        /// An attempt took effect.
        Commit {
            /// The thread's descriptor.
            descriptor: usize,
            /// The instance's counter.
            counter: u64,
        },
        /// An attempt ended without effect.
        Abort {
            /// The thread's descriptor.
            descriptor: usize,
            /// The instance's counter.
            counter: u64,
            /// Why, where, and who was in the way.
            aborted: Aborted,
        },
    }

    /// The events of a thread since they were taken last.
    #[derive(Default)]
    pub(crate) struct ThreadTracer {
        pub(crate) events: Vec<Event>,
    }

    impl Tracer for ThreadTracer {
        #[inline]
        fn start(&mut self, descriptor: usize, counter: u64) {
            self.events.push(Event::Start {
                descriptor,
                counter,
            });
        }

        #[inline]
        fn read(&mut self, address: usize) {
            if cfg!(feature = "trace-full") {
                self.events.push(Event::Read { address });
            }
        }

        #[inline]
        fn write(&mut self, address: usize, value: u64) {
            if cfg!(feature = "trace-full") {
                self.events.push(Event::Write { address, value });
            }
        }

        #[inline]
        fn commit(&mut self, descriptor: usize, counter: u64) {
            self.events.push(Event::Commit {
                descriptor,
                counter,
            });
        }

        #[inline]
        fn abort(&mut self, descriptor: usize, counter: u64, aborted: Aborted) {
            self.events.push(Event::Abort {
                descriptor,
                counter,
                aborted,
            });
        }
    }
}
