//! The part of a thread's descriptor that both algorithms have, and where descriptors live
//! between transactions.

use std::cell::Cell;

#[cfg(loom)]
pub(crate) use loom::thread::LocalKey;
#[cfg(not(loom))]
pub(crate) use std::thread::LocalKey;

use crate::halt::Halt;
use crate::trace::{Aborted, BuildTracer, Reason};

/// Commits and aborts of one thread under one algorithm.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Transactions that took effect.
    pub commits: u64,
    /// Attempts that ended because of a conflict.
    pub conflicts: u64,
}

/// The running attempt, its thread's counts, and the thread's tracer.
#[derive(Default)]
pub struct Attempt {
    /// The conflict after which nothing but the end is left.
    pub(crate) conflict: Option<Aborted>,
    pub(crate) counts: Counts,
    pub(crate) tracer: BuildTracer,
    #[cfg(not(loom))]
    random: u64,
}

impl Attempt {
    /// Notes a conflict.
    #[cold]
    pub(crate) fn conflict(&mut self, reason: Reason, site: usize, owner: usize) -> Halt {
        if self.conflict.is_none() {
            self.conflict = Some(Aborted {
                reason,
                site,
                owner,
            });
        }
        Halt::CONFLICT
    }

    /// A random number below a power of two, by xorshift.
    #[cfg(not(loom))]
    pub(crate) fn random_below(&mut self, power: u32) -> u32 {
        // The descriptor's address makes threads differ.
        let mut random = self.random ^ std::ptr::from_ref(self).addr() as u64 | 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random = random;
        (random >> 32) as u32 & (power - 1)
    }
}

/// A thread's descriptor for one algorithm, while no transaction has it.
pub(crate) struct Home<L> {
    logs: Cell<Option<Box<L>>>,
    is_taken: Cell<bool>,
}

impl<L> Home<L> {
    pub(crate) const fn new() -> Home<L> {
        Home {
            logs: Cell::new(None),
            is_taken: Cell::new(false),
        }
    }
}

impl<L: Default + 'static> Home<L> {
    /// Lends the thread's descriptor to a transaction.
    ///
    /// # Panics
    /// A transaction of this thread already has it.
    #[inline]
    pub(crate) fn take(key: &'static LocalKey<Home<L>>) -> Box<L> {
        let take = |home: &Home<L>| {
            assert!(
                !home.is_taken.replace(true),
                "a transaction runs on this thread already: pass its `Tx` on instead of starting \
                 another"
            );
            home.logs.take().unwrap_or_default()
        };
        // While the thread ends, its descriptor may be gone.
        key.try_with(take).unwrap_or_default()
    }

    /// Takes the descriptor back.
    #[inline]
    pub(crate) fn put(key: &'static LocalKey<Home<L>>, logs: Box<L>) {
        // A thread that ends has no use for it.
        let _ = key.try_with(|home| {
            home.logs.set(Some(logs));
            home.is_taken.set(false);
        });
    }
}
