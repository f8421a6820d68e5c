//! A running transaction: how a body reads and writes, and how attempts begin and end.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use hearth_atomics::Ordering;

use crate::algorithm::Algorithm;
use crate::counter::{FLAGS, SERIAL, SLEEPERS};
use crate::halt::{Cause, Halt};
use crate::trace::{Aborted, Origin, Reason, Tracer};
use crate::var::{Var, Wide};
use crate::waiting::Waiting;
use crate::word::{Word, Words};

/// A running transaction, as its body sees it.
///
/// Variables are borrowed for `'v`, which outlives the transaction: its logs point to them until
/// it ends. Functions that are part of a transaction take `&mut Tx` and return a `Result`; that is
/// all there is to nesting.
///
/// ```compile_fail,E0597
/// # use hearth_stm::{Stm, Var};
/// let stm = Stm::new();
/// stm.atomically(|tx| {
///     let short = Var::new(1);
///     tx.write(&short, 2)
/// });
/// ```
pub struct Tx<'v, A: Algorithm> {
    algorithm: &'v A,
    waiting: &'v Waiting,
    /// Given back to the thread when the transaction is dropped, and nowhere else.
    logs: ManuallyDrop<Box<A::Logs>>,
    /// Attempts of this transaction that met a conflict, and waits at the gate.
    failures: u32,
    is_running: bool,
    is_serial: bool,
    /// Stays in its thread, whose descriptor it has.
    thread: PhantomData<*mut ()>,
}

impl<'v, A: Algorithm> Tx<'v, A> {
    /// Reads a variable.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline(always)]
    pub fn read<T: Word>(&mut self, var: &'v Var<T>) -> Result<T, Halt> {
        // SAFETY: the variable lives for `'v`.
        let value = unsafe { self.algorithm.read(&mut self.logs, var.raw())? };
        A::tracer(&mut self.logs).read(var.raw().address());
        Ok(T::from_word(value))
    }

    /// Reads two variables. That is faster than one after the other if they are on one cache line.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline(always)]
    pub fn read_pair<T: Word, U: Word>(
        &mut self,
        one: &'v Var<T>,
        other: &'v Var<U>,
    ) -> Result<(T, U), Halt> {
        let raws = [one.raw(), other.raw()];
        // SAFETY: the variables live for `'v`.
        let [first, second] = unsafe { self.algorithm.read_pair(&mut self.logs, raws)? };
        let tracer = A::tracer(&mut self.logs);
        tracer.read(raws[0].address());
        tracer.read(raws[1].address());
        Ok((T::from_word(first), U::from_word(second)))
    }

    /// Reads all variables of a slice in order, and folds their values.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline]
    pub fn fold<T: Word, R>(
        &mut self,
        vars: &'v [Var<T>],
        begin: R,
        mut fold: impl FnMut(R, T) -> R,
    ) -> Result<R, Halt> {
        let raws = Var::raw_slice(vars);
        let mut folded = Some(begin);
        let piece = |values: &[u64]| {
            if let Some(begin) = folded.take() {
                let values = values.iter().map(|&value| T::from_word(value));
                folded = Some(values.fold(begin, &mut fold));
            }
        };
        // SAFETY: the variables live for `'v`.
        unsafe { self.algorithm.read_slice(&mut self.logs, raws, piece)? };
        if let Some(first) = raws.first() {
            A::tracer(&mut self.logs).read_slice(first.address(), raws.len());
        }
        folded.ok_or(Halt::CONFLICT)
    }

    /// Reads a variable of several words.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline]
    pub fn read_wide<T: Words<N>, const N: usize>(
        &mut self,
        var: &'v Wide<T, N>,
    ) -> Result<T, Halt> {
        let mut words = [0; N];
        let mut filled = 0;
        self.fold(var.words(), (), |(), word| {
            words[filled] = word;
            filled += 1;
        })?;
        Ok(T::from_words(words))
    }

    /// Writes a variable.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline(always)]
    pub fn write<T: Word>(&mut self, var: &'v Var<T>, value: T) -> Result<(), Halt> {
        let (raw, value) = (var.raw(), value.into_word());
        // SAFETY: the variable lives for `'v`.
        unsafe { self.algorithm.write(&mut self.logs, raw, value)? };
        let tracer = A::tracer(&mut self.logs);
        tracer.write(raw.address(), value);
        Ok(())
    }

    /// Writes a variable of several words.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline]
    pub fn write_wide<T: Words<N>, const N: usize>(
        &mut self,
        var: &'v Wide<T, N>,
        value: T,
    ) -> Result<(), Halt> {
        for (var, word) in var.words().iter().zip(value.into_words()) {
            self.write(var, word)?;
        }
        Ok(())
    }

    /// Changes a variable, and gives its new value.
    ///
    /// # Errors
    /// The attempt met a conflict: pass the `Halt` on.
    #[inline(always)]
    pub fn update<T: Word>(
        &mut self,
        var: &'v Var<T>,
        change: impl FnOnce(T) -> T,
    ) -> Result<T, Halt> {
        let value = change(self.read(var)?);
        self.write(var, value)?;
        Ok(value)
    }

    /// Undoes the transaction and runs it again once something that it has read has changed. The
    /// thread sleeps until then.
    ///
    /// # Errors
    /// Always: pass the `Halt` on.
    pub fn retry<T>(&mut self) -> Result<T, Halt> {
        Err(Halt::RETRY)
    }

    /// Runs `first`, or if it wants to retry, undoes its writes and runs `second`. If both want to
    /// retry, the transaction waits for a change of what either has read.
    ///
    /// # Errors
    /// Those of the closure that ran last; `first`'s if it met a conflict or aborted.
    pub fn or_else<R, E: OrElse>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<R, E>,
        second: impl FnOnce(&mut Self) -> Result<R, E>,
    ) -> Result<R, E> {
        let savepoint = A::savepoint(&mut self.logs);
        let result = first(self);
        let is_second = matches!(&result, Err(error) if error.is_retry());
        if is_second {
            // SAFETY: all words of the logs live for `'v`.
            unsafe { self.algorithm.roll_back_to(&mut self.logs, &savepoint) };
        }
        A::forget(&mut self.logs, savepoint);
        if is_second { second(self) } else { result }
    }

    /// A small number that mostly differs from thread to thread, for structures that spread their
    /// load.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn lane(&self) -> usize {
        // Descriptors are blocks of the allocator, of more than 128 bytes.
        let address = self.descriptor() as u64 >> 7;
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
    }
}

/// Errors that [`Tx::or_else`] can tell apart.
pub trait OrElse {
    /// Whether the closure wants to wait for a change.
    fn is_retry(&self) -> bool;
}

impl OrElse for Halt {
    fn is_retry(&self) -> bool {
        self.0 == Cause::Retry
    }
}

impl<E> OrElse for crate::halt::Stop<E> {
    fn is_retry(&self) -> bool {
        matches!(self, crate::halt::Stop::Halt(halt) if halt.is_retry())
    }
}

/// The life of a transaction, for [`Stm`](crate::Stm).
impl<'v, A: Algorithm> Tx<'v, A> {
    #[inline(always)]
    pub(crate) fn open(
        algorithm: &'v A,
        waiting: &'v Waiting,
        shared: &<A::Tracer as Tracer>::Shared,
        origin: Origin,
    ) -> Tx<'v, A> {
        let mut tx = Tx {
            algorithm,
            waiting,
            logs: ManuallyDrop::new(A::take_logs()),
            failures: 0,
            is_running: false,
            is_serial: false,
            thread: PhantomData,
        };
        // A tracer that panics here leaves the thread its descriptor.
        let descriptor = tx.descriptor();
        let tracer = A::tracer(&mut tx.logs);
        tracer.open(shared, descriptor);
        tracer.origin(origin);
        tx
    }

    /// Begins an attempt; waits at the gate while another transaction runs alone.
    #[inline(always)]
    pub(crate) fn begin(&mut self, failures_max: u32) {
        let mut counter = self.algorithm.begin(&mut self.logs);
        if counter & SERIAL != 0 && !self.is_serial {
            counter = self.begin_slow(failures_max);
        }
        self.is_running = true;
        let descriptor = self.descriptor();
        A::attempt(&mut self.logs).conflict = None;
        A::tracer(&mut self.logs).start(descriptor, counter & !FLAGS);
    }

    #[cold]
    fn begin_slow(&mut self, failures_max: u32) -> u64 {
        loop {
            // Waiting counts, lest those who run alone pass a transaction by for ever.
            self.failures += 1;
            if self.failures >= failures_max {
                self.enter_serial();
            } else {
                self.waiting.wait_at_gate(self.algorithm);
            }
            let counter = self.algorithm.begin(&mut self.logs);
            if counter & SERIAL == 0 || self.is_serial {
                return counter;
            }
        }
    }

    /// Commits; if that fails the attempt is as it was, and [`Tx::again`] is next.
    #[inline(always)]
    pub(crate) fn commit(&mut self) -> Result<(), Halt> {
        // SAFETY: all words of the logs live for `'v`.
        let counter = unsafe { self.algorithm.commit(&mut self.logs)? };
        self.is_running = false;
        let descriptor = self.descriptor();
        A::attempt(&mut self.logs).counts.commits += 1;
        A::tracer(&mut self.logs).commit(descriptor, counter & !FLAGS);
        if counter & SLEEPERS != 0 {
            let written = A::written_summary(&self.logs);
            self.waiting.wake(self.algorithm, written);
        }
        Ok(())
    }

    /// Ends the transaction without effect, unless it has met a conflict that its body hides.
    pub(crate) fn give_up(&mut self) -> Result<(), Halt> {
        if A::attempt(&mut self.logs).conflict.is_some() {
            return Err(Halt::CONFLICT);
        }
        self.undo(Reason::User);
        Ok(())
    }

    /// Undoes the attempt, waits as long as its end asks for, and begins the next.
    #[cold]
    pub(crate) fn again(&mut self, cause: Cause, failures_max: u32) {
        let is_doomed = A::attempt(&mut self.logs).conflict.is_some();
        self.undo(Reason::Retry);
        if is_doomed || cause == Cause::Conflict {
            A::attempt(&mut self.logs).counts.conflicts += 1;
            self.failures += 1;
            if self.failures >= failures_max && !self.is_serial {
                self.enter_serial();
            } else {
                self.back_off();
            }
        } else {
            self.leave_serial();
            self.failures = 0;
            // SAFETY: all words of the logs live for `'v`; the attempt is undone.
            unsafe { self.waiting.sleep(self.algorithm, &mut self.logs) };
        }
        self.begin(failures_max);
    }

    /// Undoes the attempt; `reason` holds if it met no conflict.
    #[cold]
    fn undo(&mut self, reason: Reason) {
        // SAFETY: all words of the logs live for `'v`.
        unsafe { self.algorithm.roll_back(&mut self.logs) };
        self.is_running = false;
        let descriptor = self.descriptor();
        let counter = self.algorithm.counter().load(Ordering::Relaxed) & !FLAGS;
        let aborted = A::attempt(&mut self.logs).conflict.unwrap_or(Aborted {
            reason,
            site: 0,
            owner: 0,
        });
        A::tracer(&mut self.logs).abort(descriptor, counter, aborted);
    }

    /// The address of the descriptor, which names the thread.
    #[inline(always)]
    fn descriptor(&self) -> usize {
        std::ptr::from_ref::<A::Logs>(&self.logs).addr()
    }

    /// Waits a random while, twice as long on average after each failure, up to some microseconds;
    /// then also gives up its core, which whoever is in the way may need.
    fn back_off(&mut self) {
        #[cfg(not(loom))]
        {
            let bound = 1 << (2 + self.failures).min(8);
            for _ in 0..A::attempt(&mut self.logs).random_below(bound) {
                hearth_atomics::spin_loop();
            }
        }
        if cfg!(loom) || self.failures > 3 {
            hearth_sys::threading::yield_now();
        }
    }

    fn enter_serial(&mut self) {
        self.waiting.enter_serial(self.algorithm);
        self.is_serial = true;
    }

    fn leave_serial(&mut self) {
        if self.is_serial {
            self.is_serial = false;
            self.waiting.leave_serial(self.algorithm);
        }
    }
}

impl<A: Algorithm> Drop for Tx<'_, A> {
    #[inline(always)]
    fn drop(&mut self) {
        // A panic leaves through here.
        if self.is_running {
            self.undo(Reason::Panic);
        }
        if self.is_serial {
            self.leave_serial();
        }
        // SAFETY: nobody uses the logs after this.
        let logs = unsafe { ManuallyDrop::take(&mut self.logs) };
        A::put_logs(logs);
    }
}
