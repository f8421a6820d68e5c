//! A section's counts.

use crate::Way;

/// One call in this many is timed: reading the clock costs about as much as a short section.
pub(super) const SAMPLE_EVERY: u64 = 64;

/// Counts since the section was made. Written by the holder of the lock, beside the data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Requests and calls, in any way.
    pub(super) calls: u64,
    /// A bit for each of the callers' numbers, modulo 64.
    pub(super) callers: u64,
    /// The same bits from before `callers` was last reset.
    pub(super) callers_before: u64,
    pub(super) served: u64,
    pub(super) contended: u64,
    pub(super) wait_ticks: u64,
    pub(super) samples: u64,
    pub(super) section_ticks: u64,
    pub(super) rests: u64,
    pub(super) panics: u64,
}

/// A section's statistics. Times are in ticks of this machine's fastest steady clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Closures run or refused, in any way.
    pub calls: u64,
    /// Closures run by another thread than their caller: the proprietor, or the holder of the lock.
    pub delegated: u64,
    /// Calls under the lock that had to wait for it.
    pub contended: u64,
    /// Time that those calls waited, in all.
    pub wait_ticks: u64,
    /// Calls timed, one in 64.
    pub samples: u64,
    /// Time that those ran, in all, waiting excluded.
    pub section_ticks: u64,
    /// Times that the server had served everything and found no further request.
    pub rests: u64,
    /// Closures that panicked.
    pub panics: u64,
    /// Number of different threads seen among the callers: those of timed calls, of calls that
    /// waited and of requests. At most 64, and too low where their numbers collide.
    pub callers: u32,
    /// The way that calls take now.
    pub way: Way,
}

impl Statistics {
    /// Mean ticks per section, if any was timed.
    pub fn section_ticks_mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.section_ticks as f64 / self.samples as f64)
    }

    /// Share of delegated requests that found others waiting or being served, in per cent: the
    /// source's "server busy". None without such requests.
    pub fn server_busy_percent(&self) -> Option<f64> {
        let idle = self.rests.min(self.delegated) as f64;
        (self.delegated > 0).then(|| 100.0 * (1.0 - idle / self.delegated as f64))
    }
}

impl Tally {
    pub(super) fn told(&self, way: Way) -> Statistics {
        Statistics {
            calls: self.calls,
            delegated: self.served,
            contended: self.contended,
            wait_ticks: self.wait_ticks,
            samples: self.samples,
            section_ticks: self.section_ticks,
            rests: self.rests,
            panics: self.panics,
            callers: (self.callers | self.callers_before).count_ones(),
            way,
        }
    }
}
