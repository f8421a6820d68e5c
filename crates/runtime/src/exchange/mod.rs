//! Components, the half-channels where they meet, and the carriers that run them.
//!
//! [`values`], [`channel`], [`carrier`] and [`component`] know each other: a value may be a channel
//! or a component, a channel wakes components, a carrier settles their waits. On top of the four
//! are [`external`] and [`timers`], the doors for events from outside.
//!
//! This room never knows the rooms that steer it, serve it or report on it: it calls those by
//! [`crate::hooks`].

pub(crate) mod carrier;
pub mod channel;
pub(crate) mod component;
pub mod external;
pub(crate) mod timers;
pub(crate) mod values;

use crate::ground::exits;
use crate::seats::{registry, waits};

/// Whether anything can still end the components' waits, now that none runs.
pub(crate) fn can_go_on() -> bool {
    exits::is_ending()
        || registry::users() == 0
        || waits::can_wake_any()
        || timers::any_is_awaited()
}
