//! The machine as placement sees it: the hardware threads that may be used, the parts they share,
//! and the cost of a message between any two of them.

mod message;

use std::collections::{BTreeMap, BTreeSet};

use hearth_machine::profile::{Level, Profile, ProfileError};
use hearth_machine::topology::{OsNode, OsThread, Thread};
use hearth_model::fitted::{Model, Scenario};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use message::{Message, MessageCost, PairClass, Share};

/// Most slots: the table of pairs grows with the square.
pub const SLOTS_MAX: usize = 4096;
/// Bytes to a line where the topology does not say.
const LINE_BYTES: f64 = 64.0;
/// Latency beyond the last level if the profile lacks memory's, ns.
const MEMORY_NS: f64 = 90.0;

/// A hardware thread that may be used, numbered in the order of the topology: package by package,
/// core by core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuSlot(pub u32);

impl CpuSlot {
    /// The number as an index of a table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A slot for each component, in the order of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Placement(pub Vec<CpuSlot>);

impl Placement {
    /// Number of slots with at least one component.
    #[must_use]
    pub fn slots_used(&self) -> usize {
        self.0.iter().collect::<BTreeSet<_>>().len()
    }
}

/// The parts that a slot is in. Numbers of cores, packages and nodes are positions among the
/// machine's usable parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotParts {
    /// Its number for system calls.
    pub os: OsThread,
    /// Its logical number in the topology.
    pub thread: Thread,
    /// Its core.
    pub core: u32,
    /// Its package.
    pub package: u32,
    /// Its node.
    pub node: u32,
    /// The share of its time that the hypervisor leaves to us, above 0, at most 1.
    pub capacity: f64,
}

/// A data cache.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedCache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Its capacity.
    pub bytes: f64,
    /// Extra time for a line that is not here but in the next level, ns.
    pub miss_ns: f64,
    /// The usable slots behind it, ascending.
    pub slots: Vec<CpuSlot>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeMemory {
    /// Its number for system calls.
    pub os: OsNode,
    /// Its memory, if known.
    pub bytes: Option<f64>,
    /// Its usable slots, ascending.
    pub slots: Vec<CpuSlot>,
}

/// Reason why there is nothing to place on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The profile contradicts itself.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An allowed hardware thread is not online.
    #[error("{cpu} is not online on this machine, which has {online}: name only these")]
    NoSuchCpu {
        /// The hardware thread.
        cpu: OsThread,
        /// The hardware threads that are online, as a list.
        online: String,
    },
    /// Model and profile describe different machines.
    #[error("the model is of another machine than the profile: make it from the same profile")]
    OtherMachine,
    /// More than [`SLOTS_MAX`].
    #[error("{count} hardware threads are more than the {slots_max} that can be placed on: allow fewer", slots_max = SLOTS_MAX)]
    TooMany {
        /// Number of hardware threads.
        count: usize,
    },
}

/// A pair of slots in one of its states, and the cost of messages then.
#[derive(Clone, Debug)]
pub struct MachineState {
    /// The pair.
    pub pair: [CpuSlot; 2],
    /// Its transfer latency then, one way, ns.
    pub one_way_ns: f64,
    /// Share of time in which the state holds; those of a pair add up to 1.
    pub time_share: f64,
    messages: MessageCost,
}

/// Most pairs looked at in each of their states; those whose states differ most.
const PAIRS_WITH_STATES_MAX: usize = 8;

/// The usable part of a machine, and the cost of messages on it. Where pairs have several states,
/// messages cost what they do over time.
#[derive(Clone, Debug)]
pub struct Machine {
    slots: Vec<SlotParts>,
    cores: Vec<Vec<CpuSlot>>,
    caches: Vec<SharedCache>,
    /// Caches that a slot's data passes through, nearest first, as positions in `caches`.
    paths: Vec<Vec<u32>>,
    nodes: Vec<NodeMemory>,
    messages: MessageCost,
    states: Vec<MachineState>,
    line_bytes: f64,
    cpus_max: Option<f64>,
}

impl Machine {
    /// The hardware threads of `allowed`, or all online ones if it is empty. Costs that the profile
    /// lacks are [assumed](Profile::with_defaults).
    ///
    /// # Errors
    /// [`MachineError`]: a hardware thread that is not online, too many of them, or a profile that
    /// contradicts itself.
    pub fn new(
        profile: &Profile,
        model: &Model,
        allowed: &[OsThread],
    ) -> Result<Self, MachineError> {
        profile.check()?;
        if model.topology() != &profile.topology {
            return Err(MachineError::OtherMachine);
        }
        let profile = profile.clone().with_defaults();
        let threads = usable(&profile, allowed)?;
        let slots = slots(&profile, &threads);
        let mut cores =
            vec![Vec::new(); slots.iter().map(|s| s.core as usize + 1).max().unwrap_or(0)];
        for (at, slot) in slots.iter().enumerate() {
            cores[slot.core as usize].push(slot_number(at));
        }
        let line_bytes = profile.topology.caches().iter();
        let line_bytes = line_bytes.filter(|c| c.holds_data()).find_map(|c| c.line);
        let caches = caches(&profile, &threads, model.tuning().in_flight_read);
        let mut paths = vec![Vec::new(); slots.len()];
        for (at, cache) in (0..).zip(&caches) {
            for slot in &cache.slots {
                paths[slot.index()].push(at);
            }
        }
        Ok(Self {
            messages: MessageCost::new(model, &threads),
            states: states(model, &threads),
            nodes: nodes(&profile, &slots),
            cores,
            caches,
            paths,
            slots,
            line_bytes: line_bytes.map_or(LINE_BYTES, f64::from).max(1.0),
            cpus_max: None,
        })
    }

    /// The same under a control group's quota: this many CPUs' time, however many may be used.
    #[must_use]
    pub fn with_quota(mut self, cpus: f64) -> Self {
        self.cpus_max = (cpus.is_finite() && cpus > 0.0).then_some(cpus);
        self
    }

    /// The quota, in CPUs.
    #[must_use]
    pub const fn quota(&self) -> Option<f64> {
        self.cpus_max
    }

    /// The slots; position is [`CpuSlot`]. At least one.
    #[must_use]
    pub fn slots(&self) -> &[SlotParts] {
        &self.slots
    }

    /// All slots, ascending.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = CpuSlot> + use<> {
        (0..self.slots.len()).map(slot_number)
    }

    /// The usable slots of each core that has any.
    #[must_use]
    pub fn cores(&self) -> &[Vec<CpuSlot>] {
        &self.cores
    }

    /// Data caches of the usable slots, nearest first.
    #[must_use]
    pub fn caches(&self) -> &[SharedCache] {
        &self.caches
    }

    /// The caches of a slot, nearest first, as positions in [`Machine::caches`].
    #[must_use]
    pub fn path(&self, slot: CpuSlot) -> &[u32] {
        &self.paths[slot.index()]
    }

    /// The nodes with usable slots.
    #[must_use]
    pub fn nodes(&self) -> &[NodeMemory] {
        &self.nodes
    }

    /// The cost of messages.
    #[must_use]
    pub const fn messages(&self) -> &MessageCost {
        &self.messages
    }

    /// The pairs with several states, each in each of them.
    #[must_use]
    pub fn states(&self) -> &[MachineState] {
        &self.states
    }

    /// The same machine while one pair is in a state, without states.
    #[must_use]
    pub fn under(&self, state: &MachineState) -> Self {
        Self {
            messages: state.messages.clone(),
            states: Vec::new(),
            ..self.clone()
        }
    }

    /// Bytes to a cache line.
    #[must_use]
    pub const fn line_bytes(&self) -> f64 {
        self.line_bytes
    }

    /// The operating system's number of a slot. Panics if there is no such slot.
    #[must_use]
    pub fn os(&self, slot: CpuSlot) -> OsThread {
        self.slots[slot.index()].os
    }

    /// The slot of a hardware thread, if it may be used.
    #[must_use]
    pub fn slot_of(&self, os: OsThread) -> Option<CpuSlot> {
        self.slots
            .iter()
            .position(|slot| slot.os == os)
            .map(slot_number)
    }
}

/// A position as a slot. The machine has at most [`SLOTS_MAX`].
pub(crate) fn slot_number(at: usize) -> CpuSlot {
    CpuSlot(u32::try_from(at).expect("slots are fewer than SLOTS_MAX"))
}

fn usable(profile: &Profile, allowed: &[OsThread]) -> Result<Vec<Thread>, MachineError> {
    let topology = &profile.topology;
    let known: BTreeMap<OsThread, Thread> = topology
        .all_threads()
        .map(|thread| (topology.os_thread(thread), thread))
        .collect();
    let threads: BTreeSet<Thread> = if allowed.is_empty() {
        known.values().copied().collect()
    } else {
        let look_up = |cpu: &OsThread| known.get(cpu).copied().ok_or(*cpu);
        let found: Result<_, OsThread> = allowed.iter().map(look_up).collect();
        found.map_err(|cpu| MachineError::NoSuchCpu {
            cpu,
            online: hearth_machine::topology::format_list(known.keys().map(|os| os.0)),
        })?
    };
    if threads.len() > SLOTS_MAX {
        let count = threads.len();
        return Err(MachineError::TooMany { count });
    }
    Ok(threads.into_iter().collect())
}

/// The pairs among `threads` with several states, those that differ most, in each of them.
fn states(model: &Model, threads: &[Thread]) -> Vec<MachineState> {
    let scenarios = model.scenarios();
    let pairs = scenarios.chunk_by(|a, b| a.pair == b.pair);
    let is_here = |thread| threads.binary_search(thread).is_ok();
    let mut pairs: Vec<&[Scenario]> = pairs
        .filter(|states| is_here(&states[0].pair.0) && is_here(&states[0].pair.1))
        .collect();
    let range = |states: &[Scenario]| states[states.len() - 1].state.ratio / states[0].state.ratio;
    pairs.sort_by(|a, b| range(b).total_cmp(&range(a)));
    let slot = |thread| slot_number(threads.partition_point(|known| *known < thread));
    let state = |scenario: &Scenario| MachineState {
        pair: [slot(scenario.pair.0), slot(scenario.pair.1)],
        one_way_ns: scenario.state.one_way_ns,
        time_share: scenario.state.time_share,
        messages: MessageCost::new(&model.under(scenario), threads),
    };
    let kept = pairs.into_iter().take(PAIRS_WITH_STATES_MAX);
    kept.flatten().map(state).collect()
}

fn slots(profile: &Profile, threads: &[Thread]) -> Vec<SlotParts> {
    let topology = &profile.topology;
    let mut steal = BTreeMap::new();
    for noise in &profile.noise {
        steal.insert(noise.thread, noise.steal_share.map_or(0.0, |s| s.value));
    }
    let number = |numbers: &BTreeSet<u32>, of: u32| {
        u32::try_from(numbers.range(..of).count()).expect("parts are fewer than slots")
    };
    let parts = || threads.iter().map(|thread| topology.thread(*thread));
    let cores: BTreeSet<u32> = parts().map(|part| part.core.0).collect();
    let packages: BTreeSet<u32> = parts().map(|part| part.package.0).collect();
    let nodes: BTreeSet<u32> = parts().map(|part| part.node.0).collect();
    threads
        .iter()
        .zip(parts())
        .map(|(thread, part)| SlotParts {
            os: part.os,
            thread: *thread,
            core: number(&cores, part.core.0),
            package: number(&packages, part.package.0),
            node: number(&nodes, part.node.0),
            // A probe of a few seconds cannot tell less than a tenth from noise.
            capacity: (1.0 - steal.get(thread).copied().unwrap_or(0.0)).clamp(0.1, 1.0),
        })
        .collect()
}

fn caches(profile: &Profile, threads: &[Thread], in_flight: f64) -> Vec<SharedCache> {
    let mut caches: Vec<SharedCache> = profile
        .topology
        .caches()
        .iter()
        .filter(|cache| cache.holds_data())
        .filter_map(|cache| {
            let slots: Vec<CpuSlot> = cache
                .threads
                .iter()
                .filter_map(|thread| threads.binary_search(thread).ok().map(slot_number))
                .collect();
            let found = profile.caches.iter().find(|f| f.level == cache.level);
            // The curve's finding holds for its level; deviating sizes come from the topology.
            let shown = found.and_then(|found| found.inferred_bytes);
            let bytes = shown.map_or(cache.size.0 as f64, |figure| figure.value);
            (bytes > 0.0 && !slots.is_empty()).then_some(SharedCache {
                level: cache.level,
                bytes,
                miss_ns: miss_ns(profile, cache.level) / in_flight.max(1.0),
                slots,
            })
        })
        .collect();
    caches.sort_by_key(|cache| (cache.level, cache.slots[0]));
    caches
}

/// Extra time of a dependent load in the next level.
fn miss_ns(profile: &Profile, level: u8) -> f64 {
    let here = profile.level(Level::Cache(level));
    let here = here.map_or(0.0, |cost| cost.read_ns.value);
    let beyond = profile.levels.iter().filter(|cost| match cost.level {
        Level::Cache(other) => other > level,
        Level::Memory => true,
    });
    let next = beyond.min_by_key(|cost| cost.level);
    (next.map_or(MEMORY_NS, |cost| cost.read_ns.value) - here).max(0.0)
}

fn nodes(profile: &Profile, slots: &[SlotParts]) -> Vec<NodeMemory> {
    let count = slots.iter().map(|slot| slot.node + 1).max().unwrap_or(0);
    (0..count)
        .map(|node| {
            let mine = |slot: &&SlotParts| slot.node == node;
            let first = slots.iter().find(mine).expect("nodes are those of slots");
            let node = profile.topology.thread(first.thread).node;
            let parts = &profile.topology.nodes()[node.index()];
            NodeMemory {
                os: parts.os,
                bytes: parts.memory.map(|bytes| bytes.0 as f64),
                slots: (0..)
                    .zip(slots)
                    .filter(|(_, slot)| mine(slot))
                    .map(|(at, _)| CpuSlot(at))
                    .collect(),
            }
        })
        .collect()
}
