//! Components that share nothing and talk over typed channels, as async Rust.
//!
//! A component is a future that keeps its data to itself. Hearth's workers, one a core, carry it; it
//! meets others at *half-channels*, an [`Out`] here and an [`In`] there, in rendezvous: a send is over
//! when somebody has received.
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
//! # Ok::<(), hearth::Error>(())
//! ```
//!
//! # The parts
//!
//! - [`Hearth`] starts the runtime in this process and makes components of futures, which a
//!   [`Component`] then stands for: it stops them and tells what became of them.
//! - [`channel()`] makes an [`Out`] and an [`In`] that are connected; [`connect`] connects others, any
//!   number to any number. [`select`] receives from whichever of several has a sender.
//! - [`Sender`] and [`Receiver`] are half-channels for the rest of the program: async code under
//!   any executor, tokio's for example, and plain threads.
//! - [`place`] is about who runs where: policies, plans, and components that move to whom they talk
//!   with.
//! - [`sync`] has sections of code over shared data: under a lock, or by message to the data's owner.
//! - [`insense`] is about components written in Insense. [`Out::connect_port`] and
//!   [`In::connect_port`] connect with theirs; types are checked then.
//!
//! # Rules
//!
//! - A component has one thread of control, and so one operation on channels at a time. A second one
//!   that is begun meanwhile (`join!` of two receives, say) waits until the first is over; to wait for
//!   several, [`select`].
//! - An operation whose future is dropped is called off, whenever that is, and nothing is lost by it:
//!   what was to be sent is dropped, and a value that came in the same moment is kept for the next
//!   receive from that half-channel. One that is forgotten, by `std::mem::forget` say, keeps the
//!   component from any other, and its half-channel in memory, until the component ends.
//! - Any other future may be awaited in a component: its waker may be called from any thread. Those of
//!   tokio that need tokio's context are made where there is one ([`Hearth`] says how).
//! - [`Component::stop`] ends a component where it waits: its future is dropped there, destructors and
//!   all.
//! - A panic ends only the component where it happens. Wakers and destructors that a component calls are
//!   part of it; those that are called in no component, as of who waits for one, end nothing.
//! - Wakers and destructors may use channels like any code. What is dropped with a component that ends
//!   is in no component any more: there operations are refused ([`Error::NotInComponent`]).
//! - Nothing here prints, handles signals or ends the process, but for what ends any Rust program: no
//!   memory, or no threads.
//!
//! # What it costs
//!
//! A value of any `Send` type is moved: into its sender's struct, and from the receiver's. Between the
//! two only a pointer changes hands, so a large value costs two copies of its bytes, and none of what
//! it points to. Nothing is allocated for a message. Connected to Insense, strings, vectors and records
//! are copied into Insense objects, and from them.
//!
//! # What is missing
//!
//! Components do not have arenas of their own yet: the future is one block of the ordinary heap, and
//! what it allocates comes from there too. An `acknowledge` in Rust, enums and `any` towards Insense,
//! and half-channels as values in messages to Insense, are not there yet.
#![forbid(unsafe_code)]

mod block_on;
mod channel;
mod component;
mod error;
mod hearth;
pub mod insense;
mod outside;
pub mod place;
mod wakers;

pub use block_on::block_on;
pub use channel::{In, Out, Receive, Select, Selectable, Send, channel, connect, select};
pub use component::{Component, Join, Spawn, set_core};
pub use error::{Error, SendError};
pub use hearth::{Builder, Hearth, Placement, Servers, Wait};
pub use hearth_runtime::embed::{Of2, Of3, Of4, Of5, Of6};
pub use hearth_sync as sync;
pub use outside::{Receiver, Sender};

/// Runs the front page's program with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
