//! Patterns: which threads wait, and which work. `threads` is what all have in common; of the
//! others `adaptive` builds on `rings` and `sharded`, those on `yielding` and `crew`, and
//! `half_async` and `leader` on `shared` and `slots`.

mod adaptive;
mod crew;
mod half_async;
mod leader;
mod rings;
mod sharded;
mod shared;
mod slots;
mod threads;
mod yielding;

pub(crate) use adaptive::Adaptive;
pub(crate) use crew::Sharded;
pub(crate) use half_async::HalfAsync;
pub(crate) use leader::Leader;
pub use threads::Adapted;
pub(crate) use threads::{Starting, Threads};
