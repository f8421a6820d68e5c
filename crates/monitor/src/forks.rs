//! Forks: the child shares the journal with its parent, and must not write into it.
//!
//! A front end calls these functions from the handlers of `pthread_atfork`. In the child all probes
//! are off then, and it may begin a monitor of its own.

use std::cell::RefCell;

use crate::controller::{self, Held};
use crate::here;

thread_local! {
    /// Locks that the calling thread holds during its fork, so that nobody else has them.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Prepares a fork, in the thread that forks.
pub fn before() {
    let held = here::quietly(|| {
        // The first use allocates: an allocator that is watched would wait for the locks.
        let _ = HELD.try_with(|_| ());
        controller::hold()
    });
    let _ = HELD.try_with(|place| *place.borrow_mut() = Some(held));
}

/// Ends what [`before`] prepared, in the parent.
pub fn after_in_parent() {
    let _ = HELD.try_with(|place| drop(place.borrow_mut().take()));
}

/// Switches all probes off, in the child. The monitor that ran in the parent is not to be finished
/// here, nor dropped: it has no thread.
pub fn after_in_child() {
    here::forget();
    let _ = HELD.try_with(|place| {
        if let Some(held) = place.borrow_mut().take() {
            held.end_in_child();
        }
    });
}
