//! A thread's side of tallies: its open calls, and a table for each probe, in a journal's blocks.
//!
//! ```text
//! root: open calls │ directories ─→ directory: names ─→ table: lengths of one probe's calls
//! ```
//!
//! Only its thread writes into a block, with plain stores; the writer and readers of the journal
//! add up what they find. A thread that leaves gives its root back, and the next one goes on with
//! it: nothing need be added up meanwhile, and there are as many roots as there were threads at a
//! time. A program that is killed leaves all its tallies; for each thread the call that was about
//! to begin or to end may be counted twice.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::journal::Journal;
use super::layout::{block, header, root, table, tallies, thread};
use super::tally::{Tallies, place, tallies_of};

type Words = &'static [AtomicU64];

/// Counts one thread's calls. Its thread keeps it, usually in thread-local storage.
pub struct Counter {
    /// Its root; empty without one.
    root: Cell<Words>,
    depth: Cell<usize>,
    journal: Cell<Option<&'static Journal>>,
    /// The thread's slot in the journal.
    slot: Cell<usize>,
    /// Number of the root's block.
    number: Cell<usize>,
    lost: Cell<u64>,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter::new()
    }
}

fn get(words: Words, at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}

/// Adds to a word that only the calling thread writes.
#[inline]
fn add(word: &AtomicU64, more: u64) {
    let sum = word.load(Ordering::Relaxed).wrapping_add(more);
    word.store(sum, Ordering::Relaxed);
}

impl Counter {
    /// A counter that belongs to no journal yet.
    #[must_use]
    pub const fn new() -> Counter {
        Counter {
            root: Cell::new(&[]),
            depth: Cell::new(0),
            journal: Cell::new(None),
            slot: Cell::new(0),
            number: Cell::new(0),
            lost: Cell::new(0),
        }
    }

    /// Makes the calling thread one of a journal's that has tallies. False if that has no slot for
    /// it; what it does is counted then, and lost.
    pub fn join(&self, journal: &'static Journal) -> bool {
        let Some(slot) = journal.admit() else {
            return false;
        };
        self.slot.set(slot);
        self.journal.set(Some(journal));
        self.depth.set(0);
        self.lost.set(0);
        if let Some(number) = journal.root(slot) {
            self.number.set(number);
            self.root.set(journal.block(number));
        }
        true
    }

    /// Notes the beginning of a call, at a time in ticks since the journal began.
    #[inline]
    pub fn begin(&self, name: u64, ticks: u64) {
        let (root, depth) = (self.root.get(), self.depth.get());
        let at = root::OPEN + depth * root::OPEN_WORDS;
        self.depth.set(depth + 1);
        let Some([its_name, from, within]) = root.get(at..at + root::OPEN_WORDS) else {
            return self.begin_slow();
        };
        its_name.store(name, Ordering::Relaxed);
        from.store(ticks, Ordering::Relaxed);
        within.store(0, Ordering::Relaxed);
        // Release: a reader that sees the depth sees the call.
        root[root::DEPTH].store(depth as u64 + 1, Ordering::Release);
        add(&root[root::EMITTED], 1);
    }

    /// Notes the end of the innermost call, which has this name.
    #[inline]
    pub fn end(&self, name: u64, ticks: u64) {
        let (root, depth) = (self.root.get(), self.depth.get());
        let Some(innermost) = depth.checked_sub(1) else {
            return;
        };
        let at = root::OPEN + innermost * root::OPEN_WORDS;
        let Some([its_name, from, within]) = root.get(at..at + root::OPEN_WORDS) else {
            return self.end_slow(name);
        };
        if its_name.load(Ordering::Relaxed) != name {
            return self.end_outer(name, ticks);
        }
        // The counters of two cores may differ by a little.
        let length = ticks
            .saturating_sub(from.load(Ordering::Relaxed))
            .min(i64::MAX as u64);
        let own = length.saturating_sub(within.load(Ordering::Relaxed));
        let Some(table) = self.table(name) else {
            return self.lose_call();
        };
        add(&table[table::LENGTHS + place(length)], 1);
        add(&table[table::TOTAL], length);
        add(&table[table::OWN], own);
        if length > get(table, table::LONGEST) {
            table[table::LONGEST].store(length, Ordering::Relaxed);
        }
        if innermost > 0 {
            let around = &root[at - 1];
            add(around, length);
        }
        self.pop(1);
    }

    /// Takes the innermost call off, of which so many records were noted.
    #[inline]
    fn pop(&self, records: u64) {
        let (root, depth) = (self.root.get(), self.depth.get() - 1);
        self.depth.set(depth);
        root[root::DEPTH].store(depth as u64, Ordering::Release);
        add(&root[root::EMITTED], records);
    }

    /// The table of a name in the calling thread.
    #[inline]
    fn table(&self, name: u64) -> Option<Words> {
        let (directory, entry) = places(name);
        let journal = self.journal.get()?;
        let directory = get(self.root.get(), directory).checked_sub(1);
        let table = directory
            .and_then(|directory| get(journal.block(directory as usize), entry).checked_sub(1));
        match table {
            Some(table) => Some(journal.block(table as usize)),
            None => self.new_table(journal, name),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_table(&self, journal: &'static Journal, name: u64) -> Option<Words> {
        let (directory, entry) = places(name);
        let root = self.root.get();
        let directory = match get(root, directory).checked_sub(1) {
            Some(number) => number as usize,
            None => {
                let number = journal.take_for(tallies::DIRECTORY)?;
                root[directory].store(number as u64 + 1, Ordering::Release);
                number
            }
        };
        let table = journal.take_for(tallies::TABLE)?;
        journal.block(table)[table::NAME].store(name, Ordering::Relaxed);
        journal.block(directory)[entry].store(table as u64 + 1, Ordering::Release);
        Some(journal.block(table))
    }

    /// A call that begins too deeply to have a place, or in a thread without a root.
    #[cold]
    #[inline(never)]
    fn begin_slow(&self) {
        match self.root.get() {
            [] => self.lose(1),
            root => {
                root[root::DEPTH].store(self.depth.get() as u64, Ordering::Release);
                add(&root[root::EMITTED], 1);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn end_slow(&self, name: u64) {
        if self.root.get().is_empty() {
            self.depth.set(self.depth.get() - 1);
            return self.lose(1);
        }
        match self.table(name) {
            Some(table) => {
                add(&table[table::UNKNOWN], 1);
                self.pop(1);
            }
            None => self.lose_call(),
        }
    }

    /// The end of a call that is not the innermost: those within it end with it, at an unknown
    /// time. An end without a call is one of a call that was taken off so.
    #[cold]
    #[inline(never)]
    fn end_outer(&self, name: u64, ticks: u64) {
        let open = (0..self.depth.get()).rev();
        let mut names = open.map(|depth| self.name_at(depth));
        if names.any(|open| open == name) {
            while let Some(innermost) = self.depth.get().checked_sub(1)
                && self.name_at(innermost) != name
            {
                self.end_slow(self.name_at(innermost));
            }
            self.end(name, ticks);
        }
    }

    fn name_at(&self, depth: usize) -> u64 {
        get(self.root.get(), root::OPEN + depth * root::OPEN_WORDS)
    }

    /// Counts a call as lost, since there is no block for its table. Its beginning was noted.
    #[cold]
    #[inline(never)]
    fn lose_call(&self) {
        self.pop(u64::MAX);
        self.lose(2);
    }

    fn lose(&self, records: u64) {
        self.lost.set(self.lost.get() + records);
        if let Some(journal) = self.journal.get() {
            journal.note_lost(self.slot.get(), self.lost.get());
        }
    }

    /// Leaves the journal: open calls have no end.
    pub fn leave(&self) {
        let root = self.root.get();
        if !root.is_empty() {
            while let Some(innermost) = self.depth.get().checked_sub(1) {
                let has_place = innermost < root::OPEN_MAX;
                let table = has_place.then(|| self.table(self.name_at(innermost)));
                match table.flatten() {
                    Some(table) => {
                        add(&table[table::UNKNOWN], 1);
                        self.pop(0);
                    }
                    None => {
                        self.pop(u64::MAX);
                        self.lose(1);
                    }
                }
            }
        }
        if let Some(journal) = self.journal.take() {
            if !root.is_empty() {
                journal.give_root_back(self.slot.get(), self.number.get());
            }
            journal.leave(self.slot.get());
        }
        self.root.set(&[]);
    }

    /// Leaves the journal without a word to it: in the child of a fork, which shares the journal
    /// with its parent.
    pub fn forget(&self) {
        self.journal.set(None);
        self.root.set(&[]);
        self.depth.set(0);
    }
}

/// Word of a root that has a name's directory, and word of that directory that has its table.
#[inline]
fn places(name: u64) -> (usize, usize) {
    let name = name as usize;
    (
        root::DIRECTORIES + name / tallies::NAMES,
        tallies::ENTRIES + name % tallies::NAMES,
    )
}

impl Journal {
    /// Takes a block for tallies. It stays one.
    fn take_for(&self, kind: u64) -> Option<usize> {
        let mut queue = self.lock();
        let number = queue.free.pop()?;
        let free = queue.free.len() as u64;
        self.shared.free.store(free, Ordering::Relaxed);
        // They are taken in the order of their numbers.
        self.words[header::TALLY_BLOCKS].store(number as u64 + 1, Ordering::Release);
        self.block(number)[block::STATE].store(kind, Ordering::Release);
        Some(number)
    }

    /// A root for the thread in a slot, which has counted nothing.
    fn root(&self, slot: usize) -> Option<usize> {
        let given_back = self.lock().roots.pop();
        let number = match given_back {
            Some(number) => number,
            None => self.take_for(tallies::ROOT)?,
        };
        let root = self.block(number);
        root[root::EMITTED].store(0, Ordering::Relaxed);
        root[root::DEPTH].store(0, Ordering::Relaxed);
        self.thread_word(slot, thread::BLOCK)
            .store(number as u64 + 1, Ordering::Release);
        Some(number)
    }

    fn give_root_back(&self, slot: usize, number: usize) {
        let emitted = self.block(number)[root::EMITTED].load(Ordering::Relaxed);
        self.thread_word(slot, thread::KEPT)
            .store(emitted, Ordering::Relaxed);
        self.thread_word(slot, thread::BLOCK)
            .store(0, Ordering::Release);
        self.lock().roots.push(number);
    }

    /// Tallies of all threads together, as they are now.
    pub(super) fn tallies(&self) -> Tallies {
        let blocks = self.words[header::TALLY_BLOCKS].load(Ordering::Acquire) as usize;
        tallies_of(blocks, &|number, at| {
            self.block(number)[at].load(Ordering::Acquire)
        })
    }
}
