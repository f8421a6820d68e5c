//! The end of a section, and those who are told of it.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use crate::request::drop_quietly;
use hearth_atomics::{AtomicBool, Ordering};
use hearth_sys::threading::{Mutex, MutexGuard};

/// Called once, at the end.
pub(crate) type Hook = Box<dyn FnOnce() + Send>;

/// The end of a section, and the hooks that wait for it.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `is_over` | a thread that ends the section, under the lock of `hooks` | all |
/// | `hooks` | a thread that adds or revokes one, or ends the section | likewise |
///
/// It is a value of its own, which the section and those who wait share: who waits for the end does
/// not keep the data alive.
///
/// Hooks are foreign code: none runs or is dropped while `hooks` is locked.
pub(crate) struct Ending {
    is_over: AtomicBool,
    hooks: Mutex<Hooks>,
}

#[derive(Default)]
struct Hooks {
    /// In the order in which they came.
    waiting: BTreeMap<u64, Hook>,
    next: u64,
}

impl Ending {
    pub(crate) fn new() -> Ending {
        Ending {
            is_over: AtomicBool::new(false),
            hooks: Mutex::new(Hooks::default()),
        }
    }

    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the section has ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `come`: whatever was done before the end has happened.
        self.is_over.load(Ordering::Acquire)
    }

    /// Adds a hook; runs it at once if the end has come.
    pub(crate) fn hook(self: &Arc<Ending>, hook: Hook) -> EndHook {
        let mut hooks = self.hooks();
        // Under the lock: either this thread sees the end, or the end sees this hook.
        if self.is_over() {
            drop(hooks);
            run(hook);
            return EndHook { place: None };
        }
        let number = hooks.next;
        hooks.next += 1;
        hooks.waiting.insert(number, hook);
        EndHook {
            place: Some((Arc::clone(self), number)),
        }
    }

    /// Ends it, and runs all hooks. Later calls do nothing.
    pub(crate) fn come(&self) {
        let mut hooks = self.hooks();
        self.is_over.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut hooks.waiting);
        drop(hooks);
        waiting.into_values().for_each(run);
    }
}

/// Runs a hook. Its panic concerns neither the thread that ends the section nor other hooks.
fn run(hook: Hook) {
    drop_quietly(catch_unwind(AssertUnwindSafe(hook)));
}

/// A hook that waits for the end of a section, made by [`Owned::at_end`](crate::Owned::at_end).
/// Dropping this revokes it; the hook may be running by then.
#[must_use = "dropping it revokes the hook"]
pub struct EndHook {
    /// The end it waits for, and its number there. None if it ran at once.
    place: Option<(Arc<Ending>, u64)>,
}

impl Drop for EndHook {
    fn drop(&mut self) {
        if let Some((ending, number)) = &self.place {
            let revoked = ending.hooks().waiting.remove(number);
            drop(revoked);
        }
    }
}

impl fmt::Debug for EndHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndHook").finish_non_exhaustive()
    }
}
