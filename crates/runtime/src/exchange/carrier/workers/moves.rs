//! Moving components that somebody else wants elsewhere.
//!
//! Where a component goes before it runs again is its own field, or, while it is parked, its
//! worker's thread's. So whoever plans placements leaves orders with the worker, which sees to them
//! between two components. An order for a component that has moved or ended meanwhile is void.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::affinity;

use super::runner::Runner;
use super::threads::for_each_thread;
use super::{Worker, all, comes, home_of, keep_planned};
use crate::exchange::channel::link;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;
use crate::seats::registry;
use crate::seats::waiting;

/// A component is to go to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The component's number.
    pub(crate) id: u64,
    /// The worker's.
    pub(crate) to: u16,
}

/// What has been ordered of a worker and not been seen to.
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

/// A worker, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Station {
    pub(crate) index: u16,
    /// None if it is bound to none.
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

/// The cores that may be used, as the placer saw them last; none if that never changed.
static ALLOWED: Part<Mutex<Option<Vec<usize>>>> = Part::new(|| Mutex::new(None));

/// Where a worker's thread is kept: on its core, if that may be used; otherwise wherever it may.
fn kept_on(core: Option<usize>, allowed: &[usize]) -> Vec<usize> {
    match core {
        Some(core) if allowed.contains(&core) => vec![core],
        _ => allowed.to_vec(),
    }
}

/// Keeps the calling thread on its worker's core, if that may be used.
pub(super) fn keep_current(core: usize) {
    // Held until it is done: whoever takes cores away comes before, or finds this thread with its
    // worker.
    let allowed = lock(&ALLOWED);
    let on = match &*allowed {
        Some(allowed) => kept_on(Some(core), allowed),
        None => vec![core],
    };
    // Refused only for a core that has gone offline or was forbidden since.
    let _ = affinity::allow_current(&on);
}

/// Lets a thread that has lost its worker go wherever it may, unless its component stays.
pub(super) fn let_go(runner: &Runner) {
    let allowed = lock(&ALLOWED);
    let on = kept_on(runner.core(), allowed.as_deref().unwrap_or(super::cores()));
    // Where it may not, it shares the worker's core.
    let _ = affinity::allow_thread(runner.thread.load(Ordering::Relaxed), &on);
}

/// Keeps the threads of workers on their cores, where those may be used; the others' go wherever
/// they may, and so do threads that go on without a worker: they may have got or lost one since
/// cores were taken away, and before that was seen.
pub(crate) fn pin_again(allowed: &[usize]) {
    let mut known = lock(&ALLOWED);
    *known = Some(allowed.to_vec());
    for_each_thread(|thread, core| {
        // Refused only where that has changed again.
        let _ = affinity::allow_thread(thread, &kept_on(core, allowed));
    });
}

/// Has components of a worker moved, as soon as it sees to it.
pub(crate) fn order(worker: usize, orders: impl IntoIterator<Item = Order>) {
    let shared = &all()[worker].shared.orders;
    lock(&shared.list).extend(orders);
    shared.are_there.store(true, Ordering::Release);
}

impl Worker {
    /// Sees to what was ordered. Its own thread calls, between two components.
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
        // The last one counts.
        wanted.reverse();
        wanted.sort_by_key(|order| order.id);
        wanted.dedup_by_key(|order| order.id);
        registry::for_each(|seat| {
            let Ok(found) = wanted.binary_search_by_key(&seat.id, |order| order.id) else {
                return;
            };
            let component = seat.component();
            // Who comes to its callers may be taken along meanwhile: that is asked first.
            if comes(seat) || !ptr::eq(home_of(component), self) {
                return;
            }
            // SAFETY: enrolled, so alive, and at home with the calling thread, which runs none of
            // its components: parked or ready, and nobody else touches this field of it.
            unsafe {
                if link::waiting_of(component) != waiting::RETURNS {
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
