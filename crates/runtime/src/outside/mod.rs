//! Knowing when nothing runs any more, and waiting for descriptors and moments meanwhile.

pub(crate) mod idle;
pub(crate) mod poller;
