//! NOrec: one sequence number, which is also the lock of all commits, and no other shared state.
//!
//! A transaction logs each word that it reads with its value, and the words that it will write. If
//! the sequence number has moved since it looked last, it compares all values that it has read
//! with memory; if they are the same, its snapshot is now. A commit takes the number, stores the
//! log of writes, and gives the number back increased by one commit.
//!
//! | state | writer | reader |
//! |---|---|---|
//! | `sequence`, even → LOCKED | a commit, by an exchange from the number that its snapshot has | all |
//! | `sequence`, LOCKED → even | the commit that holds it | all |
//! | flags of `sequence` | threads that wait, while it is not LOCKED | all |
//! | word | the commit that holds the sequence | all, before a look at the sequence |
//!
//! A transaction that only reads writes no shared memory, and one that writes exchanges one word,
//! wherever its data is. In return commits go one at a time, and each makes all others compare.

mod writes;

use hearth_atomics::{AtomicU64, Ordering, spin_loop};

use crate::algorithm::{Algorithm, Protocol, Savepoint};
use crate::attempt::{Attempt, Home};
use crate::counter::{FLAGS, LOCKED, Line, STEP, summary};
use crate::fault::{Fault, Planted};
use crate::halt::Halt;
use crate::raw::{RawWord, Target};
use crate::trace::{BuildTracer, Reason};
use writes::Writes;

/// Looks at a locked sequence before a thread gives up its core: a commit stores a few words, so
/// the thread that holds the sequence has most likely lost its own core.
const LOOKS_MAX: u32 = 128;

/// No sequence number: it is locked, and beyond all others.
const NO_SNAPSHOT: u64 = u64::MAX;

/// The algorithm NOrec.
pub struct Norec {
    sequence: Line<AtomicU64>,
    planted: Planted,
}

impl Algorithm for Norec {}

/// Words read in a row.
struct Slice {
    first: Target,
    length: usize,
    /// Their values' place among the copies.
    copies: usize,
}

/// Logs of a thread.
pub struct Logs {
    /// The sequence number at which all reads hold. After a conflict none, so that each further
    /// read finds out.
    snapshot: u64,
    reads: Vec<(Target, u64)>,
    slices: Vec<Slice>,
    copies: Vec<u64>,
    writes: Writes,
    attempt: Attempt,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs {
            snapshot: NO_SNAPSHOT,
            reads: Vec::with_capacity(64),
            slices: Vec::new(),
            copies: Vec::new(),
            writes: Writes::new(),
            attempt: Attempt::default(),
        }
    }
}

impl Logs {
    /// A word whose value is no longer the one that was read.
    ///
    /// # Safety
    /// The words read are alive.
    #[inline]
    unsafe fn changed(&self) -> Option<usize> {
        for &(target, value) in &self.reads {
            // SAFETY: the caller's promise.
            let raw = unsafe { target.get() };
            if raw.load() != value {
                return Some(raw.address());
            }
        }
        for slice in &self.slices {
            let copies = &self.copies[slice.copies..slice.copies + slice.length];
            for (offset, &value) in copies.iter().enumerate() {
                // SAFETY: the caller's promise; the slice was read to its length.
                let raw = unsafe { slice.first.get_at(offset) };
                if raw.load() != value {
                    return Some(raw.address());
                }
            }
        }
        None
    }

    fn conflict(&mut self, reason: Reason, site: usize) -> Halt {
        self.snapshot = NO_SNAPSHOT;
        // A commit that holds the sequence does not say who it is.
        self.attempt.conflict(reason, site, 0)
    }
}

#[cfg(not(loom))]
thread_local! {
    static HOME: Home<Logs> = const { Home::new() };
}
#[cfg(loom)]
loom::thread_local! {
    static HOME: Home<Logs> = Home::new();
}

impl Norec {
    /// The sequence once no commit holds it.
    #[inline]
    fn unlocked(&self) -> u64 {
        let mut looks = 0;
        loop {
            // Acquire pairs with the Release of the last commit: its words are visible.
            let now = self.sequence.0.load(Ordering::Acquire);
            if now & LOCKED == 0 {
                return now;
            }
            looks += 1;
            if looks % LOOKS_MAX == 0 {
                hearth_sys::threading::yield_now();
            } else {
                spin_loop();
            }
        }
    }

    /// Moves the snapshot to now, if all words that were read have their values still.
    ///
    /// # Safety
    /// The words read are alive.
    #[cold]
    unsafe fn catch_up(&self, logs: &mut Logs, reason: Reason) -> Result<(), Halt> {
        if logs.attempt.conflict.is_some() {
            return Err(Halt::CONFLICT);
        }
        loop {
            let now = self.unlocked();
            let is_checked = now & !FLAGS == logs.snapshot & !FLAGS || self.is_unchecked(reason);
            // SAFETY: the caller's promise.
            if !is_checked && let Some(site) = unsafe { logs.changed() } {
                return Err(logs.conflict(reason, site));
            }
            // All values were loaded with acquire: if a commit stored one, this sees its lock.
            if self.sequence.0.load(Ordering::Acquire) == now {
                logs.snapshot = now;
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn is_unchecked(&self, reason: Reason) -> bool {
        self.planted.is(if reason == Reason::CommitChanged {
            Fault::UncheckedCommit
        } else {
            Fault::UncheckedExtension
        })
    }

    /// Reads words of which the sequence has moved on.
    ///
    /// # Safety
    /// The words read are alive.
    #[cold]
    unsafe fn read_slow<const N: usize>(
        &self,
        logs: &mut Logs,
        raws: [&RawWord; N],
    ) -> Result<[u64; N], Halt> {
        loop {
            // SAFETY: the caller's promise.
            unsafe { self.catch_up(logs, Reason::Changed)? };
            let values = raws.map(RawWord::load);
            if self.sequence.0.load(Ordering::Acquire) == logs.snapshot {
                return Ok(values);
            }
        }
    }

    /// Sets or clears flags. Only while no commit holds the sequence: the commit gives it back by
    /// a store.
    fn change(&self, change: impl Fn(u64) -> u64) {
        loop {
            let now = self.unlocked();
            let changed = self.sequence.0.compare_exchange(
                now,
                change(now),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if changed.is_ok() {
                return;
            }
        }
    }
}

impl Protocol for Norec {
    type Logs = Logs;
    type Tracer = BuildTracer;

    fn new(planted: Planted) -> Norec {
        Norec {
            sequence: Line(AtomicU64::new(0)),
            planted,
        }
    }

    #[inline(always)]
    fn take_logs() -> Box<Logs> {
        Home::take(&HOME)
    }

    #[inline(always)]
    fn put_logs(logs: Box<Logs>) {
        Home::put(&HOME, logs);
    }

    #[inline(always)]
    fn tracer(logs: &mut Logs) -> &mut BuildTracer {
        &mut logs.attempt.tracer
    }

    #[inline(always)]
    fn attempt(logs: &mut Logs) -> &mut Attempt {
        &mut logs.attempt
    }

    #[inline(always)]
    fn counter(&self) -> &AtomicU64 {
        &self.sequence.0
    }

    #[inline(always)]
    fn begin(&self, logs: &mut Logs) -> u64 {
        logs.reads.clear();
        logs.slices.clear();
        logs.copies.clear();
        logs.writes.clear();
        logs.snapshot = self.unlocked();
        logs.snapshot
    }

    #[inline(always)]
    unsafe fn read(&self, logs: &mut Logs, raw: &RawWord) -> Result<u64, Halt> {
        if !logs.writes.is_empty()
            && let Some(value) = logs.writes.find(raw)
        {
            return Ok(value);
        }
        let mut value = raw.load();
        // The value was loaded with acquire: if a commit stored it after the snapshot, this sees
        // the sequence locked or newer.
        if self.sequence.0.load(Ordering::Acquire) != logs.snapshot {
            // SAFETY: the caller's promise.
            [value] = unsafe { self.read_slow(logs, [raw])? };
        }
        logs.reads.push((Target::of(raw), value));
        Ok(value)
    }

    #[inline(always)]
    unsafe fn read_pair(&self, logs: &mut Logs, raws: [&RawWord; 2]) -> Result<[u64; 2], Halt> {
        if !logs.writes.is_empty() {
            // SAFETY: the caller's promise.
            let first = unsafe { self.read(logs, raws[0])? };
            // SAFETY: the caller's promise.
            let second = unsafe { self.read(logs, raws[1])? };
            return Ok([first, second]);
        }
        let mut values = raws.map(RawWord::load);
        if self.sequence.0.load(Ordering::Acquire) != logs.snapshot {
            // SAFETY: the caller's promise.
            values = unsafe { self.read_slow(logs, raws)? };
        }
        logs.reads.push((Target::of(raws[0]), values[0]));
        logs.reads.push((Target::of(raws[1]), values[1]));
        Ok(values)
    }

    #[inline]
    unsafe fn read_slice(
        &self,
        logs: &mut Logs,
        raws: &[RawWord],
        mut piece: impl FnMut(&[u64]),
    ) -> Result<(), Halt> {
        if raws.is_empty() {
            return Ok(());
        }
        let copies = logs.copies.len();
        loop {
            logs.copies.truncate(copies);
            logs.copies.extend(raws.iter().map(RawWord::load));
            if self.sequence.0.load(Ordering::Acquire) == logs.snapshot {
                break;
            }
            // SAFETY: the caller's promise.
            unsafe { self.catch_up(logs, Reason::Changed)? };
        }
        logs.slices.push(Slice {
            first: Target::first_of(raws),
            length: raws.len(),
            copies,
        });
        if logs.writes.is_empty() {
            piece(&logs.copies[copies..]);
        } else {
            let values = logs.copies[copies..].iter().zip(raws);
            let values = values.map(|(&value, raw)| logs.writes.find(raw).unwrap_or(value));
            for value in values {
                piece(&[value]);
            }
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn write(&self, logs: &mut Logs, raw: &RawWord, value: u64) -> Result<(), Halt> {
        // SAFETY: the caller's promise.
        unsafe { logs.writes.put(raw, value) };
        Ok(())
    }

    #[inline]
    unsafe fn commit(&self, logs: &mut Logs) -> Result<u64, Halt> {
        if logs.writes.is_empty() {
            return if logs.attempt.conflict.is_none() {
                Ok(logs.snapshot & !FLAGS)
            } else {
                Err(Halt::CONFLICT)
            };
        }
        // Acquire and release: whoever sees the words that follow sees the lock.
        while self
            .sequence
            .0
            .compare_exchange(
                logs.snapshot,
                logs.snapshot | LOCKED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_err()
        {
            // SAFETY: the caller's promise.
            unsafe { self.catch_up(logs, Reason::CommitChanged)? };
        }
        let step = if self.planted.is(Fault::StoppedClock) {
            0
        } else {
            STEP
        };
        let after = logs.snapshot + step;
        if self.planted.is(Fault::EarlyRelease) {
            self.sequence.0.store(after, Ordering::Release);
            self.planted.gape();
        }
        for &(target, value) in logs.writes.entries() {
            // SAFETY: the caller's promise.
            unsafe { target.get() }.store(value);
        }
        if !self.planted.is(Fault::EarlyRelease) {
            // Release: whoever sees the new number sees the words.
            self.sequence.0.store(after, Ordering::Release);
        }
        Ok(after)
    }

    /// Memory holds nothing of the attempt: its writes are in the log only.
    #[inline]
    unsafe fn roll_back(&self, logs: &mut Logs) {
        logs.writes.clear();
    }

    #[inline]
    fn savepoint(logs: &mut Logs) -> Savepoint {
        Savepoint {
            length: logs.writes.len(),
            outer: logs.writes.keep(),
        }
    }

    unsafe fn roll_back_to(&self, logs: &mut Logs, savepoint: &Savepoint) {
        // SAFETY: the caller's promise.
        unsafe { logs.writes.truncate(savepoint.length) };
    }

    #[inline]
    fn forget(logs: &mut Logs, savepoint: Savepoint) {
        logs.writes.release(savepoint.outer);
    }

    fn raise(&self, flag: u64) {
        self.change(|now| now | flag);
    }

    fn lower(&self, flag: u64) {
        self.change(|now| now & !flag);
    }

    unsafe fn is_current(&self, logs: &mut Logs) -> bool {
        // SAFETY: the caller's promise.
        unsafe { logs.changed() }.is_none()
    }

    unsafe fn read_summary(logs: &Logs) -> u64 {
        let words = logs.reads.iter().map(|&(target, _)| (target, 1));
        let slices = logs.slices.iter().map(|slice| (slice.first, slice.length));
        words.chain(slices).fold(0, |all, (first, length)| {
            (0..length).fold(all, |all, offset| {
                // SAFETY: the caller's promise; slices were read to their lengths.
                all | summary(unsafe { first.get_at(offset) }.address())
            })
        })
    }

    fn written_summary(logs: &Logs) -> u64 {
        logs.writes.summary()
    }
}
