//! A scenario as a row of numbers with a range each, for searches.
//!
//! ```text
//! task:   first | job 0: space, run, …, tie | job 1: space, run, …, tie | …
//! ```
//!
//! `first` is the first nominal arrival, for tasks of the clock and the outside. `space` is the
//! jitter of a periodic job, the distance to the next of a sporadic one, and the delay of one that
//! another task makes arrive.

use crate::model::{Arrival, Model, Policy, Range, Scope, Step, TaskId};
use crate::scenario::{JobChoices, Scenario, runs};

/// Ranks among equals: enough that any of a few jobs can be the first or the last.
const TIE_MAX: u64 = 3;

/// The genes of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskGenes {
    pub(crate) task: TaskId,
    /// Index of `first`; none for tasks that others make arrive.
    pub(crate) first: Option<usize>,
    /// Index of the first job's genes.
    pub(crate) start: usize,
    /// Number of genes of a job.
    pub(crate) width: usize,
    /// Largest number of jobs.
    pub(crate) jobs: usize,
}

impl TaskGenes {
    /// All of the task's genes.
    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        self.first.unwrap_or(self.start)..self.start + self.width * self.jobs
    }

    /// Index of the space of a job.
    pub(crate) fn space(&self, job: usize) -> usize {
        self.start + self.width * job
    }

    /// Genes of the times that a job computes.
    pub(crate) fn runs(&self, job: usize) -> std::ops::Range<usize> {
        let space = self.space(job);
        space + 1..space + self.width - 1
    }
}

/// Meaning and range of each gene of the scenarios of a mode.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) mode: usize,
    pub(crate) ranges: Vec<Range>,
    pub(crate) tasks: Vec<TaskGenes>,
    /// Genes that are not fixed.
    pub(crate) free: Vec<usize>,
}

impl Layout {
    /// The genes of a mode. Where longer jobs make no job earlier, `longest` keeps each at its
    /// longest: see [`longest_is_worst`].
    pub(crate) fn new(model: &Model, mode: usize, longest: bool) -> Layout {
        let jobs = model.jobs_max(mode);
        let mut layout = Layout {
            mode,
            ranges: Vec::new(),
            tasks: Vec::new(),
            free: Vec::new(),
        };
        for (id, task) in model.tasks_in(mode) {
            let (first, space) = match &task.arrival {
                Arrival::Periodic {
                    offset, jitter_ns, ..
                } => (Some(*offset), Range::between(0, *jitter_ns)),
                Arrival::Sporadic { between, first } => (Some(*first), *between),
                Arrival::After { delay, .. } | Arrival::OnPush { delay, .. } => (None, *delay),
            };
            let tie = Range::between(0, if can_tie(model, mode, id) { TIE_MAX } else { 0 });
            let mut runs = runs(model, id);
            if longest {
                runs.iter_mut()
                    .for_each(|range| range.from_ns = range.to_ns);
            }
            let first = first.map(|range| {
                layout.ranges.push(range);
                layout.ranges.len() - 1
            });
            let genes = TaskGenes {
                task: id,
                first,
                start: layout.ranges.len(),
                width: runs.len() + 2,
                jobs: usize::try_from(jobs[id.0]).unwrap_or(0),
            };
            for _ in 0..genes.jobs {
                layout.ranges.push(space);
                layout.ranges.extend(&runs);
                layout.ranges.push(tie);
            }
            layout.tasks.push(genes);
        }
        let all = layout.ranges.iter().enumerate();
        layout.free = all
            .filter(|(_, range)| !range.is_fixed())
            .map(|(nth, _)| nth)
            .collect();
        layout
    }

    /// Number of scenarios, counting those twice that differ in what comes after the horizon.
    pub(crate) fn count(&self) -> u64 {
        let sizes = self.free.iter().map(|gene| self.ranges[*gene]);
        sizes.fold(1, |count: u64, range| {
            count.saturating_mul((range.to_ns - range.from_ns).saturating_add(1))
        })
    }

    /// The genes of [`Scenario::fullest`].
    pub(crate) fn fullest(&self, model: &Model) -> Vec<u64> {
        let mut genes: Vec<u64> = self.ranges.iter().map(|range| range.from_ns).collect();
        for task in &self.tasks {
            let is_woken = !model.task(task.task).arrival_is_clocked();
            for job in 0..task.jobs {
                for run in task.runs(job) {
                    genes[run] = self.ranges[run].to_ns;
                }
                if is_woken {
                    genes[task.space(job)] = self.ranges[task.space(job)].to_ns;
                }
            }
        }
        genes
    }

    /// The scenario of some genes.
    pub(crate) fn scenario(&self, model: &Model, blank: &Scenario, genes: &[u64]) -> Scenario {
        let mut scenario = blank.clone();
        for task in &self.tasks {
            let arrival = &model.task(task.task).arrival;
            let jobs = &mut scenario.tasks[task.task.0].jobs;
            let mut due_ns = task.first.map_or(0, |gene| genes[gene]);
            for job in 0..task.jobs {
                if due_ns >= model.horizon_ns {
                    break;
                }
                let space_ns = genes[task.space(job)];
                let (after_ns, gap_ns) = match arrival {
                    Arrival::Periodic { period_ns, .. } => (space_ns, *period_ns),
                    Arrival::Sporadic { .. } => (0, space_ns),
                    Arrival::After { .. } | Arrival::OnPush { .. } => (space_ns, 0),
                };
                jobs.push(JobChoices {
                    due_ns,
                    after_ns,
                    runs_ns: genes[task.runs(job)].to_vec(),
                    tie: genes[task.space(job) + task.width - 1] as u32,
                });
                due_ns += gap_ns;
            }
        }
        scenario
    }
}

/// Whether jobs of the task can be equal to other jobs, for the scheduler.
fn can_tie(model: &Model, mode: usize, id: TaskId) -> bool {
    let own = model.task(id);
    model.tasks_in(mode).any(|(other, task)| {
        let meet = || task.cores.iter().any(|core| own.cores.contains(core));
        let equal = match model.scheduler.policy {
            Policy::FixedPriority { .. } => task.priority == own.priority,
            Policy::Edf | Policy::Fair { .. } | Policy::Workers { .. } => true,
        };
        other != id && equal && meet()
    })
}

/// Whether a job never ends earlier because another takes longer: under fixed priorities with
/// preemption, where each task has a core and a priority of its own and nothing to wait for. Each
/// core then always has the most urgent work there is, and more of it ends later.
pub(crate) fn longest_is_worst(model: &Model, mode: usize) -> bool {
    let is_plain = |(id, task): (TaskId, &crate::model::Task)| {
        task.arrival_is_clocked()
            && task.steps.iter().all(|step| matches!(step, Step::Run(_)))
            && task.cores.len() == 1
            && !can_tie(model, mode, id)
    };
    model.scheduler.policy == (Policy::FixedPriority { preemptive: true })
        && model.scheduler.scope == Scope::Partitioned
        && model.tasks_in(mode).all(is_plain)
}
