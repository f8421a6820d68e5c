//! Traces, read: the attempts of each thread, and what they say about conflicts.
//!
//! [`History`] holds attempts, whatever file they come from; [`report()`] tells them as text,
//! and [`perfetto()`] as a trace with an arrow from each killer to its victim.

mod conflicts;
mod history;
mod perfetto;
mod report;

pub use conflicts::{Killer, Kills};
pub use history::{Access, Attempt, End, History, Thread};
pub use perfetto::perfetto;
pub use report::{Part, parts, report};
