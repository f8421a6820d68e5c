//! Task sets after published statistics of cars.
//!
//! Kramer, Ziegenbein and Hamann (2015) give the share of an engine control's functions by period;
//! the rest follows the crankshaft. The statistics say nothing of a set's load, offsets and
//! deadlines, so those are parameters here, or said below.

use crate::model::{
    Arrival, CoreId, Model, Policy, Range, Scheduler, Scope, Step, TIME_NS_MAX, Task,
};
use crate::proof::{Bound, bounds};

/// Periods in milliseconds with their shares in percent.
const PERIODS: [(u64, u32); 9] = [
    (1, 3),
    (2, 2),
    (5, 2),
    (10, 25),
    (20, 25),
    (50, 3),
    (100, 20),
    (200, 1),
    (1000, 4),
];
/// Share of tasks that follow the crankshaft, in percent.
const CRANKSHAFT: u32 = 15;
/// Distance between two arrivals of such a task: half a turn at 6000 down to 1500 turns a minute.
const HALF_TURN: Range = Range {
    from_ns: 5_000_000,
    to_ns: 20_000_000,
};
/// Unit of all times, 10 µs.
const UNIT_NS: u64 = 10_000;

/// Parameters of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automotive {
    /// Number of tasks, above 0.
    pub tasks: usize,
    /// Number of cores, above 0, to which tasks are dealt in turn.
    pub cores: usize,
    /// Load of a core if all jobs are as long and as dense as can be, in thousandths.
    pub load_permille: u64,
    /// Horizon in nanoseconds.
    pub horizon_ns: u64,
    /// Share of a task's longest response, by analysis, from which on its deadline lies, in
    /// thousandths: its deadline is between that and the response. None for deadlines that are
    /// periods, which make the shortest task the latest in most sets.
    pub tight_permille: Option<u64>,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Automotive {
    /// A set with these parameters.
    ///
    /// Fixed priorities with preemption, the shorter period first. Offsets
    /// are open up to a period or a quarter of the horizon, jitters are up to a tenth of a period,
    /// and jobs take from half of their longest time on. Loads are dealt out uniformly (UUniFast).
    pub fn model(&self) -> Model {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let count = self.tasks.max(1);
        let cores = self.cores.max(1);
        let horizon_ns = self.horizon_ns.clamp(UNIT_NS, TIME_NS_MAX);
        let mut loads = vec![0.0; count];
        for core in 0..cores {
            let own: Vec<usize> = (core..count).step_by(cores).collect();
            let mut rest = self.load_permille as f64 / 1000.0;
            for (nth, task) in own.iter().enumerate() {
                let left = (own.len() - nth - 1) as f64;
                let next = match left > 0.0 {
                    true => rest * random.f64().powf(1.0 / left),
                    false => 0.0,
                };
                loads[*task] = rest - next;
                rest = next;
            }
        }
        let in_units = |ns: f64| ((ns / UNIT_NS as f64) as u64).max(1) * UNIT_NS;
        let mut tasks = Vec::new();
        for (nth, load) in loads.iter().enumerate() {
            let (arrival, period_ns) = arrival(&mut random, horizon_ns);
            let longest_ns = in_units(load * period_ns as f64).min(period_ns);
            let duration = Range {
                from_ns: in_units(longest_ns as f64 / 2.0).min(longest_ns),
                to_ns: longest_ns,
            };
            tasks.push(Task {
                name: format!("task{nth}"),
                arrival,
                steps: vec![Step::Run(duration)],
                deadline_ns: Some(period_ns),
                priority: 0,
                weight: 1024,
                cores: vec![CoreId(nth % cores)],
                modes: Vec::new(),
            });
        }
        // Rate-monotonic, each with a priority of its own: the first of equal ones goes first.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|nth| tasks[*nth].deadline_ns);
        for (place, nth) in order.into_iter().rev().enumerate() {
            tasks[nth].priority = u32::try_from(place + 1).unwrap_or(u32::MAX);
        }
        let mut model = Model {
            horizon_ns,
            window_ns: horizon_ns.min(10_000_000),
            scheduler: Scheduler {
                policy: Policy::FixedPriority { preemptive: true },
                scope: Scope::Partitioned,
            },
            modes: vec![String::new()],
            cores: (0..cores).map(|nth| format!("core{nth}")).collect(),
            resources: Vec::new(),
            queues: Vec::new(),
            tasks,
        };
        if let Some(least) = self.tight_permille {
            for (nth, bound) in bounds(&model, 0).into_iter().enumerate() {
                let share = random.u64(least.min(1000)..=1000);
                if let Some(Ok(Bound {
                    response_ns: Some(ns),
                    ..
                })) = bound
                {
                    model.tasks[nth].deadline_ns =
                        Some(in_units(ns as f64 * share as f64 / 1000.0));
                }
            }
        }
        model
    }
}

/// An arrival after the published shares, with the shortest distance of two jobs.
fn arrival(random: &mut fastrand::Rng, horizon_ns: u64) -> (Arrival, u64) {
    let total: u32 = PERIODS.iter().map(|one| one.1).sum::<u32>() + CRANKSHAFT;
    let mut draw = random.u32(0..total);
    for (period_ms, share) in PERIODS {
        if draw < share {
            let period_ns = period_ms * 1_000_000;
            let latest_ns = period_ns.min(horizon_ns / 4) / UNIT_NS * UNIT_NS;
            let arrival = Arrival::Periodic {
                period_ns,
                offset: Range::between(0, latest_ns),
                jitter_ns: random.u64(0..=period_ns / 10 / UNIT_NS) * UNIT_NS,
            };
            return (arrival, period_ns);
        }
        draw -= share;
    }
    let arrival = Arrival::Sporadic {
        between: HALF_TURN,
        first: Range::between(0, HALF_TURN.to_ns),
    };
    (arrival, HALF_TURN.from_ns)
}
