//! A thread's side of a journal: the open block, and the place of the next record.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::journal::Journal;
use super::layout::{GAP, TICKS, block};

/// Writes one thread's records. Its thread keeps it, usually in thread-local storage.
pub struct Tape {
    /// The open block; empty if there is none.
    block: Cell<&'static [AtomicU64]>,
    /// Word of the next record.
    at: Cell<usize>,
    journal: Cell<Option<&'static Journal>>,
    /// The thread's slot in the journal.
    slot: Cell<usize>,
    /// Number of its block in the journal.
    number: Cell<usize>,
    /// Records in blocks that were handed over.
    kept: Cell<u64>,
    /// Gaps in the open block.
    gaps: Cell<u64>,
    /// Records lost: dropped, or left out.
    lost: Cell<u64>,
    /// Records left out since the last one was written.
    left_out: Cell<u64>,
}

impl Default for Tape {
    fn default() -> Tape {
        Tape::new()
    }
}

impl Tape {
    /// A tape that belongs to no journal yet.
    #[must_use]
    pub const fn new() -> Tape {
        Tape {
            block: Cell::new(&[]),
            at: Cell::new(0),
            journal: Cell::new(None),
            slot: Cell::new(0),
            number: Cell::new(0),
            kept: Cell::new(0),
            gaps: Cell::new(0),
            lost: Cell::new(0),
            left_out: Cell::new(0),
        }
    }

    /// Writes a record. False if there is no room: then call [`turn`](Tape::turn).
    ///
    /// The first word has the record's type in its top byte, which is not that of [`GAP`], and
    /// below usually its time, in ticks since the journal began.
    #[inline]
    pub fn write(&self, first: u64, second: u64) -> bool {
        let (block, at) = (self.block.get(), self.at.get());
        let Some([one, two]) = block.get(at..at + 2) else {
            return false;
        };
        self.at.set(at + 2);
        one.store(first, Ordering::Relaxed);
        two.store(second, Ordering::Relaxed);
        // Release: a reader that sees the count sees the record, even after this process died.
        block[block::USED].store(at as u64 + 2, Ordering::Release);
        true
    }

    /// Makes the calling thread one of a journal's, which [`turn`](Tape::turn) does otherwise.
    /// False if the journal has no slot for it.
    pub fn join(&self, journal: &'static Journal) -> bool {
        if self.journal.get().is_none()
            && let Some(slot) = journal.admit()
        {
            self.slot.set(slot);
            self.journal.set(Some(journal));
        }
        self.journal.get().is_some()
    }

    /// Hands over the open block and opens the next. False if there is none: the caller's record is
    /// lost, and counted here. `note` is a word that the chunk of the new block will have.
    #[cold]
    #[inline(never)]
    pub fn turn(&self, journal: &'static Journal, note: u32) -> bool {
        if !self.join(journal) {
            journal.count_homeless();
            return false;
        }
        self.hand_over();
        let Some(number) = journal.open(self.slot.get(), self.kept.get(), self.lost.get(), note)
        else {
            self.lose(journal, 1);
            return false;
        };
        let block = journal.block(number);
        self.number.set(number);
        self.at.set(block::RECORDS);
        self.block.set(block);
        true
    }

    /// Counts records that the thread leaves out by its own choice; [`write_gap`](Tape::write_gap)
    /// is due before the next record. The tape has joined a journal.
    #[inline]
    pub fn leave_out(&self, records: u64) {
        self.left_out.set(self.left_out.get() + records);
        if let Some(journal) = self.journal.get() {
            self.lose(journal, records);
        }
    }

    /// Whether a gap is due.
    #[inline]
    pub fn has_left_out(&self) -> bool {
        self.left_out.get() != 0
    }

    /// Writes the gap for the records left out. False if there is no room; the next block then
    /// shows it.
    pub fn write_gap(&self, ticks: u64) -> bool {
        let has_room = self.write(GAP | ticks & TICKS, self.left_out.get());
        if has_room {
            self.left_out.set(0);
            self.gaps.set(self.gaps.get() + 1);
        }
        has_room
    }

    fn lose(&self, journal: &Journal, records: u64) {
        self.lost.set(self.lost.get() + records);
        journal.note_lost(self.slot.get(), self.lost.get());
    }

    /// Hands over the open block, if there is one.
    fn hand_over(&self) {
        // The number of the next block's first record says it.
        self.left_out.set(0);
        let block = self.block.replace(&[]);
        if let Some(journal) = self.journal.get()
            && !block.is_empty()
        {
            let records = (self.at.replace(0) - block::RECORDS) as u64 / 2;
            self.kept
                .set(self.kept.get() + records - self.gaps.replace(0));
            journal.hand_over(self.slot.get(), self.number.get(), self.kept.get());
        }
    }

    /// Leaves the journal without a word to it: in the child of a fork, which shares the journal
    /// with its parent.
    pub fn forget(&self) {
        self.journal.set(None);
        self.block.set(&[]);
        for count in [&self.kept, &self.gaps, &self.lost, &self.left_out] {
            count.set(0);
        }
        self.at.set(0);
    }

    /// Hands over the open block. The next record opens one again.
    pub fn close(&self) {
        self.hand_over();
        if let Some(journal) = self.journal.take() {
            journal.leave(self.slot.get());
            self.kept.set(0);
            self.lost.set(0);
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.close();
    }
}
