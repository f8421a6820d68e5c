//! What others leave for a component to see to, from any thread.
//!
//! | field | written by | read by | when |
//! |---|---|---|---|
//! | `are_there` | who leaves something; the component, locked | the component | any time |
//! | `list` | who leaves something; the component | those | locked |
//!
//! The list is closed when the component ends. What comes later goes back to whoever brought it, so
//! that nothing stays in a list that nobody looks at. Its lock is never held while code of the
//! program's runs.

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

    /// Leaves something. It comes back if the component has ended.
    pub(crate) fn leave(&self, errand: E) -> Result<(), E> {
        let mut list = lock(&self.list);
        let Some(list) = list.as_mut() else {
            return Err(errand);
        };
        list.push(errand);
        // Release pairs with the Acquire in `are_there`. Who must be heeded soon rings afterwards.
        self.are_there.store(true, Ordering::Release);
        Ok(())
    }

    /// Is there anything to see to? The component asks.
    pub(crate) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Acquire)
    }

    /// Takes what is there. The component's.
    pub(crate) fn take(&self) -> Vec<E> {
        let mut list = lock(&self.list);
        // Under the lock: what is left from here on sets it again.
        self.are_there.store(false, Ordering::Relaxed);
        list.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes what is there, and nothing comes any more. The component's, at its end.
    pub(crate) fn close(&self) -> Vec<E> {
        lock(&self.list).take().unwrap_or_default()
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
