//! Choice of the pairs to measure where all of them would be too many.
//!
//! At most 4 n log₂ n pairs for n threads, in rounds; each round is chosen from the findings of
//! earlier ones. With up to 32 threads that is all pairs. Beyond:
//!
//! 1. *Neighbours.* The pairs whose positions differ by a power of two or by n/2, n/4, …, around
//!    the end; and the pairs of each smallest claimed group. Operating systems number siblings side
//!    by side or half the machine apart, and clusters and packages in runs or in turns, so these
//!    pairs touch every group that follows any such rule, claimed or not.
//! 2. *Landmarks.* One thread against all others, then the thread that is farthest from all
//!    landmarks, and so on until every thread is near one. This reveals groups of any numbering.
//! 3. *Inside.* All pairs of the smallest groups found, smallest groups first.
//!
//! It can miss groups of a few threads that follow no numbering rule and that no claim mentions:
//! landmarks find such a group only if one of its members is a landmark. Only measuring all pairs
//! is certain.

use std::collections::{BTreeMap, BTreeSet};

use super::latencies::Latencies;
use super::tree::Tree;
use crate::relation::Closeness;
use crate::topology::{OsThread, Topology};

/// Largest share of the pairs for landmarks, so that the last phase has some.
const LANDMARK_SHARE: f64 = 0.85;

/// Most pairs that a plan for n threads asks for: 4 n log₂ n, or all if that is fewer.
pub fn pairs_max(threads: usize) -> usize {
    let n = threads as f64;
    let all = threads * threads.saturating_sub(1) / 2;
    all.min((4.0 * n * n.max(1.0).log2()) as usize)
}

/// A plan in progress.
///
/// ```
/// use hearth_machine::infer::{Latencies, Latency, PairPlan, pairs_max};
/// use hearth_machine::topology::OsThread;
///
/// let threads: Vec<OsThread> = (0..64).map(OsThread).collect();
/// let mut latencies = Latencies::new(&threads)?;
/// let mut plan = PairPlan::new(&threads, None);
/// loop {
///     let round = plan.next_round(&latencies);
///     if round.is_empty() {
///         break;
///     }
///     for (a, b) in round {
///         latencies.set(a, b, Latency { ns: 50.0, error_ns: 1.0 })?;
///     }
/// }
/// assert!(latencies.measured() <= pairs_max(64));
/// # Ok::<(), hearth_machine::infer::LatencyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PairPlan {
    threads: Vec<OsThread>,
    asked: BTreeSet<(usize, usize)>,
    claimed: Vec<Vec<usize>>,
    landmarks: Vec<usize>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Neighbours,
    Landmarks,
    Inside,
    Done,
}

impl PairPlan {
    /// A plan for these threads. The topology's claims serve as hints and are never believed.
    pub fn new(threads: &[OsThread], claimed: Option<&Topology>) -> PairPlan {
        let mut threads = threads.to_vec();
        threads.sort_unstable();
        threads.dedup();
        PairPlan {
            claimed: claimed.map_or(Vec::new(), |topology| smallest_groups(&threads, topology)),
            threads,
            asked: BTreeSet::new(),
            landmarks: Vec::new(),
            phase: Phase::Neighbours,
        }
    }

    /// The next pairs to measure, given everything measured so far; none if the plan is done. No
    /// pair comes twice: one that could not be measured is left out for good.
    pub fn next_round(&mut self, latencies: &Latencies) -> Vec<(OsThread, OsThread)> {
        loop {
            let wanted = match self.phase {
                Phase::Neighbours => {
                    self.phase = Phase::Landmarks;
                    self.neighbours()
                }
                Phase::Landmarks => match self.next_landmark(latencies) {
                    Some(landmark) => {
                        self.landmarks.push(landmark);
                        (0..self.threads.len()).map(|i| (i, landmark)).collect()
                    }
                    None => {
                        self.phase = Phase::Inside;
                        continue;
                    }
                },
                Phase::Inside => {
                    self.phase = Phase::Done;
                    self.inside(latencies)
                }
                Phase::Done => return Vec::new(),
            };
            let round = self.ask(wanted);
            if !round.is_empty() {
                return round;
            }
        }
    }

    /// The pairs not asked for before, up to the limit.
    fn ask(&mut self, wanted: Vec<(usize, usize)>) -> Vec<(OsThread, OsThread)> {
        let most = pairs_max(self.threads.len());
        let mut round = Vec::new();
        for (i, j) in wanted {
            let pair = (i.min(j), i.max(j));
            if i != j && self.asked.len() < most && self.asked.insert(pair) {
                round.push((self.threads[pair.0], self.threads[pair.1]));
            }
        }
        round
    }

    fn neighbours(&self) -> Vec<(usize, usize)> {
        let count = self.threads.len();
        if pairs_max(count) == count * count.saturating_sub(1) / 2 {
            return (0..count)
                .flat_map(|j| (0..j).map(move |i| (i, j)))
                .collect();
        }
        let mut pairs = Vec::new();
        for group in &self.claimed {
            for (at, j) in group.iter().enumerate() {
                pairs.extend(group[..at].iter().map(|i| (*i, *j)));
            }
        }
        let up = std::iter::successors(Some(1), |offset| Some(offset * 2));
        let down = std::iter::successors(Some(count / 2), |offset| Some(offset / 2));
        let offsets: BTreeSet<usize> = up
            .take_while(|offset| *offset <= count / 2)
            .chain(down.take_while(|offset| *offset > 0))
            .collect();
        for offset in offsets {
            pairs.extend((0..count).map(|i| (i, (i + offset) % count)));
        }
        pairs
    }

    /// The thread farthest from all landmarks, unless every thread is near one.
    fn next_landmark(&self, latencies: &Latencies) -> Option<usize> {
        let count = self.threads.len();
        let most = pairs_max(count);
        let spent = self.asked.len() + count;
        if spent as f64 > LANDMARK_SHARE * most as f64 || self.landmarks.len() == count {
            return None;
        }
        let tree = Tree::infer(latencies);
        let distance = |thread: usize| {
            let levels = self.landmarks.iter().map(|landmark| {
                tree.level_of(self.threads[thread], self.threads[*landmark])
                    .unwrap_or(0)
            });
            levels.min().unwrap_or(usize::MAX)
        };
        let candidates = (0..count).filter(|i| !self.landmarks.contains(i));
        // The first of the farthest: `max_by_key` would take the last.
        let farthest = candidates.rev().max_by_key(|i| distance(*i))?;
        // Siblings of a landmark's neighbours need no landmark of their own.
        let near = tree.levels.len().saturating_sub(2).min(1);
        (self.landmarks.len() < 2 || distance(farthest) > near).then_some(farthest)
    }

    fn inside(&self, latencies: &Latencies) -> Vec<(usize, usize)> {
        let at: BTreeMap<OsThread, usize> = self.threads.iter().copied().zip(0..).collect();
        let tree = Tree::infer(latencies);
        let mut groups: Vec<Vec<OsThread>> = tree.groups().into_iter().collect();
        groups.retain(|group| group.len() < self.threads.len());
        groups.sort_by_key(|group| (group.len(), group[0]));
        let mut pairs = Vec::new();
        for group in groups {
            let members: Vec<usize> = group.iter().filter_map(|os| at.get(os).copied()).collect();
            for (k, j) in members.iter().enumerate() {
                pairs.extend(members[..k].iter().map(|i| (*i, *j)));
            }
        }
        pairs
    }
}

/// For each thread its nearest threads by the claims, if they are few.
fn smallest_groups(threads: &[OsThread], topology: &Topology) -> Vec<Vec<usize>> {
    const FEW: usize = 8;
    let at = |os: OsThread| threads.binary_search(&os).ok();
    let mut groups: BTreeSet<Vec<usize>> = BTreeSet::new();
    for a in topology.all_threads() {
        let relations = topology.all_threads().map(|b| (topology.relation(a, b), b));
        let mut others: Vec<_> = relations
            .filter(|(relation, _)| relation.closeness != Closeness::Same)
            .collect();
        others.sort_unstable();
        let Some((nearest, _)) = others.first().copied() else {
            continue;
        };
        let near = others.iter().filter(|(relation, _)| *relation == nearest);
        let mut group: Vec<usize> = near
            .map(|(_, b)| *b)
            .chain([a])
            .filter_map(|thread| at(topology.os_thread(thread)))
            .collect();
        group.sort_unstable();
        if group.len() <= FEW {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}
