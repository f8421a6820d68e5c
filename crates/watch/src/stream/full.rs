//! Full blocks in a writer's hands.

use std::sync::atomic::Ordering;

use super::journal::Journal;
use super::layout::{block, state};

/// A block that a writer has. Dropped, it is free again.
pub struct Full {
    journal: &'static Journal,
    number: usize,
}

impl Full {
    pub(super) fn new(journal: &'static Journal, number: usize) -> Full {
        Full { journal, number }
    }

    fn word(&self, at: usize) -> u64 {
        self.journal.block(self.number)[at].load(Ordering::Acquire)
    }

    /// The number of the thread that wrote it.
    #[must_use]
    pub fn thread(&self) -> u32 {
        (self.word(block::THREAD) >> 32) as u32
    }

    /// Number of records that the thread emitted before the block's first one.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.word(block::FIRST)
    }

    /// The thread's word from the moment when it opened the block.
    #[must_use]
    pub fn note(&self) -> u32 {
        self.word(block::NOTE) as u32
    }

    /// The CPU on which the thread opened it, if the system said.
    #[must_use]
    pub fn cpu(&self) -> Option<usize> {
        (self.word(block::NOTE) >> 32)
            .checked_sub(1)
            .map(|cpu| cpu as usize)
    }

    /// Its records, in the order of writing.
    pub fn records(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        let words = &self.journal.block(self.number)[block::RECORDS..];
        words
            .chunks_exact(2)
            .take((self.word(block::USED) as usize - block::RECORDS) / 2)
            .map(|pair| {
                [
                    pair[0].load(Ordering::Relaxed),
                    pair[1].load(Ordering::Relaxed),
                ]
            })
    }

    /// Counts its records as lost, since the file does not take them.
    pub fn refuse(self) {
        let lock = self.journal.lock();
        self.journal.give_up(self.number, state::REFUSED);
        // Its end takes the lock, too.
        drop(lock);
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let journal = self.journal;
        let mut queue = journal.lock();
        journal.block(self.number)[block::STATE].store(state::FREE, Ordering::Release);
        queue.taken -= 1;
        queue.free.push(self.number);
        journal
            .shared
            .free
            .store(queue.free.len() as u64, Ordering::Relaxed);
        drop(queue);
        journal.shared.freed.notify_one();
    }
}
