//! Reads what a monitor recorded, and turns it into calls.
//!
//! [`Recorded`] opens a file, with the journal of a program that was killed, and knows the names,
//! the clocks and the account of each thread. [`Recorded::visit`] tells of calls as they began and
//! ended, and of gaps; [`Following`] does it while the program runs. On top of it are [`Tree`]s
//! with times and histograms, and other tools' forms: [`mod@formats`].
#![forbid(unsafe_code)]

mod components;
mod following;
pub mod formats;
mod recorded;
mod steps;
mod tree;

pub use following::Following;
pub use recorded::{Account, Caller, Recorded, Unreadable};
pub use steps::{Call, Step};
pub use tree::{Node, Tree};
