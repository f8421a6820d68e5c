//! Context of every measurement: the system, a clock, randomness, memory, and cancellation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hearth_sys::clock::Clock;
use hearth_sys::mapping::{LINE_WORDS, MapOptions, Mapping};
use hearth_sys::{Refused, System};

use crate::disturbance::{Batch, Discards, Disturbed, Outcome, Watch, reading_ns};
use crate::statistics::{Measured, Round, across_rounds};

/// Reason why a part of a probe ended without a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The caller raised the flag.
    Cancelled,
    /// The system refused an operation.
    Refused(Refused),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        Stop::Refused(refused)
    }
}

/// Reason why there is no result at all.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeError {
    /// The caller raised the flag.
    Cancelled,
    /// No core can be measured.
    NoCore(Refused),
}

impl std::fmt::Display for ProbeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProbeError::Cancelled => f.write_str("the probe was cancelled; nothing is recorded"),
            ProbeError::NoCore(refused) => write!(f, "no core can be measured: {refused}"),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Context of every measurement.
pub struct Context<'a> {
    /// The machine.
    pub system: &'a dyn System,
    /// Its clock.
    pub clock: Clock,
    /// Cost of two ordered readings of the clock, in nanoseconds.
    pub reading_ns: f64,
    /// Set by the caller to end the probe.
    pub cancel: &'a AtomicBool,
    /// Source of all randomness.
    pub random: fastrand::Rng,
    /// Samples discarded so far, by all measurements.
    pub discards: Discards,
    /// Measurements that had to use disturbed samples.
    pub disturbed: u32,
    /// End of the whole probe, finished or not; None for no limit.
    pub end: Option<Deadline<'a>>,
    /// Large memory that outlives a visit.
    pub pool: Pool,
}

impl<'a> Context<'a> {
    /// Calibrates the clock, which takes some milliseconds.
    pub fn new(system: &'a dyn System, seed: u64, cancel: &'a AtomicBool) -> Context<'a> {
        let clock = Clock::calibrate(system, 40);
        Context {
            system,
            clock,
            reading_ns: reading_ns(&clock),
            cancel,
            random: fastrand::Rng::with_seed(seed),
            discards: Discards::default(),
            disturbed: 0,
            end: None,
            pool: Pool::default(),
        }
    }

    /// Whether the time of all measurements together is over.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end.is_over())
    }

    /// Stops if the caller cancelled.
    pub fn check(&self) -> Result<(), Stop> {
        // Relaxed: the flag says nothing about other memory.
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Stop::Cancelled);
        }
        Ok(())
    }

    /// Takes windows of samples for about `seconds`, at least one, and folds them into the round.
    /// The closure determines the length of a window, some tens of milliseconds.
    pub fn windows(
        &mut self,
        cores: &[usize],
        seconds: f64,
        mut window: impl FnMut(&mut Context<'a>) -> Result<Batch, Stop>,
    ) -> Result<Option<Round>, Stop> {
        let end = Deadline::after(self.system, seconds);
        let mut all = Batch::default();
        loop {
            self.check()?;
            let watch = Watch::begin(self.system, cores);
            let batch = window(self)?;
            let disturbed = watch.end();
            all.add_window(batch, disturbed);
            if end.is_over() {
                break;
            }
        }
        Ok(self.finish(all))
    }

    /// Folds a batch into a round, and records its discarded samples.
    pub fn finish(&mut self, batch: Batch) -> Option<Round> {
        let Outcome {
            round,
            discards,
            is_disturbed,
        } = batch.finish()?;
        self.discards.add(&discards);
        self.disturbed += u32::from(is_disturbed);
        Some(round)
    }

    /// Runs a closure under a [`Watch`], for callers that take their own windows.
    pub fn watched<T>(
        &mut self,
        cores: &[usize],
        action: impl FnOnce(&mut Context<'a>) -> Result<T, Stop>,
    ) -> Result<(T, Disturbed), Stop> {
        self.check()?;
        let watch = Watch::begin(self.system, cores);
        let result = action(self)?;
        Ok((result, watch.end()))
    }
}

/// A deadline on the system's clock.
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    system: &'a dyn System,
    end_ns: u64,
}

impl<'a> Deadline<'a> {
    /// A deadline this many seconds from now.
    pub fn after(system: &'a dyn System, seconds: f64) -> Deadline<'a> {
        let ns = (seconds.max(0.0) * 1e9) as u64;
        Deadline {
            system,
            end_ns: system.now_ns().saturating_add(ns),
        }
    }

    /// Whether it has passed.
    pub fn is_over(&self) -> bool {
        self.system.now_ns() >= self.end_ns
    }

    /// Seconds left, 0 when it has passed.
    pub fn left(&self) -> f64 {
        self.end_ns.saturating_sub(self.system.now_ns()) as f64 / 1e9
    }
}

/// Rounds of one figure, combined at the end.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Vec<Round>);

impl Rounds {
    /// Adds a round, if it has a result.
    pub fn add(&mut self, round: Option<Round>) {
        self.0.extend(round);
    }

    /// The rounds so far.
    pub fn get(&self) -> &[Round] {
        &self.0
    }

    /// The figure; None if no round had a result.
    pub fn sum_up(&self) -> Option<Measured> {
        across_rounds(&self.0)
    }
}

/// Large memory, a piece for each core, kept from visit to visit: fresh pages cost time, above all
/// in virtual machines, whose hypervisor has to find them too.
#[derive(Debug, Default)]
pub struct Pool(Mutex<BTreeMap<usize, Mapping>>);

impl Pool {
    /// Takes the core's piece if it is large enough, or else a new one that the calling thread,
    /// pinned to that core, touches first. Its contents are arbitrary.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn take(&self, core: usize, bytes: usize) -> Result<Mapping, Refused> {
        let kept = self.pieces().remove(&core);
        match kept.filter(|kept| kept.bytes() >= bytes) {
            Some(kept) => Ok(kept),
            None => Mapping::new(MapOptions::huge(bytes)),
        }
    }

    /// Puts a piece back for later use.
    pub fn give(&self, core: usize, piece: Mapping) {
        self.pieces().insert(core, piece);
    }

    fn pieces(&self) -> MutexGuard<'_, BTreeMap<usize, Mapping>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A barrier where threads wait for each other by spinning.
#[derive(Debug, Default)]
pub struct Gate {
    arrived: AtomicU32,
    is_abandoned: AtomicBool,
}

impl Gate {
    /// Waits until `parties` threads have come here as often as this one.
    #[inline]
    pub fn pass(&self, parties: u32) {
        // Release publishes writes before the gate; acquire below takes them.
        let ticket = self.arrived.fetch_add(1, Ordering::AcqRel);
        let target = (ticket / parties + 1) * parties;
        spin_until(|| {
            self.arrived.load(Ordering::Acquire).wrapping_sub(target) as i32 >= 0
                // Acquire pairs with `abandon`: threads that pass see the reason.
                || self.is_abandoned.load(Ordering::Acquire)
        });
    }

    /// Opens the gate for good, because a thread will never come.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }
}

/// Looks before a spinning thread lets others run: some ten microseconds. A look takes a debug
/// build much longer.
pub(crate) const LOOKS: u32 = if cfg!(debug_assertions) {
    1 << 10
} else {
    1 << 14
};

/// Spins, and lets others run after some ten microseconds: the other thread may have lost its core,
/// or share this one. By then the sample is lost anyway.
#[inline]
pub fn spin_until(condition: impl Fn() -> bool) {
    loop {
        for _ in 0..LOOKS {
            if condition() {
                return;
            }
        }
        std::thread::yield_now();
    }
}

/// Runs two halves at once, each pinned to its core, and returns the first one's result.
///
/// # Errors
/// If one of the cores cannot be pinned to, or a thread cannot start; then neither half runs.
pub fn together<R>(
    system: &dyn System,
    cores: [usize; 2],
    first: impl FnOnce() -> R,
    second: impl FnOnce() + Send,
) -> Result<R, Stop> {
    const WAITING: u32 = 0;
    const READY: u32 = 1;
    const REFUSED: u32 = 2;
    let _pinned = system.pin(cores[0])?;
    let state = AtomicU32::new(WAITING);
    std::thread::scope(|scope| {
        let work = || match system.pin(cores[1]) {
            Ok(_pinned) => {
                state.store(READY, Ordering::Release);
                second();
                Ok(())
            }
            Err(refused) => {
                state.store(REFUSED, Ordering::Release);
                Err(refused)
            }
        };
        let other = start(scope, work)?;
        spin_until(|| state.load(Ordering::Acquire) != WAITING);
        let result = (state.load(Ordering::Acquire) == READY).then(first);
        match (other.join(), result) {
            (Ok(Ok(())), Some(result)) => Ok(result),
            (Ok(Err(refused)), _) => Err(Stop::Refused(refused)),
            (Err(panic), _) => std::panic::resume_unwind(panic),
            (Ok(Ok(())), None) => unreachable!("a half that was ready has run"),
        }
    })
}

/// Starts a thread, or reports that the system has no room for one.
///
/// # Errors
/// If the limit of threads is reached.
pub fn start<'scope, R: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, R>, Refused> {
    let thread = std::thread::Builder::new();
    thread.spawn_scoped(scope, work).map_err(|error| {
        let next = "raise the limit `ulimit -u`, or that of the container's processes";
        Refused::new("start", "a thread", &error, next)
    })
}

/// Lines of memory to draw from at random: enough of them, on enough pages, that every slice of a
/// shared cache holds some. A line keeps its latency as long as it lives.
pub struct Lines {
    memory: Mapping,
}

/// Memory that lines are drawn from, in bytes.
pub const LINES_BYTES: usize = 32 << 20;

impl Lines {
    /// Maps the memory. Large pages where available, so that chains of lines measure caches rather
    /// than address translation.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new() -> Result<Lines, Refused> {
        Ok(Lines {
            memory: Mapping::new(MapOptions::huge(LINES_BYTES))?,
        })
    }

    /// The memory as words.
    pub fn words(&mut self) -> &[std::sync::atomic::AtomicU64] {
        self.memory.atomics()
    }

    /// The first words of `count` different lines, in random order.
    pub fn draw(count: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        let lines = LINES_BYTES / 8 / LINE_WORDS;
        let mut seen = std::collections::HashSet::new();
        let mut drawn = Vec::with_capacity(count.min(lines));
        while drawn.len() < count.min(lines) {
            let line = random.usize(..lines);
            if seen.insert(line) {
                drawn.push(line * LINE_WORDS);
            }
        }
        drawn
    }
}
