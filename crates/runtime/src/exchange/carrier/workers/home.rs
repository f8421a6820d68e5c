//! The home of a component, and the marks by which half-channels name it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

#[cfg(not(loom))]
use super::WORKERS;
use super::Worker;
use crate::abi::Component;
use crate::ground::without::Mechanism;

/// In a half-channel's place, a worker's mark is one more than its address.
pub(super) const MARK: usize = 1;

/// The worker with this mark.
pub(crate) fn of_mark(place: usize) -> Option<&'static Worker> {
    // SAFETY: workers live as long as their runtime, and only their marks are odd.
    (place & MARK != 0).then(|| unsafe { &*ptr::with_exposed_provenance(place - MARK) })
}

/// A worker's mark; none for null.
pub(crate) fn mark_of(worker: *const Worker) -> Option<usize> {
    // SAFETY: workers live as long as their runtime.
    unsafe { worker.as_ref() }.map(Worker::mark)
}

/// The home of a component; null for a thread. It may change unless the component runs or the
/// caller has its worker's leave.
pub(crate) fn home_of(component: *mut Component) -> *const Worker {
    // SAFETY: the component is alive, and its home changes by atomic stores.
    unsafe { AtomicPtr::from_ptr((&raw mut (*component).home).cast::<*mut Worker>()) }
        .load(Ordering::Relaxed)
}

/// The core of a home, if pinned.
pub(crate) fn core_of(home: *const Worker) -> Option<usize> {
    // SAFETY: workers live as long as their runtime.
    unsafe { worker_of(home).as_ref() }?.shared.core
}

/// Sets a component's home.
pub(super) fn set_home(component: *mut Component, home: &'static Worker) {
    // SAFETY: the component is alive, and its home changes by atomic stores.
    unsafe { AtomicPtr::from_ptr((&raw mut (*component).home).cast::<*mut Worker>()) }
        .store(ptr::from_ref(home).cast_mut(), Ordering::Relaxed);
}

/// The worker that a component's home stands for.
pub(crate) fn worker_of(home: *const Worker) -> *const Worker {
    // SAFETY: workers live as long as their runtime.
    match unsafe { home.as_ref() } {
        Some(stand_in) if stand_in.shared.is_stand_in => {
            #[cfg(not(loom))]
            let workers = WORKERS.of(stand_in.runtime()).get();
            #[cfg(loom)]
            let workers = Some(super::all());
            workers.map_or(home, |workers| &raw const workers[stand_in.shared.index])
        }
        _ => home,
    }
}

impl Worker {
    /// The component that runs next, ahead of the queue; null for none.
    pub(super) fn partner(&self) -> *mut Component {
        let next = self.next.get();
        if Mechanism::Partner.is_off() && !next.is_null() {
            self.next.set(ptr::null_mut());
            self.push(next);
            return ptr::null_mut();
        }
        next
    }
}
