//! The queue of components that wait at a half-channel by an offer.

use std::ptr;

use super::{Channel, Waiter};
use crate::abi::Site;
use crate::ground::sync::Ordering;
use crate::seats::seat::{Registration, Seat, flags};

/// Queues at a half-channel. The half-channel stays alive while the operation is pending.
///
/// # Safety
/// The channel's hub is locked and `seat` is the caller's.
pub(super) unsafe fn register(seat: &Seat, channel: &Channel, site: *const Site, waiter: Waiter) {
    channel.retain_for_wait();
    if !channel.is_of(seat) {
        // Seen by whoever sees the offer, which is opened afterwards.
        seat.flags.fetch_or(flags::WENT_ABROAD, Ordering::Relaxed);
    }
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

/// Number of a component's offers in the queue of a half-channel.
///
/// # Safety
/// The caller has leave.
pub(crate) unsafe fn offers_of(channel: &Channel, seat: &Seat) -> u32 {
    let is_its = |waiter: &&Waiter| ptr::eq(waiter.seat, seat);
    // SAFETY: as the caller promises.
    unsafe {
        channel
            .inner
            .with(|inner| inner.queue.iter().filter(is_its).count() as u32)
    }
}
