//! Calls that are noted without a guard, for front ends that are told of beginnings and ends apart.
//!
//! Each thread keeps a list of its open calls. An end ends the innermost open call of its probe and
//! what is open within that; an end without a call is ignored. So ends that are missing or in
//! another order leave the account and the depth right. These calls end early or late:
//!
//! - a call whose end comes before that of a call within it: the inner one ends with it;
//! - a call that a jump or an exception has left ([`Frame::at`]), or whose probe was switched off:
//!   it ends at the thread's next beginning, or with the call around it.

use crate::here;
pub use crate::here::Frame;
use crate::probe::{OFF, Probe, UNKNOWN};

/// Notes the beginning of a call, if the probe is on.
#[inline]
pub fn begin(probe: &'static Probe, frame: Frame) {
    let state = state(probe);
    if state != OFF {
        here::begins_unguarded(probe, state, frame);
    }
}

/// Notes the end of the innermost call of a probe, if it is on.
#[inline]
pub fn end(probe: &'static Probe, frame: Frame) {
    if probe.state() > OFF {
        here::ends_unguarded(probe, frame);
    }
}

/// Whether a probe was passed before, so that it is on or off.
#[inline]
#[must_use]
pub fn is_met(probe: &'static Probe) -> bool {
    probe.state() != UNKNOWN
}

/// Whether a probe is on. It counts as passed then.
pub fn is_on(probe: &'static Probe) -> bool {
    state(probe) != OFF
}

#[inline]
fn state(probe: &'static Probe) -> u64 {
    match probe.state() {
        UNKNOWN => try_quietly(|| probe.meet()).unwrap_or(OFF),
        state => state,
    }
}

/// Runs an action during which the calling thread's calls without a guard are not noted, for the
/// work of a front end itself. None, and nothing runs, within such an action and while a call is
/// being noted.
pub fn try_quietly<R>(action: impl FnOnce() -> R) -> Option<R> {
    here::try_quietly(action)
}
