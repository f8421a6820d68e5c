//! Software transactional memory over words.
//!
//! A transaction reads and writes shared variables as if it were alone. No transaction, not even
//! one that will be undone, sees an inconsistent state. This crate never knows what a component or
//! a channel is. Without traces it has no state of the process and no files: it calls a tracer,
//! which a type or a feature of the build puts in.
//!
//! - [`Stm`] is an instance, with [`Lsa`] (the default) or [`Norec`] as its algorithm; [`Tx`] is a
//!   running transaction.
//! - [`Var`] holds a [`Word`]: integers, floating-point numbers, small structures. [`Wide`] holds
//!   several words.
//! - [`Map`], [`Queue`] and [`Tree`] are structures on top. Their nodes come from a [`Slab`].
//! - [`trace`] is the seam for traces; [`Traced`] is an algorithm with a tracer of one's choice.
//!   With the feature `trace` there is one that records, and the module `analysis` reads its files.
//!
//! Every transaction whose body ends commits in the end: see `docs/internals/stm.md`.
//!
//! ```
//! use std::thread;
//! use hearth_stm::{Stm, Var};
//!
//! let stm = Stm::new();
//! let accounts = [Var::new(100), Var::new(0)];
//! thread::scope(|scope| {
//!     // Waits until there is something to take.
//!     scope.spawn(|| {
//!         stm.atomically(|tx| {
//!             let there = tx.read(&accounts[1])?;
//!             if there == 0 { tx.retry() } else { tx.write(&accounts[1], there - 1) }
//!         });
//!     });
//!     scope.spawn(|| {
//!         stm.atomically(|tx| {
//!             tx.update(&accounts[0], |sum| sum - 10)?;
//!             tx.update(&accounts[1], |sum| sum + 10)
//!         });
//!     });
//! });
//! assert_eq!(stm.atomically(|tx| tx.fold(&accounts, 0, |sum, one| sum + one)), 99);
//! ```

mod algorithm;
#[cfg(feature = "trace")]
pub mod analysis;
mod attempt;
mod counter;
mod fault;
mod halt;
#[cfg(all(test, loom))]
mod loom_tests;
mod lsa;
mod norec;
#[cfg(all(test, not(loom)))]
mod opacity;
mod raw;
mod stm;
#[cfg(not(loom))]
mod structures;
pub mod trace;
#[cfg(not(loom))]
mod traced;
mod tx;
mod var;
mod waiting;
mod word;

pub use algorithm::Algorithm;
pub use attempt::Counts;
pub use halt::{Halt, Stop, abort};
pub use lsa::Lsa;
pub use norec::Norec;
pub use stm::{Stm, thread_counts, with_tracer};
#[cfg(not(loom))]
pub use structures::{Map, Memory, Queue, RedBlack, Slab, Tree};
#[cfg(not(loom))]
pub use traced::Traced;
pub use tx::{OrElse, Tx};
pub use var::{Var, Wide};
pub use word::{Word, Words};
