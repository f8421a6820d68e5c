//! Waiting: a thread spins for as long as being woken would cost, then it sleeps.

use std::sync::OnceLock;
use std::time::Duration;

use hearth_sys::spin::Spin;

/// Way in which a thread waits for a lock, for a reply, or for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    spin: Spin,
}

impl Wait {
    /// Spins for as long as a wake-up costs, then sleeps: never more than twice as bad as the
    /// better of the two. The cost is [`set_wake_cost`](crate::set_wake_cost)'s, or else 50 µs.
    /// Where the process has one core this is [`park`](Wait::park): nothing happens while the
    /// waiter has it.
    pub fn spin_then_park() -> Wait {
        Wait {
            spin: Spin::before_sleep(),
        }
    }

    /// Spins this long, then sleeps.
    pub fn spin_for(spin: Duration) -> Wait {
        Wait {
            spin: Spin::lasting(spin),
        }
    }

    /// Sleeps at once.
    pub fn park() -> Wait {
        Wait { spin: Spin::NONE }
    }

    /// Never sleeps. For machines whose cores have nothing else to do.
    pub fn spin() -> Wait {
        Wait {
            spin: Spin::FOREVER,
        }
    }

    /// Time for which a waiter spins before it sleeps.
    pub fn spinning(self) -> Duration {
        self.spin.time()
    }

    /// Spins until `is_there` or the time is over. True if it is there.
    #[inline]
    pub(crate) fn until(self, is_there: impl FnMut() -> bool) -> bool {
        self.spin.until(is_there)
    }
}

impl Default for Wait {
    fn default() -> Wait {
        Wait::spin_then_park()
    }
}

static LINE_NS: OnceLock<f64> = OnceLock::new();

/// Sets what it costs on this machine to load a cache line that another core has changed, in
/// nanoseconds, for example from its profile: [`Owned::explain`](crate::Owned::explain) then counts
/// lines. False if it was set already, or is not a positive number.
pub fn set_line_cost(ns: f64) -> bool {
    ns.is_finite() && ns > 0.0 && LINE_NS.set(ns).is_ok()
}

/// The cost of loading a line that another core has changed, if it was set.
pub(crate) fn line_ns() -> Option<f64> {
    LINE_NS.get().copied()
}
