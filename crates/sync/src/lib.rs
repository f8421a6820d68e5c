//! Critical sections: under a lock on the caller's core, or by message to the data's owner on its
//! own.
//!
//! The same code may run in either way; which is better depends on what it costs to bring the data
//! to the caller or the request to the owner. This crate never knows what a component or a channel
//! is, and reads neither files nor environment: a program that knows what a wake-up costs on its
//! machine says so with [`set_wake_cost`].
//!
//! - [`Owned`] is the section: data reached through closures. [`Owned::set_mode`] chooses the way.
//! - [`Sharded`] is several sections, chosen by key; [`Administrator`] is one that may answer
//!   later.
//! - [`lock`] has the locks, which may be used alone.
//!
//! The feature `research` adds the source's shared queue (`Builder::queue`), to be measured beside
//! ours.
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
pub mod auto;
#[cfg(doctest)]
mod bounds;
mod ending;
mod errors;
mod inside;
pub mod lock;
mod mailbox;
mod mode;
mod owned;
#[cfg(feature = "research")]
mod queue;
mod request;
#[cfg(feature = "research")]
mod ring;
mod sharded;
mod thread;
mod waiting;

pub use administrator::{Administrator, Answer, Reply, RequestError, Unanswered, Workers};
pub use ending::EndHook;
pub use errors::{CallError, NoProprietor, UnknownName};
pub use hearth_sys::spin::set_wake_cost;
pub use lock::LockKind;
pub use mode::{Drain, Mode, Order, Way};
pub use owned::{Builder, Owned, Statistics};
#[cfg(feature = "research")]
pub use queue::{Copying, Queue};
pub use sharded::Sharded;
pub use waiting::{Wait, set_line_cost};
