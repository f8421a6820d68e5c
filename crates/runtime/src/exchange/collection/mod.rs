//! Collection: components that wait where nobody alive can ever wake them are stopped.
//!
//! [Collection](../../../../../docs/internals/collection.md) has the rule and why no worker has to
//! stand still.

mod candidates;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod oracles;
mod search;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::abi::Component;
use crate::exchange::values::heap;
use crate::exchange::{block, component};
use crate::ground::options::{self, Collect};
use crate::ground::runtime::{self, Part};
use crate::ground::sync::lock_std as lock;
use crate::hooks::{Canary, simulation, sings};
use crate::outside::idle;
use crate::recording;
use crate::seats::registry::{self, Retained};
use crate::seats::seat::Seat;
use candidates::Candidates;

/// Components read from the registry under one hold of its lock, and components stopped together:
/// others of their workers wait as long as two times as many take.
const AT_ONCE: usize = 256;
/// Running components from which on the first collection is due. Below, there is little to gain,
/// and a deadlock is reported as it came about.
const COMPONENTS_MIN: usize = 100_000;
/// The same for bytes of heaps, and the least number of further bytes for the next.
const BYTES_MIN: usize = 32 << 20;
/// Number of components at which the next collection is due, as a multiple of those left: so all
/// collections together cost a constant for each component made.
const GROWTH: usize = 2;
/// Growth beyond that at which it begins at once. Before, it begins when the last one is so long
/// ago that the search takes a small part of that time: a program in which nothing is garbage
/// should not notice.
const RUSH: usize = 2;
/// That part, as a divisor.
const SMALL_PART: u32 = 200;
/// The time of the search for each component: 1.1 µs in `./x bench collect`.
const SEARCH: Duration = Duration::from_micros(1);
/// Growth until the next question whether it is time, as a divisor.
const ASKED_AGAIN: usize = 8;
/// Growth during a collection, as a part of the number at which it began, from which on whoever
/// makes another component is delayed: otherwise more might be made than can be collected.
const CROWDED: usize = 4;
/// The delay: less than the millisecond for which a worker may be held up. Others end meanwhile,
/// about as many as were stopped together.
const DELAY: Duration = Duration::from_micros(300);
/// Stack of a thread that collects; frames nest as calls do in the text of a program.
const STACK_BYTES: usize = 1 << 20;
/// Time that those stopped last are waited for before the next are stopped.
const PATIENCE: Duration = Duration::from_millis(1);
/// Time between two looks at whether they have ended.
const LOOK_EVERY: Duration = Duration::from_micros(10);

/// A look at the whole after the first.
type Step = fn(&mut Candidates);

/// A collection's steps after the first look.
struct Plan(&'static [Step]);

/// The plan. The first look is at one after another, while others run. From the end of it to the
/// beginning of the last they all slept, and what they hold stayed the same. Nobody else had a
/// component then, so nobody gets a half-channel from one; then nobody else had a half-channel, so
/// nobody connects one.
const PLAN: Plan = Plan(&[
    Candidates::look_at_components,
    Candidates::look_at_half_channels,
    Candidates::look_whether_they_sleep,
]);

const fn planted(steps: &'static [Step]) -> Plan {
    Plan(steps)
}

/// Wrong plans, which simulations and models must find.
const PLANTED: [(Canary, Plan); 4] = [
    (
        Canary::ComponentsNotLookedAt,
        planted(&[
            Candidates::look_at_half_channels,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::HalfChannelsNotLookedAt,
        planted(&[
            Candidates::look_at_components,
            Candidates::overlook_half_channels,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::HalfChannelsFirst,
        planted(&[
            Candidates::look_at_half_channels,
            Candidates::look_at_components,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::NoLastLook,
        planted(&[
            Candidates::look_at_components,
            Candidates::look_at_half_channels,
        ]),
    ),
];

/// Held while candidates are looked at: two collectors would take each other for somebody alive.
static LOOKING: Part<Mutex<()>> = Part::new(Mutex::default);
/// A collection by threshold is under way.
static UNDER_WAY: Part<AtomicBool> = Part::new(AtomicBool::default);
/// Running components from which on the next one is due.
static COMPONENTS: Part<AtomicUsize> = Part::new(|| AtomicUsize::new(COMPONENTS_MIN));
/// Bytes of heaps of those that the last one left, about.
static BYTES: Part<AtomicUsize> = Part::new(AtomicUsize::default);
/// Further bytes with which the next one is due.
static FURTHER: Part<AtomicUsize> = Part::new(|| AtomicUsize::new(BYTES_MIN));
/// Running components from which on makers of others are delayed, while one is under way.
static CROWD: Part<AtomicUsize> = Part::new(AtomicUsize::default);
/// The end of the last one, or the program's beginning.
static LAST: Part<Mutex<Instant>> = Part::new(|| Mutex::new(Instant::now()));

/// Components that nobody alive can ever wake.
struct Garbage {
    /// A reference to each.
    seats: Vec<*const Seat>,
    /// Number of those that live.
    live: usize,
    since: Instant,
    /// The longest time for which a worker could not use its half-channels.
    held_max: Duration,
}

// SAFETY: the references are counted, and threads share seats.
unsafe impl Send for Garbage {}

impl Garbage {
    /// Looks at all components. Takes time in proportion to their number.
    fn find() -> Garbage {
        let since = Instant::now();
        // In a simulation a component may collect in the middle of a collection, on one thread.
        let looking = match simulation::is_on() {
            true => LOOKING.try_lock().ok(),
            false => Some(lock(&LOOKING)),
        };
        let seats = looking.as_ref().map(|_| all()).unwrap_or_default();
        let looked = seats.len();
        let planted = PLANTED.iter().find(|(canary, _)| sings(*canary));
        let plan = planted.map_or(&PLAN, |(_, plan)| plan);
        // SAFETY: each comes with a reference.
        let (seats, held_max) = unsafe { garbage_among(seats, plan) };
        Garbage {
            live: looked - seats.len(),
            seats,
            since,
            held_max,
        }
    }

    /// Stops them, some at a time, and waits until they have ended.
    fn stop(self) {
        let mut before: Option<&Seat> = None;
        for seats in self.seats.chunks(AT_ONCE) {
            let [.., last] = seats else { continue };
            // SAFETY: alive by the reference; another is added, which goes with `before`.
            let last = unsafe { &**last };
            last.retain();
            stop_some(seats);
            // The others of its worker end before it.
            if let Some(before) = before.replace(last) {
                wait_until_ended(before);
            }
        }
        if let Some(last) = before {
            wait_until_ended(last);
        }
        self.tell();
    }

    /// Stops all at once.
    fn stop_now(self) {
        stop_some(&self.seats);
        self.tell();
    }

    fn tell(&self) {
        if let Some(recorder) = recording::recorder() {
            let [took, held] = [self.since.elapsed(), self.held_max].map(|time| time.as_nanos());
            recorder.collected(self.seats.len() as u64, took as u64, held as u64);
        }
    }
}

/// Stops components that were garbage, and releases the reference to each.
fn stop_some(seats: &[*const Seat]) {
    for &seat in seats {
        // SAFETY: alive by the reference; what it waited at was made an offer.
        unsafe {
            component::stop_offering(&*seat);
            block::release((*seat).component());
        }
    }
}

/// Waits until a component has ended that was stopped, but not for ever: its worker may be busy.
/// The caller has the only other reference, which goes with it.
fn wait_until_ended(seat: &Seat) {
    let since = Instant::now();
    while seat.references() > 1 && since.elapsed() < PATIENCE {
        thread::sleep(LOOK_EVERY);
    }
    // SAFETY: the caller's reference.
    unsafe { block::release(seat.component()) };
}

/// Running components, with a reference to each.
fn all() -> Vec<Retained> {
    let mut seats = Vec::new();
    while registry::retain_more(&mut seats, AT_ONCE) {}
    seats
}

/// Those of these components that nobody else can ever wake, by this plan, with the longest time
/// for which a worker could not use its half-channels meanwhile.
///
/// # Safety
/// Each has a reference of the caller's, which goes with it.
unsafe fn garbage_among(seats: Vec<Retained>, plan: &Plan) -> (Vec<*const Seat>, Duration) {
    // SAFETY: as the caller promises.
    let mut candidates = unsafe { Candidates::look(seats) };
    for step in plan.0 {
        simulation::meanwhile();
        step(&mut candidates);
    }
    simulation::meanwhile();
    let held_max = candidates.longest_hold();
    (candidates.into_garbage(), held_max)
}

/// Stops those of these components that nobody else can ever wake; returns their number.
///
/// # Safety
/// Each has a reference of the caller's, which goes with it.
#[cfg(all(test, loom))]
unsafe fn collect_of(seats: Vec<*const Seat>, plan: &Plan) -> usize {
    // SAFETY: alive by the references.
    let retained = |seat: *const Seat| unsafe {
        Retained {
            seat,
            id: (*seat).id,
        }
    };
    // SAFETY: as the caller promises.
    let (garbage, _) = unsafe { garbage_among(seats.into_iter().map(retained).collect(), plan) };
    stop_some(&garbage);
    garbage.len()
}

/// Stops all components that nobody alive can ever wake, at once; returns their number.
pub(crate) fn collect() -> usize {
    let garbage = Garbage::find();
    let count = garbage.seats.len();
    garbage.stop_now();
    count
}

/// Called when the first carrier starts: says when collections begin by themselves.
pub(crate) fn start() {
    static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
    if simulation::is_on() || STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    match options::get().collect {
        Collect::Never => {}
        Collect::AsItGrows => {
            // Made on first use: this is the program's beginning.
            drop(lock(&LAST));
            registry::tell_from(COMPONENTS_MIN);
        }
        // Without the thread nothing is collected unless the program asks for it.
        Collect::Every(period) => {
            let _ = runtime::spawn("collector", STACK_BYTES, move || {
                while runtime::current().pause(period) {
                    // Where all wait, it is a deadlock and reported as one.
                    if idle::enter_beside_others() {
                        Garbage::find().stop();
                        idle::leave();
                    }
                }
            });
        }
    }
}

/// Called when there are many components: collects if it is time, on a thread of its own. If one is
/// at it and there are far more by now, delays the caller.
#[cold]
pub(crate) fn grown() {
    let running = registry::running();
    if UNDER_WAY.swap(true, Ordering::Relaxed) {
        let crowd = CROWD.load(Ordering::Relaxed);
        if running >= crowd {
            thread::sleep(DELAY);
        }
        registry::tell_from(crowd);
        return;
    }
    // Where all wait, it is a deadlock and reported as one.
    if !is_time(running) || !idle::enter_beside_others() {
        UNDER_WAY.store(false, Ordering::Relaxed);
        registry::tell_from(COMPONENTS_MIN.max(running + running / ASKED_AGAIN));
        return;
    }
    let crowd = running + running / CROWDED;
    CROWD.store(crowd, Ordering::Relaxed);
    registry::tell_from(crowd);
    let collects = || {
        let garbage = Garbage::find();
        let live = garbage.live;
        garbage.stop();
        ends(live);
    };
    if runtime::spawn("collector", STACK_BYTES, collects).is_err() {
        ends(registry::running());
    }
}

/// Whether a collection is to begin by itself, with so many components running.
fn is_time(running: usize) -> bool {
    let [components, bytes, further] =
        [&COMPONENTS, &BYTES, &FURTHER].map(|one| one.load(Ordering::Relaxed));
    let grown = heap::held().saturating_sub(bytes) / further.max(1);
    let grown = grown.max(running / components.max(1));
    let search = SEARCH * u32::try_from(running).unwrap_or(u32::MAX);
    grown >= RUSH || grown >= 1 && lock(&LAST).elapsed() / SMALL_PART >= search
}

/// Ends a collection by itself: says when the next is due.
fn ends(live: usize) {
    let (running, bytes) = (registry::running(), heap::held());
    // What was made meanwhile may be garbage, too, and is not to put the next one off. If it is
    // not, the next one finds this.
    let of_living = bytes / running.max(1) * live.min(running);
    BYTES.store(of_living, Ordering::Relaxed);
    FURTHER.store(of_living.max(BYTES_MIN), Ordering::Relaxed);
    let components = (live * GROWTH).max(COMPONENTS_MIN);
    COMPONENTS.store(components, Ordering::Relaxed);
    *lock(&LAST) = Instant::now();
    UNDER_WAY.store(false, Ordering::Relaxed);
    registry::tell_from(components);
    idle::leave();
}

/// Called now and then while anything runs: collects if it is time.
pub(crate) fn look_around() {
    let is_on = matches!(options::get().collect, Collect::AsItGrows);
    if is_on && is_time(registry::running()) {
        grown();
    }
}

/// Stops all components that nobody alive can ever wake.
///
/// # Safety
/// As the header says: `self` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_collect(this: *mut Component) -> i32 {
    let work = || {
        let garbage = Garbage::find();
        let count = i32::try_from(garbage.seats.len()).unwrap_or(i32::MAX);
        if garbage.seats.len() <= AT_ONCE || simulation::is_on() {
            garbage.stop_now();
        } else {
            stop_beside(garbage);
        }
        count
    };
    // SAFETY: as the caller promises; compiled code holds no lock.
    unsafe { simulation::deed(this, "collects", std::ptr::null(), work) }
}

/// Stops many, on another thread: the calling one may have to end them.
fn stop_beside(garbage: Garbage) {
    // The caller is counted.
    idle::enter_woken();
    let left = std::sync::Arc::new(Mutex::new(Some(garbage)));
    let taken = std::sync::Arc::clone(&left);
    let stops = move || {
        let garbage = lock(&taken).take();
        if let Some(garbage) = garbage {
            garbage.stop();
        }
        idle::leave();
    };
    if runtime::spawn("collector", STACK_BYTES, stops).is_err() {
        let garbage = lock(&left).take();
        if let Some(garbage) = garbage {
            garbage.stop_now();
        }
        idle::leave();
    }
}
