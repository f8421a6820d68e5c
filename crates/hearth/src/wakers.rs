//! Whom to tell: wakers of others, which are code of the program's.
//!
//! A waker may do anything when it is cloned, woken or dropped, panic too. So none of that is done with a
//! lock held, and a waker's panic stays its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes somebody else's future. If that panics, it is not the caller's fault, nor the end of what it does:
/// the panic hook has told of it.
pub(crate) fn wake(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // What a panic carries may panic when it is dropped, and what that carries, and so on.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(second);
        }
    }
}
