//! Moving components that somebody else wants elsewhere.
//!
//! Where a component goes before it runs again is its own field, or, while it is parked, its worker's
//! thread's. So whoever plans placements leaves orders with the worker, which sees to them between
//! two components. An order for a component that has moved or ended meanwhile is void.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::affinity;

use super::{Worker, all, home_of, keep_planned};
use crate::channel::{light, link};
use crate::registry;
use crate::sync::lock_std as lock;

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

/// Keeps the threads of workers on their cores, where those may be used; the others' go wherever they
/// may.
pub(crate) fn pin_again(allowed: &[usize]) {
    for worker in all() {
        // SAFETY: runners are never freed.
        let runner = unsafe { worker.shared.runner.load(Ordering::Relaxed).as_ref() };
        let thread = runner.map_or(0, |runner| runner.thread.load(Ordering::Relaxed));
        if thread == 0 {
            continue;
        }
        let cores = match worker.shared.core {
            Some(core) if allowed.contains(&core) => vec![core],
            _ => allowed.to_vec(),
        };
        // Refused only where that has changed again.
        let _ = affinity::allow_thread(thread, &cores);
    }
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
            if !ptr::eq(home_of(component), self) {
                return;
            }
            // SAFETY: enrolled, so alive, and at home with the calling thread, which runs none of its
            // components: parked or ready, and nobody else touches this field of it.
            unsafe {
                if link::waiting_of(component) != light::RETURNS {
                    (*component).destination = 1 + wanted[found].to;
                    keep_planned(seat);
                }
            }
        });
    }
}
