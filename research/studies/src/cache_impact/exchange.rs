//! Experiments 2 to 4: one thread writes a buffer, a second one reads it, a mutex in between.
//!
//! All of this is timed, as published: the buffer is taken, the arguments' record is allocated, the
//! mutex made, the writer started. The writer pins itself, takes the mutex, starts the reader,
//! writes each word, lets go. The reader pins itself, waits for the mutex, reads each word, lets
//! go. Both are joined, and all is given back.
//!
//! One thing differs. The source's buffer comes from the C library, which above 32 MiB asks the
//! system for it afresh each time, so that every page faults again. Here the buffer is a part of
//! one mapping that lives as long as the study and has been touched before; [`Defect::Cliff`]
//! brings the fresh mappings back.
//!
//! A thread inherits the cores of the one that starts it. So the reader begins on the writer's
//! core and moves when it pins itself; and if its pinning is refused, as the source's −1 is, it
//! stays on the writer's core.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::Instant;

use hearth_sys::affinity;
use hearth_sys::mapping::{HugePages, LINE_BYTES, MapOptions, Mapping};
use hearth_sys::semaphore::Semaphore;

use super::options::{CacheImpactOptions, Defect, Start};
use super::site::Places;
use super::snapshot::{Events, Snapshot};
use crate::StudyError;

/// The value that the writer writes.
pub const CONSTANT: u64 = 31;

/// Above this the C library maps memory afresh for each allocation: the most that its threshold
/// grows to where addresses have 64 bits.
pub const FRESH_ABOVE_BYTES: u64 = 32 << 20;

/// `CLOCK_MONOTONIC` in nanoseconds since some moment.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    origin: Instant,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch {
            origin: Instant::now(),
        }
    }
}

impl Stopwatch {
    /// Nanoseconds since the stopwatch was made.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the time from `begin` to `end`. A negative interval gives `None`; with the source's
/// unsigned arithmetic it wraps around.
#[inline]
#[must_use]
pub fn interval(begin: u64, end: u64, wraps: bool) -> Option<u64> {
    if wraps {
        Some(end.wrapping_sub(begin))
    } else {
        end.checked_sub(begin)
    }
}

/// The memory of all buffers.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    skip_words: usize,
}

/// Room to round up in, and for the word past the end that [`Defect::Index`] touches.
const SPARE_BYTES: usize = 2 * LINE_BYTES;
/// Offset at which the C library's blocks begin: 16 bytes behind a line's begin, at best.
const UNALIGNED_WORDS: usize = 2;

impl Arena {
    /// Maps and touches memory for buffers of up to `bytes`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(bytes: u64, is_aligned: bool) -> Result<Arena, StudyError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Arena {
            mapping: Mapping::new(MapOptions {
                bytes: bytes.saturating_add(SPARE_BYTES),
                align: 4096,
                huge: HugePages::Default,
                prefault: true,
            })?,
            skip_words: if is_aligned { 0 } else { UNALIGNED_WORDS },
        })
    }

    /// The words of a buffer of `bytes`, and one more that is past its end.
    ///
    /// Shorter if the arena is.
    pub fn words(&mut self, bytes: u64) -> &[AtomicU64] {
        let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        let all = self.mapping.atomics();
        let end = words.saturating_add(self.skip_words + 1).min(all.len());
        &all[self.skip_words..end]
    }
}

/// A fresh mapping, as the C library makes one for each allocation this large.
///
/// # Errors
/// There is not enough memory.
pub fn fresh(bytes: u64) -> Result<Mapping, StudyError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(Mapping::new(MapOptions {
        bytes: bytes.saturating_add(SPARE_BYTES),
        align: 4096,
        huge: HugePages::Default,
        prefault: false,
    })?)
}

/// One timed run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its time, in nanoseconds or cycles as the experiment has it; none if the interval was
    /// negative.
    pub time: Option<u64>,
    /// Events that disturbed it.
    pub events: Events,
    /// The core that the writer ran on at its end.
    pub sender: Option<usize>,
    /// The core that the reader ran on at its end.
    pub receiver: Option<usize>,
}

/// Arguments of the writer: the source's record.
struct Record<'a> {
    experiment: u32,
    words: &'a [AtomicU64],
}

/// The core that a thread ran on, and whether it could be pinned as asked.
type Seen = (Option<usize>, io::Result<()>);

/// Keeps the calling thread on a core. Negative numbers are refused, as by the source's routine.
fn pin(core: i64) -> io::Result<()> {
    let core = usize::try_from(core).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    affinity::pin_current(core)
}

/// Writes each word, one after the other. Atomic accesses are neither left out nor joined.
#[inline]
pub fn write_all(words: &[AtomicU64]) {
    for word in words {
        word.store(CONSTANT, Ordering::Relaxed);
    }
}

/// Reads each word into a scratch variable that is used.
#[inline]
pub fn read_all(words: &[AtomicU64]) {
    for word in words {
        black_box(word.load(Ordering::Relaxed));
    }
}

/// Runs experiments 2 to 4.
#[derive(Debug)]
pub struct Exchanger {
    stopwatch: Stopwatch,
    before: Snapshot,
    after: Snapshot,
    start: Start,
    wraps: bool,
    maps_afresh: bool,
    /// A refused pinning is the effect to be shown.
    takes_refusal: bool,
}

impl Exchanger {
    /// Creates an exchanger that behaves as the options say.
    #[must_use]
    pub fn new(options: &CacheImpactOptions) -> Exchanger {
        Exchanger {
            stopwatch: Stopwatch::default(),
            before: Snapshot::spare(),
            after: Snapshot::spare(),
            start: options.start,
            wraps: options.has(Defect::Unsigned),
            maps_afresh: options.has(Defect::Cliff),
            takes_refusal: options.has(Defect::Pinning),
        }
    }

    /// Makes one run as published: everything from the buffer to the last join is timed.
    ///
    /// # Errors
    /// A thread cannot be started or pinned, or there is not enough memory.
    pub fn run(
        &mut self,
        experiment: u32,
        arena: &mut Arena,
        bytes: u64,
        places: Places,
    ) -> Result<Run, StudyError> {
        let stopwatch = self.stopwatch;
        super::start::begin(self.start, &mut self.before, || stopwatch.now_ns());
        let begin = self.stopwatch.now_ns();
        let seen = if self.maps_afresh && bytes > FRESH_ABOVE_BYTES {
            let mut mapping = fresh(bytes)?;
            let words = &mapping.atomics()[..words_of(bytes)];
            exchange(experiment, words, places)
        } else {
            let words = arena.words(bytes);
            let words = &words[..words_of(bytes).min(words.len())];
            exchange(experiment, words, places)
        };
        let end = self.stopwatch.now_ns();
        self.after.after();
        let [sender, receiver] = self.check(seen?, places)?;
        Ok(Run {
            time: interval(begin, end, self.wraps),
            events: self.before.until(&self.after),
            sender,
            receiver,
        })
    }

    /// The cores the threads ran on; an error if they should have run elsewhere.
    fn check(&self, seen: [Seen; 2], places: Places) -> Result<[Option<usize>; 2], StudyError> {
        let [sender, receiver] = seen;
        if !self.takes_refusal {
            let pinned = [(&sender.1, places.sender), (&receiver.1, places.receiver)];
            for (result, core) in pinned {
                if let Err(error) = result {
                    return Err(StudyError::Refused(hearth_sys::Refused::new(
                        "pin a thread to",
                        format!("core {core}"),
                        error,
                        "choose a core that is online and in this process's set",
                    )));
                }
            }
        }
        Ok([sender.0, receiver.0])
    }

    /// `repeats` runs between threads that exist already, are pinned, and wait. Timed is what lies
    /// between the writer's first store and the reader's last load, hand-over included.
    ///
    /// # Errors
    /// As for [`Exchanger::run`].
    pub fn run_ready(
        &mut self,
        arena: &mut Arena,
        bytes: u64,
        places: Places,
        repeats: u32,
    ) -> Result<Vec<Run>, StudyError> {
        let words = arena.words(bytes);
        let words = &words[..words_of(bytes).min(words.len())];
        let pair = Pair::new(words, self.stopwatch, repeats)?;
        let (runs, seen) = thread::scope(|scope| {
            let failed = |error| StudyError::Thread { error };
            let writer = Builder::new()
                .spawn_scoped(scope, || pair.write(places.sender))
                .map_err(failed)?;
            let reader = Builder::new().spawn_scoped(scope, || pair.read(places.receiver));
            let reader = match reader {
                Ok(reader) => reader,
                Err(error) => {
                    // The writer waits for its turns; it gets them all, and ends.
                    (0..repeats).for_each(|_| pair.turn.post());
                    return Err(failed(error));
                }
            };
            let mut runs = Vec::with_capacity(repeats as usize);
            for _ in 0..repeats {
                self.before.before();
                pair.turn.post();
                pair.done.wait();
                self.after.after();
                let stamps = [&pair.begin, &pair.end].map(|s| s.load(Ordering::Acquire));
                runs.push(Run {
                    time: interval(stamps[0], stamps[1], self.wraps),
                    events: self.before.until(&self.after),
                    ..Run::default()
                });
            }
            Ok((runs, [join(writer), join(reader)]))
        })?;
        let [sender, receiver] = self.check(seen, places)?;
        Ok(runs
            .into_iter()
            .map(|run| Run {
                sender,
                receiver,
                ..run
            })
            .collect())
    }
}

fn words_of(bytes: u64) -> usize {
    usize::try_from(bytes / 8).unwrap_or(usize::MAX)
}

/// The part of a run between the buffer's allocation and its release.
fn exchange(experiment: u32, words: &[AtomicU64], places: Places) -> Result<[Seen; 2], StudyError> {
    let mutex = Mutex::new(Box::new(Record { experiment, words }));
    let mutex = &mutex;
    let failed = |error| StudyError::Thread { error };
    thread::scope(|scope| {
        let writer = Builder::new()
            .spawn_scoped(scope, move || writer(scope, mutex, places))
            .map_err(failed)?;
        let (sender, reader) = join(writer);
        let receiver = join(reader.map_err(failed)?);
        Ok([sender, receiver])
    })
}

/// The first thread. Its last act is to hand over the thread to wait for next.
fn writer<'scope, 'env: 'scope, 'words: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    mutex: &'scope Mutex<Box<Record<'words>>>,
    places: Places,
) -> (Seen, io::Result<ScopedJoinHandle<'scope, Seen>>) {
    let pinned = pin(places.sender);
    let record = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    let reader = Builder::new().spawn_scoped(scope, move || reader(mutex, places));
    write_all(record.words);
    drop(record);
    ((affinity::current(), pinned), reader)
}

/// The second thread.
fn reader(mutex: &Mutex<Box<Record<'_>>>, places: Places) -> Seen {
    let pinned = pin(places.receiver);
    let record = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    black_box(record.experiment);
    read_all(record.words);
    drop(record);
    (affinity::current(), pinned)
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// State shared by two waiting threads.
struct Pair<'a> {
    words: &'a [AtomicU64],
    stopwatch: Stopwatch,
    repeats: u32,
    turn: Semaphore,
    written: Semaphore,
    done: Semaphore,
    /// The writer's stamp, written before `written` is posted.
    begin: AtomicU64,
    /// The reader's stamp, written before `done` is posted.
    end: AtomicU64,
}

impl<'a> Pair<'a> {
    fn new(
        words: &'a [AtomicU64],
        stopwatch: Stopwatch,
        repeats: u32,
    ) -> Result<Pair<'a>, StudyError> {
        Ok(Pair {
            words,
            stopwatch,
            repeats,
            turn: Semaphore::new(0)?,
            written: Semaphore::new(0)?,
            done: Semaphore::new(0)?,
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
        })
    }

    fn write(&self, core: i64) -> Seen {
        let pinned = pin(core);
        for _ in 0..self.repeats {
            self.turn.wait();
            // Release pairs with the acquire of the thread that `done` wakes.
            self.begin.store(self.stopwatch.now_ns(), Ordering::Release);
            write_all(self.words);
            self.written.post();
        }
        (affinity::current(), pinned)
    }

    fn read(&self, core: i64) -> Seen {
        let pinned = pin(core);
        for _ in 0..self.repeats {
            self.written.wait();
            read_all(self.words);
            self.end.store(self.stopwatch.now_ns(), Ordering::Release);
            self.done.post();
        }
        (affinity::current(), pinned)
    }
}
