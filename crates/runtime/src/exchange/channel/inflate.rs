//! The end of light waiting, for a thread that must find an offer.

use std::ptr;

use super::{Channel, light, link, release};
use crate::abi::Component;
use crate::exchange::carrier::home_of;
use crate::exchange::line;
use crate::seats::waiting;

/// Inflates a component's light wait, if any, into an offer.
pub(crate) fn inflate(component: *mut Component) {
    // SAFETY: workers live as long as their runtime.
    while let Some(home) = unsafe { home_of(component).as_ref() } {
        let hold = home.hold();
        if !ptr::eq(home_of(component), home) {
            continue;
        }
        // SAFETY: held, and the half-channels waited at are alive.
        unsafe {
            if waiting::waiting_at_leave(component) != waiting::LINKED {
                light::inflate(component);
                return;
            }
            let channel = &*(*component).waits_at.cast::<Channel>();
            channel.retain();
            drop(hold);
            if let Some(line) = line::of_mark(channel.where_it_is()) {
                link::unlink(channel, line);
            }
            release(channel);
        }
    }
}
