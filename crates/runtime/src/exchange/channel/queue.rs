//! The queue of components that wait at a half-channel by an offer.

use std::ptr;

use super::{Channel, Waiter};
use crate::abi::Site;
use crate::seats::seat::{Registration, Seat};

/// Queues at a half-channel. The half-channel stays alive while the operation is pending.
///
/// # Safety
/// The channel's hub is locked and `seat` is the caller's.
pub(super) unsafe fn register(seat: &Seat, channel: &Channel, site: *const Site, waiter: Waiter) {
    channel.retain_for_wait();
    // SAFETY: as the caller promises.
    unsafe {
        seat.offer.with_mut(|offer| {
            offer.registered.push(Registration {
                channel: channel.opaque(),
                site,
                arm: waiter.arm,
            })
        });
        channel.change_queue(|inner| inner.queue.push_back(waiter));
    }
}

/// Number of a component's entries in the queue of a half-channel, and the number of half-channels
/// at which its operation waits: 0 if it has no entry, or if that is too large a number.
///
/// # Safety
/// The caller has leave.
pub(crate) unsafe fn entries_of(channel: &Channel, seat: &Seat) -> (u32, u16) {
    // SAFETY: as the caller promises.
    unsafe {
        channel.inner.with(|inner| {
            let entries = inner.queue.iter();
            let its = entries.filter(|waiter| ptr::eq(waiter.seat, seat));
            its.fold((0, 0), |(count, _), waiter| (count + 1, waiter.arms))
        })
    }
}
