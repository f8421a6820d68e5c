//! Collection: components that wait where nobody alive can ever wake them are stopped.
//!
//! [Collection](../../../../docs/internals/collection.md) has the rule and why no worker has to
//! stand still.

mod candidates;
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
use crate::hooks::simulation;
use crate::outside::idle;
use crate::recording;
use crate::seats::registry::{self, Retained};
use crate::seats::seat::Seat;
use candidates::Candidates;

/// Components read from the registry under one hold of its lock, and components stopped together:
/// others of their workers wait as long as two times as many take.
const AT_ONCE: usize = 256;
/// Running components from which on the first collection begins by itself. Below, there is little
/// to gain, and a deadlock is reported as it came about.
const COMPONENTS_MIN: usize = 10_000;
/// The same for bytes of heaps.
const BYTES_MIN: usize = 64 << 20;
/// Growth since the last collection, as a multiple of what was left, at which the next begins: so
/// all collections together cost a constant for each component made.
const GROWTH: usize = 2;
/// Stack of a thread that collects; frames nest as calls do in the text of a program.
const STACK_BYTES: usize = 1 << 20;
/// Time that those stopped last are waited for before the next are stopped.
const PATIENCE: Duration = Duration::from_millis(1);
/// Time between two looks at whether they have ended.
const LOOK_EVERY: Duration = Duration::from_micros(10);

/// Held while candidates are looked at: two collectors would take each other for somebody alive.
static LOOKING: Part<Mutex<()>> = Part::new(Mutex::default);
/// A collection by threshold is under way.
static UNDER_WAY: Part<AtomicBool> = Part::new(AtomicBool::default);
/// Bytes of heaps from which on the next one begins.
static BYTES: Part<AtomicUsize> = Part::new(|| AtomicUsize::new(BYTES_MIN));

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
        let _looking = lock(&LOOKING);
        let seats = all();
        let looked = seats.len();
        // SAFETY: each comes with a reference.
        let (seats, held_max) = unsafe { garbage_among(seats) };
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
            self.stop_some(seats);
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
        self.stop_some(&self.seats);
        self.tell();
    }

    fn tell(&self) {
        if let Some(recorder) = recording::recorder() {
            let [took, held] = [self.since.elapsed(), self.held_max].map(|time| time.as_nanos());
            recorder.collected(self.seats.len() as u64, took as u64, held as u64);
        }
    }

    fn stop_some(&self, seats: &[*const Seat]) {
        for &seat in seats {
            // SAFETY: alive by the reference; what it waited at was made an offer.
            unsafe {
                component::stop_offering(&*seat);
                block::release((*seat).component());
            }
        }
    }
}

/// Waits until a component has ended that was stopped, but not for ever: its worker may be busy. The
/// caller has the only other reference, which goes with it.
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

/// Those of these components that nobody else can ever wake, with the longest time for which a
/// worker could not use its half-channels meanwhile.
///
/// # Safety
/// Each has a reference of the caller's, which goes with it.
unsafe fn garbage_among(seats: Vec<Retained>) -> (Vec<*const Seat>, Duration) {
    // The first look is at one after another, while others run. From the end of it to the beginning
    // of the last they all slept, and what they hold stayed the same. Nobody else had a component
    // then, so nobody gets a half-channel from one; then nobody else had a half-channel, so nobody
    // connects one.
    // SAFETY: as the caller promises.
    let mut candidates = unsafe { Candidates::look(seats) };
    candidates.look_at_components();
    candidates.look_at_half_channels();
    candidates.look_whether_they_sleep();
    let held_max = candidates.longest_hold();
    (candidates.into_garbage(), held_max)
}

/// Called when the first carrier starts: says when collections begin by themselves.
pub(crate) fn start() {
    static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
    if simulation::is_on() || STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    match options::get().collect {
        Collect::Never => {}
        Collect::AsItGrows => registry::tell_from(COMPONENTS_MIN),
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

/// Called when there are many components: collects, on a thread of its own.
#[cold]
pub(crate) fn grown() {
    if UNDER_WAY.swap(true, Ordering::Relaxed) {
        return;
    }
    // Where all wait, it is a deadlock and reported as one.
    if !idle::enter_beside_others() {
        UNDER_WAY.store(false, Ordering::Relaxed);
        return;
    }
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

/// Ends a collection by threshold: says when the next begins.
fn ends(live: usize) {
    BYTES.store((heap::held() * GROWTH).max(BYTES_MIN), Ordering::Relaxed);
    UNDER_WAY.store(false, Ordering::Relaxed);
    registry::tell_from((live * GROWTH).max(COMPONENTS_MIN));
    idle::leave();
}

/// Called now and then while anything runs: collects if heaps have grown much.
pub(crate) fn look_at_memory() {
    let is_on = matches!(options::get().collect, Collect::AsItGrows);
    if is_on && heap::held() >= BYTES.load(Ordering::Relaxed) {
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
