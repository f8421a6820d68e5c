//! The ground: arithmetic, system calls, and the settings that a process reads at its
//! start.
//!
//! It must never know what an arena is, or a heap.
//!
//! In reading order: `geometry` has sizes, classes and addresses; `words` the arithmetic on a
//! region's word; `meter` counts steps for tests;
//! `syscall` and `os` reach the kernel; `environment` reads variables, and `limits` limits of
//! memory; `once` runs the start once; `real_time` and `harden` hold their modes; `faults` reports
//! misuse; `directory` is the layout that inspection reads.
#![cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]

#[cfg(not(loom))]
pub(crate) mod directory;
#[cfg(not(loom))]
pub(crate) mod environment;
#[cfg(not(loom))]
pub(crate) mod faults;
pub mod geometry;
#[cfg(not(loom))]
pub(crate) mod harden;
#[cfg(not(loom))]
pub(crate) mod limits;
pub(crate) mod meter;
#[cfg(not(loom))]
pub(crate) mod once;
#[cfg(not(loom))]
pub(crate) mod os;
#[cfg(not(loom))]
pub(crate) mod real_time;
#[cfg(not(any(loom, miri)))]
pub(crate) mod syscall;
pub mod words;
