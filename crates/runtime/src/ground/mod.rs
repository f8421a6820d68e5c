//! The base of every room: atomics and locks, options, output, and the ways a process ends.
//!
//! This room never knows about components.

pub(crate) mod calls;
pub(crate) mod choices;
pub(crate) mod exits;
#[cfg(not(loom))]
pub(crate) mod helpers;
pub(crate) mod options;
pub mod output;
#[cfg(loom)]
pub(crate) mod planted_faults;
pub(crate) mod runtime;
pub(crate) mod settings;
pub(crate) mod sync;
pub(crate) mod without;
