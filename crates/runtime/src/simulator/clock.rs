//! Virtual time: it passes by the step, and jumps to the next event when nothing can run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::ground::sync::lock_std as lock;

/// Duration of a step. A program that polls for its time sees it come.
const STEP_NS: u64 = 1_000;

/// Nanoseconds since the start.
static NOW: AtomicU64 = AtomicU64::new(0);

/// A scheduled event and its time, in nanoseconds: the presses of a simulated button.
type Event = Box<dyn FnOnce() + Send>;
static AGENDA: Mutex<Vec<(u64, Event)>> = Mutex::new(Vec::new());

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Returns the time. No two calls return the same, so that due times are ordered as the calls were.
pub(super) fn now() -> Instant {
    start() + Duration::from_nanos(NOW.fetch_add(1, Ordering::Relaxed))
}

/// Returns the time since the start.
pub(super) fn elapsed() -> Duration {
    Duration::from_nanos(NOW.load(Ordering::Relaxed))
}

/// Advances the time by one step.
pub(super) fn pass() {
    NOW.fetch_add(STEP_NS, Ordering::Relaxed);
}

/// Tells whether this is past.
pub(super) fn has_come(time: Instant) -> bool {
    time <= start() + elapsed()
}

/// Jumps to this time: nothing happens before it.
pub(super) fn jump_to(time: Instant) {
    let nanoseconds = time.saturating_duration_since(start()).as_nanos();
    NOW.fetch_max(
        u64::try_from(nanoseconds).unwrap_or(u64::MAX),
        Ordering::Relaxed,
    );
}

/// Schedules an event a while from now.
pub(super) fn after(while_: Duration, event: Event) {
    let nanoseconds = u64::try_from(while_.as_nanos()).unwrap_or(u64::MAX);
    let due = NOW.load(Ordering::Relaxed).saturating_add(nanoseconds);
    lock(&AGENDA).push((due, event));
}

/// Returns when the next event of the agenda is due.
pub(super) fn next_event() -> Option<Instant> {
    let next = lock(&AGENDA).iter().map(|(due, _)| *due).min();
    next.map(|due| start() + Duration::from_nanos(due))
}

/// Runs the due events, one after the other.
pub(super) fn hold_events() {
    loop {
        let event = {
            let mut agenda = lock(&AGENDA);
            let now = NOW.load(Ordering::Relaxed);
            let first = (0..agenda.len()).min_by_key(|&index| agenda[index].0);
            match first {
                Some(index) if agenda[index].0 <= now => agenda.remove(index).1,
                _ => return,
            }
        };
        event();
    }
}
