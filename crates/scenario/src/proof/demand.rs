//! Demand of earliest deadlines on one core.
//!
//! Let a job with the absolute deadline `d` end late or in time, and let `s` be the last time
//! before at which the core had no work with a deadline up to `d`. All that it did since is work
//! that arrived in `[s, d)` with such deadlines: at most `h(d - s)`. So the job ends by
//! `s + h(d - s)`, and is late by at most the largest `h(t) - t` over the `t` that its task's
//! deadlines can have.

use crate::model::{CoreId, Model, TaskId};

use super::streams::{Stream, clocked, cores};
use super::{Bound, Reason};

/// Most steps of the demand that are looked at.
const STEPS_MAX: usize = 1_000_000;

/// A task with its deadline and longest time.
type Demand = (Stream, u64, u64);

pub(super) fn bounds(model: &Model, mode: usize) -> Vec<Option<Result<Bound, Reason>>> {
    let cores = cores(model, mode);
    let all = (0..model.tasks.len()).map(TaskId);
    all.map(|id| {
        let exists = model.task(id).is_in(mode);
        exists.then(|| match &cores[id.0] {
            Ok(core) => bound(model, mode, *core, id),
            Err(reason) => Err(reason.clone()),
        })
    })
    .collect()
}

fn bound(model: &Model, mode: usize, core: CoreId, id: TaskId) -> Result<Bound, Reason> {
    let mut demands: Vec<Demand> = Vec::new();
    let mut own = None;
    for (other, task) in model
        .tasks_in(mode)
        .filter(|(_, task)| task.cores[0] == core)
    {
        if let Some((resources, _)) = super::streams::sections(task).first() {
            // Blocking under earliest deadlines is not analysed here.
            let resource = model.resources[resources[0].0].name.clone();
            return Err(Reason::Inversion { resource });
        }
        let stream = clocked(task).ok_or_else(|| Reason::Arrivals {
            task: task.name.clone(),
        })?;
        let demand = (stream, task.deadline_ns.unwrap_or(0), task.duration().to_ns);
        if other == id {
            own = Some(demand);
        }
        demands.push(demand);
    }
    let (stream, deadline_ns, _) = own.ok_or(Reason::Policy)?;
    let from_ns = deadline_ns.saturating_sub(stream.jitter_ns);
    let busy_ns = busy_ns(&demands)?;
    // The demand steps where a deadline lies. Between two steps `h(t) - t` falls.
    let mut lateness_ns = demand(&demands, from_ns) as i64 - from_ns as i64;
    let mut steps = 0;
    for (stream, deadline_ns, _) in &demands {
        let mut due_ns = deadline_ns.saturating_sub(stream.jitter_ns);
        let mut nth = 0;
        while due_ns <= busy_ns + deadline_ns {
            if due_ns >= from_ns {
                let late_ns = demand(&demands, due_ns) as i64 - due_ns as i64;
                lateness_ns = lateness_ns.max(late_ns);
            }
            nth += 1;
            due_ns = (nth * stream.period_ns + deadline_ns).saturating_sub(stream.jitter_ns);
            steps += 1;
            if steps > STEPS_MAX {
                return Err(Reason::Overload);
            }
        }
    }
    Ok(Bound {
        response_ns: Some(lateness_ns.saturating_add_unsigned(deadline_ns).max(0) as u64),
        lateness_ns: Some(lateness_ns),
    })
}

/// `h(t)`: most work that arrives and is due within a time `t`.
fn demand(demands: &[Demand], t_ns: u64) -> u64 {
    let of = |(stream, deadline_ns, duration_ns): &Demand| {
        let within = (t_ns + stream.jitter_ns).checked_sub(*deadline_ns);
        within.map_or(0, |ns| (ns / stream.period_ns + 1) * duration_ns)
    };
    demands.iter().map(of).sum()
}

/// Longest time for which the core is busy: later deadlines are those of another such time.
fn busy_ns(demands: &[Demand]) -> Result<u64, Reason> {
    let used = |(stream, _, ns): &Demand| *ns as f64 / stream.period_ns as f64;
    if demands.iter().map(used).sum::<f64>() > 1.0 + 1e-9 {
        return Err(Reason::Overload);
    }
    let mut busy_ns: u64 = demands.iter().map(|one| one.2).sum();
    for _ in 0..100_000 {
        let of = |(stream, _, duration_ns): &Demand| {
            (busy_ns + stream.jitter_ns)
                .div_ceil(stream.period_ns)
                .saturating_mul(*duration_ns)
        };
        let next_ns = demands.iter().map(of).fold(0, u64::saturating_add);
        if next_ns == busy_ns {
            return Ok(busy_ns);
        }
        if next_ns > 1 << 46 {
            break;
        }
        busy_ns = next_ns;
    }
    Err(Reason::Overload)
}
