//! Counts live runtime objects, for tests that look for leaks.

use crate::exchange::channel::hub::Hub;
use crate::exchange::line;
use crate::seats::{registry, waits};

/// Number of live objects of each kind. Exact while nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Components that have started and not ended.
    pub components: usize,
    /// Groups of shared half-channels.
    pub hubs: usize,
    /// Linked half-channels: two workers with a line between them.
    pub links: usize,
    /// Pending waits for something outside.
    pub waits: usize,
}

/// Takes the counts.
pub fn take() -> Census {
    Census {
        components: registry::running(),
        hubs: Hub::in_use(),
        links: line::in_use(),
        waits: waits::open_waits(),
    }
}
