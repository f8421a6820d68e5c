//! The journal of a program that runs: threads come and go, blocks circulate.
//!
//! A block goes round: free → open, by a thread → full → taken, by a writer → free. With the law
//! `drop-oldest`, a full one may be opened again. All these steps happen under one lock, once in
//! some thousand records.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use hearth_sys::clock::{Moment, Source, Stamps};
use hearth_sys::refused::Refused;
use hearth_sys::{Linux, affinity, clock, shared};

use super::chunk::{Chunk, Clocks};
use super::full::Full;
use super::layout::{
    BLOCKS, HEADER, Law, MAGIC, NAME_WORDS_MAX, NAMES, Shape, THREAD, THREADS, THREADS_MAX, TICKS,
    VERSION, block, header, is_gap, state, thread,
};
use super::user_words::UserWords;
use super::words::{Total, chunk_of, names, total_of};

/// Blocks between threads that record and those that store.
pub struct Journal {
    pub(super) words: &'static [AtomicU64],
    block_words: usize,
    law: Law,
    stamps: Stamps,
    begin: Moment,
    pub(super) shared: Shared,
}

/// Fields that change, on cache lines apart from those that every record reads.
#[repr(align(128))]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// A block became full, a thread left, or the journal was closed.
    filled: Condvar,
    /// A block became free.
    pub(super) freed: Condvar,
    /// Number of free blocks, as far as is known without the lock.
    pub(super) free: AtomicU64,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) free: Vec<usize>,
    full: VecDeque<usize>,
    /// Slots of threads that have left, whose accounts are not in the file yet.
    left: Vec<usize>,
    /// Slots to be used again.
    vacant: Vec<usize>,
    /// Number of blocks that writers have.
    pub(super) taken: usize,
    /// Roots of tallies whose threads have left.
    pub(super) roots: Vec<usize>,
    /// The accounts of all threads were taken for the end.
    is_over: bool,
    /// Blocks handed over since, for an end that is tried again.
    late: Vec<usize>,
    /// Nobody stores: threads do not wait.
    is_closed: bool,
}

impl Journal {
    /// Begins a journal in a file, which becomes as long as the shape says.
    ///
    /// # Errors
    /// The file cannot be made that long, or cannot be mapped.
    pub fn begin(file: &File, shape: Shape, law: Law) -> Result<&'static Journal, Refused> {
        Journal::begin_as(file, shape, law, false)
    }

    /// Begins a journal whose threads keep tallies of their calls, each with a
    /// [`Counter`](super::Counter), and no records.
    ///
    /// # Errors
    /// The file cannot be made long enough, or cannot be mapped.
    pub fn begin_tallies(file: &File, bytes: u64) -> Result<&'static Journal, Refused> {
        Journal::begin_as(file, Shape::for_tallies(bytes), Law::DropNewest, true)
    }

    fn begin_as(
        file: &File,
        shape: Shape,
        law: Law,
        has_tallies: bool,
    ) -> Result<&'static Journal, Refused> {
        let shape = Shape {
            blocks: shape.blocks.max(2),
            ..shape
        };
        let bytes = shape.bytes();
        file.set_len(bytes).map_err(|error| {
            let next = "free some space, or ask for fewer blocks";
            Refused::new("make", format!("a journal of {bytes} bytes"), &error, next)
        })?;
        let words = shared::map(file, bytes as usize)?;
        let stamps = Stamps::here(&Linux);
        let begin = stamps.moment();
        let store = |at: usize, value: u64| words[at].store(value, Ordering::Relaxed);
        store(header::VERSION, VERSION);
        store(header::BLOCKS, shape.blocks as u64);
        store(header::BLOCK_WORDS, shape.block_words() as u64);
        store(header::LAW, law.number());
        store(header::SOURCE, u64::from(stamps.source() == Source::Tsc));
        store(header::BEGIN_TICKS, begin.ticks);
        store(header::BEGIN_NS, begin.ns);
        store(header::BEGIN_WALL, clock::wall_ns());
        store(header::PROCESS, u64::from(std::process::id()));
        store(header::HAS_TALLIES, u64::from(has_tallies));
        words[header::MAGIC].store(MAGIC, Ordering::Release);
        let journal = Box::leak(Box::new(Journal {
            words,
            block_words: shape.block_words(),
            law,
            stamps,
            begin,
            shared: Shared {
                queue: Mutex::new(Queue {
                    free: (0..shape.blocks).rev().collect(),
                    ..Queue::default()
                }),
                filled: Condvar::new(),
                freed: Condvar::new(),
                free: AtomicU64::new(shape.blocks as u64),
            },
        }));
        journal.note_clocks();
        Ok(journal)
    }

    /// Time since the beginning, in ticks; the processor may reorder the reading.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.stamps.ticks().wrapping_sub(self.begin.ticks) & TICKS
    }

    /// The law of loss.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// Whether its threads keep tallies instead of records.
    #[must_use]
    pub fn has_tallies(&self) -> bool {
        self.words[header::HAS_TALLIES].load(Ordering::Relaxed) == 1
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.words[header::BLOCKS].load(Ordering::Relaxed) as usize
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        8 * self.words[header::BLOCK_WORDS].load(Ordering::Relaxed) as usize
    }

    /// Number of free blocks, a moment ago.
    #[inline]
    pub fn blocks_free(&self) -> usize {
        self.shared.free.load(Ordering::Relaxed) as usize
    }

    /// A word for the journal's user that other processes can see.
    ///
    /// # Panics
    /// There are 64.
    #[must_use]
    pub fn user_word(&self, number: usize) -> &'static AtomicU64 {
        UserWords::in_words(self.words).word(number)
    }

    /// Adds a name that readers of the journal and the file will know by the returned number. None
    /// if there are too many.
    pub fn name(&self, text: &str) -> Option<u32> {
        let _lock = self.lock();
        let used = self.words[header::NAME_WORDS].load(Ordering::Relaxed) as usize;
        let needed = 1 + text.len().div_ceil(8);
        if used + needed > NAME_WORDS_MAX {
            return None;
        }
        self.words[NAMES + used].store(text.len() as u64, Ordering::Relaxed);
        store_text(&self.words[NAMES + used + 1..], text.as_bytes());
        // Release: a reader that sees the length sees the text.
        self.words[header::NAME_WORDS].store((used + needed) as u64, Ordering::Release);
        Some(used as u32)
    }

    /// The names that were added from a word of the names on, each with its number, and the word
    /// behind them.
    #[must_use]
    pub fn names_from(&self, word: usize) -> (Vec<(u32, String)>, usize) {
        names(word, &|at| self.words[at].load(Ordering::Acquire))
    }

    /// Stores the path of the file that the records go to, for readers of the journal. One of more
    /// than 3 kB is left out.
    pub fn note_file(&self, path: &[u8]) {
        let words = &self.words[header::FILE..][..header::FILE_WORDS];
        if path.len() <= (header::FILE_WORDS - 1) * 8 {
            store_text(&words[1..], path);
            words[0].store(path.len() as u64, Ordering::Release);
        }
    }

    /// Reads all clocks, for readers to convert ticks by.
    pub fn note_clocks(&self) -> Clocks {
        let Moment { ticks, ns } = self.stamps.moment();
        let clocks = Clocks {
            ticks: ticks.wrapping_sub(self.begin.ticks) & TICKS,
            ns: ns - self.begin.ns,
            wall: clock::wall_ns(),
        };
        let store = |at: usize, value: u64| self.words[at].store(value, Ordering::Relaxed);
        store(header::LATEST_WALL, clocks.wall);
        store(header::LATEST_NS, ns);
        self.words[header::LATEST_TICKS].store(ticks, Ordering::Release);
        clocks
    }

    // ---- threads that record ------------------------------------------------------------------

    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn thread_word(&self, slot: usize, word: usize) -> &AtomicU64 {
        &self.words[THREADS + slot * THREAD + word]
    }

    pub(super) fn block(&self, number: usize) -> &'static [AtomicU64] {
        &self.words[BLOCKS + number * self.block_words..][..self.block_words]
    }

    /// Gives the calling thread a slot. None if all are taken.
    pub(super) fn admit(&self) -> Option<usize> {
        let mut queue = self.lock();
        let slots = self.words[header::SLOTS].load(Ordering::Relaxed) as usize;
        let slot = match queue.vacant.pop() {
            Some(slot) => slot,
            None if slots < THREADS_MAX => {
                self.words[header::SLOTS].store(slots as u64 + 1, Ordering::Release);
                slots
            }
            None => return None,
        };
        for word in 1..THREAD {
            self.thread_word(slot, word).store(0, Ordering::Relaxed);
        }
        let number = 1 + self.words[header::THREADS].fetch_add(1, Ordering::Relaxed);
        let name = &self.words[THREADS + slot * THREAD + thread::NAME..];
        // Threads that were not made by Rust have a name here only.
        let text = affinity::thread_name();
        store_text(&name[..thread::NAME_BYTES / 8], &text);
        let id = u64::from(affinity::thread_id()) | number << 32;
        self.thread_word(slot, thread::ID)
            .store(id, Ordering::Release);
        Some(slot)
    }

    /// Counts a record of a thread without a slot.
    pub(super) fn count_homeless(&self) {
        self.words[header::HOMELESS].fetch_add(1, Ordering::Relaxed);
    }

    /// Opens a block for the calling thread, by the law.
    pub(super) fn open(&self, slot: usize, kept: u64, lost: u64, note: u32) -> Option<usize> {
        // Only a guess; a thread that finds nothing asks again at its next record.
        if self.blocks_free() == 0 && matches!(self.law, Law::DropNewest | Law::Sample) {
            return None;
        }
        let mut queue = self.lock();
        let number = loop {
            if let Some(number) = queue.free.pop() {
                self.shared
                    .free
                    .store(queue.free.len() as u64, Ordering::Relaxed);
                break number;
            }
            match self.law {
                // If all blocks are open, more threads record than there are blocks.
                Law::Block if !queue.is_closed && (queue.taken > 0 || !queue.full.is_empty()) => {
                    queue = self
                        .shared
                        .freed
                        .wait(queue)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                }
                Law::DropOldest => {
                    let oldest = queue.full.pop_front()?;
                    self.give_up(oldest, state::OVERWRITTEN);
                    let state = &self.block(oldest)[block::STATE];
                    state.store(state::FREE, Ordering::Release);
                    break oldest;
                }
                _ => return None,
            }
        };
        let words = self.block(number);
        let thread = self.thread_word(slot, thread::ID).load(Ordering::Relaxed) >> 32;
        words[block::USED].store(block::RECORDS as u64, Ordering::Relaxed);
        words[block::THREAD].store(slot as u64 | thread << 32, Ordering::Relaxed);
        words[block::FIRST].store(kept + lost, Ordering::Relaxed);
        words[block::KEPT].store(kept, Ordering::Relaxed);
        // 0 stands for no CPU.
        let cpu = affinity::current().map_or(0, |cpu| cpu as u64 + 1);
        words[block::NOTE].store(u64::from(note) | cpu << 32, Ordering::Relaxed);
        words[block::STATE].store(state::OPEN, Ordering::Release);
        self.thread_word(slot, thread::BLOCK)
            .store(number as u64 + 1, Ordering::Release);
        Some(number)
    }

    /// Counts the records of a block as lost; with the lock. The block says before what the count
    /// will be, so the account is right if the process dies between two of these stores.
    pub(super) fn give_up(&self, number: usize, (state, count): (u64, usize)) {
        let words = self.block(number);
        let slot = words[block::THREAD].load(Ordering::Relaxed) as u32 as usize;
        let count = self.thread_word(slot, count);
        let after = count.load(Ordering::Relaxed) + kept(words);
        words[block::LOSES].store(after, Ordering::Relaxed);
        words[block::STATE].store(state, Ordering::Release);
        count.store(after, Ordering::Release);
    }

    /// Queues a thread's block for a writer.
    pub(super) fn hand_over(&self, slot: usize, number: usize, kept: u64) {
        let mut queue = self.lock();
        let words = self.block(number);
        let order = 1 + self.words[header::ORDER].fetch_add(1, Ordering::Relaxed);
        words[block::ORDER].store(order, Ordering::Relaxed);
        words[block::STATE].store(state::FULL, Ordering::Release);
        self.thread_word(slot, thread::KEPT)
            .store(kept, Ordering::Relaxed);
        self.thread_word(slot, thread::BLOCK)
            .store(0, Ordering::Release);
        match queue.is_over {
            // The end has the part that counts.
            true => queue.late.push(number),
            false => queue.full.push_back(number),
        }
        drop(queue);
        self.shared.filled.notify_one();
    }

    /// Stores the number of records that a thread has lost so far.
    #[inline]
    pub(super) fn note_lost(&self, slot: usize, lost: u64) {
        self.thread_word(slot, thread::LOST)
            .store(lost, Ordering::Release);
    }

    /// A thread has left: its account can be closed when its blocks are stored.
    pub(super) fn leave(&self, slot: usize) {
        let mut queue = self.lock();
        // The end has its account already.
        if !queue.is_over {
            queue.left.push(slot);
        }
        drop(queue);
        self.shared.filled.notify_one();
    }

    // ---- writers ------------------------------------------------------------------------------

    /// The oldest full block. None if there is none.
    pub fn try_next(&'static self) -> Option<Full> {
        let mut queue = self.lock();
        self.take(&mut queue)
    }

    /// The oldest full block, after waiting for one at most for this time. At the end it waits no
    /// more.
    pub fn next_within(&'static self, time: Duration) -> Option<Full> {
        let mut queue = self.lock();
        if queue.full.is_empty() && !queue.is_closed {
            queue = self
                .shared
                .filled
                .wait_timeout(queue, time)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        self.take(&mut queue)
    }

    fn take(&'static self, queue: &mut Queue) -> Option<Full> {
        let number = queue.full.pop_front()?;
        queue.taken += 1;
        self.block(number)[block::STATE].store(state::TAKEN, Ordering::Release);
        Some(Full::new(self, number))
    }

    /// Waits for the end, at most for this time. False if it has come.
    pub fn wait_for_end(&self, time: Duration) -> bool {
        let queue = self.lock();
        let waited = self
            .shared
            .filled
            .wait_timeout_while(queue, time, |queue| !queue.is_closed);
        !waited
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0
            .is_closed
    }

    /// Ends waiting: nobody will store any more. Threads that find no block lose their records.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.shared.filled.notify_all();
        self.shared.freed.notify_all();
    }

    /// Whether nobody will store any more.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Marks the file as complete: a reader needs no journal.
    pub fn mark_over(&self) {
        self.words[header::IS_OVER].store(1, Ordering::Release);
    }

    /// Accounts of threads that have left and have no block in the queue or at a writer, each once.
    /// What becomes of a block still counts in its thread's account.
    pub fn accounts_of_left(&self) -> Vec<Total> {
        let mut queue = self.lock();
        let has_block = self.slots_of_blocks();
        let left = std::mem::take(&mut queue.left).into_iter();
        let (waiting, left): (Vec<usize>, Vec<usize>) =
            left.partition(|slot| has_block.contains(slot));
        queue.left = waiting;
        let totals = left.iter().filter_map(|&slot| self.total(slot)).collect();
        for slot in left {
            // Vacated: a reader of the journal need not count it any more.
            self.thread_word(slot, thread::ID)
                .store(0, Ordering::Release);
            queue.vacant.push(slot);
        }
        totals
    }

    /// Slots of threads with a full block, or one that a writer has; with the lock.
    fn slots_of_blocks(&self) -> Vec<usize> {
        let blocks = (0..self.blocks()).map(|number| self.block(number));
        let word = |words: &[AtomicU64], at: usize| words[at].load(Ordering::Acquire);
        let are_queued =
            blocks.filter(|words| matches!(word(words, block::STATE), state::FULL | state::TAKEN));
        are_queued
            .map(|words| word(words, block::THREAD) as u32 as usize)
            .collect()
    }

    /// Accounts of threads that have a slot now.
    pub fn accounts(&self) -> Vec<Total> {
        let _lock = self.lock();
        let slots = self.words[header::SLOTS].load(Ordering::Acquire) as usize;
        (0..slots).filter_map(|slot| self.total(slot)).collect()
    }

    fn total(&self, slot: usize) -> Option<Total> {
        total_of(slot, self.block_words, &|at| {
            self.words[at].load(Ordering::Acquire)
        })
    }

    /// Number of records of threads that found no slot.
    pub fn homeless(&self) -> u64 {
        self.words[header::HOMELESS].load(Ordering::Relaxed)
    }

    /// Ends the journal while threads may still write: what they emit from here on belongs to no
    /// account. Returns the records of open blocks, and the accounts of threads that have not left.
    pub fn end(&self) -> (Vec<Chunk>, Vec<Total>) {
        let mut queue = self.lock();
        queue.is_closed = true;
        queue.is_over = true;
        let late = std::mem::take(&mut queue.late);
        queue.full.extend(late);
        let slots = self.words[header::SLOTS].load(Ordering::Acquire) as usize;
        let (mut chunks, mut totals) = (Vec::new(), Vec::new());
        for slot in (0..slots).filter(|slot| !queue.left.contains(slot)) {
            let Some(mut total) = self.total(slot) else {
                continue;
            };
            let open = self
                .thread_word(slot, thread::BLOCK)
                .load(Ordering::Acquire);
            if let Some(number) = open.checked_sub(1)
                && !self.has_tallies()
            {
                let chunk = chunk_of(&used_of(self.block(number as usize)));
                // The thread may have gone on since the account was taken.
                let kept = self.block(number as usize)[block::KEPT].load(Ordering::Relaxed);
                total.emitted = kept + chunk.kept() + total.dropped;
                chunks.push(chunk);
            }
            totals.push(total);
        }
        drop(queue);
        self.shared.filled.notify_all();
        self.shared.freed.notify_all();
        (chunks, totals)
    }
}

/// The words used of a block, as they are now.
fn used_of(words: &[AtomicU64]) -> Vec<u64> {
    // Acquire: the records are there with their number.
    let used = words[block::USED].load(Ordering::Acquire) as usize;
    let used = words[..used].iter();
    used.map(|word| word.load(Ordering::Relaxed)).collect()
}

/// Number of records of a block, gaps not counted.
fn kept(words: &[AtomicU64]) -> u64 {
    let used = words[block::USED].load(Ordering::Acquire) as usize;
    words[block::RECORDS..used]
        .iter()
        .step_by(2)
        .filter(|word| !is_gap(word.load(Ordering::Relaxed)))
        .count() as u64
}

/// Stores a text, cut to the words there are.
fn store_text(words: &[AtomicU64], text: &[u8]) {
    for (word, bytes) in words.iter().zip(text.chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
    }
}

const _: () = assert!(HEADER >= header::FILE + header::FILE_WORDS);
