//! Contenders in turns: the same work on each, round after round, medians and ratios.

#![expect(clippy::print_stdout, reason = "an example prints its figures")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sys::{Linux, System as _};

/// Transactions between two looks at the end.
const STRIDE: u64 = 64;

/// Xorshift: each thread of each contender has the same numbers.
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

type Work<'c> = dyn Fn(&mut Random, &mut dyn FnMut() -> bool) -> u64 + Sync + 'c;

/// A contender: its name, and how one of its threads works.
pub(crate) struct Contender<'c> {
    pub(crate) name: &'static str,
    /// Makes transactions until the closure says so, and gives the conflicts it met.
    pub(crate) work: Box<Work<'c>>,
}

impl<'c> Contender<'c> {
    /// A contender that makes one transaction after another.
    pub(crate) fn new(
        name: &'static str,
        conflicts: impl Fn() -> u64 + Sync + 'c,
        transaction: impl Fn(&mut Random) + Sync + 'c,
    ) -> Contender<'c> {
        let work = move |random: &mut Random, goes_on: &mut dyn FnMut() -> bool| {
            let before = conflicts();
            while goes_on() {
                for _ in 0..STRIDE {
                    transaction(random);
                }
            }
            conflicts() - before
        };
        Contender {
            name,
            work: Box::new(work),
        }
    }
}

/// The value of an argument `name=value`.
pub(crate) fn argument(name: &str, default: usize) -> usize {
    let start = format!("{name}=");
    let found = std::env::args().find_map(|it| Some(it.strip_prefix(&start)?.to_owned()));
    found.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {value}"))
    })
}

/// Transactions a second, and conflicts a transaction.
fn once(contender: &Contender, threads: usize, duration: Duration, seed: u64) -> (f64, f64) {
    let cores = Linux.allowed().unwrap_or_default();
    let (begin, end) = (Barrier::new(threads + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (begin, end) = (&begin, &end);
                let core = cores.get(number % cores.len().max(1)).copied();
                scope.spawn(move || {
                    let _pinned = core.and_then(|core| Linux.pin(core).ok());
                    let mut random = Random::new(seed * 100 + number as u64);
                    let mut strides = 0;
                    begin.wait();
                    let conflicts = (contender.work)(&mut random, &mut || {
                        strides += 1;
                        !end.load(Ordering::Relaxed)
                    });
                    ((strides - 1) * STRIDE, conflicts)
                })
            })
            .collect();
        begin.wait();
        let started = Instant::now();
        thread::sleep(duration);
        end.store(true, Ordering::Relaxed);
        let elapsed = started.elapsed().as_secs_f64();
        let counts = workers.into_iter().map(|it| it.join().expect("it works"));
        let (done, conflicts) = counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (done as f64 / elapsed, conflicts as f64 / done as f64)
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

/// Runs all contenders in turns and prints their medians, with ratios to the one before the last
/// and to the last.
pub(crate) fn compare(contenders: &[Contender], threads: usize, rounds: usize, duration: Duration) {
    let mut results = vec![Vec::new(); contenders.len()];
    for contender in contenders {
        once(contender, threads, duration / 4, 1);
    }
    for round in 0..rounds {
        for offset in 0..contenders.len() {
            let at = (round + offset) % contenders.len();
            results[at].push(once(&contenders[at], threads, duration, round as u64 + 1));
        }
    }
    let last = contenders.len() - 1;
    println!(
        "threads {threads}, rounds {rounds} of {} ms; ratios are medians of rounds",
        duration.as_millis()
    );
    println!(
        "{:<12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "",
        "txn/s",
        "least",
        "most",
        format!("/{}", contenders[last - 1].name),
        format!("/{}", contenders[last].name),
        "conf/txn"
    );
    for (contender, result) in contenders.iter().zip(&results) {
        let rates: Vec<f64> = result.iter().map(|it| it.0).collect();
        let over = |other: usize| {
            let pairs = rates.iter().zip(&results[other]);
            median(pairs.map(|(rate, other)| rate / other.0).collect())
        };
        println!(
            "{:<12} {:>12.0} {:>12.0} {:>12.0} {:>10.2} {:>10.2} {:>10.4}",
            contender.name,
            median(rates.clone()),
            rates.iter().copied().fold(f64::INFINITY, f64::min),
            rates.iter().copied().fold(0.0, f64::max),
            over(last - 1),
            over(last),
            median(result.iter().map(|it| it.1).collect())
        );
    }
}
