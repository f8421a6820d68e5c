//! Calls that run beside what follows them, and rounds of loops that run beside each other.
//!
//! The compiler proves that nobody can tell the difference; `docs/internals/futures.md` says how.
//! Here a call is a [`Record`] on its caller's stack, pushed into a [`Ring`] of its thread's and
//! taken back at the wait unless a helper has it; `record.rs` shows how the two meet.
//!
//! A wait never waits for work that nobody does. The thread that waits for a record runs younger
//! records of its own, and records from the run of the one that it waits for. Both kinds are parts
//! of what it waits for or of what it has yet to wait for, never of something that waits for them:
//! so a chain of waits always ends at a thread that runs. Neither are they ever as deep in the
//! program's recursion as its own stack, so no stack is deeper than the program's alone.

mod grain;
#[cfg(not(loom))]
mod helpers;
#[cfg(all(test, loom))]
mod loom_tests;
mod record;
mod ring;
#[cfg(not(loom))]
mod rounds;
#[cfg(not(loom))]
mod stand_in;

#[cfg(not(loom))]
use std::cell::Cell;
#[cfg(not(loom))]
use std::ptr;
#[cfg(not(loom))]
use std::sync::OnceLock;
#[cfg(not(loom))]
use std::sync::atomic::AtomicBool;
#[cfg(not(loom))]
use std::time::Instant;

#[cfg(not(loom))]
use crate::exchange::carrier;
#[cfg(not(loom))]
use crate::ground::options::{self, Futures};
#[cfg(not(loom))]
use crate::hooks::simulation;
#[cfg(not(loom))]
use crate::seats::seat::seat_of;

use crate::abi::Component;
use crate::exchange::values::heap;
use crate::ground::sync::{Ordering, spin_loop};
use crate::seats::exceptions;

#[cfg(loom)]
use grain::Grain;
#[cfg(not(loom))]
pub use grain::Grain;
#[cfg(loom)]
use record::Record;
#[cfg(not(loom))]
pub use record::Record;
use ring::Ring;
#[cfg(not(loom))]
pub use rounds::{Rounds, hearth_run_rounds};

/// Bytes of `hearth_record` in `hearth.h`.
const RECORD_BYTES: usize = 128;

/// A record that is in no ring, since there was no room: its owner runs it at the wait.
const NOWHERE: u32 = u32::MAX;

/// Looks at a record between two looks at the clock.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 64 };

/// Whether any call may run beside others: not with one worker.
#[cfg(not(loom))]
#[unsafe(no_mangle)]
pub static hearth_may_run_beside: AtomicBool = AtomicBool::new(false);

/// Begins, once the options are known.
#[cfg(not(loom))]
pub(crate) fn begin() {
    let options = options::get();
    let workers = carrier::worker_count(options.workers, carrier::cores().len());
    let may = match options.futures {
        Futures::Off => false,
        Futures::Auto => workers > 1,
        Futures::Always => true,
    };
    if may && options.simulation.is_none() {
        helpers::allow(workers.max(2));
    }
    hearth_may_run_beside.store(may, Ordering::Relaxed);
}

#[cfg(not(loom))]
thread_local! {
    static RING: Cell<*const Ring> = const { Cell::new(ptr::null()) };
}

/// The calling thread's ring, made on first use.
#[cfg(not(loom))]
#[inline]
fn ring_of_thread() -> Option<&'static Ring> {
    // SAFETY: rings are never freed.
    match unsafe { RING.get().as_ref() } {
        Some(ring) => Some(ring),
        None => {
            let ring = helpers::make_ring()?;
            RING.set(ring);
            Some(ring)
        }
    }
}

/// Whether the guard is fixed: no time decides.
#[cfg(not(loom))]
fn is_fixed() -> bool {
    simulation::is_on() || options::get().futures == Futures::Always
}

/// Nanoseconds by the monotonic clock, from some point on; never 0.
#[cfg(not(loom))]
fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// Pushes a record, so that others see it.
///
/// # Safety
/// The record stays where it is until it has been waited for.
#[cfg(not(loom))]
unsafe fn offer(record: *mut Record, base: *mut Component, expected_ns: Option<u64>) {
    // SAFETY: as the caller promises; nobody else knows it until it is pushed.
    unsafe {
        (*record).slot = NOWHERE;
        let Some(ring) = ring_of_thread() else { return };
        if helpers::is_one_looking() {
            (*record).pushed_ns = now_ns();
        }
        if let Some(slot) = ring.push(record) {
            (*record).slot = 1 + slot as u32;
            if simulation::is_on() {
                simulate(ring, base);
            } else {
                helpers::notice(expected_ns);
            }
        }
    }
}

/// Lets another run one of the thread's records now, if the schedule says so.
///
/// # Safety
/// The component runs the calling code, and this is a simulation.
#[cfg(not(loom))]
#[cold]
unsafe fn simulate(ring: &'static Ring, base: *mut Component) {
    let count = ring.count();
    // SAFETY: as the caller promises.
    let subject = unsafe { seat_of(base).id };
    let choice = simulation::beside(subject, 1 + count);
    if choice == 0 {
        return;
    }
    if let Some(record) = ring.take_nth(choice - 1) {
        let other = stand_in_of_simulation();
        // SAFETY: this thread has the record; nobody else runs code with that base, except the
        // calls below this one, which find and leave no exception there.
        unsafe { run_taken(record, other, ring) };
    }
}

#[cfg(not(loom))]
fn stand_in_of_simulation() -> *mut Component {
    static MADE: OnceLock<usize> = OnceLock::new();
    let address = MADE.get_or_init(|| stand_in::make().expose_provenance());
    ptr::with_exposed_provenance_mut(*address)
}

/// Runs a record that the calling thread has taken from a ring, and ends it.
///
/// # Safety
/// It has taken it, and may run code with this base.
unsafe fn run_taken(record: *mut Record, base: *mut Component, ring: &Ring) {
    // SAFETY: as the caller promises; the record is alive until `end`.
    unsafe {
        // An owner that waits on its way out has an exception in flight.
        let outer = exceptions::take(base);
        let run = ring.begin_run();
        (*record).begins_at(ring, &run);
        run_timed(record, base);
        ring.end_run(&run);
        let kept = exceptions::take(base);
        if let Some(outer) = outer {
            exceptions::put(base, outer);
        }
        Record::end(record, kept);
    }
}

/// Runs the call of a record, and measures it if its grain is the call's own.
///
/// # Safety
/// The calling thread has the record.
unsafe fn run_timed(record: *mut Record, base: *mut Component) {
    // SAFETY: as the caller promises; the generated function runs the record's call.
    unsafe {
        #[cfg(not(loom))]
        if (*record).is_measured && !is_fixed() {
            let start = now_ns();
            ((*record).run)(record, base, (*record).depth);
            (*(*record).grain).call_took(now_ns() - start);
            return;
        }
        ((*record).run)(record, base, (*record).depth);
    }
}

/// Waits until a record has ended that was not taken back from its slot.
///
/// # Safety
/// It is the calling thread's.
unsafe fn wait_for(record: *const Record, slot: usize, base: *mut Component, ring: &Ring) {
    #[cfg(not(loom))]
    let mut start = None;
    let mut looks = 0;
    // SAFETY: as the caller promises.
    unsafe {
        while !(*record).has_ended() {
            let other = match ring.take_above(slot) {
                Some(own) => Some(own),
                None => (*record).steal_a_part(),
            };
            if let Some(other) = other {
                run_taken(other, base, ring);
                #[cfg(not(loom))]
                {
                    start = None;
                }
                continue;
            }
            spin_loop();
            looks += 1;
            if looks % LOOKS != 0 {
                continue;
            }
            #[cfg(not(loom))]
            if start.get_or_insert_with(Instant::now).elapsed() < options::get().patience {
                continue;
            }
            heap::flush();
            (*record).sleep();
        }
    }
}

/// Begins a call beside what follows it.
///
/// # Safety
/// As the header says: the record stays where it is until it has been waited for, `run` runs its
/// call, and `grain` is static.
#[cfg(not(loom))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_beside(
    record: *mut Record,
    base: *mut Component,
    run: unsafe extern "C" fn(*mut Record, *mut Component, u32),
    grain: *mut Grain,
    depth: u32,
    is_measured: bool,
) {
    // SAFETY: as the caller promises.
    unsafe {
        record.write(Record::new(run, grain, depth, is_measured));
        let expected = match is_measured {
            true => (*grain).expected_of_call(),
            false => (*grain).expected_ns(depth),
        };
        offer(record, base, expected);
    }
}

/// Waits for a call: runs it now if nobody has begun it. The exception that it ended with is in
/// flight afterwards, in the place of one that was: the call came first.
///
/// # Safety
/// As the header says: the calling thread has begun it, and runs with this base.
#[cfg(not(loom))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_await(record: *mut Record, base: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe {
        let slot = std::mem::take(&mut (*record).slot);
        let came_back = slot == NOWHERE || {
            let Some(ring) = ring_of_thread() else {
                unreachable!("a record is in a ring")
            };
            if simulation::is_on() {
                simulate(ring, base);
            }
            let slot = slot as usize - 1;
            let came_back = ring.take_back(slot);
            if !came_back {
                wait_for(record, slot, base, ring);
            }
            ring.close(slot);
            came_back
        };
        let outer = exceptions::take(base);
        if came_back {
            run_timed(record, base);
        } else if let Some(kept) = (*record).take_kept() {
            exceptions::put(base, kept);
        }
        if let Some(outer) = outer
            && (*base).raised == 0
        {
            exceptions::put(base, outer);
        }
    }
}

/// Nanoseconds by the clock that measures pieces.
#[cfg(not(loom))]
#[unsafe(no_mangle)]
pub extern "C" fn hearth_grain_now() -> u64 {
    now_ns()
}

/// Learns how long a piece took that began then.
///
/// # Safety
/// The grain is static.
#[cfg(not(loom))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_piece_ended(grain: *mut Grain, start_ns: u64) {
    if is_fixed() {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { (*grain).piece_took(now_ns() - start_ns) };
}
