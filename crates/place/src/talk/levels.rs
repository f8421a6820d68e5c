//! Multilevel placement of large graphs: components that talk are merged until few are left; those
//! are placed, and on the way back each may move a little.

use super::local::{Search, Steps};
use super::{CpuSlot, improve, starts};
use crate::baselines::Affinity;
use crate::cost::problem::Problem;
use crate::cost::state::State;

/// Largest graph that is not merged.
pub(super) const SMALL_MAX: usize = 256;
/// Least share of components that a merge must remove.
const SHRINK_MIN: f64 = 0.1;
/// Largest share of a slot's mean load in one group.
const GROUP_SHARE: f64 = 0.25;
/// Steps to place the merged graph.
const COARSE_STEPS: u64 = 200_000;
/// Steps for each component on the way back.
const BACK_STEPS: u64 = 40;

pub(super) fn multilevel(problem: &Problem, seed: u64) -> Vec<CpuSlot> {
    let goal = SMALL_MAX.max(2 * problem.slots());
    let total: f64 = problem.work.iter().sum();
    let work_max = GROUP_SHARE * total / problem.slots() as f64;
    let mut coarse: Vec<(Vec<u32>, Problem)> = Vec::new();
    loop {
        let finest = coarse.last().map_or(problem, |(_, problem)| problem);
        if finest.count() <= goal {
            break;
        }
        let (groups, count) = pairs(finest, work_max);
        if count as f64 > (1.0 - SHRINK_MIN) * finest.count() as f64 {
            break;
        }
        let smaller = finest.coarsen(&groups, count);
        coarse.push((groups, smaller));
    }
    let coarsest = coarse.last().map_or(problem, |(_, problem)| problem);
    let mut steps = Steps::new(COARSE_STEPS);
    let mut at = improve(coarsest, starts(coarsest), &mut steps, seed);
    for level in (0..coarse.len()).rev() {
        let groups = &coarse[level].0;
        at = groups.iter().map(|group| at[*group as usize]).collect();
        let finer = match level {
            0 => problem,
            _ => &coarse[level - 1].1,
        };
        // The caller improves the whole graph.
        if level > 0 {
            let mut state = State::new(finer, &at);
            let mut steps = Steps::new(BACK_STEPS * finer.count() as u64);
            Search::new(finer, seed).descend(&mut state, &mut steps);
            at = state.placement().to_vec();
        }
    }
    at
}

/// Merges each component with the free one that it saves most with, if both together are small
/// enough; components without peers in pairs, too. Returns each one's group and the number of
/// groups.
fn pairs(problem: &Problem, work_max: f64) -> (Vec<u32>, usize) {
    const FREE: u32 = u32::MAX;
    let affinity = Affinity::of(problem);
    let mut group = vec![FREE; problem.count()];
    let mut count = 0;
    let mut alone: Option<usize> = None;
    let fits = |a: usize, b: usize| {
        let pins = problem.pins[a].is_none() && problem.pins[b].is_none();
        pins && problem.work[a] + problem.work[b] <= work_max.max(f64::MIN_POSITIVE)
    };
    for component in 0..problem.count() {
        if group[component] != FREE {
            continue;
        }
        let peers = affinity.peers(component).iter();
        let free = peers
            .filter(|(peer, _)| group[*peer as usize] == FREE && fits(component, *peer as usize));
        let best = free.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        group[component] = count;
        count += 1;
        if let Some((peer, _)) = best {
            group[*peer as usize] = group[component];
        } else {
            match alone.filter(|other| fits(component, *other)) {
                Some(other) => {
                    count -= 1;
                    group[component] = group[other];
                    alone = None;
                }
                None => alone = Some(component),
            }
        }
    }
    (group, count as usize)
}
