//! Bottom-up groups, after TreeMatch's idea: as many groups as slots, of equal size, then groups of
//! groups as the machine nests, each of members that talk most with each other.

use super::{Affinity, grow, levels};
use crate::cost::problem::Problem;
use crate::slots::{CpuSlot, slot_number};

pub(crate) fn grouping_of(problem: &Problem, affinity: &Affinity) -> Vec<CpuSlot> {
    let (count, slots) = (problem.count(), problem.slots());
    let sizes: Vec<usize> = (0..slots)
        .map(|slot| count / slots + usize::from(slot < count % slots))
        .collect();
    let groups = grow(count, &sizes, &|item| affinity.peers(item).to_vec());
    let ordered = arrange(problem, affinity, groups);
    let mut at = vec![CpuSlot(0); count];
    for (slot, group) in ordered.iter().enumerate() {
        for component in group {
            at[*component] = slot_number(slot);
        }
    }
    at
}

/// Orders one group a slot so that groups that talk are near each other: grouped level by level,
/// the last level's groups one after the other.
pub(super) fn arrange(
    problem: &Problem,
    affinity: &Affinity,
    groups: Vec<Vec<usize>>,
) -> Vec<Vec<usize>> {
    let mut group_of = vec![0_u32; problem.count()];
    let mut items: Vec<Vec<usize>> = (0..groups.len()).map(|group| vec![group]).collect();
    let mut below = vec![1; groups.len()];
    for level in levels(problem.machine) {
        for (number, item) in (0..).zip(&items) {
            for component in item.iter().flat_map(|group| &groups[*group]) {
                group_of[*component] = number;
            }
        }
        let peers = |item: usize| -> Vec<(u32, f64)> {
            let components = items[item].iter().flat_map(|group| &groups[*group]);
            let all = components.flat_map(|component| affinity.peers(*component));
            let outside = all.map(|(peer, saved)| (group_of[*peer as usize], *saved));
            outside.filter(|(peer, _)| *peer as usize != item).collect()
        };
        let sizes = arities(&below, &level);
        let grown = grow(items.len(), &sizes, &peers);
        items = grown
            .into_iter()
            .map(|group| group.into_iter().flat_map(|i| items[i].clone()).collect())
            .collect();
        below = level;
    }
    let order = items.into_iter().flatten();
    order.map(|group| groups[group].clone()).collect()
}

/// Number of runs of the level below in each run of a level.
fn arities(below: &[usize], level: &[usize]) -> Vec<usize> {
    let mut rest = below.iter();
    level
        .iter()
        .map(|run| {
            let (mut slots, mut arity) = (0, 0);
            while slots < *run {
                slots += rest.next().copied().unwrap_or(*run);
                arity += 1;
            }
            arity
        })
        .collect()
}
