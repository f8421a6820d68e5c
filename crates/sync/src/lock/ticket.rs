//! Ticket lock: numbers are drawn, and called in order.

use super::{Lock, LockPlace};
use crate::waiting::Wait;
use hearth_atomics::{AtomicU32, Ordering, spin_loop};
use hearth_sys::futex::Word;
use hearth_sys::membarrier::{heavy_fence, light_fence};

/// Words to sleep on. Sleepers of different numbers mostly use different words, so that a call
/// wakes few for nothing.
#[cfg(not(loom))]
const BEDS: usize = 8;
#[cfg(loom)]
const BEDS: usize = 2;
/// Pauses for each number before one's own: about the time of a short section.
const PAUSES_EACH: u32 = 8;
/// Most pauses, so that a number called early is not missed for long.
const PAUSES_MAX: u32 = 256;

/// First come, first served. A waiter further behind looks less often.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `next` | a thread that draws a number | a thread that tries |
/// | `serving` | the holder, on leaving | waiters |
/// | `sleepers` | a sleeper, before and after | the holder, on leaving |
/// | `beds` | the holder, on leaving, if a thread sleeps | sleepers |
///
/// A thread called while it sleeps or has lost its core keeps all others waiting: that is the price
/// of order, and the reason not to use it with more threads than cores.
pub struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
    rest: Box<Rest>,
}

struct Rest {
    sleepers: AtomicU32,
    beds: [Word; BEDS],
}

impl Ticket {
    /// A free lock.
    pub fn new() -> Ticket {
        Ticket {
            next: AtomicU32::new(0),
            serving: AtomicU32::new(0),
            rest: Box::new(Rest {
                sleepers: AtomicU32::new(0),
                beds: std::array::from_fn(|_| Word::new(0)),
            }),
        }
    }

    /// Numbers before `mine`. Acquire pairs with the Release in `release`: what the previous holder
    /// wrote is visible.
    #[inline]
    fn ahead(&self, mine: u32) -> u32 {
        mine.wrapping_sub(self.serving.load(Ordering::Acquire))
    }

    #[cold]
    fn acquire_slow(&self, mine: u32, wait: Wait) {
        let is_called = wait.until(|| {
            let ahead = self.ahead(mine);
            #[cfg(not(loom))]
            for _ in 1..(ahead * PAUSES_EACH).min(PAUSES_MAX) {
                spin_loop();
            }
            ahead == 0
        });
        if is_called {
            return;
        }
        let _ = (spin_loop, PAUSES_EACH, PAUSES_MAX);
        let bed = &self.rest.beds[mine as usize % BEDS];
        self.rest.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the light half in `release`: either the holder sees a sleeper, or this thread
        // sees its number.
        heavy_fence();
        loop {
            let before = bed.load(Ordering::Acquire);
            if self.ahead(mine) == 0 {
                break;
            }
            bed.wait(before);
        }
        self.rest.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Ticket {
    fn default() -> Ticket {
        Ticket::new()
    }
}

// SAFETY: each number is drawn once, and called only by the holder of the one before.
unsafe impl Lock for Ticket {
    #[inline]
    unsafe fn acquire(&self, _: &LockPlace, wait: Wait) -> bool {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        let has_to_wait = self.ahead(mine) != 0;
        if has_to_wait {
            self.acquire_slow(mine, wait);
        }
        has_to_wait
    }

    #[inline]
    unsafe fn try_acquire(&self, _: &LockPlace) -> bool {
        // Acquire as in `ahead`. If `next` is still this number, it is drawn and called at once.
        let now = self.serving.load(Ordering::Acquire);
        self.next
            .compare_exchange(
                now,
                now.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline]
    unsafe fn release(&self, _: &LockPlace) {
        let called = self.serving.load(Ordering::Relaxed).wrapping_add(1);
        self.serving.store(called, Ordering::Release);
        light_fence();
        if self.rest.sleepers.load(Ordering::Relaxed) != 0 {
            let bed = &self.rest.beds[called as usize % BEDS];
            // Release: a sleeper that sees the bed changed sees its number called.
            bed.fetch_add(1, Ordering::Release);
            bed.wake_all();
        }
    }

    fn is_awaited(&self, _: &LockPlace) -> bool {
        let serving = self.serving.load(Ordering::Relaxed);
        self.next.load(Ordering::Relaxed) != serving.wrapping_add(1)
    }

    fn is_held(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.serving.load(Ordering::Relaxed)
    }
}
