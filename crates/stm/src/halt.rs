//! Reasons to leave a transaction's body before its end.

use std::convert::Infallible;

/// A transaction that cannot go on: it met a conflict, or waits for a change. Pass it on with `?`.
#[derive(Debug)]
#[must_use = "a body that goes on after this is run again anyway"]
pub struct Halt(pub(crate) Cause);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Cause {
    Conflict,
    Retry,
}

impl Halt {
    pub(crate) const CONFLICT: Halt = Halt(Cause::Conflict);
    pub(crate) const RETRY: Halt = Halt(Cause::Retry);
}

/// The ways out of the body of [`Stm::try_atomically`](crate::Stm::try_atomically) without a
/// commit.
#[derive(Debug)]
pub enum Stop<E = Infallible> {
    /// The body is run again, at once or after a change.
    Halt(Halt),
    /// The transaction ends without effect, and its caller gets the value.
    Abort(E),
}

impl<E> From<Halt> for Stop<E> {
    #[inline(always)]
    fn from(halt: Halt) -> Stop<E> {
        Stop::Halt(halt)
    }
}

/// Ends the transaction without effect; its caller gets `value`.
pub fn abort<T, E>(value: E) -> Result<T, Stop<E>> {
    Err(Stop::Abort(value))
}
