//! The tree of groups.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::latencies::{Latencies, Latency};
use super::levels::ends;
use super::linkage::{groups_after, merges};
use crate::topology::OsThread;

/// Nested groups found in latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// All threads, ascending.
    pub threads: Vec<OsThread>,
    /// Nearest first. The last has one group, of all threads; a single thread has no level.
    pub levels: Vec<Level>,
}

/// Pairs about equally far apart, and the groups that they form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The geometric mean over the measured pairs of this level, in nanoseconds; nothing if none
    /// was measured.
    pub latency_ns: Option<f64>,
    /// The standard deviation of those pairs around it, relative.
    pub spread: f64,
    /// Number of measured pairs of this level.
    pub pairs_measured: usize,
    /// The groups of at least two threads whose pairs are of this level or a nearer one; threads
    /// ascend, groups by their first. A thread in none of them is alone up to this level.
    pub groups: Vec<Vec<OsThread>>,
}

/// Origin of a figure in a completed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The pair was measured.
    Measured,
    /// It is the mean of measured pairs between the same two groups.
    InferredFromGroups,
    /// It is the mean of all measured pairs of the same level.
    InferredFromLevel,
}

/// One pair of a completed table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    /// The lower thread.
    pub a: OsThread,
    /// The other.
    pub b: OsThread,
    /// The figure. The error of an inferred one is the spread among the pairs it is derived from.
    pub latency: Latency,
    /// Its origin.
    pub origin: Origin,
}

impl Tree {
    /// Finds levels and groups. Pairs may be missing; threads that no measured pair connects with
    /// others join at the last level. The result depends only on the table.
    pub fn infer(latencies: &Latencies) -> Tree {
        let merges = merges(latencies);
        let ends = ends(latencies, &merges);
        let mut tree = Tree {
            threads: latencies.threads().to_vec(),
            levels: ends
                .iter()
                .map(|end| Level {
                    latency_ns: None,
                    spread: 0.0,
                    pairs_measured: 0,
                    groups: collect(latencies, &groups_after(&merges[..*end], merges.len() + 1)),
                })
                .collect(),
        };
        tree.describe(latencies);
        tree
    }

    /// Computes the figures of each level.
    fn describe(&mut self, latencies: &Latencies) {
        let mut logs: Vec<Vec<f64>> = vec![Vec::new(); self.levels.len()];
        let positions = self.positions();
        for j in 0..self.threads.len() {
            for i in 0..j {
                if let (Some(log), Some(level)) =
                    (latencies.log_at(i, j), meeting(&positions, i, j))
                {
                    logs[level].push(log);
                }
            }
        }
        for (level, logs) in self.levels.iter_mut().zip(logs) {
            let (mean, deviation) = mean_and_deviation(&logs);
            level.pairs_measured = logs.len();
            level.latency_ns = (!logs.is_empty()).then(|| mean.exp());
            level.spread = deviation;
        }
    }

    /// All groups of at least two threads, each once, the whole machine last.
    pub fn groups(&self) -> BTreeSet<Vec<OsThread>> {
        let groups = self.levels.iter().flat_map(|level| level.groups.iter());
        groups.cloned().collect()
    }

    /// The first level, counted from 0, at which two threads are in one group. Nothing for a thread
    /// and itself, and for threads outside the tree.
    pub fn level_of(&self, a: OsThread, b: OsThread) -> Option<usize> {
        if a == b {
            return None;
        }
        self.levels.iter().position(|level| {
            let holds = |group: &&Vec<OsThread>| group.binary_search(&a).is_ok();
            let group = level.groups.iter().find(holds);
            group.is_some_and(|group| group.binary_search(&b).is_ok())
        })
    }

    /// All pairs: measured ones as they are, the others from measured pairs of the same two groups,
    /// or else of the same level. A pair is left out if nothing of its level was measured.
    pub fn fill(&self, latencies: &Latencies) -> Vec<Filled> {
        let positions = self.positions();
        let below = |thread: usize, level: usize| match level {
            0 => thread,
            _ => positions[thread][level - 1],
        };
        let key = |i: usize, j: usize, level: usize| {
            let (a, b) = (below(i, level), below(j, level));
            (level, a.min(b), a.max(b))
        };
        let mut between: BTreeMap<(usize, usize, usize), Vec<f64>> = BTreeMap::new();
        let mut by_level: Vec<Vec<f64>> = vec![Vec::new(); self.levels.len()];
        let each = |take: &mut dyn FnMut(usize, usize, usize)| {
            for j in 0..self.threads.len() {
                for i in 0..j {
                    if let Some(level) = meeting(&positions, i, j) {
                        take(i, j, level);
                    }
                }
            }
        };
        let log_of = |i: usize, j: usize| {
            let latency = latencies.get(self.threads[i], self.threads[j]);
            latency.map(|latency| latency.ns.ln())
        };
        each(&mut |i, j, level| {
            if let Some(log) = log_of(i, j) {
                between.entry(key(i, j, level)).or_default().push(log);
                by_level[level].push(log);
            }
        });
        let mut filled = Vec::new();
        each(&mut |i, j, level| {
            let (a, b) = (self.threads[i], self.threads[j]);
            let same_groups = between.get(&key(i, j, level));
            let found = match (latencies.get(a, b), same_groups) {
                (Some(latency), _) => Some((latency, Origin::Measured)),
                (None, Some(logs)) => Some((typical(logs), Origin::InferredFromGroups)),
                (None, None) if by_level[level].is_empty() => None,
                (None, None) => Some((typical(&by_level[level]), Origin::InferredFromLevel)),
            };
            filled.extend(found.map(|(latency, origin)| Filled {
                a,
                b,
                latency,
                origin,
            }));
        });
        filled
    }

    /// For each thread, its group at each level, named by the position of the group's first thread.
    fn positions(&self) -> Vec<Vec<usize>> {
        let at: BTreeMap<OsThread, usize> = self.threads.iter().copied().zip(0..).collect();
        let mut names: Vec<Vec<usize>> = (0..self.threads.len())
            .map(|thread| vec![thread; self.levels.len()])
            .collect();
        for (depth, level) in self.levels.iter().enumerate() {
            for group in &level.groups {
                let members = || group.iter().filter_map(|os| at.get(os));
                let Some(name) = members().next() else {
                    continue;
                };
                for member in members() {
                    names[*member][depth] = *name;
                }
            }
        }
        names
    }
}

fn meeting(positions: &[Vec<usize>], i: usize, j: usize) -> Option<usize> {
    let mut levels = positions[i].iter().zip(&positions[j]);
    levels.position(|(a, b)| a == b)
}

fn collect(latencies: &Latencies, names: &[usize]) -> Vec<Vec<OsThread>> {
    let mut groups: BTreeMap<usize, Vec<OsThread>> = BTreeMap::new();
    for (os, name) in latencies.threads().iter().zip(names) {
        groups.entry(*name).or_default().push(*os);
    }
    groups
        .into_values()
        .filter(|group| group.len() > 1)
        .collect()
}

fn typical(logs: &[f64]) -> Latency {
    let (mean, deviation) = mean_and_deviation(logs);
    Latency {
        ns: mean.exp(),
        error_ns: deviation * mean.exp(),
    }
}

fn mean_and_deviation(logs: &[f64]) -> (f64, f64) {
    if logs.is_empty() {
        return (0.0, 0.0);
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
