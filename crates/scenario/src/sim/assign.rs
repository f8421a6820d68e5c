//! The schedulers: which job each core goes to.

use crate::model::{CoreId, Policy};

use super::state::{Engine, Status};
use super::{JobId, What};

/// Scale of the fair scheduler's use: that of a task with the usual weight is its time.
const USUAL_WEIGHT: u64 = 1024;

/// Order of jobs to a scheduler; the smallest is first.
pub(super) type Rank = (u64, u64, u32, u64);

impl Engine<'_> {
    /// Place of a job in the scheduler's order.
    pub(super) fn rank(&self, id: JobId) -> Rank {
        let job = self.job(id);
        match self.model.scheduler.policy {
            Policy::FixedPriority { .. } => (
                u64::from(u32::MAX - job.priority),
                job.ready_since_ns,
                job.tie,
                job.sequence,
            ),
            // Among equal deadlines the one that runs goes on: a switch would gain nothing.
            Policy::Edf => {
                let is_ready = !matches!(job.status, Status::Running(_));
                (
                    job.lent_deadline_ns,
                    u64::from(is_ready),
                    job.tie,
                    job.sequence,
                )
            }
            Policy::Fair { slice_ns } => {
                let used = self.tasks[job.task.0].used;
                let used = match job.status {
                    Status::Running(core) if self.now_ns < self.cores[core.0].slice_end_ns => {
                        used.saturating_sub(slice_ns)
                    }
                    _ => used,
                };
                let is_ready = !matches!(job.status, Status::Running(_));
                (used, u64::from(is_ready), job.tie, job.sequence)
            }
            Policy::Workers { .. } => (0, 0, job.tie, job.sequence),
        }
    }

    /// Gives each core to the job that the scheduler prefers.
    pub(super) fn assign(&mut self) {
        if !std::mem::take(&mut self.is_unsettled) {
            return;
        }
        match self.model.scheduler.policy {
            Policy::Workers { steal } => self.assign_workers(steal),
            Policy::FixedPriority { preemptive } => self.assign_by_rank(preemptive),
            Policy::Edf | Policy::Fair { .. } => self.assign_by_rank(true),
        }
    }

    /// The best jobs get cores, the best first: the core that it has, an idle one, or that of the
    /// worst job. No job is moved aside for a better one that could only run there, as in systems
    /// that push and pull.
    fn assign_by_rank(&mut self, preemptive: bool) {
        let mut order: Vec<(bool, Rank, JobId)> = self
            .able
            .iter()
            .map(|&id| {
                let stays = !preemptive && matches!(self.job(id).status, Status::Running(_));
                (!stays, self.rank(id), id)
            })
            .collect();
        order.sort_unstable();
        let count = self.cores.len();
        let mut taken: Vec<Option<JobId>> = vec![None; count];
        let mut free = count;
        // Place in the order of the job that runs on each core: idle ones are last of all.
        let mut standing = vec![usize::MAX; count];
        for (place, (_, _, id)) in order.iter().enumerate() {
            if let Status::Running(core) = self.job(*id).status {
                standing[core.0] = place;
            }
        }
        for (_, _, id) in &order {
            if free == 0 {
                break;
            }
            let job = self.job(*id);
            let chosen = match job.status {
                Status::Running(core) if taken[core.0].is_none() => Some(core),
                _ => {
                    let last = self.tasks[job.task.0].last_core;
                    let allowed = self.model.task(job.task).cores.iter();
                    allowed
                        .filter(|core| taken[core.0].is_none())
                        .max_by_key(|core| {
                            let low = std::cmp::Reverse(core.0);
                            (standing[core.0], last == Some(**core), low)
                        })
                        .copied()
                }
            };
            if let Some(core) = chosen {
                taken[core.0] = Some(*id);
                free -= 1;
            }
        }
        for (core, wanted) in taken.iter().enumerate() {
            let before = self.cores[core].running;
            if let Some(before) = before
                && *wanted != Some(before)
            {
                self.note(before, What::Preempt(CoreId(core)));
                self.leave(before, Status::Ready);
            }
        }
        for (core, wanted) in taken.into_iter().enumerate() {
            let Some(id) = wanted else { continue };
            if self.cores[core].running != Some(id) {
                self.start(id, CoreId(core));
            } else if let Policy::Fair { slice_ns } = self.model.scheduler.policy
                && self.now_ns >= self.cores[core].slice_end_ns
            {
                self.cores[core].slice_end_ns = self.now_ns + slice_ns;
            }
        }
        self.is_unsettled = false;
    }

    /// An idle worker takes the first job of its own queue, or steals.
    fn assign_workers(&mut self, steal: bool) {
        for core in 0..self.cores.len() {
            if self.cores[core].running.is_some() {
                continue;
            }
            let own = self.cores[core].queue.pop_front();
            let next = match (own, steal) {
                (Some(id), _) => Some(id),
                (None, true) => self.steal(CoreId(core)),
                (None, false) => None,
            };
            if let Some(id) = next {
                self.start(id, CoreId(core));
            }
        }
        self.is_unsettled = false;
    }

    /// The oldest job of the longest queue that may run here.
    fn steal(&mut self, thief: CoreId) -> Option<JobId> {
        let may = |id: &JobId| self.model.task(self.job(*id).task).cores.contains(&thief);
        let (victim, place) = (self.cores.iter().enumerate())
            .filter_map(|(core, state)| {
                let place = state.queue.iter().position(may)?;
                Some((core, place))
            })
            .max_by_key(|(core, _)| (self.cores[*core].queue.len(), std::cmp::Reverse(*core)))?;
        self.cores[victim].queue.remove(place)
    }

    /// Puts a job that has become ready into a worker's queue: that of the worker which woke it, or
    /// the one that it ran on last; before that, tasks are dealt out over their cores.
    pub(super) fn queue_at_worker(&mut self, id: JobId, waker: Option<CoreId>) {
        if !matches!(self.model.scheduler.policy, Policy::Workers { .. }) {
            return;
        }
        let task = self.job(id).task;
        let cores = &self.model.task(task).cores;
        let home = waker
            .filter(|core| cores.contains(core))
            .or(self.tasks[task.0].last_core)
            .unwrap_or(cores[task.0 % cores.len()]);
        self.cores[home.0].queue.push_back(id);
    }

    fn start(&mut self, id: JobId, core: CoreId) {
        let now_ns = self.now_ns;
        let task = self.job(id).task;
        self.job_mut(id).status = Status::Running(core);
        self.cores[core.0].running = Some(id);
        self.course(id).start_ns.get_or_insert(now_ns);
        self.fed(task);
        if let Policy::Fair { slice_ns } = self.model.scheduler.policy {
            self.cores[core.0].slice_end_ns = now_ns + slice_ns;
        }
        self.note(id, What::Run(core));
    }

    /// Counts time that a task has had.
    pub(super) fn use_up(&mut self, id: JobId, ns: u64) {
        if let Policy::Fair { .. } = self.model.scheduler.policy {
            let task = self.job(id).task;
            let weight = u64::from(self.model.task(task).weight);
            let used = u128::from(ns) * u128::from(USUAL_WEIGHT) / u128::from(weight);
            self.tasks[task.0].used += u64::try_from(used).unwrap_or(u64::MAX >> 8);
        }
    }

    /// A task that comes back gets no credit for the time in which it wanted nothing, but a slice.
    pub(super) fn no_credit(&mut self, id: JobId) {
        if let Policy::Fair { slice_ns } = self.model.scheduler.policy {
            let others = self.able.iter().filter(|one| **one != id);
            let least = others
                .map(|one| self.tasks[self.job(*one).task.0].used)
                .min();
            self.used_floor = self.used_floor.max(least.unwrap_or(0));
            let task = self.job(id).task;
            let floor = self.used_floor.saturating_sub(slice_ns);
            let used = &mut self.tasks[task.0].used;
            *used = (*used).max(floor);
        }
    }
}
