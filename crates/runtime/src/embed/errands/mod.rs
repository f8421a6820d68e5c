//! Errands that any thread leaves for a component.
//!
//! | field | written by | read by | when |
//! |---|---|---|---|
//! | `are_there` | leaving threads; the component, locked | the component | any time |
//! | `list` | leaving threads; the component | the same | locked |
//!
//! The list is closed when the component ends. A later errand goes back to its thread, so that none
//! stays in a list that is never read. The lock is never held while user code runs.

use crate::ground::sync::{AtomicBool, Mutex, Ordering, lock};

pub(crate) struct Errands<E> {
    are_there: AtomicBool,
    /// None once the component has ended.
    list: Mutex<Option<Vec<E>>>,
}

impl<E> Errands<E> {
    pub(crate) fn new() -> Errands<E> {
        Errands {
            are_there: AtomicBool::new(false),
            list: Mutex::new(Some(Vec::new())),
        }
    }

    /// Leaves an errand. It comes back if the component has ended.
    pub(crate) fn leave(&self, errand: E) -> Result<(), E> {
        let mut list = lock(&self.list);
        let Some(list) = list.as_mut() else {
            return Err(errand);
        };
        list.push(errand);
        // Release pairs with the Acquire in `are_there`. A thread with an urgent errand rings
        // afterwards.
        self.are_there.store(true, Ordering::Release);
        Ok(())
    }

    /// Tells the component whether errands wait.
    pub(crate) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Acquire)
    }

    /// Takes the errands. Only for the component.
    pub(crate) fn take(&self) -> Vec<E> {
        let mut list = lock(&self.list);
        // Under the lock: an errand left from here on sets it again.
        self.are_there.store(false, Ordering::Relaxed);
        list.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes the errands and closes the list. Only for the component, at its end.
    pub(crate) fn close(&self) -> Vec<E> {
        lock(&self.list).take().unwrap_or_default()
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
