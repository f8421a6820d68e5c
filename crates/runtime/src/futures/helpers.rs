//! Threads that run records of others while cores are free.
//!
//! A helper looks through the rings of all threads, oldest record first, for as long as a wake-up
//! would cost; then it sleeps until a thread pushes a record that is worth one. It takes a record
//! only if fewer threads run than there are workers: carriers that are awake, and helpers with a
//! record. So a program whose workers are all busy is left alone.
//!
//! Helpers are threads of their own, and no workers: a component that becomes ready at a worker
//! without work runs at once, and shares the core with a helper's record for as long as that takes.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use hearth_sys::{affinity, stack};

use super::grain;
use super::record::Record;
use super::ring::Ring;
use super::stand_in;
use super::{now_ns, ring_of_thread, run_taken};
use crate::exchange::carrier;
use crate::exchange::values::heap;
use crate::ground::choices::scramble;
use crate::ground::options::{self, Futures};
use crate::ground::runtime;
use crate::ground::sync::Word;
use crate::outside::idle;

/// Threads that may have records. Those beyond run their calls in order.
const RINGS_MAX: usize = 512;
static RINGS: [AtomicPtr<Ring>; RINGS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; RINGS_MAX];
static RING_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Helpers that sleep, or have not been started.
static ASLEEP: AtomicU32 = AtomicU32::new(0);
/// Helpers that look for a record.
static LOOKING: AtomicU32 = AtomicU32::new(0);
/// Helpers that run one.
static RUNNING: AtomicU32 = AtomicU32::new(0);

static HELPERS: Mutex<Vec<&'static Helper>> = Mutex::new(Vec::new());
/// Most helpers, and workers.
static MOST: OnceLock<(u32, u32)> = OnceLock::new();

struct Helper {
    /// 1: asleep, or about to be.
    asleep: Word,
}

/// Allows helpers: at most one fewer than there are workers.
pub(super) fn allow(workers: usize) {
    let workers = workers as u32;
    if MOST.set((workers - 1, workers)).is_ok() {
        ASLEEP.store(workers - 1, Ordering::Relaxed);
    }
}

/// Makes a ring for the calling thread, in which helpers look. None if there are too many.
pub(super) fn make_ring() -> Option<&'static Ring> {
    let index = RING_COUNT.fetch_add(1, Ordering::Relaxed);
    if index >= RINGS_MAX {
        RING_COUNT.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let ring: &'static Ring = Box::leak(Box::new(Ring::new()));
    // Release pairs with the Acquire of `steal_any`.
    RINGS[index].store(ptr::from_ref(ring).cast_mut(), Ordering::Release);
    Some(ring)
}

/// Whether a helper looks for records now.
pub(super) fn is_one_looking() -> bool {
    LOOKING.load(Ordering::Relaxed) != 0
}

/// Called when a record of this expected length was pushed: wakes a helper if that pays.
#[inline]
pub(super) fn notice(expected_ns: Option<u64>) {
    // No fence between the push and this load: a helper that falls asleep at the same time may miss
    // the record, which its owner then takes back.
    if ASLEEP.load(Ordering::Relaxed) != 0 && LOOKING.load(Ordering::Relaxed) == 0 {
        wake_one(expected_ns);
    }
}

#[cold]
#[inline(never)]
fn wake_one(expected_ns: Option<u64>) {
    let options = options::get();
    if options.futures != Futures::Always {
        let wake_ns = options.patience.as_nanos() as u64;
        if expected_ns.is_some_and(|ns| ns < 2 * wake_ns) || !is_core_free() {
            return;
        }
    }
    let Ok(mut helpers) = HELPERS.try_lock() else {
        return; // another thread wakes one
    };
    for helper in helpers.iter() {
        if helper.asleep.load(Ordering::Relaxed) == 1
            && helper.asleep.swap(0, Ordering::Relaxed) == 1
        {
            count_awake();
            helper.asleep.ring();
            return;
        }
    }
    let most = MOST.get().map_or(0, |most| most.0);
    if (helpers.len() as u32) < most {
        let helper: &'static Helper = Box::leak(Box::new(Helper {
            asleep: Word::new(0),
        }));
        count_awake();
        let started = runtime::spawn("beside", carrier::STACK_BYTES, move || live(helper));
        match started {
            Ok(()) => {
                heap::has_threads();
                helpers.push(helper);
            }
            // No more threads: the calls run in order.
            Err(_) => {
                LOOKING.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Counts a helper that the caller wakes among those that look.
fn count_awake() {
    LOOKING.fetch_add(1, Ordering::Relaxed);
    ASLEEP.fetch_sub(1, Ordering::Relaxed);
}

/// Whether fewer threads run than there are workers.
fn is_core_free() -> bool {
    let workers = MOST.get().map_or(0, |most| most.1);
    idle::running() as u32 + RUNNING.load(Ordering::Relaxed) < workers
}

fn live(helper: &'static Helper) {
    // The thread that started it is pinned.
    let _ = affinity::allow_current(carrier::cores());
    let base = stand_in::make();
    let Some(ring) = ring_of_thread() else {
        LOOKING.fetch_sub(1, Ordering::Relaxed);
        return;
    };
    // SAFETY: the stand-in lives as long as the process.
    let owner = unsafe { stand_in::owner_of_stack(base) };
    stack::watch(carrier::STACK_BYTES, owner, || {
        let is_always = options::get().futures == Futures::Always;
        let patience = options::get().patience;
        let mut draws = 0;
        let mut since = Instant::now();
        loop {
            for _ in 0..16 {
                draws += 1;
                let first = if is_always {
                    scramble(draws) as usize
                } else {
                    0
                };
                if let Some(record) = steal_any(first, is_always) {
                    LOOKING.fetch_sub(1, Ordering::Relaxed);
                    RUNNING.fetch_add(1, Ordering::Relaxed);
                    // SAFETY: this thread has the record, and the stand-in is its own.
                    unsafe { run_stolen(record, base, ring) };
                    RUNNING.fetch_sub(1, Ordering::Relaxed);
                    LOOKING.fetch_add(1, Ordering::Relaxed);
                    since = Instant::now();
                }
                std::hint::spin_loop();
            }
            if since.elapsed() >= patience {
                sleep(helper);
                since = Instant::now();
            }
        }
    });
}

/// # Safety
/// The calling thread has taken the record, and may run code with the base.
unsafe fn run_stolen(record: *mut Record, base: *mut crate::abi::Component, ring: &'static Ring) {
    // SAFETY: as the caller promises.
    unsafe {
        let pushed_ns = (*record).pushed_ns;
        if pushed_ns != 0 {
            let passed = now_ns().saturating_sub(pushed_ns);
            if u128::from(passed) < options::get().patience.as_nanos() {
                grain::handed_over(passed);
            }
        }
        run_taken(record, base, ring);
    }
}

/// Takes the oldest record of some thread, from that ring on.
fn steal_any(first: usize, is_always: bool) -> Option<*mut Record> {
    let count = RING_COUNT.load(Ordering::Relaxed).min(RINGS_MAX);
    for index in 0..count {
        let ring = RINGS[(first + index) % count].load(Ordering::Acquire);
        // SAFETY: rings are never freed.
        let Some(ring) = (unsafe { ring.as_ref() }) else {
            continue;
        };
        if ring.has_some() && (is_always || is_core_free()) {
            let stolen = ring.steal();
            if stolen.is_some() {
                return stolen;
            }
        }
    }
    None
}

fn has_any() -> bool {
    let count = RING_COUNT.load(Ordering::Relaxed).min(RINGS_MAX);
    RINGS[..count].iter().any(|ring| {
        // SAFETY: rings are never freed.
        let ring = unsafe { ring.load(Ordering::Acquire).as_ref() };
        ring.is_some_and(Ring::has_some)
    })
}

fn sleep(helper: &Helper) {
    heap::flush();
    helper.asleep.store(1, Ordering::Relaxed);
    LOOKING.fetch_sub(1, Ordering::Relaxed);
    ASLEEP.fetch_add(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if has_any() && is_core_free() {
        if helper.asleep.swap(0, Ordering::Relaxed) == 1 {
            count_awake();
        }
        return;
    }
    helper.asleep.sleep(1);
}
