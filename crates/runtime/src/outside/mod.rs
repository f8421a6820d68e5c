//! Detects that nothing runs any more, and waits for descriptors and timers meanwhile.

pub(crate) mod idle;
pub(crate) mod poller;
