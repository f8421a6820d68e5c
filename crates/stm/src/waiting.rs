//! Waiting of whole transactions: for a change, and for their turn to run alone.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `tickets` | each transaction that wants to run alone | |
//! | `serving` | the transaction that ran alone, when it ends | those with tickets, and those at the gate |
//! | `changes` | commits that wake | sleepers |
//! | `awaited` | sleepers add what they have read; commits that wake clear it | commits that saw `SLEEPERS` |
//!
//! *A sleeper* reads `changes`, adds its summary to `awaited`, raises `SLEEPERS` in the counter,
//! looks whether its reads are current, and sleeps while `changes` is as it was. A commit that
//! writes exchanges or steps the counter. If it does so before the sleeper raises the flag, the
//! sleeper sees its locks or its words, and does not sleep. If it does so later, it sees the flag
//! and all of `awaited`; and if its own summary meets it, takes the flag back, clears `awaited`,
//! changes `changes`, and wakes all. Whoever finds its reads current sleeps again.
//!
//! *A transaction that runs alone* takes a ticket, waits until it is served, and raises `SERIAL`.
//! Attempts begin before that or wait at the gate until it ends. So it meets at most one more
//! commit of each other thread, and then commits.

use hearth_atomics::{AtomicU32, AtomicU64, Ordering};
use hearth_sys::futex::Word;

use crate::algorithm::Protocol;
use crate::counter::{SERIAL, SLEEPERS};
use crate::fault::{Fault, Planted};

pub(crate) struct Waiting {
    tickets: AtomicU32,
    serving: Word,
    changes: Word,
    awaited: AtomicU64,
    planted: Planted,
}

impl Waiting {
    pub(crate) fn new(planted: Planted) -> Waiting {
        Waiting {
            tickets: AtomicU32::new(0),
            serving: Word::new(0),
            changes: Word::new(0),
            awaited: AtomicU64::new(0),
            planted,
        }
    }

    /// Waits for a turn to run alone, in order of arrival, and closes the gate.
    #[cold]
    pub(crate) fn enter_serial<A: Protocol>(&self, algorithm: &A) {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        loop {
            // Acquire pairs with the Release of whoever was served before.
            let serving = self.serving.load(Ordering::Acquire);
            if serving == ticket {
                break;
            }
            self.serving.wait(serving);
        }
        algorithm.raise(SERIAL);
    }

    /// Opens the gate, and serves the next.
    #[cold]
    pub(crate) fn leave_serial<A: Protocol>(&self, algorithm: &A) {
        algorithm.lower(SERIAL);
        self.serving.fetch_add(1, Ordering::Release);
        self.serving.wake_all();
    }

    /// Waits until the transaction that closed the gate has ended.
    #[cold]
    pub(crate) fn wait_at_gate<A: Protocol>(&self, algorithm: &A) {
        // Acquire: a later number comes with the flag's fall.
        let serving = self.serving.load(Ordering::Acquire);
        if algorithm.counter().load(Ordering::Acquire) & SERIAL != 0 {
            self.serving.wait(serving);
        }
    }

    /// Sleeps until something has changed that the attempt has read.
    ///
    /// # Safety
    /// As for [`Protocol`]; the attempt is rolled back.
    #[cold]
    pub(crate) unsafe fn sleep<A: Protocol>(&self, algorithm: &A, logs: &mut A::Logs) {
        // SAFETY: the caller's promise.
        let summary = unsafe { A::read_summary(logs) };
        assert!(
            summary != 0,
            "a transaction that has read nothing would wait for ever for a change of it"
        );
        loop {
            let changes = self.changes.load(Ordering::Acquire);
            self.awaited.fetch_or(summary, Ordering::AcqRel);
            algorithm.raise(SLEEPERS);
            // SAFETY: the caller's promise.
            if !unsafe { algorithm.is_current(logs) } {
                return;
            }
            self.changes.wait(changes);
        }
    }

    /// Wakes all sleepers if one of them may have read what was written.
    #[cold]
    pub(crate) fn wake<A: Protocol>(&self, algorithm: &A, written: u64) {
        let is_awaited = self.awaited.load(Ordering::Acquire) & written != 0;
        if !is_awaited || self.planted.is(Fault::NoWake) {
            return;
        }
        algorithm.lower(SLEEPERS);
        self.awaited.swap(0, Ordering::AcqRel);
        self.changes.fetch_add(1, Ordering::Release);
        self.changes.wake_all();
    }
}
