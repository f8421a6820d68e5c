//! A population of scenarios.
//!
//! Written here and not taken from a crate: `genetic_algorithm` 0.28 was looked at, and what
//! decides here is none of its parts. Genes are times up to an hour in nanoseconds with a range
//! each; the variations that count know what genes mean ("let this task arrive when that job
//! does"), and look at the run; and a search must be able to end after any run, with the same
//! answer for the same number of runs.

use crate::genes::{Layout, TaskGenes};
use crate::model::{Arrival, Model};
use crate::scenario::Scenario;
use crate::sim::evaluate;

use super::score::{Objective, Scored};

/// Size of the population.
const POPULATION: usize = 24;
/// Candidates of which the best becomes a parent.
const TOURNAMENT: usize = 3;
/// Runs without a worse one after which all but the worst start anew.
const PATIENCE: u64 = 1_500;
/// Most genes that one variation sets at random.
const RESETS: usize = 4;

/// The search in a mode.
pub(super) struct Island {
    objective: Objective,
    layout: Layout,
    blank: Scenario,
    random: fastrand::Rng,
    population: Vec<Scored>,
    tried: u64,
    /// Score of the worst so far, and when it was found.
    record: (i64, u64),
}

impl Island {
    pub(super) fn new(model: &Model, layout: Layout, objective: Objective, seed: u64) -> Self {
        Island {
            objective,
            blank: Scenario::empty(model, layout.mode),
            layout,
            random: fastrand::Rng::with_seed(seed),
            population: Vec::new(),
            tried: 0,
            record: (i64::MIN, 0),
        }
    }

    pub(super) fn scenario(&self, model: &Model, genes: &[u64]) -> Scenario {
        self.layout.scenario(model, &self.blank, genes)
    }

    /// Tries a scenario that is chosen anew.
    pub(super) fn random(&mut self, model: &Model) -> Scored {
        let genes = self.anew();
        self.try_out(model, genes)
    }

    /// Tries the next scenario of the population.
    pub(super) fn step(&mut self, model: &Model) -> Scored {
        let genes = match self.population.len() {
            0 => self.layout.fullest(model),
            some if some < POPULATION => self.founder(model),
            _ => self.child(model),
        };
        self.tried += 1;
        let scored = self.try_out(model, genes);
        if scored.score > self.record.0 {
            self.record = (scored.score, self.tried);
        }
        if self.population.len() < POPULATION {
            self.population.push(scored.clone());
        } else if self.tried - self.record.1 > PATIENCE {
            self.record.1 = self.tried;
            self.population
                .sort_by_key(|one| std::cmp::Reverse(one.score));
            self.population.truncate(1);
        } else {
            self.take_in(&scored);
        }
        scored
    }

    /// Takes the place of the least bad one, unless it is even less so.
    fn take_in(&mut self, scored: &Scored) {
        if self.population.iter().any(|one| one.genes == scored.genes) {
            return;
        }
        let least = (0..self.population.len()).min_by_key(|nth| self.population[*nth].score);
        if let Some(least) = least
            && self.population[least].score <= scored.score
        {
            self.population[least] = scored.clone();
        }
    }

    fn try_out(&self, model: &Model, genes: Vec<u64>) -> Scored {
        let run = evaluate(model, &self.scenario(model, &genes));
        Scored {
            score: self.objective.score(model, &run),
            moments: self.objective.moments(model, &run),
            genes,
        }
    }

    fn anew(&mut self) -> Vec<u64> {
        let ranges = self.layout.ranges.iter();
        ranges
            .map(|range| self.random.u64(range.from_ns..=range.to_ns))
            .collect()
    }

    /// A first member: chosen anew, with long jobs that come densely more often than not.
    fn founder(&mut self, model: &Model) -> Vec<u64> {
        let mut genes = self.anew();
        let fullest = self.layout.fullest(model);
        for task in self.layout.tasks.clone() {
            if self.random.u8(0..4) > 0 {
                let all = task.start..task.start + task.width * task.jobs;
                genes[all.clone()].copy_from_slice(&fullest[all]);
            }
        }
        genes
    }

    fn parent(&mut self) -> usize {
        let best = (0..TOURNAMENT).map(|_| self.random.usize(0..self.population.len()));
        best.max_by_key(|nth| self.population[*nth].score)
            .unwrap_or(0)
    }

    fn child(&mut self, model: &Model) -> Vec<u64> {
        let first = self.parent();
        let mut genes = self.population[first].genes.clone();
        if self.random.u8(0..3) == 0 {
            let second = self.parent();
            for task in &self.layout.tasks {
                if self.random.bool() {
                    let all = task.all();
                    genes[all.clone()].copy_from_slice(&self.population[second].genes[all]);
                }
            }
        }
        let rounds = 1 + self.random.usize(0..3);
        for _ in 0..rounds {
            self.vary(model, &mut genes, first);
        }
        genes
    }

    fn vary(&mut self, model: &Model, genes: &mut [u64], parent: usize) {
        if self.layout.tasks.is_empty() {
            return;
        }
        let task = self.layout.tasks[self.random.usize(0..self.layout.tasks.len())].clone();
        match self.random.u8(0..10) {
            0..=4 => self.align(model, genes, parent),
            5 => self.densify(model, genes, &task),
            6 => self.stretch(genes, &task),
            7 => self.nudge(genes),
            _ => self.reset(genes),
        }
    }

    /// Sets a few genes anywhere in their ranges, or to an end of them.
    fn reset(&mut self, genes: &mut [u64]) {
        if self.layout.free.is_empty() {
            return;
        }
        for _ in 0..1 + self.random.usize(0..RESETS) {
            let gene = self.layout.free[self.random.usize(0..self.layout.free.len())];
            let range = self.layout.ranges[gene];
            genes[gene] = match self.random.u8(0..4) {
                0 => range.from_ns,
                1 => range.to_ns,
                _ => self.random.u64(range.from_ns..=range.to_ns),
            };
        }
    }

    /// Changes a gene by little.
    fn nudge(&mut self, genes: &mut [u64]) {
        if self.layout.free.is_empty() {
            return;
        }
        let gene = self.layout.free[self.random.usize(0..self.layout.free.len())];
        let range = self.layout.ranges[gene];
        // Any order of magnitude.
        let step = (range.to_ns - range.from_ns) >> self.random.u32(0..20);
        let value = match self.random.bool() {
            true => genes[gene].saturating_add(step.max(1)),
            false => genes[gene].saturating_sub(step.max(1)),
        };
        genes[gene] = value.clamp(range.from_ns, range.to_ns);
    }

    /// Makes all jobs of a task long, short, or one of both.
    fn stretch(&mut self, genes: &mut [u64], task: &TaskGenes) {
        let kind = self.random.u8(0..4);
        for job in 0..task.jobs {
            for gene in task.runs(job) {
                let range = self.layout.ranges[gene];
                genes[gene] = match kind {
                    0 | 1 => range.to_ns,
                    2 => range.from_ns,
                    _ => [range.from_ns, range.to_ns][self.random.usize(0..2)],
                };
            }
        }
    }

    /// Lets jobs of a task come as densely as they can, from one of them on.
    fn densify(&mut self, model: &Model, genes: &mut [u64], task: &TaskGenes) {
        if task.jobs > 0 {
            let job = self.random.usize(0..task.jobs);
            self.densify_from(model, genes, task, job);
        }
    }

    fn densify_from(&self, model: &Model, genes: &mut [u64], task: &TaskGenes, job: usize) {
        if !model.task(task.task).arrival_is_clocked() {
            return;
        }
        for nth in job..task.jobs {
            let gene = task.space(nth);
            genes[gene] = self.layout.ranges[gene].from_ns;
        }
    }

    /// Lets jobs arrive at a moment at which harm arises: of all tasks that meet the harmed one on
    /// a core, most of them, or one. Where they all arrive with it, a task often has its worst.
    fn align(&mut self, model: &Model, genes: &mut [u64], parent: usize) {
        let moments = &self.population[parent].moments;
        if moments.is_empty() {
            return;
        }
        // The worst moment, more often than not.
        let chosen = match self.random.u8(0..3) {
            0 => self.random.usize(0..moments.len()),
            _ => 0,
        };
        let (harmed, moment_ns) = moments[chosen];
        let mut tasks = self.layout.tasks.clone();
        if let Some(harmed) = harmed {
            let cores = &model.task(harmed).cores;
            let meets = |genes: &TaskGenes| {
                let task = model.task(genes.task);
                task.cores.iter().any(|core| cores.contains(core))
            };
            tasks.retain(meets);
        }
        let share = match self.random.u8(0..3) {
            0 => u8::MAX,
            1 => self.random.u8(..),
            _ => 0,
        };
        let one = self.random.usize(0..tasks.len().max(1));
        for (nth, task) in tasks.iter().enumerate() {
            if nth == one || self.random.u8(..) < share {
                self.align_one(model, genes, task, moment_ns);
            }
        }
    }

    /// Lets a job of the task arrive at a moment, and the next ones densely.
    fn align_one(&mut self, model: &Model, genes: &mut [u64], task: &TaskGenes, moment_ns: u64) {
        if task.jobs == 0 {
            return;
        }
        let Some(first) = task.first else {
            return self.delay(genes, task);
        };
        match &model.task(task.task).arrival {
            Arrival::Periodic {
                period_ns,
                offset,
                jitter_ns,
            } => {
                // offset + job * period + jitter = moment, with as much jitter as there can be: the
                // next job then comes soonest.
                let early_ns = moment_ns.saturating_sub(*jitter_ns);
                let job = early_ns.saturating_sub(offset.from_ns) / period_ns;
                let job = usize::try_from(job).unwrap_or(0).min(task.jobs - 1);
                let ahead_ns = job as u64 * period_ns;
                let first_ns = early_ns.saturating_sub(ahead_ns);
                genes[first] = first_ns.clamp(offset.from_ns, offset.to_ns);
                let late_ns = moment_ns.saturating_sub(ahead_ns + genes[first]);
                self.densify_from(model, genes, task, job + 1);
                genes[task.space(job)] = late_ns.min(*jitter_ns);
            }
            Arrival::Sporadic { .. } => {
                // Up to a random job all distances give or take, the first ones first.
                let mut arrivals = vec![genes[first]];
                for job in 0..task.jobs - 1 {
                    arrivals.push(arrivals[job] + genes[task.space(job)]);
                }
                let after = arrivals.partition_point(|ns| *ns <= moment_ns);
                let job = match self.random.bool() {
                    true => after.saturating_sub(1),
                    false => after.min(task.jobs - 1),
                };
                let mut at_ns = arrivals[job];
                for gene in std::iter::once(first).chain((0..job).map(|nth| task.space(nth))) {
                    let range = self.layout.ranges[gene];
                    let wanted = (genes[gene] + moment_ns).saturating_sub(at_ns);
                    let value = wanted.clamp(range.from_ns, range.to_ns);
                    at_ns = at_ns + value - genes[gene];
                    genes[gene] = value;
                }
                self.densify_from(model, genes, task, job);
            }
            Arrival::After { .. } | Arrival::OnPush { .. } => {}
        }
    }

    /// Changes the delays of a task that others make arrive.
    fn delay(&mut self, genes: &mut [u64], task: &TaskGenes) {
        let kind = self.random.u8(0..3);
        for job in 0..task.jobs {
            let gene = task.space(job);
            let range = self.layout.ranges[gene];
            genes[gene] = match kind {
                0 => range.from_ns,
                1 => range.to_ns,
                _ => self.random.u64(range.from_ns..=range.to_ns),
            };
        }
    }
}
