//! The work: a product of square matrices, whose outermost loop is divided among a forced number of
//! threads.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Division of the work among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// One equal part of the rows for each thread, whatever happens: OpenMP's `schedule(static)`.
    Static,
    /// Threads without work steal rows from others: Intel's TBB, here rayon.
    Stealing,
}

impl Partition {
    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Partition::Static => "static",
            Partition::Stealing => "stealing",
        }
    }

    /// The partition of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Partition> {
        let all = [Partition::Static, Partition::Stealing];
        all.into_iter().find(|partition| partition.id() == name)
    }
}

/// Two matrices and their product, row by row.
#[derive(Debug)]
pub struct Product {
    rows: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Product {
    /// Matrices of this many rows and columns, one at least, filled with small whole numbers:
    /// sums of products are exact.
    #[must_use]
    pub fn new(rows: usize) -> Product {
        let rows = rows.max(1);
        let filled = |factor: usize| {
            let value = |at: usize| ((at * factor) % 17) as f64 - 8.0;
            (0..rows * rows).map(value).collect()
        };
        Product {
            rows,
            a: filled(7),
            b: filled(11),
            c: vec![0.0; rows * rows],
        }
    }

    /// Multiplies once with the pool's threads.
    pub fn multiply(&mut self, pool: &ThreadPool, partition: Partition) {
        let Product { rows, a, b, c } = self;
        let rows = *rows;
        let row = |at: usize, c: &mut [f64]| {
            c.fill(0.0);
            for (a, b) in a[at * rows..][..rows].iter().zip(b.chunks(rows)) {
                for (c, b) in c.iter_mut().zip(b) {
                    *c += a * b;
                }
            }
        };
        match partition {
            Partition::Static => {
                // Each part has one user, so that its lock is never waited for.
                let mut parts = Vec::new();
                let (threads, mut rest, mut begin) = (pool.current_num_threads(), &mut c[..], 0);
                for thread in 0..threads {
                    let end = rows * (thread + 1) / threads;
                    let (part, more) = rest.split_at_mut((end - begin) * rows);
                    parts.push(Mutex::new((begin, part)));
                    (rest, begin) = (more, end);
                }
                pool.broadcast(|thread| {
                    let part = parts[thread.index()].lock();
                    let (begin, part) = &mut *part.unwrap_or_else(PoisonError::into_inner);
                    for (at, c) in part.chunks_mut(rows).enumerate() {
                        row(*begin + at, c);
                    }
                });
            }
            Partition::Stealing => pool.install(|| {
                let all = c.par_chunks_mut(rows).enumerate();
                all.for_each(|(at, c)| row(at, c));
            }),
        }
    }

    /// Checks the product: C · 1 = A · (B · 1).
    #[must_use]
    pub fn is_right(&self) -> bool {
        let sums: Vec<f64> = self
            .b
            .chunks(self.rows)
            .map(|row| row.iter().sum())
            .collect();
        let wanted = self.a.chunks(self.rows).map(|row| {
            let products = row.iter().zip(&sums).map(|(a, sum)| a * sum);
            products.sum::<f64>()
        });
        let found = self.c.chunks(self.rows).map(|row| row.iter().sum::<f64>());
        wanted.eq(found)
    }
}

/// Pools of threads by their number, kept once they were made.
#[derive(Debug, Default)]
pub struct Pools(Vec<Option<ThreadPool>>);

impl Pools {
    /// The pool of so many threads, one at least.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn of(&mut self, threads: usize) -> Result<&ThreadPool, String> {
        let threads = threads.max(1);
        while self.0.len() <= threads {
            self.0.push(None);
        }
        let place = &mut self.0[threads];
        if place.is_none() {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            *place = Some(pool.map_err(|error| format!("{threads} threads: {error}"))?);
        }
        place.as_ref().ok_or_else(|| "no pool".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_divisions_give_the_product() {
        let mut pools = Pools::default();
        for rows in [1, 2, 7, 32] {
            for threads in [1, 2, 3, 9] {
                for partition in [Partition::Static, Partition::Stealing] {
                    let mut product = Product::new(rows);
                    product.multiply(pools.of(threads).unwrap(), partition);
                    assert!(product.is_right(), "{rows} {threads} {partition:?}");
                    // A second product does not add to the first.
                    product.multiply(pools.of(threads).unwrap(), partition);
                    assert!(product.is_right());
                }
            }
        }
        let mut wrong = Product::new(4);
        assert!(!wrong.is_right());
        wrong.multiply(pools.of(2).unwrap(), Partition::Static);
        wrong.c[5] += 1.0;
        assert!(!wrong.is_right());
    }
}
