//! How the allocation section is entered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hearth_sys::clock::Clock as Ticks;

use super::allocation::Allocation;

/// The section, behind a lock.
#[derive(Debug)]
pub struct Section {
    allocation: Mutex<Allocation>,
    ticks: Ticks,
    entries: AtomicU64,
    inside: AtomicU64,
}

/// What was measured of the section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// How often it was entered.
    pub entries: u64,
    /// For how long, in ticks of the time stamp counter, without what it took to get in and out.
    pub ticks: u64,
}

impl Section {
    /// A section over its data.
    #[must_use]
    pub fn new(allocation: Allocation, ticks: Ticks) -> Section {
        Section {
            allocation: Mutex::new(allocation),
            ticks,
            entries: AtomicU64::new(0),
            inside: AtomicU64::new(0),
        }
    }

    /// Runs something in the section. Not to be called by who has a part of the store locked.
    pub fn enter<R: Send>(&self, run: impl FnOnce(&mut Allocation) -> R + Send) -> R {
        let timed = |allocation: &mut Allocation| {
            let begin = self.ticks.ticks();
            let result = run(allocation);
            let took = self.ticks.ticks().saturating_sub(begin);
            // One at a time is here, so these are plain additions.
            self.entries
                .store(self.entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.inside.store(
                self.inside.load(Ordering::Relaxed) + took,
                Ordering::Relaxed,
            );
            result
        };
        timed(
            &mut self
                .allocation
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// What was measured so far.
    #[must_use]
    pub fn measured(&self) -> Measured {
        Measured {
            entries: self.entries.load(Ordering::Relaxed),
            ticks: self.inside.load(Ordering::Relaxed),
        }
    }
}
