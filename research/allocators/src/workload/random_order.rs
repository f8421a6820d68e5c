//! Blocks of random sizes, mostly small, released in random order: a stand-in for MicroQuill's
//! shbench, which may not be passed on. Of its 10,000,000 blocks with 4 threads the source counts
//! 2,502,057 requests with a mean of 130 bytes and a largest of 20,000; so it is here.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use super::{Block, Counts, Report};
use crate::synthetic::Random;

/// Blocks that a thread has at a time.
const LIVE: usize = 1_000;

/// Parameters, in the order of the source's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomOrder {
    /// Requests times threads.
    pub blocks: usize,
    /// Threads at a time.
    pub threads: usize,
    /// Seed of the random choices.
    pub seed: u64,
}

fn size(random: &mut Random) -> usize {
    match random.below(1_000) {
        0..=2 => random.between(1_000, 20_000),
        3..=49 => random.between(100, 2_000),
        _ => random.between(1, 100),
    }
}

/// Runs it.
#[must_use]
pub fn run(options: RandomOrder) -> Report {
    let counts = Counts::default();
    let threads = options.threads.max(1);
    let each = options.blocks / threads / threads;
    let ready = Barrier::new(threads + 1);
    let mut begin = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let (counts, ready) = (&counts, &ready);
            scope.spawn(move || {
                let mut random = Random::new(options.seed.wrapping_add(number as u64));
                let mut blocks = [Block::NONE; LIVE];
                ready.wait();
                for _ in 0..each {
                    let place = &mut blocks[random.below(LIVE)];
                    place.release();
                    *place = Block::new(size(&mut random));
                    place.touch(1);
                }
                blocks.into_iter().for_each(Block::release);
                counts.add(each as u64, each as u64);
            });
        }
        begin = Instant::now();
        ready.wait();
    });
    counts.report(begin)
}
