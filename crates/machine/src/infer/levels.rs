//! Number of levels in the merges of average linkage, and the end of each.
//!
//! A level is a run of merges: the log latencies of the pairs that meet there follow one normal
//! distribution, with its own mean and a variance that all levels share. More runs always fit
//! better, so the best description wins: for N pairs,
//!
//! ```text
//! (N + ν) ln((R + ν s²) / (N + ν)) + 4 Σ structure + 2 L ln N
//! ```
//!
//! with R the sum of squared residuals, L the number of levels, and for each level the logarithm of
//! the number of ways to divide its groups into the groups below, those of equal size being alike.
//! That structure term keeps the tails of noise from passing for groups: linkage picks the lowest
//! of many pairs, and the term counts how many there were to pick from. The best of w chance
//! divisions gains about 2 ln w; twice that leaves a margin, which true levels exceed by far. (With
//! the bare 2, sixteen threads in four packages with 10 % noise fell apart into lucky pairs in a
//! third of the draws.) ν and s are the prior belief about the noise, which matters for few
//! threads.
//!
//! A first version cut the latencies themselves at gaps (as MCTOP does) and asked whether the
//! groups were consistent. It fails where two levels overlap for single pairs but not for groups.

use std::collections::BTreeMap;

use super::latencies::Latencies;
use super::linkage::{Merge, Sums, groups_after};

/// Prior relative noise: the figure of the project's goal.
const NOISE_EXPECTED: f64 = 0.1;
/// Weight of that prior, in pairs.
const NOISE_WEIGHT: f64 = 4.0;
/// Least ratio of a level to the one below. Smaller differences come from a mesh or ring between
/// pairs of one kind, which form no group.
const RATIO_MIN: f64 = 1.15;
/// Least chance that a pair of the slower level is slower than one of the faster.
const ORDER_MIN: f64 = 0.85;
/// Least difference of two levels' means, in standard errors.
const ERRORS_MIN: f64 = 4.0;
/// Cost of a unit of structure; a level costs this for each unit of ln N.
const STRUCTURE_WEIGHT: f64 = 4.0;
const LEVEL_WEIGHT: f64 = 2.0;
/// Relative noises tried.
const NOISES: [f64; 10] = [0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5];

/// Ends of the runs: the number of merges after which each level is complete. The last is all
/// merges.
pub(super) fn ends(latencies: &Latencies, merges: &[Merge]) -> Vec<usize> {
    if merges.is_empty() {
        return Vec::new();
    }
    let problem = Problem::new(latencies, merges);
    let mut best = (f64::INFINITY, vec![merges.len()]);
    for noise in NOISES {
        let ends = problem.solve(noise);
        let cost = problem.cost(&ends);
        if cost < best.0 {
            best = (cost, ends);
        }
    }
    problem.settle(best.1)
}

struct Problem<'a> {
    latencies: &'a Latencies,
    merges: &'a [Merge],
    /// `before[k]`: the pairs of the first k merges.
    before: Vec<Sums>,
    /// `structure[a][b − a]`: of the level made by merges a to b.
    structure: Vec<Vec<f64>>,
    pairs: f64,
    noise_floor: f64,
}

impl<'a> Problem<'a> {
    fn new(latencies: &'a Latencies, merges: &'a [Merge]) -> Problem<'a> {
        let mut before = vec![Sums::default()];
        for merge in merges {
            before.push(before[before.len() - 1].plus(merge.sums));
        }
        Problem {
            latencies,
            merges,
            pairs: before[merges.len()].count,
            before,
            structure: structure(merges),
            noise_floor: latencies.relative_error().clamp(0.005, 0.5),
        }
    }

    fn level(&self, a: usize, b: usize) -> Sums {
        self.before[b].minus(self.before[a])
    }

    /// The best ends under this noise.
    fn solve(&self, noise: f64) -> Vec<usize> {
        let count = self.merges.len();
        let variance = noise.max(self.noise_floor).powi(2);
        let level_cost = LEVEL_WEIGHT * self.pairs.max(2.0).ln();
        let mut best = vec![(0.0, 0)];
        for b in 1..=count {
            let mut least = (f64::INFINITY, 0);
            for (a, from) in best.iter().enumerate() {
                let residue = self.level(a, b).residue() / variance;
                let cost =
                    from.0 + residue + STRUCTURE_WEIGHT * self.structure[a][b - a] + level_cost;
                if cost < least.0 {
                    least = (cost, a);
                }
            }
            best.push(least);
        }
        let mut ends = vec![count];
        while let Some(a) = ends.last().map(|b| best[*b].1).filter(|a| *a > 0) {
            ends.push(a);
        }
        ends.reverse();
        ends
    }

    /// The measure given in the module's text.
    fn cost(&self, ends: &[usize]) -> f64 {
        let mut residue = 0.0;
        let mut structure = 0.0;
        for (a, b) in runs(ends) {
            residue += self.level(a, b).residue();
            structure += self.structure[a][b - a];
        }
        let pairs = self.pairs + NOISE_WEIGHT;
        let believed = NOISE_WEIGHT * NOISE_EXPECTED.max(self.noise_floor).powi(2);
        pairs * ((residue + believed) / pairs).ln()
            + STRUCTURE_WEIGHT * structure
            + LEVEL_WEIGHT * ends.len() as f64 * self.pairs.max(2.0).ln()
    }

    /// Joins neighbouring levels that are too alike, the most alike first.
    fn settle(&self, mut ends: Vec<usize>) -> Vec<usize> {
        while ends.len() > 1 {
            let runs: Vec<(usize, usize)> = runs(&ends).collect();
            let weakest = (0..runs.len() - 1)
                .map(|i| (self.ratio(runs[i], runs[i + 1]), i))
                .filter(|(_, i)| !self.differ(runs[*i], runs[*i + 1]))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            match weakest {
                Some((_, i)) => _ = ends.remove(i),
                None => break,
            }
        }
        ends
    }

    fn ratio(&self, low: (usize, usize), high: (usize, usize)) -> f64 {
        let (low, high) = (self.level(low.0, low.1), self.level(high.0, high.1));
        high.mean() - low.mean()
    }

    fn differ(&self, low: (usize, usize), high: (usize, usize)) -> bool {
        let (a, b) = (self.level(low.0, low.1), self.level(high.0, high.1));
        if a.count == 0.0 || b.count == 0.0 {
            // Nothing was measured between these groups, so nothing tells them from the rest.
            return false;
        }
        let believed = NOISE_WEIGHT * self.noise_floor.powi(2).max(NOISE_EXPECTED.powi(2) / 4.0);
        let variance = (a.residue() + b.residue() + believed) / (a.count + b.count + NOISE_WEIGHT);
        let error = (variance * (1.0 / a.count + 1.0 / b.count)).sqrt();
        let difference = b.mean() - a.mean();
        difference >= RATIO_MIN.ln()
            && difference >= ERRORS_MIN * error
            && self.order(low, high) >= ORDER_MIN
    }

    /// The chance that, of two pairs with a thread in common, the one of the higher level is
    /// slower. Compared around each thread alone: differences between parts of the machine say
    /// nothing about groups.
    fn order(&self, low: (usize, usize), high: (usize, usize)) -> f64 {
        let count = self.latencies.threads().len();
        let names = |merges: usize| groups_after(&self.merges[..merges], count);
        let (start, middle, end) = (names(low.0), names(low.1), names(high.1));
        let (mut wins, mut games) = (0.0, 0.0);
        for i in 0..count {
            let log = |j: usize| self.latencies.log_at(i, j);
            let meet = |from: &[usize], to: &[usize]| -> Vec<f64> {
                (0..count)
                    .filter(|j| from[i] != from[*j] && to[i] == to[*j])
                    .filter_map(log)
                    .collect()
            };
            let near = meet(&start, &middle);
            let mut far = meet(&middle, &end);
            far.sort_by(f64::total_cmp);
            for value in near {
                let not_above = far.partition_point(|other| *other <= value);
                wins += (far.len() - not_above) as f64;
                games += far.len() as f64;
            }
        }
        if games > 0.0 { wins / games } else { 1.0 }
    }
}

fn runs(ends: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied())
}

/// For each run of merges, the logarithm of the number of ways to divide its groups.
fn structure(merges: &[Merge]) -> Vec<Vec<f64>> {
    let count = merges.len() + 1;
    let factorial: Vec<f64> = std::iter::once(0.0)
        .chain((1..=count).scan(0.0, |log, n| {
            *log += (n as f64).ln();
            Some(*log)
        }))
        .collect();
    let mut sizes = vec![1usize; count];
    let mut table = Vec::with_capacity(merges.len());
    for start in 0..merges.len() {
        // For each group: its size, and how many groups of each size it was made of in this run.
        let mut parts: Vec<(usize, BTreeMap<usize, usize>)> = sizes
            .iter()
            .map(|size| (*size, BTreeMap::from([(*size, 1)])))
            .collect();
        let ways = |(size, parts): &(usize, BTreeMap<usize, usize>)| -> f64 {
            let repeated = parts
                .iter()
                .map(|(part, times)| *times as f64 * factorial[*part] + factorial[*times]);
            factorial[*size] - repeated.sum::<f64>()
        };
        let mut total = 0.0;
        let mut row = vec![0.0];
        for merge in &merges[start..] {
            let second = std::mem::take(&mut parts[merge.second]);
            let first = &mut parts[merge.first];
            total -= ways(first) + ways(&second);
            first.0 += second.0;
            for (size, times) in second.1 {
                *first.1.entry(size).or_default() += times;
            }
            total += ways(first);
            row.push(total);
        }
        table.push(row);
        let merge = &merges[start];
        sizes[merge.first] += sizes[merge.second];
    }
    table
}
