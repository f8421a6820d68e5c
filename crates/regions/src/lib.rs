//! Objects that are handled by *processors*: the model of Eiffel's SCOOP on Hearth, with its
//! collection of processors.
//!
//! Every object has one processor, a component of Hearth, which applies all calls to it one after
//! the other. So no object needs a lock, and at most one call is active on it at a time. Objects
//! of one processor are a *region*.
//!
//! ```
//! use hearth::Hearth;
//! use hearth_regions::{Object, Regions};
//!
//! struct Account {
//!     balance: i64,
//! }
//! impl Object for Account {}
//!
//! let hearth = Hearth::start()?;
//! let regions = Regions::start(&hearth);
//! let account = regions.create(|_| Account { balance: 10 })?;
//! account.command(|account, _| account.balance += 32)?; // logged, and applied later
//! let balance = account.query(|account, _| account.balance); // logged as well
//! assert_eq!(balance.wait()?, 42); // waits by necessity; in a component, `.await`
//!
//! drop(account);
//! hearth::block_on(regions.rest());
//! assert_eq!(regions.collect().processors, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - [`Regions`] makes processors and collects them; a [`Processor`] makes objects.
//! - [`Separate`] refers to an object of any processor and carries calls: commands, which the
//!   client does not wait for, and queries, whose [`Answer`] waits when it is awaited.
//! - [`Local`] refers to an object of the same processor. [`Here`], which each call gets, leads to
//!   its object, and makes further ones.
//! - [`Object`] is implemented by what processors handle, and shows the collector its references.
//! - [`Mobile`] is what may go from one processor to another.
//!
//! # Rules
//!
//! - Calls of one client to one processor are applied in the order in which they were logged, also
//!   if the client has died by then.
//! - A separate reference cannot become a local one: no function makes one of the other. A local
//!   reference cannot leave its processor: the compiler refuses calls that carry it.
//! - A call that waits for a query keeps its processor, which applies no other call meanwhile. If
//!   calls wait for each other in a circle, the query that closes it fails with
//!   [`CallError::Deadlock`], also if it was raced against something else.
//! - A panic in a query is the answer's error; one in a command is kept for
//!   [`Regions::take_failures`]. The object stays as the panic left it. Nothing else is harmed.
//!
//! # Collection
//!
//! A processor is dead if it has no call to apply and no live object refers to one of its objects.
//! [`Regions::collect`] finds dead processors and dead objects, those that refer to each other in
//! circles across processors included; by itself it happens when processors or bytes have doubled
//! since the last time. Processors go on meanwhile. What a busy processor refers to lives.
//!
//! Finalisers are `Drop` of objects. When the collector drops them they can revive nothing: calls
//! and creations from there fail with [`CallError::Finalising`], and what died with them refuses
//! calls for good.
//!
//! # Limits
//!
//! No call reserves several processors at once, as SCOOP's blocks do. There are no precondition
//! waits. A cycle of references that goes through an `Arc` is never found.
//!
//! The crate must never know what components do beside its own, and holds no unsafe code.
#![forbid(unsafe_code)]

mod answer;
mod calls;
mod collection;
mod common;
mod error;
mod handler;
mod here;
mod object;
mod reference;
mod regions;
mod waits;

pub use answer::Answer;
pub use collection::Collected;
pub use error::{CallError, LocalError};
pub use handler::Steps;
pub use here::Here;
pub use object::{Mobile, Object, Tracer};
pub use reference::{Local, Processor, Separate};
pub use regions::{Builder, Regions};

/// Runs the programs of the book's page with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/regions.md")]
struct Page;
