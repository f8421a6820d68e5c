//! Distances between uses of data, and their consequences for caches.
//!
//! The *reuse distance* of a reference is the number of other lines touched since the last use of
//! its line (LRU stack distance). A cache of `n` lines that evicts the least recently used line
//! holds exactly the lines whose distance is below `n`. The source of the message-passing study
//! reasons with it and never measures it; here a trace measures it.
//!
//! - [`trace`]: traces as text, line by line: those of valgrind's lackey, and a form of our own.
//! - [`Analysis`]: turns a trace into histograms, miss ratios and the effects of components on each
//!   other.
//! - [`Stack`]: the distances themselves; [`Sampler`]: bounded memory, by following a sample of the
//!   lines, with the resulting error.
//! - [`Histogram`]: counts of distances.
//! - [`thrashing`]: whether throughput falls as threads are added.
//!
//! Two components that each fit a cache and evict each other's data:
//!
//! ```
//! use hearth_model::locality::{Access, Analysis, AnalysisOptions, Level};
//!
//! let mut analysis = Analysis::new(AnalysisOptions::new().level(Level::private("L1d", 100)));
//! for _pass in 0..10 {
//!     for (name, first) in [("walk", 0_u64), ("section", 1000)] {
//!         let component = analysis.component(name);
//!         for line in first..first + 80 {
//!             analysis.add(Access { line, thread: 0, component, write: false });
//!         }
//!     }
//! }
//! let report = analysis.report();
//! assert_eq!(report.displacements.len(), 2);
//! println!("{}", report.displacements[0]);
//! ```

mod analysis;
mod histogram;
mod report;
mod sampler;
mod stack;
pub mod thrashing;
pub mod trace;

pub use analysis::{Access, Analysis, AnalysisOptions, ComponentId, Level};
pub use histogram::Histogram;
pub use report::{ComponentReport, Displacement, Estimate, Invalidation, LevelReport, Report};
pub use sampler::Sampler;
pub use stack::{Stack, Touch};
