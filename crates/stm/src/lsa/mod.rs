//! LSA: a clock, a lock with a version for each stripe of memory, and snapshots that move on.
//!
//! A transaction reads memory as it was at one time of the clock, its *limit*. A stripe that is
//! newer makes it *extend*: if all that it has read is unchanged, the limit becomes now. It takes a
//! stripe's lock at its first write there and writes to memory in place, with a log to undo it.
//! Writing in place makes the commit short, one step of the clock and one store a lock, and a
//! transaction finds its own writes where they belong. The price is paid when an attempt is undone.
//!
//! | state | writer | reader |
//! |---|---|---|
//! | `clock` | each commit that wrote; threads that wait | all, at the start and to extend |
//! | lock, free → held | whoever writes to the stripe, by an exchange | all |
//! | lock, held → free | its owner: a new version at a commit, a new incarnation when undone | all |
//! | word | the owner of its stripe's lock | all, between two looks at the lock |
//!
//! The log of reads has no versions. A lock that was at or below the limit and is there still is
//! unchanged: a writer locks first and steps the clock then, so whatever is locked after a look at
//! it gets a version above the limit that the looker had.

mod stripes;

use hearth_atomics::{AtomicU64, Ordering, spin_loop};

use crate::algorithm::{Algorithm, Protocol, Savepoint};
use crate::attempt::{Attempt, Home};
use crate::counter::{FLAGS, Line, STEP, summary};
use crate::fault::{Fault, Planted};
use crate::halt::Halt;
use crate::raw::{RawWord, Target};
use crate::trace::{BuildTracer, Reason};
use stripes::{HELD, Stripes, held_by, number, owner, site, stripe, wrap};

/// Looks at a held lock before the attempt gives way. A commit holds its locks for some tens of
/// nanoseconds, a body for as long as it likes; whoever holds locks must not wait long.
#[cfg(not(loom))]
const LOOKS_MAX: u32 = 16;
#[cfg(loom)]
const LOOKS_MAX: u32 = 0;

/// Words that a slice is read by: a piece fits the fastest cache beside its locks.
const PIECE: usize = 128;
/// Stripes that a piece can touch: it need not begin where a stripe does.
const PIECE_STRIPES: usize = PIECE + 1;

/// No stripe's number.
const NO_STRIPE: u32 = u32::MAX;

/// The algorithm LSA: the default.
pub struct Lsa {
    clock: Line<AtomicU64>,
    stripes: Stripes,
    planted: Planted,
}

impl Algorithm for Lsa {}

/// Logs of a thread.
pub struct Logs {
    /// The largest lock that the snapshot includes: its time, with all flags set. Zero after a
    /// conflict: a body that goes on all the same reads only words that nobody has ever written.
    limit: u64,
    /// This descriptor in a held lock.
    mine: u64,
    /// The stripe read last, which need not be logged again.
    last: u32,
    reads: Vec<u32>,
    /// Locks held, as they were before.
    locks: Vec<(u32, u64)>,
    /// Words written, as they were before.
    undo: Vec<(Target, u64)>,
    attempt: Attempt,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs {
            limit: 0,
            mine: 0,
            last: NO_STRIPE,
            reads: Vec::with_capacity(64),
            locks: Vec::with_capacity(16),
            undo: Vec::with_capacity(16),
            attempt: Attempt::default(),
        }
    }
}

impl Logs {
    #[inline(always)]
    fn note_read(&mut self, number: u32) {
        if self.last != number {
            self.last = number;
            self.reads.push(number);
        }
    }

    fn conflict(&mut self, reason: Reason, site: usize, lock: u64) -> Halt {
        self.limit = 0;
        self.attempt.conflict(reason, site, owner(lock))
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

impl Lsa {
    /// A stripe that has changed since the attempt read it, and its lock.
    ///
    /// Relaxed loads: the caller has acquired the clock, and with it the locks of all commits that
    /// the clock counts.
    #[inline]
    fn changed(&self, logs: &Logs) -> Option<(u32, u64)> {
        for &number in &logs.reads {
            let lock = self.stripes.lock(number).load(Ordering::Relaxed);
            if lock > logs.limit && lock != logs.mine {
                return Some((number, lock));
            }
        }
        None
    }

    /// Moves the snapshot to now.
    #[cold]
    fn extend(&self, logs: &mut Logs) -> Result<(), Halt> {
        if logs.attempt.conflict.is_some() {
            return Err(Halt::CONFLICT);
        }
        // Acquire pairs with the step of each commit counted: its locks are seen held or newer.
        let now = self.clock.0.load(Ordering::Acquire);
        if !self.planted.is(Fault::UncheckedExtension)
            && let Some((number, lock)) = self.changed(logs)
        {
            return Err(logs.conflict(Reason::Changed, site(number), lock));
        }
        logs.limit = now | FLAGS;
        Ok(())
    }

    /// Reads a word whose stripe is mine, is held, or is newer than the snapshot.
    #[inline(never)]
    fn read_slow(&self, logs: &mut Logs, raw: &RawWord, number: u32) -> Result<u64, Halt> {
        let lock = self.stripes.lock(number);
        let mut looks = 0;
        loop {
            let seen = lock.load(Ordering::Acquire);
            if seen == logs.mine {
                // Noted all the same: the word may be another one than those written, and if the
                // attempt is undone and waits, it waits for a change of this, too.
                logs.note_read(number);
                return Ok(raw.load_own());
            }
            if seen & HELD != 0 {
                if looks == LOOKS_MAX {
                    return Err(logs.conflict(Reason::ReadLocked, raw.address(), seen));
                }
                looks += 1;
                spin_loop();
                continue;
            }
            if seen > logs.limit {
                self.extend(logs)?;
                continue;
            }
            let value = raw.load();
            if lock.load(Ordering::Relaxed) == seen {
                logs.note_read(number);
                return Ok(value);
            }
        }
    }

    /// Takes a lock that is held, or newer than the snapshot, or was when it was looked at.
    #[cold]
    fn lock_slow(&self, logs: &mut Logs, raw: &RawWord, number: u32) -> Result<(), Halt> {
        let lock = self.stripes.lock(number);
        let mut looks = 0;
        loop {
            // Acquire: `extend` finds the clock at the version seen, or later.
            let seen = lock.load(Ordering::Acquire);
            if seen & HELD != 0 {
                if looks == LOOKS_MAX {
                    return Err(logs.conflict(Reason::WriteLocked, raw.address(), seen));
                }
                looks += 1;
                spin_loop();
            } else if seen > logs.limit {
                self.extend(logs)?;
            } else if self.take(logs, number, seen) {
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn take(&self, logs: &mut Logs, number: u32, seen: u64) -> bool {
        // Acquire: what the last owner wrote is visible; its partner is the store that freed the
        // lock.
        let is_taken = self
            .stripes
            .lock(number)
            .compare_exchange(seen, logs.mine, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if is_taken {
            logs.locks.push((number, seen));
        }
        is_taken
    }

    /// A step of the clock, and the time after it.
    fn step(&self) -> (u64, u64) {
        // Release gives the locks taken before to whoever acquires a later time; acquire takes
        // those of earlier commits.
        let before = self.clock.0.fetch_add(STEP, Ordering::AcqRel);
        (before, (before & !FLAGS) + STEP)
    }

    /// Frees the locks of an attempt that is undone.
    fn free_undone(&self, logs: &mut Logs) {
        for (number, before) in logs.locks.drain(..) {
            // The eighth incarnation takes a new version, which never comes again.
            let after = if before & FLAGS == FLAGS {
                self.step().1
            } else {
                before + 1
            };
            // Release: whoever sees this sees the words as they were.
            self.stripes.lock(number).store(after, Ordering::Release);
        }
    }

    /// Undoes the writes from the `length`th on.
    ///
    /// # Safety
    /// The words written are alive.
    unsafe fn undo(logs: &mut Logs, length: usize) {
        while logs.undo.len() > length
            && let Some((target, value)) = logs.undo.pop()
        {
            // SAFETY: the caller's promise.
            unsafe { target.get() }.store(value);
        }
    }
}

impl Protocol for Lsa {
    type Logs = Logs;
    type Tracer = BuildTracer;

    fn new(planted: Planted) -> Lsa {
        Lsa {
            clock: Line(AtomicU64::new(0)),
            stripes: Stripes::new(),
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
        &self.clock.0
    }

    #[inline(always)]
    fn begin(&self, logs: &mut Logs) -> u64 {
        logs.mine = held_by(std::ptr::from_ref(logs).addr());
        logs.reads.clear();
        logs.locks.clear();
        logs.undo.clear();
        logs.last = NO_STRIPE;
        let now = self.clock.0.load(Ordering::Acquire);
        logs.limit = now | FLAGS;
        now
    }

    #[inline(always)]
    unsafe fn read(&self, logs: &mut Logs, raw: &RawWord) -> Result<u64, Halt> {
        let number = number(raw.address());
        let lock = self.stripes.lock(number);
        let seen = lock.load(Ordering::Acquire);
        let value = raw.load();
        // The value was loaded with acquire: if its writer still holds the lock, or has freed it
        // since, this load sees that.
        if seen <= logs.limit && lock.load(Ordering::Relaxed) == seen {
            logs.note_read(number);
            return Ok(value);
        }
        self.read_slow(logs, raw, number)
    }

    #[inline(always)]
    unsafe fn read_pair(&self, logs: &mut Logs, raws: [&RawWord; 2]) -> Result<[u64; 2], Halt> {
        let number = number(raws[0].address());
        if stripe(raws[0].address()) == stripe(raws[1].address()) {
            let lock = self.stripes.lock(number);
            let seen = lock.load(Ordering::Acquire);
            let values = raws.map(RawWord::load);
            if seen <= logs.limit && lock.load(Ordering::Relaxed) == seen {
                logs.note_read(number);
                return Ok(values);
            }
        }
        // SAFETY: the caller's promise.
        let first = unsafe { self.read(logs, raws[0])? };
        // SAFETY: the caller's promise.
        let second = unsafe { self.read(logs, raws[1])? };
        Ok([first, second])
    }

    #[inline]
    unsafe fn read_slice(
        &self,
        logs: &mut Logs,
        raws: &[RawWord],
        mut piece: impl FnMut(&[u64]),
    ) -> Result<(), Halt> {
        let mut seen = [0; PIECE_STRIPES];
        let mut values = [0; PIECE];
        for raws in raws.chunks(PIECE) {
            let values = &mut values[..raws.len()];
            let first = stripe(raws[0].address());
            let last = stripe(raws[raws.len() - 1].address());
            let seen = &mut seen[..last - first + 1];
            let locks = |offset: usize| self.stripes.lock((first + offset) as u32);
            let mut newest = 0;
            for (offset, seen) in seen.iter_mut().enumerate() {
                *seen = locks(offset).load(Ordering::Acquire);
                newest = newest.max(*seen);
            }
            for (value, raw) in values.iter_mut().zip(raws) {
                *value = raw.load();
            }
            let mut is_same = newest <= logs.limit;
            for (offset, seen) in seen.iter().enumerate() {
                is_same &= locks(offset).load(Ordering::Relaxed) == *seen;
            }
            if is_same {
                logs.reads.extend((first..=last).map(wrap));
            } else {
                for (value, raw) in values.iter_mut().zip(raws) {
                    // SAFETY: the caller's promise.
                    *value = unsafe { self.read(logs, raw)? };
                }
            }
            piece(values);
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn write(&self, logs: &mut Logs, raw: &RawWord, value: u64) -> Result<(), Halt> {
        let number = number(raw.address());
        let seen = self.stripes.lock(number).load(Ordering::Relaxed);
        if seen != logs.mine && !(seen <= logs.limit && self.take(logs, number, seen)) {
            self.lock_slow(logs, raw, number)?;
        }
        logs.undo.push((Target::of(raw), raw.load_own()));
        raw.store(value);
        Ok(())
    }

    #[inline]
    unsafe fn commit(&self, logs: &mut Logs) -> Result<u64, Halt> {
        if logs.attempt.conflict.is_some() {
            return Err(Halt::CONFLICT);
        }
        if logs.locks.is_empty() {
            return Ok(logs.limit & !FLAGS);
        }
        let (before, version) = if self.planted.is(Fault::StoppedClock) {
            let now = self.clock.0.load(Ordering::Acquire);
            (now, now & !FLAGS)
        } else {
            self.step()
        };
        // If no commit came since the snapshot, nothing that it includes can have changed.
        if before | FLAGS != logs.limit
            && !self.planted.is(Fault::UncheckedCommit)
            && let Some((number, lock)) = self.changed(logs)
        {
            return Err(logs.conflict(Reason::CommitChanged, site(number), lock));
        }
        for &(number, _) in &logs.locks {
            // Release: whoever sees the version sees the words.
            self.stripes.lock(number).store(version, Ordering::Release);
        }
        Ok(version | before & FLAGS)
    }

    #[cold]
    unsafe fn roll_back(&self, logs: &mut Logs) {
        if self.planted.is(Fault::EarlyRelease) {
            self.free_undone(logs);
            self.planted.gape();
        }
        // SAFETY: the caller's promise.
        unsafe { Lsa::undo(logs, 0) };
        self.free_undone(logs);
    }

    #[inline]
    fn savepoint(logs: &mut Logs) -> Savepoint {
        Savepoint {
            length: logs.undo.len(),
            outer: 0,
        }
    }

    /// The locks stay held: they are few, and freeing them would cost their incarnations.
    unsafe fn roll_back_to(&self, logs: &mut Logs, savepoint: &Savepoint) {
        // SAFETY: the caller's promise.
        unsafe { Lsa::undo(logs, savepoint.length) };
    }

    fn forget(_: &mut Logs, _: Savepoint) {}

    fn raise(&self, flag: u64) {
        // Release: whoever steps the clock after this sees what the caller has announced. Acquire:
        // the caller sees the locks of all commits that stepped before.
        self.clock.0.fetch_or(flag, Ordering::AcqRel);
    }

    fn lower(&self, flag: u64) {
        self.clock.0.fetch_and(!flag, Ordering::AcqRel);
    }

    unsafe fn is_current(&self, logs: &mut Logs) -> bool {
        self.changed(logs).is_none()
    }

    unsafe fn read_summary(logs: &Logs) -> u64 {
        let numbers = logs.reads.iter();
        numbers.fold(0, |all, &number| all | summary(number as usize))
    }

    fn written_summary(logs: &Logs) -> u64 {
        let numbers = logs.locks.iter();
        numbers.fold(0, |all, &(number, _)| all | summary(number as usize))
    }
}
