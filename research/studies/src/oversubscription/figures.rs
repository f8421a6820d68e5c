//! Figures computed from runs.

use hearth_published::oversubscription::{Line, bounds};
use hearth_stats::{Ratio, ratio};

use super::matrix::Partition;
use super::options::Experiment;
use super::plan::{NOBODY, foreign, of_policies};
use super::policies::Policy;
use super::results::Results;

/// Times further than this outside of a bound are outside: noise.
const SLACK: f64 = 0.05;

/// A's threads, with a time between its bounds: the least, the measured one and the largest,
/// seconds.
pub type Within = (usize, f64, f64, f64);

/// The share of times of A with static parts that lie between the model's bounds, by B's threads,
/// with the line that fits the bounds to the times of an idle machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    /// B's threads.
    pub foreign: usize,
    /// Scale and constant.
    pub line: Line,
    /// Its times, by A's threads.
    pub points: Vec<Within>,
}

impl Bounded {
    /// Number of points within the bounds.
    #[must_use]
    pub fn within(&self) -> usize {
        let is_within = |(_, low, time, high): &&Within| {
            (low * (1.0 - SLACK)..=high * (1.0 + SLACK)).contains(time)
        };
        self.points.iter().filter(is_within).count()
    }
}

/// The times of A with static parts beside the model's bounds, on an idle machine and beside B.
#[must_use]
pub fn bounded(results: &Results) -> Vec<Bounded> {
    let cpus = results.cpus();
    let way = Partition::Static.id();
    let curve = |r| results.curve(Experiment::Artifact, (way, r), "seconds");
    // Where no thread shares a CPU both bounds are one.
    let fitted = curve(0).into_iter().filter(|(threads, _)| *threads <= cpus);
    let fitted: Vec<(f64, f64)> = fitted
        .map(|(threads, time)| (1.0 / threads as f64, time))
        .collect();
    let Some(line) = Line::fit(&fitted) else {
        return Vec::new();
    };
    let beside = |r: usize| {
        let point = |(threads, time): (usize, f64)| {
            let (low, high) = bounds(threads as u32, r as u32, cpus as u32);
            (threads, line.time(low), time, line.time(high))
        };
        Bounded {
            foreign: r,
            line,
            points: curve(r).into_iter().map(point).collect(),
        }
    };
    let all = [0, foreign(cpus)].map(beside);
    all.into_iter()
        .filter(|one| !one.points.is_empty())
        .collect()
}

/// B's time beside a policy to its time alone, with B's threads.
#[must_use]
pub fn slowdown(results: &Results, policy: Policy, r: usize) -> Option<Ratio> {
    let runs = |way| results.found(Experiment::Policies, (way, 0, r), "victim_seconds");
    ratio(runs(policy.id())?, runs(NOBODY)?)
}

/// CPUs that B's threads leave, one at least.
#[must_use]
pub fn room(cpus: usize, r: usize) -> usize {
    cpus.saturating_sub(r).max(1)
}

/// A policy's threads to the room that B leaves, beside each number of B's threads.
#[must_use]
pub fn of_room(results: &Results, policy: Policy) -> Vec<(usize, Vec<f64>)> {
    let cpus = results.cpus();
    let beside = |r: usize| {
        let threads = results.found(Experiment::Policies, (policy.id(), 0, r), "threads")?;
        let room = room(cpus, r) as f64;
        Some((r, threads.iter().map(|threads| threads / room).collect()))
    };
    of_policies(cpus).into_iter().filter_map(beside).collect()
}
