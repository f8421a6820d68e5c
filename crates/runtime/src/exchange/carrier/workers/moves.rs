//! Moves of components, ordered by other threads.
//!
//! A component's destination is its own field or, while it is parked, its worker's thread's. So the
//! placer leaves orders with the worker, which carries them out between two components. An order
//! for a component that has moved or ended meanwhile is void.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::affinity;

use super::runner::Runner;
use super::threads::for_each_thread;
use super::{Worker, all, home_of, keep_planned};
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::seats::registry;
use crate::seats::waiting;

/// An order to move a component to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The component's number.
    pub(crate) id: u64,
    /// The worker's number.
    pub(crate) to: u16,
}

/// A worker's pending orders.
pub(super) struct Orders {
    are_there: AtomicBool,
    list: Mutex<Vec<Order>>,
}

impl Orders {
    pub(super) fn new() -> Orders {
        Orders {
            are_there: AtomicBool::new(false),
            list: Mutex::new(Vec::new()),
        }
    }
}

/// A worker's public facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Station {
    pub(crate) index: u16,
    /// None if not pinned.
    pub(crate) core: Option<usize>,
}

/// All workers, by number.
pub(crate) fn stations() -> Vec<Station> {
    let station = |worker: &Worker| Station {
        index: worker.shared.index as u16,
        core: worker.shared.core,
    };
    all().iter().map(station).collect()
}

/// The cores that may be used, as the placer last saw them; none if that never changed.
static ALLOWED: Part<Mutex<Option<Vec<usize>>>> = Part::new(|| Mutex::new(None));

/// The cores for a worker's thread: its own core if allowed, otherwise all that are.
fn kept_on(core: Option<usize>, allowed: &[usize]) -> Vec<usize> {
    match core {
        Some(core) if allowed.contains(&core) => vec![core],
        _ => allowed.to_vec(),
    }
}

/// Pins the calling thread to its worker's core, if that is allowed.
pub(super) fn keep_current(core: usize) {
    // Held until done: a thread that takes cores away comes before, or finds this thread with its
    // worker.
    let allowed = lock(&ALLOWED);
    let on = match &*allowed {
        Some(allowed) => kept_on(Some(core), allowed),
        None => vec![core],
    };
    // Refused only for a core that has gone offline or was forbidden since.
    let _ = affinity::allow_current(&on);
}

/// Lets a thread that has lost its worker run on any allowed core, unless its component is pinned.
pub(super) fn let_go(runner: &Runner) {
    let allowed = lock(&ALLOWED);
    let on = kept_on(runner.core(), allowed.as_deref().unwrap_or(super::cores()));
    // If refused, it shares the worker's core.
    let _ = affinity::allow_thread(runner.thread.load(Ordering::Relaxed), &on);
}

/// Pins the threads of workers to their cores where allowed. The others may run on any allowed
/// core, and so may threads without a worker: they may have got or lost one between the loss of a
/// core and its detection.
pub(crate) fn pin_again(allowed: &[usize]) {
    let mut known = lock(&ALLOWED);
    *known = Some(allowed.to_vec());
    for_each_thread(|thread, core| {
        // Refused only if that has changed again.
        let _ = affinity::allow_thread(thread, &kept_on(core, allowed));
    });
}

/// Orders a worker to move components at its next opportunity.
pub(crate) fn order(worker: usize, orders: impl IntoIterator<Item = Order>) {
    let shared = &all()[worker].shared.orders;
    lock(&shared.list).extend(orders);
    shared.are_there.store(true, Ordering::Release);
}

impl Worker {
    /// Carries out pending orders. Its own thread calls, between two components.
    #[inline]
    pub(super) fn follow_orders(&'static self) {
        if self.shared.orders.are_there.load(Ordering::Relaxed) {
            self.follow_all();
        }
    }

    #[cold]
    fn follow_all(&'static self) {
        let orders = &self.shared.orders;
        orders.are_there.store(false, Ordering::Relaxed);
        let mut wanted = std::mem::take(&mut *lock(&orders.list));
        // The latest order for a component counts.
        wanted.reverse();
        wanted.sort_by_key(|order| order.id);
        wanted.dedup_by_key(|order| order.id);
        registry::for_each(|seat| {
            let Ok(found) = wanted.binary_search_by_key(&seat.id, |order| order.id) else {
                return;
            };
            let component = seat.component();
            // A server that migrates to its callers may be taken along meanwhile: checked first.
            if seat.comes_to_callers() || !ptr::eq(home_of(component), self) {
                return;
            }
            // SAFETY: enrolled, so alive, and at home with the calling thread, which runs none of
            // its components: parked or ready, and no other thread touches this field of it.
            unsafe {
                if waiting::waiting_of(component) != waiting::RETURNS {
                    (*component).destination = 1 + wanted[found].to;
                    keep_planned(seat);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_use_its_core_goes_wherever_it_may() {
        assert_eq!(kept_on(Some(2), &[1, 2, 3]), [2]);
        assert_eq!(kept_on(Some(0), &[1, 2]), [1, 2]);
        assert_eq!(kept_on(None, &[1]), [1]);
    }
}
