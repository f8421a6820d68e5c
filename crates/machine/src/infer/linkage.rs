//! Average linkage: the nearest two groups merge, again and again.
//!
//! The distance of two groups is the mean log latency of the measured pairs between them. With no
//! pair missing it never falls from one merge to the next. Averages make it robust: a few outlying
//! pairs do not chain groups together, as nearest-pair linkage would.

use super::latencies::Latencies;

/// A merge of two groups.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    /// The lowest positions of both groups, the lower first; it names the union from then on.
    pub(super) first: usize,
    pub(super) second: usize,
    /// The measured pairs between the two groups.
    pub(super) sums: Sums,
}

/// Sums over log latencies, as least squares need them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) squares: f64,
}

impl Sums {
    pub(super) fn of(value: f64) -> Sums {
        Sums {
            count: 1.0,
            sum: value,
            squares: value * value,
        }
    }

    pub(super) fn plus(self, other: Sums) -> Sums {
        Sums {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    pub(super) fn minus(self, other: Sums) -> Sums {
        Sums {
            count: self.count - other.count,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    /// The mean; infinite for no values: groups that nothing connects are farthest.
    pub(super) fn mean(self) -> f64 {
        if self.count > 0.0 {
            self.sum / self.count
        } else {
            f64::INFINITY
        }
    }

    /// The sum of squared deviations from the mean.
    pub(super) fn residue(self) -> f64 {
        if self.count > 0.0 {
            (self.squares - self.sum * self.sum / self.count).max(0.0)
        } else {
            0.0
        }
    }
}

/// The n − 1 merges of n threads, in order.
pub(super) fn merges(latencies: &Latencies) -> Vec<Merge> {
    let count = latencies.threads().len();
    // sums[i * count + j] for groups named i and j.
    let mut sums = vec![Sums::default(); count * count];
    for i in 0..count {
        for j in 0..count {
            sums[i * count + j] = latencies.log_at(i, j).map_or(Sums::default(), Sums::of);
        }
    }
    let mut alive: Vec<usize> = (0..count).collect();
    let mut nearest: Vec<usize> = (0..count)
        .map(|i| nearest_of(i, &alive, &sums, count))
        .collect();
    let mut merges = Vec::with_capacity(count.saturating_sub(1));
    while alive.len() > 1 {
        let distance = |i: usize| sums[i * count + nearest[i]].mean();
        let closest = alive
            .iter()
            .copied()
            .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
            .expect("two groups are left");
        let other = nearest[closest];
        let (first, second) = (closest.min(other), closest.max(other));
        merges.push(Merge {
            first,
            second,
            sums: sums[first * count + second],
        });
        alive.retain(|i| *i != second);
        for k in alive.iter().copied().filter(|k| *k != first) {
            let union = sums[first * count + k].plus(sums[second * count + k]);
            sums[first * count + k] = union;
            sums[k * count + first] = union;
        }
        for k in alive.iter().copied() {
            // A union is no nearer than the nearer of its parts, so only groups whose nearest group
            // is gone, or changed, search again. With pairs missing a union may come nearer.
            let stale = k == first || nearest[k] == first || nearest[k] == second;
            let nearer = || sums[k * count + first].mean() < sums[k * count + nearest[k]].mean();
            if stale || nearer() {
                nearest[k] = nearest_of(k, &alive, &sums, count);
            }
        }
    }
    merges
}

fn nearest_of(i: usize, alive: &[usize], sums: &[Sums], count: usize) -> usize {
    let others = alive.iter().copied().filter(|k| *k != i);
    others
        .min_by(|a, b| {
            let (a, b) = (sums[i * count + a], sums[i * count + b]);
            a.mean().total_cmp(&b.mean())
        })
        .unwrap_or(i)
}

/// The group of each position after the first merges, named by the group's lowest position.
pub(super) fn groups_after(merges: &[Merge], count: usize) -> Vec<usize> {
    let mut name: Vec<usize> = (0..count).collect();
    // The last merges know the final names, so each name is followed once.
    for merge in merges {
        name[merge.second] = merge.first;
    }
    for i in 0..count {
        // A name is never above the position it names, and lower ones are final.
        name[i] = name[name[i]];
    }
    name
}
