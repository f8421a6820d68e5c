//! The one door to the operating system.
//!
//! Safe functions over system calls, one module a matter. Nothing here knows what a component or a
//! channel is, prints, or ends the process.
//!
//! For every program: [`affinity`], [`memory`], [`futex`], [`membarrier`], [`threading`],
//! [`brief`], [`spin`], [`signal`], [`stack`], [`descriptor`], [`epoll`], [`epoll_once`],
//! [`mod@select`], [`eventfd`], [`uring`], [`limits`], [`file_lock`], [`paths`], [`shared`],
//! [`service`]. To measure: [`clock`], [`mapping`], [`policy`], [`usage`], [`schedule`],
//! [`counters`], [`ping_pong`], [`semaphore`], [`procfs`]. To look at other processes and at
//! people: [`process`], [`terminal`]. What the system will not do comes back as a [`Refused`],
//! with the reason and the next step. [`System`] is the part that can be imagined for a test.
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
pub mod brief;
pub mod clock;
pub mod control_groups;
pub mod counters;
pub mod descriptor;
pub mod epoll;
pub mod epoll_once;
pub mod eventfd;
pub mod file_lock;
pub mod futex;
pub mod limits;
mod lists;
pub mod mapping;
pub mod membarrier;
pub mod memory;
pub mod paths;
pub mod ping_pong;
pub mod policy;
pub mod privileges;
pub mod process;
pub mod procfs;
pub mod refused;
pub mod schedule;
pub mod select;
pub mod semaphore;
pub mod service;
pub mod shared;
pub mod signal;
pub mod spin;
pub mod stack;
pub mod system;
pub mod terminal;
pub mod threading;
mod time;
pub mod uring;
pub mod usage;

pub use refused::{Reason, Refused};
pub use system::{Fake, Linux, System};
