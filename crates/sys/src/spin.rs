//! Spinning: how long a thread looks for what it waits for before it sleeps.
//!
//! A thread that spins for as long as waking it would cost loses at most as much again as the
//! better of spinning and sleeping (Karlin et al., 1990). So one figure, the cost of a wake-up,
//! rules all waits; who knows it for this machine says so with [`set_wake_cost`].

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hearth_atomics::spin_loop;

use crate::threading::yield_now;

/// Assumed cost of waking a thread on another core.
pub const WAKE_COST: Duration = Duration::from_micros(50);
/// Upper bound of what [`set_wake_cost`] is believed: a cost measured in a troubled moment must not
/// make every waiter spin for long.
const WAKE_COST_MAX: Duration = Duration::from_millis(1);

/// Looks between two readings of the clock: a reading costs as much as two pauses.
const LOOKS: u32 = 16;
/// A waiter keeps its core to itself at least this long. The clock is read for the first time after
/// two times [`LOOKS`], between which some locks pause for long (a mutex 1,700 times in all, a
/// ticket lock 8,000 at most). After that it yields between looks: with more threads than cores,
/// the thread it waits for may be among those that want this core.
const ALONE: Duration = Duration::from_micros(2);

static SET: OnceLock<Duration> = OnceLock::new();

/// Sets what waking a thread costs on this machine, at most 1 ms, for example from its profile.
/// Call it before the first wait: false if a cost was set or assumed already.
pub fn set_wake_cost(cost: Duration) -> bool {
    SET.set(cost.min(WAKE_COST_MAX)).is_ok()
}

/// The cost of waking a thread, as set, or else 50 µs.
pub fn wake_cost() -> Duration {
    *SET.get_or_init(|| WAKE_COST)
}

/// Number of cores that this process may use, read once.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| crate::affinity::allowed().len())
}

/// Time to poll before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin(Duration);

impl Spin {
    /// Does not spin: looks once.
    pub const NONE: Spin = Spin(Duration::ZERO);
    /// Spins until it finds something, however long that takes.
    pub const FOREVER: Spin = Spin(Duration::MAX);

    /// Spins this long.
    pub const fn lasting(time: Duration) -> Spin {
        Spin(time)
    }

    /// Spins as long as a wake-up costs.
    pub fn as_wake_up() -> Spin {
        Spin(wake_cost())
    }

    /// Spins as long as a wake-up costs; not at all if the process has one core, on which nothing
    /// happens while the waiter has it.
    pub fn before_sleep() -> Spin {
        Spin::on_cores(cores(), wake_cost())
    }

    fn on_cores(cores: usize, wake_cost: Duration) -> Spin {
        match cores {
            1 => Spin::NONE,
            _ => Spin(wake_cost),
        }
    }

    /// Time for which it spins.
    pub const fn time(self) -> Duration {
        self.0
    }

    /// Looks until `is_there` or the time is over. True if it is there.
    #[inline]
    pub fn until(self, mut is_there: impl FnMut() -> bool) -> bool {
        // The model checker explores each look; one is enough.
        if self.0.is_zero() || cfg!(loom) {
            return is_there();
        }
        for _ in 0..LOOKS {
            if is_there() {
                return true;
            }
            spin_loop();
        }
        self.until_slow(is_there)
    }

    #[cold]
    fn until_slow(self, mut is_there: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        // On one core nothing happens while this thread has it.
        let alone = if cores() == 1 { Duration::ZERO } else { ALONE };
        loop {
            for _ in 0..LOOKS {
                if is_there() {
                    return true;
                }
                spin_loop();
            }
            let waited = start.elapsed();
            if waited >= self.0 {
                return is_there();
            }
            if waited >= alone {
                yield_now();
            }
        }
    }

    /// Calls `look` until it finds something or the time is over; not at all if there is no time.
    /// For looks that are system calls: each costs more than reading the clock, and lets others
    /// have their turn.
    pub fn find<R>(self, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        if self.0.is_zero() {
            return None;
        }
        let start = Instant::now();
        while start.elapsed() < self.0 {
            let found = look();
            if found.is_some() {
                return found;
            }
            spin_loop();
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn with_one_core_a_waiter_looks_once_by_default() {
        assert_eq!(Spin::on_cores(2, WAKE_COST).time(), WAKE_COST);
        let mut looks = 0;
        assert!(!Spin::on_cores(1, WAKE_COST).until(|| {
            looks += 1;
            false
        }));
        assert_eq!(looks, 1);
    }
}
