//! Timers: `true` for `in bool` half-channels when due, and calls at a given time.
//!
//! At most one tick is pending for a half-channel. A timer that holds the last reference to its
//! half-channel is dropped.
//!
//! Nothing here waits. The carriers ask for the next due time ([`next_due`]) and fire it
//! ([`fire_due`]); [`now`] is the clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::external;
use crate::abi::{Component, Value};
use crate::exchange::channel::{self, Channel};
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::hooks::simulation;
use crate::outside::idle::Visit;
use crate::outside::poller;

/// Shortest interval of a repeating timer, so that it leaves time for work.
const SHORTEST: Duration = Duration::from_micros(100);
/// Waits from this length on count as endless (a hundred years).
const LONGEST_SECONDS: f64 = 100.0 * 365.0 * 86_400.0;

struct Timer {
    next: Instant,
    interval: Option<Duration>,
}

/// A timer's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A tick for the half-channel with this address.
    Tick(usize),
    /// The call of this number.
    Call(u64),
}

type Call = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Timers {
    /// By half-channel, counted.
    set: HashMap<usize, Timer>,
    calls: HashMap<u64, Call>,
    calls_made: u64,
    /// Due times with their events; `Reverse` order makes the heap give the earliest.
    due: BinaryHeap<Reverse<(Instant, What)>>,
}

static TIMERS: Part<Mutex<Option<Timers>>> = Part::new(|| Mutex::new(None));

/// Runs `action` on the timers, and tells the carrier if the next due time has changed. True if it
/// is earlier now.
fn with<R>(action: impl FnOnce(&mut Timers) -> R) -> (R, bool) {
    let mut timers = lock(&TIMERS);
    let timers = timers.get_or_insert_default();
    let before = timers.next();
    let result = action(timers);
    let next = timers.next();
    if next != before {
        set_due(next);
    }
    let is_earlier = next.is_some_and(|next| before.is_none_or(|before| next < before));
    (result, is_earlier)
}

/// Sets the earliest due time. A simulation looks for itself.
fn set_due(next: Option<Instant>) {
    if !simulation::is_on() {
        poller::set_due(next);
    }
}

/// Wakes the thread that waits for the next timer, since it is due earlier.
fn stir() {
    if !simulation::is_on() {
        poller::stir();
    }
}

/// Runs `action` on the timers; if something is due earlier, makes a thread wait for it.
fn change<R>(action: impl FnOnce(&mut Timers) -> R) -> R {
    let (result, is_earlier) = with(action);
    if is_earlier {
        stir();
    }
    result
}

impl Timers {
    /// The next due time.
    fn next(&mut self) -> Option<Instant> {
        while let Some(&Reverse((next, what))) = self.due.peek() {
            if self.is_set(next, what) {
                return Some(next);
            }
            self.due.pop();
        }
        None
    }

    /// Whether the entry is current: neither unset nor set anew for another time.
    fn is_set(&self, next: Instant, what: What) -> bool {
        match what {
            What::Tick(key) => self.set.get(&key).is_some_and(|timer| timer.next == next),
            What::Call(_) => true,
        }
    }

    /// Drops outdated entries in proportion: timers set again and again leave them behind.
    fn forget_outdated(&mut self) {
        if self.due.len() > 2 * (self.set.len() + self.calls.len()) + 64 {
            let mut due = std::mem::take(&mut self.due);
            due.retain(|&Reverse((next, what))| self.is_set(next, what));
            self.due = due;
        }
    }
}

// ---- for the carriers -------------------------------------------------------------------------

/// The clock of the timers.
pub(crate) fn now() -> Instant {
    simulation::now()
}

/// The next due time.
#[cfg_attr(
    loom,
    expect(dead_code, reason = "for a carrier with a clock of its own")
)]
pub(crate) fn next_due() -> Option<Instant> {
    with(Timers::next).0
}

/// Held by the thread that delivers what is due. Several may find something due: without it, one
/// that has taken an early tick and then loses its core is overtaken by one that takes a later
/// tick. A delivery may wait for a worker's leave, but no thread that has leave or is busy waits
/// here: workers fire between components.
static FIRING: Part<Mutex<()>> = Part::new(|| Mutex::new(()));

/// Gives a tick to each half-channel that is due, and makes the calls, in the order of their due
/// times, whatever thread does it. The caller runs no component.
pub(crate) fn fire_due(now: Instant) {
    // Counted as running before anything is taken from the list, and without the lock: the thread
    // that decides that the program is idle looks at the list.
    let _visit = Visit::begin();
    let _firing = lock(&FIRING);
    let (due, _) = with(|timers| timers.take_due(now));
    for event in due {
        match event {
            // SAFETY: `take_due` gave us a counted reference.
            Due::Tick { key, is_last } => unsafe { deliver_tick(key, is_last) },
            Due::Call(call) => call(),
        }
    }
}

/// Gives a tick to a half-channel.
///
/// # Safety
/// The caller gives away a counted reference to it.
unsafe fn deliver_tick(key: usize, is_last: bool) {
    let channel = std::ptr::with_exposed_provenance::<Channel>(key);
    // SAFETY: as the caller promises.
    unsafe {
        external::push(channel, Value::of_bool(true), true);
        // The timer's and ours: nobody can receive from it any more.
        if !is_last && (*channel).references() == 2 {
            unset(&*channel);
        }
        channel::release(channel);
    }
}

/// Whether a component waits for a tick that will come.
pub(crate) fn any_is_awaited() -> bool {
    lock(&TIMERS).as_ref().is_some_and(|timers| {
        timers.set.keys().any(|&key| {
            // SAFETY: the timer counts its half-channel.
            unsafe { channel::receivers_wait(&*std::ptr::with_exposed_provenance::<Channel>(key)) }
        })
    })
}

/// Something due.
enum Due {
    /// A tick for the half-channel with this address, which is counted once more for the caller.
    Tick {
        key: usize,
        is_last: bool,
    },
    Call(Call),
}

impl Timers {
    /// Takes what is due, the earliest first.
    fn take_due(&mut self, now: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        while self.next().is_some_and(|next| next <= now) {
            let Some(Reverse((next, what))) = self.due.pop() else {
                break;
            };
            match what {
                What::Call(number) => due.extend(self.calls.remove(&number).map(Due::Call)),
                What::Tick(key) => due.push(Due::Tick {
                    key,
                    is_last: self.tick(key, next, now),
                }),
            }
        }
        due
    }

    /// Consumes the tick of `next`. True if it was the last one.
    fn tick(&mut self, key: usize, next: Instant, now: Instant) -> bool {
        let interval = self.set.get(&key).and_then(|timer| timer.interval);
        let Some(interval) = interval else {
            self.set.remove(&key);
            return true;
        };
        // Late by more than an interval: the missed ticks become one.
        let next = (next + interval).max(now);
        self.set.insert(
            key,
            Timer {
                next,
                interval: Some(interval),
            },
        );
        self.due.push(Reverse((next, What::Tick(key))));
        // SAFETY: the timer counts its half-channel.
        unsafe { (*std::ptr::with_exposed_provenance::<Channel>(key)).retain() };
        false
    }
}

// ---- setting ----------------------------------------------------------------------------------

/// Schedules a call, made where and as the handlers of descriptors are called.
pub(crate) fn call_at(time: Instant, call: impl FnOnce() + Send + 'static) {
    change(|timers| {
        timers.calls_made += 1;
        let number = timers.calls_made;
        timers.calls.insert(number, Box::new(call));
        timers.due.push(Reverse((time, What::Call(number))));
    });
}

/// Sets the timer of a half-channel, replacing any earlier one.
fn set(channel: &Channel, after: Duration, repeat: bool) {
    let timer = Timer {
        next: now() + after,
        interval: repeat.then(|| after.max(SHORTEST)),
    };
    let key = std::ptr::from_ref(channel).addr();
    channel.retain();
    let replaced = change(|timers| {
        timers.due.push(Reverse((timer.next, What::Tick(key))));
        let replaced = timers.set.insert(key, timer).is_some();
        timers.forget_outdated();
        replaced
    });
    if replaced {
        // SAFETY: the timer it had was counted too.
        unsafe { channel::release(channel) };
    }
}

/// Removes the timer of a half-channel. A pending tick stays.
fn unset(channel: &Channel) {
    let key = std::ptr::from_ref(channel).addr();
    if change(|timers| timers.set.remove(&key).is_some()) {
        // SAFETY: the timer was counted; the caller keeps the half-channel.
        unsafe { channel::release(channel) };
    }
}

/// Removes all timers.
pub(crate) fn clear() {
    let timers = lock(&TIMERS).take();
    for key in timers.into_iter().flat_map(|timers| timers.set.into_keys()) {
        // SAFETY: the timer counted its half-channel.
        unsafe { channel::release(std::ptr::with_exposed_provenance::<Channel>(key)) };
    }
}

fn duration_of(seconds: f64) -> Duration {
    if seconds.is_nan() {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SECONDS))
}

/// `setTimer`: a tick after this many seconds, repeated on request.
///
/// # Safety
/// The channel is an `in bool`, alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_set_timer(
    _self: *mut Component,
    channel: *mut Channel,
    seconds: f32,
    repeat: bool,
) {
    let _ = channel.expose_provenance();
    // SAFETY: as the caller promises.
    set(
        unsafe { &*channel },
        duration_of(f64::from(seconds)),
        repeat,
    );
}

/// `unsetTimer`: removes the timer.
///
/// # Safety
/// The channel is an `in bool`, alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_unset_timer(_self: *mut Component, channel: *mut Channel) {
    // SAFETY: as the caller promises.
    unset(unsafe { &*channel });
}

/// `setRtimer`: one tick after this many milliseconds.
///
/// # Safety
/// The channel is an `in bool`, alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_set_rtimer(
    _self: *mut Component,
    channel: *mut Channel,
    milliseconds: f32,
) {
    let _ = channel.expose_provenance();
    // SAFETY: as the caller promises.
    set(
        unsafe { &*channel },
        duration_of(f64::from(milliseconds) / 1000.0),
        false,
    );
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    use super::*;

    /// There is one list of timers for all tests.
    static ALONE: Mutex<()> = Mutex::new(());

    /// A thread that finds a later timer due does not overtake one that delivers an earlier one.
    #[test]
    fn a_later_timer_waits_for_an_earlier_one() {
        static FIRED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        static IS_SECOND_FIRED: AtomicBool = AtomicBool::new(false);
        let _alone = lock(&ALONE);
        let times = [1, 2].map(|hours| now() + Duration::from_secs(hours * 3600));
        let (go, has_begun) = std::sync::mpsc::channel();
        call_at(times[0], move || {
            go.send(()).unwrap();
            // Long enough for the other thread, if nothing held it back.
            for _ in 0..20_000 {
                if IS_SECOND_FIRED.load(Ordering::Acquire) {
                    break;
                }
                thread::yield_now();
            }
            lock(&FIRED).push(1);
        });
        call_at(times[1], || {
            lock(&FIRED).push(2);
            IS_SECOND_FIRED.store(true, Ordering::Release);
        });
        thread::scope(|scope| {
            scope.spawn(move || {
                has_begun.recv().unwrap();
                fire_due(times[1]);
            });
            fire_due(times[0]);
        });
        assert_eq!(*lock(&FIRED), [1, 2]);
    }

    /// Many threads deliver what is due at times that pass quickly: all in order, and once.
    #[test]
    fn timers_stay_in_order_whoever_fires() {
        static FIRED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        static TIME: AtomicU64 = AtomicU64::new(0);
        let is_deep = std::env::var_os("HEARTH_TEST_DEEP").is_some();
        let count = if is_deep { 1_000_000 } else { 20_000 };
        let _alone = lock(&ALONE);
        let begin = now() + Duration::from_secs(3600);
        let at = |nth: u64| begin + Duration::from_micros(nth);
        for nth in 0..count {
            call_at(at(nth), move || lock(&FIRED).push(nth));
        }
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while TIME.load(Ordering::Relaxed) < count {
                        fire_due(at(TIME.fetch_add(1, Ordering::Relaxed)));
                    }
                });
            }
        });
        let fired = lock(&FIRED);
        assert!(fired.is_sorted(), "one was overtaken");
        assert_eq!(fired.len() as u64, count);
    }

    /// A carrier may have its own clock: nothing happens except by it, and in order.
    #[test]
    fn time_is_what_the_carrier_says() {
        static CALLED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        let _alone = lock(&ALONE);
        let later = |hours: u64| now() + Duration::from_secs(hours * 3600);
        let times = [3, 1, 2].map(later);
        for (hours, time) in [3, 1, 2].into_iter().zip(times) {
            call_at(time, move || {
                lock(&CALLED).push(hours);
                // A call may set others.
                call_at(time + Duration::from_secs(1), move || {
                    lock(&CALLED).push(hours * 10)
                });
            });
        }
        assert_eq!(next_due(), Some(times[1]));
        fire_due(times[1] - Duration::from_nanos(1));
        assert!(lock(&CALLED).is_empty());
        fire_due(times[2]);
        assert_eq!(*lock(&CALLED), [1, 2]);
        assert_eq!(next_due(), Some(times[1] + Duration::from_secs(1)));
        fire_due(times[0] + Duration::from_secs(1));
        assert_eq!(*lock(&CALLED), [1, 2, 10, 20, 3]);
        fire_due(times[0] + Duration::from_secs(1));
        assert_eq!(*lock(&CALLED), [1, 2, 10, 20, 3, 30]);
        assert_eq!(next_due(), None);
    }
}
