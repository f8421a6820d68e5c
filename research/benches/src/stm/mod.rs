//! Transactional memories beside locks: sides that do the same work, in turns.
//!
//! The sides of a row have the same input in the same turn, and each looks at the end whether what
//! it has is right. `bank` has transfers and sums, `tree` and `list` look-ups and updates.

mod bank;
mod list;
mod tree;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sys::{Linux, System as _};

/// Transactions between two looks at the end.
const STRIDE: u64 = 64;

/// Xorshift: each thread of each side has the same numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high half of a product: no division.
        ((self.0 >> 32) as usize * bound) >> 32
    }
}

/// Makes transactions until the closure says so.
type Work = dyn Fn(&mut Random, &mut dyn FnMut() -> bool) + Send + Sync;
/// Looks whether the data are right.
type Check = dyn Fn() -> Result<(), String> + Send + Sync;

/// A side: its name, how one of its threads works, and whether its data are right.
pub struct Side {
    /// Its name.
    pub name: &'static str,
    work: Box<Work>,
    check: Box<Check>,
}

impl Side {
    /// A side of some shared data, which makes one transaction after another.
    pub(crate) fn new<D: Send + Sync + 'static>(
        name: &'static str,
        data: D,
        transaction: impl Fn(&D, &mut Random) + Send + Sync + 'static,
        check: impl Fn(&D) -> Result<(), String> + Send + Sync + 'static,
    ) -> Side {
        let data = std::sync::Arc::new(data);
        let of_work = std::sync::Arc::clone(&data);
        let work = move |random: &mut Random, goes_on: &mut dyn FnMut() -> bool| {
            while goes_on() {
                for _ in 0..STRIDE {
                    transaction(&of_work, random);
                }
            }
        };
        Side {
            name,
            work: Box::new(work),
            check: Box::new(move || check(&data)),
        }
    }
}

/// A comparison.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its question.
    pub question: &'static str,
    /// Makes the sides, each with data of its own.
    pub sides: fn() -> Vec<Side>,
}

/// All comparisons. The side called `fast-stm` is the peer; `mutex` and `parking_lot` are one lock
/// around the structure.
pub const ROWS: &[Row] = &[
    Row {
        name: "bank",
        question: "transfers, and sums of 1024 accounts in a fifth of the transactions, read one by one",
        sides: || bank::sides(20, false),
    },
    Row {
        name: "bank-fold",
        question: "the same with sums read as a whole",
        sides: || bank::sides(20, true),
    },
    Row {
        name: "transfers",
        question: "transfers between two of 1024 accounts",
        sides: || bank::sides(0, false),
    },
    Row {
        name: "tree",
        question: "a red-black tree of 8192 keys of which half are there, updates in a fifth",
        sides: tree::sides,
    },
    Row {
        name: "list",
        question: "a sorted list of 512 keys of which half are there, updates in a fifth",
        sides: list::sides,
    },
];

/// Threads of a comparison.
pub const THREADS: [usize; 2] = [1, 2];

/// Lets a side work for a while and gives its transactions a second.
///
/// # Errors
/// Its data are wrong.
pub fn turn(side: &Side, threads: usize, duration: Duration, seed: u64) -> Result<f64, String> {
    let cores = Linux.allowed().unwrap_or_default();
    let (begin, end) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let rate = thread::scope(|scope| {
        let worker = |number: usize| {
            let (begin, end) = (&begin, &end);
            let core = cores.get(number % cores.len().max(1)).copied();
            scope.spawn(move || {
                let _pinned = core.and_then(|core| Linux.pin(core).ok());
                let mut random = Random::new(seed * 100 + number as u64);
                let mut strides = 0;
                begin.wait();
                (side.work)(&mut random, &mut || {
                    strides += 1;
                    !end.load(Ordering::Relaxed)
                });
                (strides - 1) * STRIDE
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        begin.wait();
        let started = Instant::now();
        thread::sleep(duration);
        end.store(true, Ordering::Relaxed);
        let elapsed = started.elapsed().as_secs_f64();
        let done = workers.into_iter().map(|it| it.join().unwrap_or(0));
        done.sum::<u64>() as f64 / elapsed
    });
    (side.check)().map_err(|why| format!("{}: {why}", side.name))?;
    Ok(rate)
}

/// Lets every side of a row work for a moment, for its answer.
///
/// # Errors
/// A side's data are wrong.
pub fn check(row: &Row) -> Result<(), String> {
    for side in (row.sides)() {
        for threads in THREADS {
            turn(&side, threads, Duration::from_millis(5), 1)
                .map_err(|why| format!("{}: {why}", row.name))?;
        }
    }
    Ok(())
}
