//! The simulator's decisions about the exchange and its view of it, if a simulation runs.
//!
//! The simulator fills in a table of functions as it begins. Under the model checker, which has its
//! own schedules, there is no simulator.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::By;
use super::Choice;
use crate::abi::{Arm, Channel, Component, ComponentType, Site, Step};
use crate::seats::seat::{Identity, Seat};

/// A component's operation at half-channels.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    Send(*const Channel),
    Receive(*const Channel),
    Acknowledge(*const Channel),
    Select(&'a [Arm]),
}

/// The table. Its functions match those of this module by name.
pub(crate) struct Director {
    pub(crate) operate:
        unsafe fn(*mut Component, At<'_>, *const Site, &mut dyn FnMut() -> Step) -> Step,
    pub(crate) deed: unsafe fn(*mut Component, &'static str, *const Site, &mut dyn FnMut()),
    pub(crate) beside: fn(u64, usize) -> usize,
    pub(crate) place: fn(i32, *const ComponentType, &Identity) -> usize,
    pub(crate) made: unsafe fn(*mut Component, u64),
    pub(crate) ends_pass: unsafe fn(*mut Component),
    pub(crate) pauses_between_passes: unsafe fn(*mut Component) -> bool,
    pub(crate) passed: fn(*mut Component, *mut Component),
    pub(crate) ticked: fn(*mut Component),
    pub(crate) enter: fn(Option<Duration>) -> bool,
    pub(crate) leave: fn(),
    pub(crate) now: fn() -> Instant,
    pub(crate) after: fn(Duration, Box<dyn FnOnce() + Send>),
    pub(crate) seed: fn() -> u64,
    pub(crate) workers: fn() -> Option<usize>,
    pub(crate) failed: fn(&Seat),
    pub(crate) meanwhile: fn(),
}

/// Process-wide: only a compiled program is simulated, and it is the whole process.
static ON: AtomicBool = AtomicBool::new(false);
static DIRECTOR: OnceLock<&'static Director> = OnceLock::new();

/// Begins a simulation, before the first component is made.
pub(crate) fn begin(director: &'static Director) {
    let _ = DIRECTOR.set(director);
    ON.store(true, Ordering::Relaxed);
}

/// Whether this is a simulation.
#[inline]
pub(crate) fn is_on() -> bool {
    // Relaxed: set before the first component is made.
    cfg!(not(loom)) && ON.load(Ordering::Relaxed)
}

fn director() -> &'static Director {
    match DIRECTOR.get() {
        Some(director) => director,
        None => unreachable!("a simulation has a director"),
    }
}

/// Runs `work`, an operation of the component at half-channels; it returns how the operation ended.
///
/// # Safety
/// The component runs the calling code.
#[inline]
pub(crate) unsafe fn operate(
    component: *mut Component,
    at: At<'_>,
    site: *const Site,
    work: impl FnOnce() -> Step,
) -> Step {
    if !is_on() {
        return work();
    }
    let mut work = Some(work);
    // SAFETY: as the caller promises.
    unsafe {
        (director().operate)(component, at, site, &mut || match work.take() {
            Some(work) => work(),
            None => unreachable!("an operation is done once"),
        })
    }
}

/// Runs `work`, a non-blocking action of the component, described by these words.
///
/// # Safety
/// The component runs the calling code, or is null; then it is not simulated.
#[inline]
pub(crate) unsafe fn deed<R>(
    component: *mut Component,
    words: &'static str,
    site: *const Site,
    work: impl FnOnce() -> R,
) -> R {
    if !is_on() || component.is_null() {
        return work();
    }
    let mut work = Some(work);
    let mut result = None;
    // SAFETY: as the caller promises.
    unsafe {
        (director().deed)(component, words, site, &mut || {
            result = work.take().map(|work| work());
        });
    }
    match result {
        Some(result) => result,
        None => unreachable!("a deed is done"),
    }
}

/// Chooses among the records of calls that another worker may run at this point of the component
/// with this number, plainly none; 1 is the oldest.
pub(crate) fn beside(subject: u64, options: usize) -> usize {
    (director().beside)(subject, options)
}

/// Chooses the worker for a new component.
pub(crate) fn place(request: i32, of: *const ComponentType, identity: &Identity) -> Option<Choice> {
    let by = if request < 0 { By::Policy } else { By::Name };
    let core = (director().place)(request, of, identity);
    Some(Choice { core, by })
}

/// Reports a new component, with its number of passes to go.
///
/// # Safety
/// The caller owns it, and there is a simulation.
pub(crate) unsafe fn made(component: *mut Component, passes: u64) {
    // SAFETY: as the caller promises.
    unsafe { (director().made)(component, passes) }
}

/// Reports the end of a component's pass.
///
/// # Safety
/// The component runs the calling code, and there is a simulation.
pub(crate) unsafe fn ends_pass(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (director().ends_pass)(component) }
}

/// Whether the schedule sets the component aside between two passes.
///
/// # Safety
/// As for [`ends_pass`].
pub(crate) unsafe fn pauses_between_passes(component: *mut Component) -> bool {
    // SAFETY: as the caller promises.
    unsafe { (director().pauses_between_passes)(component) }
}

/// Reports that a value has passed from one component to another.
#[inline]
pub(crate) fn passed(from: *mut Component, to: *mut Component) {
    if is_on() {
        (director().passed)(from, to);
    }
}

/// Reports that a value has reached a component from outside.
#[inline]
pub(crate) fn ticked(to: *mut Component) {
    if is_on() {
        (director().ticked)(to);
    }
}

/// Admits an outside thread when the schedule allows; false if that would take longer than
/// `patience`.
pub(crate) fn enter(patience: Option<Duration>) -> bool {
    (director().enter)(patience)
}

/// Releases that thread's admission.
pub(crate) fn leave() {
    (director().leave)();
}

/// The clock of the timers.
pub(crate) fn now() -> Instant {
    match is_on() {
        true => (director().now)(),
        false => Instant::now(),
    }
}

/// Schedules an event after a span of simulated time.
pub(crate) fn after(while_: Duration, event: impl FnOnce() + Send + 'static) {
    (director().after)(while_, Box::new(event));
}

/// The seed of the simulation, if one runs.
pub(crate) fn seed() -> Option<u64> {
    is_on().then(|| (director().seed)())
}

/// The number of workers that the given schedule is for.
pub(crate) fn workers() -> Option<usize> {
    (director().workers)()
}

/// Reports that an uncaught exception has ended a component.
pub(crate) fn failed(seat: &Seat) {
    if is_on() {
        (director().failed)(seat);
    }
}

/// Lets workers step in the middle of a collection, as the schedule says. The caller holds no lock.
pub(crate) fn meanwhile() {
    if is_on() {
        (director().meanwhile)();
    }
}
