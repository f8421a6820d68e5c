//! Wakers of others, which run the program's own code.
//!
//! A waker may do anything when it is cloned, woken or dropped, and may panic. So no lock is held
//! meanwhile, and a waker's panic reaches nobody else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes another future. A panic of the waker ends here: the panic hook has reported it.
pub(crate) fn wake(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The panic's payload may panic when it is dropped, and so may the payload of that panic.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(second);
        }
    }
}
