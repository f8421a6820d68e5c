//! Bandwidth of the memory system, for one thread and for all.
//!
//! Plain loops and copies over buffers larger than the caches: the bandwidth of programs, not of
//! special instructions. Copies count the bytes copied once.

use hearth_sys::procfs;

use crate::context::{Context, Deadline, Gate, Rounds, Stop, start};
use crate::disturbance::{Batch, Before};
use crate::options::Mode;
use crate::statistics::Measured;

/// Operation on the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Added up.
    Read,
    /// Set to a value.
    Write,
    /// Copied from one half of the buffer to the other.
    Copy,
}

impl Stream {
    /// All three.
    pub const ALL: [Stream; 3] = [Stream::Read, Stream::Write, Stream::Copy];
}

/// A bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    /// The operation.
    pub stream: Stream,
    /// The cores that run it at once.
    pub cores: Vec<usize>,
    /// The buffer of each, in bytes.
    pub bytes: usize,
    /// Bytes a nanosecond (10⁹ bytes a second), of all threads together.
    pub bytes_per_ns: Measured,
}

/// A bandwidth being measured.
#[derive(Debug)]
pub struct Flow {
    stream: Stream,
    cores: Vec<usize>,
    bytes: usize,
    rounds: Rounds,
}

/// Passes over the buffer in one sample: several threads begin together, and the first to end would
/// leave the others more than their share.
const PASSES: usize = 2;

/// Most by which an interval of a bandwidth exceeds its value.
const FEW_ROUNDS_FACTOR: f64 = 10.0;

impl Flow {
    /// A bandwidth without samples. The buffers of all threads together take at most a quarter of
    /// the free memory.
    pub fn new(
        system: &dyn hearth_sys::System,
        mode: Mode,
        stream: Stream,
        cores: Vec<usize>,
    ) -> Flow {
        let free = procfs::available_bytes(system).map_or(usize::MAX, |bytes| bytes as usize);
        let each = free / 4 / cores.len().max(1);
        Flow {
            stream,
            bytes: mode.stream_bytes().min(each).max(1 << 20) & !0xfff,
            cores,
            rounds: Rounds::default(),
        }
    }

    /// Measures for about `seconds`, at least one sample.
    ///
    /// # Errors
    /// Cancelled, a core cannot be pinned to, or there is no memory.
    pub fn visit(&mut self, context: &mut Context<'_>, seconds: f64) -> Result<(), Stop> {
        let end = Deadline::after(context.system, seconds);
        let (watched, disturbed) =
            context.watched(&self.cores.clone(), |context| self.samples(context, &end))?;
        let mut all = Batch::default();
        all.add_window(watched, disturbed);
        let round = context.finish(all);
        self.rounds.add(round);
        Ok(())
    }

    /// Nanoseconds a byte, since gaps show in times. All threads take the same number of samples;
    /// the first watches the time and decides.
    fn samples(&self, context: &Context<'_>, end: &Deadline<'_>) -> Result<Batch, Stop> {
        use std::sync::atomic::{AtomicBool, Ordering};
        let parties = self.cores.len() as u32;
        let gate = Gate::default();
        let goes_on = AtomicBool::new(true);
        let failed = AtomicBool::new(false);
        let (clock, cancel) = (context.clock, context.cancel);
        let work = |core: usize, is_first: bool| -> Result<Batch, Stop> {
            let prepared = context.system.pin(core).and_then(|pinned| {
                // Touch it first on the thread that uses it, so that it lies on that thread's node.
                let memory = context.pool.take(core, self.bytes)?;
                Ok((pinned, memory))
            });
            if prepared.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            gate.pass(parties);
            if failed.load(Ordering::Relaxed) {
                return match prepared {
                    Err(refused) => Err(refused.into()),
                    Ok(_) => Ok(Batch::default()),
                };
            }
            let (_pinned, mut memory) = prepared?;
            let mut batch = Batch::of_chunks(self.moved() * PASSES * self.cores.len());
            let words = self.bytes / 8;
            pass(self.stream, &mut memory.words_mut()[..words]);
            loop {
                gate.pass(parties);
                let before = Before::now();
                let begin = clock.ticks_ordered();
                for _ in 0..PASSES {
                    pass(self.stream, &mut memory.words_mut()[..words]);
                }
                // The last to end counts, so that the sum is never flattered.
                if self.cores.len() > 1 {
                    gate.pass(parties);
                }
                batch.add_chunk(clock.ns(clock.ticks_ordered() - begin), &before);
                if is_first {
                    let ends = end.is_over() || cancel.load(Ordering::Relaxed);
                    goes_on.store(!ends, Ordering::Relaxed);
                }
                gate.pass(parties);
                if !goes_on.load(Ordering::Relaxed) {
                    context.pool.give(core, memory);
                    return Ok(batch);
                }
            }
        };
        std::thread::scope(|scope| {
            let mut others = Vec::new();
            for &core in &self.cores[1..] {
                let work = &work;
                match start(scope, move || work(core, false).map(drop)) {
                    Ok(other) => others.push(other),
                    Err(refused) => {
                        // Release the threads at the gate: one of them will never come.
                        failed.store(true, Ordering::Relaxed);
                        gate.abandon();
                        return Err(refused.into());
                    }
                }
            }
            let result = work(self.cores[0], true);
            for other in others {
                other.join().expect("a stream does not panic")?;
            }
            result
        })
    }

    /// Bytes moved in a pass.
    fn moved(&self) -> usize {
        match self.stream {
            Stream::Read | Stream::Write => self.bytes,
            Stream::Copy => self.bytes / 2,
        }
    }

    /// The figure; None if every visit failed.
    pub fn sum_up(&self) -> Option<Bandwidth> {
        let ns_per_byte = self.rounds.sum_up()?;
        // Two or three rounds may give an interval of time that begins below zero.
        let least = ns_per_byte.low.max(ns_per_byte.value / FEW_ROUNDS_FACTOR);
        Some(Bandwidth {
            stream: self.stream,
            cores: self.cores.clone(),
            bytes: self.bytes,
            bytes_per_ns: Measured {
                value: 1.0 / ns_per_byte.value,
                low: 1.0 / ns_per_byte.high,
                high: 1.0 / least,
                ..ns_per_byte
            },
        })
    }
}

fn pass(stream: Stream, words: &mut [u64]) {
    match stream {
        Stream::Read => {
            let sum = words.iter().fold(0u64, |sum, &word| sum.wrapping_add(word));
            std::hint::black_box(sum);
        }
        Stream::Write => {
            words.fill(std::hint::black_box(0x5a5a_5a5a_5a5a_5a5a));
            std::hint::black_box(&words);
        }
        Stream::Copy => {
            let (from, to) = words.split_at_mut(words.len() / 2);
            let count = from.len().min(to.len());
            to[..count].copy_from_slice(&std::hint::black_box(&from)[..count]);
            std::hint::black_box(&to);
        }
    }
}
