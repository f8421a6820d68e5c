//! What the runtime waits for outside: the moment when the next timer is due, and descriptors.
//!
//! Whoever has nothing else to do waits here ([`wait`]): one of the idle workers, or, with a thread
//! for each component, a thread of the poller's own. While nobody waits, those who are busy look in
//! passing ([`look`]). Which of them does what is the carriers' business.
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
//! What to know of a handler:
//! - It is called in a thread that other components need: it must not wait. What may have to goes
//!   to [`crate::ground::helpers`].
//! - It has the stack of a thread that runs components, whichever thread calls it: the poller's own
//!   and the workers' monitor are made with as much.
//! - One thread at a time is in it, not always the same one, and it holds no lock of the poller's.
//! - It enters the program from outside: tickets and `push` do, anything else needs a
//!   [`crate::outside::idle::Visit`].
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `DUE` | whoever changes timers, under their lock | everybody |
//! | `WAITS_UNTIL` | the one who waits | those who change timers |
//! | `LOOK_AT` | those who look; whoever adds or removes a descriptor | the busy |

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
/// How often the busy look at descriptors, in nanoseconds, if nobody waits for them.
const LOOK_EVERY: u64 = 1_000_000;

/// When the next timer is due, by the system's steady clock, in nanoseconds.
static DUE: Part<AtomicU64> = Part::new(|| AtomicU64::new(NEVER));
/// Until when somebody waits; 0 if nobody does.
static WAITS_UNTIL: Part<AtomicU64> = Part::new(|| AtomicU64::new(0));
/// When to look at descriptors if nobody waits; never if there are none.
static LOOK_AT: Part<AtomicU64> = Part::new(|| AtomicU64::new(NEVER));

/// What a handler wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// To be called when there is something again.
    Again,
    /// The same, but not before it is resumed.
    Later,
    /// Nothing any more: it goes, and with it its hold on the descriptor.
    Over,
}

/// Something that has a descriptor.
type Source = Arc<dyn AsFd + Send + Sync>;
type Handler = Box<dyn FnMut() -> Then + Send>;

struct Watched {
    source: Source,
    handler: Mutex<Handler>,
}

/// A descriptor that is watched.
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

/// Calls the handler when there is something to be read, until it says that it is over.
///
/// # Errors
/// The descriptor is of a kind that cannot be waited for, as regular files are.
pub(crate) fn watch(
    source: Source,
    handler: impl FnMut() -> Then + Send + 'static,
) -> io::Result<Watch> {
    watch_as(Watch::reserve(), source, handler)
}

impl Watch {
    /// For a handler that has to know its own.
    pub(crate) fn reserve() -> Watch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A number needs no order.
        Watch(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The same with a watch that was reserved.
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

/// A handler that wanted to be called later wants to be called now, if there is something.
pub(crate) fn resume(watch: Watch) {
    if let Some(watched) = poller().find(watch) {
        // Refused if it is over.
        let _ = poller().poll.arm(watched.source.as_fd(), watch.0);
    }
}

/// The handler is not called again, except where that happens already.
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
            // Refused if it never was in the set.
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

/// The next timer is due then. Call with the timers' lock, and [`stir`] without it if that is
/// earlier than it was.
pub(crate) fn set_due(next: Option<Instant>) {
    // With the fences in `stir` and `wait`.
    DUE.store(next.map_or(NEVER, steady_of), Ordering::Relaxed);
}

/// There is something new to wait for: sees to it that somebody does.
pub(crate) fn stir() {
    // With the one in `wait`: either this thread sees until when somebody waits, or that one sees
    // what is due.
    fence(Ordering::SeqCst);
    match WAITS_UNTIL.load(Ordering::Relaxed) {
        0 => (hooks::get().see_to_outside)(),
        until if until > DUE.load(Ordering::Relaxed) => ring(),
        _ => {}
    }
}

/// A moment by the system's steady clock. Never too early.
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

/// What is ready, for [`serve`].
pub(crate) type Ready = Vec<u64>;

/// Is there anything to wait for?
pub(crate) fn is_needed() -> bool {
    DUE.load(Ordering::Relaxed) != NEVER || LOOK_AT.load(Ordering::Relaxed) != NEVER
}

/// Waits until a timer is due, a descriptor is ready or the bell rings; may return for no reason.
/// For one thread at a time.
pub(crate) fn wait(ready: &mut Ready) {
    let due = DUE.load(Ordering::Relaxed);
    WAITS_UNTIL.store(due.max(1), Ordering::Relaxed);
    // With the one in `stir`.
    fence(Ordering::SeqCst);
    if DUE.load(Ordering::Relaxed) >= due {
        let time =
            (due != NEVER).then(|| Duration::from_nanos(due.saturating_sub(clock::steady_ns())));
        poller().poll.wait(ready, time);
    }
    WAITS_UNTIL.store(0, Ordering::Relaxed);
}

/// Ends the wait of the thread that waits, or its next one.
pub(crate) fn ring() {
    poller().poll.wake();
}

/// Wakes who waits, if anybody ever did.
pub(crate) fn ring_if_made() {
    if POLLER.get().is_some() {
        ring();
    }
}

/// Is there anything to serve?
pub(crate) fn has_come(ready: &Ready) -> bool {
    !ready.is_empty() || is_due(clock::steady_ns())
}

fn is_due(now: u64) -> bool {
    DUE.load(Ordering::Relaxed) <= now
}

/// Calls the handlers of what is ready, and gives the ticks that are due. The caller is counted as
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

/// Should a busy thread look? Two loads, and a third of the coarse clock where there is anything to
/// wait for.
pub(crate) fn is_time() -> bool {
    let next = DUE
        .load(Ordering::Relaxed)
        .min(LOOK_AT.load(Ordering::Relaxed));
    next != NEVER && clock::steady_coarse_ns() >= next
}

/// Serves what has come, unless somebody waits for it. The caller runs no component.
pub(crate) fn look() {
    if WAITS_UNTIL.load(Ordering::Relaxed) != 0 {
        return;
    }
    let now = clock::steady_ns();
    let mut ready = Ready::new();
    let at = LOOK_AT.load(Ordering::Relaxed);
    if at <= now {
        // Of several, one looks. A descriptor that was added or removed meanwhile has its own say.
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
