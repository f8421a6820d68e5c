//! Measured latencies of pairs; some may be missing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::topology::OsThread;

/// One latency, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The estimate, above zero.
    pub ns: f64,
    /// Its standard error, zero or more; zero if not known.
    pub error_ns: f64,
}

/// The latencies between pairs of hardware threads, the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    threads: Vec<OsThread>,
    position: BTreeMap<OsThread, usize>,
    /// The pair of positions (i, j), i < j, is at j(j − 1)/2 + i.
    cells: Vec<Option<Latency>>,
}

/// Reason why a latency is refused.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum LatencyError {
    /// The thread is not in the table.
    #[error("{0} is not in the table; make the table with it")]
    Unknown(OsThread),
    /// A thread is listed twice, or paired with itself.
    #[error("{0} appears twice; give two different hardware threads")]
    Same(OsThread),
    /// The figure is not a time.
    #[error("{} ± {} ns is not a latency; leave the pair out", .0.ns, .0.error_ns)]
    NotATime(Latency),
}

impl Latencies {
    /// A table for these threads, with every pair missing.
    ///
    /// # Errors
    /// A thread that is listed twice.
    pub fn new(threads: &[OsThread]) -> Result<Latencies, LatencyError> {
        let mut threads = threads.to_vec();
        threads.sort_unstable();
        if let Some(pair) = threads.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LatencyError::Same(pair[0]));
        }
        let count = threads.len();
        Ok(Latencies {
            position: threads.iter().copied().zip(0..).collect(),
            threads,
            cells: vec![None; count * count.saturating_sub(1) / 2],
        })
    }

    /// The threads, ascending.
    pub fn threads(&self) -> &[OsThread] {
        &self.threads
    }

    /// All pairs, measured or not, the lower thread first.
    pub fn pairs(&self) -> Vec<(OsThread, OsThread)> {
        let pairs = self.threads.iter().enumerate();
        pairs
            .flat_map(|(j, b)| self.threads[..j].iter().map(|a| (*a, *b)))
            .collect()
    }

    /// Enters a latency, replacing an earlier one.
    ///
    /// # Errors
    /// A thread that is not in the table, a pair of one thread, or a figure that is not finite and
    /// above zero.
    pub fn set(&mut self, a: OsThread, b: OsThread, latency: Latency) -> Result<(), LatencyError> {
        let place = |os| self.position.get(&os).ok_or(LatencyError::Unknown(os));
        let (i, j) = (*place(a)?, *place(b)?);
        if i == j {
            return Err(LatencyError::Same(a));
        }
        let is_time = latency.ns.is_finite() && latency.ns > 0.0;
        if !is_time || !latency.error_ns.is_finite() || latency.error_ns < 0.0 {
            return Err(LatencyError::NotATime(latency));
        }
        self.cells[cell(i, j)] = Some(latency);
        Ok(())
    }

    /// The latency of a pair, if it was measured.
    pub fn get(&self, a: OsThread, b: OsThread) -> Option<Latency> {
        let (i, j) = (self.position.get(&a)?, self.position.get(&b)?);
        self.at(*i, *j)
    }

    /// Number of measured pairs.
    pub fn measured(&self) -> usize {
        self.cells.iter().flatten().count()
    }

    pub(super) fn at(&self, i: usize, j: usize) -> Option<Latency> {
        if i == j { None } else { self.cells[cell(i, j)] }
    }

    /// The logarithm of a latency: noise is multiplicative, so logarithms make it additive.
    pub(super) fn log_at(&self, i: usize, j: usize) -> Option<f64> {
        self.at(i, j).map(|latency| latency.ns.ln())
    }

    pub(super) fn position(&self, os: OsThread) -> Option<usize> {
        self.position.get(&os).copied()
    }

    /// The median of the relative standard errors; zero if none is known.
    pub(super) fn relative_error(&self) -> f64 {
        let known = self.cells.iter().flatten();
        let mut errors: Vec<f64> = known
            .map(|latency| latency.error_ns / latency.ns)
            .filter(|error| *error > 0.0)
            .collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied().unwrap_or(0.0)
    }
}

fn cell(i: usize, j: usize) -> usize {
    let (low, high) = (i.min(j), i.max(j));
    high * (high - 1) / 2 + low
}
