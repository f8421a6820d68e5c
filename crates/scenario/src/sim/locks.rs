//! Resources, queues, and jobs that wait for them.

use crate::model::{CoreId, Protocol, QueueId, ResourceId, Step, WhenFull};

use super::state::{Engine, Status};
use super::{Deadlock, JobId, Stuck, Wait, What};

impl Engine<'_> {
    /// Takes a resource, or leaves the core to wait for it.
    pub(super) fn lock(&mut self, id: JobId, core: CoreId, resource: ResourceId) {
        let state = &mut self.resources[resource.0];
        if state.owner.is_some() {
            state.waiting.push(id);
            self.run.waits += 1;
            if !self.job(id).held.is_empty() {
                self.run.nested_waits += 1;
            }
            self.wait(id, core, Wait::Resource(resource));
            self.lend();
            self.find_circle(id);
            return;
        }
        state.owner = Some(id);
        self.take(id, resource);
    }

    fn take(&mut self, id: JobId, resource: ResourceId) {
        let now_ns = self.now_ns;
        let job = self.job_mut(id);
        job.held.push((resource, now_ns));
        job.step += 1;
        self.note(id, What::Lock(resource));
        self.lend();
    }

    /// Gives a resource to the most urgent job that waits for it, or to nobody.
    pub(super) fn unlock(&mut self, id: JobId, core: CoreId, resource: ResourceId) {
        let job = self.job_mut(id);
        job.held.retain(|(held, _)| *held != resource);
        job.step += 1;
        self.note(id, What::Unlock(resource));
        self.resources[resource.0].owner = None;
        // The lent priority is still that of the most urgent one, so compare before it is dropped.
        let next = (self.resources[resource.0].waiting.iter().enumerate())
            .min_by_key(|(place, one)| (self.rank(**one), *place))
            .map(|(place, _)| place);
        match next {
            Some(place) => {
                let next = self.resources[resource.0].waiting.remove(place);
                self.resources[resource.0].owner = Some(next);
                self.note(next, What::Ready);
                self.take(next, resource);
                self.ready(next, Some(core));
            }
            None => self.lend(),
        }
        self.is_unsettled = true;
    }

    /// Priorities and deadlines with those that resources lend: the fixed point.
    pub(super) fn lend(&mut self) {
        if self.model.resources.is_empty() {
            return;
        }
        let active: Vec<JobId> = self.tasks.iter().filter_map(|task| task.active).collect();
        for &id in &active {
            let task = self.model.task(self.job(id).task);
            let ceilings = self.job(id).held.iter().filter_map(|(held, _)| {
                let is_ceiling = self.model.resources[held.0].protocol == Protocol::Ceiling;
                is_ceiling.then(|| self.model.ceiling(*held))
            });
            let priority = ceilings.fold(task.priority, u32::max);
            let job = self.job_mut(id);
            job.priority = priority;
            job.lent_deadline_ns = job.deadline_ns;
        }
        loop {
            let mut is_fixed = true;
            for &id in &active {
                let Status::Waiting(Wait::Resource(resource)) = self.job(id).status else {
                    continue;
                };
                if self.model.resources[resource.0].protocol != Protocol::Inheritance {
                    continue;
                }
                let (priority, deadline_ns) =
                    (self.job(id).priority, self.job(id).lent_deadline_ns);
                let Some(owner) = self.resources[resource.0].owner else {
                    continue;
                };
                let owner = self.job_mut(owner);
                if owner.priority < priority || owner.lent_deadline_ns > deadline_ns {
                    owner.priority = owner.priority.max(priority);
                    owner.lent_deadline_ns = owner.lent_deadline_ns.min(deadline_ns);
                    is_fixed = false;
                }
            }
            if is_fixed {
                break;
            }
        }
        self.is_unsettled = true;
    }

    fn wait(&mut self, id: JobId, core: CoreId, wait: Wait) {
        self.note(id, What::Wait(core, wait));
        self.leave(id, Status::Waiting(wait));
        let now_ns = self.now_ns;
        self.job_mut(id).waits_since_ns = now_ns;
    }

    pub(super) fn push(&mut self, id: JobId, core: CoreId, queue: QueueId) {
        let rule = &self.model.queues[queue.0];
        if let Some(taker) = self.queues[queue.0].wait_for_item.pop_front() {
            // Somebody waits, so it is empty: the item passes through.
            self.pushed(id, queue, 1);
            self.note(taker, What::Ready);
            self.note(taker, What::Pop(queue));
            self.job_mut(taker).step += 1;
            self.ready(taker, Some(core));
        } else if self.queues[queue.0].fill < rule.capacity {
            self.queues[queue.0].fill += 1;
            let fill = self.queues[queue.0].fill;
            self.pushed(id, queue, fill);
        } else if rule.when_full == WhenFull::Wait {
            self.queues[queue.0].wait_for_room.push_back(id);
            self.wait(id, core, Wait::Room(queue));
            self.find_circle(id);
        } else {
            self.note(id, What::Lose(queue));
            let now_ns = self.now_ns;
            let result = &mut self.run.queues[queue.0];
            result.lost += 1;
            result.first_loss_ns.get_or_insert(now_ns);
            self.job_mut(id).step += 1;
        }
    }

    fn pushed(&mut self, id: JobId, queue: QueueId, fill: u32) {
        self.note(id, What::Push(queue));
        self.job_mut(id).step += 1;
        let result = &mut self.run.queues[queue.0];
        result.pushed += 1;
        result.fill_max = result.fill_max.max(fill);
        self.wake_on_push(queue);
    }

    pub(super) fn pop(&mut self, id: JobId, core: CoreId, queue: QueueId) {
        if self.queues[queue.0].fill == 0 {
            self.queues[queue.0].wait_for_item.push_back(id);
            self.wait(id, core, Wait::Item(queue));
            self.find_circle(id);
            return;
        }
        self.queues[queue.0].fill -= 1;
        self.note(id, What::Pop(queue));
        self.job_mut(id).step += 1;
        if let Some(giver) = self.queues[queue.0].wait_for_room.pop_front() {
            self.queues[queue.0].fill += 1;
            let fill = self.queues[queue.0].fill;
            self.note(giver, What::Ready);
            self.pushed(giver, queue, fill);
            self.ready(giver, Some(core));
        }
    }

    /// The job that a waiting job waits for, if it is only one. Of a queue that is if a single task
    /// of the mode is on the other side: jobs of a task come one after the other, so while its job
    /// waits, no other can help.
    fn awaited(&self, id: JobId) -> Option<JobId> {
        let Status::Waiting(wait) = self.job(id).status else {
            return None;
        };
        let wanted = match wait {
            Wait::Resource(resource) => return self.resources[resource.0].owner,
            Wait::Room(queue) => Step::Pop(queue),
            Wait::Item(queue) => Step::Push(queue),
        };
        let mut others = self
            .model
            .tasks_in(self.mode)
            .filter(|(_, task)| task.steps.contains(&wanted));
        let (other, _) = others.next()?;
        match others.next() {
            None => self.tasks[other.0].active,
            Some(_) => None,
        }
    }

    fn find_circle(&mut self, start: JobId) {
        if self.run.deadlock.is_some() {
            return;
        }
        let mut circle = vec![start];
        let mut at = start;
        loop {
            let Some(next) = self.awaited(at) else { return };
            if next == start {
                break;
            }
            if circle.contains(&next) {
                // It runs into a circle that this job is not part of, which has been reported.
                return;
            }
            circle.push(next);
            at = next;
        }
        self.note(start, What::Deadlock);
        let circle = circle.into_iter().filter_map(|id| {
            let job = self.job(id);
            let Status::Waiting(wait) = job.status else {
                return None;
            };
            Some(Stuck {
                job: id,
                task: job.task,
                wait,
                since_ns: job.waits_since_ns,
                holds: job.held.clone(),
            })
        });
        self.run.deadlock = Some(Deadlock {
            at_ns: self.now_ns,
            circle: circle.collect(),
        });
    }
}
