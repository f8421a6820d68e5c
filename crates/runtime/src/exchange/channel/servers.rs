//! Servers and their mode: they run on their own worker, or on their caller's.
//!
//! A server is a component that receives from several others: at a half-channel with several peers,
//! some of them of other workers. [`crate::exchange::carrier::come_to_caller`] then migrates it. If
//! all are of one worker there is nothing to gain, and light waits do not come here. So a server
//! with all its callers on its worker, not called from elsewhere for a long time, stays there until
//! that changes.

use std::ptr;

use crate::abi::Arm;
use crate::exchange::carrier;
use crate::exchange::channel::{Channel, Guard, hub};
use crate::ground::options::{self, Servers};
use crate::ground::sync::Ordering;
use crate::hooks::{self, simulation};
use crate::seats::registry;
use crate::seats::seat::{Seat, runs};
use crate::seats::serving::{BY_MESSAGE, SYNCHRONOUS, Watch};

/// Most callers for which the check runs: a larger group would not be made local again.
const CALLERS_MAX: usize = 15;

/// Called when the running component is about to receive at these half-channels.
///
/// # Safety
/// `seat` is that of the component that runs the calling code, which holds no lock; the
/// half-channels are alive.
#[inline]
pub(crate) unsafe fn begin<'a>(seat: &Seat, channels: impl Iterator<Item = &'a Channel>) {
    match options::get().servers {
        Servers::Asynchronous => {}
        Servers::Synchronous if seat.runs.load(Ordering::Relaxed) == runs::COMES => {
            // SAFETY: as the caller promises.
            unsafe { stay_if_all_are_here(seat, channels) };
        }
        Servers::Synchronous => {}
        // SAFETY: as the caller promises.
        Servers::Auto => unsafe { count(seat) },
    }
}

/// Counts a call of a component that may be watched.
///
/// # Safety
/// As for [`begin`].
unsafe fn count(seat: &Seat) {
    // SAFETY: as the caller promises: what is lazily made is the component's own.
    unsafe {
        if !seat.more.is_made() {
            return;
        }
        let change = seat
            .more
            .with_mut(|more| more.serving.watch.as_mut()?.count());
        let Some(change) = change else {
            return;
        };
        match change.mode {
            SYNCHRONOUS if !seat.comes_to_callers() => carrier::come_from_now(seat),
            BY_MESSAGE if seat.comes_to_callers() => {
                carrier::stay(seat);
                (*seat.component()).destination = change.home;
            }
            _ => {}
        }
        if let Some(why) = change.why {
            tell(seat, why);
        }
    }
}

/// Reports the mode that was found better.
#[cold]
fn tell(seat: &Seat, why: String) {
    let way = match seat.comes_to_callers() {
        false => Servers::Asynchronous,
        true => Servers::Synchronous,
    };
    (hooks::get().serves)(seat, way, why);
}

/// The half-channels of a select's arms.
///
/// # Safety
/// They are alive.
pub(crate) unsafe fn of_arms(arms: &[Arm]) -> impl Iterator<Item = &Channel> {
    // SAFETY: as the caller promises.
    arms.iter()
        .filter_map(|arm| unsafe { arm.channel.cast::<Channel>().as_ref() })
}

/// # Safety
/// As for [`begin`].
unsafe fn stay_if_all_are_here<'a>(seat: &Seat, mut channels: impl Iterator<Item = &'a Channel>) {
    let home = carrier::home_of(seat.component());
    // SAFETY: as the caller promises: what is lazily made is the component's own.
    let is_time = unsafe { seat.more.with_mut(|more| more.serving.count(home.addr())) };
    if is_time && channels.all(|channel| has_only(channel, home)) {
        carrier::stay(seat);
        // They may be made local, or linked, again.
        // SAFETY: the component runs the calling code.
        unsafe { hub::make_all_shared(seat.component()) };
    }
}

/// Whether all peers of a half-channel are of this worker.
fn has_only(channel: &Channel, home: *const carrier::Worker) -> bool {
    let _guard = hub::lock_of(channel);
    // SAFETY: locked; peers are alive.
    unsafe {
        let count = channel.peer_count();
        count <= CALLERS_MAX
            && (0..count).all(|index| ptr::eq(channel.peer(index).as_ref().home(), home))
    }
}

/// Called when the running component receives from any peer at a half-channel whose group the
/// caller has leave for. Makes it a server if that qualifies it.
#[inline]
pub(crate) fn notice(seat: &Seat, channel: &Channel, guard: &Guard) {
    if options::get().servers != Servers::Asynchronous
        && let Guard::Hub(_) = guard
    {
        consider(seat, channel);
    }
}

fn consider(seat: &Seat, channel: &Channel) {
    if matches!(seat.runs.load(Ordering::Relaxed), runs::COMES | runs::NAMED) {
        return;
    }
    // SAFETY: the caller has leave.
    let several = unsafe { channel.peer_count() } > 1;
    let stays = seat.identity().service || registry::is_main(seat);
    let home = carrier::home_of(seat.component());
    // SAFETY: the component runs the calling code.
    let is_watched =
        unsafe { seat.more.is_made() && seat.more.with(|more| more.serving.watch.is_some()) };
    if is_watched {
        return;
    }
    if !several || stays || home.is_null() || !calls_from_elsewhere(channel, home) {
        return;
    }
    if options::get().servers == Servers::Synchronous {
        carrier::come_from_now(seat);
        return;
    }
    if simulation::is_on() {
        // No real time passes there to compare.
        return;
    }
    // SAFETY: the component runs the calling code, which has leave.
    unsafe {
        let callers = channel.peer_count();
        let watch = Box::new(Watch::new(carrier::destination_to(home), callers));
        seat.more.with_mut(|more| more.serving.watch = Some(watch));
    }
}

/// Whether any peer of a half-channel is of another worker.
fn calls_from_elsewhere(channel: &Channel, home: *const carrier::Worker) -> bool {
    // SAFETY: the caller has leave; peers are alive.
    unsafe {
        let count = channel.peer_count();
        count > CALLERS_MAX
            || (0..count).any(|index| !ptr::eq(channel.peer(index).as_ref().home(), home))
    }
}
