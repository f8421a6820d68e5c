//! Knowing when nothing runs any more.
//!
//! `ACTIVE` counts the carriers that are not asleep, and threads that are about to wake one from
//! outside. Invariant: it is at least the number of threads that may still change anything. A waker
//! counts a sleeper in before the sleeper can run, and is itself counted; so once the count is
//! nought, it stays so until something outside the program enters.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::lock_std as lock;
use crate::{exits, external, output, registry, report, simulator, timers};

static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// Held while it is decided whether the program can go on. Whoever enters from outside while nothing
/// runs waits for the verdict.
static DECIDING: Mutex<()> = Mutex::new(());

/// One more runs: woken or started by the caller, who is counted.
pub(crate) fn enter_woken() {
    ACTIVE.fetch_add(1, Ordering::SeqCst);
}

/// One fewer runs: the caller sleeps or ends.
pub(crate) fn leave() {
    if ACTIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
        decide();
    }
}

/// A thread of the outside, while it completes waits.
pub(crate) struct Visit(());

impl Visit {
    pub(crate) fn begin() -> Visit {
        if simulator::is_on() {
            simulator::door::enter(None);
            return Visit(());
        }
        if ACTIVE.fetch_add(1, Ordering::SeqCst) == 0 {
            drop(lock(&DECIDING));
        }
        Visit(())
    }
}

impl Visit {
    /// None if it would take longer than this to be let into a simulation.
    pub(crate) fn begin_within(patience: std::time::Duration) -> Option<Visit> {
        if simulator::is_on() {
            return simulator::door::enter(Some(patience)).then_some(Visit(()));
        }
        Some(Visit::begin())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if simulator::is_on() {
            simulator::door::leave();
            return;
        }
        leave();
    }
}

/// Nothing runs: write what was printed, and see whether anything outside can change that.
#[cold]
fn decide() {
    let deciding = lock(&DECIDING);
    if ACTIVE.load(Ordering::SeqCst) != 0 {
        return;
    }
    output::flush();
    let can_go_on = exits::is_ending()
        || registry::users() == 0
        || external::can_wake_any()
        || timers::any_is_awaited();
    #[cfg(not(loom))]
    if crate::embed::is_on() {
        let verdict = crate::embed::judge(can_go_on);
        drop(deciding);
        verdict.tell();
        return;
    }
    if can_go_on {
        return;
    }
    report::deadlock();
    // Not before the process is gone: nobody enters any more.
    let _deciding = deciding;
    exits::end(exits::FAILED)
}
