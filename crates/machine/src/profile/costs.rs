//! Costs on a machine. Every [`Figure`]'s unit ends its field's name.

use serde::{Deserialize, Serialize};

use super::{Figure, distance};
use crate::relation::Relation;
use crate::topology::{Node, Thread};

/// Level of memory that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A data cache of this level, 1 nearest to the core.
    Cache(u8),
    /// Memory of the node of the hardware thread that uses it.
    Memory,
}

/// The pages behind a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// The smallest size.
    Small,
    /// Huge pages were asked for and given.
    Huge,
    /// Huge pages were asked for; the result is unknown.
    Unknown,
}

/// A cache level as claimed and as found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheFinding {
    /// 1 is nearest to the core.
    pub level: u8,
    /// The size that firmware or the kernel claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_bytes: Option<u64>,
    /// The size that the latency curve shows: where it leaves this level's plateau.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred_bytes: Option<Figure>,
}

impl CacheFinding {
    /// The inferred capacity, else the claimed one, bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<f64> {
        let inferred = self.inferred_bytes.map(|figure| figure.value);
        inferred.or(self.claimed_bytes.map(|bytes| bytes as f64))
    }
}

/// One point of the latency curve: dependent loads in random order over a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The buffer.
    pub size_bytes: u64,
    /// Distance from one element to the next in address order.
    pub stride_bytes: u64,
    /// The pages behind the buffer.
    pub pages: Pages,
    /// One load.
    pub load_ns: Figure,
}

/// Cost of an access to a line by the level that holds it, when each access waits for the last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCost {
    /// The level.
    pub level: Level,
    /// A dependent load.
    pub read_ns: Figure,
    /// A store that waits for the store before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<Figure>,
}

/// The state of a line in another hardware thread's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// Written there.
    Modified,
    /// Read there, and nowhere else.
    Exclusive,
    /// Read in several places.
    Shared,
}

/// Cost of a line that another hardware thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateTransfer {
    /// The reader's relation to the holder.
    pub relation: Relation,
    /// The line's state at its holder.
    pub state: LineState,
    /// A load of it.
    pub read_ns: Figure,
    /// A store to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<Figure>,
}

/// Transfer latency between two hardware threads.
///
/// A pair may have several states: a hypervisor that moves its virtual processors makes two of them
/// siblings of one core for a while, and then threads of two cores. Its figures are then the means
/// over time, with intervals that hold those of all states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairTransfer {
    /// One of the two.
    pub a: Thread,
    /// The other.
    pub b: Thread,
    /// There and back: a line written by one, seen by the other, written, seen. Its provenance says
    /// whether this pair was measured or inferred from similar ones.
    pub round_trip_ns: Figure,
    /// One direction. Half the round trip unless measured apart.
    pub one_way_ns: Figure,
    /// The states, the fastest first. Empty, or at least two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<PairState>,
}

/// A state of a pair of hardware threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairState {
    /// One direction, while the state holds. Above zero.
    pub one_way_ns: Figure,
    /// Share of time in which it holds, 0 to 1; those of all states add up to 1. Its samples are
    /// visits of the probe.
    pub time_share: Figure,
}

impl PairTransfer {
    /// Derives both figures from the round trip.
    #[must_use]
    pub fn from_round_trip(a: Thread, b: Thread, round_trip_ns: Figure) -> Self {
        Self {
            a,
            b,
            round_trip_ns,
            one_way_ns: round_trip_ns.times(0.5),
            states: Vec::new(),
        }
    }
}

/// Access pattern of a sequential pass over a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Loads.
    Read,
    /// Stores.
    Write,
    /// Loads from one half, stores to the other; bytes count once.
    Copy,
}

/// Sequential bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// The level that the buffer fits into.
    pub level: Level,
    /// The access pattern.
    pub access: Access,
    /// Hardware threads working at once, each with its own buffer.
    pub threads: u32,
    /// Bandwidth of all threads together. 1 B/ns is 10⁹ bytes a second.
    pub bytes_per_ns: Figure,
}

/// Distances between nodes: rows are the memory's node, columns the node whose threads use it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDistances {
    /// Time to touch and copy a fixed amount. Absent where a node has no memory or no threads.
    pub measured_s: Vec<Vec<Option<Figure>>>,
    /// The means on the firmware's scale, local being 10, without rounding.
    pub scaled: Vec<Vec<Option<f64>>>,
    /// The firmware's distances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Vec<Vec<u32>>>,
}

impl NodeDistances {
    /// Distances from measured times, scaled row by row.
    #[must_use]
    pub fn from_measured(
        measured_s: Vec<Vec<Option<Figure>>>,
        firmware: Option<Vec<Vec<u32>>>,
    ) -> Self {
        let scale = |row: &Vec<Option<Figure>>| {
            let known: Vec<f64> = row.iter().flatten().map(|figure| figure.value).collect();
            let mut scaled = distance::scaled(&known, 10.0).into_iter();
            row.iter()
                .map(|cell| cell.and_then(|_| scaled.next()))
                .collect()
        };
        Self {
            scaled: measured_s.iter().map(scale).collect(),
            measured_s,
            firmware,
        }
    }

    /// The measured distance of `memory` from `user`'s threads, local being 10.
    #[must_use]
    pub fn between(&self, memory: Node, user: Node) -> Option<f64> {
        *self.scaled.get(memory.index())?.get(user.index())?
    }

    /// Nodes in the order in which a thread of `user` asks for memory: its own first, then by
    /// measured time, and nodes without a measurement last.
    #[must_use]
    pub fn fallback_order(&self, user: Node) -> Vec<Node> {
        let time = |row: &Vec<Option<Figure>>| {
            let cell = row.get(user.index()).copied().flatten();
            cell.map_or(f64::INFINITY, |figure| figure.value)
        };
        let column: Vec<f64> = self.measured_s.iter().map(time).collect();
        distance::fallback_order(user.index(), &column)
            .into_iter()
            .filter_map(|node| u32::try_from(node).ok().map(Node))
            .collect()
    }
}

/// Costs of the operating system's services. Absent: not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemCosts {
    /// Creating a thread that returns at once, and joining it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_create_join_ns: Option<Figure>,
    /// Switch from one thread to another of the same hardware thread, by `sched_yield`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_switch_ns: Option<Figure>,
    /// From the wake call to the woken thread's first step, on the same hardware thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex_wake_same_core_ns: Option<Figure>,
    /// The same, on another core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futex_wake_other_core_ns: Option<Figure>,
    /// First touch of a page of the smallest size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_fault_ns: Option<Figure>,
    /// First touch of a huge page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_page_fault_ns: Option<Figure>,
    /// Lock and unlock without contention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutex_ns: Option<Figure>,
    /// Post and wait without a waiter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semaphore_ns: Option<Figure>,
    /// `sched_yield` with no other thread to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sched_yield_ns: Option<Figure>,
    /// The cheapest system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syscall_ns: Option<Figure>,
    /// Reading the monotonic clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_read_ns: Option<Figure>,
}

/// One bin of a histogram of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The shortest gap of the bin, ns.
    pub from_ns: u64,
    /// Start of the next bin, ns. Absent for the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_ns: Option<u64>,
    /// Number of gaps.
    pub count: u64,
}

/// Interruptions of a thread that only reads the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The thread that it ran on.
    pub thread: Thread,
    /// Duration of the observation.
    pub observed_s: f64,
    /// Gaps between two readings, by length.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Interrupts a second on this hardware thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<Figure>,
    /// Share of time that the hypervisor took, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_share: Option<Figure>,
}

/// Way in which control passes from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// A kernel thread each; the receiver sleeps on a futex.
    Threads,
    /// A thread each; the receiver spins.
    Spin,
    /// Workers: on one worker a function call, between workers a spinning inbox.
    Worker,
}

/// Cost of passing control, one direction, with a message of one line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOver {
    /// The carrier.
    pub carrier: Carrier,
    /// The relation of the two hardware threads.
    pub relation: Relation,
    /// From the sender's last step to the receiver's first.
    pub one_way_ns: Figure,
}

/// A measured message: written by one thread, handed over, read by another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The message's size.
    pub bytes: u64,
    /// The writer.
    pub sender: Thread,
    /// The reader.
    pub receiver: Thread,
    /// Way in which control passed.
    pub carrier: Carrier,
    /// Buffers in rotation, if the sender continued while the receiver read. Absent if it waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_depth: Option<u32>,
    /// Whether every message had memory fresh from the operating system.
    #[serde(default)]
    pub fresh_buffer: bool,
    /// Time from the first store to the last load; in a stream, from one message to the next. Above
    /// zero.
    pub exchange_ns: Figure,
}

/// Result of testing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Measurement agrees.
    Confirmed,
    /// Measurement disagrees, beyond doubt.
    Contradicted,
    /// Measurement cannot tell, or could not be made.
    Undecided,
}

/// A statement of firmware, the kernel or a hypervisor, and our finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its subject, such as `size of L3` or `core 0 and core 1 share L2`.
    pub subject: String,
    /// Origin of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The claim.
    pub claimed: String,
    /// The finding.
    pub found: String,
    /// Whether they agree.
    pub verdict: ClaimVerdict,
    /// Effect size. For a size: found by claimed, so 1 is agreement. For threads that belong
    /// together: how much slower pairs outside are than inside, so 1 is no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_ratio: Option<Figure>,
}
