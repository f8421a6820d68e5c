//! Which components are servers, and how they run: on their own worker, or on that of whoever calls
//! them.
//!
//! A server is a component that receives from several others: at a half-channel with several peers,
//! some of them of other workers. What it does then is in
//! [`crate::exchange::carrier::come_to_caller`]. Where all are of one worker nothing is to be
//! gained, and light waits do not come here. So one that has not been called from elsewhere for
//! long, with all its callers where it is, stays there, until that changes.

use std::ptr;

use crate::abi::Arm;
use crate::exchange::channel::{Channel, Guard, hub};
use crate::exchange::{carrier, component};
use crate::ground::options::{self, Servers};
use crate::ground::sync::Ordering;
use crate::hooks::{self, simulation};
use crate::seats::registry;
use crate::seats::seat::{Seat, runs};
use crate::seats::serving::{BY_MESSAGE, SYNCHRONOUS, Watch};

/// With more callers than these nobody asks: what is connected would not be made local again.
const CALLERS_MAX: usize = 15;

/// The running component is going to receive at these half-channels.
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

/// One more call of a component that may be watched.
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
            SYNCHRONOUS if !carrier::comes(seat) => carrier::come_from_now(seat),
            BY_MESSAGE if carrier::comes(seat) => {
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

/// Says what was found better.
#[cold]
fn tell(seat: &Seat, why: String) {
    let way = match carrier::comes(seat) {
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
        unsafe { component::share_channels(seat.component()) };
    }
}

/// Are all that are connected with a half-channel of this worker?
fn has_only(channel: &Channel, home: *const carrier::Worker) -> bool {
    let _guard = hub::lock_of(channel);
    // SAFETY: locked; peers are alive.
    unsafe {
        let count = channel.peer_count();
        count <= CALLERS_MAX
            && (0..count).all(|index| ptr::eq(channel.peer(index).as_ref().home(), home))
    }
}

/// The running component receives from whoever comes at a half-channel whose group the caller has
/// leave for. If that makes a server of it, it is one from now on.
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
        // There no time passes that could be compared.
        return;
    }
    // SAFETY: the component runs the calling code, which has leave.
    unsafe {
        let callers = channel.peer_count();
        let watch = Box::new(Watch::new(carrier::destination_to(home), callers));
        seat.more.with_mut(|more| more.serving.watch = Some(watch));
    }
}

/// Is any of those that are connected with a half-channel of another worker?
fn calls_from_elsewhere(channel: &Channel, home: *const carrier::Worker) -> bool {
    // SAFETY: the caller has leave; peers are alive.
    unsafe {
        let count = channel.peer_count();
        count > CALLERS_MAX
            || (0..count).any(|index| !ptr::eq(channel.peer(index).as_ref().home(), home))
    }
}
