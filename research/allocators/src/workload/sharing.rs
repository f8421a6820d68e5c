//! Threads that write small objects again and again. If two of them lie on one cache line, it goes
//! to and fro.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use super::{Block, Counts, Report};

/// Way in which threads come to share a line, if the allocator lets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Passive, cache-scratch: one thread asked for all first objects, which lie side by side. Each
    /// thread releases its own; an allocator that gives it back to the same thread keeps it there.
    Scratch,
    /// Active, cache-thrash: the allocator itself gives parts of one line to different threads.
    Thrash,
}

/// Parameters, in the order of the source's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The kind of sharing.
    pub kind: Kind,
    /// Threads at a time.
    pub threads: usize,
    /// Objects a thread, one after the other.
    pub iterations: usize,
    /// Bytes an object.
    pub bytes: usize,
    /// Writes to each byte, by all threads together.
    pub writes: usize,
}

/// Runs it.
#[must_use]
pub fn run(options: Sharing) -> Report {
    let counts = Counts::default();
    let first: Vec<Block> = match options.kind {
        Kind::Scratch => (0..options.threads)
            .map(|_| Block::new(options.bytes))
            .collect(),
        Kind::Thrash => vec![Block::NONE; options.threads],
    };
    let given = first.iter().filter(|block| block.is_some()).count();
    counts.add(given as u64, given as u64);
    let ready = Barrier::new(options.threads + 1);
    let mut begin = Instant::now();
    thread::scope(|scope| {
        for block in first {
            let (counts, ready, options) = (&counts, &ready, &options);
            scope.spawn(move || {
                ready.wait();
                block.release();
                work(options);
                counts.add(options.iterations as u64, options.iterations as u64);
            });
        }
        begin = Instant::now();
        ready.wait();
    });
    counts.report(begin)
}

fn work(options: &Sharing) {
    let writes = (options.writes / options.threads.max(1)).max(1);
    for _ in 0..options.iterations {
        let object = Block::new(options.bytes);
        for _ in 0..writes {
            for at in 0..options.bytes {
                let byte = object.start().wrapping_add(at);
                // SAFETY: within the object, which is this thread's. Each write happens.
                unsafe {
                    byte.write_volatile(at as u8);
                    let _ = byte.read_volatile();
                }
            }
        }
        object.release();
    }
}
