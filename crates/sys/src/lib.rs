//! The one door to the operating system.
//!
//! Safe functions over system calls, one module a matter. Nothing here knows what a component or
//! a channel is, prints, or ends the process.

pub mod affinity;
pub mod claim;
pub mod descriptor;
pub mod futex;
pub mod memory;
pub mod signal;
pub mod stack;
