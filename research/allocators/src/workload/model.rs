//! The source's synthetic load: one large block that stays, read and written over and over, and
//! many small ones after a [`Model`].
//!
//! The source leaves open whether its 100,000 requests are of each thread or of all, and whether a
//! thread waits between them. Both can be chosen; by default they are of all, and time is the
//! model's only: 64 threads that waited on four cores could not have ended in its five seconds. The
//! large block is the process's, and each thread goes over its part of it.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{Block, Counts, Report, room};
use crate::synthetic::{CYCLES_PER_US, Happening, Model, Random, Request, Units, plan, walk};

/// A thread's activity between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    Virtual,
    /// Sleeps for as long as the source's machine would take.
    Sleep,
    /// Spins for as long.
    Spin,
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Distributions of the requests.
    pub model: Model,
    /// Unit of the holding times.
    pub units: Units,
    /// Threads at a time.
    pub threads: usize,
    /// Small blocks.
    pub requests: usize,
    /// True if the number is for each thread instead of for all together.
    pub is_each: bool,
    /// The large block, from and to.
    pub large_bytes: (usize, usize),
    /// Passes over the large block, from and to.
    pub passes: (usize, usize),
    /// The activity between requests.
    pub wait: Wait,
    /// Seed of the random choices.
    pub seed: u64,
}

/// Runs it.
#[must_use]
pub fn run(load: Load) -> Report {
    let counts = Counts::default();
    let threads = load.threads.max(1);
    let mut random = Random::new(load.seed);
    let bytes = random.between(load.large_bytes.0, load.large_bytes.1);
    let passes = random.between(load.passes.0, load.passes.1);
    let each = if load.is_each {
        load.requests
    } else {
        load.requests / threads
    };
    let ready = Barrier::new(threads + 1);
    let mut begin = Instant::now();
    let large = Block::new(bytes);
    thread::scope(|scope| {
        for number in 0..threads {
            let (counts, ready, load) = (&counts, &ready, &load);
            // Parts of whole words, side by side.
            let part = bytes / threads / 8 * 8;
            let words = Part {
                start: large.start().wrapping_add(number * part).cast(),
                count: part / 8,
            };
            scope.spawn(move || {
                let mut random = Random::new(load.seed.wrapping_add(1 + number as u64));
                let requests = room::<Request>(each);
                plan(&load.model, load.units, &mut random, requests);
                let order = room::<u32>(each);
                let blocks = room::<usize>(each);
                ready.wait();
                words.go_over(passes);
                serve(load, requests, order, blocks);
                counts.add(each as u64, each as u64);
            });
        }
        begin = Instant::now();
        ready.wait();
    });
    let report = counts.report(begin);
    large.release();
    report
}

/// A thread's part of the large block.
struct Part {
    start: *mut u64,
    count: usize,
}

// SAFETY: parts do not overlap, and each has one thread.
unsafe impl Send for Part {}

impl Part {
    /// Writes all of it once, so that its pages are there, then reads and writes it over and over.
    fn go_over(self, passes: usize) {
        for pass in 0..=passes {
            for at in 0..self.count {
                // SAFETY: within this thread's part. Each access happens.
                unsafe {
                    let word = self.start.add(at);
                    let value = if pass == 0 { 0 } else { word.read_volatile() };
                    word.write_volatile(value.wrapping_add(1));
                }
            }
        }
    }
}

fn serve(load: &Load, requests: &[Request], order: &mut [u32], blocks: &mut [usize]) {
    let begin = Instant::now();
    walk(requests, order, |happening| match happening {
        Happening::Begins(at) => {
            let due = Duration::from_secs_f64(requests[at].begin / CYCLES_PER_US / 1e6);
            wait(load.wait, begin, due);
            let block = Block::new(requests[at].bytes as usize);
            block.fill(1);
            blocks[at] = block.start().expose_provenance();
        }
        Happening::Ends(at) => {
            // SAFETY: the block is of `malloc`, this thread's, and ends once.
            unsafe { libc::free(std::ptr::with_exposed_provenance_mut(blocks[at])) };
        }
    });
}

fn wait(wait: Wait, begin: Instant, due: Duration) {
    match wait {
        Wait::Virtual => {}
        Wait::Sleep => {
            if let Some(left) = due.checked_sub(begin.elapsed()) {
                thread::sleep(left);
            }
        }
        Wait::Spin => {
            while begin.elapsed() < due {
                std::hint::spin_loop();
            }
        }
    }
}
