//! Monitors a program's calls through probes, and accounts for every record.
//!
//! A [`Probe`] stands at a place of the program, usually a function; [`call!`] declares one. While
//! it is on, each passage writes two records, one at its beginning and one at its end, into blocks
//! of the calling thread ([`hearth_watch::stream`]). A [`Monitor`] switches probes by patterns of
//! their names, and has exactly one writer, which stores the blocks. Programs without a monitor,
//! and probes that are off, pay for a load and a branch.
//!
//! Reading what was written is another crate's matter, `hearth-calls`; a program that is monitored
//! does not contain it.
//!
//! ```
//! use hearth_monitor::{Monitor, Options, call};
//!
//! fn handle(request: u32) -> u32 {
//!     call!("Server.handle");
//!     request + 1
//! }
//!
//! let directory = std::env::temp_dir();
//! let file = directory.join(format!("example-{}.calls", std::process::id()));
//! let monitor = Monitor::begin(Options::to_file(&file).on("Server.*"))?;
//! assert_eq!(handle(1), 2);
//! let report = monitor.finish();
//! assert_eq!((report.emitted, report.lost), (2, 0));
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Options::of_env`] reads the choices from the variable `HEARTH_MONITOR` instead.
//!
//! Front ends for programs that have no such probes: the module `tracing`, with the feature of that
//! name, for spans of the crate `tracing`, and `hearth-monitor-c` for C and C++, which stand on
//! [`unguarded`]; [`components`] for compiled Insense.
#![forbid(unsafe_code)]

pub mod components;
mod controller;
pub mod forks;
mod here;
mod options;
mod parse;
mod probe;
mod rules;
mod switches;
#[cfg(feature = "tracing")]
pub mod tracing;
pub mod unguarded;

pub use controller::{Monitor, NotBegun, Report};
pub use options::{Destination, Mode, Options};
pub use parse::{Misread, VARIABLE};
pub use probe::{Call, Probe};
pub use rules::Rule;
pub use switches::{Outside, Unheard};
