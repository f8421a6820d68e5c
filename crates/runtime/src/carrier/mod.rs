//! What carries components: the one place that knows about threads.
//!
//! The rest of the runtime needs three things of a carrier.
//!
//! - `launch(component)`: let it run. The carrier calls the component's `resume` until that does
//!   not answer Blocked, then [`crate::component::end`].
//! - Blocking: after Blocked the carrier waits for the component's one `wake`, which may have come
//!   already, then calls [`crate::channel::settle`] and resumes. It never looks at the offer.
//! - `wake(seat)`: exactly one for each Blocked, by whoever completed or interrupted the wait. The
//!   component may run, end and be freed before `wake` returns.
//!
//! A carrier tells [`crate::idle`] when it has nothing to run and when it has again.

#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod threads;

#[cfg(loom)]
pub(crate) use model::{Parker, launch, pin_current, wait, wake};
#[cfg(not(loom))]
pub(crate) use threads::{Parker, launch, pin_current, wake};
