//! Noise: interruptions of a thread that only needs its core.
//!
//! A thread on each core reads the clock without pause. Where two readings are more than a
//! microsecond apart, something else had the core: an interrupt, the kernel, the hypervisor.

use hearth_sys::procfs::{self, Interrupts};
use hearth_sys::{Refused, System};

use crate::context::{Context, Deadline, Stop, start};

/// Buckets of a gap histogram: from 1, 2, 4, … microseconds, the last without an end.
pub const BUCKETS: usize = 16;
/// The shortest gap that counts, in nanoseconds.
pub const GAP_MIN_NS: f64 = 1000.0;

/// The noise on a core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreNoise {
    /// The core.
    pub core: usize,
    /// Duration of the observation, in seconds.
    pub seconds: f64,
    /// Gaps by length: bucket b holds those from 2^b microseconds to twice that.
    pub gaps: [u64; BUCKETS],
    /// The longest gap, in nanoseconds.
    pub longest_ns: f64,
    /// The sum of all gaps, in nanoseconds.
    pub lost_ns: f64,
    /// Interrupts of all kinds a second; None where the system does not tell.
    pub interrupts_per_s: Option<f64>,
    /// Share of time that the hypervisor gave to others, 0 to 1; None where the system does not
    /// tell.
    pub steal_share: Option<f64>,
}

/// The bucket of a gap, in nanoseconds; None below [`GAP_MIN_NS`].
pub fn bucket(gap_ns: f64) -> Option<usize> {
    (gap_ns >= GAP_MIN_NS).then(|| {
        let octave = (gap_ns / GAP_MIN_NS).log2().floor();
        (octave as usize).min(BUCKETS - 1)
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    seconds: f64,
    gaps: [u64; BUCKETS],
    longest_ns: f64,
    lost_ns: f64,
}

/// Cores being observed.
#[derive(Debug)]
pub struct Listener {
    cores: Vec<usize>,
    gaps: Vec<Gaps>,
    /// Interrupts, steal and total kernel ticks of each core during the observation.
    counts: Vec<Option<(u64, u64, u64)>>,
}

impl Listener {
    /// Cores without observations.
    pub fn new(cores: &[usize]) -> Listener {
        Listener {
            cores: cores.to_vec(),
            gaps: vec![Gaps::default(); cores.len()],
            counts: vec![None; cores.len()],
        }
    }

    /// Observes all cores at once for this many seconds.
    ///
    /// # Errors
    /// If cancelled, or if a core cannot be pinned to; other cores' observations are kept.
    pub fn visit(&mut self, context: &Context<'_>, seconds: f64) -> Result<(), Stop> {
        context.check()?;
        let end = Deadline::after(context.system, seconds);
        let (system, clock, cancel) = (context.system, context.clock, context.cancel);
        let before = snapshot(system);
        let heard: Vec<Result<Gaps, Refused>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .cores
                .iter()
                .map(|&core| {
                    start(scope, move || {
                        let _pinned = system.pin(core)?;
                        Ok(listen(&clock, &end, cancel))
                    })
                })
                .collect();
            let join = |thread: Result<std::thread::ScopedJoinHandle<'_, _>, Refused>| {
                thread?.join().expect("a listener does not panic")
            };
            threads.into_iter().map(join).collect()
        });
        let after = snapshot(system);
        let mut refused = None;
        for (index, heard) in heard.into_iter().enumerate() {
            match heard {
                Ok(heard) => {
                    self.add(index, heard, &before, &after);
                }
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(()), |refused| Err(refused.into()))
    }

    fn add(&mut self, index: usize, heard: Gaps, before: &Snapshot, after: &Snapshot) {
        let sum = &mut self.gaps[index];
        sum.seconds += heard.seconds;
        sum.lost_ns += heard.lost_ns;
        sum.longest_ns = sum.longest_ns.max(heard.longest_ns);
        for (total, more) in sum.gaps.iter_mut().zip(heard.gaps) {
            *total += more;
        }
        let core = self.cores[index];
        if let (Some(before), Some(after)) = (of(before, core), of(after, core)) {
            let counts = self.counts[index].get_or_insert((0, 0, 0));
            counts.0 += after.0.saturating_sub(before.0);
            counts.1 += after.1.saturating_sub(before.1);
            counts.2 += after.2.saturating_sub(before.2);
        }
    }

    /// The noise of each observed core.
    pub fn sum_up(&self) -> Vec<CoreNoise> {
        let heard = self.cores.iter().zip(&self.gaps).zip(&self.counts);
        heard
            .filter(|((_, gaps), _)| gaps.seconds > 0.0)
            .map(|((&core, gaps), counts)| CoreNoise {
                core,
                seconds: gaps.seconds,
                gaps: gaps.gaps,
                longest_ns: gaps.longest_ns,
                lost_ns: gaps.lost_ns,
                interrupts_per_s: counts.map(|(count, _, _)| count as f64 / gaps.seconds),
                steal_share: counts.map(|(_, steal, total)| steal as f64 / total.max(1) as f64),
            })
            .collect()
    }
}

struct Snapshot {
    interrupts: Interrupts,
    stat: String,
}

fn snapshot(system: &dyn System) -> Snapshot {
    Snapshot {
        interrupts: Interrupts::snapshot(system),
        stat: system.read("/proc/stat").unwrap_or_default(),
    }
}

/// Interrupts, steal and all ticks of a core; None where a file does not tell.
fn of(snapshot: &Snapshot, core: usize) -> Option<(u64, u64, u64)> {
    let interrupts = snapshot.interrupts.by_core();
    let (_, count) = interrupts.iter().find(|(of, _)| *of == core)?;
    let times = procfs::parse_stat(&snapshot.stat);
    let times = times.iter().find(|times| times.core == core)?;
    Some((*count, times.steal, times.total()))
}

fn listen(
    clock: &hearth_sys::clock::Clock,
    end: &Deadline<'_>,
    cancel: &std::sync::atomic::AtomicBool,
) -> Gaps {
    let mut gaps = Gaps::default();
    let shortest = clock.ticks_of(GAP_MIN_NS);
    let begin = clock.ticks();
    let mut last = begin;
    loop {
        // The end is looked up rarely, and between two readings that are not compared.
        for _ in 0..10_000 {
            let now = clock.ticks();
            let between = now.saturating_sub(last);
            if between >= shortest {
                let ns = clock.ns(between);
                if let Some(bucket) = bucket(ns) {
                    gaps.gaps[bucket] += 1;
                }
                gaps.longest_ns = gaps.longest_ns.max(ns);
                gaps.lost_ns += ns;
            }
            last = now;
        }
        if end.is_over() || cancel.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        last = clock.ticks();
    }
    gaps.seconds = clock.ns(last.saturating_sub(begin)) / 1e9;
    gaps
}
