//! Lower bounds: numbers of cores and units that no valid mapping undercuts, and the least goal.
//!
//! Work: the sum of all components' shares in the mode with the most, where fast memory holds only
//! as much as there is of it (Lagrange's multipliers). Cores: a component takes at least its least
//! share of any core, in each of its modes. For each mode, and for all components as well as for
//! those of each safety level that must not share a core with another, Martello and Toth's bound
//! L2 (1990) says how many cores they fill. Units: the fewest, taken from the largest on, that have
//! so many cores, so much memory and so many cores in lock-step, and one for each component of a
//! set that must be apart.

use super::problem::{NEVER, Problem};
use crate::model::{Asil, By, LockStep};

/// Numbers that no valid mapping undercuts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Least {
    pub(crate) units: usize,
    pub(crate) cores: usize,
    pub(crate) goal: f64,
}

/// Bounds; those of cores and the goal for mappings of at most `units_max` units.
pub(crate) fn least(problem: &Problem, units_max: usize) -> Least {
    let (filled, locked) = cores(problem);
    let units = units(problem, filled, locked);
    let work = work(problem, units_max.max(units)).div_ceil(problem.core_max.max(1));
    let cores = filled
        .max(units)
        .max(usize::try_from(work).unwrap_or(usize::MAX));
    // A configurable pair counts as two cores, one of which does no work.
    let always = problem.system.cores.iter();
    let always = always
        .filter(|core| core.lockstep == LockStep::Always)
        .count();
    Least {
        units,
        cores: cores + locked.saturating_sub(always),
        goal: goal(problem, units),
    }
}

/// Least parts of cores that all components take in the mode with the most, if `units` units give
/// their memory: fast memory is small.
fn work(problem: &Problem, units: usize) -> u64 {
    let capacity = capacity(problem, units);
    let modes = (0..problem.modes).map(|mode| {
        let all = 0..problem.count();
        let active: Vec<usize> = all.filter(|at| problem.is_active(*at, mode)).collect();
        priced(problem, &active, &capacity).0
    });
    modes.fold(0.0, f64::max) as u64
}

/// Prices of bytes by kind of memory if `units` units give their memory.
pub(crate) fn prices(problem: &Problem, units: usize) -> Vec<f64> {
    let all: Vec<usize> = (0..problem.count()).collect();
    priced(problem, &all, &capacity(problem, units)).1
}

/// Bytes of each kind of memory in the units that have most of it.
fn capacity(problem: &Problem, units: usize) -> Vec<u64> {
    let system = problem.system;
    let kinds = 0..problem.prices.len();
    let of_kind = |kind: usize| {
        let mut sizes: Vec<u64> = (system.units.iter())
            .map(|unit| {
                let own = unit.memories.iter();
                let own = own.filter(|one| problem.memory_kind(**one) == kind);
                own.map(|one| system.memories[*one].bytes).sum()
            })
            .collect();
        sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
        sizes.iter().take(units).sum()
    };
    kinds.map(of_kind).collect()
}

/// Least sum of parts of components that share so many bytes of each kind of memory, by Lagrange's
/// multipliers: any prices p give the bound
///
/// ```text
/// Σ_c min_k (parts(c, k) + p_k · bytes(c)) - Σ_k p_k · capacity(k)
/// ```
///
/// which is concave in each price; the best ones are searched for one after the other.
fn priced(problem: &Problem, components: &[usize], capacity: &[u64]) -> (f64, Vec<f64>) {
    const ROUNDS: usize = 3;
    const HALVINGS: usize = 40;
    let mut prices = vec![0.0; capacity.len()];
    let value = |prices: &[f64]| {
        let each = components.iter().map(|at| {
            let bytes = problem.system.components[*at].bytes as f64;
            let kinds = problem.least_by_memory[*at].iter().zip(prices);
            let kinds = kinds.map(|(parts, price)| *parts as f64 + price * bytes);
            kinds.fold(f64::INFINITY, f64::min)
        });
        let given = prices
            .iter()
            .zip(capacity)
            .map(|(price, bytes)| price * *bytes as f64);
        each.sum::<f64>() - given.sum::<f64>()
    };
    // A byte saves at most all of a component's difference between memories.
    let most = components.iter().map(|at| {
        let kinds = problem.least_by_memory[*at]
            .iter()
            .filter(|parts| **parts < NEVER);
        let (low, high) = kinds.fold((NEVER, 0), |(low, high), parts| {
            (low.min(*parts), high.max(*parts))
        });
        let bytes = problem.system.components[*at].bytes.max(1);
        high.saturating_sub(low) as f64 / bytes as f64
    });
    let most = most.fold(0.0, f64::max);
    let mut best = value(&prices);
    if capacity.len() < 2 || most == 0.0 {
        return (best, prices);
    }
    for _ in 0..ROUNDS {
        for kind in 0..prices.len() {
            let (mut low, mut high) = (0.0, most);
            let mut trial = prices.clone();
            for _ in 0..HALVINGS {
                let third = (high - low) / 3.0;
                trial[kind] = low + third;
                let left = value(&trial);
                trial[kind] = high - third;
                if left < value(&trial) {
                    low += third;
                } else {
                    high -= third;
                }
            }
            trial[kind] = f64::midpoint(low, high);
            let found = value(&trial);
            if found > best {
                (best, prices) = (found, trial);
            }
        }
    }
    (best, prices)
}

/// Cores that work, and those of them in lock-step.
fn cores(problem: &Problem) -> (usize, usize) {
    let of = |keep: &dyn Fn(Asil) -> bool| {
        let modes = 0..problem.modes;
        let filled = modes.map(|mode| {
            let all = 0..problem.count();
            let active = all.filter(|at| problem.is_active(*at, mode));
            let kept = active.filter(|at| keep(problem.system.components[*at].asil));
            let sizes = kept.map(|at| problem.least[at]).collect();
            bins(sizes, problem.core_max)
        });
        filled.max().unwrap_or(0)
    };
    let some = |level: Asil| {
        problem
            .system
            .components
            .iter()
            .any(|one| one.asil == level)
    };
    let of_level = |level: Asil| of(&|other| other == level).max(usize::from(some(level)));
    // Levels that are further apart than the rule allows never share a core.
    let steps = problem.system.rules.mixing.steps_max() + 1;
    let spread = (0..steps).map(|first| {
        let levels = Asil::ALL.iter().skip(first).step_by(steps);
        levels.map(|level| of_level(*level)).sum::<usize>()
    });
    let spread = spread.max().unwrap_or(0);
    (of(&|_| true).max(spread).max(1), of_level(Asil::D))
}

/// Bins that items need at least.
fn bins(mut sizes: Vec<u64>, capacity: u64) -> usize {
    sizes.sort_unstable();
    let mut after: Vec<u128> = vec![0; sizes.len() + 1];
    for (at, size) in sizes.iter().enumerate().rev() {
        after[at] = after[at + 1] + u128::from(*size);
    }
    let capacity_wide = u128::from(capacity.max(1));
    let mut best = after[0].div_ceil(capacity_wide);
    let half = sizes.partition_point(|size| *size <= capacity / 2);
    // For each threshold t: items above c - t are alone; items above c / 2 have a bin each; items
    // from t on fill what those leave.
    for at in 0..half {
        let threshold = sizes[at];
        let alone = sizes.partition_point(|size| *size <= capacity - threshold);
        let large = (alone - half) as u128;
        let small = after[at] - after[half];
        let room = large * capacity_wide - (after[half] - after[alone]);
        let more = small.saturating_sub(room).div_ceil(capacity_wide);
        best = best.max((sizes.len() - alone) as u128 + large + more);
    }
    best = best.max((sizes.len() - half) as u128);
    usize::try_from(best).unwrap_or(usize::MAX)
}

/// The fewest units, largest first, whose sum reaches what is needed; all and one if they do not.
fn fewest(mut sizes: Vec<u64>, needed: u64) -> usize {
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    let mut sum = 0_u64;
    for (count, size) in sizes.iter().enumerate() {
        if sum >= needed {
            return count;
        }
        sum = sum.saturating_add(*size);
    }
    sizes.len() + usize::from(sum < needed)
}

fn units(problem: &Problem, cores: usize, locked: usize) -> usize {
    let system = problem.system;
    let each =
        |size: &dyn Fn(usize) -> u64| -> Vec<u64> { (0..system.units.len()).map(size).collect() };
    let number = |unit: usize, is: &dyn Fn(LockStep) -> bool| {
        let cores = system.units[unit].cores.iter();
        cores
            .filter(|core| is(system.cores[**core].lockstep))
            .count() as u64
    };
    let bytes = system.components.iter().map(|one| one.bytes).sum();
    let memory = each(&|unit| {
        let memories = system.units[unit].memories.iter();
        memories.map(|one| system.memories[*one].bytes).sum()
    });
    let lockable = each(&|unit| number(unit, &|lockstep| lockstep != LockStep::No));
    // Pairs in lock-step give up a core: with n units, at least those beyond their fixed ones.
    let all = each(&|unit| number(unit, &|_| true));
    let always = each(&|unit| number(unit, &|lockstep| lockstep == LockStep::Always));
    let largest = |sizes: &[u64], count: usize| {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
        sizes.iter().take(count).sum::<u64>()
    };
    let by_cores = (1..=system.units.len()).find(|count| {
        let given_up = (locked as u64).saturating_sub(largest(&always, *count));
        let there = largest(&all, *count).saturating_sub(given_up);
        there >= cores as u64 && there.saturating_mul(problem.core_max) >= work(problem, *count)
    });
    let apart = system.apart.iter().filter(|apart| apart.by == By::Unit);
    let apart = apart.map(|apart| apart.components.len()).max().unwrap_or(0);
    fewest(memory, bytes)
        .max(fewest(lockable, locked as u64))
        .max(by_cores.unwrap_or(system.units.len()))
        .max(apart)
        .max(disjoint(problem))
        .max(1)
}

/// Components whose possible units have none in common: each needs one of its own.
fn disjoint(problem: &Problem) -> usize {
    let system = problem.system;
    let mut sets: Vec<Vec<usize>> = (problem.candidates.iter())
        .map(|cores| {
            let mut units: Vec<usize> = cores
                .iter()
                .map(|core| system.cores[*core as usize].unit)
                .collect();
            units.dedup();
            units
        })
        .collect();
    sets.sort_by_key(Vec::len);
    let mut taken = vec![false; system.units.len()];
    let mut count = 0;
    for units in sets {
        if units.iter().all(|unit| !taken[*unit]) {
            units.iter().for_each(|unit| taken[*unit] = true);
            count += 1;
        }
    }
    count
}

/// The least goal: each point wired once from the nearest unit, each unit's own cable, cost and
/// power at the least, each component at its least power; no traffic and no mixing.
fn goal(problem: &Problem, units: usize) -> f64 {
    let system = problem.system;
    let smallest = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.iter().take(units).sum::<f64>()
    };
    let each =
        |value: &dyn Fn(usize) -> f64| smallest((0..system.units.len()).map(value).collect());
    let mut is_wired = vec![false; system.points.len()];
    for component in &system.components {
        component
            .points
            .iter()
            .for_each(|point| is_wired[*point] = true);
    }
    let cables = (0..system.points.len())
        .filter(|point| is_wired[*point])
        .map(|point| {
            let from = (0..system.units.len()).map(|unit| problem.cable_m(unit, point));
            from.fold(f64::INFINITY, f64::min)
        });
    let cabling = cables.sum::<f64>() + each(&|unit| system.units[unit].cable_m);
    let awake = (0..problem.modes).map(|mode| {
        let is_active = (0..problem.count()).any(|at| problem.is_active(at, mode));
        let more = system
            .units
            .iter()
            .map(|unit| unit.power_w[mode] - unit.sleep_w);
        let least = more.fold(f64::INFINITY, f64::min);
        // At least one unit is awake; waking may save nothing below sleep, so it counts as is.
        match is_active {
            true => problem.shares[mode] * least.min(least * units as f64),
            false => 0.0,
        }
    });
    let energy = awake.sum::<f64>()
        + each(&|unit| system.units[unit].sleep_w)
        + problem.least_w.iter().sum::<f64>();
    let weights = &problem.weights;
    weights.cabling * cabling
        + weights.energy * energy
        + weights.cost * each(&|unit| system.units[unit].cost)
}

/// Free parts of a set of cores in each mode, against what is still to be placed: cores that are
/// needed beyond them.
pub(crate) fn beyond(needed: u64, free: u64, each: u64) -> usize {
    let more = needed.saturating_sub(free);
    usize::try_from(more.div_ceil(each.max(1))).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{bins, fewest};

    /// The fewest bins by trying everything.
    fn fewest_bins(sizes: &[u64], capacity: u64, used: &mut Vec<u64>, best: &mut usize) {
        let Some((size, rest)) = sizes.split_first() else {
            *best = used.len().min(*best);
            return;
        };
        if used.len() >= *best {
            return;
        }
        for at in 0..used.len() {
            if used[at] + size <= capacity {
                used[at] += size;
                fewest_bins(rest, capacity, used, best);
                used[at] -= size;
            }
        }
        used.push(*size);
        fewest_bins(rest, capacity, used, best);
        used.pop();
    }

    #[test]
    fn bins_are_never_more_than_needed() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut tight = 0;
        for _ in 0..500 {
            let sizes: Vec<u64> = (0..random.usize(1..9))
                .map(|_| random.u64(1..=20))
                .collect();
            let mut best = usize::MAX;
            fewest_bins(&sizes, 20, &mut Vec::new(), &mut best);
            let bound = bins(sizes.clone(), 20);
            assert!(bound <= best, "{sizes:?}: {bound} and {best}");
            tight += usize::from(bound == best);
        }
        assert!(tight > 450, "{tight} of 500");
    }

    #[test]
    fn the_fewest_units_that_are_large_enough() {
        assert_eq!(fewest(vec![2, 3, 3], 6), 2);
        assert_eq!(fewest(vec![2, 3, 3], 0), 0);
        assert_eq!(fewest(vec![2], 6), 2);
    }
}
