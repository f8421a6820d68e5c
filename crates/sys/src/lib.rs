//! The one door to the operating system.
//!
//! Safe functions over system calls, one module a matter. Nothing here knows what a component or
//! a channel is, prints, or ends the process.
//!
//! For every program: [`affinity`], [`memory`], [`futex`], [`signal`], [`stack`], [`descriptor`],
//! [`poll`], [`ready`], [`mod@select`], [`bell`], [`uring`], [`limits`], [`claim`], [`paths`], [`shared`]. For those who measure: [`clock`], [`mapping`], [`policy`], [`usage`],
//! [`schedule`], [`counters`], [`relay`], [`sync`], [`procfs`]. For those who look at others:
//! [`process`], [`terminal`]. What the system will not do comes back as a [`Refused`], with the reason
//! and the next step. [`System`] is the part that can be imagined for a test.
//!
//! ```
//! use hearth_sys::clock::Clock;
//! use hearth_sys::{Linux, System};
//!
//! let core = Linux.allowed()?[0];
//! let pinned = Linux.pin(core)?;
//! let clock = Clock::calibrate(&Linux, 4);
//! let begin = clock.ticks_ordered();
//! assert!(clock.ticks_ordered() >= begin);
//! # drop(pinned);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod affinity;
pub mod bell;
pub mod claim;
pub mod clock;
pub mod counters;
pub mod descriptor;
pub mod futex;
pub mod limits;
pub mod mapping;
pub mod membarrier;
pub mod memory;
pub mod paths;
pub mod policy;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod ready;
pub mod refused;
pub mod relay;
pub mod schedule;
pub mod select;
pub mod service;
pub mod shared;
pub mod signal;
pub mod stack;
pub mod sync;
pub mod system;
pub mod terminal;
pub mod uring;
pub mod usage;

pub use refused::{Reason, Refused};
pub use system::{Fake, Linux, System};
