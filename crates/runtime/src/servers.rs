//! Which components are servers, and how they run: on their own worker, or on that of whoever calls them.
//!
//! A server is a component that receives from several others: at a half-channel with several peers, some of
//! them of other workers. Where all are of one worker nothing is to be gained, and light waits do
//! not come here. What it does then is in [`crate::carrier::come_to_caller`].

use crate::channel::{Channel, Guard};
use crate::options::{self, Servers};
use crate::seat::{Seat, runs};
use crate::sync::Ordering;
use crate::{carrier, registry};

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
    if several && !stays && !carrier::home_of(seat.component()).is_null() {
        carrier::come_from_now(seat);
    }
}
