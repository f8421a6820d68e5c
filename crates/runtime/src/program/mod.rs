//! A compiled program: from `main` to the end of the process.

mod ending;
mod probes;
mod signals;
mod start;

pub use probes::{hearth_probe_begins, hearth_probe_ends, hearth_probed_main};
pub use start::{hearth_argument, hearth_argument_count, hearth_main};
