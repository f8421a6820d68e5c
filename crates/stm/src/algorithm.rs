//! The interface that both algorithms have towards transactions.

use hearth_atomics::AtomicU64;

use crate::attempt::Attempt;
use crate::fault::Planted;
use crate::halt::Halt;
use crate::raw::RawWord;
use crate::trace::Tracer;

/// An algorithm: [`Lsa`](crate::Lsa) or [`Norec`](crate::Norec), or one of these
/// [`Traced`](crate::Traced). Sealed.
pub trait Algorithm: Protocol {}

/// Shared state of an instance, with the steps of an attempt.
///
/// # Safety of the steps
/// Logs keep pointers to words. The words passed to the unsafe steps live until the attempt has
/// ended by a commit that succeeds, or by `roll_back` and the calls of `read_summary` and
/// `is_current` that follow it; and all steps of an attempt go to one instance. `begin` forgets the
/// words of the attempt before.
pub trait Protocol: Send + Sync + Sized + 'static {
    /// Logs of a thread, reused from attempt to attempt: in the steady state nothing allocates.
    type Logs: Default + 'static;

    /// The shared state of a new instance.
    fn new(planted: Planted) -> Self;

    /// The tracer in the logs.
    type Tracer: Tracer;

    /// Lends the thread's logs to a transaction; panics if one of this thread has them.
    fn take_logs() -> Box<Self::Logs>;

    /// Takes the logs back.
    fn put_logs(logs: Box<Self::Logs>);

    /// The tracer.
    fn tracer(logs: &mut Self::Logs) -> &mut Self::Tracer;

    /// The part of the logs that is the same in both algorithms.
    fn attempt(logs: &mut Self::Logs) -> &mut Attempt;

    /// The word that orders commits.
    fn counter(&self) -> &AtomicU64;

    /// Begins an attempt with empty logs, and gives the counter with its flags.
    fn begin(&self, logs: &mut Self::Logs) -> u64;

    /// Reads a word.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn read(&self, logs: &mut Self::Logs, raw: &RawWord) -> Result<u64, Halt>;

    /// Reads two words, most often of one stripe.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn read_pair(
        &self,
        logs: &mut Self::Logs,
        raws: [&RawWord; 2],
    ) -> Result<[u64; 2], Halt>;

    /// Reads many words in a row and hands them over in pieces, each once it is certain.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn read_slice(
        &self,
        logs: &mut Self::Logs,
        raws: &[RawWord],
        piece: impl FnMut(&[u64]),
    ) -> Result<(), Halt>;

    /// Writes a word.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn write(&self, logs: &mut Self::Logs, raw: &RawWord, value: u64) -> Result<(), Halt>;

    /// Takes effect, or finds out that it cannot; then `roll_back` follows. Gives the counter of
    /// the commit, with [`SLEEPERS`](crate::counter::SLEEPERS) if somebody may have to be woken.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn commit(&self, logs: &mut Self::Logs) -> Result<u64, Halt>;

    /// Undoes all writes. The reads stay known, for `is_current`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn roll_back(&self, logs: &mut Self::Logs);

    /// The writes so far.
    fn savepoint(logs: &mut Self::Logs) -> Savepoint;

    /// Undoes the writes since then.
    ///
    /// # Safety
    /// See the trait. Savepoints end in the reverse order of their making.
    unsafe fn roll_back_to(&self, logs: &mut Self::Logs, savepoint: &Savepoint);

    /// Ends a savepoint, whether its writes were undone or stay.
    fn forget(logs: &mut Self::Logs, savepoint: Savepoint);

    /// Sets a flag of the counter; always writes the word.
    fn raise(&self, flag: u64);

    /// Takes a flag back.
    fn lower(&self, flag: u64);

    /// Whether all that the attempt has read is as it was, after `roll_back`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn is_current(&self, logs: &mut Self::Logs) -> bool;

    /// The summary of all that was read; zero if nothing was.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn read_summary(logs: &Self::Logs) -> u64;

    /// The summary of all that was written.
    fn written_summary(logs: &Self::Logs) -> u64;
}

/// A point of an attempt to which its writes can be undone.
pub struct Savepoint {
    /// Length of the log of writes.
    pub(crate) length: usize,
    /// Length at the savepoint around this one.
    pub(crate) outer: usize,
}
