//! What a process has of everything: the space, the pools, and the table of heaps.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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

/// How far the process is, or what else is made once.
///
/// ```text
/// UNMADE ──▶ being made, by a thread ──▶ MADE
///    ▲                   │
///    └───────────────────┘ refused
/// ```
struct Making(AtomicU32);

const UNMADE: u32 = 0;
const MADE: u32 = 1;

/// While a thread makes it, its number stands above this.
const BEING_MADE: u32 = 2;
const BEING_MADE_BITS: u32 = 2;

/// What came of beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// The caller makes it, and says what came of it.
    Own,
    /// It is made.
    Made,
    /// This thread is at it: a signal has come in the middle.
    Refused,
}

impl Making {
    const fn new() -> Making {
        Making(AtomicU32::new(UNMADE))
    }

    #[inline]
    fn is_made(&self) -> bool {
        // Acquires what was made; partner of `end`.
        self.0.load(Ordering::Acquire) == MADE
    }

    /// Begins, or waits for another thread, which takes a few system calls. In the child of a fork it may be none of
    /// the process: then it is begun anew.
    fn begin(&self) -> Begun {
        let own = (os::this_thread() as u32) << BEING_MADE_BITS | BEING_MADE;
        let (mut patience, mut from) = (Patience::new(), UNMADE);
        loop {
            let begun = self
                .0
                .compare_exchange(from, own, Ordering::Acquire, Ordering::Acquire);
            let state = match begun {
                Ok(_) => return Begun::Own,
                Err(MADE) => return Begun::Made,
                Err(state) => state,
            };
            // Miri's threads have no numbers.
            if state == own && !cfg!(miri) {
                return Begun::Refused;
            }
            patience.wait();
            let is_cut_off = state != UNMADE
                && patience.is_over()
                && !os::has_thread((state >> BEING_MADE_BITS) as i32);
            from = if is_cut_off { state } else { UNMADE };
        }
    }

    fn end(&self, is_made: bool) {
        let state = if is_made { MADE } else { UNMADE };
        // Releases what was made; partner of `is_made` and `begin`.
        self.0.store(state, Ordering::Release);
    }
}

static MAKING: Making = Making::new();

/// Makes the space, once. False if there are no addresses for it; then it is tried again another time.
#[inline]
pub(crate) fn is_made() -> bool {
    MAKING.is_made() || make()
}

#[cold]
fn make() -> bool {
    match MAKING.begin() {
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
    MAKING.end(made);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_makes_and_others_find_it_made() {
        let making = Making::new();
        assert_eq!(making.begin(), Begun::Own);
        making.end(false);
        assert!(!making.is_made());
        assert_eq!(making.begin(), Begun::Own);
        making.end(true);
        assert!(making.is_made());
        assert_eq!(making.begin(), Begun::Made);
    }

    /// As the child of a fork finds it, if another thread of the parent was at it.
    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn what_a_thread_has_begun_that_is_gone_is_begun_anew() {
        let making = Making::new();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(making.begin(), Begun::Own));
        });
        assert_eq!(making.begin(), Begun::Own);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel")]
    fn the_handler_of_a_signal_does_not_wait_for_what_it_has_interrupted() {
        let making = Making::new();
        assert_eq!(making.begin(), Begun::Own);
        assert_eq!(making.begin(), Begun::Refused);
        making.end(true);
        assert_eq!(making.begin(), Begun::Made);
    }
}
