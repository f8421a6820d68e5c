//! The futex wait of a thread that carries one component.

use crate::ground::sync::{Ordering, Word};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const SLEEPING: u32 = 2;

/// EMPTY → NOTIFIED (woken before it slept) → EMPTY, or EMPTY → SLEEPING → NOTIFIED → EMPTY.
pub(crate) struct Parker {
    word: Word,
}

impl Parker {
    pub(crate) fn new() -> Parker {
        Parker {
            word: Word::new(EMPTY),
        }
    }

    /// Whether its thread sleeps, or is about to: what it did before has happened.
    pub(crate) fn sleeps(&self) -> bool {
        self.word.load(Ordering::Acquire) == SLEEPING
    }

    /// Waits for the one `wake`. Calls `falls_asleep` once the word says so: from there on a waker
    /// counts the thread in again before it wakes it.
    pub(crate) fn wait(&self, falls_asleep: impl FnOnce()) {
        // Acquire, here and below, pairs with the Release in `wake`: makes the results visible.
        // Release pairs with the Acquire in `sleeps`.
        if self
            .word
            .compare_exchange(EMPTY, SLEEPING, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            falls_asleep();
            self.word.sleep(SLEEPING);
        }
        self.word.store(EMPTY, Ordering::Relaxed);
    }

    /// Wakes the thread, or keeps it from sleeping. Calls `counts_in` first if it sleeps.
    ///
    /// # Safety
    /// The parker is alive as long as its thread waits; it may be gone afterwards.
    pub(crate) unsafe fn wake(parker: *const Parker, counts_in: impl FnOnce()) {
        // SAFETY: this wait has one waker, so the parker is alive until the word says NOTIFIED.
        let word = unsafe { &(*parker).word };
        if word
            .compare_exchange(EMPTY, NOTIFIED, Ordering::Release, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
        counts_in();
        // SAFETY: as the caller promises.
        unsafe { Word::wake(word, NOTIFIED) };
    }
}
