//! The queue of components that wait at a half-channel by an offer.

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
