//! What a process has of everything: the space, the pools, and the table of heaps.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::directory;
use crate::harden;
use crate::heap::Home;
use crate::helper::HELPER;
use crate::nodes;
use crate::os::{self, Patience};
use crate::pool::Pools;
use crate::real_time;
use crate::space::Space;
use crate::table::{Entry, Table};
use crate::thread;

pub(crate) static SPACE: Space = Space::new();
pub(crate) static POOLS: Pools = Pools::new();
pub(crate) static TABLE: Table = Table::new();

/// There are several nodes, and threads do not see that they move: they ask at every slow step.
pub(crate) static ASKS: AtomicBool = AtomicBool::new(false);

pub(crate) fn home() -> Home<'static> {
    Home {
        space: &SPACE,
        pools: &POOLS,
    }
}

/// What others must know of the heap of a number.
#[inline]
pub(crate) fn entry(number: u32) -> &'static Entry {
    TABLE.entry(number)
}

// How far the process is.
const UNMADE: u8 = 0;
const BEING_MADE: u8 = 1;
const MADE: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNMADE);

/// Makes the space, once. False if there are no addresses for it; then it is tried again another time.
#[inline]
pub(crate) fn is_made() -> bool {
    STATE.load(Ordering::Acquire) == MADE || make()
}

#[cold]
fn make() -> bool {
    let mut patience = Patience::new();
    loop {
        match STATE.compare_exchange(UNMADE, BEING_MADE, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
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
                    real_time::begin(&SPACE, &POOLS, &TABLE);
                    harden::begin();
                }
                thread::make_key();
                if made {
                    // For the helper. A process of one thread has it at once; later it takes a moment of the
                    // kernel's, some 10 ms, for which the end of the process would wait, too.
                    let _ = HELPER.stage.is_allowed() && os::has_barriers();
                    directory::publish();
                }
                STATE.store(if made { MADE } else { UNMADE }, Ordering::Release);
                return made;
            }
            // Another thread is at it, which takes a few system calls.
            Err(BEING_MADE) => patience.wait(),
            Err(state) => return state == MADE,
        }
    }
}
