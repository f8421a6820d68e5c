//! Response times of fixed priorities on one core.
//!
//! The analysis of busy periods with arbitrary deadlines (Lehoczky 1990), jitter and chains between
//! cores (Tindell and Clark 1994), and without preemption in its corrected form (Davis, Burns, Bril
//! and Lukkien 2007). Tasks of equal priority count as more urgent ones: among them the scheduler
//! goes by arrival, so each may wait for each.
//!
//! For the job `q` of a busy period, with `C` the longest time, `B` the blocking and the sum over
//! more urgent tasks `j`:
//!
//! ```text
//! with preemption     w = B + (q + 1) C + Σ ceil((w + J_j) / T_j) C_j
//! without             s = B + q C + Σ (floor((s + J_j) / T_j) + 1) C_j,   w = s + C
//! response            w - (q T - J)
//! ```

use crate::model::{Arrival, CoreId, Model, Protocol, ResourceId, Step, TaskId};

use super::streams::{Stream, clocked, cores, parent, sections};
use super::{Bound, Reason, locks_in_order};

/// Most rounds of a fixed point before it counts as overload.
const ROUNDS_MAX: usize = 10_000;
/// Most jobs of a task in a busy period before it counts as overload.
const JOBS_MAX: u64 = 2_000;
/// Longest busy period: many times what a model may say.
const BUSY_NS_MAX: u64 = 1 << 46;

struct Analysis<'a> {
    model: &'a Model,
    mode: usize,
    preemptive: bool,
    /// Tasks of each core, in this mode.
    on_core: Vec<Vec<TaskId>>,
    streams: Vec<Option<Stream>>,
    /// Latest end of a job behind its chain's nominal arrival.
    late_ns: Vec<u64>,
}

pub(super) fn bounds(
    model: &Model,
    mode: usize,
    preemptive: bool,
) -> Vec<Option<Result<Bound, Reason>>> {
    let mut on_core = vec![Vec::new(); model.cores.len()];
    let mut wrong: Vec<Option<Reason>> = vec![None; model.tasks.len()];
    let mut absent: Vec<bool> = model.tasks.iter().map(|task| !task.is_in(mode)).collect();
    for (nth, core) in cores(model, mode).into_iter().enumerate() {
        match core {
            _ if absent[nth] => {}
            Ok(core) => on_core[core.0].push(TaskId(nth)),
            Err(reason) => wrong[nth] = Some(reason),
        }
    }
    let mut analysis = Analysis {
        model,
        mode,
        preemptive,
        on_core,
        streams: model.tasks.iter().map(clocked).collect(),
        late_ns: model
            .tasks
            .iter()
            .map(|task| task.duration().to_ns)
            .collect(),
    };
    let mut responses: Vec<Option<Result<u64, Reason>>> = vec![None; model.tasks.len()];
    // Jitters of chains grow with responses, and those with jitters: the least fixed point, from
    // below. Each round is monotone, so a bound that is reached twice is one.
    for round in 0.. {
        let is_still = analysis.chain(&mut wrong, &mut absent);
        let before = responses.clone();
        for nth in 0..model.tasks.len() {
            responses[nth] = match &wrong[nth] {
                _ if absent[nth] => None,
                Some(reason) => Some(Err(reason.clone())),
                None => Some(analysis.of(TaskId(nth))),
            };
        }
        if is_still && before == responses {
            break;
        }
        if round > ROUNDS_MAX {
            for response in responses.iter_mut().flatten() {
                *response = Err(Reason::Overload);
            }
            break;
        }
    }
    let bound = |(nth, response): (usize, Option<Result<u64, Reason>>)| {
        let deadline_ns = model.tasks[nth].deadline_ns;
        response.map(|response| {
            response.map(|response_ns| Bound {
                response_ns: Some(response_ns),
                lateness_ns: deadline_ns.map(|ns| response_ns as i64 - ns as i64),
            })
        })
    };
    responses.into_iter().enumerate().map(bound).collect()
}

impl Analysis<'_> {
    /// Streams of tasks that others make arrive. Whether nothing changed.
    fn chain(&mut self, wrong: &mut [Option<Reason>], absent: &mut [bool]) -> bool {
        let mut is_still = true;
        for nth in 0..self.model.tasks.len() {
            if absent[nth] || self.model.tasks[nth].arrival_is_clocked() {
                continue;
            }
            let (parent, least_ns) = match parent(self.model, self.mode, TaskId(nth)) {
                Ok(Some(parent)) => parent,
                Ok(None) => continue,
                Err(reason) => {
                    is_still &= self.spoil(TaskId(nth), &reason, wrong);
                    continue;
                }
            };
            if absent[parent.0] {
                // It never arrives, so it is no burden to its core.
                absent[nth] = true;
                self.on_core
                    .iter_mut()
                    .for_each(|tasks| tasks.retain(|id| id.0 != nth));
                is_still = false;
                continue;
            }
            if let Some(reason) = wrong[parent.0].clone() {
                is_still &= self.spoil(TaskId(nth), &reason, wrong);
                continue;
            }
            let Some(of_parent) = self.streams[parent.0] else {
                is_still = false;
                continue;
            };
            let delay = match self.model.tasks[nth].arrival {
                Arrival::After { delay, .. } | Arrival::OnPush { delay, .. } => delay,
                _ => continue,
            };
            let early_ns = of_parent.early_ns + least_ns + delay.from_ns;
            let late_ns = self.late_ns[parent.0] + delay.to_ns;
            let stream = Some(Stream {
                period_ns: of_parent.period_ns,
                jitter_ns: late_ns - early_ns.min(late_ns),
                early_ns,
                is_clocked: false,
            });
            is_still &= self.streams[nth] == stream;
            self.streams[nth] = stream;
        }
        is_still
    }

    /// Gives up a core. Whether that had been done already.
    fn spoil(&self, id: TaskId, reason: &Reason, wrong: &mut [Option<Reason>]) -> bool {
        let mut is_still = wrong[id.0].is_some();
        wrong[id.0].get_or_insert_with(|| reason.clone());
        for other in &self.on_core[self.core(id).0] {
            is_still &= wrong[other.0].is_some();
            wrong[other.0].get_or_insert_with(|| reason.clone());
        }
        is_still
    }

    fn core(&self, id: TaskId) -> CoreId {
        self.model.task(id).cores[0]
    }

    fn longest_ns(&self, id: TaskId) -> u64 {
        self.model.task(id).duration().to_ns
    }

    /// Longest time from the nominal arrival of a job to its end.
    fn of(&mut self, id: TaskId) -> Result<u64, Reason> {
        let own = self.streams[id.0].ok_or(Reason::Overload)?;
        let blocking_ns = self.blocking_ns(id)?;
        let mine = self.model.task(id).priority;
        let mut others = Vec::new();
        for &other in &self.on_core[self.core(id).0] {
            if other != id && self.model.task(other).priority >= mine {
                let stream = self.streams[other.0].ok_or(Reason::Overload)?;
                others.push((stream, self.longest_ns(other)));
            }
        }
        let duration_ns = self.longest_ns(id);
        // More than all of the core: there is no fixed point, and no use in looking for it.
        let used = |stream: &Stream, ns: u64| ns as f64 / stream.period_ns as f64;
        let of_others: f64 = others.iter().map(|(stream, ns)| used(stream, *ns)).sum();
        if of_others + used(&own, duration_ns) > 1.0 + 1e-9 {
            return Err(Reason::Overload);
        }
        let (mut response_ns, mut late_ns) = (0, 0);
        for q in 0..JOBS_MAX {
            let end_ns = match self.preemptive {
                true => fixed_point(blocking_ns + (q + 1) * duration_ns, &others, arrived)?,
                false => {
                    let start_ns = fixed_point(blocking_ns + q * duration_ns, &others, begun)?;
                    start_ns + duration_ns
                }
            };
            let due_ns = q * own.period_ns;
            let behind_nominal = (end_ns + own.jitter_ns).saturating_sub(due_ns);
            let behind_arrival = end_ns.saturating_sub(due_ns.saturating_sub(own.jitter_ns));
            late_ns = late_ns.max(behind_nominal);
            response_ns = response_ns.max(match own.is_clocked {
                true => behind_nominal,
                false => behind_arrival,
            });
            // The busy period ends before the next job of this task. Without preemption more urgent
            // jobs may keep it going, and the next job with them.
            let busy_ns = match self.preemptive {
                true => end_ns,
                false => fixed_point(blocking_ns + (q + 1) * duration_ns, &others, arrived)?,
            };
            if busy_ns + own.jitter_ns <= due_ns + own.period_ns {
                self.late_ns[id.0] = own.early_ns + late_ns;
                return Ok(response_ns);
            }
        }
        Err(Reason::Overload)
    }

    /// Longest time for which less urgent jobs of the core keep a job waiting: once a busy period.
    fn blocking_ns(&self, id: TaskId) -> Result<u64, Reason> {
        let mine = self.model.task(id).priority;
        let tasks = &self.on_core[self.core(id).0];
        let less: Vec<TaskId> = (tasks.iter().copied())
            .filter(|other| self.model.task(*other).priority < mine)
            .collect();
        if !self.preemptive {
            let longest_ns = less.iter().map(|other| self.longest_ns(*other)).max();
            // A job that keeps it waiting began before, at an earlier nanosecond unless arrivals
            // follow each other within an instant.
            let is_plain = self
                .model
                .tasks_in(self.mode)
                .all(|(_, task)| task.arrival_is_clocked());
            return Ok(longest_ns.unwrap_or(0).saturating_sub(u64::from(is_plain)));
        }
        if !locks_in_order(self.model, self.mode) {
            return Err(Reason::Circle);
        }
        let matters = self.resources_that_matter(&less, mine);
        let (mut longest_ns, mut sum_ns, mut inherits) = (0, 0, false);
        for other in less {
            let mut of_other_ns = 0;
            for (resources, length_ns) in sections(self.model.task(other)) {
                if !resources.iter().any(|resource| matters[resource.0]) {
                    continue;
                }
                for resource in resources {
                    let rules = &self.model.resources[resource.0];
                    match rules.protocol {
                        Protocol::None => {
                            return Err(Reason::Inversion {
                                resource: rules.name.clone(),
                            });
                        }
                        Protocol::Inheritance => inherits = true,
                        Protocol::Ceiling => {}
                    }
                }
                of_other_ns = of_other_ns.max(length_ns);
            }
            longest_ns = longest_ns.max(of_other_ns);
            sum_ns += of_other_ns;
        }
        // With inheritance each less urgent job may hold something; with ceilings only one does.
        Ok(if inherits { sum_ns } else { longest_ns })
    }

    /// Resources that can delay tasks of a priority: those that such tasks take, and those that a
    /// less urgent one takes while it has, or has had in the same stretch, one that matters.
    fn resources_that_matter(&self, less: &[TaskId], mine: u32) -> Vec<bool> {
        let all = 0..self.model.resources.len();
        let mut matters: Vec<bool> = all
            .map(|nth| self.urgent_use(ResourceId(nth), mine))
            .collect();
        loop {
            let before = matters.clone();
            for task in less {
                for (resources, _) in sections(self.model.task(*task)) {
                    if resources.iter().any(|one| matters[one.0]) {
                        resources.iter().for_each(|one| matters[one.0] = true);
                    }
                }
            }
            if before == matters {
                return matters;
            }
        }
    }

    /// Whether holding a resource can delay tasks of a priority: a task of at least it takes the
    /// resource, in this mode; ceilings count tasks of all modes.
    fn urgent_use(&self, resource: ResourceId, priority: u32) -> bool {
        if self.model.resources[resource.0].protocol == Protocol::Ceiling {
            return self.model.ceiling(resource) >= priority;
        }
        let takes = |step: &Step| *step == Step::Lock(resource);
        self.model
            .tasks_in(self.mode)
            .any(|(_, task)| task.priority >= priority && task.steps.iter().any(takes))
    }
}

/// Jobs that have arrived before the end of a time.
fn arrived(stream: &Stream, ns: u64) -> u64 {
    (ns + stream.jitter_ns).div_ceil(stream.period_ns)
}

/// Jobs that have arrived until a time at which the last may go first.
fn begun(stream: &Stream, ns: u64) -> u64 {
    (ns + stream.jitter_ns) / stream.period_ns + 1
}

/// The least `w` that equals `own` and the work of the others in `w`.
fn fixed_point(
    own_ns: u64,
    others: &[(Stream, u64)],
    count: fn(&Stream, u64) -> u64,
) -> Result<u64, Reason> {
    let mut w_ns = own_ns;
    for _ in 0..ROUNDS_MAX {
        let mut sum_ns = own_ns;
        for (stream, duration_ns) in others {
            let work_ns = count(stream, w_ns).saturating_mul(*duration_ns);
            sum_ns = sum_ns.saturating_add(work_ns);
        }
        if sum_ns == w_ns {
            return Ok(w_ns);
        }
        if sum_ns > BUSY_NS_MAX {
            break;
        }
        w_ns = sum_ns;
    }
    Err(Reason::Overload)
}
