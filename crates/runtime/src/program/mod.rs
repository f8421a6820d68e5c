//! A compiled program: from `main` to the end of the process.

mod ending;
mod signals;
mod start;

pub use start::{hearth_argument, hearth_argument_count, hearth_main};
