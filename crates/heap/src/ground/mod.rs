//! The ground: arithmetic, atomics, the kernel and the settings that a process has at its start.
//!
//! It must never know what a pool or a heap is.
#![cfg_attr(loom, allow(dead_code, reason = "a model uses a part of it"))]

pub(crate) mod atomics;
#[cfg(not(loom))]
pub(crate) mod directory;
#[cfg(not(loom))]
pub(crate) mod environment;
#[cfg(not(loom))]
pub(crate) mod faults;
pub mod geometry;
#[cfg(not(loom))]
pub(crate) mod harden;
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
