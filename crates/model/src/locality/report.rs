//! Findings about caches, in figures and in words.

use std::fmt;

use super::analysis::{Analysis, ComponentId, GROUPS, Level};
use super::histogram::Histogram;
use super::sampler::Sampler;

/// Reach of an interval to either side, in standard errors: about 95 % of a normal distribution.
const REACH: f64 = 2.0;

/// A share, 0 to 1, with its 95 % interval. The three are equal if every line was followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best estimate.
    pub share: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// Whether it is known without error.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low >= self.high
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} %", 100.0 * self.share)?;
        if !self.is_exact() {
            write!(f, " ({:.2} to {:.2})", 100.0 * self.low, 100.0 * self.high)?;
        }
        Ok(())
    }
}

/// A level of cache with its misses.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelReport {
    /// The level.
    pub level: Level,
    /// Share of all references, as if this level stood alone.
    pub misses: Estimate,
}

/// A component's references.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentReport {
    /// Its name.
    pub name: String,
    /// References, estimated if a sample was followed.
    pub references: f64,
    /// Number of times that a thread entered it.
    pub executions: u64,
    /// Lines that an execution touches, on average and at most.
    pub lines_mean: f64,
    /// At most.
    pub lines_highest: f64,
    /// Its distances, beside everything else that runs in the same threads.
    pub histogram: Histogram,
}

/// Data displacement: a component's data would stay in a level if it ran alone, but not beside the
/// other components of its threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Displacement {
    /// The component whose data is displaced.
    pub component: String,
    /// Mean number of lines that one of its executions touches.
    pub lines: f64,
    /// Other components in the same threads, with their lines.
    pub beside: Vec<(String, f64)>,
    /// The level.
    pub level: Level,
    /// Share of its references that would hit alone and miss beside the others.
    pub share: f64,
}

impl fmt::Display for Displacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "data displacement in {} ({} lines): {:.1} % of the references of {} miss there and would \
             hit if it ran alone; it touches {:.0} lines each time",
            self.level.name,
            self.level.lines,
            100.0 * self.share,
            self.component,
            self.lines
        )?;
        for (at, (name, lines)) in self.beside.iter().enumerate() {
            let joint = if at == 0 { ", and beside it " } else { ", " };
            write!(f, "{joint}{name} {lines:.0}")?;
        }
        Ok(())
    }
}

/// Data invalidation: lines that another thread wrote between two uses by a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalidation {
    /// The component whose lines were written.
    pub component: String,
    /// The component that wrote them last.
    pub writer: String,
    /// Share of the component's references.
    pub share: f64,
    /// Share of the component's references that would have hit the nearest private cache.
    pub share_would_hit: f64,
}

impl fmt::Display for Invalidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "data invalidation: {:.1} % of the references of {} find a line that another thread wrote \
             since, in {}; {:.1} % would have hit the nearest private cache",
            100.0 * self.share,
            self.component,
            self.writer,
            100.0 * self.share_would_hit
        )
    }
}

/// Complete findings of an [`Analysis`].
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// References in the trace.
    pub references: u64,
    /// Threads in it.
    pub threads: usize,
    /// Distinct lines, estimated if a sample was followed.
    pub lines: f64,
    /// The share of lines that was followed; 1 for all.
    pub rate: f64,
    /// Distances as each thread's own caches see them.
    pub own: Histogram,
    /// Distances as a cache shared by all threads sees them; the same with one thread.
    pub shared: Histogram,
    /// Levels, nearest first.
    pub levels: Vec<LevelReport>,
    /// Components, by first appearance.
    pub components: Vec<ComponentReport>,
    /// By component, then level.
    pub displacements: Vec<Displacement>,
    /// By component, then writer.
    pub invalidations: Vec<Invalidation>,
    own_groups: Vec<Histogram>,
    shared_groups: Vec<Histogram>,
}

impl Report {
    /// Share of all references that a cache of this many lines would miss.
    #[must_use]
    pub fn misses(&self, lines: u64, shared: bool) -> Estimate {
        let (all, groups) = match shared {
            true => (&self.shared, &self.shared_groups),
            false => (&self.own, &self.own_groups),
        };
        let references = (self.references as f64).max(1.0);
        if self.rate >= 1.0 {
            let share = all.misses(lines) / references;
            return Estimate {
                share,
                low: share,
                high: share,
            };
        }
        let at = |lines: u64| (all.misses(lines) / references).min(1.0);
        // Of the lines between two uses about `lines · rate` are followed, which gives their number
        // this relative error; the choice of lines adds the rest.
        let followed = (lines as f64 * self.rate).max(1.0);
        let reach = (REACH * ((1.0 - self.rate) / followed).sqrt()).min(1.0);
        let fewer = (lines as f64 * (1.0 - reach)).floor() as u64;
        let more = (lines as f64 * (1.0 + reach)).ceil() as u64;
        let spread = REACH * spread(groups, lines) * (1.0 - self.rate).sqrt() / references;
        Estimate {
            share: at(lines),
            low: (at(more) - spread).max(0.0),
            high: (at(fewer) + spread).min(1.0),
        }
    }
}

/// Standard error of the sum of misses, from the differences between groups of lines.
fn spread(groups: &[Histogram], lines: u64) -> f64 {
    let misses: Vec<f64> = groups.iter().map(|group| group.misses(lines)).collect();
    let count = GROUPS as f64;
    let mean = misses.iter().sum::<f64>() / count;
    let squares: f64 = misses.iter().map(|misses| (misses - mean).powi(2)).sum();
    (count / (count - 1.0) * squares).sqrt()
}

impl Analysis {
    /// The findings so far; more of the trace may follow.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut components = self.components.clone();
        for (id, lines) in self.unfinished() {
            if let Some(component) = components.get_mut(&id) {
                component.end_execution(lines);
            }
        }
        let name = |id: ComponentId| self.names[id.0].clone();
        let lines_of = |id: &ComponentId| {
            let known = components.get(id);
            known.map_or(0.0, |c| c.lines_sum / c.executions.max(1) as f64)
        };
        let mut displacements = Vec::new();
        for (&id, component) in &components {
            let references = component.histogram.references().max(1.0);
            for (level, &displaced) in self.options.levels.iter().zip(&component.displaced) {
                if displaced > 0.0 {
                    let beside = self.beside(id).into_iter();
                    displacements.push(Displacement {
                        component: name(id),
                        lines: lines_of(&id),
                        beside: beside
                            .map(|other| (name(other), lines_of(&other)))
                            .collect(),
                        level: level.clone(),
                        share: displaced / references,
                    });
                }
            }
        }
        let invalidations = self.invalidations.iter().map(|(&(user, writer), counted)| {
            let references = components
                .get(&user)
                .map_or(1.0, |component| component.histogram.references().max(1.0));
            Invalidation {
                component: name(user),
                writer: name(writer),
                share: counted.references / references,
                share_would_hit: counted.would_hit / references,
            }
        });
        let is_one = self.threads.len() < 2;
        let (shared, shared_groups) = match is_one {
            true => (self.own.clone(), self.own_groups.clone()),
            false => (self.shared.clone(), self.shared_groups.clone()),
        };
        let mut report = Report {
            references: self.references,
            threads: self.threads.len(),
            lines: shared.first_uses(),
            rate: self.sampler.as_ref().map_or(1.0, Sampler::rate),
            own: self.own.clone(),
            shared,
            levels: Vec::new(),
            components: components
                .iter()
                .map(|(&id, component)| ComponentReport {
                    name: name(id),
                    references: component.histogram.references(),
                    executions: component.executions,
                    lines_mean: lines_of(&id),
                    lines_highest: component.lines_highest,
                    histogram: component.histogram.clone(),
                })
                .collect(),
            displacements,
            invalidations: invalidations.collect(),
            own_groups: self.own_groups.clone(),
            shared_groups,
        };
        let levels = self.options.levels.iter().map(|level| LevelReport {
            level: level.clone(),
            misses: report.misses(level.lines, level.shared),
        });
        report.levels = levels.collect();
        report
    }
}
