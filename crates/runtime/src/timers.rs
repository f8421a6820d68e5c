//! Timers: one thread sends `true` to `in bool` half-channels when their time has come.
//!
//! At most one tick is pending a half-channel. A timer whose half-channel nobody else refers to any
//! more is dropped.

use std::collections::{BinaryHeap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{Component, Value};
use crate::channel::{self, Channel};
use crate::idle::Visit;
use crate::sync::lock_std as lock;
use crate::{exits, external, simulator};

/// A repeating timer does not tick more often than this, so that it leaves time for work.
const SHORTEST: Duration = Duration::from_micros(100);
/// Longer waits are as good as for ever (a hundred years).
const LONGEST_SECONDS: f64 = 100.0 * 365.0 * 86_400.0;

struct Timer {
    next: Instant,
    interval: Option<Duration>,
}

/// When to look at which half-channel; `Reverse` order makes the heap give the earliest.
type Due = std::cmp::Reverse<(Instant, usize)>;

struct Timers {
    /// By half-channel, counted.
    set: HashMap<usize, Timer>,
    due: BinaryHeap<Due>,
    thread_runs: bool,
}

static TIMERS: Mutex<Option<Timers>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn with<R>(action: impl FnOnce(&mut Timers) -> R) -> R {
    action(entry(&mut lock(&TIMERS)))
}

impl Timers {
    /// Timers set again and again leave entries behind; keep those in proportion.
    fn forget_outdated(&mut self) {
        if self.due.len() > 2 * self.set.len() + 64 {
            self.due = self
                .set
                .iter()
                .map(|(&key, timer)| std::cmp::Reverse((timer.next, key)))
                .collect();
        }
    }
}

fn entry(timers: &mut Option<Timers>) -> &mut Timers {
    timers.get_or_insert_with(|| Timers {
        set: HashMap::new(),
        due: BinaryHeap::new(),
        thread_runs: false,
    })
}

/// Sets the timer of a half-channel, in place of the one it had.
fn set(channel: &Channel, after: Duration, repeat: bool) {
    let timer = Timer {
        next: now() + after,
        interval: repeat.then(|| after.max(SHORTEST)),
    };
    let key = std::ptr::from_ref(channel).addr();
    channel.retain();
    let replaced = with(|timers| {
        timers.due.push(std::cmp::Reverse((timer.next, key)));
        let replaced = timers.set.insert(key, timer).is_some();
        timers.forget_outdated();
        if !timers.thread_runs && !simulator::is_on() {
            timers.thread_runs = true;
            start_thread();
        }
        replaced
    });
    CHANGED.notify_one();
    if replaced {
        // SAFETY: the timer it had was counted too.
        unsafe { channel::release(channel) };
    }
}

/// Takes away the timer of a half-channel. A tick that is pending stays.
fn unset(channel: &Channel) {
    let key = std::ptr::from_ref(channel).addr();
    if with(|timers| timers.set.remove(&key).is_some()) {
        // SAFETY: the timer was counted; the caller keeps the half-channel.
        unsafe { channel::release(channel) };
    }
}

/// What the time is for timers.
fn now() -> Instant {
    if simulator::is_on() {
        simulator::clock::now()
    } else {
        Instant::now()
    }
}

/// When the next timer may be due, not before.
pub(crate) fn next_due() -> Option<Instant> {
    with(|timers| timers.due.peek().map(|&std::cmp::Reverse((next, _))| next))
}

fn start_thread() {
    let thread = std::thread::Builder::new()
        .name("timers".to_owned())
        .stack_size(256 << 10);
    if let Err(error) = thread.spawn(run) {
        exits::unfit(&format!(
            "could not start the thread for timers ({error}); raise ulimit -u"
        ));
    }
}

fn run() {
    let mut timers = lock(&TIMERS);
    loop {
        let now = Instant::now();
        match entry(&mut timers).due.peek() {
            None => timers = wait(timers, None),
            Some(std::cmp::Reverse((next, _))) if *next > now => {
                let time = *next - now;
                timers = wait(timers, Some(time));
            }
            Some(_) => {
                // Counted as running before anything is taken from the list, and without the lock:
                // whoever decides that the program is idle looks at the list.
                drop(timers);
                fire();
                timers = lock(&TIMERS);
            }
        }
    }
}

fn wait(
    timers: MutexGuard<'static, Option<Timers>>,
    time: Option<Duration>,
) -> MutexGuard<'static, Option<Timers>> {
    match time {
        None => CHANGED.wait(timers).unwrap_or_else(PoisonError::into_inner),
        Some(time) => {
            CHANGED
                .wait_timeout(timers, time)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
    }
}

/// Gives a tick to each half-channel whose time has come.
pub(crate) fn fire() {
    let _visit = Visit::begin();
    for (key, is_over) in take_due(now()) {
        let channel = std::ptr::with_exposed_provenance::<Channel>(key);
        // SAFETY: `take_due` gave us a counted reference each.
        unsafe {
            external::push(channel, Value::of_bool(true), true);
            // The timer's and ours: nobody can receive from it any more.
            if !is_over && (*channel).references() == 2 {
                unset(&*channel);
            }
            channel::release(channel);
        }
    }
}

/// The half-channels whose time has come, each counted once more for the caller, and whether that
/// was their timer's last tick.
fn take_due(now: Instant) -> Vec<(usize, bool)> {
    let mut ticks = Vec::new();
    with(|timers| {
        while let Some(&std::cmp::Reverse((next, key))) = timers.due.peek() {
            if next > now {
                break;
            }
            timers.due.pop();
            let Some(timer) = timers.set.get_mut(&key).filter(|timer| timer.next == next) else {
                // Unset, or set anew for another time.
                continue;
            };
            match timer.interval {
                None => {
                    timers.set.remove(&key);
                    ticks.push((key, true));
                }
                Some(interval) => {
                    // Late by more than an interval: the ticks between are one.
                    timer.next = (next + interval).max(now);
                    timers.due.push(std::cmp::Reverse((timer.next, key)));
                    // SAFETY: the timer counts its half-channel.
                    unsafe { (*std::ptr::with_exposed_provenance::<Channel>(key)).retain() };
                    ticks.push((key, false));
                }
            }
        }
    });
    ticks
}

/// Does a component wait for a tick that will come?
pub(crate) fn any_is_awaited() -> bool {
    with(|timers| {
        timers.set.keys().any(|&key| {
            // SAFETY: the timer counts its half-channel.
            unsafe { channel::receivers_wait(&*std::ptr::with_exposed_provenance::<Channel>(key)) }
        })
    })
}

fn duration_of(seconds: f64) -> Duration {
    if seconds.is_nan() {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SECONDS))
}

/// `setTimer`: a tick after so many seconds, and again and again if asked for.
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

/// `unsetTimer`: no tick any more.
///
/// # Safety
/// The channel is an `in bool`, alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_unset_timer(_self: *mut Component, channel: *mut Channel) {
    // SAFETY: as the caller promises.
    unset(unsafe { &*channel });
}

/// `setRtimer`: one tick after so many milliseconds.
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
