//! What there is, counted: for tests that look for what is left behind.

use crate::exchange::channel::{hub::Hub, link};
use crate::seats::{registry, waits};

/// How many of each there are. Exact while nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Components that have started and not ended.
    pub components: usize,
    /// Groups of half-channels that are shared.
    pub hubs: usize,
    /// Half-channels of two workers with a line between them.
    pub links: usize,
    /// Waits for something outside.
    pub waits: usize,
}

/// Counts.
pub fn take() -> Census {
    Census {
        components: registry::running(),
        hubs: Hub::in_use(),
        links: link::in_use(),
        waits: waits::open_waits(),
    }
}
