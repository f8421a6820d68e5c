//! Knowing when nothing runs any more, and waiting for descriptors and moments meanwhile.

pub(crate) mod idle;
#[cfg(not(loom))]
pub(crate) mod poller;
