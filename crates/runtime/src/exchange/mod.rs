//! Components, the half-channels where they meet, and the carriers that run them.
//!
//! From the ground up:
//!
//! 1. [`mod@line`], what the two ends of a link share; [`values::heap`], the heaps of components;
//! 2. [`carrier`]'s workers: queues, and leave to touch their half-channels;
//! 3. [`channel`]'s half-channels with the memory that they lie in, [`block`], and
//!    [`values::object`], since a value may hold half-channels and components;
//! 4. the protocols of [`channel`]: hubs, links, light waits, send, receive, select;
//! 5. [`component`], creation and end; the loops of [`carrier`]'s threads, which resume, settle and
//!    sample; [`external`] and [`timers`], the doors for events from outside;
//! 6. [`collection`] of components that nobody can wake.
//!
//! This room never knows the rooms that steer it, serve it or report on it: it calls those by
//! [`crate::hooks`].

pub(crate) mod block;
pub(crate) mod carrier;
pub mod channel;
pub(crate) mod collection;
pub(crate) mod component;
pub mod external;
pub(crate) mod line;
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
