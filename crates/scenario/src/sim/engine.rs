//! The loop: from one instant at which something happens to the next.

use std::cmp::Reverse;

use crate::model::{Arrival, CoreId, Model, Policy, QueueId, Step, TaskId};
use crate::scenario::Scenario;

use super::state::{Engine, Job, Status};
use super::{JobId, JobRun, Run, What, peak};

/// Most instants of a run. More come only of slices that are very short against the work.
const INSTANTS_MAX: u64 = 20_000_000;

pub(super) fn run(model: &Model, scenario: &Scenario, keeps_events: bool) -> Run {
    let mut engine = Engine::new(model, scenario, keeps_events);
    for (id, task) in model.tasks_in(engine.mode) {
        if matches!(
            task.arrival,
            Arrival::Periodic { .. } | Arrival::Sporadic { .. }
        ) {
            engine.announce(id);
        }
    }
    let mut instants = 0;
    while let Some(next_ns) = engine.next_ns() {
        instants += 1;
        if instants > INSTANTS_MAX {
            engine.run.is_cut = true;
            break;
        }
        engine.pass_to(next_ns);
        engine.end_steps();
        loop {
            engine.arrive();
            engine.assign();
            if !engine.step() && !engine.is_unsettled && !engine.has_arrivals() {
                break;
            }
        }
        engine.note_load();
    }
    engine.finish()
}

impl Engine<'_> {
    /// All jobs that the clock or the outside makes arrive are on their way.
    fn announce(&mut self, id: TaskId) {
        let jobs = &self.scenario.tasks[id.0].jobs;
        for (number, job) in jobs.iter().enumerate() {
            let at_ns = job.due_ns + job.after_ns;
            self.coming.push(Reverse((at_ns, job.tie, id, number)));
        }
        self.tasks[id.0].announced = jobs.len();
    }

    /// Sends a job of a task on its way, behind the choice of its delay. Jobs that the scenario
    /// does not name come as late as can be.
    fn wake(&mut self, task: TaskId) {
        let number = self.tasks[task.0].announced;
        self.tasks[task.0].announced += 1;
        let chosen = self.scenario.tasks[task.0].jobs.get(number);
        let (after_ns, tie) = match (chosen, &self.model.task(task).arrival) {
            (Some(job), _) => (job.after_ns, job.tie),
            (None, Arrival::After { delay, .. } | Arrival::OnPush { delay, .. }) => {
                (delay.to_ns, 0)
            }
            (None, _) => (0, 0),
        };
        self.coming
            .push(Reverse((self.now_ns + after_ns, tie, task, number)));
    }

    fn wake_after(&mut self, ended: TaskId) {
        for (id, task) in self.model.tasks_in(self.mode) {
            if matches!(task.arrival, Arrival::After { task, .. } if task == ended) {
                self.wake(id);
            }
        }
    }

    pub(super) fn wake_on_push(&mut self, pushed: QueueId) {
        for (id, task) in self.model.tasks_in(self.mode) {
            if matches!(task.arrival, Arrival::OnPush { queue, .. } if queue == pushed) {
                self.wake(id);
            }
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let arrival = self.coming.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let slices = matches!(self.model.scheduler.policy, Policy::Fair { .. });
        let running = self
            .cores
            .iter()
            .filter(|core| core.running.is_some())
            .count();
        let anyone_else = slices && self.able.len() > running;
        let ends = self.cores.iter().filter_map(|core| {
            let end_ns = self.now_ns + self.job(core.running?).left_ns;
            match anyone_else && core.slice_end_ns > self.now_ns {
                true => Some(end_ns.min(core.slice_end_ns)),
                false => Some(end_ns),
            }
        });
        ends.chain(arrival).min()
    }

    /// Lets time pass: cores work.
    fn pass_to(&mut self, next_ns: u64) {
        let passed_ns = next_ns - self.now_ns;
        if passed_ns > 0 {
            for core in 0..self.cores.len() {
                let Some(id) = self.cores[core].running else {
                    continue;
                };
                self.job_mut(id).left_ns -= passed_ns;
                self.run.busy_ns[core] += passed_ns;
                self.use_up(id, passed_ns);
            }
        }
        self.now_ns = next_ns;
        let is_over =
            |core: &super::state::CoreState| core.running.is_some() && core.slice_end_ns <= next_ns;
        if matches!(self.model.scheduler.policy, Policy::Fair { .. })
            && self.cores.iter().any(is_over)
        {
            self.is_unsettled = true;
        }
    }

    /// Steps that have had their time are over, with those behind them that need none, up to one
    /// after which another job may be preferred. This comes before any core changes hands: a job
    /// that has done its work does not wait for a core to say so.
    fn end_steps(&mut self) {
        let mut is_unsettled = self.is_unsettled;
        for core in 0..self.cores.len() {
            self.is_unsettled = false;
            while !self.is_unsettled && self.step_on(CoreId(core)) {}
            is_unsettled |= self.is_unsettled;
        }
        self.is_unsettled = is_unsettled;
    }

    fn has_arrivals(&self) -> bool {
        let next = self.coming.peek();
        next.is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns)
    }

    /// Admits the jobs that arrive now.
    fn arrive(&mut self) {
        while let Some(&Reverse((at_ns, tie, task, number))) = self.coming.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.coming.pop();
            self.admit(task, number, tie);
        }
    }

    fn admit(&mut self, task: TaskId, number: usize, tie: u32) {
        let rules = self.model.task(task);
        let due_ns = match rules.arrival {
            Arrival::Periodic { .. } | Arrival::Sporadic { .. } => {
                self.scenario.tasks[task.0].jobs[number].due_ns
            }
            _ => self.now_ns,
        };
        let deadline_ns = rules.deadline_ns.map_or(u64::MAX, |ns| due_ns + ns);
        let id = JobId(self.jobs.len());
        self.jobs.push(Job {
            task,
            number,
            status: Status::Behind,
            step: 0,
            runs: 0,
            left_ns: 0,
            deadline_ns,
            priority: rules.priority,
            lent_deadline_ns: deadline_ns,
            ready_since_ns: self.now_ns,
            sequence: 0,
            tie,
            waits_since_ns: 0,
            held: Vec::new(),
        });
        self.run.jobs.push(JobRun {
            task,
            number,
            due_ns,
            arrival_ns: self.now_ns,
            start_ns: None,
            end_ns: None,
        });
        self.note(id, What::Arrive);
        let state = &mut self.tasks[task.0];
        if state.active.is_some() {
            state.behind.push_back(id);
            return;
        }
        state.active = Some(id);
        state.hungry_since_ns = Some(self.now_ns);
        self.no_credit(id);
        // The worker that woke it is the one whose job ended or pushed just now; which one that was
        // matters to no other scheduler.
        let waker = match rules.arrival {
            Arrival::After { task, .. } => self.tasks[task.0].last_core,
            Arrival::OnPush { .. } => self.waker_of_push(task),
            _ => None,
        };
        self.ready(id, waker);
    }

    /// The core of the task that pushed, where only one does.
    fn waker_of_push(&self, woken: TaskId) -> Option<CoreId> {
        let Arrival::OnPush { queue, .. } = self.model.task(woken).arrival else {
            return None;
        };
        let pushes = |task: &crate::model::Task| task.steps.contains(&Step::Push(queue));
        let mut givers = self
            .model
            .tasks_in(self.mode)
            .filter(|(_, task)| pushes(task));
        let (giver, _) = givers.next()?;
        if givers.next().is_some() {
            return None;
        }
        match self.tasks[giver.0].active.map(|id| self.job(id).status) {
            Some(Status::Running(core)) => Some(core),
            _ => self.tasks[giver.0].last_core,
        }
    }

    /// Lets the first running job that has a step without time take it.
    fn step(&mut self) -> bool {
        (0..self.cores.len()).any(|core| self.step_on(CoreId(core)))
    }

    /// Lets the job of a core take a step that needs no time, if it is at one.
    fn step_on(&mut self, core: CoreId) -> bool {
        let Some(id) = self.cores[core.0].running else {
            return false;
        };
        if self.job(id).left_ns > 0 {
            return false;
        }
        let task = self.job(id).task;
        let rules = self.model.task(task);
        // A step that computes is current while it has time left; its index is then one ahead.
        match rules.steps.get(self.job(id).step) {
            Some(Step::Run(range)) => {
                let (number, nth) = (self.job(id).number, self.job(id).runs);
                let chosen = self.scenario.tasks[task.0].jobs.get(number);
                let chosen = chosen.and_then(|job| job.runs_ns.get(nth));
                let left_ns = chosen.copied().unwrap_or(range.to_ns);
                let job = self.job_mut(id);
                job.step += 1;
                job.runs += 1;
                job.left_ns = left_ns;
            }
            Some(Step::Lock(resource)) => self.lock(id, core, *resource),
            Some(Step::Unlock(resource)) => self.unlock(id, core, *resource),
            Some(Step::Push(queue)) => self.push(id, core, *queue),
            Some(Step::Pop(queue)) => self.pop(id, core, *queue),
            None => self.end(id, core),
        }
        true
    }

    fn end(&mut self, id: JobId, core: CoreId) {
        self.note(id, What::End(core));
        self.leave(id, Status::Ended);
        let now_ns = self.now_ns;
        self.course(id).end_ns = Some(now_ns);
        let task = self.job(id).task;
        self.wake_after(task);
        let state = &mut self.tasks[task.0];
        state.active = state.behind.pop_front();
        match state.active {
            Some(next) => self.ready(next, Some(core)),
            None => state.hungry_since_ns = None,
        }
    }

    fn note_load(&mut self) {
        let busy = self
            .cores
            .iter()
            .filter(|core| core.running.is_some())
            .count();
        let busy = u32::try_from(busy).unwrap_or(u32::MAX);
        match self.load.last_mut() {
            Some(last) if last.1 == busy => {}
            Some(last) if last.0 == self.now_ns => last.1 = busy,
            _ => self.load.push((self.now_ns, busy)),
        }
    }

    fn finish(mut self) -> Run {
        self.run.end_ns = self.now_ns.max(self.model.horizon_ns);
        self.now_ns = self.run.end_ns;
        for nth in 0..self.tasks.len() {
            self.fed(TaskId(nth));
        }
        for (nth, job) in self.run.jobs.iter().enumerate() {
            let result = &mut self.run.tasks[job.task.0];
            result.jobs += 1;
            match job.end_ns {
                Some(end_ns) => {
                    let response_ns = end_ns - job.due_ns;
                    result.response_ns_max = result.response_ns_max.max(Some(response_ns));
                }
                None => result.stuck += 1,
            }
            let Some(deadline_ns) = self.model.task(job.task).deadline_ns else {
                continue;
            };
            let end_ns = job.end_ns.unwrap_or(self.run.end_ns);
            // Times are below 2^62: see TIME_NS_MAX and JOBS_MAX.
            let lateness_ns = end_ns as i64 - (job.due_ns + deadline_ns) as i64;
            if lateness_ns > 0 {
                result.misses += 1;
            }
            if result.lateness_ns_max.is_none_or(|most| most < lateness_ns) {
                result.lateness_ns_max = Some(lateness_ns);
                result.latest = Some(JobId(nth));
            }
        }
        (self.run.peak_ns, self.run.peak_at_ns) =
            peak::peak(&self.load, self.run.end_ns, self.model.window_ns);
        self.run
    }
}
