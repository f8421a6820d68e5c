//! The carriers of components: the one place that knows about threads.
//!
//! The rest of the runtime needs three things of a carrier.
//!
//! - `launch(component)`: runs it. The carrier calls the component's `resume` until it returns
//!   something other than Blocked, then [`crate::exchange::component::end`].
//! - Blocking: after Blocked the carrier waits for the component's one `wake`, which may have come
//!   already, then calls [`crate::exchange::channel::settle`] and resumes. It never reads the
//!   offer.
//! - `wake(seat)`: exactly one for each Blocked, by the thread that completed or interrupted the
//!   wait. The component may run, end and be freed before `wake` returns.
//!
//! A carrier tells [`crate::outside::idle`] when it runs out of components and when it has some
//! again.
//!
//! A component's `home` names its carrier: a worker, or null for a thread of its own.

mod threads;
pub(crate) mod traffic;
pub(crate) mod waits;
mod workers;

#[cfg(all(test, loom))]
pub(crate) use threads::wait;
pub(crate) use threads::{keep_running, move_thread};
pub use workers::Worker;
#[cfg(all(test, loom))]
pub(crate) use workers::world::{SPARE_RUNNER, enlist, interfere, live, moves, start, worker};
pub(crate) use workers::{
    Entered, Hold, Linked, Operation, come_from_now, come_to_caller, component_on, core_of, cores,
    destination_to, hold_both, home_of, is_kept_placed, keep_named, keep_placed, keep_planned,
    mark_of, of_mark, own_worker, parks, post, ready_here, ready_here_last, rejoin, settle_coming,
    stay, worker_count, worker_of,
};
pub(crate) use workers::{
    Order, Stage, as_stranger, at_work, order, pin_again, running, stations, with_open_gate,
};

use crate::abi::Component;
use crate::ground::options::{self, Carrying};
use crate::ground::runtime::{self, Runtime};
use crate::ground::without::Mechanism;
use crate::seats::seat::{Seat, seat_of};

/// Stack of a thread that runs components or serves descriptors, in bytes. Only touched pages cost
/// memory; procedures that recurse through forward types may go as deep as on the main thread, and
/// values from other nodes are read by recursion, up to [`crate::portable`]'s 1000 levels.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// The worker for a new component, by its core; null if it gets a thread of its own.
pub(crate) fn place(core: Option<usize>) -> *const Worker {
    match options::get().carrying {
        Carrying::Threads => std::ptr::null(),
        Carrying::Workers => workers::for_core(core),
    }
}

/// The number of a component's worker, and the core it is pinned to. The caller holds the
/// registry's lock.
pub(crate) fn whereabouts(seat: &Seat) -> (Option<usize>, Option<usize>) {
    match workers::worker_and_core(seat.component()) {
        Some((worker, core)) => (Some(worker), core),
        None => (None, threads::core_of(seat.id)),
    }
}

/// Called when there is something outside to wait for: makes a thread wait for it, now or once
/// idle.
pub(crate) fn see_to_outside() {
    if crate::hooks::simulation::is_on() {
        // Descriptors only: a simulation has its own clock.
        return threads::see_to_outside();
    }
    match options::get().carrying {
        Carrying::Threads => threads::see_to_outside(),
        Carrying::Workers if Mechanism::Poller.is_off() => threads::see_to_outside(),
        Carrying::Workers => workers::see_to_outside(),
    }
}

/// Wakes all threads that carry components or wait for the outside: the runtime is over.
pub(crate) fn wake_all() {
    workers::wake_all();
    crate::outside::poller::ring_if_made();
}

/// The runtime that a component belongs to.
pub(crate) fn runtime_of<'a>(component: *mut Component) -> &'a Runtime {
    // SAFETY: alive, so its runtime is; a component with a thread of its own is in no queue, and
    // its `next` holds the runtime.
    unsafe {
        match home_of(component).as_ref() {
            Some(home) => home.runtime(),
            None => match (*component).next.cast::<Runtime>().as_ref() {
                Some(runtime) => runtime,
                // Made by hand.
                None => runtime::current(),
            },
        }
    }
}

/// Starts a component.
///
/// # Safety
/// It was just made, and has a reference for its own run.
pub(crate) unsafe fn launch(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe {
        if (*component).home.is_null() {
            threads::launch(component);
        } else {
            workers::ready(component);
        }
    }
}

/// Resumes a blocked component.
///
/// # Safety
/// Its wait was completed or interrupted by the caller. The seat may be gone afterwards.
pub(crate) unsafe fn wake(seat: *const Seat) {
    // SAFETY: this wait has one waker, so the component is alive and does not migrate.
    unsafe {
        let component = (*seat).component();
        if (*component).home.is_null() {
            threads::wake(seat);
        } else {
            workers::ready(component);
        }
    }
}

/// Pins the calling component to a core, now or after its next wait.
///
/// # Safety
/// `component` runs this.
pub(crate) unsafe fn set_core(component: *mut Component, core: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let seat = seat_of(component);
        stay(seat);
        keep_named(seat);
        if (*component).home.is_null() {
            threads::keep_current(seat_of(component), core);
        } else {
            workers::move_to(seat_of(component), core);
        }
    }
}
