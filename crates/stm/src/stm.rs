//! Instances: an algorithm with its shared state, and the loop around a transaction's attempts.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::algorithm::Algorithm;
use crate::attempt::Counts;
use crate::fault::Planted;
use crate::halt::{Halt, Stop};
use crate::lsa::Lsa;
use crate::trace::{Origin, Tracer};
use crate::tx::Tx;
use crate::waiting::Waiting;

/// Attempts that fail before a transaction runs alone. Back-off has doubled to its bound by then.
const FAILURES_MAX: u32 = 16;

/// An instance of transactional memory: all transactions on a variable go through one.
///
/// ```
/// use hearth_stm::{Norec, Stm, Var};
///
/// let stm = Stm::<Norec>::with_algorithm();
/// let (from, to) = (Var::new(10), Var::new(0));
/// let left = stm.atomically(|tx| {
///     tx.update(&to, |sum| sum + 4)?;
///     tx.update(&from, |sum| sum - 4)
/// });
/// assert_eq!(left, 6);
/// ```
pub struct Stm<A: Algorithm = Lsa> {
    algorithm: A,
    waiting: Waiting,
    failures_max: u32,
    /// Destination of the tracers' events.
    traces: <A::Tracer as Tracer>::Shared,
}

impl Stm {
    /// An instance with the algorithm [`Lsa`].
    pub fn new() -> Stm {
        Stm::with_algorithm()
    }
}

impl<A: Algorithm> Default for Stm<A> {
    fn default() -> Stm<A> {
        Stm::with_algorithm()
    }
}

impl<A: Algorithm> Stm<A> {
    /// An instance with the algorithm that its type names.
    pub fn with_algorithm() -> Stm<A> {
        Stm::planted(Planted::default())
    }

    pub(crate) fn planted(planted: Planted) -> Stm<A> {
        Stm {
            algorithm: A::new(planted),
            waiting: Waiting::new(planted),
            failures_max: FAILURES_MAX,
            traces: Default::default(),
        }
    }

    /// Sets where the events of this instance's transactions go.
    #[must_use]
    pub fn traces(mut self, to: <A::Tracer as Tracer>::Shared) -> Stm<A> {
        self.traces = to;
        self
    }

    /// Sets the number of attempts that fail before a transaction runs alone; at least one does.
    #[must_use]
    pub fn alone_after(mut self, failures: u32) -> Stm<A> {
        self.failures_max = failures.max(1);
        self
    }

    /// Runs a transaction: all that its body does takes effect at once, or the body runs again.
    ///
    /// Functions called by the body take its `Tx`. A transaction inside of another is none: it
    /// panics. If the body panics, its writes are undone, and the panic goes on.
    ///
    /// # Panics
    /// A transaction of the same algorithm already runs on this thread; or the body wants to wait
    /// for a change and has read nothing.
    #[inline]
    #[track_caller]
    pub fn atomically<'v, R>(&'v self, body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Halt>) -> R {
        self.without_abort(Origin::here(None), body)
    }

    /// Runs a transaction as [`Stm::atomically`], under a name that traces tell it by. Without one
    /// it is told by the file and line of the call.
    ///
    /// # Panics
    /// As [`Stm::atomically`].
    #[inline]
    #[track_caller]
    pub fn atomically_at<'v, R>(
        &'v self,
        name: &'static str,
        body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Halt>,
    ) -> R {
        self.without_abort(Origin::here(Some(name)), body)
    }

    #[inline]
    fn without_abort<'v, R>(
        &'v self,
        origin: Origin,
        mut body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Halt>,
    ) -> R {
        let result: Result<R, Infallible> =
            self.run(origin, move |tx| body(tx).map_err(Stop::Halt));
        match result {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Runs a transaction that may give up with [`abort`](crate::abort).
    ///
    /// ```
    /// use hearth_stm::{Stm, Var, abort};
    ///
    /// let stm = Stm::new();
    /// let sum = Var::new(10u32);
    /// let result = stm.try_atomically(|tx| {
    ///     let left = tx.read(&sum)?;
    ///     tx.write(&sum, 0)?;
    ///     if left < 20 { abort(left) } else { Ok(()) }
    /// });
    /// assert_eq!(result, Err(10));
    /// assert_eq!(sum.into_inner(), 10);
    /// ```
    ///
    /// # Errors
    /// The value that the body aborts with. It follows from a consistent snapshot; no write of the
    /// body has taken effect.
    ///
    /// # Panics
    /// As [`Stm::atomically`].
    #[inline]
    #[track_caller]
    pub fn try_atomically<'v, R, E>(
        &'v self,
        body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Stop<E>>,
    ) -> Result<R, E> {
        self.run(Origin::here(None), body)
    }

    /// Runs a transaction as [`Stm::try_atomically`], under a name that traces tell it by.
    ///
    /// # Errors
    /// The value that the body aborts with.
    ///
    /// # Panics
    /// As [`Stm::atomically`].
    #[inline]
    #[track_caller]
    pub fn try_atomically_at<'v, R, E>(
        &'v self,
        name: &'static str,
        body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Stop<E>>,
    ) -> Result<R, E> {
        self.run(Origin::here(Some(name)), body)
    }

    #[inline]
    fn run<'v, R, E>(
        &'v self,
        origin: Origin,
        mut body: impl FnMut(&mut Tx<'v, A>) -> Result<R, Stop<E>>,
    ) -> Result<R, E> {
        let mut tx = Tx::open(&self.algorithm, &self.waiting, &self.traces, origin);
        tx.begin(self.failures_max);
        loop {
            let halt = match body(&mut tx) {
                Ok(value) => match tx.commit() {
                    Ok(()) => return Ok(value),
                    Err(halt) => halt,
                },
                Err(Stop::Abort(value)) => match tx.give_up() {
                    Ok(()) => return Err(value),
                    Err(halt) => halt,
                },
                Err(Stop::Halt(halt)) => halt,
            };
            tx.again(halt.0, self.failures_max);
        }
    }
}

/// The calling thread's commits and conflicts under an algorithm, of all its instances.
///
/// # Panics
/// A transaction runs on this thread.
pub fn thread_counts<A: Algorithm>() -> Counts {
    let mut logs = A::take_logs();
    let counts = A::attempt(&mut logs).counts;
    A::put_logs(logs);
    counts
}

/// Calls a function with the calling thread's tracer under an algorithm.
///
/// # Panics
/// A transaction runs on this thread.
pub fn with_tracer<A: Algorithm, R>(with: impl FnOnce(&mut A::Tracer) -> R) -> R {
    let mut logs = A::take_logs();
    let result = catch_unwind(AssertUnwindSafe(|| with(A::tracer(&mut logs))));
    A::put_logs(logs);
    match result {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    }
}
