//! How a thread waits: it looks again and again for as long as being woken would cost, then it sleeps.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hearth_machine::profile::Brief;

use crate::atomics::{spin_loop, yield_now};

/// Looks between two readings of the clock: a reading costs as much as two pauses.
const LOOKS: u32 = 16;
/// For so long a waiter keeps its core to itself, at least: the clock is read for the first time after two times
/// [`LOOKS`], between which some locks pause for long (a mutex 1,700 times in all, a ticket lock 8,000 at most). Beyond
/// it lets others have it between looks: with more threads than cores the one that is waited for may be among them.
const ALONE: Duration = Duration::from_micros(2);
/// What waking a thread on another core costs where nothing better is known.
const WAKE: Duration = Duration::from_micros(50);

/// No measured cost is believed beyond this.
const WAKE_MAX: Duration = Duration::from_millis(1);

/// How somebody waits for a lock, for a reply, or for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    spin: Duration,
}

impl Wait {
    /// Looks for as long as a wake-up costs on this machine, then sleeps: never more than twice as bad as the
    /// better of the two. The figure is [`set_wake_cost`]'s, or the one in the machine's profile, which
    /// `hearth probe` writes; where there is neither, 50 µs. Where the process has one core this is
    /// [`park`](Wait::park): nothing can come while the one who looks has it.
    pub fn spin_then_park() -> Wait {
        Wait {
            spin: patience(cores(), wake_cost()),
        }
    }

    /// Looks for so long, then sleeps.
    pub fn spin_for(spin: Duration) -> Wait {
        Wait { spin }
    }

    /// Sleeps at once.
    pub fn park() -> Wait {
        Wait {
            spin: Duration::ZERO,
        }
    }

    /// Never sleeps. For machines whose cores have nothing else to do.
    pub fn spin() -> Wait {
        Wait {
            spin: Duration::MAX,
        }
    }

    /// Looks for as long as a wake-up costs, for who does not sleep after that.
    pub(crate) fn for_a_wake_up() -> Wait {
        Wait { spin: wake_cost() }
    }

    /// For how long one looks before one sleeps.
    pub fn spinning(self) -> Duration {
        self.spin
    }

    /// Looks until there is something or patience ends. True if there is something.
    #[inline]
    pub(crate) fn look(self, mut has_come: impl FnMut() -> bool) -> bool {
        // The model checker explores each look; one is enough.
        if self.spin.is_zero() || cfg!(loom) {
            return has_come();
        }
        for _ in 0..LOOKS {
            if has_come() {
                return true;
            }
            spin_loop();
        }
        self.look_slow(has_come)
    }

    #[cold]
    fn look_slow(self, mut has_come: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        // On one core nothing can come while this thread has it.
        let alone = if cores() == 1 { Duration::ZERO } else { ALONE };
        loop {
            for _ in 0..LOOKS {
                if has_come() {
                    return true;
                }
                spin_loop();
            }
            let waited = start.elapsed();
            if waited >= self.spin {
                return has_come();
            }
            if waited >= alone {
                yield_now();
            }
        }
    }
}

impl Default for Wait {
    fn default() -> Wait {
        Wait::spin_then_park()
    }
}

static WAKE_COST: OnceLock<Duration> = OnceLock::new();

/// Tells what waking a thread costs on this machine, for example from its profile; before the first
/// section is made. False if it was told or assumed already.
pub fn set_wake_cost(cost: Duration) -> bool {
    WAKE_COST.set(cost).is_ok()
}

fn wake_cost() -> Duration {
    *WAKE_COST.get_or_init(|| measured().unwrap_or(WAKE))
}

/// For how long to look before one sleeps.
fn patience(cores: usize, wake: Duration) -> Duration {
    match cores {
        1 => Duration::ZERO,
        _ => wake,
    }
}

/// As the machine's profile has it.
fn measured() -> Option<Duration> {
    let ns = profile().wake_ns?;
    // A profile of a troubled moment must not have everybody spin for long.
    (ns.is_finite() && ns > 0.0).then(|| Duration::from_nanos(ns as u64).min(WAKE_MAX))
}

/// What a load takes of a line that another core has written, in nanoseconds, if the machine was measured.
pub(crate) fn transfer_ns() -> Option<f64> {
    profile()
        .transfer_ns
        .filter(|ns| ns.is_finite() && *ns > 0.0)
}

/// The machine's profile, read once; empty where there is none.
fn profile() -> &'static Brief {
    static PROFILE: OnceLock<Brief> = OnceLock::new();
    PROFILE.get_or_init(|| {
        let read = || {
            let text = std::fs::read_to_string(hearth_sys::paths::profile_path()?).ok()?;
            Brief::from_json(&text)
        };
        read().unwrap_or_default()
    })
}

/// How many cores this process may use, asked once.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| hearth_sys::affinity::allowed().len())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn with_one_core_nobody_looks_by_default() {
        assert_eq!(patience(1, WAKE), Duration::ZERO);
        assert_eq!(patience(2, WAKE), WAKE);
        let wait = Wait {
            spin: patience(1, WAKE),
        };
        let mut looks = 0;
        assert!(!wait.look(|| {
            looks += 1;
            false
        }));
        assert_eq!(looks, 1);
    }
}
