//! Recursive bisection: halves the slots at the machine's nearest border, and the components by
//! their work so that little communication crosses.

use super::{Affinity, levels};
use crate::cost::problem::Problem;
use crate::slots::{CpuSlot, slot_number};

/// Sweeps that improve a cut.
const SWEEPS: usize = 4;
/// Largest deviation of a half from its share of the work.
const SLACK: f64 = 0.05;

pub(crate) fn bisection_of(problem: &Problem, affinity: &Affinity) -> Vec<CpuSlot> {
    let works: f64 = problem.work.iter().sum();
    let bisection = Bisection {
        affinity,
        load: match works > 0.0 {
            true => problem.work.clone(),
            false => vec![1.0; problem.count()],
        },
        borders: borders(problem),
    };
    let mut at = vec![CpuSlot(0); problem.count()];
    let mut side = vec![0; problem.count()];
    let all: Vec<usize> = (0..problem.count()).collect();
    let mut rest = vec![(0, problem.slots(), all)];
    let mut next_side = 1;
    while let Some((first, end, components)) = rest.pop() {
        if components.is_empty() {
            continue;
        }
        if end - first == 1 {
            components.iter().for_each(|c| at[*c] = slot_number(first));
            continue;
        }
        let middle = bisection.middle(first, end);
        let share = (middle - first) as f64 / (end - first) as f64;
        next_side += 2;
        let (low, high) = bisection.cut(components, share, &mut side, next_side);
        rest.push((middle, end, high));
        rest.push((first, middle, low));
    }
    at
}

/// Number of levels with a border before each position in the slots.
fn borders(problem: &Problem) -> Vec<usize> {
    let mut borders = vec![0; problem.slots() + 1];
    for level in levels(problem.machine) {
        let mut at = 0;
        for run in level {
            at += run;
            borders[at] += 1;
        }
    }
    borders
}

struct Bisection<'a> {
    affinity: &'a Affinity,
    load: Vec<f64>,
    borders: Vec<usize>,
}

impl Bisection<'_> {
    /// The strongest border inside the range; of several, the one nearest to the middle.
    fn middle(&self, first: usize, end: usize) -> usize {
        let off = |at: usize| (2 * at).abs_diff(first + end);
        let inside = first + 1..end;
        inside
            .max_by(|a, b| {
                let (a_off, b_off) = (off(*a), off(*b));
                self.borders[*a]
                    .cmp(&self.borders[*b])
                    .then(b_off.cmp(&a_off))
            })
            .unwrap_or(first + 1)
    }

    /// Divides components in two, the first part with `share` of the load. `side` says which part
    /// each is in, by numbers that no other cut uses.
    fn cut(
        &self,
        components: Vec<usize>,
        share: f64,
        side: &mut [usize],
        number: usize,
    ) -> (Vec<usize>, Vec<usize>) {
        let (low, high) = (number, number + 1);
        components.iter().for_each(|c| side[*c] = high);
        let total: f64 = components.iter().map(|c| self.load[*c]).sum();
        let target = total * share;
        let mut filled = self.grow(&components, target, side, low);
        for _ in 0..SWEEPS {
            let mut changed = false;
            for component in &components {
                let here = side[*component];
                let gain: f64 = self
                    .affinity
                    .peers(*component)
                    .iter()
                    .map(|(peer, saved)| match side[*peer as usize] {
                        s if s == here => -saved,
                        s if s == low || s == high => *saved,
                        _ => 0.0,
                    })
                    .sum();
                let load = self.load[*component];
                let after = filled + if here == low { -load } else { load };
                let fits = (after - target).abs() <= (filled - target).abs().max(SLACK * total);
                if gain > 0.0 && fits {
                    side[*component] = low + high - here;
                    filled = after;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        components.into_iter().partition(|c| side[*c] == low)
    }

    /// Grows the first half from the component that talks least, adding the one that talks most
    /// with it.
    fn grow(&self, components: &[usize], target: f64, side: &mut [usize], low: usize) -> f64 {
        let mut pull: Vec<f64> = vec![0.0; components.len()];
        let place: std::collections::HashMap<usize, usize> = components
            .iter()
            .enumerate()
            .map(|(i, c)| (*c, i))
            .collect();
        for (at, component) in components.iter().enumerate() {
            // Begin with the component that talks least: the smallest negative pull.
            pull[at] = -1e-9 * self.affinity.total(*component);
        }
        let mut filled = 0.0;
        loop {
            let free = (0..components.len()).filter(|at| side[components[*at]] != low);
            let best = free.reduce(|best, at| if pull[at] > pull[best] { at } else { best });
            let Some(at) = best else { return filled };
            let component = components[at];
            if filled + self.load[component] / 2.0 > target {
                return filled;
            }
            side[component] = low;
            filled += self.load[component];
            for (peer, saved) in self.affinity.peers(component) {
                if let Some(at) = place.get(&(*peer as usize)) {
                    pull[*at] += saved;
                }
            }
        }
    }
}
