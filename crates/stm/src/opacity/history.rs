//! Histories of random programs: what each attempt of each thread has seen and done.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::algorithm::Algorithm;
use crate::fault::Planted;
use crate::stm::Stm;
use crate::var::Var;

/// A read or a write of a variable, with the value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Access {
    Read(usize, u64),
    Write(usize, u64),
}

/// An attempt, from before its start to after its end.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// A time before the start, and one after the end.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_committed: bool,
    pub(super) accesses: Vec<Access>,
}

/// A random program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) seed: u64,
    pub(super) threads: usize,
    /// Transactions of each thread.
    pub(super) transactions: usize,
    pub(super) variables: usize,
    pub(super) failures_max: u32,
}

/// The value of each variable before the program; no transaction writes it.
pub(super) const INITIAL: u64 = 0;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// Runs a program, and gives all attempts of all its threads.
///
/// Every value written is written once: it has its thread and a count. Every write comes after a
/// read of its variable in the same transaction, so each version of a variable names the one
/// before. Bodies stop at random in between, or give up, or hide a conflict and go on.
pub(super) fn run<A: Algorithm>(program: Program, planted: Planted) -> Vec<Recorded> {
    let stm = Stm::<A>::planted(planted).alone_after(program.failures_max);
    let variables: Vec<Var<u64>> = (0..program.variables).map(|_| Var::new(INITIAL)).collect();
    // Two clock values are ordered as their readings; a counter shared by all is such a clock.
    let clock = AtomicU64::new(0);
    let begin = Barrier::new(program.threads);
    let mut all = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..program.threads)
            .map(|thread| {
                let (stm, variables, clock, begin) = (&stm, &variables[..], &clock, &begin);
                scope.spawn(move || {
                    begin.wait();
                    run_thread(program, thread, stm, variables, clock)
                })
            })
            .collect();
        for thread in threads {
            all.extend(thread.join().unwrap());
        }
    });
    all
}

fn run_thread<'v, A: Algorithm>(
    program: Program,
    thread: usize,
    stm: &'v Stm<A>,
    variables: &'v [Var<u64>],
    clock: &AtomicU64,
) -> Vec<Recorded> {
    let seed = program.seed * 64 + thread as u64 + 1;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut written = 0;
    let mut attempts = Vec::new();
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    for _ in 0..program.transactions {
        let mut accesses: Vec<Access> = Vec::new();
        let mut start = now();
        let mut is_running = false;
        let plan = random.0;
        let result = stm.try_atomically(|tx| {
            // The end of an attempt that failed lies before the start of the next.
            if is_running {
                let end = now();
                attempts.push(Recorded {
                    start,
                    end,
                    is_committed: false,
                    accesses: std::mem::take(&mut accesses),
                });
                start = now();
            }
            is_running = true;
            let mut random = Random(plan);
            let hides = random.below(8) == 0;
            for _ in 0..1 + random.below(6) {
                let number = random.below(variables.len());
                let writes = random.below(3) == 0;
                if random.below(4) == 0 {
                    thread::yield_now();
                }
                // By all ways of reading: one, two at once, and several in a row.
                let other = random.below(variables.len());
                let read = match random.below(4) {
                    0 => tx
                        .read_pair(&variables[number], &variables[other])
                        .map(|values| vec![(number, values.0), (other, values.1)]),
                    1 => {
                        let end = variables.len().min(number + 1 + random.below(8));
                        let vars = &variables[number..end];
                        tx.fold(vars, Vec::new(), |mut values, value| {
                            values.push((number + values.len(), value));
                            values
                        })
                    }
                    _ => tx
                        .read(&variables[number])
                        .map(|value| vec![(number, value)]),
                };
                match read {
                    Ok(values) => {
                        let values = values.into_iter();
                        accesses.extend(values.map(|(number, value)| Access::Read(number, value)));
                    }
                    Err(_) if hides => continue,
                    Err(halt) => return Err(halt.into()),
                }
                if writes {
                    written += 1;
                    let value = (thread as u64 + 1) << 40 | written;
                    match tx.write(&variables[number], value) {
                        Ok(()) => accesses.push(Access::Write(number, value)),
                        Err(_) if hides => (),
                        Err(halt) => return Err(halt.into()),
                    }
                }
            }
            if random.below(16) == 0 {
                return crate::abort(());
            }
            Ok(())
        });
        random.below(1);
        attempts.push(Recorded {
            start,
            end: now(),
            is_committed: result.is_ok(),
            accesses,
        });
    }
    attempts
}
