//! Components that share nothing and talk over typed channels, as async Rust.
//!
//! A component is a future that keeps its data to itself. Hearth's workers, one a core, run it. It
//! meets others at *half-channels*, an [`Out`] here and an [`In`] there, in rendezvous: a send is
//! over when a peer has received.
//!
//! ```
//! use hearth::{Hearth, block_on, channel};
//!
//! let hearth = Hearth::start()?;
//! let (ping, pinged) = channel::<u32>();
//! let (pong, ponged) = channel::<u32>();
//! hearth.spawn(async move {
//!     while let Ok(n) = pinged.recv().await {
//!         pong.send(n + 1).await.unwrap();
//!     }
//! });
//! let player = hearth.spawn(async move {
//!     ping.send(1).await.unwrap();
//!     ponged.recv().await
//! });
//! assert_eq!(block_on(player)?, Ok(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - [`Hearth`] starts a runtime and makes components of futures. A [`Component`]
//!   stands for one of them: it stops it and tells how it ended.
//! - [`channel()`] makes an [`Out`] and an [`In`] that are connected. Clones of an end have its
//!   peers; [`connect`] connects any others. [`select`] receives from the first of several that has
//!   a sender.
//! - [`Sender`] and [`Receiver`] are half-channels for the rest of the program: async code under
//!   any executor, tokio's for example, and plain threads.
//! - [`error`] has an error type for each kind of operation, [`future`] the futures by name.
//! - [`place`] decides which component runs where: policies, plans, and components that move to
//!   their peers.
//! - [`sync`] has critical sections over shared data: under a lock, or by message to the data's
//!   owner.
//! - [`insense`] runs components written in Insense. [`Out::connect_port`] and [`In::connect_port`]
//!   connect with theirs, and check the types then.
//!
//! # Rules
//!
//! - A component has one thread of control, and so one operation on channels at a time. A second
//!   operation that begins meanwhile (`join!` of two receives, say) waits until the first is over;
//!   to wait for several, [`select`].
//! - Dropping the future of an operation calls the operation off at any time and loses nothing: a
//!   value to be sent is dropped, and a value that came in the same moment is kept for the next
//!   receive from that half-channel. Forgetting it, by `std::mem::forget` say, keeps the component
//!   from any other operation, and its half-channel in memory, until the component ends.
//! - Any other future may be awaited in a component: its waker may be called from any thread.
//!   Futures that need tokio's context are made within it ([`Hearth`] shows how).
//! - [`Component::stop`] ends a component where it waits: its future is dropped there, destructors
//!   and all.
//! - A panic ends only the component in which it happens. Wakers and destructors that a component
//!   calls are part of it; those that are called in no component, as the waker of a join is, end
//!   nothing.
//! - Wakers and destructors may use channels like any code. Values that are dropped with a
//!   component that ends are in no component any more: their operations are refused.
//! - Nothing here prints, handles signals or reads the environment (but [`Builder::from_env`]), or
//!   ends the process, except as any Rust program ends: for lack of memory or threads.
//!
//! # Cost
//!
//! A value of any `Send` type is moved: into its sender's struct, and from the receiver's. Between
//! the two only a pointer changes hands, so a large value costs two copies of its bytes, and none
//! of the data it points to. Messages allocate nothing. Connected to Insense, strings, vectors and
//! records are copied into Insense objects, and from them.
//!
//! # Limits
//!
//! Components do not have arenas of their own yet: the future is one block of the ordinary heap,
//! and its allocations come from there too. Rust has no `acknowledge` yet, no `try_send`, no enums
//! or `any` towards Insense, and no half-channels as values in messages to Insense.
#![forbid(unsafe_code)]

mod block_on;
mod channel;
mod component;
pub mod error;
pub mod future;
mod hearth;
mod include;
pub mod insense;
mod once;
mod outside;
pub mod place;
mod wakers;

pub use block_on::block_on;
pub use channel::{In, Out, Selectable, channel, connect, select};
pub use component::{Component, ComponentBuilder, set_core};
pub use hearth::{Builder, Carrier, Hearth, Placement, Servers};
pub use hearth_runtime::embed::{Either, Either3, Either4, Either5, Either6};
pub use hearth_sync as sync;
pub use outside::{Receiver, Sender};

/// The types that [`include_insense!`] expands to.
#[doc(hidden)]
pub mod __private {
    pub use hearth_runtime::abi::{
        ComponentType as ComponentDescriptor, Program as ProgramDescriptor,
    };
}

/// Runs the programs of the book's page with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;

/// Runs the front page's program with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
