//! A collection: which objects and processors nobody alive can reach, found while all go on.
//!
//! The rule is the least fixpoint of `LO = s*(BR ∪ r(LP))` and `LP = BP ∪ h(LO)` (Meyer, Kogtenkov,
//! Akhi: Processors and Their Collection, 2012): live are the objects that somebody outside refers
//! to, those of processors that have calls to apply, what these lead to, and their processors.
//! References are counted, so what is outside need not be looked at: an object is referred to from
//! outside if it has more references than were found in the objects of sleeping processors.
//!
//! [Processors](../../../docs/internals/regions.md) says why the steps below see one moment.

use std::sync::Arc;

use crate::common::quietly;
use crate::handler::{Handler, Look};
use crate::object::Tracer;

/// Processors that a step looks at, so that nobody has to wait long for a collection's worker.
const STEP: usize = 256;

/// The end of a collection: what was found and what was freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Processors that were dead, and have ended.
    pub processors: usize,
    /// Objects that were dead, and were dropped.
    pub objects: usize,
    /// Processors that stay.
    pub live_processors: usize,
    /// Those of them that had calls to apply, so that nothing of theirs could be freed.
    pub busy_processors: usize,
}

/// A processor that slept when it was looked at.
struct Sleeper {
    /// Its index among all.
    index: usize,
    logged: u64,
    /// The vertex of its first slot.
    first: usize,
    slots: usize,
    /// It slept all the time. Otherwise it lives, with all its objects.
    has_slept: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Look,
    Count,
    Check,
    Sweep,
    Over,
}

/// A collection under way.
pub(crate) struct Collection {
    processors: Vec<Arc<Handler>>,
    sleepers: Vec<Sleeper>,
    /// The sleeper of each number of a processor, and one more; 0 for none.
    sleeper_of: Vec<u32>,
    /// References that were found: the vertex, and where it leads.
    found: Vec<(u32, (u32, u32))>,
    /// The same as vertices, ordered by the first.
    edges: Vec<(u32, u32)>,
    is_live: Vec<bool>,
    phase: Phase,
    at: usize,
    tracer: Tracer,
    /// Processors that have ended, of themselves or by this collection.
    pub(crate) ended: Vec<u32>,
    pub(crate) freed_bytes: usize,
    pub(crate) collected: Collected,
}

impl Collection {
    pub(crate) fn new(processors: Vec<Arc<Handler>>) -> Collection {
        let ids = processors.iter().map(|handler| handler.id as usize + 1);
        Collection {
            sleeper_of: vec![0; ids.max().unwrap_or(0)],
            processors,
            sleepers: Vec::new(),
            found: Vec::new(),
            edges: Vec::new(),
            is_live: Vec::new(),
            phase: Phase::Look,
            at: 0,
            tracer: Tracer::default(),
            ended: Vec::new(),
            freed_bytes: 0,
            collected: Collected::default(),
        }
    }

    /// Goes on with a collection by some processors; true if it is over.
    pub(crate) fn step(&mut self) -> bool {
        let all = match self.phase {
            Phase::Look => self.processors.len(),
            _ => self.sleepers.len(),
        };
        let end = all.min(self.at + STEP);
        for at in self.at..end {
            match self.phase {
                Phase::Look => self.look(at),
                Phase::Count => self.count(at),
                Phase::Check => self.check(at),
                Phase::Sweep => self.sweep(at),
                Phase::Over => {}
            }
        }
        self.at = end;
        if end == all {
            self.at = 0;
            self.phase = match self.phase {
                Phase::Look => {
                    self.resolve();
                    Phase::Count
                }
                Phase::Count => {
                    self.mark();
                    Phase::Check
                }
                Phase::Check => {
                    self.mark();
                    Phase::Sweep
                }
                Phase::Sweep | Phase::Over => {
                    let gone = self.ended.len();
                    self.collected.live_processors = self.processors.len() - gone;
                    Phase::Over
                }
            };
        }
        self.phase == Phase::Over
    }

    fn look(&mut self, index: usize) {
        let handler = Arc::clone(&self.processors[index]);
        let (first, found) = (self.is_live.len(), &mut self.found);
        let before = found.len();
        let look = handler.look(&mut self.tracer, |slot, to| {
            found.push((first as u32 + slot, (to.processor, to.slot)));
        });
        match look {
            Look::Ended => self.ended.push(handler.id),
            // Its trace may have broken off.
            Look::Basic => {
                self.found.truncate(before);
                self.collected.busy_processors += 1;
            }
            Look::Idle { logged, slots } => {
                let slots = slots as usize;
                self.sleepers.push(Sleeper {
                    index,
                    logged,
                    first,
                    slots,
                    has_slept: true,
                });
                self.sleeper_of[handler.id as usize] = self.sleepers.len() as u32;
                self.is_live.resize(first + slots, false);
            }
        }
    }

    /// Makes vertices of where references lead. Those to the awake lead to what lives anyway.
    fn resolve(&mut self) {
        let vertex = |processor: u32, slot: u32| {
            let known = self.sleeper_of.get(processor as usize).copied();
            let sleeper = &self.sleepers[known?.checked_sub(1)? as usize];
            ((slot as usize) < sleeper.slots).then(|| sleeper.first as u32 + slot)
        };
        let found = std::mem::take(&mut self.found).into_iter();
        let edges = found.filter_map(|(from, (processor, slot))| {
            let to = vertex(processor, slot)?;
            Some((from, to))
        });
        self.edges = edges.collect();
        self.edges.sort_unstable();
    }

    /// Compares counts of references with those that were found.
    fn count(&mut self, at: usize) {
        if at == 0 {
            // A vertex has that many references from objects that sleep.
            let mut inside = vec![0_u32; self.is_live.len()];
            for (_, to) in &self.edges {
                inside[*to as usize] += 1;
            }
            self.found = inside.into_iter().map(|count| (count, (0, 0))).collect();
        }
        let sleeper = &mut self.sleepers[at];
        let (mut vertex, found, live) = (sleeper.first, &self.found, &mut self.is_live);
        let end = sleeper.first + sleeper.slots;
        let handler = &self.processors[sleeper.index];
        let slept = handler.counts(sleeper.logged, |count| {
            if vertex < end {
                live[vertex] |= count > found[vertex].0 as usize;
            }
            vertex += 1;
        });
        if !slept {
            sleeper.has_slept = false;
            live[sleeper.first..end].fill(true);
        }
    }

    /// Looks again at a processor of which something is dead.
    fn check(&mut self, at: usize) {
        let sleeper = &mut self.sleepers[at];
        let vertices = sleeper.first..sleeper.first + sleeper.slots;
        if !sleeper.has_slept {
            return;
        }
        let handler = &self.processors[sleeper.index];
        if !handler.has_slept_since(sleeper.logged) {
            sleeper.has_slept = false;
            self.is_live[vertices].fill(true);
        }
    }

    /// Marks what the live lead to.
    fn mark(&mut self) {
        let live = self.is_live.iter().enumerate();
        let mut left: Vec<u32> = live
            .filter(|(_, live)| **live)
            .map(|(vertex, _)| vertex as u32)
            .collect();
        while let Some(from) = left.pop() {
            let begin = self.edges.partition_point(|edge| edge.0 < from);
            for (_, to) in self.edges[begin..].iter().take_while(|edge| edge.0 == from) {
                if !std::mem::replace(&mut self.is_live[*to as usize], true) {
                    left.push(*to);
                }
            }
        }
    }

    fn sweep(&mut self, at: usize) {
        let sleeper = &self.sleepers[at];
        let live = &self.is_live[sleeper.first..sleeper.first + sleeper.slots];
        if !sleeper.has_slept {
            self.collected.busy_processors += 1;
            return;
        }
        let is_dead = !live.contains(&true);
        let handler = &self.processors[sleeper.index];
        let Some((objects, bytes)) =
            handler.sweep(sleeper.logged, is_dead, |slot| !live[slot as usize])
        else {
            return;
        };
        self.freed_bytes += bytes;
        self.collected.objects += objects.len();
        if is_dead {
            self.collected.processors += 1;
            self.ended.push(handler.id);
        }
        for object in objects {
            if let Err(message) = quietly(|| drop(object)) {
                handler.common.fail(message);
            }
        }
    }
}
