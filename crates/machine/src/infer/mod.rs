//! Inference of a machine's structure from measured latencies.
//!
//! The input is [`Latencies`] between pairs of hardware threads, possibly with pairs missing.
//! [`Tree::infer`] finds the levels and the groups of threads at each; [`check`] compares the
//! claims of firmware and kernel with them; [`PairPlan`] chooses the pairs to measure where all
//! would be too many, and [`Tree::fill`] completes the rest and marks the figures that are not
//! measured.
//!
//! ```
//! use hearth_machine::infer::{Latencies, Latency, Tree};
//! use hearth_machine::topology::OsThread;
//!
//! let threads: Vec<OsThread> = (0..4).map(OsThread).collect();
//! let mut latencies = Latencies::new(&threads)?;
//! for (a, b) in latencies.pairs() {
//!     let ns = if a.0 / 2 == b.0 / 2 { 25.0 } else { 90.0 };
//!     latencies.set(a, b, Latency { ns, error_ns: 0.5 })?;
//! }
//! let tree = Tree::infer(&latencies);
//! assert_eq!(tree.levels.len(), 2);
//! assert_eq!(tree.levels[0].groups, [[OsThread(0), OsThread(1)], [OsThread(2), OsThread(3)]]);
//! # Ok::<(), hearth_machine::infer::LatencyError>(())
//! ```

mod claims;
mod latencies;
mod levels;
mod linkage;
mod plan;
mod tree;
mod verdicts;

pub use claims::{Evidence, GroupingKind, GroupingVerdict, Ratio, Report, check};
pub use latencies::{Latencies, Latency, LatencyError};
pub use plan::{PairPlan, pairs_max};
pub use tree::{Filled, Level, Origin, Tree};
