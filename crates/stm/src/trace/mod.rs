//! The seam for traces: calls from inside the transaction's own functions.
//!
//! A type chooses the tracer: [`Traced<A, T>`](crate::Traced) is the algorithm `A` with the tracer
//! `T`. Plain algorithms have the build's: [`Silent`], or with the features `trace-reduced` and
//! `trace-full` a [`Recorder`] of starts and ends, or of reads and writes as well. The silent
//! tracer has no size and its calls are empty, so nothing of them is left in the code. An event is
//! reported once it is certain: a commit after the last check of what was read, a read after the
//! check of its value.

mod origin;
#[cfg(feature = "trace")]
mod record;
#[cfg(feature = "trace")]
mod recorder;
#[cfg(feature = "trace")]
mod session;

pub use origin::Origin;
#[cfg(feature = "trace")]
pub use record::{kind, pack_abort, sign_of, unpack_abort};
#[cfg(feature = "trace")]
pub use recorder::{Recorder, Target};
#[cfg(feature = "trace")]
pub use session::{Account, MARK, Options, Session};

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

impl Reason {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::ReadLocked => "read locked",
            Reason::WriteLocked => "write locked",
            Reason::Changed => "changed",
            Reason::CommitChanged => "changed at commit",
            Reason::Retry => "retry",
            Reason::User => "gave up",
            Reason::Panic => "panic",
        }
    }

    /// Whether another transaction was in the way.
    #[must_use]
    pub fn is_conflict(self) -> bool {
        !matches!(self, Reason::Retry | Reason::User | Reason::Panic)
    }
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
/// `counter` is the instance's clock or sequence number. A descriptor is named by its address. All
/// calls of an attempt come from one thread.
pub trait Tracer: Default + 'static {
    /// The part that all threads of an instance share: where events go.
    type Shared: Default + Send + Sync + 'static;

    /// A transaction of an instance begins; its attempts follow.
    #[inline(always)]
    fn open(&mut self, _shared: &Self::Shared, _descriptor: usize) {}

    /// Tells where in the program the transaction begins.
    #[inline(always)]
    fn origin(&mut self, _origin: Origin) {}

    /// An attempt begins.
    fn start(&mut self, descriptor: usize, counter: u64);

    /// The transaction has read a word.
    fn read(&mut self, address: usize);

    /// The transaction has read several words in a row.
    #[inline]
    fn read_slice(&mut self, address: usize, words: usize) {
        for word in 0..words {
            self.read(address + 8 * word);
        }
    }

    /// The transaction has written a word; it becomes visible at the commit.
    fn write(&mut self, address: usize, value: u64);

    /// The attempt is valid and takes effect.
    fn commit(&mut self, descriptor: usize, counter: u64);

    /// The attempt ends without effect.
    fn abort(&mut self, descriptor: usize, counter: u64, aborted: Aborted);
}

/// The tracer that does nothing.
#[derive(Default)]
pub struct Silent;

impl Tracer for Silent {
    type Shared = ();

    #[inline(always)]
    fn start(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn read(&mut self, _: usize) {}

    #[inline(always)]
    fn read_slice(&mut self, _: usize, _: usize) {}

    #[inline(always)]
    fn write(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn commit(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn abort(&mut self, _: usize, _: u64, _: Aborted) {}
}

/// The tracer of plain algorithms in this build.
#[cfg(not(feature = "trace-reduced"))]
pub type BuildTracer = Silent;
/// The tracer of plain algorithms in this build.
#[cfg(feature = "trace-reduced")]
pub type BuildTracer = Recorder<{ cfg!(feature = "trace-full") }>;
