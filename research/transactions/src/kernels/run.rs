//! One run by some threads, of a kernel to its end or of the bank for a while.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_stm::{Algorithm, thread_counts};
use hearth_sys::{Linux, System as _};

use super::{Bank, Kernel, Random};

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// Time from the first thread's begin to the last one's end, the end of their traces included.
    pub seconds: f64,
    /// Transactions that took effect.
    pub commits: u64,
    /// Attempts that met a conflict.
    pub conflicts: u64,
}

impl Ran {
    /// Transactions a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.commits as f64 / self.seconds
    }

    /// Conflicts a transaction.
    #[must_use]
    pub fn aborts(&self) -> f64 {
        self.conflicts as f64 / self.commits.max(1) as f64
    }
}

/// Runs a kernel that was made for the algorithm `A` and for so many threads, each on a core of its
/// own if there are as many.
///
/// # Panics
/// A thread of the kernel panics.
pub fn run<A: Algorithm>(kernel: &dyn Kernel, threads: usize) -> Ran {
    let cores = Linux.allowed().unwrap_or_default();
    let begin = Barrier::new(threads + 1);
    let mut started = Instant::now();
    let counts = thread::scope(|scope| {
        let worker = |number: usize| {
            let core = cores.get(number % cores.len().max(1)).copied();
            let begin = &begin;
            scope.spawn(move || {
                let _pinned = core.and_then(|core| Linux.pin(core).ok());
                begin.wait();
                kernel.work(number);
                thread_counts::<A>()
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        begin.wait();
        started = Instant::now();
        let counts = workers.into_iter().map(|it| it.join().expect("it works"));
        counts.fold((0, 0), |sum, it| (sum.0 + it.commits, sum.1 + it.conflicts))
    });
    Ran {
        seconds: started.elapsed().as_secs_f64(),
        commits: counts.0,
        conflicts: counts.1,
    }
}

/// Transactions between two looks at the end.
const STRIDE: u64 = 64;

/// Lets threads use a bank for a while; counts transactions within it.
///
/// # Panics
/// A thread panics.
pub fn run_for<A: Algorithm>(bank: &Bank<A>, threads: usize, duration: Duration, seed: u64) -> Ran {
    let cores = Linux.allowed().unwrap_or_default();
    let (begin, end) = (Barrier::new(threads + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let worker = |number: usize| {
            let core = cores.get(number % cores.len().max(1)).copied();
            let (begin, end) = (&begin, &end);
            scope.spawn(move || {
                let _pinned = core.and_then(|core| Linux.pin(core).ok());
                let mut random = Random::new(seed * 1000 + number as u64);
                // Descriptors, files and compressors are there before the clock runs.
                for _ in 0..STRIDE {
                    bank.transaction(&mut random);
                }
                let earlier = thread_counts::<A>();
                begin.wait();
                while !end.load(Ordering::Relaxed) {
                    for _ in 0..STRIDE {
                        bank.transaction(&mut random);
                    }
                }
                let counts = thread_counts::<A>();
                (
                    counts.commits - earlier.commits,
                    counts.conflicts - earlier.conflicts,
                )
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        begin.wait();
        let started = Instant::now();
        thread::sleep(duration);
        end.store(true, Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        let counts = workers.into_iter().map(|it| it.join().expect("it works"));
        let (commits, conflicts) = counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        Ran {
            seconds,
            commits,
            conflicts,
        }
    })
}
