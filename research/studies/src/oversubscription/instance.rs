//! One of the two programs: multiplies matrices again and again, and notes when each product began
//! and ended.
//!
//! It says `ready` once it has its threads and its first product, and begins with a line of its
//! input. A program that chooses its threads does so then. It ends when its time is over or,
//! without one, with its input, and prints a [`Record`] as JSON.

use std::io::{BufRead, Write};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use hearth_sys::clock::{monotonic_ns, process_ns};
use hearth_sys::{Linux, System};
use serde::{Deserialize, Serialize};

use super::matrix::{Partition, Pools, Product};
use super::policies::{Chosen, Policy, Surroundings, choose};
use crate::program;

/// Fewest products of a run.
const PRODUCTS_MIN: usize = 2;
/// Parts of the run's time in which each step of a climb is measured.
const STEPS: u32 = 10;

/// A run, as it is asked of the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// `static`, `stealing`, or a policy's name, which then chooses the threads and steals.
    pub way: String,
    /// Its threads, unless a policy chooses.
    pub threads: usize,
    /// Threads that others run, for the policy that is told.
    pub foreign: usize,
    /// Rows of the matrices.
    pub rows: usize,
    /// Length of the run; 0 for until the end of the input.
    pub milliseconds: u32,
}

/// Account of a program's run. Times are nanoseconds of the system's monotonic clock, which all
/// programs share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its threads.
    pub threads: usize,
    /// Its estimate of others' threads, if it has one.
    pub foreign: Option<f64>,
    /// Time that it took to choose, seconds.
    pub choice_seconds: f64,
    /// Begin and end of each product.
    pub products: Vec<(u64, u64)>,
    /// CPU time of all its threads from the line of input on, seconds.
    pub cpu_seconds: f64,
}

impl Record {
    /// The time from the first product's begin to the last one's end.
    #[must_use]
    pub fn window(&self) -> Option<(u64, u64)> {
        Some((self.products.first()?.0, self.products.last()?.1))
    }

    /// Products a second within a window; one that is only partly within counts as that part.
    #[must_use]
    pub fn rate(&self, (from, to): (u64, u64)) -> f64 {
        let part = |(begin, end): &(u64, u64)| {
            let within = to.min(*end).saturating_sub(from.max(*begin));
            within as f64 / (end - begin).max(1) as f64
        };
        let count: f64 = self.products.iter().map(part).sum();
        count * 1e9 / to.saturating_sub(from).max(1) as f64
    }

    /// Mean seconds of the products that ran wholly within a window, or else of those that touch
    /// it.
    #[must_use]
    pub fn seconds(&self, (from, to): (u64, u64)) -> Option<f64> {
        let mean = |is_in: &dyn Fn(u64, u64) -> bool| {
            let products = self
                .products
                .iter()
                .filter(|(begin, end)| is_in(*begin, *end));
            let times: Vec<f64> = products.map(|(begin, end)| (end - begin) as f64).collect();
            let sum: f64 = times.iter().sum();
            (!times.is_empty()).then(|| sum / times.len() as f64 / 1e9)
        };
        let whole = mean(&|begin, end| begin >= from && end <= to);
        whole.or_else(|| mean(&|begin, end| begin < to && end > from))
    }
}

/// Runs as asked, from `input` to `output`.
///
/// # Errors
/// No such way; the system gives no threads; the input ended or the output closed; a product is
/// wrong. In words.
pub fn serve(
    asked: &Asked,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), String> {
    let policy = Policy::named(&asked.way);
    let partition = match policy {
        Some(_) => Partition::Stealing,
        None => Partition::named(&asked.way)
            .ok_or_else(|| format!("there is no way to run called {}", asked.way))?,
    };
    let cpus = Linux.allowed().map_or(1, |allowed| allowed.len().max(1));
    let mut worker = Worker {
        product: Product::new(asked.rows),
        pools: Pools::default(),
    };
    let first = if policy.is_some() {
        cpus
    } else {
        asked.threads
    };
    worker.time(first, partition)?;
    let orders = program::ready(input, &mut output)?;
    let is_over = || matches!(orders.try_recv(), Err(TryRecvError::Disconnected));
    let (begin, used) = (Instant::now(), cpu_seconds());
    let mut record = Record {
        threads: asked.threads.max(1),
        ..Record::default()
    };
    if let Some(policy) = policy {
        let chosen = worker.choose(policy, cpus, asked)?;
        (record.threads, record.foreign) = (chosen.threads, chosen.foreign);
        record.choice_seconds = begin.elapsed().as_secs_f64();
    }
    let begin = Instant::now();
    let time = Duration::from_millis(asked.milliseconds.into());
    loop {
        let from = monotonic_ns();
        worker.time(record.threads, partition)?;
        record.products.push((from, monotonic_ns()));
        let is_long = match asked.milliseconds {
            0 => is_over(),
            _ => begin.elapsed() >= time && record.products.len() >= PRODUCTS_MIN,
        };
        if is_long {
            break;
        }
    }
    record.cpu_seconds = cpu_seconds() - used;
    if !worker.product.is_right() {
        return Err("the product is wrong".to_owned());
    }
    let text = serde_json::to_string(&record).map_err(|error| error.to_string())?;
    writeln!(output, "{text}").map_err(|error| error.to_string())
}

fn cpu_seconds() -> f64 {
    1e-9 * process_ns(std::process::id()).unwrap_or(0) as f64
}

/// The load average over 15 minutes.
fn load_average() -> f64 {
    let text = Linux.read("/proc/loadavg").unwrap_or_default();
    let third = text.split(' ').nth(2);
    third.and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

struct Worker {
    product: Product,
    pools: Pools,
}

impl Worker {
    /// Time of a product.
    fn time(&mut self, threads: usize, partition: Partition) -> Result<Duration, String> {
        let pool = self.pools.of(threads)?;
        let begin = Instant::now();
        self.product.multiply(pool, partition);
        Ok(begin.elapsed())
    }

    fn choose(&mut self, policy: Policy, cpus: usize, asked: &Asked) -> Result<Chosen, String> {
        /// Longest calibration, where runs are long enough for it.
        const CALIBRATION_MAX: Duration = Duration::from_secs(2);
        let time = Duration::from_millis(asked.milliseconds.into());
        let step = time / STEPS;
        // A pool that cannot be made ends the choice.
        let (worker, failed) = (std::cell::RefCell::new(self), std::cell::Cell::new(None));
        let run = |threads: usize, partition: Partition| {
            let ran = worker.borrow_mut().time(threads, partition);
            ran.unwrap_or_else(|why| {
                failed.set(Some(why));
                Duration::from_secs(1)
            })
        };
        let chosen = choose(
            policy,
            &mut Surroundings {
                cpus,
                foreign: asked.foreign,
                load_average: load_average(),
                time_max: CALIBRATION_MAX.min(4 * time),
                section: &mut |threads| run(threads, Partition::Static),
                throughput: &mut |threads| {
                    let (begin, mut count) = (Instant::now(), 0.0);
                    loop {
                        run(threads, Partition::Stealing);
                        count += 1.0;
                        let gone = begin.elapsed();
                        if gone >= step {
                            return count / gone.as_secs_f64();
                        }
                    }
                },
            },
        );
        match failed.take() {
            Some(why) => Err(why),
            None => Ok(chosen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_count_where_they_are() {
        let record = Record {
            products: vec![(0, 100), (100, 300), (300, 400)],
            ..Record::default()
        };
        assert_eq!(record.window(), Some((0, 400)));
        // Half of the second, and the third.
        assert!((record.rate((200, 400)) - 1.5 * 1e9 / 200.0).abs() < 1e-3);
        assert_eq!(record.seconds((50, 400)), Some(150e-9));
        assert_eq!(record.seconds((120, 200)), Some(200e-9));
        assert_eq!(Record::default().seconds((0, 1)), None);
        assert_eq!(Record::default().rate((0, 1)), 0.0);
    }
}
