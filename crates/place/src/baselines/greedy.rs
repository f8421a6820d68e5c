//! Greedy groups that know loads, after EagerMap's idea: the free component that talks most opens a
//! group, and the ones that talk most with the group join until it has its share of the work.

use super::Affinity;
use super::grouping::arrange;
use crate::cost::problem::Problem;
use crate::slots::{CpuSlot, slot_number};

pub(crate) fn greedy_of(problem: &Problem, affinity: &Affinity) -> Vec<CpuSlot> {
    let (count, slots) = (problem.count(), problem.slots());
    let works: f64 = problem.work.iter().sum();
    // Without work, balance numbers of components.
    let load = |component: usize| match works > 0.0 {
        true => problem.work[component],
        false => 1.0,
    };
    let total = if works > 0.0 { works } else { count as f64 };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| {
        affinity
            .total(*b)
            .total_cmp(&affinity.total(*a))
            .then(a.cmp(b))
    });
    let mut is_free = vec![true; count];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut pull = vec![0.0; count];
    let mut left = total;
    for group in 0..slots {
        let room = left / (slots - group) as f64;
        let (mut members, mut filled) = (Vec::new(), 0.0);
        pull.fill(0.0);
        loop {
            let free = order.iter().copied().filter(|c| is_free[*c]);
            let best = free.reduce(|best, c| if pull[c] > pull[best] { c } else { best });
            let Some(component) = best else { break };
            let last = group + 1 == slots;
            if !members.is_empty() && !last && filled + load(component) / 2.0 > room {
                break;
            }
            is_free[component] = false;
            filled += load(component);
            for (peer, saved) in affinity.peers(component) {
                pull[*peer as usize] += saved;
            }
            members.push(component);
        }
        left -= filled;
        groups.push(members);
    }
    let mut at = vec![CpuSlot(0); count];
    for (slot, group) in arrange(problem, affinity, groups).iter().enumerate() {
        for component in group {
            at[*component] = slot_number(slot);
        }
    }
    at
}
