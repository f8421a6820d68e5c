//! Larson and Krishnan's server: a thread replaces random blocks of its own set, hands the set to a
//! thread that it starts, and ends. So blocks are released by another thread than asked for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Block, Counts, Report, room};
use crate::synthetic::Random;

/// Parameters, in the order of the source's arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Larson {
    /// Duration.
    pub seconds: f64,
    /// The smallest block.
    pub bytes_min: usize,
    /// The largest block.
    pub bytes_max: usize,
    /// Blocks a thread.
    pub blocks: usize,
    /// Replacements for each block before the set is passed to the next thread.
    pub rounds: usize,
    /// Seed of the random choices.
    pub seed: u64,
    /// Sets, and threads at a time.
    pub threads: usize,
}

struct State {
    options: Larson,
    counts: Counts,
    is_over: AtomicBool,
    ended: AtomicUsize,
}

/// Runs it. All blocks are there at the end: threads times blocks more are asked for than released.
#[must_use]
pub fn run(options: Larson) -> Report {
    let state: &'static State = Box::leak(Box::new(State {
        options,
        counts: Counts::default(),
        is_over: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
    }));
    let mut random = Random::new(options.seed);
    let mut sets = Vec::new();
    for _ in 0..options.threads {
        let set = room::<usize>(options.blocks);
        for place in set.iter_mut() {
            *place = fresh(&options, &mut random);
        }
        state.counts.add(options.blocks as u64, 0);
        sets.push(set);
    }
    let begin = Instant::now();
    for (number, set) in sets.into_iter().enumerate() {
        let random = Random::new(options.seed.wrapping_add(1 + number as u64));
        thread::spawn(move || serve(state, set, random));
    }
    thread::sleep(Duration::from_secs_f64(options.seconds.max(0.0)));
    state.is_over.store(true, Ordering::Relaxed);
    while state.ended.load(Ordering::Acquire) < options.threads {
        thread::sleep(Duration::from_millis(1));
    }
    state.counts.report(begin)
}

fn fresh(options: &Larson, random: &mut Random) -> usize {
    let block = Block::new(random.between(options.bytes_min, options.bytes_max));
    block.touch(1);
    block.start().expose_provenance()
}

fn serve(state: &'static State, set: &'static mut [usize], mut random: Random) {
    let options = &state.options;
    let mut done = 0;
    for _ in 0..options.rounds.max(1) {
        // Relaxed: says only that time is up.
        if state.is_over.load(Ordering::Relaxed) {
            break;
        }
        for _ in 0..set.len() {
            let place = &mut set[random.below(options.blocks)];
            // SAFETY: the block is of `malloc`; the set is this thread's.
            unsafe { libc::free(std::ptr::with_exposed_provenance_mut(*place)) };
            *place = fresh(options, &mut random);
        }
        done += set.len() as u64;
    }
    state.counts.add(done, done);
    if state.is_over.load(Ordering::Relaxed) {
        // Release: pairs with the acquire in `run`, which then reads the counts.
        state.ended.fetch_add(1, Ordering::Release);
    } else {
        thread::spawn(move || serve(state, set, random));
    }
}
