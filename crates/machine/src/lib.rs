//! A machine as data: its [parts](topology), the [distance](relation) of two of them, the [profile]
//! of its costs, the files in a [capture] of one, [short descriptions](synthetic) of machines that
//! nobody has at hand, hwloc's XML (feature `hwloc`), and [inference](infer) from measured
//! latencies.
//!
//! Nothing here reads a file, a clock or the environment: `hearth-sys` and `hearth-probe` do, and
//! hand over text and numbers. This crate must never know how a figure was measured, who runs
//! where, or what a program is.
//!
//! ```
//! use hearth_machine::synthetic;
//!
//! let machine = synthetic::parse("2 packages, 4 cores, 2 threads, l2 1M per core, l3 16M per package")?;
//! assert_eq!(machine.threads().len(), 16);
//! for (relation, (a, b)) in machine.representatives() {
//!     assert!(machine.relation(a, b) == relation);
//! }
//! # Ok::<(), synthetic::DescriptionError>(())
//! ```
#![forbid(unsafe_code)]

pub mod topology;

pub mod relation;

pub mod profile;

pub mod synthetic;

pub mod infer;

pub mod capture;

#[cfg(feature = "hwloc")]
pub mod hwloc;
