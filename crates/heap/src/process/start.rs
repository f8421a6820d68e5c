//! The start of a process: reads the machine and the settings, and makes the space and the table.

use core::sync::atomic::Ordering;

use crate::ground::once::{Begun, Once};
use crate::ground::{harden, os};
use crate::heap::state::Heap;
use crate::heap::table::TABLE;
use crate::heap::thread;
use crate::heap::threads::{self, ASKS};
use crate::process::{prepare, publish};
use crate::store::idle::IDLE;
use crate::store::space::SPACE;
use crate::store::{guarded, nodes};

/// The start of the process: the first allocation of any thread makes it, with nothing passed in.
static MADE: Once = Once::new();

/// Makes the space, once. False if there are no addresses for it; the next call tries again.
#[inline]
pub(crate) fn is_ready() -> bool {
    MADE.is_done() || make()
}

#[cold]
fn make() -> bool {
    match MADE.begin() {
        Begun::Own => {}
        begun => return begun == Begun::Made,
    }
    nodes::read();
    let made = TABLE.make() && SPACE.make(nodes::count());
    let watch = made && SPACE.nodes() > 1;
    if watch {
        SPACE.bind((0..nodes::count()).map(nodes::number));
    } else {
        nodes::forget();
    }
    ASKS.store(!thread::begin_cpu(watch), Ordering::Relaxed);
    if made {
        prepare::prepare();
        if harden::begin() {
            guarded::respect_limits();
            guarded::watch();
        }
    }
    threads::make_key();
    if made {
        // For the helper. A process of one thread registers at once; later it takes the kernel some
        // 10 ms, for which the end of the process would wait, too.
        let _ = IDLE.stage.is_allowed() && os::has_barriers();
        publish::publish();
    }
    MADE.end(made);
    made
}

/// Runs an operation on this thread's heap for its node. None if there is no memory.
pub(crate) fn with_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    // A thread that has a heap need not ask.
    if thread::heap().is_null() && !is_ready() {
        return None;
    }
    threads::with_heap(operation)
}

/// The same with no other heap, waiting for it if need be: not for signal handlers.
pub(crate) fn with_own_heap<T>(operation: impl FnOnce(&'static Heap) -> T) -> Option<T> {
    is_ready().then(|| threads::with_own_heap(operation))?
}
