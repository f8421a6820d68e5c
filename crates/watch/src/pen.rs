//! A thread's place in the chunks of events.
//!
//! | word of a chunk | written by | read by |
//! |---|---|---|
//! | order, count, events | the thread that has it open | readers |
//! | is open | 0 → 1: the taker, by exchange; 1 → 0: the owner | both |
//!
//! The oldest chunk is overwritten. If a thread still has it open, because it has written little
//! since, the next one is taken instead. So no two threads write into one chunk, and nobody waits;
//! an event that finds no free chunk after some tries is only counted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::{CHUNK, CHUNKS, EVENTS_A_CHUNK, chunk, header};

/// Chunks tried before an event is given up.
const TRIES: u64 = 64;

/// A thread's current chunk.
struct Pen {
    /// Its recording; a process usually has one.
    words: Cell<Option<&'static [AtomicU64]>>,
    /// Start of its chunk.
    base: Cell<usize>,
    count: Cell<usize>,
}

thread_local! {
    static PEN: Pen = const {
        Pen { words: Cell::new(None), base: Cell::new(0), count: Cell::new(0) }
    };
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.close();
    }
}

impl Pen {
    fn close(&self) {
        if let Some(words) = self.words.take() {
            // Release pairs with the Acquire of the next thread that takes it.
            words[self.base.get() + chunk::IS_OPEN].store(0, Ordering::Release);
        }
    }

    fn write(&self, words: &'static [AtomicU64], at: u64, what: u64) {
        let is_here = self
            .words
            .get()
            .is_some_and(|own| std::ptr::eq(own.as_ptr(), words.as_ptr()));
        if (!is_here || self.count.get() == EVENTS_A_CHUNK) && !self.turn_over(words) {
            words[header::REFUSED].fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (base, count) = (self.base.get(), self.count.get());
        let place = base + chunk::EVENTS + 2 * count;
        words[place].store(at, Ordering::Relaxed);
        words[place + 1].store(what, Ordering::Relaxed);
        self.count.set(count + 1);
        // Release: a reader that sees the count sees the event.
        words[base + chunk::COUNT].store(count as u64 + 1, Ordering::Release);
    }

    #[cold]
    fn turn_over(&self, words: &'static [AtomicU64]) -> bool {
        self.close();
        let chunks = words[header::CHUNKS].load(Ordering::Relaxed).max(1);
        for _ in 0..TRIES {
            let order = words[header::TAKEN].fetch_add(1, Ordering::Relaxed);
            let base = CHUNKS + (order % chunks) as usize * CHUNK;
            let is_open = &words[base + chunk::IS_OPEN];
            if is_open
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            // A reader that finds another order afterwards knows that it has read a mixture.
            words[base + chunk::ORDER].store(0, Ordering::Release);
            let lost = words[base + chunk::COUNT].swap(0, Ordering::AcqRel);
            words[header::OVERWRITTEN].fetch_add(lost, Ordering::Relaxed);
            words[base + chunk::ORDER].store(order + 1, Ordering::Release);
            self.words.set(Some(words));
            self.base.set(base);
            self.count.set(0);
            return true;
        }
        false
    }
}

/// Writes an event by the thread's own pen. None is left at the very end of a thread.
pub(crate) fn write(words: &'static [AtomicU64], at: u64, what: u64) {
    if PEN.try_with(|pen| pen.write(words, at, what)).is_err() {
        words[header::REFUSED].fetch_add(1, Ordering::Relaxed);
    }
}
