//! Waits for the outside: for descriptors, and until the next timer is due.
//!
//! One thread waits here ([`wait`]): an idle worker or, with a thread for each component, the
//! poller's own thread. While none waits, busy workers look in passing ([`look`]). The carriers
//! decide which thread does which.
//!
//! ```text
//! static LINK: …
//! let watch = poller::watch(socket, move || match take_what_is_there() {
//!     More => Then::Again,
//!     Nobody wants more => Then::Later, // until `resume(watch)`
//!     End => Then::Over,
//! });
//! ```
//!
//! Rules for a handler:
//! - It runs on a thread that other components need: it must not wait. Work that may wait goes to
//!   [`crate::ground::helpers`].
//! - It has the stack of a thread that runs components, whichever thread calls it: the poller's own
//!   thread and the workers' monitor get as much.
//! - One thread at a time runs it, not always the same one, and without any lock of the poller's.
//! - It enters the program from outside: tickets and `push` do so themselves, anything else needs a
//!   [`crate::outside::idle::Visit`].
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `DUE` | threads that change timers, under the timers' lock | all |
//! | `WAITS_UNTIL` | the waiting thread | threads that change timers |
//! | `LOOK_AT` | threads that look, or add or remove a descriptor | busy workers |

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use hearth_sys::clock;
use hearth_sys::epoll_once::Poll;

use super::idle::Visit;
use crate::ground::exits;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::hooks;

const NEVER: u64 = u64::MAX;
/// Interval at which busy workers look at descriptors if no thread waits for them, in nanoseconds.
const LOOK_EVERY: u64 = 1_000_000;

/// Moment when the next timer is due, by the system's steady clock, in nanoseconds.
static DUE: Part<AtomicU64> = Part::new(|| AtomicU64::new(NEVER));
/// Moment until which a thread waits; 0 if none does.
static WAITS_UNTIL: Part<AtomicU64> = Part::new(|| AtomicU64::new(0));
/// Moment of the next look at descriptors if no thread waits; never if there are none.
static LOOK_AT: Part<AtomicU64> = Part::new(|| AtomicU64::new(NEVER));

/// A handler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Call again when the descriptor is ready again.
    Again,
    /// Call again, but not before the watch is resumed.
    Later,
    /// Finished: drop the handler, and with it its hold on the descriptor.
    Over,
}

/// An object with a descriptor.
type Source = Arc<dyn AsFd + Send + Sync>;
type Handler = Box<dyn FnMut() -> Then + Send>;

struct Watched {
    source: Source,
    handler: Mutex<Handler>,
}

/// The number of a watched descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch(u64);

struct Poller {
    poll: Poll,
    watched: Mutex<HashMap<u64, Arc<Watched>>>,
}

static POLLER: Part<OnceLock<Poller>> = Part::new(OnceLock::new);

fn poller() -> &'static Poller {
    POLLER.get_or_init(|| match Poll::new() {
        Ok(poll) => Poller {
            poll,
            watched: Mutex::default(),
        },
        Err(error) => exits::unfit(&format!(
            "could not wait for timers and descriptors ({error}); raise ulimit -n"
        )),
    })
}

// ---- what to wait for -------------------------------------------------------------------------

/// Calls the handler whenever the descriptor is readable, until it returns `Over`.
///
/// # Errors
/// The descriptor's kind cannot be waited for: a regular file, for example.
pub(crate) fn watch(
    source: Source,
    handler: impl FnMut() -> Then + Send + 'static,
) -> io::Result<Watch> {
    watch_as(Watch::reserve(), source, handler)
}

impl Watch {
    /// Reserves a watch, for a handler that has to know its own.
    pub(crate) fn reserve() -> Watch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A number needs no order.
        Watch(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Watches as [`watch`] does, under a reserved number.
///
/// # Errors
/// As for `watch`.
pub(crate) fn watch_as(
    watch: Watch,
    source: Source,
    handler: impl FnMut() -> Then + Send + 'static,
) -> io::Result<Watch> {
    let poller = poller();
    let watched = Arc::new(Watched {
        source: Arc::clone(&source),
        handler: Mutex::new(Box::new(handler)),
    });
    {
        let mut all = lock(&poller.watched);
        all.insert(watch.0, watched);
        LOOK_AT.store(0, Ordering::Relaxed);
    }
    // From here on the handler may be called.
    if let Err(error) = poller.poll.add(source.as_fd(), watch.0) {
        poller.take_out(watch);
        return Err(error);
    }
    stir();
    Ok(watch)
}

/// Re-arms a paused watch: its handler is called as soon as the descriptor is ready.
pub(crate) fn resume(watch: Watch) {
    if let Some(watched) = poller().find(watch) {
        // Refused if it is over.
        let _ = poller().poll.arm(watched.source.as_fd(), watch.0);
    }
}

/// Removes a watch: its handler is not called again, except where a call is already under way.
pub(crate) fn forget(watch: Watch) {
    poller().take_out(watch);
}

impl Poller {
    fn find(&self, watch: Watch) -> Option<Arc<Watched>> {
        lock(&self.watched).get(&watch.0).cloned()
    }

    fn take_out(&self, watch: Watch) {
        let watched = {
            let mut all = lock(&self.watched);
            let watched = all.remove(&watch.0);
            if all.is_empty() {
                LOOK_AT.store(NEVER, Ordering::Relaxed);
            }
            watched
        };
        if let Some(watched) = watched {
            // Refused if it was never in the set.
            let _ = self.poll.remove(watched.source.as_fd());
        }
    }

    fn serve(&self, watch: Watch) {
        // Forgotten in between?
        let Some(watched) = self.find(watch) else {
            return;
        };
        let then = lock(&watched.handler)();
        match then {
            Then::Again => {
                // Refused if it was forgotten meanwhile.
                let _ = self.poll.arm(watched.source.as_fd(), watch.0);
            }
            Then::Later => {}
            Then::Over => self.take_out(watch),
        }
    }
}

/// Sets when the next timer is due. Call with the timers' lock, then [`stir`] without it if that is
/// earlier than before.
pub(crate) fn set_due(next: Option<Instant>) {
    // With the fences in `stir` and `wait`.
    DUE.store(next.map_or(NEVER, steady_of), Ordering::Relaxed);
}

/// Makes sure that some thread waits for a new timer or descriptor.
pub(crate) fn stir() {
    // Pairs with the fence in `wait`: either this thread sees until when the other waits, or that
    // one sees the new due time.
    fence(Ordering::SeqCst);
    match WAITS_UNTIL.load(Ordering::Relaxed) {
        0 => (hooks::get().see_to_outside)(),
        until if until > DUE.load(Ordering::Relaxed) => ring(),
        _ => {}
    }
}

/// Converts a moment to the system's steady clock. Never too early.
fn steady_of(moment: Instant) -> u64 {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let (start, steady) = *START.get_or_init(|| {
        let start = Instant::now();
        (start, clock::steady_ns())
    });
    let since = moment.saturating_duration_since(start).as_nanos();
    // Centuries fit.
    steady.saturating_add(u64::try_from(since).unwrap_or(NEVER))
}

// ---- waiting ----------------------------------------------------------------------------------

/// Ready descriptors, for [`serve`].
pub(crate) type Ready = Vec<u64>;

/// Tells whether there is anything to wait for.
pub(crate) fn is_needed() -> bool {
    DUE.load(Ordering::Relaxed) != NEVER || LOOK_AT.load(Ordering::Relaxed) != NEVER
}

/// Waits until a timer is due, a descriptor is ready or the bell rings; may return spuriously. One
/// thread at a time.
pub(crate) fn wait(ready: &mut Ready) {
    let due = DUE.load(Ordering::Relaxed);
    WAITS_UNTIL.store(due.max(1), Ordering::Relaxed);
    // Pairs with the fence in `stir`.
    fence(Ordering::SeqCst);
    if DUE.load(Ordering::Relaxed) >= due {
        let time =
            (due != NEVER).then(|| Duration::from_nanos(due.saturating_sub(clock::steady_ns())));
        poller().poll.wait(ready, time);
    }
    WAITS_UNTIL.store(0, Ordering::Relaxed);
}

/// Ends the wait of the waiting thread, or the next wait.
pub(crate) fn ring() {
    poller().poll.wake();
}

/// Rings the bell, if a thread ever waited.
pub(crate) fn ring_if_made() {
    if POLLER.get().is_some() {
        ring();
    }
}

/// Tells whether there is anything to serve.
pub(crate) fn has_come(ready: &Ready) -> bool {
    !ready.is_empty() || is_due(clock::steady_ns())
}

fn is_due(now: u64) -> bool {
    DUE.load(Ordering::Relaxed) <= now
}

/// Calls the handlers of ready descriptors, and delivers the due ticks. The caller is counted as
/// running, and runs no component.
pub(crate) fn serve(ready: &mut Ready) {
    for key in ready.drain(..) {
        poller().serve(Watch(key));
    }
    if is_due(clock::steady_ns()) {
        (hooks::get().fire_due)();
    }
}

// ---- in passing -------------------------------------------------------------------------------

/// Tells whether a busy thread should look: two loads, and a read of the coarse clock if there is
/// anything to wait for.
pub(crate) fn is_time() -> bool {
    let next = DUE
        .load(Ordering::Relaxed)
        .min(LOOK_AT.load(Ordering::Relaxed));
    next != NEVER && clock::steady_coarse_ns() >= next
}

/// Serves ready descriptors and due timers, unless some thread waits for them. The caller runs no
/// component.
pub(crate) fn look() {
    if WAITS_UNTIL.load(Ordering::Relaxed) != 0 {
        return;
    }
    let now = clock::steady_ns();
    let mut ready = Ready::new();
    let at = LOOK_AT.load(Ordering::Relaxed);
    if at <= now {
        // Only one of several looks. Adding or removing a descriptor sets its own time.
        let next = now + LOOK_EVERY;
        if LOOK_AT
            .compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            poller().poll.look(&mut ready);
        }
    }
    if !ready.is_empty() || is_due(now) {
        let _visit = Visit::begin();
        serve(&mut ready);
    }
}
