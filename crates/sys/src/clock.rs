//! Clocks: the finest that the machine has.
//!
//! On x86-64 the time stamp counter, once it is shown to be constant: the kernel's flags say that
//! it neither stops nor changes its rate, and a check against the system's clock agrees. Anywhere
//! else the system's monotonic clock, whose ticks are nanoseconds.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::refused::Refused;
use crate::system::System;
pub use crate::time::{
    monotonic_ns, other_thread_ns, process_ns, steady_coarse_ns, steady_ns, thread_ns,
};

/// Unit of a clock's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The time stamp counter of x86-64, at a constant rate.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW` by way of the system.
    Monotonic,
}

/// A calibrated clock. Stateless and cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    ns_per_tick: f64,
    /// The relative standard error of `ns_per_tick`.
    error: f64,
}

/// Offset between the clocks of two cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// The second core's clock minus the first's, in nanoseconds: the midpoint of the possible
    /// range.
    pub ns: f64,
    /// The true offset is within `ns ± uncertainty_ns`: half of the fastest round trip.
    pub uncertainty_ns: f64,
}

impl Offset {
    /// True if the two clocks may show the same, as far as the exchange can resolve.
    pub fn is_synchronous(&self) -> bool {
        self.ns.abs() <= self.uncertainty_ns
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

    /// Reads the counter out of order: possibly before earlier instructions end.
    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 has the instruction, and Linux lets user code run it.
        unsafe { _rdtsc() }
    }

    /// Reads the counter after everything before has ended and before anything after begins.
    #[inline(always)]
    pub(super) fn read_ordered() -> u64 {
        // SAFETY: as above; fences take nothing.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    /// Reads the counter after a serialising instruction.
    #[inline(always)]
    pub(super) fn read_serialised() -> u64 {
        #[allow(
            unused_unsafe,
            reason = "newer compilers hold the instruction for safe"
        )]
        // SAFETY: every x86-64 has the instruction and its leaf 0; it only writes registers.
        let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
        std::hint::black_box(leaf.eax);
        read()
    }

    /// Reads the counter and the core in one step, after everything before has ended.
    #[inline(always)]
    pub(super) fn read_with_core() -> (u64, u32) {
        let mut auxiliary = 0u32;
        // SAFETY: only called where the kernel lists `rdtscp`; the word is written.
        let ticks = unsafe { __rdtscp(&mut auxiliary) };
        // Linux keeps the core in the low 12 bits, the node above them.
        (ticks, auxiliary & 0xfff)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) fn read() -> u64 {
        super::monotonic_ns()
    }
    pub(super) fn read_ordered() -> u64 {
        super::monotonic_ns()
    }
    pub(super) fn read_serialised() -> u64 {
        super::monotonic_ns()
    }
    pub(super) fn read_with_core() -> (u64, u32) {
        let core = crate::affinity::current().unwrap_or(0);
        (super::monotonic_ns(), core as u32)
    }
}

/// True if the kernel's flags promise a counter at a constant rate that never stops.
pub fn promises_constant_tsc(system: &dyn System) -> bool {
    // Miri does not know the instruction that reads the counter.
    if !cfg!(target_arch = "x86_64") || cfg!(miri) {
        return false;
    }
    let Ok(text) = system.read("/proc/cpuinfo") else {
        return false;
    };
    let flags = text.lines().find(|line| line.starts_with("flags"));
    let has = |flag: &str| flags.is_some_and(|f| f.split_whitespace().any(|word| word == flag));
    has("constant_tsc") && has("nonstop_tsc") && has("rdtscp")
}

/// The wall's clock, in nanoseconds since 1970. It may be set at any time.
#[must_use]
pub fn wall_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// A clock whose rate is found afterwards, from two moments read by it and by the system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps(Source);

/// One moment by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// By the [`Stamps`].
    pub ticks: u64,
    /// By [`monotonic_ns`].
    pub ns: u64,
}

impl Stamps {
    /// The time stamp counter where it is promised to be constant, or else the system's clock.
    pub fn here(system: &dyn System) -> Stamps {
        match promises_constant_tsc(system) {
            true => Stamps(Source::Tsc),
            false => Stamps(Source::Monotonic),
        }
    }

    /// Unit of the ticks.
    pub fn source(self) -> Source {
        self.0
    }

    /// Now, in ticks; the processor may reorder the reading.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        match self.0 {
            Source::Tsc => counter::read(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    /// Now, by both clocks.
    pub fn moment(self) -> Moment {
        match self.0 {
            Source::Tsc => {
                let (ns, ticks) = both();
                Moment { ticks, ns }
            }
            Source::Monotonic => {
                let ns = monotonic_ns();
                Moment { ticks: ns, ns }
            }
        }
    }
}

impl Clock {
    /// The system's clock: slower to read, correct everywhere.
    pub fn monotonic() -> Clock {
        Clock {
            source: Source::Monotonic,
            ns_per_tick: 1.0,
            error: 0.0,
        }
    }

    /// Calibrates the best clock: the counter if it is promised to be constant and proves to be, or
    /// else the system's. Takes about `ms` milliseconds; 20 give an error of some parts in a
    /// million.
    pub fn calibrate(system: &dyn System, ms: u64) -> Clock {
        if promises_constant_tsc(system) {
            Clock::calibrate_tsc(ms).unwrap_or_else(Clock::monotonic)
        } else {
            Clock::monotonic()
        }
    }

    /// Four stretches; a counter whose rates differ by more than 0.1 % is not constant.
    fn calibrate_tsc(ms: u64) -> Option<Clock> {
        const STRETCHES: usize = 4;
        let stretch_ns = (ms.max(4) * 1_000_000) / STRETCHES as u64;
        let mut rates = Vec::new();
        let mut begin = both();
        for _ in 0..STRETCHES {
            std::thread::sleep(std::time::Duration::from_nanos(stretch_ns));
            let end = both();
            let ticks = end.1.checked_sub(begin.1).filter(|&ticks| ticks > 0)?;
            rates.push((end.0 - begin.0) as f64 / ticks as f64);
            begin = end;
        }
        let mean = rates.iter().sum::<f64>() / STRETCHES as f64;
        let spread = rates.iter().map(|r| (r / mean - 1.0).powi(2)).sum::<f64>();
        let deviation = (spread / (STRETCHES - 1) as f64).sqrt();
        (deviation < 1e-3).then_some(Clock {
            source: Source::Tsc,
            ns_per_tick: mean,
            error: deviation / (STRETCHES as f64).sqrt(),
        })
    }

    /// Unit of the ticks.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Nanoseconds per tick.
    pub fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }

    /// The relative standard error of the rate: 1e-6 is a part in a million.
    pub fn relative_error(&self) -> f64 {
        self.error
    }

    /// Now, in ticks; the processor may reorder the reading.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        match self.source {
            Source::Tsc => counter::read(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    /// Now, in ticks, after everything before and before everything after.
    #[inline(always)]
    pub fn ticks_ordered(&self) -> u64 {
        match self.source {
            Source::Tsc => counter::read_ordered(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    /// Now, in ticks, after the processor's serialising instruction (CPUID), as older programs
    /// time. In a virtual machine the hypervisor emulates that instruction, which takes
    /// microseconds.
    #[inline(always)]
    pub fn ticks_serialised(&self) -> u64 {
        match self.source {
            Source::Tsc => counter::read_serialised(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    /// Now, after everything before, with the core that read it.
    #[inline(always)]
    pub fn ticks_with_core(&self) -> (u64, u32) {
        match self.source {
            Source::Tsc => counter::read_with_core(),
            Source::Monotonic => {
                let core = crate::affinity::current().unwrap_or(0);
                (monotonic_ns(), core as u32)
            }
        }
    }

    /// Converts ticks to nanoseconds.
    #[inline]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Converts nanoseconds to ticks, rounded up.
    pub fn ticks_of(&self, ns: f64) -> u64 {
        (ns / self.ns_per_tick).ceil() as u64
    }

    /// Measures how far the clock of core `second` is ahead of that of `first`, by `rounds`
    /// exchanges of a stamp over a cache line; the fastest exchange bounds the offset best.
    ///
    /// # Errors
    /// The thread cannot be pinned to one of the cores.
    pub fn offset(
        &self,
        system: &dyn System,
        first: usize,
        second: usize,
        rounds: u32,
    ) -> Result<Offset, Refused> {
        let asked = AtomicU64::new(0);
        let answer = AtomicU64::new(0);
        let _pinned = system.pin(first)?;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| -> Result<(), Refused> {
                let pinned = system.pin(second);
                for round in 1..=u64::from(rounds) {
                    // Acquire pairs with the asker's release: the stamp is read after the request.
                    wait_until(|| asked.load(Ordering::Acquire) == round);
                    // Release pairs with the asker's acquire. Zero means no answer yet.
                    answer.store(self.ticks_ordered().max(1), Ordering::Release);
                }
                pinned.map(drop)
            });
            let mut best: Option<(u64, i128)> = None;
            for round in 1..=u64::from(rounds) {
                let begin = self.ticks_ordered();
                asked.store(round, Ordering::Release);
                wait_until(|| answer.load(Ordering::Acquire) != 0);
                let end = self.ticks_ordered();
                let stamp = answer.swap(0, Ordering::Relaxed);
                let width = end.saturating_sub(begin);
                // Twice the offset, so that the midpoint stays whole.
                let twice = 2 * i128::from(stamp) - i128::from(begin) - i128::from(end);
                if best.is_none_or(|(least, _)| width < least) {
                    best = Some((width, twice));
                }
            }
            other.join().expect("the other side does not panic")?;
            let (width, twice) = best.unwrap_or((0, 0));
            Ok(Offset {
                ns: twice as f64 / 2.0 * self.ns_per_tick,
                uncertainty_ns: self.ns(width) / 2.0,
            })
        })
    }
}

/// Spins, and yields after a while: the other side may be on this very core.
fn wait_until(condition: impl Fn() -> bool) {
    let mut spins = 0u32;
    while !condition() {
        spins += 1;
        if spins.is_multiple_of(1 << 12) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Reads the system's clock and the counter together: of several readings the closest pair.
fn both() -> (u64, u64) {
    (0..8)
        .map(|_| {
            let before = counter::read_ordered();
            let ns = monotonic_ns();
            let after = counter::read_ordered();
            (
                after.wrapping_sub(before),
                (ns, before / 2 + after / 2 + (before & after & 1)),
            )
        })
        .min_by_key(|(width, _)| *width)
        .map_or((0, 0), |(_, pair)| pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_more() {
        let this = std::process::id();
        let before = process_ns(this).unwrap();
        let own = thread_ns();
        while thread_ns() < own + 1_000_000 {}
        assert!(process_ns(this).unwrap() >= before + 1_000_000);
    }

    #[test]
    fn of_no_process_nothing_is_known() {
        assert_eq!(process_ns(u32::MAX), None);
        assert_eq!(process_ns((1 << 28) - 1), None);
    }
}
