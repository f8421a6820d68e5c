//! The door to the outside: other threads bring outside events only when admitted, one at a time,
//! while nothing runs.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ground::sync::lock_std as lock;

struct Door {
    is_open: bool,
    is_inside: bool,
    /// Threads that want to come in.
    waiting: usize,
}

static DOOR: Mutex<Door> = Mutex::new(Door {
    is_open: false,
    is_inside: false,
    waiting: 0,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Depth of the calling thread's visits; the simulator's own thread is always inside.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

fn wait(door: MutexGuard<'static, Door>) -> MutexGuard<'static, Door> {
    CHANGED.wait(door).unwrap_or_else(PoisonError::into_inner)
}

/// Marks the calling thread as the simulator's.
pub(super) fn belong() {
    INSIDE.set(1);
}

/// Waits to be admitted. False if that took longer than `patience`.
pub(super) fn enter(patience: Option<Duration>) -> bool {
    let depth = INSIDE.get();
    if depth == 0 {
        let end = patience.map(|patience| Instant::now() + patience);
        let mut door = lock(&DOOR);
        door.waiting += 1;
        CHANGED.notify_all();
        while !door.is_open || door.is_inside {
            let Some(end) = end else {
                door = wait(door);
                continue;
            };
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                door.waiting -= 1;
                return false;
            };
            door = CHANGED
                .wait_timeout(door, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        door.waiting -= 1;
        door.is_open = false;
        door.is_inside = true;
    }
    INSIDE.set(depth + 1);
    true
}

/// Leaves again.
pub(super) fn leave() {
    let depth = INSIDE.get() - 1;
    INSIDE.set(depth);
    if depth == 0 {
        lock(&DOOR).is_inside = false;
        CHANGED.notify_all();
    }
}

/// Admits one visitor, and waits until it has left. Without a visitor, waits for one, or returns
/// false.
pub(super) fn admit(waits: bool) -> bool {
    let mut door = lock(&DOOR);
    if door.waiting == 0 && !waits {
        return false;
    }
    door.is_open = true;
    CHANGED.notify_all();
    while door.is_open || door.is_inside {
        door = wait(door);
    }
    true
}
