//! Critical sections: under a lock on the caller's core, or by message to the owner of the data on its own.
//!
//! A section of code over shared data may run in either way with the same code; which one is better depends on
//! what it costs to bring the data to the caller and the request to the owner. This room never knows what a
//! component or a channel is.
//!
//! - [`Owned`] is the section: data that is reached through closures. [`Owned::set_mode`] says how.
//! - [`Sharded`] is several of them, chosen by key; [`Administrator`] is one that may answer later.
//! - [`lock`] has the locks, which may be used alone.
//!
//! ```
//! use std::thread;
//! use hearth_sync::{Mode, Owned};
//!
//! let sum = Owned::builder().mode(Mode::Message).build(0u64)?;
//! thread::scope(|scope| {
//!     for part in 1..=4 {
//!         let sum = sum.clone();
//!         scope.spawn(move || sum.call(|sum| *sum += part));
//!     }
//! });
//! assert_eq!(sum.call(|sum| *sum), 10);
//! # Ok::<(), hearth_sync::NoProprietor>(())
//! ```

mod administrator;
mod atomics;
pub mod auto;
#[cfg(doctest)]
mod bounds;
mod errors;
pub mod lock;
mod mailbox;
mod mode;
mod owned;
mod request;
mod ring;
mod sharded;
mod thread;
mod waiting;

pub use administrator::{Administrator, Answer, Reply, RequestError, Unanswered, Workers};
pub use errors::{CallError, NoProprietor, UnknownName};
pub use lock::LockKind;
pub use mode::{Copying, Drain, Mode, Order, Queue, Way};
pub use owned::{Builder, Owned, Statistics};
pub use sharded::Sharded;
pub use waiting::{Wait, set_wake_cost};
