//! Which components are servers, and how they run: on their own worker, or on that of whoever calls them.
//!
//! A server is a component that receives from several others: at a half-channel with several peers, some of
//! them of other workers. What it does then is in [`crate::carrier::come_to_caller`]. Where all are of one
//! worker nothing is to be gained, and light waits do not come here. So one that has not been called from
//! elsewhere for long, with all its callers where it is, stays there, until that changes.

use std::ptr;

use crate::abi::Arm;
use crate::channel::{Channel, Guard, hub};
use crate::options::{self, Servers};
use crate::seat::{Seat, runs};
use crate::sync::Ordering;
use crate::{carrier, component, registry};

/// After so many calls at one worker it is asked whether all callers are there: to stay takes some
/// microseconds, a hundredth of what so many calls do.
const CALLS: u32 = 512;
/// With more callers than these nobody asks.
const CALLERS_MAX: usize = 64;

/// What is known of a server that comes; its own while it is awake.
#[derive(Default)]
pub(crate) struct Serving {
    /// Where it was called last, and how often in a row. The address is only compared.
    at: usize,
    calls: u32,
}

impl Serving {
    /// One more call; true after some at the same worker.
    fn count(&mut self, home: usize) -> bool {
        if self.at != home {
            *self = Serving { at: home, calls: 0 };
        }
        self.calls += 1;
        self.calls.is_multiple_of(CALLS)
    }
}

/// The running component is going to receive at these half-channels.
///
/// # Safety
/// `seat` is that of the component that runs the calling code, which holds no lock; the half-channels are
/// alive.
#[inline]
pub(crate) unsafe fn begin<'a>(seat: &Seat, channels: impl Iterator<Item = &'a Channel>) {
    if seat.runs.load(Ordering::Relaxed) == runs::COMES {
        // SAFETY: as the caller promises.
        unsafe { stay_if_all_are_here(seat, channels) };
    }
}

/// The half-channels of a select's arms.
///
/// # Safety
/// They are alive.
pub(crate) unsafe fn of_arms(arms: &[Arm]) -> impl Iterator<Item = &Channel> {
    // SAFETY: as the caller promises.
    arms.iter()
        .filter_map(|arm| unsafe { arm.channel.as_ref() })
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

/// The running component receives from whoever comes at a half-channel whose group the caller has leave
/// for. If that makes a server of it, it is one from now on.
#[inline]
pub(crate) fn notice(seat: &Seat, channel: &Channel, guard: &Guard) {
    if options::get().servers == Servers::Synchronous
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
    if several && !stays && !home.is_null() && calls_from_elsewhere(channel, home) {
        carrier::come_from_now(seat);
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
