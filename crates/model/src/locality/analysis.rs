//! Analysis of a trace, reference by reference.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use super::histogram::Histogram;
use super::sampler::{Sampler, group};
use super::stack::{LineHasher, Stack};

/// Groups of lines whose differences tell the error of a sample: enough for a stable spread, few
/// enough that each has lines.
pub(super) const GROUPS: usize = 16;

/// A component of the program, as [`Analysis::component`] numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub(super) usize);

/// A reference to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The address divided by the size of a line.
    pub line: u64,
    /// The thread that refers.
    pub thread: u32,
    /// The execution component.
    pub component: ComponentId,
    /// Whether it writes.
    pub write: bool,
}

/// A level of cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name in reports, such as `L1d`.
    pub name: String,
    /// Lines that it holds.
    pub lines: u64,
    /// Whether all threads share one; otherwise each has its own.
    pub shared: bool,
}

impl Level {
    /// A cache that each thread has for itself.
    #[must_use]
    pub fn private(name: &str, lines: u64) -> Self {
        Level {
            name: name.to_owned(),
            lines,
            shared: false,
        }
    }

    /// A cache that all threads share.
    #[must_use]
    pub fn shared(name: &str, lines: u64) -> Self {
        Level {
            shared: true,
            ..Level::private(name, lines)
        }
    }
}

/// Options of an [`Analysis`].
#[derive(Clone, Debug, Default)]
pub struct AnalysisOptions {
    pub(super) levels: Vec<Level>,
    pub(super) lines_max: Option<usize>,
}

impl AnalysisOptions {
    /// No cache, and every line followed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a level of cache, nearest first.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.levels.push(level);
        self
    }

    /// Follows at most this many lines, at least 64: memory is bounded, and miss ratios have an
    /// error, which the report states.
    #[must_use]
    pub fn sample(mut self, lines_max: usize) -> Self {
        self.lines_max = Some(lines_max);
        self
    }
}

type LineMap<V> = HashMap<u64, V, BuildHasherDefault<LineHasher>>;

/// Counts distances and effects of a trace as it arrives.
///
/// Each thread has a stack of its own, as its private caches see the trace. With a second thread,
/// one stack for all begins, as a shared cache sees it. A component gets its own from when a second
/// component runs in its thread: the distances it would have alone.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub(super) options: AnalysisOptions,
    pub(super) names: Vec<String>,
    by_name: HashMap<String, ComponentId>,
    pub(super) sampler: Option<Sampler>,
    pub(super) references: u64,
    pub(super) threads: BTreeMap<u32, ThreadState>,
    together: Option<Stack>,
    pub(super) own: Histogram,
    pub(super) shared: Histogram,
    /// By group of lines; empty unless only a sample is followed.
    pub(super) own_groups: Vec<Histogram>,
    pub(super) shared_groups: Vec<Histogram>,
    pub(super) components: BTreeMap<ComponentId, ComponentState>,
    writes: LineMap<Write>,
    pub(super) invalidations: BTreeMap<(ComponentId, ComponentId), Invalidated>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ThreadState {
    stack: Stack,
    running: Option<ComponentId>,
    parts: BTreeMap<ComponentId, Part>,
}

/// A component in one thread.
#[derive(Clone, Debug, Default)]
struct Part {
    /// None while it is the only one in its thread, whose stack is then its own.
    alone: Option<Stack>,
    /// Distinct lines followed in the current or latest execution.
    execution_lines: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ComponentState {
    pub(super) histogram: Histogram,
    pub(super) executions: u64,
    /// Sum and maximum of the lines that an execution touches.
    pub(super) lines_sum: f64,
    pub(super) lines_highest: f64,
    /// References that hit the level alone, but not beside the others.
    pub(super) displaced: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Write {
    version: u32,
    thread: u32,
    component: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Invalidated {
    pub(super) references: f64,
    /// References that would have hit the nearest private level.
    pub(super) would_hit: f64,
}

impl Analysis {
    /// An analysis without references.
    #[must_use]
    pub fn new(options: AnalysisOptions) -> Self {
        let sampler = options.lines_max.map(Sampler::new);
        let groups = sampler.as_ref().map_or(0, |_| GROUPS);
        Analysis {
            options,
            names: Vec::new(),
            by_name: HashMap::new(),
            sampler,
            references: 0,
            threads: BTreeMap::new(),
            together: None,
            own: Histogram::default(),
            shared: Histogram::default(),
            own_groups: vec![Histogram::default(); groups],
            shared_groups: vec![Histogram::default(); groups],
            components: BTreeMap::new(),
            writes: LineMap::default(),
            invalidations: BTreeMap::new(),
        }
    }

    /// The component with this name.
    pub fn component(&mut self, name: &str) -> ComponentId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = ComponentId(self.names.len());
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Number of references so far.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Adds the next reference of the trace.
    pub fn add(&mut self, access: Access) {
        self.references += 1;
        let weight = match self.follow(access.line) {
            Some(rate) => 1.0 / rate,
            None => return,
        };
        self.enter(&access);
        let write = self.writes.get(&access.line).copied().unwrap_or_default();
        let version = write.version.wrapping_add(u32::from(access.write));
        let Some(thread) = self.threads.get_mut(&access.thread) else {
            return;
        };
        let touch = thread.stack.touch(access.line, version);
        let scaled = |distance: u64| (distance as f64 * weight).round() as u64;
        let own = touch.map(|touch| touch.distance);
        self.own.add(own.map(scaled), weight);
        if let Some(groups) = self.own_groups.get_mut(group(access.line, GROUPS)) {
            groups.add(own.map(scaled), weight);
        }
        if let Some(together) = &mut self.together {
            let distance = together.touch(access.line, 0).map(|touch| touch.distance);
            self.shared.add(distance.map(scaled), weight);
            if let Some(groups) = self.shared_groups.get_mut(group(access.line, GROUPS)) {
                groups.add(distance.map(scaled), weight);
            }
        }
        self.count_component(&access, own, weight);
        if let Some(touch) = touch
            && touch.note != write.version
        {
            self.count_invalidation(&access, write, scaled(touch.distance), weight);
        }
        if access.write {
            self.writes.insert(
                access.line,
                Write {
                    version,
                    thread: access.thread,
                    component: access.component.0,
                },
            );
        }
    }

    /// The rate of the sample if the line is followed; all stacks forget the lines given up for it.
    fn follow(&mut self, line: u64) -> Option<f64> {
        let Some(sampler) = &mut self.sampler else {
            return Some(1.0);
        };
        let mut given_up = Vec::new();
        let follows = sampler.follows(line, |line| given_up.push(line));
        let rate = sampler.rate();
        for line in given_up {
            self.writes.remove(&line);
            if let Some(together) = &mut self.together {
                together.remove(line);
            }
            for thread in self.threads.values_mut() {
                thread.stack.remove(line);
                for part in thread.parts.values_mut() {
                    if let Some(alone) = &mut part.alone {
                        alone.remove(line);
                    }
                }
            }
        }
        follows.then_some(rate)
    }

    /// Begins the thread, component or execution that this reference is the first of.
    fn enter(&mut self, access: &Access) {
        if !self.threads.contains_key(&access.thread) {
            if self.together.is_none()
                && let Some(first) = self.threads.values().next()
            {
                self.together = Some(first.stack.clone());
                self.shared = self.own.clone();
                self.shared_groups = self.own_groups.clone();
            }
            self.threads.insert(access.thread, ThreadState::default());
        }
        let rate = self.sampler.as_ref().map_or(1.0, Sampler::rate);
        let Some(thread) = self.threads.get_mut(&access.thread) else {
            return;
        };
        if thread.running == Some(access.component) {
            return;
        }
        if let Some(before) = thread.running.replace(access.component)
            && let Some(part) = thread.parts.get_mut(&before)
            && let Some(component) = self.components.get_mut(&before)
        {
            component.end_execution(part.execution_lines as f64 / rate);
        }
        if thread.parts.len() == 1 && !thread.parts.contains_key(&access.component) {
            for part in thread.parts.values_mut() {
                part.alone = Some(thread.stack.clone());
            }
        }
        let is_first = thread.parts.is_empty();
        let part = thread
            .parts
            .entry(access.component)
            .or_insert_with(|| Part {
                alone: (!is_first).then(Stack::new),
                execution_lines: 0,
            });
        part.execution_lines = 0;
        let levels = self.options.levels.len();
        let component = self.components.entry(access.component).or_default();
        component.executions += 1;
        component.displaced.resize(levels, 0.0);
    }

    fn count_component(&mut self, access: &Access, own: Option<u64>, weight: f64) {
        let part = self
            .threads
            .get_mut(&access.thread)
            .and_then(|thread| thread.parts.get_mut(&access.component));
        let Some(component) = self.components.get_mut(&access.component) else {
            return;
        };
        let Some(part) = part else { return };
        let alone = match &mut part.alone {
            Some(stack) => stack.touch(access.line, 0).map(|touch| touch.distance),
            None => own,
        };
        // A line touched before in this execution has at most the others of the execution since its
        // last use; any other has all of them.
        if alone.is_none_or(|distance| distance >= part.execution_lines) {
            part.execution_lines += 1;
        }
        let scaled = |distance: u64| (distance as f64 * weight).round() as u64;
        component.histogram.add(own.map(scaled), weight);
        let (Some(own), Some(alone)) = (own.map(scaled), alone.map(scaled)) else {
            return;
        };
        for (level, displaced) in self.options.levels.iter().zip(&mut component.displaced) {
            if alone < level.lines && own >= level.lines {
                *displaced += weight;
            }
        }
    }

    fn count_invalidation(&mut self, access: &Access, write: Write, distance: u64, weight: f64) {
        debug_assert_ne!(
            write.thread, access.thread,
            "own writes leave their own note"
        );
        let pair = (access.component, ComponentId(write.component));
        let counted = self.invalidations.entry(pair).or_default();
        counted.references += weight;
        let nearest = self.options.levels.iter().find(|level| !level.shared);
        if nearest.is_none_or(|level| distance < level.lines) {
            counted.would_hit += weight;
        }
    }

    /// Lines touched by each component's unfinished executions.
    pub(super) fn unfinished(&self) -> Vec<(ComponentId, f64)> {
        let rate = self.sampler.as_ref().map_or(1.0, Sampler::rate);
        let lines = |thread: &ThreadState| {
            let running = thread.running?;
            let part = thread.parts.get(&running)?;
            Some((running, part.execution_lines as f64 / rate))
        };
        self.threads.values().filter_map(lines).collect()
    }

    /// Other components that run in a thread with this one.
    pub(super) fn beside(&self, component: ComponentId) -> Vec<ComponentId> {
        let mut beside: Vec<ComponentId> = self
            .threads
            .values()
            .filter(|thread| thread.parts.contains_key(&component))
            .flat_map(|thread| thread.parts.keys().copied())
            .filter(|&other| other != component)
            .collect();
        beside.sort_unstable();
        beside.dedup();
        beside
    }
}

impl ComponentState {
    pub(super) fn end_execution(&mut self, lines: f64) {
        self.lines_sum += lines;
        self.lines_highest = self.lines_highest.max(lines);
    }
}
